"""Markdown as GitHub reads it, made into Markdown as mkdocs reads it."""
import re

ITEM = re.compile(r"( *)([-*+]|\d+[.)])( +)(?=\S)")
FENCE = re.compile(r" *(```+|~~~+)")


def slug(heading, separator="-"):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"<[^>]*>", "", heading).strip().lower()).replace(" ", separator)


def title_of(page):
    heading = re.search(r"^# (.*)$", page, re.M)
    return re.sub(r"[`*]", "", heading.group(1)) if heading else "?"


def side_by_side(page):
    """Puts what is between <!-- beside --> and <!-- end beside --> into columns; each begins with a line in bold."""
    def columns(match):
        parts = re.split(r"^(?=\*\*[^*]+\*\*$)", match.group(1), flags=re.M)
        divisions = "".join(f'<div markdown="1">\n\n{part.strip()}\n\n</div>\n' for part in parts if part.strip())
        return f'<div class="beside" markdown="1">\n{divisions}</div>'
    return re.sub(r"<!-- beside -->\n(.*?)<!-- end beside -->", columns, page, flags=re.S)


def for_mkdocs(page):
    """Columns; pictures in boxes that scroll; nested lists indented by four columns; an empty line before each list."""
    page = side_by_side(re.sub(r"<!-- \S+ \[\w+\] -->\n", "", page))
    page = re.sub(r"^(!\[.*\]\(.*\.svg\))$", r'<div class="picture" markdown="1">\n\n\1\n\n</div>', page, flags=re.M)
    lines, stack, fence = [], [], None  # stack: the columns at which the text of the open items begins
    for line in re.sub(r"<!--.*?-->\n?", "", page, flags=re.S).split("\n"):
        blank = not line.strip()
        indent = len(line) - len(line.lstrip(" "))
        if fence is None and not blank:
            while stack and indent < stack[-1]:
                stack.pop()
        shift = (4 * len(stack) - stack[-1]) if stack else 0
        mark = FENCE.match(line)
        item = ITEM.match(line) if fence is None and not mark else None
        if fence is not None or mark:
            if mark and (fence is None or line.strip() == fence):
                fence = mark.group(1) if fence is None else None
            lines.append(line if blank else " " * shift + line)
        elif item and indent - (stack[-1] if stack else 0) < 4:
            # A list may follow a paragraph at once; mkdocs wants an empty line there.
            if lines and lines[-1].strip() and not ITEM.match(lines[-1]) and not in_list(lines, 4 * len(stack)):
                lines.append("")
            lines.append(" " * (4 * len(stack)) + item.group(2) + " " * 3 + line[item.end():]
                         if len(item.group(2)) == 1 else
                         " " * (4 * len(stack)) + item.group(2) + " " * max(1, 4 - len(item.group(2))) + line[item.end():])
            stack.append(item.end())
        else:
            lines.append(line if blank else " " * max(0, indent + shift) + line.lstrip(" "))
    return "\n".join(lines)


def in_list(lines, indent):
    """Whether the paragraph that the last lines are belongs to an item at this indent."""
    for line in reversed(lines):
        if not line.strip():
            return False
        item = ITEM.match(line)
        if item and len(item.group(1)) <= indent:
            return len(item.group(1)) == indent
    return False
