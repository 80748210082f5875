#!/usr/bin/env python3
"""Checks what README.md, the other papers and docs/ say against the project.

    documents.py ROOT
      - a C++ block that names its source is what stands there, between the lines // [name] and // [/name]; in the document,
        the line before the block is   <!-- examples/x.cpp [name] -->
      - relative links lead to files
      - tests named in docs/testing.md as `Suite.Name` exist
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
    for what, found in (("block with a source", blocks), ("link", links), ("test", tests)):
        if not found:
            problems.append(f"no {what} found: has something moved?")
    print("\n".join(problems) if problems else f"{blocks} blocks, {links} links, {len(named)} named tests, all right")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
