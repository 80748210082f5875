"""A process full of kazoo clients, run by the tests and not by hand (tests/interop/peer.hpp).

Commands come on standard input, one a line, fields separated by tabs: number, client, verb, arguments. Each is answered
by one line: the number, "ok" or "error", fields. The commands of one client are done one after the other, on a thread
of its own; those of different clients beside each other.
"""
import os
import queue
import sys
import threading
import time

import kazoo
from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.retry import RetryFailedError

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "kazoo"))
from curator_names import CuratorLock, CuratorReadLock, CuratorWriteLock  # noqa: E402

output = threading.Lock()


def answer(number, how, fields):
    line = "\t".join([number, how] + [" ".join(str(field).split()) for field in fields])
    with output:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def read_number(file):
    return int(os.pread(file, 19, 0))


class Client:
    def __init__(self):
        self.commands = queue.Queue()
        self.locks = {}
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            number, verb, arguments = self.commands.get()
            try:
                answer(number, "ok", getattr(self, "do_" + verb)(*arguments) or [])
            except Exception as error:  # pylint: disable=broad-except
                answer(number, "error", [repr(error)])

    def do_open(self, hosts, timeout, dialect):
        self.dialect = dialect
        self.kazoo = KazooClient(hosts=hosts, timeout=int(timeout) / 1000.0)
        self.kazoo.start(timeout=60)
        return [self.kazoo.client_id[0]]

    def do_version(self):
        return kazoo.__version__.split(".")[:2]

    def do_close(self):
        self.kazoo.stop()
        self.kazoo.close()

    def lock(self, kind, path):
        if (kind, path) not in self.locks:
            self.locks[kind, path] = self.make(kind, path)
        return self.locks[kind, path]

    def make(self, kind, path):
        if kind == "extra":  # kazoo's own way to see the nodes of others
            return self.kazoo.Lock(path, "a kazoo client", extra_lock_patterns=["-lock-"])
        if kind == "election":
            return self.kazoo.Election(path, "a kazoo client").lock
        kinds = {
            "curator": {"mutex": CuratorLock, "write": CuratorWriteLock, "read": CuratorReadLock},
            "kazoo": {"mutex": self.kazoo.Lock, "write": self.kazoo.WriteLock, "read": self.kazoo.ReadLock},
        }[self.dialect]
        if self.dialect == "curator":
            return kinds[kind](self.kazoo, path, "a kazoo client")
        return kinds[kind](path, "a kazoo client")

    def do_acquire(self, kind, path, milliseconds):
        wait = int(milliseconds)
        try:
            got = self.lock(kind, path).acquire(timeout=None if wait < 0 else wait / 1000.0)
        except LockTimeout:
            got = False
        return ["yes" if got else "no"]

    def do_release(self, kind, path):
        if not self.lock(kind, path).release():
            raise RuntimeError("it was not held")

    def do_participants(self, kind, path):
        return self.lock(kind, path).contenders()

    def do_number(self, path, what, number="0"):
        """Curator's number of four bytes: before and after."""
        counter = self.kazoo.Counter(path, support_curator=True)
        if what == "get":
            return ["yes", counter.value, counter.value]
        counter += int(number)
        return ["yes", counter.pre_value, counter.post_value]

    def do_increment(self, path, rounds):
        counter = self.kazoo.Counter(path, support_curator=True)
        done = 0
        while done < int(rounds):
            try:
                counter += 1
                done += 1
            except RetryFailedError:  # others were faster; nothing was written
                pass

    def do_count(self, kind, path, rounds, name):
        """Reads the number in the file and writes the next one, with nothing but the lock to keep others from it."""
        lock = self.lock(kind, path)
        file = os.open(name, os.O_RDWR)
        for _ in range(int(rounds)):
            with lock:
                value = read_number(file)
                time.sleep(0)
                os.pwrite(file, b"%019d\n" % (value + 1), 0)
        os.close(file)

    def do_look(self, kind, path, rounds, name):
        lock = self.lock(kind, path)
        file = os.open(name, os.O_RDONLY)
        for _ in range(int(rounds)):
            with lock:
                value = read_number(file)
                time.sleep(0)
                if read_number(file) != value:
                    raise RuntimeError("the number changed while it was locked")
        os.close(file)


def main():
    clients = {}
    for line in sys.stdin:
        number, name, verb, *arguments = line.rstrip("\n").split("\t")
        clients.setdefault(name, Client()).commands.put((number, verb, arguments))
    os._exit(0)  # whoever started us is gone, or wants us gone


main()
