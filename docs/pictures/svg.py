"""Boxes, arrows and words as SVG, for draw.py. Colours follow the reader's light or dark mode."""
import html

STYLE = """
.page{fill:#ffffff}.box{fill:#eef4f4;stroke:#00796b}.dir{fill:#f5f5f5;stroke:#757575}.hold{fill:#b2dfdb;stroke:#00695c}
.wait{fill:#fff3d6;stroke:#b27a00}.bad{fill:#fde0dc;stroke:#c62828}.fade{fill:#fafafa;stroke:#9e9e9e;stroke-dasharray:5 4}
text{fill:#1c2b2a;font:15px system-ui,"DejaVu Sans",sans-serif}.mono{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:13px}
.small{font-size:13px}.bold{font-weight:bold}.line{stroke:#37474f;fill:none}.soft{stroke:#9e9e9e;stroke-dasharray:5 4;fill:none}
.watch{stroke:#b27a00;stroke-dasharray:6 3;fill:none}.tip{fill:#37474f}.watchtip{fill:#b27a00}
@media (prefers-color-scheme:dark){.page{fill:#1b2328}.box{fill:#22383a;stroke:#4db6ac}.dir{fill:#2a3238;stroke:#9e9e9e}
.hold{fill:#00574d;stroke:#80cbc4}.wait{fill:#4d3b0f;stroke:#ffca5f}.bad{fill:#5a2320;stroke:#ef9a9a}.fade{fill:#232c31;stroke:#8a8a8a}
text{fill:#e6eeed}.line{stroke:#cfd8dc}.soft{stroke:#8a8a8a}.watch{stroke:#ffca5f}.tip{fill:#cfd8dc}.watchtip{fill:#ffca5f}}
""".strip()


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height, self.title, self.parts = width, height, title, []

    def box(self, x, y, width, height, lines, kind="box", style=""):
        """A box whose middle is at x, y."""
        self.parts.append(f'<rect class="{kind}" x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" '
                          f'height="{height:g}" rx="6"/>')
        lines = [lines] if isinstance(lines, str) else lines
        for number, line in enumerate(lines):
            self.text(x, y + 5 + 19 * (number - (len(lines) - 1) / 2), line, "middle", style)
        return self

    def area(self, x, y, width, height, kind="fade"):
        """A box by its corner, for things that are in it."""
        self.parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>')
        return self

    def text(self, x, y, words, anchor="start", style=""):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{style}">{html.escape(words)}</text>')
        return self

    def line(self, points, kind="line", tip=""):
        path = " ".join(f"{'ML'[at > 0]}{x:g} {y:g}" for at, (x, y) in enumerate(points))
        marker = f' marker-end="url(#{tip})"' if tip else ""
        self.parts.append(f'<path class="{kind}" d="{path}" stroke-width="1.6"{marker}/>')
        return self

    def arrow(self, *points):
        return self.line(points, "line", "tip")

    def watch(self, *points):
        return self.line(points, "watch", "watchtip")

    def svg(self):
        tips = "".join(f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
                       f'orient="auto-start-reverse"><path class="{name}" d="M0 0L8 4L0 8z"/></marker>'
                       for name in ("tip", "watchtip"))
        body = "\n".join(self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                f'role="img">\n<title>{html.escape(self.title)}</title>\n<style>{STYLE}</style>\n<defs>{tips}</defs>\n'
                f'<rect class="page" width="{self.width}" height="{self.height}" rx="8"/>\n{body}\n</svg>\n')
