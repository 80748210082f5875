"""The tables of docs/peers.md are those of docs/peers/peers.csv. --write puts them there."""
import csv
import pathlib
import subprocess
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True  # nothing beside the sources

from capacity import BLOCK, markdown, shown  # noqa: E402

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "bench/peers/peers.py"
sys.path.insert(0, str(PROGRAM.parent))
from peers import COLUMNS, TITLES  # noqa: E402

PAGE = "docs/peers.md"
DATA = "docs/peers/peers.csv"
PICTURE = "docs/peers/peers.svg"
TABLES = {"free": ["free_p50_us", "free_p99_us", "far_p50_ms"],
          "contended": ["hand_overs_per_s", "holds_per_s", "wait_p50_ms", "wait_longest_ms", "longest_to_median"]}


def read(path):
    """The lines about the run, and the rows by column."""
    lines = path.read_text().splitlines()
    return [line.removeprefix("# ") for line in lines if line.startswith("#")], list(csv.DictReader(
        line for line in lines if not line.startswith("#")))


def table(rows, columns):
    cells = [["", *(COLUMNS[column].split(", ")[-1] if columns == TABLES["free"] else COLUMNS[column] for column in columns)]]
    for row in rows:
        cells.append([TITLES[row["peer"]], *(shown(float(row[column])) for column in columns)])
    return markdown(cells)


def filled(root):
    """The page with its tables as they should be."""
    facts, rows = read(root / DATA)

    def fill(match):
        name = match.group(2)
        lines = [textwrap.wrap(f"- {fact}", 100, subsequent_indent="  ", break_on_hyphens=False) for fact in facts]
        text = "".join("\n".join(each) + "\n" for each in lines) if name == "run" else table(rows, TABLES[name])
        return match.group(1) + "\n" + text + "\n" + match.group(3)

    return BLOCK.sub(fill, (root / PAGE).read_text())


def problems_of(root):
    page, problems = (root / PAGE).read_text(), []
    names = [match.group(2) for match in BLOCK.finditer(page)]
    if sorted(names) != sorted([*TABLES, "run"]):
        return [f"{PAGE}: the tables are {names}, and not {[*TABLES, 'run']}"]
    if filled(root) != page:
        problems.append(f"{PAGE}: a table differs from {DATA}: run scripts/peers --draw")
    if missing := [name for name in TITLES if name not in [row["peer"] for row in read(root / DATA)[1]]]:
        problems.append(f"{DATA}: not measured: {', '.join(missing)}")
    if not (root / PICTURE).exists() or f"]({PICTURE.removeprefix('docs/')})" not in page:
        problems.append(f"{PAGE}: no picture {PICTURE}")
    return problems


def self_test():
    data = "# a machine\n# 3 rounds\n" + ",".join(["peer", *COLUMNS]) + "\n" + "".join(
        f"{name},{i + 1}01.4,{i + 1}02.6,8.25,1234.5,3,0.0123,5,6\n" for i, name in enumerate(TITLES))

    def line(title, *cells):
        return f"| {' | '.join([title, *cells])} |\n"

    def page_block(name, text):
        return f"<!-- table: {name} -->\n\n{text}\n<!-- end of the table -->\n"

    titles = list(TITLES.values())
    free = line("", "median [µs]", "99th percentile [µs]", COLUMNS["far_p50_ms"].split(", ")[-1]) + line("---", *3 * ["--:"])
    free += "".join(line(title, f"{i + 1}01", f"{i + 1}03", "8.25") for i, title in enumerate(titles))
    contended = line("", *(COLUMNS[name] for name in TABLES["contended"])) + line("---", *5 * ["--:"])
    contended += "".join(line(title, "1,230", "3", "0.0123", "5", "6") for title in titles)
    good = (page_block("run", "- a machine\n- 3 rounds\n") + "![](peers/peers.svg)\n" +
            page_block("free", free) + page_block("contended", contended))
    differs = f"{PAGE}: a table differs from {DATA}: run scripts/peers --draw"
    cases = [
        (good, data, None),
        (good.replace("101", "111"), data, differs),
        (good, data.replace("1234.5", "1244.5"), differs),
        (good, data.replace("a machine", "another"), differs),
        (good.replace("peers.svg", "peer.svg"), data, f"{PAGE}: no picture {PICTURE}"),
        (good, data.replace("etcd,", "redis,"), f"{DATA}: not measured: etcd"),
        (good.replace("table: free", "table: fee"), data, "tables are ['run', 'fee', 'contended']"),
        ("", data, f"{PAGE}: the tables are []"),
    ]
    failures = []
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        (root / "docs/peers").mkdir(parents=True)
        (root / PICTURE).touch()
        for page, values, expected in cases:
            (root / PAGE).write_text(page)
            (root / DATA).write_text(values)
            found = problems_of(root)
            if (not any(expected in each for each in found)) if expected else found:
                failures.append(f"expected: {expected}\nfound: {found}")
    unknown = subprocess.run([sys.executable, PROGRAM, "--names", "--only", "etcd,nobody"], capture_output=True, text=True)
    wanted = f"--only nobody: there is no such peer. The peers are: {', '.join(TITLES)}\n"
    if (unknown.returncode, unknown.stdout, unknown.stderr) != (1, "", wanted):
        failures.append(f"expected: {wanted}found: {unknown}")
    print("\n".join([*failures, f"{len(cases)} cases, {len(failures)} failures"]))
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    what, root = (sys.argv[1], sys.argv[2]) if len(sys.argv) == 3 else ("", sys.argv[1])
    root = pathlib.Path(root)
    if what == "--write":
        (root / PAGE).write_text(filled(root))
    problems = problems_of(root)
    print("\n".join(problems) if problems else f"{PAGE}: {len(read(root / DATA)[1])} peers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
