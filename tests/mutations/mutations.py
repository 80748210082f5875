#!/usr/bin/env python3
"""The deliberate bugs of tests/mutations/bugs (their form: bugs.py).

    mutations.py check ROOT                the edits apply, their tests and hazards exist, the tables are up to date
    mutations.py table ROOT                writes the tables of docs/mutations.md and the last column of docs/hazards.md
    mutations.py generate ROOT OUT [FILE]  copies the library to OUT, with all bugs in it, or with the random ones of FILE
    mutations.py run ROOT BUILD [NAME...]  each bug that is named, or all: its test passes without, and with it an
                                           expectation fails (or what the entry says by "by:")
                                           (--jobs N at a time; --keep-output prints what the tests say)
    mutations.py --self-test               plants what check must find
"""
import concurrent.futures
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

import bugs as edits
import places

TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.M)
ROW = re.compile(r"^(\| (H\d+) \|.*\|)([^|\n]*)\|$", re.M)  # of docs/hazards.md; the last cell is generated
LIMIT_S = 30  # for a test that takes milliseconds; with a bug it may have no end
SERVER_LIMIT_S = 120  # for one that starts a server
MEMORY = 3 << 30
# What gtest says of an expectation that failed, and of an exception that left a test.
EXPECTATION = re.compile(r"^[^\s:][^:\n]*:\d+: Failure$", re.M)
EXCEPTION = re.compile(r"^(?:unknown file: Failure|C\+\+ exception with description)", re.M)
WAYS = {"failure": "fails", "hang": "hangs", "crash": "crashes", "exception": "throws"}
BEGIN = "<!-- The tables below are written by tests/mutations/mutations.py table. -->\n"


# ---- check ----------------------------------------------------------------------------------------------------------


def tests_of(root):
    return {f"{suite}.{name}" for source in (root / "tests").rglob("*.cpp")
            for suite, name in TEST.findall(source.read_text())}


def tables_of(bugs):
    lines = ["", "## Two at once", "", "| Both | What the second one stands behind | Simulation |", "|---|---|---|"]
    for bug in bugs:
        if bug.both:
            lines.append(f"| both `{bug.name[5:]}` | {bug.fields['wrong']} | {bug.fields['simulation']} |")
    section = ""
    for bug in bugs:
        if bug.both:
            continue
        if bug.section != section:
            section = bug.section
            lines += ["", f"## {section}", "", "| Bug | What goes wrong | Hazards | Test that fails | Simulation |",
                      "|---|---|---|---|---|"]
        fields = bug.fields
        by = "" if bug.by == "failure" else f" ({WAYS[bug.by]})"
        lines.append(f"| `{bug.name}` | {fields['wrong']} | {fields['hazards']} | `{fields['test']}`{by} | {fields['simulation']} |")
    return "\n".join(lines) + "\n"


def with_tables(root, bugs):
    head, begin, _ = (root / "docs/mutations.md").read_text().partition(BEGIN)
    return head + begin + tables_of(bugs) if begin else None


def with_bugs_of_hazards(root, bugs):
    def filled(row):
        names = [f"`{bug.name}`" for bug in bugs if not bug.both and row.group(2) in bug.hazards]
        return f"{row.group(1)} {', '.join(names) or '–'} |"

    return ROW.sub(filled, (root / "docs/hazards.md").read_text())


def problems_of(root):
    try:
        bugs = edits.read(root)
    except ValueError as error:
        return [str(error)]
    single, tests = [bug for bug in bugs if not bug.both], tests_of(root)
    hazards = [number for _, number, _ in ROW.findall((root / "docs/hazards.md").read_text())]
    names = [bug.name for bug in single]
    problems = [f"{name} is there twice" for name in sorted(set(names)) if names.count(name) > 1]
    problems += [f"docs/hazards.md has two rows {name}" for name in sorted(set(hazards)) if hazards.count(name) > 1]
    for bug in bugs:
        needed = ["wrong", "simulation"] + ([] if bug.both else ["hazards", "test"])
        missing = [field for field in needed if field not in bug.fields]
        problems += [f"{bug.where}: {bug.name} has no line '{field}:'" for field in missing]
        if bug.by not in WAYS:
            problems.append(f"{bug.where}: {bug.name} cannot be found by {bug.by}")
            missing = [bug.by]
        if missing:
            continue
        if bug.both:
            problems += [f"{bug.where}: there is no bug {name}" for name in bug.name[5:].split("+") if name not in names]
            continue
        if not bug.edits:
            problems.append(f"{bug.where}: {bug.name} has no edit")
        if bug.test.split("/")[0] not in tests:
            problems.append(f"{bug.name}: there is no test {bug.test}")
        problems += [f"{bug.name}: there is no hazard {hazard}" for hazard in bug.hazards if hazard not in hazards]
    if problems:
        return problems
    problems = edits.problems_of(root, bugs)
    if with_bugs_of_hazards(root, bugs) != (root / "docs/hazards.md").read_text():
        problems.append("docs/hazards.md is not what the bugs say: run tests/mutations/mutations.py table .")
    if with_tables(root, bugs) != (root / "docs/mutations.md").read_text():
        problems.append("docs/mutations.md is not what the bugs say: run tests/mutations/mutations.py table .")
    return problems if bugs else ["no bug found in tests/mutations/bugs: has something moved?"]


def check(root):
    problems = problems_of(root)
    print("\n".join(problems) if problems else f"{len(edits.read(root))} entries, all apply")
    return 1 if problems else 0


def write_tables(root):
    text = with_tables(root, edits.read(root))
    if text is None:
        print(f"docs/mutations.md does not contain the line {BEGIN}", file=sys.stderr)
        return 1
    (root / "docs/mutations.md").write_text(text)
    (root / "docs/hazards.md").write_text(with_bugs_of_hazards(root, edits.read(root)))
    return 0


def generate(root, out, random_bugs=None):
    if random_bugs is None:
        problems = edits.generate(root, out, edits.by_file(edits.read(root)))
    else:
        problems = edits.generate(root, out, places.read(random_bugs), lambda text, chosen, _: places.mutate(text, chosen))
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


def entry(name, edit, test="ATest.Works/P", hazards="H1"):
    return f"== {name}\nwrong: x\nhazards: {hazards}\ntest: {test}\nsimulation: –\n{edit}\n"


def self_test():
    source = "int f(int x) {\n    if (x > 1) return 2;\n    g();\n    g();\n    return x;\n}\n"
    good = "<<<< src/a.cpp\nif (x > 1) return\n====\nif (x > 1 && !BUG) return\n>>>>"
    same_line = "<<<< src/a.cpp\n    if (x > 1) return 2;\n====\n    if (BUG || x > 1) return 2;\n>>>>"
    cases = [
        (entry("unlisted", same_line), "docs/hazards.md is not what the bugs say: run tests/mutations/mutations.py table ."),
        (entry("moved", "<<<< src/a.cpp\nif (y)\n====\nif (BUG)\n>>>>"),
         "moved: its text occurs 0 times in src/a.cpp, and must once: if (y)"),
        (entry("twice", "<<<< src/a.cpp\ng();\n====\nif (BUG) g();\n>>>>"),
         "twice: its text occurs 2 times in src/a.cpp, and must once: g();"),
        (entry("silent", "<<<< src/a.cpp\nreturn x;\n====\nreturn 1;\n>>>>"), "silent: an edit of src/a.cpp does not say BUG"),
        (entry("overlap", "<<<< src/a.cpp\nif (x > 1) return 2;\n====\nif (BUG) g();\n>>>>"),
         "overlap and good change the same text of src/a.cpp"),
        (entry("lost", "<<<< src/b.cpp\na\n====\nBUG\n>>>>"), "lost: there is no file src/b.cpp"),
        (entry("untested", good, "ATest.Missing"), "untested: there is no test ATest.Missing"),
        (entry("unknown", good, hazards="H99"), "unknown: there is no hazard H99"),
        (entry("good", same_line), "good is there twice"),
        ("== bare\nwrong: x\n", "b.bugs:2: bare has no line 'simulation:'"),
        (entry("way", good).replace("simulation:", "by: luck\nsimulation:"), "b.bugs:2: way cannot be found by luck"),
        ("nonsense\n", "b.bugs:2: this is no line of an entry: nonsense"),
        ("== both good+gone\nwrong: x\nsimulation: –\n", "b.bugs:2: there is no bug gone"),
        ("", "docs/mutations.md is not what the bugs say: run tests/mutations/mutations.py table ."),
    ]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("docs", "src", "recipes", "tests/mutations/bugs"):
            (root / name).mkdir(parents=True)
        (root / "src/a.cpp").write_text(source)
        (root / "tests/a.cpp").write_text("TEST(ATest, Works) {\n")
        (root / "docs/hazards.md").write_text("| no. | hazard | tests | bugs |\n|---|---|---|---|\n| H1 | a | t | `good` |\n")
        (root / "tests/mutations/bugs/a.bugs").write_text("# A\n" + entry("good", good))
        for text, expected in cases:
            (root / "docs/mutations.md").write_text(BEGIN)
            if text:
                (root / "tests/mutations/bugs/b.bugs").write_text("# B\n" + text)
            else:
                (root / "tests/mutations/bugs/b.bugs").unlink()
            found = problems_of(root)
            if expected not in found:
                failures.append(f"expected: {expected}\nfound: {found}")
        (root / "tests/mutations/bugs/b.bugs").write_text("# B\n" + entry("more", same_line))
        write_tables(root)
        if "| H1 | a | t | `good`, `more` |\n" not in (root / "docs/hazards.md").read_text() or problems_of(root):
            failures.append("the tables are not written")
        if generate(root, root / "out") != 0:
            failures.append("two edits of one line are not applied")
        made = (root / "out/src/a.cpp").read_text()
        wanted = 'if ((::zkrecipes::internal::Mutations::on("more")) || x > 1 && !(::zkrecipes::internal::Mutations::on("good"))) return 2;'
        if wanted not in made:
            failures.append(f"generated:\n{made}")
    failures += problems_with_places() + problems_with_outcomes()
    for failure in failures:
        print(failure)
    print(f"{len(cases) + 2} cases, {len(failures)} failures")
    return 1 if failures else 0


PLACES = """\
#include "a(b).hpp"
struct S : T {
    explicit S(int x) : x_(x) { begin(); }
    bool good() const noexcept { return x_ > 1 && other(x_); }
    int next() const { return x_ != 0 ? x_ : 7; }
    static constexpr bool kind(int x) { if (x) return true; return false; }
    friend void swap(S&, S&);
    int x_{f(3)};
};
bool g(std::vector<int>&& list) {
    // if (comment) call();
    int made(3);
    if (auto* found = find(list, "if (text)")) found->go();
    if constexpr (sizeof(int) == 4) list.reserve(4);
    static_assert(sizeof(int) == 4 && true);
    for (std::size_t i = 0; i < list.size(); ++i) at(i).run([] { log_->warn("x"); });
    for (int each : list) use(each);
    while (list.empty() || c == '\\'') std::exchange(later, {})(5);
    std::thread t([&] { return 1; });
    return std::any_of(list, [](int x) { return x > 0; });
}
"""
FOUND = """\
3 call begin()
4 operand other(x_)
4 operand x_ > 1
4 result x_ > 1 && other(x_)
5 condition x_ != 0
13 call found->go()
13 condition auto* found = find(list, "if (text)")
16 call at(i).run([] { log_->warn("x"); })
16 condition i < list.size()
17 call use(each)
18 condition list.empty() || c == '\\''
18 operand c == '\\''
18 operand list.empty()
20 result std::any_of(list, [](int x) { return x > 0; })
20 result x > 0
"""
APPLIED = [
    'return (BUG != static_cast<bool>((BUG != static_cast<bool>(x_ > 1)) && (BUG != static_cast<bool>(other(x_)))));',
    'if (auto* found = find(list, "if (text)"); BUG != static_cast<bool>(found)) (BUG ? void() : static_cast<void>(found->go()));',
    "for (std::size_t i = 0; (BUG != static_cast<bool>(i < list.size())); ++i)",
]


def problems_with_places():
    found = sorted(places.find_in("src/a.cpp", PLACES), key=lambda place: (place.line, place.kind, place.before))
    lines = "".join(f"{place.line} {place.kind} {place.before}\n" for place in found)
    if lines != FOUND:
        return [f"places, expected:\n{FOUND}found:\n{lines}"]
    for place in found:
        place.name = "x"
    text, problems = places.mutate(PLACES, found)
    text = text.replace('::zkrecipes::internal::Mutations::on("x")', "BUG")
    problems += [f"expected: {line}\nin: {text}" for line in APPLIED if line not in text]
    if text.count("\n") != PLACES.count("\n") + 1:
        problems.append("the lines of the text with the bugs are not those of the source")
    if not places.mutate(PLACES.replace("begin()", "start()"), found)[1]:
        problems.append("a place whose text has changed is not complained of")
    return problems


FAILURE = "tests/a_test.cpp:7: Failure\nExpected equality of these values:\n"
THROWN = "unknown file: Failure\nC++ exception with description \"x\" thrown in the test body.\n"
OUTCOMES = [
    (0, "[  PASSED  ] 1 test.\n", "passes"),
    (0, "[  PASSED  ] 0 tests.\n", "runs nothing"),
    (1, FAILURE + "[  FAILED  ] A.B (0 ms)\n", "fails"),
    (1, THROWN + "[  FAILED  ] A.B (0 ms)\n", "throws"),
    (1, FAILURE + THROWN + "[  FAILED  ] A.B (0 ms)\n", "fails"),
    (1, "", "crashes"),
    (-6, "terminate called\n", "crashes"),
    (-11, FAILURE, "crashes"),
]


def problems_with_outcomes():
    return [f"{code} {text!r}: expected {wanted}, found {outcome_of_gtest(code, text)}"
            for code, text, wanted in OUTCOMES if outcome_of_gtest(code, text) != wanted]


# ---- run ------------------------------------------------------------------------------------------------------------


def listed_by(program):
    """Names of its tests, as gtest has them."""
    suite, names = "", []
    for line in subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout.split("\n"):
        name = line.split("#")[0].rstrip()
        if name and not name.startswith(" "):
            suite = name
        elif name:
            names.append(suite + name.strip())
    return names


def is_of_server(program):
    return program.name.endswith("_server_test")


def outcome_of_gtest(code, text):
    """passes, fails (an expectation), throws (a test, and nothing else has failed), runs nothing or crashes."""
    if code == 0:
        return "runs nothing" if "[  PASSED  ] 0 tests" in text else "passes"
    if code != 1 or "[  FAILED  ]" not in text:
        return "crashes"
    return "fails" if EXPECTATION.search(text) else "throws" if EXCEPTION.search(text) else "crashes"


class Programs:
    def __init__(self, build):
        programs = [*(build / "tests/unit").glob("*_unit_test"), *(build / "tests/server").glob("*_server_test")]
        self.tests = {program: listed_by(program) for program in sorted(programs)}

    def find(self, test):
        """The program that has it, and the filter that means it there. A test with parameters: one of them, or all."""
        for program, names in self.tests.items():
            if test in names:
                return program, test
            for pattern in (f"*/{test}", f"*/{test}/*"):
                expression = re.compile(re.escape(pattern).replace(r"\*", ".*"))
                if any(expression.fullmatch(name) for name in names):
                    return program, pattern
        return None


def outcome_of(program, pattern, mutation, keep_output):
    """What outcome_of_gtest says, or hangs; and how long that took."""
    environment = dict(os.environ, ZKRECIPES_MUTATION=mutation)
    of_server = is_of_server(program)  # Java reserves more memory than any test may use
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([program, f"--gtest_filter={pattern}", "--gtest_brief=1"], env=environment,
                                   stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   start_new_session=True,
                                   preexec_fn=lambda: of_server or resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        try:
            code = process.wait(SERVER_LIMIT_S if of_server else LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        output.seek(0)
        text = output.read().decode(errors="replace")
    outcome = "hangs" if code is None else outcome_of_gtest(code, text)
    if keep_output and mutation:
        print(text)
    return outcome, time.monotonic() - began


def run(root, build, only, jobs, keep_output):
    programs = Programs(build)
    rows = [bug for bug in edits.read(root) if not bug.both and (not only or bug.name in only)]
    unknown = set(only) - {row.name for row in rows}
    if unknown or not programs.tests:
        print(f"no such mutation: {', '.join(sorted(unknown))}" if unknown else f"{build} has no test programs",
              file=sys.stderr)
        return 2

    def one(row):
        found = programs.find(row.test)
        if found is None:
            return row, "not found", "", 0.0
        without, _ = outcome_of(*found, "", False)
        with_it, seconds = outcome_of(*found, row.name, keep_output)
        return row, without, with_it, seconds

    survived, counts = 0, {}
    print(f"{'mutation':<38} {'without':<8} {'with it':<8} {'s':>5}  test", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for row, without, with_it, seconds in pool.map(one, rows):
            caught = without == "passes" and with_it == WAYS[row.by]
            survived += not caught
            counts[with_it] = counts.get(with_it, 0) + caught
            print(f"{row.name:<38} {without:<8} {with_it:<8} {seconds:5.1f}  {row.test}{'' if caught else '   SURVIVED'}",
                  flush=True)
    how = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()) if count)
    print(f"{len(rows)} mutations: {len(rows) - survived} caught by their tests ({how}), {survived} survived")
    return 1 if survived else 0


def main():
    arguments, jobs, keep_output = sys.argv[1:], 2, False
    if "--keep-output" in arguments:
        arguments.remove("--keep-output")
        keep_output = True
    if "--jobs" in arguments:
        at = arguments.index("--jobs")
        jobs = int(arguments[at + 1])
        del arguments[at:at + 2]
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) == 2 and arguments[0] == "check":
        return check(pathlib.Path(arguments[1]))
    if len(arguments) == 2 and arguments[0] == "table":
        return write_tables(pathlib.Path(arguments[1]))
    if len(arguments) in (3, 4) and arguments[0] == "generate":
        return generate(*map(pathlib.Path, arguments[1:]))
    if len(arguments) >= 3 and arguments[0] == "run":
        return run(pathlib.Path(arguments[1]), pathlib.Path(arguments[2]), arguments[3:], jobs, keep_output)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
