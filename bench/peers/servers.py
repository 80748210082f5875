"""The servers of scripts/peers, on a loopback address of their own. All of them call fsync before they answer a write."""
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

from kept import end_with_parent

STARTS_WITHIN = 60  # seconds


class Missing(Exception):
    """Something is not installed."""


class Failed(Exception):
    """Something ended that should not, or did not begin."""


def tail(path):
    return "".join(path.read_text(errors="replace").splitlines(keepends=True)[-15:])


def halves():
    """The processors of the servers, and those of the clients. If they shared them, the scheduler would put a client and its
    server now on one processor, now on two, which changes the time of a round trip severalfold.
    """
    processors = sorted(os.sched_getaffinity(0))
    middle = len(processors) // 2
    return (processors[:middle], processors[middle:]) if middle else (processors, processors)


def spawn(argv, log, processors=None, ends_by=signal.SIGKILL, **options):
    """A process that ends with this one. By default on the processors of the clients."""
    def begin():
        end_with_parent(ends_by)
        os.sched_setaffinity(0, processors or halves()[1])

    with log.open("ab") as out:
        return subprocess.Popen([str(word) for word in argv], stdout=options.pop("stdout", out), stderr=out,
                                preexec_fn=begin, **options)


def spawn_server(argv, log, **options):
    return spawn(argv, log, halves()[0], **options)


def program(name, package, *elsewhere):
    for candidate in (*elsewhere, shutil.which(name)):
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    raise Missing(f"there is no {name}: apt-get install {package}")


def free_address(count):
    """An address 127.x.y.z at which nobody else is, with so many free ports."""
    host = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.{random.randint(1, 254)}"
    ports = []
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind((host, 0))
        ports.append(each.getsockname()[1])
    for each in sockets:
        each.close()
    return host, ports


class Server:
    """One server, with a directory of its own, in which its log is."""

    def __init__(self, folder):
        self.folder = folder / self.NAME
        self.folder.mkdir(parents=True)
        self.log = self.folder / "log"
        self.log.touch()
        self.host, self.ports = free_address(2)
        self.process = None

    @classmethod
    def find(cls):
        """Raises Missing."""

    @property
    def address(self):
        return f"{self.host}:{self.ports[0]}"

    def start(self):
        self.process = self.run()
        give_up = time.monotonic() + STARTS_WITHIN
        while True:
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise Failed(f"{self.NAME} does not start at {self.address}:\n{tail(self.log)}")
            try:
                socket.create_connection((self.host, self.ports[0]), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)


class Far(Server):
    """Another server, to which each message takes so many milliseconds longer, and each answer as well."""
    NAME = "far"

    def __init__(self, server, milliseconds):
        # What else the contenders ask of a server is as it is there.
        vars(self).update(vars(server))
        self.host, self.ports = free_address(1)
        self.command = [sys.executable, pathlib.Path(__file__).with_name("far.py"), self.host, self.ports[0], server.host,
                        server.ports[0], milliseconds]

    def run(self):
        return spawn_server(self.command, self.log)


class ZooKeeper(Server):
    NAME = "ZooKeeper"
    JARS = "/usr/share/java"

    @classmethod
    def find(cls):
        program("java", "default-jre-headless")
        if not os.path.exists(f"{cls.JARS}/zookeeper.jar"):
            raise Missing("there is no ZooKeeper: apt-get install libzookeeper-java")

    def run(self):
        config = self.folder / "zoo.cfg"
        config.write_text(f"tickTime=2000\ndataDir={self.folder}/data\nclientPortAddress={self.host}\n"
                          f"clientPort={self.ports[0]}\nadmin.enableServer=false\nmaxClientCnxns=0\n")
        jars = ":".join(f"{self.JARS}/{name}.jar" for name in ("zookeeper", "slf4j-nop"))
        return spawn_server([program("java", "default-jre-headless"), "-Xmx512m", "-XX:-UsePerfData",
                             "-Djava.net.preferIPv4Stack=true", "-cp", jars,
                             "org.apache.zookeeper.server.ZooKeeperServerMain", config], self.log)


class Etcd(Server):
    NAME = "etcd"

    @classmethod
    def find(cls):
        return program("etcd", "etcd-server")

    def run(self):
        client, peer = (f"http://{self.host}:{port}" for port in self.ports)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ETCD")}
        return spawn_server([self.find(), "--name", "peers", "--data-dir", self.folder / "data",
                             "--listen-client-urls", client, "--advertise-client-urls", client,
                             "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                             "--initial-cluster", f"peers={peer}"], self.log, env=environment)


class Redis(Server):
    NAME = "Redis"

    @classmethod
    def find(cls):
        return program("redis-server", "redis-server")

    def run(self):
        return spawn_server([self.find(), "--bind", self.host, "--port", self.ports[0], "--dir", self.folder, "--save", "",
                             "--appendonly", "yes", "--appendfsync", "always"], self.log)


class PostgreSQL(Server):
    NAME = "PostgreSQL"

    @classmethod
    def find(cls):
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        return program("postgres", "postgresql", *reversed(found))

    def __init__(self, folder):
        super().__init__(folder)
        self.user = "peers"

    def as_user(self, *argv):
        """It refuses to run as root."""
        if os.geteuid() != 0:
            return argv
        return (program("setpriv", "util-linux"), f"--reuid={self.owner()}", f"--regid={pwd.getpwnam(self.owner()).pw_gid}",
                "--clear-groups", "--pdeathsig=INT", *argv)

    @staticmethod
    def owner():
        try:
            return pwd.getpwnam("postgres").pw_name
        except KeyError:
            return "nobody"

    def run(self):
        postgres = pathlib.Path(self.find()).resolve()
        if os.geteuid() == 0:
            self.folder.parent.chmod(0o711)
            shutil.chown(self.folder, self.owner())
        data = self.folder / "data"
        # SIGINT, because killed by SIGKILL it would leave a segment of shared memory.
        options = {"cwd": self.folder, "ends_by": signal.SIGINT}
        initdb = spawn_server(self.as_user(postgres.with_name("initdb"), "-D", data, "-U", self.user, "--auth=trust",
                                           "--no-sync", "--locale=C", "--encoding=UTF8"), self.log, **options)
        if initdb.wait() != 0:
            raise Failed(f"PostgreSQL cannot make its files:\n{tail(self.log)}")
        settings = {"listen_addresses": self.host, "port": self.ports[0], "unix_socket_directories": "",
                    "dynamic_shared_memory_type": "mmap", "fsync": "on", "synchronous_commit": "on"}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return spawn_server(self.as_user(postgres, "-D", data, *words), self.log, **options)
