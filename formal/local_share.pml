/*
 * Shared holds that join.  The first holder of session A has a node.  Up to HOLDERS holders of A hold by it in all; each
 * holder may have a time (max_hold) at which its hold ends although it does not release it, and may give a text of its
 * hold away (a sequencer), by which somebody writes at any later time, as long as the node exists.  The last one who
 * leaves deletes the node.  Client B wants the lock alone, and creates its node at any moment; so may a writer of A.
 *
 * FAULTS faults may happen, at any moment: an operator deletes the node; the lease passes, and then the servers may end
 * the session; somebody asks for the lock (a revocation).  The unit of time is the interval between two heartbeats.
 *
 * Properties: B does not hold while a holder of A believes, unless an operator has deleted the node and A does not know
 * yet.  After the creation of the node of B, at most N holders join.  Nobody joins after the turn, while a writer of A
 * waits, by a node that was asked for, or by one that is gone for two intervals.  Who gave a text away is at work, or one
 * of those beside it is, when it is used.  Nobody is told of a loss while node and lease are there (assertions).  B is
 * served in the end, also if nobody releases a hold whose time is over (no invalid end state).
 *
 *   -DWITHOUT=NAME  without one of these defences:
 */
#define ALONG 1         /* whoever leaves deletes the node */
#define FOREVER 2       /* any number may join */
#define TURN 3          /* also after the turn */
#define OVERTAKES 4     /* ... while a writer of the session waits */
#define ONELOSS 5       /* of a lost node only one holder is told */
#define BOUND 6         /* a holder joins beside one who has given a text away */
#define AFTERBOUND 7    /* ... who has left since */
#define STALE 8         /* ... on a lease that has passed */
#define UNPROVEN 9      /* ... without a recent check of the node */
#define ASKED 10        /* ... by a node that was asked for */
#define ENDTAKES 11     /* the node is deleted when the time of one holder is over */
#define ENDALL 12       /* ... and then the others are told that they have lost it */
#define NODESTAYS 13    /* a holder whose time is over counts until it releases */
#define EARLYEND 14     /* the node is deleted before the last holder, whose time is over, ends */

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
#define HOLDERS 3
#endif

/* A holder. */
#define ABSENT 0
#define HOLDS 1
#define LOST 2          /* it was told, and has not left yet */
#define OVER 3          /* its time is over; what follows does not depend on when it leaves */
#define LEFT 4

byte without = WITHOUT;
byte faults = FAULTS;
byte holder[HOLDERS];
bool bound[HOLDERS], beside[HOLDERS];   /* gave a text away; was there when somebody did */
byte inside, joined;
bool exists, doomed, closed, turn_over;
bool fresh = true, asked, writer, broken;
byte age, gone_for;
bool text;
bool b_waits, b_holds, b_done;
byte since;

#define NO(defence) (without == (defence))
#define BELIEVES(i) (holder[i] == HOLDS)
#define ANY_BELIEVES (BELIEVES(0) || BELIEVES(1) || BELIEVES(2))
#define THERE(i) (holder[i] == HOLDS || holder[i] == LOST)
#define ANY_THERE (THERE(0) || THERE(1) || THERE(2))
#define ANY_BOUND ((bound[0] && THERE(0)) || (bound[1] && THERE(1)) || (bound[2] && THERE(2)))
#define ANY_BESIDE ((beside[0] && THERE(0)) || (beside[1] && THERE(1)) || (beside[2] && THERE(2)))
#define OVERTAKING (writer && !NO(OVERTAKES))
#define SURE ((fresh || NO(STALE)) && (age < 2 || NO(UNPROVEN)) && (!asked || NO(ASKED)))

inline leave(i, told) {
    holder[i] = told;
    inside--;
    closed = closed || (told == OVER) || ((bound[i] || asked) && !NO(AFTERBOUND));
    if :: inside == 0 || NO(ALONG) || (NO(ENDTAKES) && told == OVER) -> doomed = exists :: else fi
}

inline lose_all() {
    byte k;
    assert(!exists || !fresh);
    k = 0;
    do
    :: k < HOLDERS && holder[k] == HOLDS ->
            holder[k] = LOST;
            if :: NO(ONELOSS) -> break :: else -> k++ fi
    :: k < HOLDERS && holder[k] != HOLDS -> k++
    :: k == HOLDERS -> break
    od;
    k = 0; closed = true; inside = 0; broken = false
}

proctype A() {
    byte i;
end:
    do
    :: atomic { holder[0] == ABSENT && joined == 0 && !exists && !b_waits && !b_holds ->
            exists = true; holder[0] = HOLDS; inside = 1; i = 1 }
    :: atomic { i > 0 && i < HOLDERS && inside > 0 && !closed && (joined < N || NO(FOREVER)) && (!turn_over || NO(TURN)) &&
            !OVERTAKING && SURE && (!ANY_BOUND || NO(BOUND)) ->
            assert(!writer && !turn_over && !asked && (exists || gone_for < 2));
            assert(!b_holds || broken);
            if :: b_waits -> since++; assert(since <= N) :: else fi;
            holder[i] = HOLDS; inside++; joined++; i++ }
    :: atomic { !turn_over && i > 0 -> turn_over = true }
    :: atomic { !writer && i > 0 -> writer = true }

    /* A heartbeat. */
    :: atomic { inside > 0 && (age > 0 || !exists) ->
            if
            :: exists -> age = 0
            :: else -> lose_all()
            fi }
    :: atomic { !fresh && inside == 0 -> fresh = true }
    od
}

/* Releases, or does not when its time is over; gives a text away. */
proctype H(byte i) {
end:
    do
    :: atomic { holder[i] == HOLDS -> leave(i, LEFT) }
    :: atomic { holder[i] == HOLDS ->                                           /* its time is over */
            if
            :: NO(NODESTAYS) -> holder[i] = OVER
            :: NO(EARLYEND) && inside == 1 -> exists = false; inside = 0; goto late
            :: NO(ENDALL) && inside > 1 -> lose_all()
            :: else -> leave(i, OVER)
            fi }
    :: atomic { holder[i] == LOST -> holder[i] = LEFT;
            if :: !ANY_THERE -> doomed = exists :: else fi }
    :: atomic { holder[i] == HOLDS && !bound[i] && !text && exists ->
            bound[i] = true; text = true;
            beside[0] = (holder[0] == HOLDS); beside[1] = (holder[1] == HOLDS); beside[2] = (holder[2] == HOLDS) }
    od;
late:
    atomic { holder[i] = OVER }
}

proctype B() {
end:
    do
    :: atomic { !b_done && !b_waits && holder[0] != ABSENT -> b_waits = true }
    :: atomic { b_waits && !b_holds && !exists -> b_holds = true; assert(!ANY_BELIEVES || broken) }
    :: atomic { b_holds -> assert(!ANY_BELIEVES || broken); b_holds = false; b_waits = false; b_done = true }
    od
}

proctype world() {
end:
    do
    :: atomic { doomed -> doomed = false; exists = false }
    :: atomic { text && exists && !doomed -> assert(ANY_BESIDE) }               /* the write of somebody else */
    :: atomic { inside > 0 && age < 3 -> age++; gone_for = gone_for + !exists }
    :: atomic { faults > 0 && inside > 0 && exists && !doomed -> faults--; exists = false; broken = true }
    :: atomic { faults > 0 && fresh && inside > 0 -> faults--; fresh = false;
            if :: !NO(STALE) -> lose_all() :: else fi }
    :: atomic { !fresh && exists -> exists = false; doomed = false }            /* the session ends */
    :: atomic { faults > 0 && inside > 0 && !asked -> faults--; asked = true }
    od
}

init {
    atomic { run A(); run B(); run world(); run H(0); run H(1); run H(2) }
    b_done
}
