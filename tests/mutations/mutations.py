#!/usr/bin/env python3
"""The deliberate bugs of docs/mutations.md.

    mutations.py check ROOT                the table agrees with the switches in the sources, and with the tests
    mutations.py run ROOT BUILD [NAME...]  each switch that is named, or all: its test passes without and fails with it
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

SWITCH = re.compile(r'ZKRECIPES_MUTATION\("([^"]+)"\)')
TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.M)
HAZARDS = [f"H{n}" for n in [*range(1, 51), *range(68, 71)]]
LIMIT_S = 30  # for a test that takes milliseconds; with a bug it may have no end
SERVER_LIMIT_S = 120  # for one that starts a server
MEMORY = 3 << 30


class Row:
    def __init__(self, line):
        cells = [cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|")]
        self.name, self.what, hazards, self.test, self.simulation = cells
        self.hazards = [] if hazards == "–" else hazards.split(", ")


def rows_of(root):
    lines = (root / "docs/mutations.md").read_text().split("\n")
    return [Row(line) for line in lines if line.startswith("| `")]


# ---- check ----------------------------------------------------------------------------------------------------------


def switches_of(root):
    found = set()
    for folder in ("src", "recipes"):
        for source in (root / folder).rglob("*.[ch]pp"):
            found |= set(SWITCH.findall(source.read_text()))
    return found


def tests_of(root):
    return {f"{suite}.{name}" for source in (root / "tests").rglob("*.cpp")
            for suite, name in TEST.findall(source.read_text())}


def problems_of(root):
    rows, switches, tests = rows_of(root), switches_of(root), tests_of(root)
    names = [row.name for row in rows]
    problems = [f"{name} is twice in docs/mutations.md" for name in sorted(set(names)) if names.count(name) > 1]
    problems += [f"{name} has no row in docs/mutations.md" for name in sorted(switches - set(names))]
    problems += [f"{name} of docs/mutations.md is no switch of the sources" for name in sorted(set(names) - switches)]
    for row in rows:
        if row.test.split("/")[0] not in tests:
            problems.append(f"{row.name}: there is no test {row.test}")
        problems += [f"{row.name}: there is no hazard {hazard}" for hazard in row.hazards if hazard not in HAZARDS]
    # Where the hazards are listed each switch stands beside its hazard.
    listed, inside = {}, False
    for line in (root / "docs/testing.md").read_text().split("\n"):
        inside = line.startswith("| hazard |") or (inside and line.startswith("|"))
        cells = line.strip().strip("|").split("|")
        if inside and len(cells) == 3:
            for hazard in re.findall(r"\bH\d+\b", cells[0]) or ["–"]:
                listed.setdefault(hazard, set()).update(re.findall(r"`([a-z-]+)`", cells[2]))
    for row in rows:
        for hazard in row.hazards or ["–"]:
            if row.name not in listed.get(hazard, set()):
                problems.append(f"{row.name} does not stand beside {hazard} in the table of docs/testing.md")
    for name in sorted(set().union(*listed.values()) - set(names)):
        problems.append(f"{name} of docs/testing.md is no switch")
    return problems if rows else ["no row found in docs/mutations.md: has something moved?"]


def check(root):
    problems = problems_of(root)
    print("\n".join(problems) if problems else f"{len(rows_of(root))} switches, all listed")
    return 1 if problems else 0


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("docs", "src", "recipes", "tests"):
            (root / name).mkdir()
        (root / "src/a.cpp").write_text('if (ZKRECIPES_MUTATION("good") || ZKRECIPES_MUTATION("unlisted")) return;\n')
        (root / "tests/a.cpp").write_text("TEST(ATest, Works) {\n")
        (root / "docs/testing.md").write_text("| hazard | tests | switches |\n| a (H1) | t | `good`, `unknown` |\n")
        (root / "docs/mutations.md").write_text("| `good` | x | H1 | `ATest.Works/P` | – |\n"
                                                "| `gone` | x | H99 | `ATest.Missing` | – |\n")
        expected = [
            "unlisted has no row in docs/mutations.md", "gone of docs/mutations.md is no switch of the sources",
            "gone: there is no test ATest.Missing", "gone: there is no hazard H99",
            "gone does not stand beside H99 in the table of docs/testing.md", "unknown of docs/testing.md is no switch"
        ]
        found = problems_of(root)
    if found != expected:
        print("\n".join(["found:", *found, "expected:", *expected]))
        return 1
    print(f"{len(expected)} planted problems found")
    return 0


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
    """passes, fails, crashes or hangs; and how long that took."""
    environment = dict(os.environ, ZKRECIPES_MUTATION=mutation)
    of_server = program.parent.name == "server"  # Java reserves more memory than any test may use
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([program, f"--gtest_filter={pattern}", "--gtest_brief=1"], env=environment,
                                   stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   start_new_session=True,
                                   preexec_fn=lambda: of_server or resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        try:
            code = process.wait(SERVER_LIMIT_S if of_server else LIMIT_S)
            outcome = "passes" if code == 0 else "fails" if code == 1 else "crashes"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            outcome = "hangs"
        output.seek(0)
        text = output.read().decode(errors="replace")
    if outcome == "passes" and "[  PASSED  ] 0 tests" in text:
        outcome = "runs nothing"
    if keep_output and mutation:
        print(text)
    return outcome, time.monotonic() - began


def run(root, build, only, jobs, keep_output):
    programs = Programs(build)
    rows = [row for row in rows_of(root) if not only or row.name in only]
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
            caught = without == "passes" and with_it in ("fails", "crashes", "hangs")
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
    if len(arguments) >= 3 and arguments[0] == "run":
        return run(pathlib.Path(arguments[1]), pathlib.Path(arguments[2]), arguments[3:], jobs, keep_output)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
