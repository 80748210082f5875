"""The pictures and tables of docs/capacity.md are those of its CSV files. --write puts them there, --show FILE prints one."""
import csv
import pathlib
import re
import sys
import tempfile

PAGE = "docs/capacity.md"
BLOCK = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end of the table -->)", re.S)
COUNTS = {"locks", "sessions", "sessions of the client", "waiters", "servers", "callers", "delay in each direction [ms]"}


def read(path):
    """The columns by name, in order; a value that was not measured is None."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    header, *rows = csv.reader(lines)
    return {name: [float(row[i]) if row[i] else None for row in rows] for i, name in enumerate(header)}


def machine(path):
    return path.read_text().splitlines()[0].removeprefix("# ")


def shown(value, exact=False):
    """Three digits that count."""
    if value is None:
        return "–"
    if exact or value == int(value) and value < 1000:
        return f"{value:,.0f}"
    value = float(f"{value:.3g}")
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def markdown(rows):
    rows = [list(row) for row in rows]
    return "".join("| " + " | ".join(row) + " |\n" for row in [rows[0], ["---", *["--:"] * (len(rows[0]) - 1)], *rows[1:]])


def table(columns):
    """A wide table is turned: one line for each column."""
    cells = [[name, *(shown(value, name in COUNTS) for value in values)] for name, values in columns.items()]
    return markdown(cells if len(cells) > 6 else zip(*cells))


def last(columns, name):
    return [value for value in columns[name] if value is not None][-1]


def many_locks(folder):
    """On paper: what many held locks need, from the largest measured number of locks."""
    locks = read(folder / "locks.csv")
    heap = last(locks, "server heap for a held lock [B]")
    of_a_session = last(locks, "locks") / last(locks, "sessions of the client")
    counts = [10**6, 10**7, 10**8]
    lines = {
        "locks held": counts,
        "sessions": [count / of_a_session for count in counts],
        "client memory in all [GB]": [count * last(locks, "client memory for a held lock [B]") / 1e9 for count in counts],
        "server heap in all, on each server of an ensemble [GB]": [count * heap / 1e9 for count in counts],
        "ensembles, with 8 GB of nodes each": [-(-count * heap // 8e9) for count in counts],
        "nodes to check a second, session timeout 30 s": [count / 2.5 for count in counts],
    }
    return markdown([name, *(shown(value, name == "locks held") for value in values)] for name, values in lines.items())


def most_writes(folder, servers):
    writes = read(folder / "writes.csv")
    return max(value for value, size in zip(writes["writes a second"], writes["servers"]) if size == servers)


def many_holds(folder):
    """On paper: how many ensembles a rate of holds needs, if each is used to the half of what was measured."""
    rows = [["holds a second in all", "writes a second in all", "ensembles of 3", "ensembles of 5"]]
    for holds in (10**3, 10**4, 10**5, 10**6):
        rows.append([shown(holds, True), shown(2 * holds, True),
                     *(shown(-(-2 * holds // (most_writes(folder, servers) / 2)), True) for servers in (3, 5))])
    return markdown(rows)


DERIVED = {"many_locks": many_locks, "many_holds": many_holds}


def block(folder, name):
    if name == "machine":
        return "".join(f"- {path.stem}: {machine(path)}\n" for path in sorted(folder.glob("*.csv")))
    if name in DERIVED:
        return DERIVED[name](folder)
    return f"![{name}](capacity/{name}.svg)\n\n" + table(read(folder / f"{name}.csv"))


def filled(root):
    """The page with its tables as they should be."""
    folder = root / "docs/capacity"

    def fill(match):
        try:
            text = block(folder, match.group(2))
        except FileNotFoundError:
            text = ""
        return match.group(1) + "\n" + (text or "Not measured yet.\n") + "\n" + match.group(3)

    return BLOCK.sub(fill, (root / PAGE).read_text())


def problems_of(root):
    page, problems = (root / PAGE).read_text(), []
    if filled(root) != page:
        problems.append(f"{PAGE}: a table differs from its CSV file: run scripts/capacity --draw")
    names = [match.group(2) for match in BLOCK.finditer(page)]
    for path in sorted((root / "docs/capacity").glob("*.csv")):
        if names.count(path.stem) != 1:
            problems.append(f"{PAGE}: no table, or several, from {path.name}")
        if not path.with_suffix(".svg").exists():
            problems.append(f"{PAGE}: no picture of {path.name}")
        if f"scripts/capacity --only {path.stem}" not in page:
            problems.append(f"{PAGE}: the command that measures {path.stem} is not there")
        if machine(path).startswith("brief"):
            problems.append(f"docs/capacity/{path.name} is from a brief run")
    problems += [f"{PAGE}: the table {name} has no CSV file: run scripts/capacity" for name in names
                 if name not in DERIVED and name != "machine" and not (root / "docs/capacity" / f"{name}.csv").exists()]
    if not names:
        problems.append(f"{PAGE}: no tables found: has something moved?")
    return problems


def self_test():
    good = ("    scripts/capacity --only a\n\n<!-- table: a -->\n\n![a](capacity/a.svg)\n\n"
            "| servers | rate |\n| --- | --: |\n| 1 | 12,300 |\n| 3 | – |\n\n<!-- end of the table -->\n")
    data = "# a machine\nservers,rate\n1,12345\n3,\n"
    differs = f"{PAGE}: a table differs from its CSV file: run scripts/capacity --draw"
    cases = [
        (good, data, None),
        (good.replace("12,300", "12,400"), data, differs),
        (good, data.replace("12345", "12355"), differs),
        (good, data.replace("# a", "# brief: a"), "docs/capacity/a.csv is from a brief run"),
        (good.replace("a.svg", "b.svg"), data, differs),
        (good.replace("table: a", "table: b"), data, f"{PAGE}: no table, or several, from a.csv"),
        (good.replace("table: a", "table: b"), data, f"{PAGE}: the table b has no CSV file: run scripts/capacity"),
        (good.replace("--only a", ""), data, f"{PAGE}: the command that measures a is not there"),
        (good + good, data, f"{PAGE}: no table, or several, from a.csv"),
        ("", data, f"{PAGE}: no tables found: has something moved?"),
    ]
    failures = []
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        (root / "docs/capacity").mkdir(parents=True)
        (root / "docs/capacity/a.svg").touch()
        for page, values, expected in cases:
            (root / PAGE).write_text(page)
            (root / "docs/capacity/a.csv").write_text(values)
            found = problems_of(root)
            if (expected not in found) if expected else found:
                failures.append(f"expected: {expected}\nfound: {found}")
    print("\n".join([*failures, f"{len(cases)} cases, {len(failures)} failures"]))
    return 1 if failures else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    what, root = (sys.argv[1], sys.argv[2]) if len(sys.argv) == 3 else ("", sys.argv[1])
    if what == "--show":
        print(table(read(pathlib.Path(root))))
        return 0
    root = pathlib.Path(root)
    if what == "--write":
        (root / PAGE).write_text(filled(root))
    problems = problems_of(root)
    print("\n".join(problems) if problems else f"{PAGE}: {len(BLOCK.findall((root / PAGE).read_text()))} tables")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
