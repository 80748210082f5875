"""The peers of scripts/peers: which server each uses, and its contenders."""
import functools
import os
import pathlib
import subprocess
import sys
import time

import servers
from servers import Failed, Missing

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = ROOT / "build/release/bench"
CONTENDERS = 8
AHEAD_NS = 30_000_000  # a command arrives before its begin


def read_line(process, log):
    line = process.stdout.readline()
    if not line:
        raise Failed(f"a contender ended:\n{servers.tail(log)}")
    return line


class Processes:
    """Each contender is a process with a connection of its own."""

    def __init__(self, argv, log, count):
        self.log = log
        self.processes = [servers.spawn(argv, log, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                          for _ in range(count)]
        for process in self.processes:
            read_line(process, log)

    def run(self, active, begin, end, held):
        for process in self.processes[:active]:
            process.stdin.write(f"{begin} {end} {held}\n")
            process.stdin.flush()
        holds = []
        for number, process in enumerate(self.processes[:active]):
            while (line := read_line(process, self.log)) != "done\n":
                holds.append((number, *map(int, line.split())))
        return holds


class Curator:
    """Each contender is a thread with a session of its own: eight new Java programs would mostly compile themselves."""

    def __init__(self, address, log, count):
        self.log = log
        java = servers.ZooKeeper.JARS
        jars = f"{BUILT}/classes:{java}/curator-recipes.jar:{java}/slf4j-nop.jar"
        # As bench/processes.cpp.
        argv = ["java", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx2g", "-Djava.net.preferIPv4Stack=true", "-cp", jars,
                "CuratorBench"]
        self.process = servers.spawn(argv, log, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("open", count, address)

    def ask(self, *words):
        self.process.stdin.write("\t".join(["1", "peers", *map(str, words)]) + "\n")
        self.process.stdin.flush()
        _, how, *fields = read_line(self.process, self.log).rstrip("\n").split("\t")
        if how != "ok":
            raise Failed(f"Curator: {fields}")
        return fields

    def run(self, active, begin, end, held):
        numbers = [int(field) for field in self.ask("holds", "/curator", active, begin, end, held) if field]
        return [tuple(numbers[i:i + 5]) for i in range(0, len(numbers), 5)]


def built(name, packages):
    path = BUILT / "peers" / name
    if not path.exists():
        raise Missing(f"its contender was not built: apt-get install {packages}")
    return path


@functools.cache
def python_with_kazoo():
    for python in (sys.executable, "/usr/bin/python3"):
        tried = os.path.exists(python) and subprocess.run([python, "-c", "import kazoo"], capture_output=True)
        if tried and tried.returncode == 0:
            return python
    raise Missing("there is no kazoo: apt-get install python3-kazoo")


def curator_classes():
    if not (BUILT / "classes/CuratorBench.class").exists():
        raise Missing("there is no Java compiler or no Curator: "
                      "apt-get install default-jdk-headless libcurator-recipes-java")


class Peer:
    """`needs` raises Missing; `begin` starts so many contenders; `packages` are those whose versions matter."""

    def __init__(self, name, server, packages, needs, begin):
        self.name, self.server, self.packages, self.needs, self.begin = name, server, packages, needs, begin

    def why_not(self):
        """Empty: it can be measured."""
        try:
            self.server.find()
            self.needs()
        except Missing as missing:
            return str(missing)
        return ""


def programs(*argv_of):
    """The contenders are processes with these arguments; functions of the server make them."""
    return lambda server, log, count: Processes([each(server) if callable(each) else each for each in argv_of], log, count)


def zkrecipes():
    return built("peer_zkrecipes", "g++ cmake")


def etcd():
    return built("peer_etcd", "golang-go golang-etcd-server-dev")


def redis():
    return built("peer_redis", "libhiredis-dev")


def postgres():
    return built("peer_postgres", "libpq-dev")


def with_postgres(kind):
    def begin(server, log, count):
        if not (server.folder / "table").exists():  # the first of the two
            words = [postgres(), server.host, server.ports[0], server.user, "setup"]
            if servers.spawn(words, log).wait() != 0:
                raise Failed(f"PostgreSQL:\n{servers.tail(log)}")
            (server.folder / "table").touch()
        return Processes([postgres(), server.host, server.ports[0], server.user, kind], log, count)
    return begin


def address(server):
    return server.address


def host(server):
    return server.host


def port(server):
    return server.ports[0]


KAZOO = pathlib.Path(__file__).with_name("peer_kazoo.py")

PEERS = [
    Peer("zkrecipes", servers.ZooKeeper, ["libzookeeper-java", "libzookeeper-st2"], zkrecipes,
         programs(lambda _: zkrecipes(), address, "/zkrecipes")),
    Peer("curator", servers.ZooKeeper, ["libzookeeper-java", "libcurator-recipes-java"], curator_classes,
         lambda server, log, count: Curator(server.address, log, count)),
    Peer("kazoo", servers.ZooKeeper, ["libzookeeper-java", "python3-kazoo"], python_with_kazoo,
         programs(lambda _: python_with_kazoo(), KAZOO, address, "/kazoo")),
    Peer("etcd", servers.Etcd, ["etcd-server", "golang-etcd-server-dev"], etcd,
         programs(lambda _: etcd(), address, "/peers")),
    Peer("redis", servers.Redis, ["redis-server", "libhiredis-dev"], redis,
         programs(lambda _: redis(), host, port, "peers")),
    Peer("postgres_advisory", servers.PostgreSQL, ["postgresql-[0-9][0-9]", "libpq5"], postgres, with_postgres("advisory")),
    Peer("postgres_row", servers.PostgreSQL, ["postgresql-[0-9][0-9]", "libpq5"], postgres, with_postgres("row")),
]


def measure(contenders, active, seconds, held=0):
    """The holds of so many contenders, and when they began and were to end. Each hold takes `held` nanoseconds."""
    begin = time.monotonic_ns() + AHEAD_NS
    end = begin + int(seconds * 1e9)
    return contenders.run(active, begin, end, held), begin, end
