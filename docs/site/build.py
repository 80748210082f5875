#!/usr/bin/env python3
"""Builds the documentation site: pages from the documents, source files that they link to, and the reference of the headers.

    build.py ROOT WORK SITE     WORK: a scratch directory; SITE: where the pages go; both are emptied first

The documents stay as they are in the tree. Here, links are rewritten to where things are in the site, and lists are indented
as mkdocs wants them. Prints what is broken, and exits with 1: a link or an anchor that leads nowhere, a page that no menu
shows, something that a browser would fetch from another host, a public name without a comment.
"""
import json
import logging
import pathlib
import posixpath
import re
import shutil
import sys

from mkdocs.commands.build import build as mkdocs_build
from mkdocs.config import load_config

import check
import reference
import text

# Documents that are not in docs/, and where they are in the site.
ELSEWHERE = {
    "README.md": "index.md",
    "docs/index.md": "pages.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples.md",
    "formal/README.md": "formal.md",
}
# The menu. A page of docs/ that is not named here is not lost: it comes into the section of its folder, or into Guides.
MENU = {
    "Start": ["index.md", "pages.md", "examples.md"],
    "Do you need a lock?": ["do_you_need_a_lock.md"],
    "Guides": ["guarantees.md", "session.md", "async.md", "interop.md", "unit_testing.md", "testenv.md", "tracing.md"],
    "Recipes": [f"recipes/{name}.md" for name in (
        "exclusive_mutex", "read_write_lock", "multi_lock", "semaphore", "semaphore_mutex", "lock_registry",
        "leader_election", "persistent_node", "group_member", "barrier", "atomic_counter", "shared_value", "transaction",
        "sequencer")],
    "zklock": ["zklock.md"],
    "Operations": ["operations.md", "capacity.md", "metrics.md", "packages.md", "encryption.md", "security.md"],
    "Coming from": ["peers.md"] + [f"coming_from/{name}.md" for name in (
        "curator", "kazoo", "etcd", "consul", "redis", "hazelcast", "database")],
    "Reference": [],
    "Design": ["design/README.md", "contributing.md", "testing.md", "testing-lease.md", "testing-chaos.md", "hazards.md",
               "mutations.md", "benchmark.md", "formal.md", "changelog.md"],
}
TITLES = {"index.md": "Start in five minutes", "pages.md": "All pages", "coming_from/database.md": "Databases and blobs"}
FOLDERS = {"recipes": "Recipes", "coming_from": "Coming from", "design": "Design", "reference": "Reference"}
LINK = re.compile(r"(!?\[(?:[^\]\\]|\\.)*\]\()(?!https?://|mailto:|#)([^)#\s]+)((?:#[^)\s]*)?\))")
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".py": "python", ".sh": "bash", ".java": "java", ".yml": "yaml", ".json": "json",
             ".txt": "cmake", ".cmake": "cmake", ".css": "css", ".sql": "sql"}


class Stage:
    """The sources of the site: pages by their place in the site."""

    def __init__(self, root, work):
        self.root, self.pages = root, work / "pages"
        self.place, self.problems, self.files = {}, [], []  # place: path in the project -> path in the site
        for path in sorted(root.glob("docs/**/*.md")):
            self.place[path.relative_to(root).as_posix()] = path.relative_to(root / "docs").as_posix()
        self.place |= {name: place for name, place in ELSEWHERE.items() if (root / name).is_file()}

    def write(self, place, content):
        path = self.pages / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def all(self):
        for name, place in list(self.place.items()):
            content = (self.root / name).read_text()
            wide = "---\nhide:\n  - toc\n---\n\n" if "<!-- beside -->" in content else ""
            self.write(place, wide + text.for_mkdocs(self.with_links(name, place, content)))
        while self.files:  # showing a directory may show more files
            self.show(self.files.pop())

    def with_links(self, name, place, content):
        def rewrite(match):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2]))
            there = self.find(target)
            if there is None:
                self.problems.append(f"{name}: the link {match[2]} leads nowhere")
                return match[0]
            return match[1] + posixpath.relpath(there, posixpath.dirname(place) or ".") + match[3]

        pieces = re.split(r"(^ *```.*?^ *```)", content, flags=re.S | re.M)
        return "".join(piece if piece.lstrip().startswith("```") else LINK.sub(rewrite, piece) for piece in pieces)

    def find(self, target):
        """The place of what a document links to; puts a source file into the site if this is the first link to it."""
        path = self.root / target
        if target in self.place:
            return self.place[target]
        if path.is_dir():
            if f"{target}/README.md" in self.place:
                return self.place[f"{target}/README.md"]
            self.place[target] = f"files/{target}/index.md".replace("/./", "/")
        elif not path.is_file():
            return None
        elif path.suffix in (".svg", ".png"):
            self.place[target] = posixpath.relpath(target, "docs") if target.startswith("docs/") else f"files/{target}"
            copy = self.pages / self.place[target]
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
            return self.place[target]
        else:
            self.place[target] = re.sub(r"(^|/)\.", r"\1dot.", f"files/{target}.md")  # mkdocs leaves out hidden files
        self.files.append(target)
        return self.place[target]

    def show(self, target):
        path, place = self.root / target, self.place[target]
        head = f"# {target}\n\n"
        if path.is_dir():
            names = sorted(entry.name + "/" * entry.is_dir() for entry in path.iterdir() if not entry.name.startswith("."))
            self.write(place, f"{head}This directory of the project contains:\n\n" + "".join(f"- {name}\n" for name in names))
            return
        content = path.read_text(errors="replace").rstrip("\n")
        first = content.split("\n", 1)[0]
        language = LANGUAGES.get(path.suffix) or ("bash" if first.endswith("sh") else "python" if "python" in first else "text")
        fence = "~" * 6
        self.write(place, f"{head}This file of the project:\n\n{fence}{language}\n{content}\n{fence}\n")

    def title(self, place):
        return text.title_of((self.pages / place).read_text())


def menu_of(stage, reference_pages):
    shown = {section: [page for page in pages if (stage.pages / page).is_file()] for section, pages in MENU.items()}
    shown["Reference"] = reference_pages
    named = {page for pages in shown.values() for page in pages}
    for page in sorted(path.relative_to(stage.pages).as_posix() for path in stage.pages.rglob("*.md")):
        folder = page.split("/")[0]
        if page not in named and folder != "files":
            shown[FOLDERS.get(folder, "Guides")].append(page)
    menu = []
    for section, pages in shown.items():
        entries = [{TITLES.get(page) or stage.title(page).removeprefix(f"{section} ").removeprefix("zkrecipes/"): page}
                   for page in pages]
        if len(entries) == 1:
            menu.append({section: pages[0]})
        elif entries:
            menu.append({section: entries})
    return menu


def build(root, work, site):
    for folder in (work, site):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    stage = Stage(root, work)
    stage.all()
    names = reference.pages_of(root, work / "reference")
    for place, content in names.pages.items():
        stage.write(place, content)
    for extra in ("site.css",):
        shutil.copy(root / "docs/site" / extra, stage.pages / extra)
    warnings = run_mkdocs(root, stage, site, list(names.pages))
    leave_files_out_of_search(site)
    return stage.problems + names.problems + warnings + check.problems_of(site)


class Warnings(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def run_mkdocs(root, stage, site, reference_pages):
    """Writes the site. The answer: what mkdocs warns of."""
    warnings = Warnings()
    logging.getLogger("mkdocs").addHandler(warnings)
    with open(root / "docs/site/mkdocs.yml", "rb") as settings:
        config = load_config(config_file=settings, docs_dir=str(stage.pages), site_dir=str(site),
                             nav=menu_of(stage, reference_pages))
    config["mdx_configs"].setdefault("toc", {})["slugify"] = text.slug
    mkdocs_build(config)
    return warnings.texts


def leave_files_out_of_search(site):
    """Readers look for documents and names; the source files that documents link to would hide these."""
    path = site / "search/search_index.json"
    index = json.loads(path.read_text())
    index["docs"] = [entry for entry in index["docs"] if not entry["location"].startswith("files/")]
    path.write_text(json.dumps(index, separators=(",", ":"), ensure_ascii=False))


def main():
    root, work, site = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    problems = build(root, work, site)
    print("\n".join(problems) if problems else check.summary(site))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
