"""What the holds of one peer say: pure functions. `python3 summary.py --self-test` tests them.

A hold is a tuple: contender, when acquire was called, when it returned, when release was called, when it returned (ns).
"""
import statistics
import sys


def percentile(values, percent):
    """The smallest value that so many per cent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def two_holders(holds):
    """The first two holds that overlap, or None."""
    ordered = sorted(holds, key=lambda hold: hold[2])
    for earlier, later in zip(ordered, ordered[1:]):
        if later[2] < earlier[3]:
            return earlier, later
    return None


def cycles_us(holds):
    """From each call of acquire to the answer to the release."""
    return [(hold[4] - hold[1]) / 1000 for hold in holds]


def free(holds):
    """One contender alone."""
    cycles = cycles_us(holds)
    return {"free_p50_us": statistics.median(cycles), "free_p99_us": percentile(cycles, 99)}


def far(holds):
    """One contender alone, far from the server."""
    return {"far_p50_ms": statistics.median(cycles_us(holds)) / 1000}


def contended(holds, begin, end):
    """Several contenders, between two times. Waits that end later count, too: nobody calls after the end."""
    ordered = sorted(holds, key=lambda hold: hold[2])
    changes = sum(1 for earlier, later in zip(ordered, ordered[1:]) if earlier[0] != later[0] and later[2] <= end)
    waits = [(hold[2] - hold[1]) / 1e6 for hold in holds]
    seconds = (end - begin) / 1e9
    return {"hand_overs_per_s": changes / seconds,
            "holds_per_s": sum(1 for hold in holds if hold[2] <= end) / seconds,
            "wait_p50_ms": statistics.median(waits),
            "wait_longest_ms": max(waits),
            "longest_to_median": max(waits) / statistics.median(waits)}


def medians(rounds):
    """Of each number, the median over the rounds."""
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def self_test():
    failures = []

    def expect(what, found, expected):
        if found != expected:
            failures.append(f"{what}: {found} instead of {expected}")

    expect("percentile", [percentile(range(1, 101), 99), percentile(range(1, 201), 99), percentile([7], 99)], [99, 198, 7])
    expect("percentile, order", percentile([3, 1, 2], 50), 2)
    # Contender, called, granted, released, confirmed.
    fair = [(0, 0, 10, 20, 25), (1, 0, 30, 40, 45), (0, 25, 50, 60, 65), (1, 45, 70, 80, 85)]
    expect("no overlap", two_holders(fair), None)
    expect("released and granted at the same time", two_holders([(0, 0, 1, 5, 6), (1, 0, 5, 6, 7)]), None)
    expect("overlap", two_holders([*fair, (2, 0, 59, 61, 62)]), (fair[2], (2, 0, 59, 61, 62)))
    expect("free", free([(0, 0, 4000, 5000, 6000), (0, 6000, 7000, 8000, 8000), (0, 0, 1, 2, 10000)]),
           {"free_p50_us": 6.0, "free_p99_us": 10.0})
    expect("far", far([(0, 0, 4000, 5000, 6000), (0, 6000, 7000, 8000, 8000), (0, 0, 1, 2, 10000)]), {"far_p50_ms": 0.006})
    ms = 10**6
    turns = [(i % 2, i * ms, (i + 2) * ms, (i + 2) * ms, (i + 2) * ms) for i in range(100)]
    expect("in turn", contended(turns, 0, 100 * ms),
           {"hand_overs_per_s": 980.0, "holds_per_s": 990.0, "wait_p50_ms": 2.0, "wait_longest_ms": 2.0,
            "longest_to_median": 1.0})
    hog = [(0, i * ms, (i + 1) * ms, (i + 1) * ms, (i + 1) * ms) for i in range(50)] + [(1, 0, 51 * ms, 51 * ms, 51 * ms)]
    expect("one contender gets it again and again", contended(hog, 0, 50 * ms),
           {"hand_overs_per_s": 0.0, "holds_per_s": 1000.0, "wait_p50_ms": 1.0, "wait_longest_ms": 51.0,
            "longest_to_median": 51.0})
    expect("medians", medians([{"a": 1, "b": 5}, {"a": 9, "b": 4}, {"a": 2, "b": 6}]), {"a": 2, "b": 5})
    print("\n".join([*failures, f"{len(failures)} failures"]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else 2)
