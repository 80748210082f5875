/*
 * Hand-over of a node inside a process, and a lock that is kept after its release.  Session A has waiters of one lock.
 * Its first node is held, or kept.  At a release, a local waiter gets the same node, at most N times; if nobody waits,
 * the node is kept until another contender appears.  The next node is created when the last possible hold of the first
 * one begins, or before the first one is given back.  Client B takes the lock BROUNDS times.
 *
 * A holder of A may make one guarded write.  It sends this on its own session, on another session, or it gives a text of
 * its hold to another process (a sequencer), which may write at any later time.  A write may be executed at any time
 * after its sending, as long as the node exists.
 *
 * FAULTS faults may happen, at any moment: the connection breaks; the lease passes, and then the servers may end the
 * session; an operator deletes the first node; somebody asks for the lock (a revocation).  The unit of time is the
 * interval between two heartbeats.  What local_queue.pml checks is taken for granted here.
 *
 * Properties, all assertions: two holders never believe at once, unless an operator has deleted the node and the holder
 * does not know yet.  A guarded write is executed only if nobody was granted the lock after the hold that made it.  A
 * token is not smaller than an earlier one, and it is larger unless the former holder released inside this process.  From
 * the creation of the node of B to its grant, at most N + 1 holds of A begin that are not re-acquires of a kept lock.  A
 * kept lock is re-acquired only if its node existed less than two intervals ago, and if the event is on its way when
 * another contender waits or the node is gone.  No hold begins on a node that its session was asked to give back.
 *
 *   -DLIMITS        holds may end by their time (max_hold), while their owners go on
 *   -DDOWNGRADES    a holder may change to a shared hold, and then releases the node
 *   -DTRIES         A tries once, beside the places of its waiters
 *   -DANSWERED      a write on another session prevents hand-overs only until it is answered
 *   -DWITHOUT=NAME  without one of these defences:
 */
#define TEXT 1          /* a node is handed over although a sequencer was made */
#define OTHER 2         /* ... although a write was sent on another session */
#define LATEMARK 3      /* a write on another session is noted when it was sent, and not before */
#define FLYING 4        /* a node is handed over although a write is unanswered */
#define UNSURE 5        /* ... although the outcome of a write is unknown */
#define OWNLOSS 6       /* only the first holder of a node is told of its loss */
#define HANDLOST 7      /* the next local waiter gets the node of a lost hold */
#define STALE 8         /* a node is handed over on a lease that has passed */
#define BOTH 9          /* the hold of the successor begins before the former one ends */
#define KEPTSTALE 10    /* a kept lock is re-acquired on a lease that has passed */
#define UNCHECKED 11    /* ... without a recent check of its node */
#define UNWATCHED 12    /* ... after a break of the connection, without the watch */
#define CROWDED 13      /* it is kept although the list that sets the watch shows others */
#define FORGOTTEN 14    /* an event during a hold is forgotten */
#define RENEWED 15      /* a re-acquire of a kept lock begins to count anew */
#define EARLYNEXT 16    /* the next node is created when the first one is granted */
#define ASKED 17        /* a successor does not inherit the revocation */
#define UNPROVEN 19     /* a node is handed over without a recent check */
#define UNTOLD 18       /* the grant of the next node does not end the hold of the first one */
#define OVERTIME 20     /* a node is handed over when the time of its holder is over */
#define EARLYEND 21     /* ... deleted before the hold ends */
#define BELOW 22        /* a node is handed over beside the share of its holder */
#define TRIED 23        /* a try that is granted does not end the hold of the first node */

#ifndef WITHOUT
#define WITHOUT 0
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef N
#define N 1
#endif
#ifndef HOLDERS
#define HOLDERS 4       /* of session A, in all */
#endif
#ifndef BROUNDS
#define BROUNDS 1
#endif
#define NODES 10

/* Of the first node. */
#define NOBODY 0
#define HELD 1
#define LOST 2          /* its owner was told, and has not released yet */
#define KEPT 3

/* The guarded write. */
#define NONE 0
#define MEANT 1         /* its hold was looked at, and it is not sent yet */
#define OWN 2           /* on its way on the own session */
#define ELSEWHERE 3     /* ... on another session */
#define UNKNOWN 4       /* ... or not */
#define POSSIBLE 5      /* another process has the text */
#define DONE 6

byte without = WITHOUT;
byte faults = FAULTS;
bool exists[NODES];
bool doomed[NODES];     /* a delete is on its way */
byte zxid;

byte b_rounds = BROUNDS;
byte first, next, b;    /* nodes; 0: none */
byte state;             /* of the first node */
byte used;              /* hand-overs of the first node */
bool marked, asked, remembered;
bool over;              /* the time of its holder */
bool below;             /* its holder has a share, too */
bool share, trying;
#ifdef TRIES
byte tries = 1, tried;
#endif
byte waiting, absent = HOLDERS;
bool fresh = true;      /* the lease */
byte age;               /* of the last check of the first node */

bool listing, armed;    /* what A knows about the watch of a kept lock */
bool watch, event;      /* of the server; on its way */

byte write, write_node, write_grant;

/* What nobody knows. */
byte grants, believing, since;
bool b_holds;
byte token;
bool given_back;        /* by the last holder, inside this process */
bool broken;            /* the operator has deleted the first node, and A does not know yet */
byte gone_for;

#define NO(defence) (without == (defence))
#define BEFORE(n, o) (exists[o] && n > o)
#define PRECEDED(n) (BEFORE(n, 1) || BEFORE(n, 2) || BEFORE(n, 3) || BEFORE(n, 4) || BEFORE(n, 5) || BEFORE(n, 6) || \
                     BEFORE(n, 7) || BEFORE(n, 8))
#define HEAD(n) (exists[n] && !PRECEDED(n) && !share)
#define B_WAITS (b != 0 && !b_holds)

#ifdef ANSWERED
#define IS_MARKED (marked || ((write == MEANT || write == ELSEWHERE) && write_node == first))
#define MARKS false
#else
#define IS_MARKED marked
#define MARKS (!NO(OTHER) && !NO(LATEMARK))
#endif
#define PENDING ((write == OWN && write_node == first && !NO(FLYING)) || \
                 (write == UNKNOWN && write_node == first && !NO(UNSURE)))
#define GOOD (!IS_MARKED && !PENDING && !(asked && !NO(ASKED)) && !(below && !NO(BELOW)) && (fresh || NO(STALE)) && (age < 2 || NO(UNPROVEN)))

inline notify() {       /* the directory has changed */
    if
    :: watch -> watch = false; event = true
    :: else
    fi
}

inline make(n) {
    zxid++;
    n = zxid;
    exists[n] = true
}

inline granted(n) {     /* to anybody */
    assert(believing + b_holds == 0 || broken);
    assert(!share);
    assert(n > token || (n == token && given_back) || broken);
    token = (n > token -> n : token);
    given_back = false;
    grants++
}

inline counted() {
    if
    :: B_WAITS -> since++; assert(since <= N + 1 || faults < FAULTS)
    :: else
    fi
}

inline pump() {
    if
    :: waiting > 0 && next == 0 && state != KEPT && (first == 0 || used >= N || NO(EARLYNEXT) ||
                                                      (state == LOST && !exists[first])) -> make(next)
    :: else
    fi
}

inline give_back() {    /* the next node first */
    if
    :: waiting > 0 && next == 0 -> make(next)
    :: else
    fi;
    doomed[first] = exists[first];
    forget_first()
}

inline forget_first() {
    first = 0; state = NOBODY; used = 0; marked = false; asked = false; remembered = false; broken = false;
    over = false; below = false; listing = false; armed = false; watch = false; event = false; age = 0; gone_for = 0
}

inline lose(all) {      /* the holder is told */
    if
    :: state == HELD ->
        if
        :: NO(OWNLOSS) && used > 0
        :: else -> believing = 0
        fi;
        state = LOST
    :: state == KEPT && all -> give_back()
    :: else
    fi;
    broken = broken && !all;
    pump()
}

inline begin() {        /* a local hold on the first node */
    assert(!asked);
    assert(exists[first] || gone_for < 2);
    waiting--;
    granted(first);
    believing++;
    state = HELD;
    if :: NO(EARLYNEXT) && waiting == 0 && next != 0 -> doomed[next] = true; next = 0 :: else fi
}

proctype A() {
end:
    do
    :: atomic { absent > 0 && waiting < 2 -> absent--; waiting++; pump() }

    /* A node is granted. */
    :: atomic { next != 0 && waiting > 0 && HEAD(next) && fresh ->
            if                                      /* the first node is gone, and its owner may not know yet */
            :: first != 0 && NO(UNTOLD) -> forget_first()
            :: first != 0 && !NO(UNTOLD) -> believing = 0; forget_first()
            :: else
            fi;
            first = next;
            next = 0;
            counted();
            begin();
            pump() }

    /* A release. */
    :: atomic { state == HELD && !over ->
            believing = (believing > 0 -> believing - 1 : 0);
            given_back = true;
            if
            :: waiting > 0 && used < N && GOOD ->
                used++;
                if :: NO(BOTH) -> believing++ :: else fi;
                counted();
                begin();
                pump()
            :: waiting == 0 && GOOD && !remembered ->
                state = KEPT;
                if :: !armed -> listing = true :: else fi
            :: !(waiting > 0 && used < N && GOOD) -> give_back()
            fi }
#ifdef LIMITS
    :: atomic { state == HELD && over ->                                        /* the time is over, or a release after it */
            believing = 0;
            if
            :: NO(OVERTIME) && waiting > 0 && used < N && GOOD -> used++; over = false; counted(); begin(); pump()
            :: else -> give_back()
            fi }
#endif
#ifdef DOWNGRADES
    :: atomic { state == HELD && exists[first] && !doomed[first] && fresh && !below -> below = true; share = true }
    :: atomic { share && !(state == HELD && below) -> share = false }
#endif
#ifdef TRIES
    :: atomic { tries > 0 && first == 0 && next == 0 && waiting == 0 -> tries--; trying = true }
    :: atomic { trying -> trying = false; make(tried);
            if
            :: HEAD(tried) && fresh ->
                if
                :: first != 0 && NO(TRIED) -> forget_first()
                :: first != 0 && !NO(TRIED) -> believing = 0; forget_first()
                :: else
                fi;
                first = tried;
                waiting++; counted(); begin(); pump()
            :: else -> doomed[tried] = true
            fi;
            tried = 0 }
#endif
    :: atomic { state == LOST ->
            if
            :: NO(STALE) && waiting > 0 && !broken && exists[first] && !fresh -> given_back = true; used++; begin()
            :: else -> give_back()
            fi }
    :: atomic { NO(HANDLOST) && state == LOST && waiting > 0 && fresh && exists[first] -> used++; begin() }

    /* The kept lock. */
    :: atomic { listing ->
            listing = false;
            if
            :: (b != 0 && exists[b] && !NO(CROWDED)) || !exists[first] ->
                if :: state == KEPT -> broken = false; give_back() :: else remembered = true fi
            :: else -> armed = true; watch = true
            fi }
    :: atomic { state == KEPT && waiting > 0 ->
            if
            :: (armed || NO(UNWATCHED)) && (age < 2 || NO(UNCHECKED)) && (fresh || NO(KEPTSTALE)) && !(asked && !NO(ASKED)) ->
                assert(event || (exists[first] && !B_WAITS && !b_holds));
                given_back = true;
                if :: NO(RENEWED) -> used = 0 :: else fi;
                begin();
                pump()
            :: else -> give_back()
            fi }
    :: atomic { state == KEPT -> give_back() }                                  /* keep_for is over */
    :: atomic { event ->
            event = false; armed = NO(FORGOTTEN);
            if
            :: state == KEPT -> broken = false; give_back()
            :: state == HELD && !exists[first] -> lose(true)
            :: else -> remembered = !NO(FORGOTTEN)
            fi }

    /* A heartbeat. */
    :: atomic { first != 0 && state != LOST && (age > 0 || !exists[first]) ->
            if
            :: NO(UNCHECKED) && state == KEPT                                   /* without the kept node */
            :: exists[first] && !(NO(UNCHECKED) && state == KEPT) -> age = 0
            :: !exists[first] && !(NO(UNCHECKED) && state == KEPT) -> lose(true)
            fi }
    :: atomic { !fresh -> fresh = true; pump() }
    od
}

/* The guarded writes of a holder of A. */
proctype writer() {
end:
    do
    :: atomic { write == NONE && state == HELD -> write_node = first; write_grant = grants;
            if
            :: write = OWN
            :: write = MEANT; marked = marked || MARKS
            :: write = POSSIBLE; marked = marked || !NO(TEXT)
            fi }
    :: atomic { write == MEANT -> write = ELSEWHERE; marked = marked || NO(LATEMARK) }
    :: atomic { write >= OWN && write <= POSSIBLE ->
            assert(!exists[write_node] || write_grant == grants);
            if
            :: write == POSSIBLE
            :: else -> write = DONE
            fi }
    od
}

proctype B() {
end:
    do
    :: atomic { b_rounds > 0 && b == 0 -> b_rounds--; make(b); since = 0; notify() }
    :: atomic { B_WAITS && HEAD(b) -> granted(b); b_holds = true }
    :: atomic { b_holds -> b_holds = false; exists[b] = false; b = 0 }
    od
}

proctype world() {
    byte n;
end:
    do
    :: atomic {                                                                 /* a delete of A is executed */
            if
            :: doomed[1] -> n = 1
            :: doomed[2] -> n = 2
            :: doomed[3] -> n = 3
            :: doomed[4] -> n = 4
            :: doomed[5] -> n = 5
            :: doomed[6] -> n = 6
            :: doomed[7] -> n = 7
            :: doomed[8] -> n = 8
            :: doomed[9] -> n = 9
            fi;
            doomed[n] = false; exists[n] = false; n = 0 }
    :: atomic { first != 0 && (state == HELD || state == KEPT) && age < 3 ->    /* time passes */
            age++;
            gone_for = gone_for + !exists[first] }
    :: atomic { faults > 0 && first != 0 -> faults--;                           /* the connection breaks */
            armed = armed && NO(UNWATCHED); watch = false; event = false;
            listing = (state == KEPT && !NO(UNWATCHED));
            if :: write == OWN -> write = UNKNOWN :: else fi }
    :: atomic { faults > 0 && fresh -> faults--; fresh = false; share = false; lose(false) }   /* the lease passes */
#ifdef LIMITS
    :: atomic { state == HELD && !over && !below ->                             /* its time passes */
            over = true;
            if
            :: NO(EARLYEND) -> doomed[first] = exists[first]
            :: else -> believing = 0
            fi }
#endif
    :: atomic { !fresh ->                                                       /* the session ends */
            exists[first] = false; exists[next] = false; next = 0;
            forget_first();
            fresh = true;
            pump() }
    :: atomic { faults > 0 && first != 0 && exists[first] && !doomed[first] ->  /* an operator deletes the node */
            faults--; exists[first] = false; broken = (state != LOST); notify() }
    :: atomic { faults > 0 && (state == HELD || state == KEPT) && !asked -> faults--;
            asked = true;
            if :: state == KEPT -> give_back() :: else fi }
    od
}

init {
    atomic { run A(); run B(); run writer(); run world() }
    absent + waiting + first + next == 0 && b_rounds == 0 && b == 0
}
