"""The reference: a page for each public header, from what Doxygen reads in it.

A comment that stands directly before several declarations, without an empty line between them, is about all of them: they are
one entry. A public name without a comment, its own or that of its entry, is a problem. Copying, moving, comparing and destroying
need none.
"""
import re
import subprocess
import xml.etree.ElementTree as ElementTree

FOLDERS = ("include/zkrecipes", "monitoring/include/zkrecipes", "testenv/include/zkrecipes/testenv")
DOXYFILE = """
INPUT = {inputs}
OUTPUT_DIRECTORY = {work}
STRIP_FROM_PATH = {root}
RECURSIVE = YES
FILE_PATTERNS = *.hpp
EXCLUDE_SYMBOLS = *internal* *asio_calls* std spdlog prometheus
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = ZKRECIPES_API= ZKRECIPES_PROMETHEUS_API= ZKRECIPES_TESTING_API=
WARN_IF_UNDOCUMENTED = NO
QUIET = YES
"""
KINDS = ("function", "variable", "typedef", "enum", "define")
COMMENT = re.compile(r"\s*///(?!<)")


class Reference:
    def __init__(self, root):
        self.root, self.pages, self.problems = root, {}, []
        self.anchors, self.lines = {}, {}  # anchors: Doxygen's id -> (page, anchor)

    def source(self, name):
        if name not in self.lines:
            self.lines[name] = (self.root / name).read_text().split("\n")
        return self.lines[name]


def markdown(element, link):
    """What a description says, as Markdown. `link` makes the link to a name of the library."""
    out = element.text or ""
    for child in element:
        tag, inner = child.tag, None
        if tag == "programlisting":
            code = "\n".join("".join(highlight_text(line)) for line in child)
            inner = f"\n\n```cpp\n{code}\n```\n\n"
        elif tag == "verbatim":
            inner = f"\n\n```cpp\n{(child.text or '').strip(chr(10))}\n```\n\n"
        elif tag == "itemizedlist":
            items = (re.sub(r"\s*\n\s*", " ", markdown(item, link).strip()) for item in child)
            inner = "\n\n" + "".join(f"- {item}\n" for item in items) + "\n"
        elif tag == "para":
            inner = markdown(child, link).strip() + "\n\n"
        elif tag == "computeroutput":
            inner = f"`{''.join(child.itertext())}`"
        elif tag == "ref":
            inner = link(child.get("refid"), "".join(child.itertext()))
        elif tag == "emphasis":
            inner = f"*{markdown(child, link)}*"
        elif tag in ("ndash", "mdash"):
            inner = "–"
        elif tag == "sp":
            inner = " "
        else:
            inner = markdown(child, link)
        out += inner + (child.tail or "")
    return out


def highlight_text(element):
    yield element.text or ""
    for child in element:
        yield " " if child.tag == "sp" else ""
        yield from highlight_text(child)
        yield child.tail or ""


def described(element):
    return any("".join(element.find(part).itertext()).strip()
               for part in ("briefdescription", "detaileddescription") if element.find(part) is not None)


def place_of(element):
    location = element.find("location")
    return (location.get("file"), int(location.get("line"))) if location is not None else ("", 0)


class Member:
    def __init__(self, element, reference):
        self.element, self.name, self.kind = element, element.findtext("name"), element.get("kind")
        self.file, self.line = place_of(element)
        self.lines = reference.source(self.file)
        self.first = self.line  # that of the declaration, which may begin with a template line
        while self.first > 1 and not re.search(r"[;{}:>]\s*(//.*)?$|^\s*(//|#|$)", self.lines[self.first - 2]) or (
                self.first > 1 and re.match(r"\s*template <", self.lines[self.first - 2])):
            self.first -= 1

    def own_comment(self):
        return described(self.element)

    def follows(self, other):
        """Whether only this declaration's predecessor is between it and the comment."""
        if self.line == other.line:
            return True
        between = self.lines[other.line:self.first - 1]
        return all(line.strip() and not COMMENT.match(line) for line in between) and "///<" not in self.lines[other.line - 1]

    def special(self, owner):
        text = (self.element.findtext("argsstring") or "").replace(" ", "")
        same = re.escape(owner.split("<")[0])
        return self.name.startswith("~") or (
            self.name in (owner, "operator=") and re.match(rf"\((const)?{same}(<\w+>)?&&?\w*\)", text)) or (
                "=delete" in text or self.name in ("operator==", "operator<=>") or (self.name == owner and text == "()=default"))

    def declaration(self):
        """The declaration as the header has it, without the body and the comment behind it."""
        found, depth = [], 0
        for line in self.lines[self.first - 1:self.first + 30]:
            code = re.sub(r"\s*//.*$", "", line)
            depth += code.count("(") - code.count(")")
            found.append(code)
            if depth <= 0 and re.search(r"[;{]\s*$|\{.*\}\s*$|;", code) and not re.match(r"\s*template", code):
                break
        shift = len(found[0]) - len(found[0].lstrip())
        text = "\n".join(line[shift:] if not line[:shift].strip() else line.lstrip() for line in found)
        text = re.sub(r"ZKRECIPES_(\w+_)?API ", "", text)
        if self.kind == "function":
            text = re.sub(r"\)([^(){]*?)(\s*:\s.*)?\s*\{.*\Z", r")\1;", text, flags=re.S).rstrip()
        elif self.kind == "enum":
            text = re.sub(r"\s*\{.*", "", text, flags=re.S)
        return re.sub(r"\s+;$", ";", text)


def entries_of(members, owner, reference):
    """Members by the comments that they share: lists of members, each headed by one that has a comment."""
    entries = []
    for member in sorted(members, key=lambda each: (each.file, each.line)):
        if member.own_comment() or not entries:
            entries.append([member])
        elif member.follows(entries[-1][-1]):
            entries[-1].append(member)
        else:
            entries.append([member])
    for entry in entries:
        for member in entry:
            if not entry[0].own_comment() and not member.special(owner) and member.kind != "friend":
                reference.problems.append(f"{member.file}:{member.line}: {owner or 'zkrecipes'}::{member.name} has no comment")
    return entries


def for_doxygen(header):
    """A comment below a line with a comment behind its code is about what follows; Doxygen would take both for one."""
    def block(match):
        lines = re.sub(r"^ *///", "", match[2], flags=re.M).rstrip("\n")
        return f"{match[1]}/**{lines} */\n"
    return re.sub(r"(///<[^\n]*\n)((?: *///(?!<)[^\n]*\n)+)", block, header)


def load(root, work):
    work.mkdir(parents=True, exist_ok=True)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.hpp")):
            copy = work / "headers" / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(for_doxygen(path.read_text()))
    (work / "Doxyfile").write_text(DOXYFILE.format(inputs=work / "headers", work=work, root=work / "headers"))
    subprocess.run(["doxygen", "Doxyfile"], cwd=work, check=True, stderr=subprocess.DEVNULL)
    compounds = (ElementTree.parse(path).getroot().find("compounddef") for path in sorted((work / "xml").glob("*.xml"))
                 if path.name.startswith(("class", "struct", "namespacezkrecipes")))
    return [compound for compound in compounds if compound is not None]


def public_members(compound):
    for section in compound.iter("sectiondef"):
        for member in section.findall("memberdef"):
            if member.get("kind") in KINDS and member.get("prot") != "private" and not member.get("name", "").startswith("@"):
                yield member


def public_classes(compounds):
    """The classes that a user can name; none inside a private one."""
    private = {compound.findtext("compoundname") for compound in compounds
               if compound.get("kind") != "namespace" and compound.get("prot") != "public"}
    for compound in compounds:
        name = compound.findtext("compoundname")
        outer = {name.rsplit("::", depth)[0] for depth in range(name.count("::") + 1)}
        if compound.get("kind") != "namespace" and not outer & private and name.startswith("zkrecipes::"):
            yield compound


def page_of(file):
    return "reference/" + re.sub(r"^(monitoring/|testenv/)?include/zkrecipes/", "", file).replace(".hpp", ".md")


class Writer:
    """Writes the page of one header."""

    def __init__(self, file, reference):
        self.file, self.reference, self.parts = file, reference, []

    def link(self, refid, words):
        target = self.reference.anchors.get(refid)
        if target is None:
            return words
        page = target[0]
        here = page_of(self.file)
        up = "../" * (here.count("/") - 1) if page != here else ""
        return f"[{words}]({up + page[len('reference/'):] if page != here else ''}#{target[1]})"

    def text_of(self, element):
        parts = (element.find(part) for part in ("briefdescription", "detaileddescription"))
        text = "\n\n".join(markdown(part, self.link).strip() for part in parts if part is not None).strip()
        up = "../" * page_of(self.file).count("/")
        text = re.sub(r"(?<![\w/`])docs/([\w/]+)\.md", rf"[\1.md]({up}\1.md)", text)
        return re.sub(r"\n{3,}", "\n\n", text)

    def entry(self, members, level):
        names = dict.fromkeys(member.name for member in members if member.kind == "function")
        if names:
            self.parts.append(f"{'#' * level} {', '.join(names)}\n".replace("<", "&lt;"))
        code = "\n".join(member.declaration() for member in members)
        anchors = "".join(f'<a id="{self.reference.anchors[member.element.get("id")][1]}"></a>' for member in members
                          if member.element.get("id") in self.reference.anchors)
        self.parts.append(f"{anchors}\n\n```cpp\n{code}\n```\n")
        self.parts += [self.text_of(member.element) + "\n" for member in members if member.own_comment()]
        for member in members:
            for value in member.element.findall("enumvalue"):
                self.parts.append(f"- `{value.findtext('name')}`: {self.text_of(value)}")
            self.parts.append("")

    def heading(self, level, name, element):
        anchor = self.reference.anchors[element.get("id")][1]
        self.parts.append(f'<a id="{anchor}"></a>\n\n{"#" * level} {name}\n\n{self.text_of(element)}\n')


def pages_of(root, work):
    reference = Reference(root)
    compounds = load(root, work)
    things = {}  # file -> [(line, level, compound or None, entries)]
    for compound in list(public_classes(compounds)):
        file, line = place_of(compound)
        name = compound.findtext("compoundname")
        reference.anchors[compound.get("id")] = (page_of(file), name.split("::", 1)[1].replace("::", "."))
        if not described(compound):
            reference.problems.append(f"{file}:{line}: {name} has no comment")
        members = [Member(element, reference) for element in public_members(compound)]
        things.setdefault(file, []).append((line, compound, entries_of(members, name.split("::")[-1], reference)))
    for compound in compounds:
        if compound.get("kind") == "namespace":
            if described(compound):  # a header with nothing but includes and a comment
                things.setdefault(place_of(compound)[0], []).append((0, compound, []))
                reference.anchors[compound.get("id")] = (page_of(place_of(compound)[0]), "about")
            by_file = {}
            for element in public_members(compound):
                member = Member(element, reference)
                by_file.setdefault(member.file, []).append(member)
            for file, members in by_file.items():
                things.setdefault(file, []).extend(
                    (entry[0].line, None, [entry]) for entry in entries_of(members, "", reference))
    anchor_members(things, reference)
    for file in sorted(things, key=lambda name: (FOLDERS.index(next(f for f in reversed(FOLDERS) if name.startswith(f))), name)):
        reference.pages[page_of(file)] = page_text(file, things[file], reference)
    return reference


def anchor_members(things, reference):
    for file, found in things.items():
        used = set()
        for _, compound, entries in found:
            name = compound.findtext("compoundname").partition("::")[2] if compound is not None else ""
            owner = name.replace("::", ".") + "." if name else ""
            for member in (member for entry in entries for member in entry):
                values = member.element.findall("enumvalue")
                # A comment of the enumeration may be about all values, or each value has one.
                for value in values if any(map(described, values)) or not member.own_comment() else ():
                    if not described(value):
                        reference.problems.append(
                            f"{member.file}:{member.line}: {owner}{member.name}::{value.findtext('name')} has no comment")
                anchor, number = f"{owner}{member.name}", 1
                while anchor in used:
                    number += 1
                    anchor = f"{owner}{member.name}-{number}"
                used.add(anchor)
                reference.anchors[member.element.get("id")] = (page_of(file), anchor)


def page_text(file, found, reference):
    writer = Writer(file, reference)
    shown = re.sub(r"^.*include/", "", file)
    writer.parts.append(f"# {shown}\n\nReference of the header `<{shown}>`: everything that it declares for programs, in the "
                        "order of the header. The comments of a header are its reference; the [guides and recipes]"
                        f"({'../' * page_of(file).count('/')}pages.md) explain how to use it.\n")
    for line, compound, entries in sorted(found, key=lambda each: each[0]):
        if compound is not None and compound.get("kind") == "namespace":
            writer.parts.append(f'<a id="about"></a>\n\n{writer.text_of(compound)}\n')
        elif compound is not None:
            name = compound.findtext("compoundname").split("::", 1)[1]
            writer.heading(2, name, compound)
        elif entries[0][0].kind in ("enum", "typedef"):
            writer.parts.append(f"## {entries[0][0].name}\n")
        for entry in entries:
            writer.entry(entry, 2 if compound is None else 3)
    return "\n".join(writer.parts)
