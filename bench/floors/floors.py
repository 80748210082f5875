"""Runs the floors and zkrecipes in turn, and prints medians and ratios.

    floors.py HOSTS PROGRAMS [--rounds N] [--case REGEX] [--against DIR]

PROGRAMS is the directory of the programs. A floor that was not built is left out. --against: a directory with the
program `ours` of another commit, which is measured, too.
"""
import argparse
import pathlib
import re
import statistics
import subprocess
import sys


def hand_over(sessions):
    mode = ["hand_over", sessions]
    return {"st": ["floor_st", *mode], "mt": ["floor_mt", *mode]}, mode


def locks(count):
    mode = ["locks", count]
    return {"st": ["floor_st", *mode]}, mode


# For each case: the floors, and what `ours` measures.
CASES = {
    "uncontended": ({"wire": ["floor_wire", "uncontended"], "st, the caller polls": ["floor_st", "caller"],
                     "st, a loop thread": ["floor_st", "loop"], "mt": ["floor_mt", "uncontended"]}, ["uncontended"]),
    "hand-over, 8 sessions": hand_over("8"),
    "hand-over, 64 sessions": hand_over("64"),
    "8 locks on one session": locks("8"),
    "64 locks on one session": locks("64"),
}


def run(command):
    """What a program prints, by name."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{done.stderr}{' '.join(command)} failed")
    return {name: float(value) for name, value in (line.rsplit(": ", 1) for line in done.stdout.splitlines())}


def measure(sides, rounds):
    """The results of each side, one for each round."""
    results = {name: [] for name in sides}
    for turn in range(rounds):
        # The first program of a round may find the machine in another state.
        for name in list(sides) if turn % 2 == 0 else reversed(sides):
            results[name].append(run(sides[name]))
    return results


def lines(case, results):
    """The table of one case."""
    rows = [[case, *results["zkrecipes"][0]]]
    for name, measured in results.items():
        cells = []
        for what in rows[0][1:]:
            cells.append(f"{statistics.median(one[what] for one in measured):.1f}")
            if name == "zkrecipes":
                continue
            ratios = (ours[what] / one[what] for ours, one in zip(results["zkrecipes"], measured))
            cells[-1] += f" ({statistics.median(ratios):.2f})"
        rows.append([name, *cells])
    return [f"{row[0]:27}" + "".join(f"{cell:>21}" for cell in row[1:]) for row in rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hosts")
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", default="", metavar="REGEX")
    parser.add_argument("--against", type=pathlib.Path, metavar="DIR")
    options = parser.parse_args()
    print(f"Medians of {options.rounds} rounds. In brackets: zkrecipes divided by this row.")
    for case, (floors, mode) in CASES.items():
        if not re.search(options.case, case):
            continue
        sides = {name: [options.programs / program, options.hosts, *more]
                 for name, (program, *more) in floors.items() if (options.programs / program).exists()}
        if options.against:
            sides["the other commit"] = [options.against / "ours", options.hosts, *mode]
        sides["zkrecipes"] = [options.programs / "ours", options.hosts, *mode]
        results = measure({name: [str(word) for word in command] for name, command in sides.items()}, options.rounds)
        print("", *lines(case, results), sep="\n", flush=True)


main()
