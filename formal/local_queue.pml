/*
 * One place in the queue for each session.  The waiters of a session form a local queue.  The session keeps two nodes
 * at most: the `first`, which a waiter holds, and the `next`, which waits.  The next node is created when the first
 * one is granted, or when a waiter arrives later.  A node belongs to the local queue, and not to a waiter.
 *
 * Two sessions have up to three waiters each, who arrive one after the other and take the lock once.  A waiter may be
 * patient, may have a deadline that passes at any moment, or may only try.  Requests of a session are executed in the
 * order of their sending.  FAULTS faults may happen to session 0, at any moment: the connection breaks, and each
 * request that was not answered has been executed or not; the session ends, and the servers delete its nodes some
 * time later; a create is refused; an operator deletes a node.  A waiter whose hold is lost never releases it.
 *
 * What acquire.pml checks is taken for granted here: the node of an unknown create is found, and a node that is the
 * head of the queue is granted after a committed check.  The holder of a node that the operator deletes is told at
 * once.
 *
 * Properties: two waiters never hold together (assertion); each waiter that stays is served, even if lost holds are
 * never released, and no node is left (no invalid end state); a waiter fails only if its session has no other node
 * (assertion).  Without faults, a session has two nodes at most (assertion).  While a waiter of a session waits, the
 * other session is granted the lock once at most before each grant of this session (assertion).
 *
 *   -DWITHOUT=NAME  without one of these defences:
 */
#define KEY 1           /* the local queue of a session that ended goes on with its node in the next session */
#define LEAVES 2        /* a waiter that leaves takes its node with it */
#define INFLIGHT 3      /* a create whose waiter leaves is given up before its answer */
#define ADOPT 4         /* a node that is being deleted is adopted */
#define LEFT 5          /* a node that nobody waits with is not deleted */
#define SLOT 6          /* the next node is granted only when the owner of the first one has released it */
#define GONE 7          /* ... is created only then, if the first create of it was refused */
#define HEADFAILS 8     /* a refused create does not start the next waiter */
#define TRY 9           /* a try does not look at the local queue */
#define REFUSED 10      /* a refused next node fails its waiter, although the first one exists */
#define EAGER 11        /* the next node is created while the first one waits */
#define LATENEXT 12     /* the next node is created when the first one is given back */

#ifndef WITHOUT
#define WITHOUT 0
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef W0
#define W0 3            /* waiters of session 0 */
#endif
#ifndef W1
#define W1 3
#endif
#define W 3
#define K 6             /* nodes of a session at a time, those included that are being deleted */
#define NONE 255

/* A waiter. */
#define ABSENT 0
#define PATIENT 1
#define SHORT 2         /* has a deadline */
#define TRYING 3
#define HOLDS 4
#define LOST 5          /* was told, and never releases */
#define ENDED 6

/* A node, as its session knows it. */
#define FREE 0
#define SENT 1
#define OURS 2          /* answered */
#define UNKNOWN 3       /* may exist, and is searched for */
#define ABANDONED 4     /* deleted when it is answered; only where a defence is missing */
#define DELETED 5       /* a delete is on its way */
#define STRAY 6         /* ... must be sent again */
#define DYING 7         /* its session is over */

byte without = WITHOUT;
byte faults = FAULTS;
byte queue[12];         /* the nodes, in order */
byte count;
byte node[2 * K];
byte waiter[2 * W];
byte first[2] = NONE, next[2] = NONE, third[2] = NONE;      /* the third only where a defence is missing */
bool denied[2];           /* a next node was refused, while the first one exists */
bool waited[2];         /* a node for a waiter is in the queue, or on its way before the delete of the first one */
byte passed[2];         /* grants of the other session since then, or since the own last grant */
chan line[2] = [6] of { bit, byte };
#define CREATE 0
#define DELETE 1

#define NO(defence) (without == (defence))
#define CLEAN (faults == FAULTS)
#define OF(s, i) ((s) * W + (i))
#define COUNT(s, what) ((waiter[OF(s, 0)] == what) + (waiter[OF(s, 1)] == what) + (waiter[OF(s, 2)] == what))
#define IS_WAITING(i) (waiter[i] >= PATIENT && waiter[i] <= TRYING)
#define WAITING(s) (IS_WAITING(OF(s, 0)) + IS_WAITING(OF(s, 1)) + IS_WAITING(OF(s, 2)))
#define FIRST(s, what) (waiter[OF(s, 0)] == what -> OF(s, 0) : (waiter[OF(s, 1)] == what -> OF(s, 1) : OF(s, 2)))
#define HEAD(s) (IS_WAITING(OF(s, 0)) -> OF(s, 0) : (IS_WAITING(OF(s, 1)) -> OF(s, 1) : OF(s, 2)))
#define FRONT(n) (count > 0 && queue[0] == (n))
#define LEFT_OVER(k) (node[me * K + k] == STRAY || node[me * K + k] == DYING)
#define OVER(s) (COUNT(s, ENDED) + COUNT(s, LOST) == W)

inline find(n) {        /* it is there if i < count */
    i = 0;
    do
    :: i < count && queue[i] != n -> i++
    :: else -> break
    od
}

inline remove(n) {      /* from the queue, if it is there */
    d_step {
    find(n);
    if
    :: i < count ->
        count--;
        do
        :: i < count -> queue[i] = queue[i + 1]; i++
        :: else -> break
        od;
        queue[count] = 0
    :: else
    fi;
    i = 0
    }
}

inline append(n) {
    d_step {
    queue[count] = n;
    count++;
    i = 0;
    do                  /* of its session */
    :: i < count -> w = w + (queue[i] / K == me); i++
    :: else -> break
    od;
    i = 0;
    assert(w <= 2 || !CLEAN);
    w = 0
    }
}

inline create(into, how) {
    i = me * K;
    do
    :: node[i] != FREE -> i++
    :: else -> break
    od;
    assert(i < me * K + K);
    node[i] = how;
    into = i;
    i = 0;
    line[me]!CREATE, into
}

inline delete(n) {
    node[n] = DELETED;
    line[me]!DELETE, n
}

inline pump() {         /* creates what is missing */
    if
    :: WAITING(me) == 0 -> waited[me] = false; passed[me] = 0
    :: else
    fi;
    if
    :: next[me] == NONE && WAITING(me) > 0 && !denied[me] && !(NO(LATENEXT) && first[me] != NONE) ->
        if
        :: NO(ADOPT) && line[me] ?? [DELETE, _] -> line[me] ?? <DELETE, next[me]>; node[next[me]] = OURS
        :: else -> create(next[me], SENT)
        fi
    :: else
    fi;
    if
    :: NO(EAGER) && third[me] == NONE && WAITING(me) > 1 && first[me] == NONE && CLEAN -> create(third[me], SENT)
    :: else
    fi
}

inline give_back(n) {   /* a node that nobody waits with, as soon as its create is answered */
    if
    :: n != NONE && node[n] == OURS && !NO(LEFT) -> delete(n); n = NONE
    :: n != NONE && node[n] == SENT && NO(INFLIGHT) -> node[n] = ABANDONED; n = NONE
    :: else
    fi
}

inline settle() {       /* somebody has left, or a create was answered */
    if
    :: WAITING(me) == 0 ->
        give_back(next[me]);
        give_back(third[me]);
        if :: next[me] == NONE -> next[me] = third[me]; third[me] = NONE :: else fi
    :: else
    fi;
    pump()
}

inline end_head() {
    w = HEAD(me);
    waiter[w] = ENDED;
    w = 0
}

inline answered(n) {
    node[n] = OURS;
    if
    :: WAITING(me) > 0 && waiter[HEAD(me)] == TRYING && !FRONT(n) -> end_head()      /* busy */
    :: else
    fi;
    settle()
}

inline refused(n) {
    node[n] = FREE;
    next[me] = NONE;
    if
    :: WAITING(me) > 0 && first[me] != NONE && !NO(REFUSED) -> denied[me] = true
    :: WAITING(me) > 0 && (first[me] == NONE || NO(REFUSED)) ->
        assert(first[me] == NONE);
        end_head();
        if :: NO(HEADFAILS) :: else -> pump() fi
    :: else
    fi
}

inline lose() {         /* the holder of the session is told */
    i = 0;
    do
    :: i < W && waiter[OF(me, i)] != HOLDS -> i++
    :: else -> break
    od;
    if :: i < W -> waiter[OF(me, i)] = LOST :: else fi;
    i = 0;
    if
    :: NO(SLOT) || (NO(GONE) && denied[me])
    :: else -> first[me] = NONE; denied[me] = false
    fi
}

inline unanswered() {   /* the connection breaks: what is on its way is executed up to some request */
    executed = true;
    do
    :: len(line[me]) > 0 ->
        line[me]?what, n;
        if
        :: executed
        :: executed = false
        fi;
        if
        :: what == DELETE && executed -> remove(n); node[n] = (node[n] == DELETED -> FREE : node[n])
        :: what == DELETE && !executed -> node[n] = (node[n] == DELETED -> STRAY : node[n])
        :: what == CREATE ->
            if :: executed -> append(n) :: else fi;
            node[n] = UNKNOWN
        fi
    :: else -> break
    od
}

inline session_ends() {
    unanswered();
    n = 0;
    what = 0;
    executed = false;
    i = me * K;
    do                  /* the servers delete what there is */
    :: i < me * K + K ->
        if
        :: node[i] != FREE && !(NO(KEY) && i == next[me] && node[i] == OURS) -> node[i] = DYING
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    lose();
    first[me] = NONE;
    denied[me] = false;
    if
    :: NO(KEY) && next[me] != NONE && node[next[me]] == OURS -> dying = next[me]
    :: else -> next[me] = NONE
    fi;
    third[me] = NONE;
    pump()
}

proctype session(bit me) {
    byte i, n, w;
    bit what;
    bool executed;
    byte dying = NONE;      /* only where a defence is missing */

end:
    do
    /* A waiter arrives. */
    :: atomic { COUNT(me, ABSENT) > 0 ->
            w = FIRST(me, ABSENT);
            if
            :: waiter[w] = PATIENT
            :: waiter[w] = SHORT
            :: waiter[w] = (WAITING(me) + COUNT(me, HOLDS) == 0 && next[me] == NONE -> TRYING : ENDED);
                if
                :: waiter[w] == ENDED && NO(TRY) -> create(n, ABANDONED); n = 0
                :: else                                                     /* busy */
                fi
            fi;
            w = 0;
            pump() }

    /* A waiter leaves. */
    :: atomic { COUNT(me, SHORT) > 0 ->
            if
            :: waiter[OF(me, 0)] == SHORT -> w = OF(me, 0)
            :: waiter[OF(me, 1)] == SHORT -> w = OF(me, 1)
            :: waiter[OF(me, 2)] == SHORT -> w = OF(me, 2)
            fi;
            if
            :: NO(LEAVES) && HEAD(me) == w -> give_back(next[me])
            :: else
            fi;
            waiter[w] = ENDED;
            w = 0;
            settle() }

    /* The oldest request is executed, and answered. */
    :: atomic { len(line[me]) > 0 ->
            line[me]?what, n;
            if
            :: what == DELETE -> remove(n); node[n] = (node[n] == DELETED -> FREE : node[n])
            :: what == CREATE && node[n] == ABANDONED -> append(n); delete(n)
            :: what == CREATE && node[n] == SENT ->
                append(n);
                if
                :: WAITING(me) > 0 -> waited[me] = true
                :: else
                fi;
                answered(n)
            :: what == CREATE && node[n] == SENT && faults > 0 && me == 0 && third[me] == NONE -> faults--; refused(n)
            fi;
            n = 0; what = 0 }

    /* A grant. */
    :: atomic { next[me] != NONE && node[next[me]] == OURS && FRONT(next[me]) && WAITING(me) > 0 &&
            !(NO(SLOT) && COUNT(me, LOST) > 0) ->
            assert(COUNT(0, HOLDS) + COUNT(1, HOLDS) == 0);
            w = HEAD(me);               /* Spin needs an index that the assignment does not change */
            waiter[w] = HOLDS;
            w = 0;
            first[me] = next[me];
            next[me] = third[me];
            third[me] = NONE;
            denied[me] = false;
            passed[me] = 0;
            if
            :: waited[1 - me] -> passed[1 - me]++; assert(passed[1 - me] <= 1 || !CLEAN)
            :: else
            fi;
            settle() }

    /* A release. */
    :: atomic { COUNT(me, HOLDS) > 0 ->
            w = FIRST(me, HOLDS);
            waiter[w] = ENDED;
            w = 0;
            delete(first[me]);
            first[me] = NONE;
            denied[me] = false;
            pump() }


    /* Faults, and what the session does about them. */
    :: atomic { faults > 0 && me == 0 && len(line[me]) > 0 ->
            faults--; unanswered(); n = 0; what = 0; executed = false }
    :: atomic { faults > 0 && me == 0 && !OVER(me) -> faults--; session_ends() }
    :: atomic { faults > 0 && me == 0 && first[me] != NONE && COUNT(me, HOLDS) > 0 ->   /* an operator deletes a node */
            faults--; remove(first[me]); node[first[me]] = FREE; lose(); pump() }
    :: atomic { faults > 0 && me == 0 && next[me] != NONE && node[next[me]] == OURS ->
            faults--; remove(next[me]); node[next[me]] = FREE; next[me] = NONE; pump() }
    :: atomic { next[me] != NONE && node[next[me]] == UNKNOWN ->                /* it is found, or it does not exist */
            find(next[me]);
            if
            :: i < count -> i = 0; answered(next[me])
            :: else -> i = 0; node[next[me]] = FREE; next[me] = NONE; pump()
            fi }
    :: atomic {
            if
            :: LEFT_OVER(0) -> n = me * K
            :: LEFT_OVER(1) -> n = me * K + 1
            :: LEFT_OVER(2) -> n = me * K + 2
            :: LEFT_OVER(3) -> n = me * K + 3
            :: LEFT_OVER(4) -> n = me * K + 4
            :: LEFT_OVER(5) -> n = me * K + 5
            fi;
            if
            :: node[n] == STRAY -> delete(n)
            :: else -> remove(n); node[n] = FREE
            fi;
            n = 0 }
    :: atomic { dying != NONE -> remove(dying); dying = NONE }
    od
}

init {
    byte i;
    atomic {
        i = W0;
        do :: i < W -> waiter[OF(0, i)] = ENDED; i++ :: else -> break od;
        i = W1;
        do :: i < W -> waiter[OF(1, i)] = ENDED; i++ :: else -> break od;
        i = 0;
        run session(0); run session(1)
    };
    OVER(0) && OVER(1) && count == 0
}
