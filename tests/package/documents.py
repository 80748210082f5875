#!/usr/bin/env python3
"""Checks what README.md, the other papers and docs/ say against the project.

    documents.py ROOT
      - a C++ block that names its source is what stands there, between the lines // [name] and // [/name]; in the document,
        the line before the block is   <!-- examples/x.cpp [name] -->
      - relative links lead to files
      - tests named in docs/testing.md as `Suite.Name` exist
      - docs/operations.md lists the reasons for which src/session says that a hold was lost, and no others
"""
import pathlib
import re
import sys
import textwrap

SOURCE = re.compile(r"<!-- (\S+) \[(\w+)\] -->\n```cpp\n(.*?)```", re.S)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
TEST = re.compile(r"^\s*(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.M)


def region(path, name):
    match = path.is_file() and re.search(rf"// \[{name}\]\n(.*?)\n *// \[/{name}\]", path.read_text(), re.S)
    return textwrap.dedent(match.group(1)).strip("\n") if match else None


def existing_tests(root):
    tests = set()
    for source in (root / "tests").rglob("*.cpp"):
        tests |= {f"{suite}.{name}" for suite, name in TEST.findall(source.read_text())}
    return tests


LOSING = re.compile(r"(?<!\w)(?:lose|lose_all|report_lost)\(")
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def arguments(source, start):
    """What stands between the parenthesis that ends at `start` and the one that closes it."""
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
    sources = {path.relative_to(root): path.read_text() for path in sorted((root / "src/session").glob("*.?pp"))}
    reasons, problems = reasons_of_losses(sources)
    section = re.search(r"\n## Why a hold was lost\n(.*?)\n## ", (root / "docs/operations.md").read_text(), re.S)
    listed = set(re.findall(r"^\| `([^`]*)` \|", section.group(1), re.M)) if section else set()
    problems += [f"docs/operations.md does not list the reason `{reason}`" for reason in sorted(reasons - listed)]
    problems += [f"docs/operations.md lists `{reason}`, which nothing prints" for reason in sorted(listed - reasons)]
    return len(reasons), problems


def main():
    root = pathlib.Path(sys.argv[1])
    blocks, links, problems = 0, 0, []
    for document in [*sorted(root.glob("*.md")), *sorted(root.glob("examples/*.md")), *sorted(root.glob("docs/**/*.md"))]:
        name, text = document.relative_to(root), document.read_text()
        for source, part, block in SOURCE.findall(text):
            blocks += 1
            if region(root / source, part) != block.strip("\n"):
                problems.append(f"{name}: the block is not what stands in {source} [{part}]")
        for target in LINK.findall(text):
            links += 1
            if not (document.parent / target).exists():
                problems.append(f"{name}: the link {target} leads nowhere")
    tests = existing_tests(root)
    named = re.findall(r"`(\w+Test(?:Table)?\.\w+|\w+Table\.\w+)`", (root / "docs/testing.md").read_text())
    problems += [f"docs/testing.md: there is no test {test}" for test in named if test not in tests]
    reasons, wrong = losses(root)
    problems += wrong
    for what, found in (("block with a source", blocks), ("link", links), ("test", tests), ("reason of a loss", reasons)):
        if not found:
            problems.append(f"no {what} found: has something moved?")
    print("\n".join(problems) if problems else f"{blocks} blocks, {links} links, {len(named)} named tests, {reasons} reasons, all right")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
