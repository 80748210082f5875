#!/usr/bin/env python3
"""Every C++ block of the documents that says where it is from must be what stands there, between the lines // [name] and // [/name].

    snippets.py ROOT      checks README.md and docs/; in a document, the line before the block:  <!-- examples/x.cpp [name] -->
"""
import pathlib
import re
import sys
import textwrap

SOURCE = re.compile(r"<!-- (\S+) \[(\w+)\] -->\n```cpp\n(.*?)```", re.S)


def region(path, name):
    match = re.search(rf"// \[{name}\]\n(.*?)\n *// \[/{name}\]", path.read_text(), re.S)
    return textwrap.dedent(match.group(1)).strip("\n") if match else None


def main():
    root = pathlib.Path(sys.argv[1])
    found, problems = 0, []
    for document in [root / "README.md", *sorted(root.glob("docs/**/*.md"))]:
        for source, name, block in SOURCE.findall(document.read_text()):
            found += 1
            if region(root / source, name) != block.strip("\n"):
                problems.append(f"{document.relative_to(root)}: the block is not what stands in {source} [{name}]")
    if not found:
        problems.append("no block with a source found: the README should have one")
    print("\n".join(problems) if problems else f"{found} blocks, all as in their sources")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
