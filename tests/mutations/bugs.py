"""Deliberate bugs: edits of the sources, each behind a name that is chosen at run time.

bugs/*.bugs, one file for each part of the library. An entry:

    == name
    wrong: what happens with it
    hazards: H1, H3            (of docs/hazards.md; –: none)
    test: Suite.Name           (fails with it, and passes without)
    by: hang                   (only where no expectation fails, since that is what goes wrong: hang, crash or exception)
    simulation: check in `workload`   (what fails first there; –: no run has failed)
    <<<< src/file.cpp
    the text as it is, which occurs once in that file
    ====
    the text with the bug; BUG is true when this bug is turned on
    >>>>

An entry `== both a+b` has no edits: it turns on two bugs of which one hides the other.
"""
import pathlib
import re

FOLDERS = ("src", "recipes")
INCLUDE = '#include "mutations/switches.hpp"\n'


class Bug:
    def __init__(self, name, section, where):
        self.name, self.section, self.where = name, section, where
        self.fields, self.edits = {}, []

    @property
    def both(self):
        return self.name.startswith("both ")

    @property
    def test(self):
        return self.fields["test"]

    @property
    def by(self):
        """How its test ends."""
        return self.fields.get("by", "failure")

    @property
    def hazards(self):
        return [] if self.fields["hazards"] == "–" else self.fields["hazards"].split(", ")


class Edit:
    def __init__(self, path, before, after):
        self.path, self.before, self.after = path, before, after

    def applied(self, name):
        return re.sub(r"\bBUG\b", f'(::zkrecipes::internal::Mutations::on("{name}"))', self.after)


def read(root):
    """All entries of bugs/, in the order of their files. Raises ValueError, with the line, for what is no entry."""
    bugs = []
    for path in sorted((pathlib.Path(root) / "tests/mutations/bugs").glob("*.bugs")):
        section, bug, part, texts = "", None, None, []
        for number, line in enumerate(path.read_text().split("\n"), 1):
            where = f"{path.name}:{number}"
            if part is not None:
                if line == ">>>>":
                    if part != "after":
                        raise ValueError(f"{where}: no ==== before >>>>")
                    bug.edits.append(Edit(target, "\n".join(texts[0]), "\n".join(texts[1])))
                    part = None
                elif line == "====":
                    part = "after"
                else:
                    texts[part == "after"].append(line)
            elif line.startswith("# "):
                section = line[2:]
            elif line.startswith("== "):
                bug = Bug(line[3:], section, where)
                bugs.append(bug)
            elif line.startswith("<<<< "):
                target, part, texts = line[5:], "before", ([], [])
            elif match := re.match(r"(wrong|hazards|test|by|simulation): (.+)$", line):
                bug.fields[match[1]] = match[2]
            elif line:
                raise ValueError(f"{where}: this is no line of an entry: {line}")
        if part is not None:
            raise ValueError(f"{path.name}: an edit of {bug.name} has no end")
    return bugs


def span(text, edit):
    """Where the edit changes the text: without the words that its two texts begin and end with alike."""
    a, b, start = edit.before, edit.after, text.index(edit.before)
    one, other = re.findall(r"\w+|\W", a), re.findall(r"\w+|\W", b)
    least = min(len(one), len(other))
    first = next((i for i in range(least) if one[i] != other[i]), least)
    last = next((i for i in range(least - first) if one[-1 - i] != other[-1 - i]), least - first)
    head, tail = sum(map(len, one[:first])), sum(map(len, one[len(one) - last:]))
    return start + head, start + len(a) - tail, slice(head, len(b) - tail)


def mutate(text, edits, path="the file"):
    """The text with all `edits`, pairs of a name and an edit; and what is wrong with them."""
    spans, problems = [], []
    for name, edit in edits:
        count = text.count(edit.before) if edit.before else 0
        if count != 1:
            problems.append(f"{name}: its text occurs {count} times in {path}, and must once: {edit.before.strip()[:80]}")
        elif not re.search(r"\bBUG\b", edit.after):
            problems.append(f"{name}: an edit of {path} does not say BUG")
        else:
            begin, end, middle = span(text, edit)
            spans.append((begin, end, name, Edit(path, "", edit.after[middle]).applied(name)))
    spans.sort(key=lambda each: each[:2])
    for one, other in zip(spans, spans[1:]):
        if other[0] < one[1]:
            problems.append(f"{one[2]} and {other[2]} change the same text of {path}")
    if problems:
        return text, problems
    for begin, end, _, replacement in reversed(spans):
        text = text[:begin] + replacement + text[end:]
    return INCLUDE + text, []


def problems_of(root, bugs):
    """What keeps the edits from being applied."""
    return [problem for path, edits in by_file(bugs).items() for problem in
            (mutate((root / path).read_text(), edits, path)[1] if (root / path).is_file()
             else [f"{edits[0][0]}: there is no file {path}"])]


def by_file(bugs):
    files = {}
    for bug in bugs:
        for edit in bug.edits:
            files.setdefault(edit.path, []).append((bug.name, edit))
    return files


def generate(root, out, edits, mutate=mutate):
    """Copies the library to `out`, with the edits of each file in it. Leaves files alone that are as they should be."""
    kept, problems = set(), []
    for folder in FOLDERS:
        for source in sorted((root / folder).rglob("*")):
            path = str(source.relative_to(root))
            if not source.is_file():
                continue
            text = source.read_text()
            if path in edits:
                text, wrong = mutate(text, edits[path], path)
                problems += wrong
            target = out / path
            kept.add(target)
            if not target.is_file() or target.read_text() != text:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
    for folder in FOLDERS:
        for target in (out / folder).rglob("*"):
            if target.is_file() and target not in kept:
                target.unlink()
    return problems
