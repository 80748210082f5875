"""Measures the locks of several systems in one run. scripts/peers calls this; docs/peers.md explains it.

    peers.py [--runs N] [--json FILE] [--csv FILE] [--only NAMES] [--directory DIR] [--brief]
    peers.py --names [NAMES]    checks the names, and prints them one a line
"""
import argparse
import json
import math
import os
import platform
import random
import signal
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # nothing beside the sources

import contenders  # noqa: E402
import summary  # noqa: E402
from contenders import CONTENDERS, PEERS  # noqa: E402
from kept import run_kept  # noqa: E402
from servers import Failed, Far  # noqa: E402

HELD_NS = 500_000
FAR_MS = 4  # a round trip on a network
TITLES = {"zkrecipes": "zkrecipes", "curator": "Curator", "kazoo": "kazoo", "etcd": "etcd", "redis": "Redis",
          "postgres_advisory": "PostgreSQL, advisory lock", "postgres_row": "PostgreSQL, row lock"}
# Names in the CSV file, in its order: the heading in tables, and the name of the number in summary.py.
COLUMNS = {"free_p50_us": "free lock, median [µs]", "free_p99_us": "free lock, 99th percentile [µs]",
           "far_p50_ms": f"free lock, median at {FAR_MS} ms of network delay [ms]",
           "hand_overs_per_s": "hand-overs a second", "holds_per_s": "holds a second",
           "wait_p50_ms": "median wait [ms]", "wait_longest_ms": "longest wait [ms]",
           "longest_to_median": "longest / median wait"}


def names_of(text):
    """The peers that --only names. Ends the program if there is no such peer."""
    known = [peer.name for peer in PEERS]
    names = known if text is None else text.replace(",", " ").split()
    for name in names:
        if name not in known:
            sys.exit(f"--only {name}: there is no such peer. The peers are: {', '.join(known)}")
    if not names:
        sys.exit(f"--only: no name is given. The peers are: {', '.join(known)}")
    return [name for name in known if name in names]


def machine():
    processor = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                      if line.startswith("model name")), platform.machine())
    count = sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())
    kilobytes = int(Path("/proc/meminfo").read_text().split()[1])
    return (f"{count} processors ({processor}), {round(kilobytes / 2**20)} GiB of memory, "
            f"Linux {'.'.join(platform.release().split('.')[:2])}")


def versions(peers):
    packages = sorted({package for peer in peers for package in peer.packages})
    try:
        text = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${Version}\n", *packages], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return {}
    return {name: version for name, _, version in (line.partition(" ") for line in text.splitlines()) if version}


def check_exclusion(running, seconds):
    """With holds that last: two holds of no time never overlap, whether or not there is a lock."""
    for name, peer in running.items():
        answer_within(60 + math.ceil(seconds))
        holds, _, _ = contenders.measure(peer, CONTENDERS, seconds, HELD_NS)
        if overlap := summary.two_holders(holds):
            raise Failed(f"{TITLES[name]}: two contenders held the lock at the same time: {overlap}")


def one_round(running, far, free_seconds, contended_seconds):
    """Each peer, in random order."""
    found = {}
    for name in random.sample(list(running), len(running)):
        answer_within(60 + math.ceil(2 * free_seconds + contended_seconds))
        distant, _, _ = contenders.measure(far[name], 1, free_seconds)
        alone, _, _ = contenders.measure(running[name], 1, free_seconds)
        holds, begin, end = contenders.measure(running[name], CONTENDERS, contended_seconds)
        found[name] = {**summary.free(alone), **summary.far(distant), **summary.contended(holds, begin, end)}
    return found


def start(peers, folder):
    """The servers of all peers, and then their contenders: those beside them, and one far away."""
    near, far = {}, {}
    for server in dict.fromkeys(peer.server for peer in peers):
        near[server] = server(folder)
        near[server].start()
        far[server] = Far(near[server], FAR_MS / 2)
        far[server].start()
    return [{peer.name: peer.begin(where[peer.server], folder / f"{peer.name}.log", count) for peer in peers}
            for where, count in ((near, CONTENDERS), (far, 1))]


def report(peers, options, skipped, rounds):
    measured = {name: summary.medians(each) for name, each in rounds.items()}
    facts = versions(peers)
    print(machine())
    show(measured)
    if options.json:
        Path(options.json).write_text(json.dumps(
            {"machine": machine(), "versions": facts, "runs": options.runs, "contenders": CONTENDERS,
             "skipped": skipped, "medians": measured, "rounds": rounds}, indent=1) + "\n")
    if options.csv:
        Path(options.csv).write_text(csv_of(measured, facts, options.runs))


def answer_within(seconds):
    """What takes longer raises Failed. A client whose server has ended may wait for ever."""
    def give_up(*_):
        raise Failed(f"no answer within {seconds} s: has a server ended?")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)


def run(peers, options, skipped, folder):
    try:
        answer_within(120)
        running, far = start(peers, folder)
        check_exclusion(running, options.free_seconds)
        # Until the JIT compilers have seen it all.
        for _ in range(options.warm_up):
            one_round(running, far, options.warm_seconds, options.warm_seconds)
        rounds = []
        for number in range(options.runs):
            rounds.append(one_round(running, far, options.free_seconds, options.contended_seconds))
            print(f"round {number + 1} of {options.runs}", file=sys.stderr)
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 1
    signal.alarm(0)
    report(peers, options, skipped, {name: [each[name] for each in rounds] for name in running})
    return 0


def csv_of(measured, facts, runs):
    lines = [f"# {machine()}", f"# {runs} rounds. " + ", ".join(f"{name} {version}" for name, version in facts.items()),
             ",".join(["peer", *COLUMNS])]
    for name, numbers in measured.items():
        lines.append(",".join([name, *(f"{numbers[column]:.5g}" for column in COLUMNS)]))
    return "\n".join(lines) + "\n"


def show(measured):
    cells = [["", *COLUMNS.values()]]
    for name, numbers in measured.items():
        cells.append([TITLES[name], *(f"{numbers[column]:,.0f}" if numbers[column] >= 100 else f"{numbers[column]:.3g}"
                                      for column in COLUMNS)])
    # Turned: one line for each number.
    cells = list(zip(*cells))
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        print("  ".join(text.ljust(width) if i == 0 else text.rjust(width)
                        for i, (text, width) in enumerate(zip(row, widths))))


def parse():
    parser = argparse.ArgumentParser(prog="scripts/peers", add_help=False)
    parser.add_argument("--runs", type=int, default=11)
    for name in ("--json", "--csv", "--only"):
        parser.add_argument(name)
    parser.add_argument("--directory", default="/dev/shm")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--names", action="store_true")
    options = parser.parse_args()
    options.names_of_peers = names_of(options.only)
    if options.runs < 1:
        sys.exit("--runs: give a number of at least 1")
    options.warm_up, options.warm_seconds, options.free_seconds, options.contended_seconds = 2, 2, 0.5, 1.5
    if options.brief:
        options.warm_up, options.free_seconds, options.contended_seconds = 0, 0.1, 0.3
    return options


def main():
    options = parse()
    if options.names:
        print("\n".join(options.names_of_peers))
        return 0
    chosen, skipped = [], {}
    for peer in PEERS:
        if peer.name not in options.names_of_peers:
            continue
        why = peer.why_not()
        if why:
            skipped[peer.name] = why
            print(f"{TITLES[peer.name]} is skipped: {why}", file=sys.stderr)
        else:
            chosen.append(peer)
    if not chosen:
        print("Nothing can be measured.", file=sys.stderr)
        return 1
    if not os.access(options.directory, os.W_OK):
        print(f"--directory {options.directory}: there is no such directory, or it is not writable", file=sys.stderr)
        return 2
    return run_kept(lambda folder: run(chosen, options, skipped, folder), options.directory)


if __name__ == "__main__":
    sys.exit(main())
