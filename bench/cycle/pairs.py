"""Runs the programs of scripts/bench --before in turn, and prints the medians and the median of the ratios.

    pairs.py HOSTS PAIRS BEFORE NOW
"""
import statistics
import subprocess
import sys

CYCLES = "2000"


def run(program, hosts, *more):
    """Microseconds of one cycle, and of the processor for it."""
    text = subprocess.run([program, hosts, CYCLES, *more], check=True, capture_output=True, text=True,
                          timeout=120).stdout
    return [float(number) for number in text.split()]


def main():
    hosts, pairs, before, now = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    sides = {"before": (before,), "now": (now,), "now, with SessionEvents": (now, "events")}
    runs = {name: [] for name in sides}
    for turn in range(pairs):
        # Whoever comes first in a round may find the machine in another state.
        order = list(sides) if turn % 2 == 0 else list(reversed(sides))
        for name in order:
            program, *more = sides[name]
            runs[name].append(run(program, hosts, *more))
    print(f"{'median of ' + str(pairs) + ' runs':26} {'time of a cycle':>22} {'processor':>22}")
    for name, measured in runs.items():
        cells = []
        for column in (0, 1):
            median = statistics.median(each[column] for each in measured)
            ratio = statistics.median(each[column] / base[column] for each, base in zip(measured, runs["before"]))
            cells.append(f"{median:9.1f} us  x {ratio:5.3f}")
        print(f"{name:26} {cells[0]:>22} {cells[1]:>22}")


main()
