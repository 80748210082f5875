/*
 * One queue, as AcquireFsm stands in it.  Three clients acquire and release ROUNDS times each.  FAULTS faults may happen,
 * at any moment: an answer is lost, with or without the request having been executed; a connection breaks under a watch;
 * a session ends, while its nodes are seen for some time more; a lease passes; an operator deletes the node of a waiter.
 * After a wait a list may be older than the deletion of the own node.  A client may give up at any moment, also while its
 * create is on its way.
 *
 * A node is its sequence number.  A client has one at most, beside one that somebody will delete (`doomed`): a release
 * whose answer was lost, so that the next acquire begins before it; whatever the one who gives up leaves to the reaper; a
 * node of a former session, which the servers delete.  A node that nobody will delete any more (`ghost`) is a mistake.
 *
 * What is not here is time: that a hold ends before the servers may end the session is the subject of lease.pml.
 *
 * While it waits, a client may learn that nobody but the one whom it watches is before it, and that its own node is there
 * and watched (`ready`). Then the end of the other one lets it hold at once. Events come in order: an own node that went
 * before is told before.
 *
 * Properties: those who exclude each other never hold together (assertion); everybody is served or gives up (no invalid
 * end state); at the end there is no node (assertion).
 *
 *   -DSHARES        clients 1 and 2 share, client 0 wants to be alone
 *   -DNOGIVEUP      nobody gives up
 *   -DWITHOUT=NAME  without one of these defences:
 */
#define BLIND 1         /* an unknown create is sent again without looking */
#define NOSYNC 2        /* ... is looked for in a list that may be older than it */
#define GHOST 3         /* ... is forgotten by whoever gives up */
#define NORELIST 4      /* the first event is believed: whoever was watched is gone, so that it is our turn */
#define NOLOOK 5        /* after a reconnect the wait goes on, without the watch */
#define VANISHED 6      /* whoever is gone before the watch is set is waited for */
#define MISSING 7       /* who is not in the list himself, and has nobody before him, holds */
#define FORMER 8        /* the node of a session that ended is relied on in the next one */
#define EARLY 9         /* the node is deleted while its owner still believes */
#define OWNER 10        /* a create answered for a former session is taken for the own node */
#define FOUND 11        /* a node found by its identity is adopted, whoever owns it */
#define STALE 12        /* the answer to a create of a former session takes the place of the new one */
#define NOSWEEP 13      /* a create that happens after the search leaves its node */
#define ONENAME 14      /* clients 1 and 2 are one session, and their nodes have one identity */
#define NOCHECK 15      /* after the wait nobody asks whether the own node is still there */
#define LISTALONE 16    /* ... a list is enough, which may be old */
#define COUNT 17        /* one child must be the own one */
#define NOLIST 18       /* after a reconnect the old knowledge of the queue counts */
#define ANYEVENT 19     /* a change of data is taken for the end of whoever is watched */
#define NAMES 20        /* the order is that of the names */
#define NOWRAP 21       /* the second number is negative, and comes before the first */
#define NOEND 22        /* from the second number on all are the same, and names decide */
#define LATER 23        /* whoever came later is waited for, too */
#define STRANGER 24     /* a child that is no lock node is waited for */
#define NOBLOCK 25      /* a writer does not wait for readers */
#define TWOQUEUES 26    /* client 0 has another recipe than the others, and they do not see each other */
#define LEFT 27         /* whoever gives up waiting leaves its node */
#define ABANDONED 28    /* ... does not stay behind for the answer to its create */
#define ABANDONEDGHOST 29   /* ... stays, and does not look for an unknown one */
#define SECONDEND 30    /* ... stays until it is told a second time to end */
#define REAPSTALE 31    /* ... looks for an unknown one in a list that may be older than it */
#define LOSTLEFT 32     /* the node of a lost hold is not deleted when it is given back */
#define DROPPED 33      /* a release without a connection is forgotten */
#define NOREPEAT 34     /* a delete with an unknown outcome is not repeated */
#define GONE 35         /* a node that is gone already is no success of a delete */
#define OUTLIVES 36     /* a hold goes on after its session */
#define REENTRY 37      /* a lost hold is entered again */
#define NEXT 38         /* an event grants: nobody has looked who else is before us */
#define OWNWATCH 39     /* ... nobody would have told that the own node is gone */
#define AWAY 40         /* ... also after an outage, when what was missed is told in any order */

#ifndef WITHOUT
#define WITHOUT 0
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#define C 3

byte without = WITHOUT;
byte next;
byte number[C];       /* 0: not there */
byte doomed[C];
byte ghost[C];
bool holding[C];
byte faults = FAULTS;
byte ended;
bool endless;         /* a delete that never ends */

#define NO(defence) (without == (defence))
#ifdef NOGIVEUP
#define GIVES_UP false
#else
#define GIVES_UP true
#endif
#ifdef SHARES
#define SHARED(c) ((c) != 0)
#else
#define SHARED(c) false
#endif
#define EXCLUDE(o, c) ((o) != (c) && !(SHARED(o) && SHARED(c)))
#define OVERLAP(o, c) (holding[o] && holding[c] && EXCLUDE(o, c))
#define IS(c, n) (number[c] == (n) || doomed[c] == (n) || ghost[c] == (n))
#define THERE(n) (IS(0, n) || IS(1, n) || IS(2, n) || (n) == 255)
#define ONE(n) ((n) != 0 -> 1 : 0)
#ifdef SHARES
#define EVENTS false
#define WAITS(c) (number[c] != 0 && !holding[c])
#else
#define EVENTS true     /* a node that is first counts as its holder's, who may not know it yet */
#define WAITS(c) (number[c] != 0 && !holding[c] && AHEAD(number[c]) != 0)
#endif
#define ONE_BELOW(m, n) ((m) != 0 && (m) < (n) -> 1 : 0)
#define BELOW(c, n) (ONE_BELOW(number[c], n) + ONE_BELOW(doomed[c], n) + ONE_BELOW(ghost[c], n))
#define AHEAD(n) (BELOW(0, n) + BELOW(1, n) + BELOW(2, n))
#define NODES(c) (ONE(number[c]) + ONE(doomed[c]) + ONE(ghost[c]))

/* The order, and who is looked at. */
#define SIGNED(n) ((n) < 2 -> 100 : (n))
#define STUCK(n) ((n) < 2 -> (n) : 2)
#define EARLIER(n) ( \
    NO(NAMES) -> o < me : \
    (NO(NOWRAP) -> SIGNED(n) < SIGNED(mine) : \
    (NO(NOEND) -> STUCK(n) < STUCK(mine) || (STUCK(n) == STUCK(mine) && o < me) : \
    (n) < mine || NO(LATER))))
#define SEES(o, c) (EXCLUDE(o, c) && !(NO(NOBLOCK) && SHARED(o)) && !(NO(TWOQUEUES) && ((o) == 0 || (c) == 0)))

inline look_at(n) {
    if
    :: n != 0 && EARLIER(n) ->
        before++;
        if :: n > watched -> watched = n :: else fi
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
        :: SEES(o, me) -> look_at(number[o]); look_at(doomed[o]); look_at(ghost[o])
        :: o == me && !SHARED(me) && doomed[o] != mine -> look_at(doomed[o]); look_at(ghost[o])
        :: else
        fi;
        o++
    :: else -> break
    od;
    o = 0;
    if :: NO(STRANGER) -> before++; watched = 255 :: else fi
}

inline create() {
    if :: number[me] != 0 -> ghost[me] = number[me] :: else fi;     /* only where a defence is missing */
    next++;
    number[me] = next
}

inline doom() {         /* it will be deleted, at some time */
    if
    :: doomed[me] == 0 -> doomed[me] = number[me]
    :: else
    fi;
    number[me] = 0
}

inline forget(missing) {    /* ... or not */
    if
    :: missing && number[me] != 0 -> ghost[me] = number[me]; number[me] = 0
    :: else -> doom()
    fi
}

proctype client(byte me) {
    byte mine = 0, watched = 0, before = 0, o = 0, round = 0, late = 0;
    bool ready = false, unordered = false;
    bool sure = false;      /* the session was confirmed since the last wait: by our own create, or by a check */

entering:
    sure = true;
    if
    :: atomic { create(); mine = number[me] }; goto listing
    :: atomic { NO(STALE) && late != 0 -> create(); mine = late; late = 0; goto listing }
    :: atomic { faults > 0 -> faults--; create(); mine = 0 }            /* done, but the answer is lost */
    :: atomic { faults > 0 -> faults--; mine = 0 }                      /* not done, and the same is seen */
    :: atomic { faults > 0 && doomed[me] == 0 ->                        /* done, and then the session ends */
            faults--; create(); mine = number[me]; doom();
            if
            :: NO(OWNER) -> goto listing
            :: NO(STALE) -> late = mine; goto entering
            :: else -> mine = 0                                         /* its owner does not know yet */
            fi }
    :: atomic { GIVES_UP && doomed[me] == 0 ->                          /* gives up, and somebody stays behind */
            create(); forget(NO(ABANDONED) || NO(SECONDEND)); goto over }
    :: atomic { GIVES_UP && faults > 0 && doomed[me] == 0 ->            /* ... who gets no answer */
            faults--; create(); forget(NO(ABANDONEDGHOST)); goto over }
    fi;

    /* outcome unknown */
    sure = false;
    if
    :: NO(BLIND) -> goto entering
    :: atomic { GIVES_UP -> forget(NO(GHOST) || NO(REAPSTALE)); goto over }     /* found by its identity */
    :: atomic { !NO(BLIND) && number[me] != 0 -> mine = number[me] }
    :: !NO(BLIND) && number[me] == 0 -> goto entering                   /* also: what is there has another owner */
    :: atomic { NO(FOUND) && doomed[me] != 0 -> mine = doomed[me] }
    :: atomic { NO(ONENAME) && me != 0 && number[3 - me] != 0 -> mine = number[3 - me] }
    :: NO(NOSYNC) && number[me] != 0 -> goto entering                   /* this server has not seen it yet */
    :: atomic { faults > 0 && number[me] == 0 ->                        /* not found, and it happens after all */
            faults--; next++; ghost[me] = next; create(); mine = number[me]; sure = true }
    fi;

listing:
    atomic {
        if
        :: NO(COUNT) && NODES(0) + NODES(1) + NODES(2) == 1 -> holding[me] = true; goto held
        :: !THERE(mine) ->                                              /* deleted by somebody else */
            if
            :: NO(MISSING) -> look(); if :: before == 0 -> holding[me] = true; goto held :: else fi
            :: else
            fi;
            goto entering
        :: !THERE(mine) && !sure -> look()                              /* this server has not seen that yet */
        :: THERE(mine) ->
            if :: ghost[me] != 0 && !NO(NOSWEEP) && !NO(BLIND) -> ghost[me] = 0 :: else fi;
            look()
        fi;
        if
        :: before == 0 && (sure || NO(LISTALONE)) -> holding[me] = true; goto held
        :: before == 0 && !sure && !NO(LISTALONE) -> goto verifying
        :: before != 0 -> sure = false
        fi;
        ready = false;
        unordered = false
    };

    /* the watch, and what may have happened since the list */
    if
    :: THERE(watched) -> goto waiting
    :: !THERE(watched) && NO(VANISHED) -> goto unwatched
    :: !THERE(watched) && !NO(VANISHED) -> goto gone
    fi;

waiting:
    if
    :: !THERE(watched) -> goto gone
    :: atomic { NO(ANYEVENT) && faults > 0 -> faults--; goto gone }     /* otherwise it is watched again */
    :: atomic { EVENTS && !ready && !unordered && THERE(watched) && THERE(mine) && (AHEAD(mine) == 1 || NO(NEXT)) ->
            look();                                                     /* and watches its own node */
            if :: before == 1 || NO(NEXT) -> ready = true :: else -> unordered = true fi;   /* once is enough */
            goto waiting }
    :: ready && THERE(watched) && !THERE(mine) && !NO(OWNWATCH) && !unordered -> goto entering
    :: atomic { GIVES_UP -> forget(NO(LEFT)); goto over }
    :: atomic { faults > 0 -> faults--; ready = ready && NO(AWAY); unordered = true } ->    /* the connection breaks */
        if
        :: NO(NOLOOK) -> goto unwatched
        :: NO(NOLIST) -> goto verifying
        :: else ->
            if
            :: goto waiting                                             /* the watch is set again, and tells what was missed */
            :: goto listing                                             /* it was not set yet */
            fi
        fi
    :: atomic { faults > 0 && doomed[me] == 0 -> faults--; doom() } ->  /* the session ends */
        if
        :: NO(FORMER) -> goto listing
        :: else -> goto entering
        fi
    fi;

unwatched:
    GIVES_UP;
    atomic { doom(); goto over };

gone:
    if
    :: atomic { ready && (THERE(mine) || NO(OWNWATCH) || unordered) -> holding[me] = true }; goto held
    :: ready && !THERE(mine) && !NO(OWNWATCH) && !unordered -> goto entering
    :: NO(NOCHECK) && before == 1 -> holding[me] = true; goto held
    :: !NO(NOCHECK) && before == 1 -> goto verifying                    /* nobody else was before us */
    :: before != 1 && NO(NORELIST) -> goto verifying
    :: atomic { before != 1 && !NO(NORELIST) && THERE(mine) -> sure = true }; goto listing    /* checked, and listed after it */
    :: before != 1 && !NO(NORELIST) && !THERE(mine) -> goto entering
    fi;

verifying:              /* committed, and the lease is from its sending on */
    if
    :: atomic { THERE(mine) -> holding[me] = true }
    :: !THERE(mine) -> goto entering
    fi;

held:
    assert(!OVERLAP(0, 1) && !OVERLAP(0, 2) && !OVERLAP(1, 2));
    if
    :: NO(EARLY) -> number[me] = 0
    :: true
    :: atomic { faults > 0 -> faults--; holding[me] = NO(OUTLIVES) };   /* the session ends, the belief before it */
        number[me] = 0;
        if
        :: NO(REENTRY) -> holding[me] = true; goto held
        :: else
        fi
    :: atomic { faults > 0 -> faults--; holding[me] = false };          /* the lease passes, and the session lives */
        atomic { forget(NO(LOSTLEFT)); goto over }
    fi;
    holding[me] = false;
    if
    :: number[me] = 0                                                   /* executed before anything that follows */
    :: atomic { faults > 0 -> faults--; forget(NO(DROPPED) || NO(NOREPEAT)) }
    :: atomic { faults > 0 -> faults--; number[me] = 0; endless = NO(GONE) }    /* executed, and sent again */
    fi;

over:
    atomic {
        round++;
        mine = 0; watched = 0; before = 0;
        if
        :: round < ROUNDS -> goto entering
        :: else
        fi
    };
    ended++
}

/* Sends deletes again whose answers were lost, until they are answered; and the servers end sessions. */
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
    :: atomic { faults > 0 && WAITS(0) -> faults--; number[0] = 0 }
    :: atomic { faults > 0 && WAITS(1) -> faults--; number[1] = 0 }
    :: atomic { faults > 0 && WAITS(2) -> faults--; number[2] = 0 }
    od
}

init {
    atomic { run client(0); run client(1); run client(2); run reaper(); run operator() }
    ended == C && !endless && doomed[0] == 0 && doomed[1] == 0 && doomed[2] == 0;
    assert(number[0] == 0 && number[1] == 0 && number[2] == 0 && ghost[0] == 0 && ghost[1] == 0 && ghost[2] == 0)
}
