"""Runs zklock and the floor in turn, each as a whole process that runs one command under a free lock, and prints the
medians of wall and processor time, and the medians of the ratios.

    pairs.py HOSTS PAIRS FLOOR ZKLOCK
"""
import os
import resource
import statistics
import subprocess
import sys
import time

PATH = "/bench-process"


def run(command):
    """Milliseconds of the whole process, and of the processor for it and for what it started."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True)  # a timeout would make it look at the process only now and then
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1e3, used * 1e3


def main():
    hosts, pairs, floor, zklock = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    for name in [name for name in os.environ if name.startswith("ZKLOCK_")]:
        del os.environ[name]
    sides = {"floor": [floor, hosts, PATH, "true"],
             "zklock": [zklock, "--connect", hosts, PATH, "true"]}
    run(sides["zklock"])  # makes the path
    for command in sides.values():
        run(command)
    runs = {name: [] for name in sides}
    for turn in range(pairs):
        # Whoever comes first in a round may find the machine in another state.
        for name in list(sides) if turn % 2 == 0 else reversed(sides):
            runs[name].append(run(sides[name]))
    print(f"{'median of ' + str(pairs) + ' runs':20} {'time of the process':>24} {'processor':>24}")
    for name, measured in runs.items():
        cells = []
        for column in (0, 1):
            median = statistics.median(each[column] for each in measured)
            ratio = statistics.median(each[column] / base[column] for each, base in zip(measured, runs["floor"]))
            cells.append(f"{median:9.2f} ms  x {ratio:5.3f}")
        print(f"{name:20} {cells[0]:>24} {cells[1]:>24}")


main()
