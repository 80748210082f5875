"""The Python side of docs/coming_from/kazoo.md."""
import subprocess
import sys

from kazoo.client import KazooClient


def make_report():
    subprocess.run(["./make-report"], check=True)


hosts = sys.argv[1]
# [lock]
client = KazooClient(hosts=hosts)
client.start()

lock = client.Lock("/locks/report")
with lock:
    make_report()
# [/lock]
client.stop()
