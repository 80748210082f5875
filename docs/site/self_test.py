#!/usr/bin/env python3
"""Plants what the checks of the site must find, and tries the rewriting of documents. Needs neither mkdocs nor Doxygen, except
for the last part, which is skipped without Doxygen."""
import pathlib
import shutil
import sys
import tempfile

import check
import reference
import text

LISTS = (  # as in a document, and as mkdocs wants it
    ("Words:\n- one\n- two", "Words:\n\n-   one\n-   two"),
    ("- one\n  goes on\n  - inner\n- two", "-   one\n    goes on\n\n    - inner\n-   two".replace("    - inner", "    -   inner")),
    ("1. one\n\n   more\n2. two", "1.  one\n\n    more\n\n2.  two"),
    ("- one\n\n      code\n\nend", "-   one\n\n        code\n\nend"),
    ("- one\n  ```\n  - code\n  ```\n- two", "-   one\n    ```\n    - code\n    ```\n-   two"),
    ("```\n- no list\n```", "```\n- no list\n```"),
    ("<!-- a.cpp [b] -->\n```cpp\nf();\n```", "```cpp\nf();\n```"),
)
SLUGS = (("L1: what your process may believe", "l1-what-your-process-may-believe"), ("`fork()`", "fork"), ("A – b", "a--b"))
PAGES = (
    ('<a href="b.html#part">x</a>', None),
    ('<a href="c.html">x</a>', "a.html: c.html leads nowhere"),
    ('<a href="b.html#none">x</a>', "a.html: b.html#none has no such heading"),
    ('<a href="#none">x</a>', "a.html: #none has no such heading"),
    ('<a href="https://example.org/">x</a>', None),
    ('<script src="https://example.org/x.js"></script>', "a.html: https://example.org/x.js comes from another host"),
    ('<link rel="stylesheet" href="https://example.org/x.css">', "a.html: https://example.org/x.css comes from another host"),
    ('<img src="b.html">', "a.html: the picture b.html has no text that describes it"),
    ('<img src="b.html" alt="b">', None),
)
HEADER = """#pragma once
namespace zkrecipes {
/// A class.
class Thing {
public:
    Thing() = default;
    Thing(Thing&&) noexcept;
    ~Thing();
    int first();   ///< documented
    int second();  // not documented
    /// About both.
    int third();
    int fourth();

    int fifth();
    /// How.
    enum class Way { up, down };

    enum class Other { left };
private:
    int secret();
};
struct Bare {};
}
"""
UNDOCUMENTED = {"Thing::second", "Thing::fifth", "Thing::Other", "Thing.Other::left", "zkrecipes::Bare"}


def failures(folder):
    for given, expected in LISTS:
        if text.for_mkdocs(given) != expected:
            yield f"for_mkdocs({given!r}) is {text.for_mkdocs(given)!r}, not {expected!r}"
    for heading, expected in SLUGS:
        if text.slug(heading) != expected:
            yield f"slug({heading!r}) is {text.slug(heading)!r}, not {expected!r}"
    columns = text.for_mkdocs("<!-- beside -->\n\n**One**\n\n```\na\n```\n\n**Two**\n\nb\n\n<!-- end beside -->\n")
    if columns.count('<div markdown="1">') != 2:
        yield f"two columns are not seen: {columns}"
    site = folder / "site"
    site.mkdir()
    (site / "b.html").write_text('<h2 id="part">x</h2>')
    for body, expected in PAGES:
        (site / "a.html").write_text(body)
        found = check.problems_of(site)
        if found != ([expected] if expected else []):
            yield f"{body}: found {found}, not {expected}"
    if shutil.which("doxygen"):
        header = folder / "include/zkrecipes/thing.hpp"
        header.parent.mkdir(parents=True)
        header.write_text(HEADER)
        problems = reference.pages_of(folder, folder / "work").problems
        found = {problem.split(": ", 1)[1].removesuffix(" has no comment") for problem in problems}
        if found != UNDOCUMENTED:
            yield f"names without a comment: found {sorted(found)}, not {sorted(UNDOCUMENTED)}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        found = list(failures(pathlib.Path(folder)))
    print("\n".join([*found, f"{len(LISTS) + len(SLUGS) + len(PAGES) + 2} cases, {len(found)} failures"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
