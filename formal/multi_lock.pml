/*
 * Sets of locks, entered by one transaction.  Three clients, three directories; client c wants the directories c and
 * c + 1, so that every two sets overlap and all three form a circle.
 *
 * In each directory the contenders have numbers in the order in which they came, as the servers give them.  A client
 * holds when nobody with a lower number is in its way in any of its directories.  It may give up while it waits, at any
 * moment, and it does all of this ROUNDS times.
 *
 * Properties: two that exclude each other never hold at the same time (assertion), and there is no deadlock (no invalid
 * end state: every client ends its rounds).
 *
 *   -DMODES     directory 1 is shared by both who want it, directory 0 by one of them
 *   -DSINGLE    client 2 uses its first directory alone, as one who knows nothing of sets
 *   -DSEPARATE  the nodes are made one after the other instead          refuted
 *   -DNESTED    a client holds the second directory before it enters both sets of nodes, as one does who acquires
 *               while holding                                          refuted
 *   -DSORTED    client 2 takes its two directories one after the other, the smaller one first, as one does who knows
 *               only single locks and orders them (Curator's multi-lock)                              refuted
 *   -DNOGIVEUP  nobody gives up; without it a deadlock of the three above would dissolve
 *   -DONEGIVESUP  only client 2 gives up
 */
#ifdef NOGIVEUP
#define GIVES_UP false
#else
#ifdef ONEGIVESUP
#define GIVES_UP (me == 2)
#else
#define GIVES_UP true
#endif
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define C 3
#define D 3

byte next[D];          /* the number that the next contender gets, less one */
byte number[9];        /* of client c in directory d, at c * D + d; 0: not there */
bool holding[C];

#define N(c, d) number[(c) * D + (d)]
#ifdef MODES
#define SHARED(c, d) ((d) == 1 || ((c) == 0 && (d) == 0))
#else
#define SHARED(c, d) false
#endif
#define IN_THE_WAY(o, c, d) ((o) != (c) && N(o, d) != 0 && N(o, d) < N(c, d) && !(SHARED(o, d) && SHARED(c, d)))
#define FIRST(c, d) (!IN_THE_WAY(0, c, d) && !IN_THE_WAY(1, c, d) && !IN_THE_WAY(2, c, d))
#define EXCLUDE(o, c, d) (N(o, d) != 0 && N(c, d) != 0 && !(SHARED(o, d) && SHARED(c, d)))
#define OVERLAP(o, c) (holding[o] && holding[c] && (EXCLUDE(o, c, 0) || EXCLUDE(o, c, 1) || EXCLUDE(o, c, 2)))

inline enter(d) {
    atomic { next[d]++; N(me, d) = next[d] }
}

inline leave_all() {
    N(me, 0) = 0;
    N(me, 1) = 0;
    N(me, 2) = 0
}

inline enter_set() {
#ifdef SINGLE
    if
    :: me == 2 -> enter(a)
    :: else -> atomic { enter(a); enter(b) }
    fi
#else
#ifdef SEPARATE
    enter(a);
    enter(b)
#else
    atomic { enter(a); enter(b) }
#endif
#endif
}

proctype client(byte me) {
    byte a = me, b = (me + 1) % D, round = 0;
    do
    :: round < ROUNDS ->
#ifdef NESTED
        enter(b);
        FIRST(me, b);                  /* held alone; and now one more */
        enter(a);
#else
#ifdef SORTED
        if
        :: me == 2 ->                  /* wants 2 and 0 */
            enter(b);
            if
            :: FIRST(me, b) -> enter(a)
            :: GIVES_UP -> goto leave
            fi
        :: else -> enter_set()
        fi;
#else
        enter_set();
#endif
#endif
        if
        :: atomic {
            (N(me, a) == 0 || FIRST(me, a)) && (N(me, b) == 0 || FIRST(me, b)) -> holding[me] = true;
            assert(!OVERLAP(0, 1) && !OVERLAP(0, 2) && !OVERLAP(1, 2))
           }
        :: GIVES_UP                    /* timed out */
        fi;
leave:
        atomic { holding[me] = false; leave_all() }     /* one transaction */
        round++
    :: else -> break
    od
}

init {
    atomic { run client(0); run client(1); run client(2) }
}
