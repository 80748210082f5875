"""The Redis side of docs/coming_from/redis.md."""
import subprocess
import sys

import redis


def make_report():
    subprocess.run(["./make-report"], check=True)


host, port = sys.argv[1].split(":")
# [lock]
server = redis.Redis(host=host, port=int(port))

with server.lock("report", timeout=30):
    make_report()
# [/lock]
