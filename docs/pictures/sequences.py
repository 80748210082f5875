"""Pictures in which time runs downwards: who sends what to whom."""
from svg import Picture

STEP = 38


def sequence(title, actors, steps, note=""):
    """`steps`: (from, to, words) for a message, (actor, words, kind) for what an actor does. Actors are counted from 0; a kind
    is the colour of its box."""
    lanes = [720 * (2 * lane + 1) / (2 * len(actors)) for lane in range(len(actors))]
    height = 80 + STEP * len(steps) + (30 if note else 0)
    p = Picture(720, height, title)
    for x, name in zip(lanes, actors):
        p.line([(x, 52), (x, 66 + STEP * len(steps))], "soft")
        p.box(x, 34, 170, 34, name, "dir")
    for number, step in enumerate(steps):
        y = 84 + STEP * number
        if isinstance(step[1], str):
            p.box(lanes[step[0]], y, 8.2 * len(step[1]) + 16, 26, step[1], step[2], "small")
        else:
            begin, end = lanes[step[0]], lanes[step[1]]
            way = 1 if end > begin else -1
            p.arrow((begin + 4 * way, y - 6), (end - 4 * way, y + 8))
            p.text((begin + end) / 2, y - 6, step[2], "middle", "small")
    if note:
        p.text(360, height - 12, note, "middle", "small")
    return p


def fencing():
    return sequence("A fencing token keeps the late write of a former holder out", ("client A", "database", "client B"), (
        (0, "holds, token 33", "hold"),
        (0, "is stopped", "bad"),
        (2, "holds, token 34", "hold"),
        (2, 1, "write, token 34"),
        (1, "largest token: 34", "box"),
        (0, "goes on", "wait"),
        (0, 1, "write, token 33"),
        (1, "33 < 34: refused", "bad"),
    ), "The servers gave the lock to B while A was stopped. No clock is involved.")


def transaction():
    return sequence("A transaction happens only while the lock node exists", ("client A", "ZooKeeper", "client B"), (
        (0, "holds, node 07", "hold"),
        (0, "is stopped", "bad"),
        (1, "A's session ends, node 07 is gone", "box"),
        (2, "holds, node 08", "hold"),
        (2, 1, "check node 08, then set"),
        (1, "done", "hold"),
        (0, 1, "check node 07, then set"),
        (1, "refused: nothing is written", "bad"),
    ), "The check and the writes are one step in ZooKeeper's own order.")


def sequencer():
    return sequence("A sequencer shows a hold to another process", ("holder", "worker", "ZooKeeper"), (
        (0, "holds the lock", "hold"),
        (0, 1, "request, zkr1:2a:x/locks/…"),
        (1, 2, "do these nodes still exist?"),
        (2, 1, "yes"),
        (1, "works, with the token 0x2a", "hold"),
        (0, "releases", "wait"),
        (1, 2, "do these nodes still exist?"),
        (2, 1, "no"),
    ), "An answer is about the past. Writes that depend on the hold need a transaction or the token.")


def atomic_counter():
    return sequence("Two clients change one number, and no change is lost", ("client A", "counter node", "client B"), (
        (1, "41, version 7", "box"),
        (0, 1, "read: 41, version 7"),
        (2, 1, "read: 41, version 7"),
        (0, 1, "write 42 if version 7"),
        (1, "42, version 8", "hold"),
        (2, 1, "write 42 if version 7"),
        (1, "refused: version 8", "bad"),
        (2, 1, "read: 42, version 8"),
        (2, 1, "write 43 if version 8"),
        (1, "43, version 9", "hold"),
    ), "B tries again by itself; add() returns when its change is made.")


def shared_value():
    return sequence("Programs share a value and are told of changes", ("writer", "node", "observer"), (
        (2, 1, "read, with a watch"),
        (1, "5, version 0", "box"),
        (0, 1, "try_set(version 0, 10)"),
        (1, "10, version 1", "hold"),
        (1, 2, "event: changed"),
        (2, 1, "read, with a watch"),
        (2, "is told: 10", "hold"),
        (0, 1, "try_set(version 0, 12)"),
        (1, "false: version 1", "bad"),
    ), "get() reads no node: the library keeps the latest value in memory.")


def persistent_node():
    return sequence("A persistent node is made again whenever it is gone", ("program", "ZooKeeper"), (
        (0, 1, "create, ephemeral; watch"),
        (1, "the node exists", "hold"),
        (1, "somebody deletes it", "bad"),
        (1, 0, "event: deleted"),
        (0, 1, "create; watch"),
        (1, "the node exists", "hold"),
        (1, "the session ends: the node is gone", "bad"),
        (0, 1, "new session: create; watch"),
        (1, "the node exists", "hold"),
    ))


def semaphore_mutex():
    return sequence("One thread locks a semaphore mutex, another one unlocks it", ("thread 1", "thread 2", "another process"), (
        (0, "lock(): holds", "hold"),
        (2, "lock(): waits", "wait"),
        (0, 1, "hands the work over"),
        (1, "works", "hold"),
        (1, "unlock()", "box"),
        (2, "holds", "hold"),
    ), "Threads 1 and 2 are in one process.")


def revocation():
    return sequence("A client asks the holder to release the lock", ("client A", "A's lock node", "client B"), (
        (0, "holds", "hold"),
        (2, "waits", "wait"),
        (2, 1, "request_revocation: write"),
        (1, 0, "event: changed"),
        (0, "revocation() is signalled", "box"),
        (0, "ends its work", "hold"),
        (0, 1, "release: delete"),
        (1, 2, "event: deleted"),
        (2, "holds", "hold"),
    ), "A decides when, and whether, it releases the lock.")


def lock_registry():
    p = Picture(720, 250, "A lock registry: each key has the lock of its path")
    p.box(120, 60, 170, 40, 'get("orders/42")', "box", "mono").box(120, 125, 170, 40, 'get("orders/43")', "box", "mono")
    p.box(120, 190, 170, 40, 'get("orders/42")', "box", "mono")
    p.area(250, 30, 170, 190, "dir").text(335, 50, "LockRegistry", "middle", "bold")
    p.box(335, 95, 130, 36, "ExclusiveMutex", "hold", "small").box(335, 165, 130, 36, "ExclusiveMutex", "hold", "small")
    p.arrow((205, 60), (268, 90)).arrow((205, 190), (268, 104)).arrow((205, 125), (268, 160))
    p.box(590, 95, 200, 36, "/locks/orders/42", "dir", "mono").box(590, 165, 200, 36, "/locks/orders/43", "dir", "mono")
    p.arrow((400, 95), (488, 95)).arrow((400, 165), (488, 165))
    p.text(360, 242, "Equal keys share one lock. A lock that nobody uses is forgotten.", "middle", "small")
    return p


def local():
    p = Picture(720, 280, "Calls of one process wait in its memory; the process has one place in the queue on the servers")
    for x, name in ((25, "process 1"), (370, "process 2")):
        p.area(x, 24, 325, 100).text(x + 12, 46, name + ": local queue", style="bold")
    for x, words, kind in ((80, "holds", "hold"), (165, "next", "wait"), (235, "waits", "dir"), (305, "waits", "dir"),
                           (430, "next", "wait"), (500, "waits", "dir"), (570, "waits", "dir")):
        p.box(x, 88, 64, 36, words, kind, "small")
    p.text(30, 180, "queue on", style="small").text(30, 197, "the servers", style="small")
    for x, name, kind in ((180, "…-lock-…07", "hold"), (340, "…-lock-…08", "wait"), (500, "…-lock-…09", "wait")):
        p.box(x, 195, 120, 36, name, kind, "mono")
    p.arrow((80, 108), (165, 175)).arrow((430, 108), (345, 175)).arrow((165, 108), (485, 175))
    p.text(360, 255, "Processes take turns, however many calls of one of them wait.", "middle", "small")
    return p


def lock_delay():
    p = Picture(720, 250, "After a loss, the next client waits for the delay")
    p.text(16, 65, "holder").text(16, 125, "next client").text(16, 185, "resource")
    p.arrow((110, 210), (704, 210)).text(704, 230, "time", "end", "small")
    p.area(120, 44, 150, 34, "hold").text(195, 66, "holds", "middle", "small")
    p.area(270, 44, 110, 34, "bad").text(325, 66, "vanished", "middle", "small")
    p.area(120, 104, 260, 34, "wait").text(250, 126, "waits", "middle", "small")
    p.area(380, 104, 180, 34, "fade").text(470, 126, "delay_after_loss", "middle", "small")
    p.area(560, 104, 130, 34, "hold").text(625, 126, "holds", "middle", "small")
    p.arrow((262, 78), (450, 176)).text(462, 168, "a late request arrives", style="small")
    p.text(462, 188, "while nobody holds the lock", style="small")
    p.line([(380, 34), (380, 210)], "soft").text(380, 28, "the session has ended", "middle", "small")
    return p


def max_hold():
    p = Picture(720, 200, "A hold with max_hold ends by itself")
    p.text(16, 65, "holder").text(16, 125, "next client")
    p.arrow((110, 160), (704, 160)).text(704, 180, "time", "end", "small")
    p.area(120, 44, 330, 34, "hold").text(285, 66, "holds: held() is true", "middle", "small")
    p.area(450, 44, 240, 34, "bad").text(570, 66, "held() is false; must stop", "middle", "small")
    p.area(200, 104, 260, 34, "wait").text(330, 126, "waits", "middle", "small")
    p.area(466, 104, 224, 34, "hold").text(578, 126, "holds", "middle", "small")
    p.line([(450, 34), (450, 160)], "soft").text(450, 28, "max_hold after the grant: the lock node is deleted", "middle", "small")
    return p


ALL = (fencing, transaction, sequencer, atomic_counter, shared_value, persistent_node, semaphore_mutex, revocation, lock_registry,
       local, lock_delay, max_hold)
