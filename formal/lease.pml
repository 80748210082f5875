/*
 * The timed lease of a client on a follower.  One unit of time is T/12, T the session timeout.
 *
 * The follower keeps a touch table and hands it to the leader only in its answer to the leader's ping, which comes
 * every tickTime/2 (P units), late by at most J (assumption A2).  A forwarded write does NOT touch the session on the
 * leader.  So a committed write proves that the session lived when the leader processed it, and nothing about how much longer it
 * will.  That depends on when a touch last reached the leader, which the client must infer.
 *
 * The rule: sure until  sent(last committed write) + 2T/3, but not beyond  sent(k) + T,  k an earlier request that was
 * answered at least P + J before that write was sent: a ping must have carried its touch to the leader before the write
 * arrived there, since the link is first in, first out.
 * The connect itself touches the leader directly (create session, revalidate).
 *
 * The client may pause at any time (it acts when the scheduler lets it), requests and answers may take any time, the
 * link between follower and leader may break at any time for good.  Property: the client does not believe when the
 * leader may have expired the session.
 *
 *   -DROUNDING      the leader rounds the expiry up to its next tick, as it does; without it the lease has less room
 *   -DLAG           the client's clock loses one unit while it believes, and one unit of T is the margin for that
 *   -DWITHOUT=NAME  without one of these defences:
 */
#define TOUCH 1         /* when the leader last heard of the session does not count (only the two thirds do) */
#define SENDING 2       /* the lease counts from the answer to the write */
#define THIRD 3         /* it is the whole timeout */
#define CONNECT 4       /* the connect counts from its answer */
#define COMMIT 5        /* a write with an unknown outcome renews it */
#define WRITE 6         /* the answer to a read renews it */
#define MARGIN 7        /* clocks are taken to run equally fast (with -DLAG) */
#define PING 8          /* a touch counts as soon as it is answered, whether a ping has carried it or not */

#ifndef WITHOUT
#define WITHOUT 0
#endif
#ifndef P
#define P 3
#endif
#ifndef J
#define J 1
#endif
#define T 12
#define LEASE 8
#define TICK (2 * P)
#ifdef ROUNDING
#define EXPIRES(t) (((t) + T + TICK - 1) / TICK * TICK)
#else
#define EXPIRES(t) ((t) + T)
#endif
#ifdef LAG
#define LOST 1             /* what the clock loses; and what is left out for it */
#else
#define LOST 0
#endif
#ifndef REQUESTS
#define REQUESTS 3
#endif
#ifndef HORIZON
#define HORIZON 24
#endif

byte without = WITHOUT;
byte now;
byte expiry = EXPIRES(0);         /* on the leader; the session was established at time 0 */
bool cut, expired;
byte expired_at;
bool touched;              /* follower's touch table */
byte last_ping;

/* the client */
byte sent[REQUESTS], answered[REQUESTS];
byte n;                    /* requests answered so far */
byte belief;               /* sure until; 0: not at all */

/* the one request on its way */
mtype = { none, to_follower, to_leader, to_client };
mtype stage = none;
bool write_request, committed;
byte sent_at;

#define NO(defence) (without == (defence))
#define HEARD(sent) ((sent) + T - (NO(MARGIN) -> 0 : LOST))
#define DELAY (NO(PING) -> 0 : P + J)
#define SOUND (belief == 0 || belief + LOST <= expired_at)
#define PING_DUE (!cut && !expired && now - last_ping >= P + J)
#define EXPIRY_DUE (!expired && now >= expiry)

inline believe() {
    byte counted = (NO(SENDING) -> now : sent_at);
    byte bound = counted + (NO(THIRD) -> T : LEASE);
    byte proven = HEARD(NO(CONNECT) -> 3 : 0);      /* the connect at time 0; its answer took a while */
    byte k = 0;
    do
    :: k < n ->
        if
        :: answered[k] + DELAY < counted && HEARD(sent[k]) > proven -> proven = HEARD(sent[k])
        :: else
        fi;
        k++
    :: else -> break
    od;
    if
    :: !NO(TOUCH) && proven < bound -> bound = proven
    :: else
    fi;
    if
    :: bound > belief -> belief = bound
    :: else
    fi;
    k = 0; proven = 0; bound = 0; counted = 0
}

active proctype world() {
    do
    /* time passes, unless something that must happen by now has not */
    :: now < HORIZON && !PING_DUE && !EXPIRY_DUE -> now++
    /* the leader's ping and the follower's answer, which carries the touches */
    :: atomic { !cut && !expired && now > last_ping ->
            last_ping = now;
            if
            :: touched -> touched = false; expiry = EXPIRES(now)
            :: else
            fi }
    /* expiry is the leader's decision alone */
    :: atomic { EXPIRY_DUE -> expired = true; expired_at = now; assert(SOUND) }
    /* the link between follower and leader breaks */
    :: atomic { !cut -> cut = true }
    /* the client sends: a read or a write */
    :: atomic { stage == none && n < REQUESTS ->
            stage = to_follower; sent_at = now; committed = false;
            if
            :: write_request = true
            :: write_request = false
            fi }
    /* the follower receives, and notes the touch */
    :: atomic { stage == to_follower ->
            touched = true;
            if
            :: write_request -> stage = to_leader
            :: !write_request -> stage = to_client
            fi }
    /* the leader commits the write if the session is alive */
    :: atomic { stage == to_leader && !cut && !expired -> committed = true; stage = to_client }
    :: atomic { NO(COMMIT) && stage == to_leader -> committed = true; stage = to_client }
    /* the answer reaches the client */
    :: atomic { stage == to_client ->
            if
            :: committed || NO(WRITE) -> believe(); assert(!expired || SOUND)
            :: else
            fi;
            sent[n] = sent_at; answered[n] = now; n++;
            stage = none; sent_at = 0; committed = false; write_request = false }
    :: now >= HORIZON -> break
    od
}
