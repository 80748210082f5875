#!/usr/bin/env python3
"""Random bugs (places.py), and what notices them.

    hunt.py ROOT BUILD --random N --seed S [--in PATH]... [--at FILE:LINE]... [--sim-seeds N] [--server] [--jobs N]
            [--log FILE]

Builds the library and its tests with N random bugs, each behind its name. Runs everything once without a bug, to see
which test and which simulated day comes by which bug. Then tries each bug on what comes by it: unit tests, simulation
and, with --server, server tests. A test that fails has noticed the bug if it does so twice. One that crashes or has no
end says nothing of what is wrong: that counts by itself, for bugs that no other test notices. Memory that is lost is
noticed by LeakSanitizer, as in the tests' run under AddressSanitizer.
Exit code 1: more than 5 % of the bugs were not noticed. 2: no hunt took place.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

import mutations
import places

MEMORY = 3 << 30
LEAST_LIMIT_S, SLOWNESS = 15, 4  # tests may take so much longer with a bug before they count as endless
VAGUE = 5  # so many tests that crash or have no end, of one program: the others are left out
WAITERS = 2  # so many bugs are tried for each job, since some hang
SIM_LIMIT_S = 30
SURVIVORS = 0.05
UNIT = ["base_unit_test", "client_unit_test", "session_unit_test", "step_failure_unit_test", "core_unit_test",
        "multi_lock_unit_test", "async_unit_test"]
PASSED = re.compile(r"^\[       OK \] ([^\s,]+).*\((\d+) ms\)$", re.M)
BEGUN = re.compile(r"^\[ RUN      \] (\S+)$", re.M)
NO_END, CRASH = " (no end)", " (crash)"
LEAK = "ERROR: LeakSanitizer: detected memory leaks"
SUPPRESSIONS = pathlib.Path(__file__).resolve().parents[1] / "support/lsan.supp"
LEAK_OPTIONS = f"suppressions={SUPPRESSIONS}:print_suppressions=0"
HOW = {"crashes": CRASH, "throws": " (exception)"}
FAILED = re.compile(r"^\[  FAILED  \] ([^\s,]+).*\(\d+ ms\)$", re.M)


class Failure(Exception):
    pass


# ---- build ----------------------------------------------------------------------------------------------------------


def logged(log, command):
    with log.open("a") as file:
        file.write(f"\n==> {' '.join(map(str, command))}\n")
        file.flush()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        file.write(done.stdout)
    return done.returncode, done.stdout


def do_not_compile(chosen, output):
    """The bugs on the lines that the compiler complains of."""
    lines = {(path, int(line) - 1) for path, line in re.findall(r"\bmutated/([\w/.]+):(\d+):\d+: error:", output)}
    lines |= {(path, int(line) - 1) for path, line in
              re.findall(r"\bmutated/([\w/.]+):(\d+):\d+:\s+(?:required from|in .constexpr. expansion)", output)}
    return [place for place in chosen for path, line in lines
            if path == place.path and place.line <= line <= place.line + place.before.count("\n")]


def build(root, folder, draw, options, targets, log):
    """Builds with places that compile; what does not is dropped, and others are drawn."""
    dropped = {}
    while True:
        chosen = draw.take(options.random, options.at, dropped)
        listed = folder / "random.json"
        places.write(listed, chosen)
        code, output = logged(log, ["cmake", "--preset", "mutations", "-S", root, "-B", folder,
                                    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -fsanitize=leak", f"-DZKRECIPES_RANDOM_MUTATIONS={listed}"])
        if code != 0:
            raise Failure(f"configuring failed; the output is in {log}:\n{output[-2000:]}")
        code, output = logged(log, ["cmake", "--build", folder, "--parallel", str(options.jobs), "--target", *targets, "--",
                                    "-k", "0"])
        if code == 0:
            return chosen, list(dropped.values())
        wrong = do_not_compile(chosen, output)
        if not wrong:
            raise Failure(f"building failed, and not by a bug; the output is in {log}:\n{output[-2000:]}")
        for place in wrong:
            dropped[place.name] = place


# ---- programs -------------------------------------------------------------------------------------------------------


def limits(seconds):
    """For a child. LeakSanitizer and Java reserve more address space than this, but do not use it."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def started(command, seconds, **environment):
    """The exit code, None for no end, and the output. The program ends with this process."""
    command = ["setpriv", "--pdeathsig", "KILL", *command]
    environment = dict(os.environ, LSAN_OPTIONS=LEAK_OPTIONS, **environment)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True,
                                   preexec_fn=lambda: limits(int(seconds)))
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(process.pid, signal.SIGKILL)  # also what it has left behind
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        return code, output.read().decode(errors="replace")


def record(command, seconds):
    """A run without a bug: its code and output, and the names of the bugs that each test comes by ("": none of them)."""
    with tempfile.NamedTemporaryFile() as file:
        code, output = started(command, seconds, ZKRECIPES_MUTATIONS_REACHED=file.name)
        test, reached = "", {}
        for line in file.read().decode().split("\n"):
            if line.startswith("test "):
                test = line[5:]
            elif line:
                reached.setdefault(line, set()).add(test)
    return code, output, reached


class Noticed:
    """What has noticed a bug; `how`: None, or that it did not say what is wrong."""

    def __init__(self, what, how=None):
        self.what, self.by_name = what + (how or ""), how is None

    def __str__(self):
        return self.what


def best(findings):
    """The first one by name, or the first one."""
    first = None
    for noticed in findings:
        if noticed and noticed.by_name:
            return noticed
        first = first or noticed
    return first


class Program:
    """Tests of gtest, and which of them comes by which bug."""

    def __init__(self, path):
        self.path = path
        code, output, self.reached = record([path], 1800)
        self.seconds = {test: int(ms) / 1000 for test, ms in PASSED.findall(output)}
        if not self.seconds:
            raise Failure(f"{path.name} passes no test (exit code {code}):\n{output[-2000:]}")
        self.unfit = sorted(set(BEGUN.findall(output)) - set(self.seconds))

    def tests(self, name):
        reached = self.reached.get(name, set())
        return set(self.seconds) if "" in reached else reached & set(self.seconds)

    def cost(self, name):
        return sum(self.seconds[test] for test in self.tests(name))

    def run(self, tests, name):
        """None, or the test that fails, and how if no expectation has failed."""
        with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:  # too long for a command line
            flags.write(f"--gtest_filter={':'.join(sorted(tests))}\n")
            flags.flush()
            limit = LEAST_LIMIT_S + SLOWNESS * sum(self.seconds[test] for test in tests)
            code, output = started([self.path, f"--gtest_flagfile={flags.name}", "--gtest_fail_fast"], limit,
                                   ZKRECIPES_MUTATION=name)
        if code == 0:
            if not PASSED.search(output):
                raise Failure(f"{self.path.name} runs none of its tests:\n{output[-2000:]}")
            return None
        outcome = mutations.outcome_of_gtest(code, output)
        if outcome == "crashes" and LEAK in output:
            return "a leak", None
        how = NO_END if code in (None, -signal.SIGXCPU, -signal.SIGKILL) else HOW.get(outcome)
        failed = FAILED.findall(output)
        return (failed or BEGUN.findall(output) or [""])[0 if failed else -1], how

    def notices(self, name, tests):
        tests, vague = set(tests), []
        while tests and len(vague) < VAGUE and (first := self.run(tests, name)):
            test, _ = first
            # Otherwise the machine was slow, or the test needs those before it.
            if again := self.run({test}, name) if test in tests else first:
                noticed = Noticed(f"{self.path.name.replace('_test', '')}: {test or 'at its end'}", again[1])
                if noticed.by_name:
                    return noticed
                vague.append(noticed)
            if test not in tests:
                break
            tests.discard(test)
        return vague[0] if vague else None


class Simulation:
    """One process for each seed of each workload."""

    def __init__(self, path, seeds, pool):
        self.path, self.reached = path, {}
        _, output = started([path, "--workload", "?"], 60)
        workloads = re.search(r"there are:(.*)", output)[1].split()
        self.days = [(workload, seed) for seed in range(1, seeds + 1) for workload in workloads]
        for day, (code, output, reached) in zip(self.days, pool.map(
                lambda day: record(self.command(day), SIM_LIMIT_S * 4), self.days)):
            if code != 0:
                raise Failure(f"the simulation fails without a bug, {day[0]} with seed {day[1]}:\n{output[-2000:]}")
            for name in reached:
                self.reached.setdefault(name, []).append(day)

    def command(self, day):
        return [self.path, "--workload", day[0], "--first", str(day[1]), "--seeds", "1", "--jobs", "1"]

    def notices(self, name):
        vague = []
        for day in self.reached.get(name, []):
            code, output = started(self.command(day), SIM_LIMIT_S, ZKRECIPES_MUTATION=name)
            if code == 0:
                continue
            where = f"in {day[0]}, seed {day[1]}"
            violation = re.search(rf"\b{day[1]} (?!crash)([\w-]+): ", output)
            if violation or LEAK in output:
                return Noticed(f"sim: {violation[1] if violation else 'a leak'} {where}")
            vague.append(Noticed(f"sim: {where}", CRASH if "crash" in output else NO_END))
            if len(vague) == VAGUE:
                break
        return vague[0] if vague else None


# ---- hunt -----------------------------------------------------------------------------------------------------------


def table(rows):
    for place, noticed in rows:
        print(f"{place.name:<11} {place}\n{'':<11}   {noticed}", flush=True)


class Hunt:
    def __init__(self, folder, options, pool):
        self.folder, self.pool = folder, pool
        self.unit = [Program(folder / "tests/unit" / name) for name in UNIT]  # one at a time: that is their time limit
        self.say_unfit(self.unit)
        self.simulation = Simulation(folder / "tests/sim/zkrecipes_sim", options.sim_seeds, pool)
        self.server = []

    def say_unfit(self, programs):
        for program in programs:
            for test in program.unfit:
                print(f"left out, since it fails without a bug: {program.path.name} {test}", flush=True)

    def with_servers(self, targets):
        paths = {path.name: path for path in (self.folder / "tests").rglob("*_server_test") if path.is_file()}
        self.server = [Program(paths[name]) for name in targets]
        self.say_unfit(self.server)

    def by_tests(self, programs, name):
        return best(program.notices(name, program.tests(name))
                    for program in sorted(programs, key=lambda each: each.cost(name)))

    def survivor(self, name):
        tests = sum(len(program.tests(name)) for program in [*self.unit, *self.server])
        days = len(self.simulation.reached.get(name, []))
        return f"SURVIVED {tests} tests and {days} simulated runs" if tests or days else "NOT REACHED by any test"

    def first(self, place):
        name = place.name
        noticed = best(find(name) for find in (lambda name: self.by_tests(self.unit, name), self.simulation.notices))
        # Which test comes by a bug may depend on the threads of that one run.
        return noticed or best(program.notices(name, set(program.seconds))
                               for program in self.unit if name in program.reached)


def hunt(root, folder, options):
    draw = places.Draw(root, options.seed, options.within)
    folder.mkdir(parents=True, exist_ok=True)
    log = options.log or folder / "hunt.log"
    began = time.monotonic()
    chosen, dropped = build(root, folder, draw, options, [*UNIT, "zkrecipes_sim"], log)
    built = time.monotonic()
    print(f"{len(draw.places)} places; seed {options.seed}; {len(chosen)} bugs; built in {built - began:.0f} s", flush=True)
    for place in dropped:
        print(f"does not compile, another was drawn: {place}")
    with concurrent.futures.ThreadPoolExecutor(WAITERS * options.jobs) as pool:
        self = Hunt(folder, options, pool)
        print(f"recorded what comes by them in {time.monotonic() - built:.0f} s", flush=True)
        survivors, counts, vague = [], {"unit tests": 0, "simulation": 0, "server tests": 0}, 0
        for place, noticed in zip(chosen, pool.map(self.first, chosen)):
            if noticed:
                counts["simulation" if noticed.what.startswith("sim:") else "unit tests"] += 1
                vague += not noticed.by_name
                table([(place, noticed)])
            else:
                survivors.append(place)
        if survivors and options.server:
            _, output = logged(log, ["cmake", "--build", folder, "--target", "help"])
            targets = sorted(set(re.findall(r"^(\w+_server_test): phony", output, re.M)) - {"testenv_server_test"})
            code, output = logged(log, ["cmake", "--build", folder, "--parallel", str(options.jobs), "--target", *targets])
            if code != 0:
                raise Failure(f"building failed; the output is in {log}:\n{output[-2000:]}")
            self.with_servers(targets)
            left = []
            for place in survivors:
                noticed = self.by_tests(self.server, place.name)
                counts["server tests"] += bool(noticed)
                vague += bool(noticed) and not noticed.by_name
                table([(place, noticed)] if noticed else [])
                left += [] if noticed else [place]
            survivors = left
    if survivors:
        print("\nNobody has noticed:")
        table((place, self.survivor(place.name)) for place in survivors)
    noticed = ", ".join(f"{count} by {what}" for what, count in counts.items() if count)
    if vague:
        noticed += f"; of these, {vague} only by a crash, an exception or having no end"
    print(f"\n{len(chosen)} random bugs: {len(chosen) - len(survivors)} noticed ({noticed}), {len(survivors)} survived; "
          f"{time.monotonic() - began:.0f} s")
    return 1 if len(survivors) > SURVIVORS * len(chosen) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path, metavar="BUILD")
    parser.add_argument("--random", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at", action="append", default=[], metavar="FILE:LINE")
    parser.add_argument("--in", action="append", default=[], dest="within", metavar="PATH")
    parser.add_argument("--sim-seeds", type=int, default=30)
    parser.add_argument("--server", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--log", type=pathlib.Path)
    options = parser.parse_args()
    try:
        return hunt(options.root.resolve(), options.folder.resolve(), options)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
