"""Checks the pages of a built site: links, anchors, pictures, and that nothing comes from another host."""
import html.parser
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, content):
        super().__init__()
        self.anchors, self.links, self.loads, self.unnamed = set(), [], [], []
        self.feed(content)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href") is not None:
            self.links.append(given["href"])
        elif tag == "link" and given.get("href") and given.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(given["href"])
        elif given.get("src") is not None:
            self.loads.append(given["src"])
        if tag == "img" and not given.get("alt"):
            self.unnamed.append(given.get("src"))


def pages_of(site):
    return {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}


def problems_of(site):
    pages, problems = pages_of(site), []
    for path, page in pages.items():
        name = path.relative_to(site)
        for link in page.links + page.loads:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    problems.append(f"{name}: {link} comes from another host")
                continue
            if name.name == "404.html":
                continue  # its links are absolute, for a server
            there = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if there.is_dir():
                there /= "index.html"
            if not there.is_file():
                problems.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and there in pages and urllib.parse.unquote(parts.fragment) not in pages[there].anchors:
                problems.append(f"{name}: {link} has no such heading")
        problems += [f"{name}: the picture {source} has no text that describes it" for source in page.unnamed]
    for style in site.rglob("*.css"):
        if "url(http" in style.read_text(errors="replace"):
            problems.append(f"{style.relative_to(site)}: loads something from another host")
    return problems if pages else ["the site has no page"]


def summary(site):
    pages = pages_of(site)
    return f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, all of them good"
