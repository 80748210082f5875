#!/usr/bin/env python3
"""Checks what README.md and the other documents say against the project, and how they are written.

    documents.py ROOT
      - each block of C++, Java, Python or SQL names a source that is compiled or run, and equals the lines between // [name]
        and // [/name] there (# or -- instead of //, as the language has it); so does each block of sh that names one; in the
        document, the line before the block is   <!-- examples/x.cpp [name] -->
      - relative links lead to files, and to headings of these files; files that are named as `src/a.cpp` exist
      - tests named as `Suite.Name` exist, and so do names of the library written as `Class::member` or `member()`
      - docs/operations.md lists the reasons for which src/session says that a hold was lost, and no others; the log lines that it
        lists are texts of the library, … and N apart
      - prose has at most 100 columns; tables, code, comments and lines that are one link, one picture or one word may be longer
    documents.py --self-test     plants what the above must find
"""
import pathlib
import re
import sys
import tempfile
import textwrap

SOURCE = re.compile(r"<!-- (\S+) \[(\w+)\] -->\n```(?:cpp|java|python|sql|sh)\n(.*?)```", re.S)
UNTRIED = re.compile(r"(?<!\] -->\n)^```(?:cpp|java|python|sql)$", re.M)
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)]*))?\)")
NAMED = re.compile(r"`(\w+Test(?:Table)?\.\w+|\w+Table\.\w+)`")
MEMBER = re.compile(r"`(?:zkrecipes::)?(\w+)::(\w+)[^`]*`")
CALL = re.compile(r"`([a-z]+_[a-z_]+)\(\)`")
PATH = re.compile(r"`((?:src|recipes|include|tests|scripts|formal|docs|cmake|examples|monitoring)/[\w./*-]+)`")
COLUMNS = 100
ONE_WORD = re.compile(r"\s*(?:[-*>] |\d+\. )?(?:!?\[[^\]]*\]\([^)]*\)|\S+)[.,;:]?")
TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.M)


def region(path, name):
    match = path.is_file() and re.search(rf"(?://|#|--) \[{name}\]\n(.*?)\n *(?://|#|--) \[/{name}\]", path.read_text(), re.S)
    return textwrap.dedent(match.group(1)).strip("\n") if match else None


def existing_tests(root):
    tests = set()
    for source in (root / "tests").rglob("*.cpp"):
        tests |= {f"{suite}.{name}" for suite, name in TEST.findall(source.read_text())}
    return tests


LOSING = re.compile(r"(?<!\w)(?:lose|lose_all|report_lost)\(")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def arguments(source, start):
    """The text from `start`, just behind a parenthesis, to the one that closes it."""
    depth, end = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(source[end], 0)
        end += 1
    return source[start : end - 1]


def reasons_of_losses(sources):
    """The texts that are given to lose() and its like, and the calls in which none is seen."""
    named = dict(re.findall(r'char\* (k\w+) = "([^"]*)";', "\n".join(sources.values())))
    reasons, unclear = set(), []
    for path, text in sources.items():
        for call in LOSING.finditer(text):
            given = arguments(text, call.end())
            if re.search(r"const char\* why$", given) or re.search(r", why$", given):
                continue  # the function itself, and what passes on what it was given
            found = TEXT.findall(given) + [named[name] for name in re.findall(r"\bk[A-Z]\w+", given) if name in named]
            reasons |= set(found)
            if len(found) != 1 + given.count(" ? "):
                unclear.append(f"{path}: no text is seen in {call.group()}{given})")
    return reasons, unclear


def losses(root):
    sources = {path.relative_to(root): path.read_text() for path in sorted((root / "src/session").rglob("*.?pp"))}
    reasons, problems = reasons_of_losses(sources)
    section = re.search(r"\n## Why a hold was lost\n(.*?)\n## ", (root / "docs/operations.md").read_text(), re.S)
    listed = set(re.findall(r"^\| `([^`]*)` \|", section.group(1), re.M)) if section else set()
    problems += [f"docs/operations.md does not list the reason `{reason}`" for reason in sorted(reasons - listed)]
    problems += [f"docs/operations.md lists `{reason}`, which nothing prints" for reason in sorted(listed - reasons)]
    return len(reasons), problems


def log_lines(root):
    """How many parts of log lines are listed, and those that nothing prints. Single words prove nothing and are left out."""
    texts = "\n".join(re.sub(r'"\s*\n\s*"', "", path.read_text()) for folder in ("src", "recipes")
                      for path in (root / folder).rglob("*.cpp"))
    section = re.search(r"\n## Log lines\n(.*?)\n## ", (root / "docs/operations.md").read_text(), re.S)
    cells = re.findall(r"^\| (`.*?) \|", section.group(1), re.M) if section else []
    parts = [part.strip(" :;(),") for cell in cells for line in re.findall(r"`([^`]*)`", cell)
             for part in re.split(r"…|\bN\b|0x|/path|\(token", line)]
    parts = [part for part in parts if " " in part]
    return len(parts), [f"docs/operations.md lists the log line `{part}`, which nothing prints" for part in parts
                        if part not in texts]


def words_of(root):
    """The words of the library and of what can be tried with it."""
    folders = [root / folder for folder in ("include", "src", "recipes", "testenv", "monitoring", "examples", "tests")]
    return {word for folder in folders for path in folder.rglob("*.?pp") for word in re.findall(r"\w+", path.read_text())}


def headings(text):
    """The anchors of a document, as GitHub makes them."""
    lines = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def long_lines(text):
    """The numbers of the lines of prose with more than COLUMNS columns."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if fence or fenced or len(line) <= COLUMNS or line.startswith(("|", "    ", "<!--")) or ONE_WORD.fullmatch(line):
            continue
        yield number


def problems_of(root):
    """What is wrong, and the counts of what was checked."""
    tests, words, problems = existing_tests(root), words_of(root), []
    counts = dict.fromkeys(("block with a source", "link", "named test", "name", "reason of a loss", "log line"), 0)
    documents = {path for pattern in ("*.md", "examples/*.md", "formal/*.md", "docs/**/*.md") for path in root.glob(pattern)}
    for document in sorted(documents):
        name, text = document.relative_to(root), document.read_text()
        for source, part, block in SOURCE.findall(text):
            counts["block with a source"] += 1
            if region(root / source, part) != block.strip("\n"):
                problems.append(f"{name}: the block differs from {source} [{part}]")
        if UNTRIED.search(text):
            problems.append(f"{name}: a block of code names no source: put it into tests/package/snippets.cpp, or the like")
        for target, anchor in LINK.findall(text):
            counts["link"] += 1
            path = document.parent / target if target else document
            if not path.exists():
                problems.append(f"{name}: the link {target} leads nowhere")
            elif anchor and path.suffix == ".md" and anchor not in headings(path.read_text()):
                problems.append(f"{name}: {path.name} has no heading #{anchor}")
        for path in PATH.findall(text):
            if name.name != "CHANGELOG.md" and not any(root.glob(path.rstrip("/"))):
                problems.append(f"{name}: there is no {path}")
        for test in NAMED.findall(text):
            counts["named test"] += 1
            if test not in tests:
                problems.append(f"{name}: there is no test {test}")
        for word in [*(word for both in MEMBER.findall(text) for word in both), *CALL.findall(text)]:
            counts["name"] += 1
            if word not in words and name.name != "CHANGELOG.md":
                problems.append(f"{name}: nothing in the sources is called {word}")
        problems += [f"{name}:{number}: more than {COLUMNS} columns" for number in long_lines(text)]
    counts["reason of a loss"], wrong = losses(root)
    counts["log line"], unknown = log_lines(root)
    problems += wrong + unknown + [f"no {what} found: has something moved?" for what, count in counts.items() if not count]
    return problems, counts


def self_test():
    good = """# A page

<!-- a.cpp [part] -->
```cpp
int f();
```

A [link](other.md#its-second-part), `ATest.Works`, `Works::TEST`.
"""
    longer = "word " * 20 + "word"
    untried = "a block of code names no source: put it into tests/package/snippets.cpp, or the like"
    cases = [
        ("", None),
        (f"| {longer} | |", None),
        (f"    {longer}", None),
        (f"```\n{longer}\n```", None),
        ("[" + longer + "](other.md)", None),
        ("![" + longer + "](other.md)", None),
        (longer, "docs/a.md:10: more than 100 columns"),
        (f"```\ncode\n```\n{longer}", "docs/a.md:13: more than 100 columns"),
        (f"- {longer}", "docs/a.md:10: more than 100 columns"),
        ("[x](none.md)", "docs/a.md: the link none.md leads nowhere"),
        ("[x](other.md#third)", "docs/a.md: other.md has no heading #third"),
        ("[x](#third)", "docs/a.md: a.md has no heading #third"),
        ("[x](#a-page)", None),
        ("`ATest.Missing`", "docs/a.md: there is no test ATest.Missing"),
        ("`src/gone.*`, `tests/a.cpp`", "docs/a.md: there is no src/gone.*"),
        ("`Missing::works`", "docs/a.md: nothing in the sources is called Missing"),
        ("`works_no_more()`", "docs/a.md: nothing in the sources is called works_no_more"),
        ("<!-- a.cpp [part] -->\n```cpp\nint g();\n```", "docs/a.md: the block differs from a.cpp [part]"),
        ("```cpp\nint f();\n```", f"docs/a.md: {untried}"),
        ("```python\nf()\n```", f"docs/a.md: {untried}"),
        ("```sh\nf\n```", None),
        ("<!-- b.py [part] -->\n```python\nf()\n```", None),
        ("<!-- b.py [part] -->\n```python\ng()\n```", "docs/a.md: the block differs from b.py [part]"),
        ("<!-- a.cpp [none] -->\n```cpp\nint f();\n```", "docs/a.md: the block differs from a.cpp [none]"),
    ]
    session = [
        ('lose(hold, "gone");', None),
        ('lose(hold, "other");', "docs/operations.md does not list the reason `other`"),
        ("lose(hold, text);", "src/session/a.cpp: no text is seen in lose(hold, text)"),
        ('lose(hold, yes ? "gone" : "new");', "docs/operations.md does not list the reason `new`"),
        ("", "docs/operations.md lists `gone`, which nothing prints"),
    ]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("docs", "src/session", "tests"):
            (root / name).mkdir(parents=True)
        (root / "a.cpp").write_text("// [part]\nint f();\n// [/part]\n")
        (root / "b.py").write_text("# [part]\nf()\n# [/part]\n")
        (root / "tests/a.cpp").write_text("TEST(ATest, Works) {\n")
        (root / "docs/other.md").write_text("# Other\n\n## Its `second` part\n")
        (root / "docs/operations.md").write_text("\n## Log lines\n\n| `gone … for long` | |\n\n## Why a hold was lost\n\n| `gone` | | |\n\n## Next\n")
        (root / "src/b.cpp").write_text('log("gone {} for "\n    "long");\n')

        def expect(expected):
            found, _ = problems_of(root)
            if (expected not in found) if expected else found:
                failures.append(f"expected: {expected}\nfound: {found}")

        (root / "src/session/a.cpp").write_text(session[0][0])
        for text, expected in cases:
            (root / "docs/a.md").write_text(f"{good}\n{text}\n")
            expect(expected)
        (root / "docs/a.md").write_text(good)
        for text, expected in session:
            (root / "src/session/a.cpp").write_text(text)
            expect(expected)
        (root / "src/b.cpp").write_text('log("gone for good");\n')
        expect("docs/operations.md lists the log line `for long`, which nothing prints")
        (root / "docs/a.md").unlink()
        expect("no link found: has something moved?")
    print("\n".join([*failures, f"{len(cases) + len(session) + 2} cases, {len(failures)} failures"]))
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    problems, counts = problems_of(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) if problems else ", ".join(f"{what}: {count}" for what, count in counts.items()))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
