/*
 * A set of two queues, as MultiAcquireFsm stands in them: clients 0 and 1 want both, client 2 the second one alone.  One
 * transaction makes all nodes of a set, one gives them back; the queues are watched at once, and one committed check of
 * all own nodes is the hand-over.  Deadlocks of sets that overlap in a circle are the subject of multi_lock.pml.
 *
 * FAULTS faults may happen, at any moment: an answer is lost, with or without the request having been executed; a
 * connection breaks under the watches; a session ends, while its nodes are seen for some time more; an operator deletes a
 * node of a waiter.  The transaction of a set answers its zxid; behind it every directory is read, one after the other:
 * how many children it has, and whether that transaction was its last change.  After a wait a list may be older than the deletion of an own node.  Nodes are numbered as in
 * acquire.pml, and so are `doomed` and `ghost`; that of client c in directory d is at c * 2 + d.
 *
 * Properties: nobody holds together with another one (assertion); everybody is served or gives up (no invalid end state);
 * at the end there is no node (assertion).
 *
 *   -DNOGIVEUP      nobody gives up
 *   -DWITHOUT=NAME  without one of these defences:
 */
#define FORMER 1        /* the nodes of a session that ended are relied on in the next one */
#define FOREIGN 2       /* nodes that a former session owns are taken for the own ones */
#define BLIND 3         /* an unknown transaction is sent again without looking */
#define NOSYNC 4        /* ... is looked for in lists that may be older than it */
#define NOSWEEP 5       /* a transaction that happens after the search leaves its nodes */
#define RESTLEFT 6      /* one own node is gone: the others stay */
#define STALE 7         /* the answer to a transaction of a former session takes the place of the new one */
#define COUNT 8         /* one child must be the own one */
#define COMPANY 18      /* a directory that the own transaction changed last is free, however many children it has */
#define OTHERZXID 19    /* the zxid of the transaction is read from the first directory */
#define MARKERLEFT 20   /* the node that the transaction makes to learn its zxid is left */
#define WAITSON 9       /* after a reconnect the wait goes on, without the watches */
#define NOCHECK 10      /* after the wait nobody asks whether the own nodes are still there */
#define NORELIST 11     /* whoever was watched is gone, so that it is our turn */
#define VANISHED 12     /* whoever is gone before the watch is set is waited for */
#define ANYEVENT 13     /* a change of data is taken for the end of whoever is watched */
#define TWICE 14        /* a path that occurs twice gets two nodes, and the second waits for the first */
#define LEFT 15         /* whoever gives up waiting leaves its nodes */
#define GHOSTS 16       /* ... forgets a transaction of unknown outcome */
#define ABANDONED 17    /* ... does not stay behind for the answer to its transaction */

#ifndef WITHOUT
#define WITHOUT 0
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#define C 3

byte without = WITHOUT;
byte next[2];
byte number[6];       /* 0: not there */
byte doomed[6];
byte ghost[6];
byte last[2];         /* c + 1: the last change was the newest transaction of client c, which still reads; 0: another */
byte markers;         /* that are left */
bool holding[C];
byte faults = FAULTS;
byte ended;

#define NO(defence) (without == (defence))
#ifdef NOGIVEUP
#define GIVES_UP false
#else
#define GIVES_UP true
#endif
#define IS(c, d, n) (number[(c) * 2 + d] == (n) || doomed[(c) * 2 + d] == (n) || ghost[(c) * 2 + d] == (n))
#define THERE(d, n) (IS(0, d, n) || IS(1, d, n) || IS(2, d, n))
#define BOTH (me != 2)                  /* directory 0, too */
#define ALL_THERE ((!BOTH || THERE(0, mine[0])) && THERE(1, mine[1]))
#define ONE(n) ((n) != 0 -> 1 : 0)
#define NODES(c, d) (ONE(number[(c) * 2 + d]) + ONE(doomed[(c) * 2 + d]) + ONE(ghost[(c) * 2 + d]))
#define ALONE(d) (NODES(0, d) + NODES(1, d) + NODES(2, d) == 1)
#define ONLY(d) ((ALONE(d) || NO(COMPANY)) && (last[d] == me + 1 || NO(COUNT) || (NO(OTHERZXID) && last[d] == other)))
#define OVERLAP (holding[0] + holding[1] + holding[2] > 1)

inline look_at(d, n) {
    if
    :: n != 0 && n < mine[d] ->
        before[d]++;
        if :: n > watched[d] -> watched[d] = n :: else fi
    :: else
    fi
}

inline look_into(d) {
    watched[d] = 0;
    before[d] = 0;
    o = 0;
    do
    :: o < C ->
        if
        :: o != me -> look_at(d, number[o * 2 + d]); look_at(d, doomed[o * 2 + d]); look_at(d, ghost[o * 2 + d])
        :: o == me && doomed[o * 2 + d] != mine[d] -> look_at(d, doomed[o * 2 + d]); look_at(d, ghost[o * 2 + d])
        :: else
        fi;
        o++
    :: else -> break
    od;
    o = 0
}

inline look() {
    if :: BOTH -> look_into(0) :: else fi;
    look_into(1)
}

inline strand(d) {
    if :: number[me * 2 + d] != 0 -> ghost[me * 2 + d] = number[me * 2 + d]; number[me * 2 + d] = 0 :: else fi
}

inline doom_one(d) {
    if :: doomed[me * 2 + d] == 0 -> doomed[me * 2 + d] = number[me * 2 + d] :: else fi;
    number[me * 2 + d] = 0
}

inline forget(missing) {
    if
    :: missing -> strand(0); strand(1)
    :: else -> doom_one(0); doom_one(1)
    fi
}

inline make(d) {
    next[d]++;
    number[me * 2 + d] = next[d];
    last[d] = me + 1
}

inline create() {
    strand(0); strand(1);                   /* only where a defence is missing */
    if :: BOTH -> make(0) :: else fi;
    make(1);
    if :: NO(TWICE) && BOTH -> ghost[me * 2 + 1] = number[me * 2 + 1]; make(1) :: else fi;
    if :: NO(MARKERLEFT) -> markers = 1 :: else fi
}

/* Nobody asks any more whose change that was. */
inline read() {
    if :: last[0] == me + 1 -> last[0] = 0 :: else fi;
    if :: last[1] == me + 1 -> last[1] = 0 :: else fi;
    only = false; one = false; other = 0
}

inline take() {
    mine[0] = number[me * 2];
    mine[1] = number[me * 2 + 1]
}

inline sweep() {
    if
    :: !NO(NOSWEEP) && !NO(BLIND) && !NO(TWICE) && !NO(RESTLEFT) ->
        if :: ghost[me * 2] != 0 -> ghost[me * 2] = 0; last[0] = 0 :: else fi;
        if :: ghost[me * 2 + 1] != 0 -> ghost[me * 2 + 1] = 0; last[1] = 0 :: else fi
    :: else
    fi
}

proctype client(byte me) {
    byte mine[2], watched[2], before[2], late[2], o = 0, other = 0;
    bool sure = false, only = false, one = false;

entering:
    sure = true;
    if
    :: atomic { create(); take() }; goto reading
    :: atomic { NO(STALE) && late[1] != 0 -> create(); mine[0] = late[0]; mine[1] = late[1]; late[1] = 0; goto placing }
    :: atomic { faults > 0 -> faults--; create() }                          /* done, but the answer is lost */
    :: atomic { faults > 0 -> faults-- }                                    /* not done, and the same is seen */
    :: atomic { faults > 0 && doomed[me * 2 + 1] == 0 ->                    /* done, and then the session ends */
            faults--; create(); take(); doom_one(0); doom_one(1);
            if
            :: NO(STALE) -> late[0] = mine[0]; late[1] = mine[1]; goto entering
            :: else                                                         /* its owner does not know yet */
            fi }
    :: atomic { GIVES_UP && doomed[me * 2 + 1] == 0 -> create(); forget(NO(ABANDONED)); goto over }
    fi;

    /* outcome unknown */
    sure = false;
    if
    :: NO(BLIND) -> goto entering
    :: atomic { GIVES_UP -> forget(NO(GHOSTS)); goto over }
    :: atomic { !NO(BLIND) && number[me * 2 + 1] != 0 && (!BOTH || number[me * 2] != 0) -> take() }
    :: atomic { !NO(BLIND) && ((number[me * 2 + 1] == 0) != (number[me * 2] == 0)) && BOTH ->      /* a part of it */
            forget(NO(RESTLEFT)); goto entering }
    :: !NO(BLIND) && number[me * 2] == 0 && number[me * 2 + 1] == 0 -> goto entering
    :: atomic { NO(FOREIGN) && doomed[me * 2 + 1] != 0 -> mine[0] = doomed[me * 2]; mine[1] = doomed[me * 2 + 1] }
    :: NO(NOSYNC) && number[me * 2 + 1] != 0 -> goto entering
    :: atomic { faults > 0 && number[me * 2] == 0 && number[me * 2 + 1] == 0 ->     /* not found, and it happens after all */
            faults--; create(); strand(0); strand(1); create(); take(); sure = true }; goto reading
    fi;
    atomic { read(); goto placing };

reading:                /* what was sent behind the transaction */
    if
    :: atomic {
            if
            :: NO(OTHERZXID) -> other = (BOTH -> last[0] : last[1])
            :: else
            fi;
            only = (!BOTH || ONLY(0));
            one = (!BOTH || ALONE(0)) }
    :: atomic { faults > 0 -> faults--; sure = false; read(); goto placing }    /* the connection breaks */
    :: atomic { GIVES_UP -> forget(NO(LEFT)); goto over }
    fi;
    if
    :: atomic {
            only = only && ONLY(1);
            one = one && ALONE(1);
            if
            :: only -> read(); holding[me] = true; goto held
            :: !only && one -> read(); goto verifying                       /* its one child is ours if a check finds it */
            :: else -> read()
            fi }
    :: atomic { faults > 0 -> faults--; sure = false; read() }
    fi;

placing:
    atomic {
        if
        :: !ALL_THERE -> forget(NO(RESTLEFT)); goto entering
        :: !ALL_THERE && !sure -> look()                                    /* this server has not seen that yet */
        :: ALL_THERE -> sweep(); look()
        fi;
        if
        :: before[0] + before[1] == 0 && sure -> holding[me] = true; goto held
        :: before[0] + before[1] == 0 && !sure -> goto verifying
        :: before[0] + before[1] != 0 -> sure = false
        fi
    };
    if
    :: NO(VANISHED) && ((before[0] != 0 && !THERE(0, watched[0])) || (before[1] != 0 && !THERE(1, watched[1]))) ->
        goto unwatched
    :: else
    fi;

waiting:                /* for all who are in the way */
    if
    :: (before[0] == 0 || !THERE(0, watched[0])) && (before[1] == 0 || !THERE(1, watched[1]))
    :: atomic { NO(ANYEVENT) && faults > 0 -> faults-- }                    /* otherwise it is watched again */
    :: atomic { GIVES_UP -> forget(NO(LEFT)); goto over }
    :: atomic { faults > 0 -> faults-- } ->                                 /* the connection breaks, and the watches with it */
        if
        :: NO(WAITSON) -> goto unwatched
        :: else -> goto placing
        fi
    :: atomic { faults > 0 && doomed[me * 2 + 1] == 0 -> faults--; doom_one(0); doom_one(1) } ->     /* the session ends */
        if
        :: NO(FORMER) -> goto placing
        :: else -> goto entering
        fi
    fi;
    if
    :: NO(NOCHECK) && before[0] <= 1 && before[1] <= 1 -> holding[me] = true; goto held
    :: (before[0] <= 1 && before[1] <= 1 && !NO(NOCHECK)) || NO(NORELIST) -> goto verifying
    :: atomic { (before[0] > 1 || before[1] > 1) && !NO(NORELIST) && ALL_THERE -> sure = true }; goto placing
    :: atomic { (before[0] > 1 || before[1] > 1) && !NO(NORELIST) && !ALL_THERE -> forget(NO(RESTLEFT)) }; goto entering
    fi;

unwatched:
    GIVES_UP;
    atomic { doom_one(0); doom_one(1); goto over };

verifying:
    if
    :: atomic { ALL_THERE -> holding[me] = true }
    :: atomic { !ALL_THERE -> forget(NO(RESTLEFT)) }; goto entering
    fi;

held:
    assert(!OVERLAP);
    holding[me] = false;
    if
    :: atomic { number[me * 2] = 0; number[me * 2 + 1] = 0; if :: BOTH -> last[0] = 0 :: else fi; last[1] = 0; if :: NO(TWICE) -> ghost[me * 2 + 1] = 0 :: else fi }
    :: atomic { faults > 0 -> faults--; doom_one(0); doom_one(1) }          /* its outcome is unknown, and it is repeated */
    fi;

over:
    ended++
}

#define REAPED(i) atomic { doomed[i] != 0 -> doomed[i] = 0; last[i % 2] = 0 }
#define DELETED(i) atomic { faults > 0 && number[i] != 0 && !holding[i / 2] -> faults--; number[i] = 0; last[i % 2] = 0 }

/* Sends deletes again until they are answered; and the servers end sessions. */
proctype reaper() {
end:
    do
    :: REAPED(0)
    :: REAPED(1)
    :: REAPED(2)
    :: REAPED(3)
    :: REAPED(5)
    od
}

proctype operator() {
end:
    do
    :: DELETED(0)
    :: DELETED(1)
    :: DELETED(2)
    :: DELETED(3)
    :: DELETED(5)
    od
}

init {
    atomic { run client(0); run client(1); run client(2); run reaper(); run operator() }
    ended == C && doomed[0] == 0 && doomed[1] == 0 && doomed[2] == 0 && doomed[3] == 0 && doomed[4] == 0 && doomed[5] == 0;
    assert(number[0] == 0 && number[1] == 0 && number[2] == 0 && number[3] == 0 && number[4] == 0 && number[5] == 0);
    assert(ghost[0] == 0 && ghost[1] == 0 && ghost[2] == 0 && ghost[3] == 0 && ghost[4] == 0 && ghost[5] == 0);
    assert(markers == 0)
}
