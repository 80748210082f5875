#!/usr/bin/env python3
"""Runs the code of docs/coming_from, ours and that of the peers, on servers that it starts on loopback ports and ends again.

    run.py BUILD [PEER...]      BUILD: has zklock, zkenv and coming_from; PEER: curator kazoo etcd consul redis hazelcast database

Four clients of each side want one lock at the same time, and each adds 1 to a number under it, by a read and a write. Where
both sides are the same lock, they compete with each other. What cannot be had here is skipped, and the line says why. The
exit code is 1 if something failed, and 77 if everything was skipped.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
JARS = ("/usr/share/java/curator-recipes.jar", "/usr/share/java/slf4j-nop.jar")
POSTGRES = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))


class Skipped(Exception):
    pass


def need(program, package):
    if not shutil.which(program):
        raise Skipped(f"{program} is not installed ({package})")


def until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Place:
    """A directory with the programs, and the servers of the tests."""

    def __init__(self, build, folder):
        self.build, self.folder, self.processes = build, folder, []
        self.log = open(folder / "log", "w+")
        for path in HERE.iterdir():
            if path.is_file():
                shutil.copy(path, folder)
        self.environment = dict(os.environ, REPORT=str(folder), PATH=f"{build}/src/zklock:{os.environ['PATH']}")
        for name in ("ZKLOCK_CONNECT", "ZKLOCK_CONFIG", "CONSUL_HTTP_ADDR"):
            self.environment.pop(name, None)

    def start(self, *command, **more):
        # A group of its own, so that the end of the test ends what the program has started, too.
        more = {"cwd": self.folder, "env": self.environment, "start_new_session": True, "stderr": self.log} | more
        # The program ends if this one is killed.
        words = ["setpriv", "--pdeathsig", "KILL", "--", *(str(word) for word in command)]
        self.processes.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, **more))
        return self.processes[-1]

    def run(self, *command, **more):
        more = {"cwd": self.folder, "env": self.environment, "check": True, "timeout": 60} | more
        return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)

    def end(self, processes=None):
        for process in processes or self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if processes is None:
            self.log.close()

    def compete(self, *clients):
        """Starts all clients at once. Each must end well, and each must have had the lock by itself."""
        (self.folder / "number").write_text("0\n")
        running = [self.start(*client, stdout=subprocess.DEVNULL) for client in clients]
        try:
            for process, client in zip(running, clients):
                code = process.wait(timeout=120)
                assert code == 0, f"{client[0]} exited with {code}"
        finally:
            self.end(running)
        number = int((self.folder / "number").read_text())
        assert number == len(clients), f"{len(clients)} clients, but the number is {number}"
        assert not (self.folder / "overlaps").exists(), "two clients had the lock at the same time"


def curator(place, zookeeper):
    need("javac", "default-jdk-headless")
    if not all(pathlib.Path(jar).exists() for jar in JARS):
        raise Skipped("Curator is not installed (libcurator-recipes-java, libslf4j-java)")
    path = ":".join(JARS)
    place.run("javac", "-nowarn", "-Xlint:-path", "-cp", path, "CuratorReport.java")
    java = ("java", "-cp", f"{path}:.", "CuratorReport", zookeeper)
    ours = (place.build / "tests/coming_from/coming_from", "curator", zookeeper)
    place.compete(java, ours, java, ours)


def kazoo(place, zookeeper):
    if subprocess.run(["/usr/bin/python3", "-c", "import kazoo"], capture_output=True).returncode:
        raise Skipped("kazoo is not installed (python3-kazoo)")
    python = ("/usr/bin/python3", "kazoo_report.py", zookeeper)
    ours = (place.build / "tests/coming_from/coming_from", "kazoo", zookeeper)
    place.compete(python, ours, python, ours)


def etcd(place, zookeeper):
    need("etcd", "etcd-server")
    need("etcdctl", "etcd-client")
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    server = place.start("etcd", "--data-dir", "etcd", "--listen-client-urls", client, "--advertise-client-urls", client,
                         "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                         "--initial-cluster", f"default={peer}", stdout=subprocess.DEVNULL)
    place.environment["ETCDCTL_API"] = "3"

    def etcdctl(*words, **more):
        return place.run("etcdctl", f"--endpoints={client}", *words, **more)

    until(lambda: etcdctl("endpoint", "health", check=False).returncode == 0, "etcd answers")
    place.compete(*[("./etcd_report.sh", client)] * 4)

    # The page says that a command goes on when its lock is lost.
    lock = ("etcdctl", f"--endpoints={client}", "lock", "lost", "--")
    first = place.start(*lock, "sh", "-c", "touch first; exec sleep 60", stdout=subprocess.DEVNULL)
    until((place.folder / "first").exists, "the first command runs")
    for lease in etcdctl("lease", "list").stdout.split("\n")[1:]:
        if lease.strip():
            etcdctl("lease", "revoke", lease.strip())
    place.run(*lock, "true")  # the next holder
    assert first.poll() is None, "etcdctl ended: change docs/coming_from/etcd.md"
    place.end([first, server])


def zklock(place, zookeeper):
    place.compete(*[("./zklock_report.sh", zookeeper, side) for side in ("etcd", "consul")] * 2)
    place.compete(("./zklock_report.sh", zookeeper, "semaphore"))


def consul(place, zookeeper):
    need("consul", "not in Debian 12; install it by hand")
    port = free_port()
    server = place.start("consul", "agent", "-dev", "-bind=127.0.0.1", f"-http-port={port}", "-dns-port=-1", "-grpc-port=-1",
                         stdout=subprocess.DEVNULL)
    place.environment["CONSUL_HTTP_ADDR"] = f"127.0.0.1:{port}"
    until(lambda: place.run("consul", "info", check=False).returncode == 0, "consul answers")
    place.compete(*[("./consul_report.sh", f"127.0.0.1:{port}", "lock")] * 4)
    place.compete(("./consul_report.sh", f"127.0.0.1:{port}", "semaphore"))
    place.end([server])


def redis(place, zookeeper):
    ours = (place.build / "tests/coming_from/coming_from", "redis", zookeeper)
    place.compete(ours, ours, ours, ours)
    need("redis-server", "redis-server")
    if subprocess.run(["/usr/bin/python3", "-c", "import redis"], capture_output=True).returncode:
        raise Skipped("redis-py is not installed (python3-redis)")
    port = free_port()
    server = place.start("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", place.folder,
                         stdout=subprocess.DEVNULL)

    def answers():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    until(answers, "redis answers")
    place.compete(*[("/usr/bin/python3", "redis_report.py", f"127.0.0.1:{port}")] * 4)
    place.end([server])


def hazelcast(place, zookeeper):
    ours = (place.build / "tests/coming_from/coming_from", "hazelcast", zookeeper)
    place.compete(ours, ours, ours, ours)
    raise Skipped("Hazelcast is not in Debian; only our side was run")


def database(place, zookeeper):
    if not POSTGRES:
        raise Skipped("PostgreSQL is not installed (postgresql)")
    # PostgreSQL refuses root. In a user namespace, root's files belong to the user postgres.
    user = ("unshare", "--user", "--map-user=postgres", "--map-group=postgres", "--") if os.getuid() == 0 else ()
    data = place.folder / "postgres"
    data.mkdir()
    if user and subprocess.run([*user, "true"], capture_output=True).returncode:
        raise Skipped("PostgreSQL refuses root, and there are no user namespaces here")
    port = free_port()
    place.run(*user, POSTGRES[-1] / "initdb", "-D", data, "-A", "trust", "-U", "tester")
    server = place.start(*user, "setpriv", "--pdeathsig", "KILL", "--", POSTGRES[-1] / "postgres", "-D", data,
                         "-h", "127.0.0.1", "-p", port, "-k", "", stdout=subprocess.DEVNULL)
    place.environment |= {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "tester", "PGDATABASE": "postgres"}

    def sql(command):
        return place.run("psql", "-qAtc", command).stdout.strip()

    until(lambda: place.run("psql", "-c", "SELECT 1", check=False).returncode == 0, "PostgreSQL answers")
    sql("CREATE TABLE account (id int PRIMARY KEY, balance int, fence bigint); INSERT INTO account VALUES (1, 0, 0)")
    for command in ([("psql", "-q", "-f", "row_lock.sql")] * 4, [("./fenced.sh", zookeeper)] * 4):
        sql("UPDATE account SET balance = 0")
        for process in [place.start(*client, stdout=subprocess.DEVNULL) for client in command]:
            assert process.wait(timeout=60) == 0, f"{command[0][0]} failed"
        # row_lock.sql has a row lock and an advisory lock, and adds 1 under each.
        expected = "8" if command[0][0] == "psql" else "4"
        assert sql("SELECT balance FROM account") == expected, f"{command[0][0]}: the balance is not {expected}"
    place.run("psql", "-q", "-v", "token=1", "-f", "fenced.sql")  # a former holder
    assert sql("SELECT balance FROM account") == "4", "the token of a former holder was accepted"
    server.send_signal(signal.SIGINT)
    server.wait(timeout=60)


PEERS = {"zklock": zklock, "curator": curator, "kazoo": kazoo, "etcd": etcd, "consul": consul, "redis": redis,
         "hazelcast": hazelcast, "database": database}


def tried(name, build, zookeeper):
    with tempfile.TemporaryDirectory(prefix="coming-from-") as folder:
        place = Place(build, pathlib.Path(folder))
        try:
            PEERS[name](place, zookeeper)
            return "passed", ""
        except Skipped as reason:
            return "skipped", f": {reason}"
        except (AssertionError, subprocess.SubprocessError, OSError) as error:
            log = (place.folder / "log").read_text(errors="replace").split("\n")
            return "failed", "\n".join([f": {error}", getattr(error, "stderr", None) or "", *log[-20:]])
        finally:
            place.end()


def main():
    build, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or list(PEERS)
    if set(names) - set(PEERS):
        print(f"unknown peer: {' '.join(sorted(set(names) - set(PEERS)))}; there are {' '.join(PEERS)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    zkenv = [str(build / "testenv/zkenv")]
    environment = f"coming-from-{os.getpid()}"
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    started = subprocess.run([*zkenv, "start", "--name", environment, "--pid", str(os.getpid())], capture_output=True, text=True)
    if started.returncode:
        print(started.stderr, file=sys.stderr)
        return 1
    try:
        for name in names:
            result, words = tried(name, build, started.stdout.strip())
            counts[result] += 1
            print(f"{result:8} {name}{words}", flush=True)
    finally:
        subprocess.run([*zkenv, "stop", "--name", environment], capture_output=True)
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    return 1 if counts["failed"] else 0 if counts["passed"] else 77


if __name__ == "__main__":
    sys.exit(main())
