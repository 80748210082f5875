#!/usr/bin/env python3
"""Draws the pictures of the documents, beside this file.

    draw.py            writes NAME.svg for each picture below
    draw.py --check    says which of the files differ from what this program draws; exits with 1 if one does
"""
import pathlib
import sys

import sequences
from svg import Picture


def queue():
    p = Picture(720, 300, "The queue of a lock: each waiter watches the lock node before its own")
    p.box(360, 40, 260, 36, "/locks/orders/42", "dir", "mono")
    for x, client, number, role, kind in ((125, "client A", 7, "holds the lock", "hold"), (360, "client B", 8, "waits", "wait"),
                                          (595, "client C", 9, "waits", "wait")):
        p.line([(360, 58), (x, 112)])
        p.box(x, 132, 206, 40, f"…-lock-000000000{number}", kind, "mono")
        p.box(x, 240, 130, 52, [client, role])
        p.arrow((x, 214), (x, 153))
        p.text(x + 8, 190, "owns", style="small")
    p.watch((257, 124), (230, 124)).watch((492, 124), (465, 124))
    p.watch((560, 112), (560, 88), (160, 88), (160, 110))
    p.text(243, 170, "watches", "middle", "small").text(478, 170, "watches", "middle", "small")
    p.text(566, 92, "watches, to be ready", "start", "small")
    p.text(360, 288, "A release wakes only the next two waiters, however long the queue is.", "middle", "small")
    return p


def hand_over():
    p = Picture(720, 330, "A hand-over: the delete of the holder's node reaches the next waiter as a watch event")
    for x, name in ((110, "client A"), (360, "servers"), (610, "client B")):
        p.box(x, 34, 130, 34, name, "dir")
        p.line([(x, 52), (x, 300)], "soft")
    p.area(102, 66, 16, 84, "hold").text(90, 112, "holds", "end", "small")
    p.area(602, 66, 16, 154, "wait").text(630, 142, "waits, with", style="small").text(630, 159, "watches", style="small")
    p.arrow((118, 142), (352, 158)).text(235, 138, "delete A's node", "middle", "small")
    p.area(352, 156, 16, 30, "box").text(376, 178, "a majority commits", style="small")
    p.arrow((368, 186), (602, 216)).text(488, 222, "event: A's node is gone", "middle", "small")
    p.area(602, 220, 16, 76, "hold").text(630, 262, "holds", style="small")
    p.arrow((352, 192), (118, 216)).text(235, 226, "answer", "middle", "small")
    p.text(360, 320, "One round trip. A release does not wait for the answer.", "middle", "small")
    return p


def lease():
    # To scale: the session timeout T is 480 wide.
    p = Picture(720, 330, "The lease ends by the holder's clock before the servers can end its session")
    p.text(16, 85, "holder", style="bold").text(16, 209, "servers", style="bold")
    p.arrow((90, 112), (704, 112)).arrow((90, 232), (704, 232))
    p.text(704, 254, "time", "end", "small")
    p.line([(230, 44), (230, 184)], "soft").text(230, 36, "the last committed heartbeat is sent", "middle", "small")
    p.area(230, 58, 320, 44, "hold").text(390, 85, "held() is true: 2/3 T", "middle")
    p.area(550, 58, 140, 44, "bad").text(620, 85, "held() is false", "middle")
    p.area(110, 188, 480, 40, "box").text(400, 213, "the session lives at least so long: T", "middle")
    p.area(590, 188, 100, 40, "wait").text(640, 204, "next holder", "middle", "small").text(640, 220, "possible", "middle", "small")
    p.arrow((232, 114), (262, 186)).text(272, 146, "heartbeat", style="small")
    p.text(272, 168, "the leader may count from an earlier report", style="small")
    p.line([(110, 180), (110, 290)], "soft").line([(230, 228), (230, 290)], "soft")
    p.arrow((170, 272), (228, 272)).arrow((170, 272), (112, 272)).text(170, 264, "up to T/4", "middle", "small")
    p.line([(550, 44), (550, 184)], "soft").line([(550, 228), (550, 290)], "soft").line([(590, 180), (590, 290)], "soft")
    p.arrow((570, 272), (588, 272)).arrow((570, 272), (552, 272)).text(600, 277, "at least T/12", style="small")
    p.text(544, 277, "the lease ends", "end", "small")
    p.text(360, 316, "T is the session timeout. Each heartbeat that a majority commits moves both ends to the right.", "middle", "small")
    return p


def session_states():
    p = Picture(720, 330, "The states of a session")
    for x, y, name, kind in ((90, 80, "connecting", "dir"), (330, 80, "connected", "hold"), (600, 80, "suspended", "wait"),
                             (465, 230, "lost", "bad"), (90, 230, "closed", "dir")):
        p.box(x, y, 130, 44, name, kind, "bold")
    p.arrow((155, 80), (263, 80)).text(210, 70, "session granted", "middle", "small")
    p.arrow((395, 70), (533, 70)).text(465, 60, "no server answers", "middle", "small")
    p.arrow((535, 92), (397, 92)).text(465, 112, "a server answers again", "middle", "small")
    p.arrow((585, 102), (500, 206)).text(562, 158, "no server for T, or", style="small").text(550, 175, "the session has ended", style="small")
    p.arrow((375, 102), (445, 206)).text(424, 158, "it has", style="small").text(434, 175, "ended", style="small")
    p.arrow((420, 207), (345, 104)).text(366, 158, "connected again,", "end", "small").text(378, 175, "mostly as a new session", "end", "small")
    p.arrow((90, 158), (90, 206)).text(100, 186, "from any state", style="small")
    p.text(360, 292, "Suspended: holds go on until the lease ends. Lost: all holds are lost, waiting calls go on.", "middle", "small")
    p.text(360, 312, "Closed: by the program, by refused credentials, or by an internal error.", "middle", "small")
    return p


def read_write_lock():
    p = Picture(720, 280, "The queue of a read-write lock: readers wait for the nearest earlier writer only")
    p.box(360, 36, 260, 34, "/locks/catalogue", "dir", "mono")
    nodes = ((80, "__READ__…03", "reader", "holds", "hold"), (220, "__READ__…04", "reader", "holds", "hold"),
             (360, "__WRIT__…05", "writer", "waits", "wait"), (500, "__READ__…06", "reader", "waits", "wait"),
             (640, "__READ__…07", "reader", "waits", "wait"))
    for x, name, who, role, kind in nodes:
        p.line([(360, 53), (x, 104)])
        p.box(x, 122, 122, 36, name, kind, "mono")
        p.text(x, 162, f"{who}, {role}", "middle", "small")
    p.watch((340, 178), (340, 200), (220, 200), (220, 172))
    p.watch((500, 178), (500, 200), (372, 200), (372, 172))
    p.watch((640, 178), (640, 214), (384, 214), (384, 172))
    p.text(280, 220, "the writer watches the", "middle", "small").text(280, 237, "contender before it", "middle", "small")
    p.text(512, 234, "each later reader watches the writer", "middle", "small")
    p.text(360, 268, "When the writer is done, both readers hold the lock together.", "middle", "small")
    return p


def semaphore():
    p = Picture(720, 290, "A semaphore: waiters queue below locks, and each lease is a node below leases")
    p.box(360, 34, 230, 34, "/limits/converters", "dir", "mono")
    p.line([(330, 51), (170, 86)]).line([(390, 51), (535, 86)])
    p.box(170, 104, 110, 34, "locks", "dir", "mono").box(535, 104, 240, 34, 'leases  {"leases":4}', "dir", "mono")
    for x, number, words in ((100, 9, "head"), (240, 10, "waits")):
        p.line([(170, 121), (x, 154)]).box(x, 172, 116, 36, f"…-lock-…{number:02}", "wait", "mono")
        p.text(x, 210, words, "middle", "small")
    for x in (395, 488, 581, 674):
        p.line([(535, 121), (x, 154)]).box(x, 172, 84, 36, "…-lease-…", "hold", "mono")
    p.watch((182, 172), (160, 172))
    p.text(535, 210, "all four leases are held", "middle", "small")
    p.watch((100, 216), (100, 238), (535, 238), (535, 216))
    p.text(318, 232, "the head alone watches the leases", "middle", "small")
    p.text(360, 270, "One transaction takes the head out of the queue and creates the nodes of all leases that it takes.", "middle", "small")
    return p


def multi_lock():
    p = Picture(720, 300, "A multi lock: one transaction enters the queues of all members")
    for row, (name, first, kind) in enumerate((("/accounts/42", "…-lock-…17", "wait"), ("/accounts/4711", "…-lock-…03", "wait"),
                                               ("/rates", "…-__READ__…88", "wait"))):
        y = 60 + 72 * row
        p.box(100, y, 160, 36, name, "dir", "mono")
        if row != 1:
            p.box(290, y, 150, 36, "another client", "hold")
            p.watch((404, y), (368, y))
        else:
            p.box(290, y, 150, 36, "nobody else", "fade")
        p.line([(180, y), (214, y)])
        p.box(480, y, 150, 36, first, kind, "mono")
    p.area(396, 26, 168, 212, "soft")
    p.text(480, 256, "its own nodes, created by one transaction", "middle", "small")
    p.box(640, 132, 110, 52, ["client", "waits"]).line([(585, 132), (564, 132)])
    p.text(360, 286, "The client watches one node in each busy queue. When all of these are gone, it holds the whole set.",
           "middle", "small")
    return p


def leader_election():
    p = Picture(720, 300, "An election: the first candidate of the queue leads, the next one watches it")
    p.box(300, 36, 260, 34, "/services/report/leader", "dir", "mono")
    for x, host, number, role, kind in ((120, "web1", 4, "leads", "hold"), (300, "web2", 5, "is ready", "wait"),
                                        (480, "web3", 6, "is ready", "wait")):
        p.line([(300, 53), (x, 104)])
        p.box(x, 122, 144, 38, f"…-latch-…0{number}", kind, "mono")
        p.box(x, 214, 110, 52, [host, role])
        p.arrow((x, 188), (x, 143))
    p.watch((228, 122), (194, 122)).watch((408, 122), (374, 122))
    p.box(636, 214, 120, 52, ["observer", "no candidate"], "fade")
    p.watch((636, 188), (636, 82), (120, 82), (120, 101)).text(520, 76, "reads and watches the leader's node", "middle", "small")
    p.text(360, 266, "The data of each node are the id of its candidate.", "middle", "small")
    p.text(360, 285, "When the leader's node is gone, web2 leads and the observer is told.", "middle", "small")
    return p


def barrier():
    p = Picture(720, 260, "A double barrier for three members: together in, together out")
    rows = (("member 1", 160, 480), ("member 2", 220, 400), ("member 3", 290, 560))
    for row, (name, enters, leaves) in enumerate(rows):
        y = 60 + 46 * row
        p.text(20, y + 5, name)
        p.area(enters, y - 15, 290 - enters, 30, "wait") if enters < 290 else None
        p.area(290, y - 15, leaves - 290, 30, "hold").text((290 + leaves) / 2, y + 5, "works", "middle", "small")
        p.area(leaves, y - 15, 560 - leaves, 30, "wait") if leaves < 560 else None
        p.text(enters - 6 if enters < 290 else 284, y + 5, "enter()", "end", "small")
        p.text(570, y + 5, "leave() returns", style="small")
    p.line([(290, 34), (290, 190)], "soft").line([(560, 34), (560, 190)], "soft")
    p.text(290, 210, "the third has come:", "middle", "small").text(290, 227, "ready is created", "middle", "small")
    p.text(560, 210, "the last one leaves:", "middle", "small").text(560, 227, "all return", "middle", "small")
    p.arrow((100, 246), (700, 246)).text(60, 250, "time", style="small")
    return p


def group():
    p = Picture(720, 260, "A group: each member has an ephemeral node, an observer watches them")
    p.box(290, 40, 260, 34, "/jobs/report/workers", "dir", "mono")
    for x, name, kind in ((110, "w1", "hold"), (290, "w2", "hold"), (470, "w3", "fade")):
        p.line([(290, 57), (x, 104)], "line" if kind == "hold" else "soft")
        p.box(x, 122, 130, 38, [f"{name}: at work" if kind == "hold" else name], kind, "mono")
        p.box(x, 204, 130, 46, ["member", name] if kind == "hold" else ["its session", "has ended"], "box" if kind == "hold" else "bad")
    p.arrow((110, 180), (110, 143)).arrow((290, 180), (290, 143))
    p.box(636, 122, 120, 46, ["observer"])
    p.watch((636, 98), (636, 40), (424, 40)).text(530, 30, "watches the children", "middle", "small")
    p.text(636, 166, "is told: w1, w2", "middle", "small")
    p.text(360, 250, "The servers delete the node of a member when its session ends.", "middle", "small")
    return p


PICTURES = (queue, hand_over, lease, session_states, read_write_lock, semaphore, multi_lock, leader_election, barrier, group,
            *sequences.ALL)


def main():
    here = pathlib.Path(__file__).resolve().parent
    drawn = {f"{make.__name__}.svg": make().svg() for make in PICTURES}
    if sys.argv[1:] == ["--check"]:
        there = {path.name: path.read_text() for path in here.glob("*.svg")}
        wrong = [name for name in sorted(drawn | there) if drawn.get(name) != there.get(name)]
        print("\n".join(f"docs/pictures/{name} is not what docs/pictures/draw.py draws; run it" for name in wrong)
              or f"{len(drawn)} pictures are as drawn")
        return 1 if wrong else 0
    for name, svg in drawn.items():
        (here / name).write_text(svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
