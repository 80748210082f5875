"""kazoo's side of scripts/peers: one contender, in a session of its own. contender.hpp explains the commands.

    peer_kazoo.py HOSTS PATH
"""
import sys
import time

from kazoo.client import KazooClient


def main():
    client = KazooClient(hosts=sys.argv[1], timeout=30)
    client.start(timeout=30)
    lock = client.Lock(sys.argv[2], "peers")
    now = time.monotonic_ns
    print("ready", flush=True)
    for line in sys.stdin:
        begin, end, held = (int(word) for word in line.split())
        time.sleep(max(0, begin - now()) / 1e9)
        holds = []
        called = now()
        while called < end:
            lock.acquire()
            granted = released = now()
            if held:
                time.sleep(held / 1e9)
                released = now()
            lock.release()
            holds.append((called, granted, released, now()))
            called = now()
        for hold in holds:
            print(*hold)
        print("done", flush=True)


main()
