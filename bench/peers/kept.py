"""Runs a function that starts processes and makes files. Whatever ends the function or this program (also SIGKILL), the
processes are ended and the files removed."""
import ctypes
import os
import pathlib
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 5  # seconds in which a server may end by itself


def prctl(option, value):
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def end_with_parent(number=signal.SIGKILL):
    """For a process that has just been forked: it gets this signal when its parent ends."""
    prctl(PR_SET_PDEATHSIG, number)


def children():
    """The processes whose parent this one is. That of an orphan is the keeper."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has ended meanwhile
        if int(parent) == os.getpid() and state != "Z":
            found.append(int(path.parent.name))
    return found


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_children():
    """SIGINT first: PostgreSQL then also removes what it has outside of its directory."""
    begin = time.monotonic()
    while left := children():
        elapsed = time.monotonic() - begin
        for pid in left:
            if elapsed > PATIENCE or elapsed < 0.1:
                os.kill(pid, signal.SIGKILL if elapsed > PATIENCE else signal.SIGINT)
        time.sleep(0.05)
        reap()
    reap()


def keep(work, parent_lives, where):
    os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    directory = tempfile.mkdtemp(prefix="zkrecipes-peers.", dir=where)
    runner = os.fork()
    if runner == 0:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        end_with_parent()
        os.close(parent_lives)
        code = 1
        try:
            code = work(pathlib.Path(directory))
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    ended = os.pidfd_open(runner)
    select.select([ended, parent_lives], [], [])
    if ended not in select.select([ended], [], [], 0)[0]:
        os.kill(runner, signal.SIGKILL)
    status = os.waitpid(runner, 0)[1]
    end_children()
    shutil.rmtree(directory, ignore_errors=True)
    return os.waitstatus_to_exitcode(status)


def run_kept(work, where):
    """Calls work(directory) in a process of its own, which returns an exit code. The directory is below `where`."""
    sys.stdout.flush()
    reading, writing = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.close(writing)
        code = keep(work, reading, where)
        os._exit(code if code >= 0 else 128 - code)
    os.close(reading)

    def stop(number, _):
        os.close(writing)  # the keeper sees this, as it would see our end
        os.waitpid(keeper, 0)
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    return os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])


def self_test():
    """What a killed program has started is ended, and its files are gone."""
    globals()["PATIENCE"] = 0.3
    failures = []
    for number in (signal.SIGKILL, signal.SIGTERM):
        reading, writing = os.pipe()
        program = os.fork()
        if program == 0:
            def work(directory):
                (directory / "file").touch()
                server = os.fork()
                if server == 0:
                    signal.signal(signal.SIGINT, signal.SIG_IGN)  # so that SIGKILL has to end it
                    os.setsid()
                os.write(writing, f"{os.getpid()} {directory}\n".encode())
                signal.pause()

            os._exit(run_kept(work, None))
        os.close(writing)
        with os.fdopen(reading) as lines:
            told = [lines.readline().split() for _ in range(2)]
            os.kill(program, number)
            lines.read()  # ends when nobody has the other end any more
        os.waitpid(program, 0)
        for pid, directory in told:
            give_up = time.monotonic() + 20
            while os.path.exists(directory) and time.monotonic() < give_up:
                time.sleep(0.02)
            if os.path.exists(directory):
                failures.append(f"{number}: {directory} is left")
            if os.path.exists(f"/proc/{pid}"):  # the directory goes after the processes
                failures.append(f"{number}: process {pid} is left")
    code = run_kept(lambda directory: 7 if directory.is_dir() else 1, None)
    if code != 7:
        failures.append(f"the exit code is {code}")
    print("\n".join([*failures, f"{len(failures)} failures"]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else 2)
