/*
 * One queue, as AcquireFsm stands in it.  Three clients acquire and release ROUNDS times each.  FAULTS faults may happen,
 * at any moment: an answer is lost, with or without the request having been executed; a connection breaks under a watch;
 * a session ends; an operator deletes the node of a waiter.  A client may give up whenever it waits.
 *
 * A node is its sequence number.  A client has one at most, beside one that is being deleted (`doomed`), as after a
 * release whose answer was lost.  A second one (`ghost`) is a mistake.
 *
 * What is not here is time: that a hold ends before the servers may end the session is the subject of lease.pml.
 *
 * Properties: those who exclude each other never hold together (assertion); everybody is served or gives up (no invalid
 * end state); at the end there is no node (assertion).
 *
 *   -DSHARES        clients 1 and 2 share, client 0 wants to be alone
 *   -DNOGIVEUP      nobody gives up
 *
 * Each of these takes one defence away, and must be refuted:
 *   -DBLIND         an unknown create is sent again without looking
 *   -DNOSYNC        ... is looked for in a list that may be older than it
 *   -DGHOST         ... is forgotten by whoever gives up
 *   -DNORELIST      the first event is believed: whoever was watched is gone, so that it is our turn
 *   -DNOLOOK        after a reconnect the wait goes on, without the watch
 *   -DVANISHED      whoever is gone before the watch is set is waited for
 *   -DMISSING       who is not in the list himself, and has nobody before him, holds
 *   -DFORMER        the node of a session that ended is relied on in the next one
 *   -DEARLY         the node is deleted while its owner still believes
 *   -DFIRST         the first in the way is watched instead of the nearest, and its end is believed
 */
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#define C 3

byte next;
byte number[C];       /* 0: not there */
byte doomed[C];
byte ghost[C];
bool holding[C];
byte faults = FAULTS;
byte ended;

#ifdef SHARES
#define SHARED(c) ((c) != 0)
#else
#define SHARED(c) false
#endif
#define EXCLUDE(o, c) ((o) != (c) && !(SHARED(o) && SHARED(c)))
#define OVERLAP(o, c) (holding[o] && holding[c] && EXCLUDE(o, c))
#define IS(c, n) (number[c] == (n) || doomed[c] == (n) || ghost[c] == (n))
#define THERE(n) (IS(0, n) || IS(1, n) || IS(2, n))

inline look_at(n) {
    if
    :: n != 0 && n < mine ->
        before++;
#ifdef FIRST
        if :: watched == 0 || n < watched -> watched = n :: else fi
#else
        if :: n > watched -> watched = n :: else fi
#endif
    :: else
    fi
}

inline look() {         /* one answer: who is before us and in our way */
    watched = 0;
    before = 0;
    o = 0;
    do
    :: o < C ->
        if
        :: EXCLUDE(o, me) -> look_at(number[o]); look_at(doomed[o]); look_at(ghost[o])
        :: o == me && !SHARED(me) -> look_at(doomed[o])
        :: else
        fi;
        o++
    :: else -> break
    od;
    o = 0
}

inline create() {
    if :: number[me] != 0 -> ghost[me] = number[me] :: else fi;     /* only where a defence is missing */
    next++;
    number[me] = next
}

proctype client(byte me) {
    byte mine = 0, watched = 0, before = 0, o = 0, round = 0;

entering:
    if
    :: atomic { create(); mine = number[me] }; goto listing
    :: atomic { faults > 0 -> faults--; create(); mine = 0 }            /* done, but the answer is lost */
    :: atomic { faults > 0 -> faults--; mine = 0 }                      /* not done, and the same is seen */
    fi;

    /* outcome unknown */
#ifdef BLIND
    goto entering;
#endif
    if
#ifndef NOGIVEUP
    :: true ->                                                          /* gives up: found by its identity */
#ifndef GHOST
        number[me] = 0;
#endif
        goto over
#endif
    :: atomic { number[me] != 0 -> mine = number[me] }
    :: number[me] == 0 -> goto entering
#ifdef NOSYNC
    :: number[me] != 0 -> goto entering                                 /* this server has not seen it yet */
#endif
    fi;

listing:
    atomic {
        if
        :: number[me] != mine ->                                        /* deleted by somebody else */
#ifdef MISSING
            look();
            if :: before == 0 -> holding[me] = true; goto held :: else fi;
#endif
            goto entering
        :: else -> look()
        fi
    };
    if
    :: before == 0 -> goto verifying
    :: else
    fi;

    /* the watch, and what may have happened since the list */
    if
    :: THERE(watched) -> goto waiting
    :: !THERE(watched) ->
#ifdef VANISHED
        false;
#endif
        goto gone
    fi;

waiting:
    if
    :: !THERE(watched) -> goto gone
#ifndef NOGIVEUP
    :: true -> number[me] = 0; goto over
#endif
    :: atomic { faults > 0 -> faults-- } ->                             /* the connection breaks, and the watch with it */
#ifdef NOLOOK
        false;
#endif
        goto listing
    :: atomic { faults > 0 -> faults--; number[me] = 0 } ->             /* the session ends */
#ifdef FORMER
        if
        :: !THERE(watched) -> holding[me] = true; goto held
        fi;
#endif
        goto entering
    fi;

gone:
#if defined(NORELIST) || defined(FIRST)
    goto verifying;
#endif
    if
    :: before == 1 -> goto verifying                                    /* nobody else was before us */
    :: else -> goto listing
    fi;

verifying:              /* committed, and the lease is from its sending on */
    if
    :: atomic { number[me] == mine -> holding[me] = true }
    :: number[me] != mine -> goto entering
    fi;

held:
    assert(!OVERLAP(0, 1) && !OVERLAP(0, 2) && !OVERLAP(1, 2));
#ifdef EARLY
    number[me] = 0;
#endif
    holding[me] = false;
    if
    :: number[me] = 0                                                   /* executed before anything that follows */
    :: atomic { faults > 0 && doomed[me] == 0 -> faults--; doomed[me] = number[me]; number[me] = 0 }
    fi;

over:
    round++;
    mine = 0;
    if
    :: round < ROUNDS -> goto entering
    :: else
    fi;
    ended++
}

/* Sends deletes again whose answers were lost, until they are answered. */
proctype reaper() {
end:
    do
    :: doomed[0] != 0 -> doomed[0] = 0
    :: doomed[1] != 0 -> doomed[1] = 0
    :: doomed[2] != 0 -> doomed[2] = 0
    od
}

proctype operator() {
end:
    do
    :: atomic { faults > 0 && number[0] != 0 && !holding[0] -> faults--; number[0] = 0 }
    :: atomic { faults > 0 && number[1] != 0 && !holding[1] -> faults--; number[1] = 0 }
    :: atomic { faults > 0 && number[2] != 0 && !holding[2] -> faults--; number[2] = 0 }
    od
}

init {
    atomic { run client(0); run client(1); run client(2); run reaper(); run operator() }
    ended == C && doomed[0] == 0 && doomed[1] == 0 && doomed[2] == 0;
    assert(number[0] == 0 && number[1] == 0 && number[2] == 0 && ghost[0] == 0 && ghost[1] == 0 && ghost[2] == 0)
}
