"""Random bugs: conditions that are negated and calls that are left out, at places drawn from the sources.

find() reads the C++ as text, just well enough for this project's style: what it takes for a place and is none does not
compile, and mutations.py draws another one. A bug is two insertions around a piece of text, without a line break, so
that the lines of a generated file are those of the source, plus one for the include. Bugs may lie within each other.

Left alone: declarations, constexpr functions, `if constexpr`, static_assert, macros, calls that only write to a log or
reserve memory, and files whose code runs only with a C client that knows TLS or SASL: scripts/tls tests those.
"""
import json
import pathlib
import random
import re

FOLDERS = ("src/base", "src/client", "src/session", "src/core", "recipes")  # of the library; not zklock, and not the test double
ONLY_WITH_TLS = ("src/client/zk_handle_secure.cpp", "src/client/zk_secure.cpp", "src/client/tls/zk_tls_check.cpp",
                 "src/client/tls/zk_tls_trust.cpp")
INCLUDE = '#include "mutations/switches.hpp"\n'
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
                     r"|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}
CONTROL = ("if", "while", "for", "switch", "catch")
QUALIFIERS = re.compile(r"(?:\b(?:const|noexcept|override|final|mutable|try)\b|(?<!&)&&?|->\s*[\w:<>,&*\s]+?)\s*$")
CALL = re.compile(r"\s*((?:(?:[\w~]|::|->|\.|\(\)|\[\w*\]|<[\w:, ]*>)+))\(")
NO_CALL = re.compile(r"(?:return|throw|if|while|for|switch|catch|else|do|case|new|delete|sizeof|alignof|decltype|noexcept|"
                     r"static_assert|static_cast|assert|void|operator|co_\w+)\b")
CONSTANT = re.compile(r"\b(?:constexpr|static_assert)\b")
COMPARISON = re.compile(r"(?:^\s*!|\s(?:[=!<>]=|[<>])\s)")
HARMLESS = re.compile(r"(?:\blog_thrown|\b(?:port_\.)?note|\blog(?:ger)?_?(?:\(\))?(?:->|\.)\w+|(?:\.|->)(?:reserve|shrink_to_fit))$")


class Place:
    """A bug: `before` of the file's text from `begin` on gets `prefix` and `suffix`, where BUG is its switch."""

    def __init__(self, path, text, begin, end, kind, prefix, suffix):
        self.path, self.begin, self.end, self.kind, self.prefix, self.suffix = path, begin, end, kind, prefix, suffix
        self.line, self.before, self.name = text.count("\n", 0, begin) + 1, text[begin:end], ""

    def __str__(self):
        text = " ".join(self.before.split())
        return f"{self.path}:{self.line} {self.kind}: {text if len(text) <= 70 else text[:67] + '...'}"


def without_comments(text):
    """Comments and preprocessor lines become blanks, literals one word; everything stays where it is."""
    return NO_CODE.sub(lambda found: re.sub(r"[^\n]", " " if found[0].lstrip()[0] in "/#" else "_", found[0]), text)


def partners(code):
    """Where each bracket has its counterpart."""
    result, open_ = {}, []
    for found in re.finditer(r"[()\[\]{}]", code):
        at = found.start()
        if found[0] in OPENING:
            open_.append(at)
        elif open_ and code[open_[-1]] == CLOSING[found[0]]:
            result[at] = open_.pop()
            result[result[at]] = at
    return result


class Scopes:
    """What each pair of braces is: 'bool' or 'code' for the body of a function, 'block', 'type', 'constant', 'value'."""

    def __init__(self, code, partner):
        self.pairs = sorted((at, partner[at], self.kind_of(code, partner, at))
                            for at in partner if code[at] == "{")

    @staticmethod
    def kind_of(code, partner, brace):
        head = code[:brace].rstrip()
        returns = ""
        while found := QUALIFIERS.search(head[-200:]):
            if found[0].startswith("->"):
                returns = found[0][2:].strip()
                if not re.search(r"\)\s*(?:(?:const|mutable|noexcept)\s*)*$", head[-200:][:found.start()]):
                    break  # a member of something
            head = head[:len(head) - len(found[0])].rstrip()
        if re.search(r"\b(?:else|do|try)$", head) or head[-1:] in ("", ";", "{", "}", ":"):
            return "block" if head else "type"
        begin = max(head.rfind(each) for each in ";{}") + 1
        if re.search(r"\b(?:class|struct|union|enum|namespace)\b(?!.*[()=])", head[begin:], re.S):
            return "type"
        if head.endswith("]"):
            return "code"
        if not head.endswith(")") or len(head) - 1 not in partner:
            return "value"
        name = head[:partner[len(head) - 1]].rstrip()
        if name.endswith("]"):
            return "bool" if returns == "bool" else "code"
        if re.search(r"\b(?:%s)$" % "|".join(CONTROL), name):
            return "block"
        if re.search(r"\bif\s+constexpr$", name):
            return "block"
        begin = max(name.rfind(each) for each in ";{}") + 1
        if re.search(r"\bconst(?:expr|eval)\b", name[begin:]):
            return "constant"
        return "bool" if returns == "bool" or re.search(r"\bbool\s+(?:[\w:]+|[\w:]*operator\W+)$", name) else "code"

    def of(self, at):
        """The kinds of the braces around a place, from within."""
        return [kind for begin, end, kind in reversed(self.pairs) if begin < at < end]


def in_code(kinds):
    inner = [kind for kind in kinds if kind != "value"]
    return "constant" not in kinds and bool(inner) and inner[0] in ("bool", "code", "block")


def operand(code, partner, at, step):
    """From an operator to the end of its operand on one side."""
    while 0 <= at < len(code):
        char = code[at]
        if char in (OPENING if step > 0 else CLOSING):
            if at not in partner:
                return None
            at = partner[at] + step
            continue
        if char in (CLOSING if step > 0 else OPENING) or char in ",;?":
            break
        if char == ":" and ":" not in (code[at - 1], code[at + 1]):
            break
        if code[at:at + 2] in ("&&", "||") and code[at - 1].isspace():
            break
        if char in "&|" and code[at - 1:at + 1] in ("&&", "||") and code[at - 2].isspace():
            break
        if char == "=" and code[at - 1] not in "=!<>" and code[at + 1] != "=":
            break
        if step < 0 and re.search(r"\b(?:return|else)$", code[max(0, at - 6):at + 1]):
            break
        at += step
    return at


def trimmed(code, begin, end):
    piece = code[begin:end]
    return begin + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))


def find_in(path, text):
    code = without_comments(text)
    partner = partners(code)
    scopes, found = Scopes(code, partner), {}

    def add(begin, end, kind, prefix, suffix):
        begin, end = trimmed(code, begin, end)
        statement = code[max(code.rfind(each, 0, begin) for each in ";{}") + 1:begin]
        if begin < end and in_code(scopes.of(begin)) and not CONSTANT.search(statement):
            found.setdefault((begin, end), Place(path, text, begin, end, kind, prefix, suffix))

    def negate(begin, end, kind):
        add(begin, end, kind, "(BUG != static_cast<bool>(", "))")

    for each in re.finditer(r"\b(if|while) (?=\()", code):
        begin, end = each.end() + 1, partner.get(each.end())
        if end is None:
            continue
        inner = code[begin:end]
        if ";" in inner:
            begin, inner = begin + inner.index(";") + 1, inner[inner.index(";") + 1:]
        if declared := re.match(r"\s*(?:const )?[\w:<>]+[ *&]+(\w+) = ", inner):
            if each[1] == "if":
                add(begin, end, "condition", "", f"; BUG != static_cast<bool>({declared[1]})")
        else:
            negate(begin, end, "condition")
    for each in re.finditer(r"\bfor (?=\()", code):
        end = partner.get(each.end())
        parts = [at for at in range(each.end(), end or 0) if code[at] == ";" and in_parentheses(partner, code, each.end(), at)]
        if len(parts) == 2:
            negate(parts[0] + 1, parts[1], "condition")
    for each in re.finditer(r"\s\?\s", code):
        begin = operand(code, partner, each.start(), -1)
        while begin is not None and begin > 0 and code[begin - 1:begin + 1] in ("&&", "||"):
            begin = operand(code, partner, begin - 2, -1)
        if begin is not None:
            negate(begin + 1, each.start(), "condition")
    for each in re.finditer(r"\s(?:&&|\|\|)\s", code):
        begin, end = operand(code, partner, each.start(), -1), operand(code, partner, each.end(), 1)
        if begin is not None and end is not None:
            negate(begin + 1, each.start(), "operand")
            negate(each.end(), end, "operand")
    for each in re.finditer(r"\breturn\b(?= )", code):
        body = next((kind for kind in scopes.of(each.start()) if kind in ("bool", "code", "type")), "")
        end, outside = statement_end(code, partner, each.end())
        if body == "bool" or (body == "code" and COMPARISON.search(outside) and "?" not in outside):
            negate(each.end(), end, "result")
    for each in re.finditer(r"[;{})]|\b(?:else|do)\b", code):
        call = CALL.match(code, each.end())
        if not call or call.end() - 1 not in partner or NO_CALL.match(call[1]) or HARMLESS.search(call[1]):
            continue
        if each[0] == ")" and not re.search(r"\b(?:if|while|for) $", code[:partner.get(each.start(), 0)][-8:]):
            continue
        end = partner[call.end() - 1] + 1
        while more := CALL.match(code, end):
            if not more[1].startswith((".", "->")) or more.end() - 1 not in partner:
                break
            end = partner[more.end() - 1] + 1
        if code[end:end + 1] == ";":
            add(each.end(), end, "call", "(BUG ? void() : static_cast<void>(", "))")
    return list(found.values())


def statement_end(code, partner, at):
    """Where it ends, and its text outside of all brackets."""
    outside = ""
    while at < len(code) and code[at] != ";":
        outside += code[at]
        at = partner.get(at, at) + 1 if code[at] in OPENING else at + 1
    return at, outside


def in_parentheses(partner, code, opening, at):
    """Whether nothing opens between `opening` and `at` and stays open."""
    return not any(opening < begin < at < partner[begin] for begin in range(opening + 1, at)
                   if code[begin] in OPENING and begin in partner)


def find(root):
    """All places, by path and line."""
    places = []
    for folder in FOLDERS:
        for source in sorted((root / folder).rglob("*.[ch]pp")):
            if str(source.relative_to(root)) in ONLY_WITH_TLS:
                continue
            places += find_in(str(source.relative_to(root)), source.read_text())
    return sorted(places, key=lambda place: (place.path, place.begin, place.end, place.kind))


class Draw:
    """Places in an order that depends on the seed and the sources alone, one after the other."""

    def __init__(self, root, seed, within=()):
        """`within`: beginnings of paths; without them all of FOLDERS."""
        self.places = [place for place in find(root) if not within or place.path.startswith(tuple(within))]
        self.order = random.Random(seed).sample(range(len(self.places)), len(self.places))

    def take(self, count, lines=(), dropped=()):
        """The first `count` that are not dropped, and those on `lines`. Its number in the draw is a place's name."""
        chosen = []
        for number, at in enumerate(self.order, 1):
            place = self.places[at]
            place.name = f"random-{number}"
            drawn = count > 0 and place.name not in dropped
            count -= drawn
            if drawn or (place.name not in dropped and f"{place.path}:{place.line}" in lines):
                chosen.append(place)
        return chosen


def write(path, places):
    text = json.dumps([vars(place) for place in places], indent=1) + "\n"
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def read(path):
    """What write() has written, by file."""
    files = {}
    for fields in json.loads(pathlib.Path(path).read_text()):
        place = Place.__new__(Place)
        vars(place).update(fields)
        files.setdefault(place.path, []).append(place)
    return files


def mutate(text, places):
    """The text with these bugs, and what is wrong with them."""
    problems = [f"{place.name}: {place.path} has changed since it was drawn" for place in places
                if text[place.begin:place.end] != place.before]
    if problems:
        return text, problems
    insertions = []
    for place in places:
        switch = f'::zkrecipes::internal::Mutations::on("{place.name}")'
        size = place.end - place.begin
        # What ends at a place stands before what begins there; the larger one begins first and ends last.
        insertions.append((place.end, 0, size, place.suffix.replace("BUG", switch)))
        insertions.append((place.begin, 1, -size, place.prefix.replace("BUG", switch)))
    for at, _, _, inserted in sorted(insertions, reverse=True):
        text = text[:at] + inserted + text[at:]
    return INCLUDE + text, []
