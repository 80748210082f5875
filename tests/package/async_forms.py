#!/usr/bin/env python3
"""Compares the table of docs/async.md with the public headers and with zkrecipes/asio.hpp.

    async_forms.py ROOT         every public call has a row; every asynchronous one a function in zkrecipes/asio/
    async_forms.py ROOT --list  prints the public calls of each class
    async_forms.py --self-test  plants one mistake of each kind and checks that it is found
"""
import pathlib
import re
import sys
import tempfile

DOCUMENT = "docs/async.md"
# No classes of recipes: options, results, and the adapters themselves.
WITHOUT_CALLS = {"Deadline", "Error", "RetryPolicy", "Subscription", "SessionEvents", "Awaitable"}
WITHOUT_RECIPES = {"testing.hpp"}
FREE = "functions"  # in place of a class


def code_of(header):
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(), flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"(?m)^#.*$", "", text)


def statements(body):
    """What stands in a class or namespace, one declaration at a time, without bodies of functions."""
    depth, start, out = 0, 0, []
    for at, char in enumerate(body):
        depth += {"{": 1, "}": -1, "(": 1, ")": -1}.get(char, 0)
        if depth == 0 and char in ";}":
            out.append(body[start:at + 1])
            start = at + 1
    return out


def function_of(statement):
    """The name of the function that a statement declares."""
    statement = re.sub(r"\b(public|private):", "", statement).strip()
    if re.match(r"(using|struct|enum|class|friend|template\s*<[^>]*>\s*(class|struct)|namespace|static constexpr)\b", statement):
        return None
    while statement != (plain := re.sub(r"<[^<>]*>", "", statement)):  # arguments of templates
        statement = plain
    head = statement.split("(")[0]
    if "(" not in statement or "operator" in head or "~" in head or "=" in head:
        return None
    name = re.search(r"(\w+)\s*$", head)
    return name and name.group(1)


def calls_of(header):
    """(class, name) of each public function."""
    code = code_of(header)
    for found in re.finditer(r"^(?:template <[^>]*>\n)?class (?:\[\[\w+\]\] )?(?:ZKRECIPES_API )?(\w+)(?: final)?(?: : [^{;]*)? \{\n(.*?)^\};", code, re.S | re.M):
        name, body = found.groups()
        public = re.sub(r"^private:.*?(?=^public:|\Z)", "", "private:\n" + body, flags=re.S | re.M)
        for statement in statements(public):
            call = function_of(statement)
            if call and call != name and name not in WITHOUT_CALLS:
                yield name.removesuffix("Of"), call
    for statement in re.findall(r"^ZKRECIPES_API .*?;", code, re.M | re.S):
        call = function_of(statement)
        if call not in ("to_string", "error_category", "make_error_code", "stats_source"):
            yield FREE, call


def public_calls(root):
    return {call for header in sorted((root / "include/zkrecipes").glob("*.hpp"))
            if header.name not in WITHOUT_RECIPES for call in calls_of(header) if call[1]}


def rows_of(document):
    """(class, calls, asynchronous calls, Asio functions, remark) of each row."""
    for line in document.read_text().split("\n"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 5 and cells[0] != "class":
            names = [set(re.findall(r"`(\w+)`", cell)) for cell in cells]
            yield (names[0].pop() if names[0] else cells[0]), names[1], names[2], names[3], cells[4]


def problems_of(root):
    calls, rows = public_calls(root), list(rows_of(root / DOCUMENT))
    adapters = "".join(path.read_text() for path in sorted((root / "include/zkrecipes/asio").glob("*.hpp")))
    functions = set(re.findall(r"\basync_(\w+)\(", adapters))
    listed = {(of, name) for of, blocking, later, _, _ in rows for name in blocking | later}
    for of, name in sorted(calls - listed):
        yield f"{DOCUMENT}: no row for {name} of {of}"
    for of, name in sorted(listed - calls):
        yield f"{DOCUMENT}: {of} has no {name}"
    for of, blocking, later, asio, remark in rows:
        row = f"{DOCUMENT}: the row of {', '.join(sorted(blocking | later))} of {of}"
        if not later and not remark:
            yield f"{row} has neither an asynchronous form nor a reason"
        if asio != {"async_" + name.removesuffix("_async") for name in later}:
            yield f"{row} names other functions for Asio than asynchronous calls"
    for of, name in sorted(calls):
        if name.endswith("_async") and name.removesuffix("_async") not in functions:
            yield f"include/zkrecipes/asio: there is no async_{name.removesuffix('_async')}, for {name} of {of}"
        if name.endswith("_async") and not any(of == row[0] and name in row[2] for row in rows):
            yield f"{DOCUMENT}: {name} of {of} is in no asynchronous column"
    known = {name.removesuffix("_async") for _, name in calls if name.endswith("_async")}
    for name in sorted(functions - known):
        yield f"include/zkrecipes/asio: async_{name} is of no asynchronous call"


def plant(root, change=lambda path, text: text):
    files = {
        "include/zkrecipes/a.hpp": "class ZKRECIPES_API Lock {\npublic:\n    Lock();\n    bool wait(int d = 0);\n"
                                   "    void wait_async(int d, std::function<void(bool)> done);\n    int size() const noexcept { return 1; }\n"
                                   "private:\n    void hidden();\n};\nZKRECIPES_API bool look(int x);\n",
        "include/zkrecipes/asio/a.hpp": "auto async_wait(int d);\n",
        DOCUMENT: "| class | blocking | asynchronous | Asio | remark |\n|---|---|---|---|---|\n| `Lock` | `wait` | `wait_async` | `async_wait` | |\n"
                  "| `Lock` | `size` | | | does not block |\n| functions | `look` | | | does not block |\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(change(path, text))


def self_test():
    planted = [("", ""), ("| `Lock` | `size` | | | does not block |\n", ""), ("`size` |", "`sizes` |"), ("does not block |\n| f", "|\n| f"),
               ("async_wait(int d)", "async_waits(int d)"), ("`async_wait`", "`async_look`"), ("`wait_async`", ""),
               ("bool look(int x);", "bool look(int x);\nZKRECIPES_API bool look_async(int x);"),
               ("    int size()", "    bool leave();\n    int size()")]
    failures = 0
    for old, new in planted:
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            plant(root, lambda path, text: text.replace(old, new) if old else text)
            found = list(problems_of(root))
            if bool(found) != bool(old):
                failures += 1
                print(f"planted {old!r} -> {new!r}: found {found}")
    print(f"{len(planted)} trees, {failures} failures")
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["--list"]:
        for of, name in sorted(public_calls(root)):
            print(of, name)
        return 0
    problems = list(problems_of(root))
    calls = public_calls(root)
    if len(calls) < 100:
        problems.append(f"only {len(calls)} public calls found: the headers have changed, and this test has gone blind")
    print("\n".join(problems) if problems else f"{len(calls)} public calls, {len(list(rows_of(root / DOCUMENT)))} rows")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
