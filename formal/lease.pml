/*
 * The timed lease of a client on a follower.  One unit of time is T/12, T the session timeout.
 *
 * The follower keeps a touch table and hands it to the leader only in its answer to the leader's ping, which comes
 * every tickTime/2 (P units), late by at most J (assumption A2).  A forwarded write does NOT touch the session on the
 * leader.  So a committed write proves that the session lived when the leader processed it, and nothing about how much longer it
 * will.  That depends on when a touch last reached the leader, which the client must infer.
 *
 * RULE 0  sure until  sent(last committed write) + 2T/3
 * RULE 1  the same, but not beyond  sent(k) + T,  k an earlier request that was answered at least P + J before
 *         that write was sent: a ping must have carried its touch to the leader before the write arrived there, since the link
 *         is first in, first out
 * The connect itself touches the leader directly (create session, revalidate).
 *
 * The client may pause at any time (it acts when the scheduler lets it), requests and answers may take any time, the
 * link between follower and leader may break at any time for good.  Property: the client does not believe when the
 * leader may have expired the session.  Rounding up of the expiry to the next tick is left out: it only helps.
 */
#ifndef RULE
#define RULE 1
#endif
#ifndef P
#define P 3
#endif
#ifndef J
#define J 1
#endif
#define T 12
#define LEASE 8
#ifndef REQUESTS
#define REQUESTS 3
#endif
#ifndef HORIZON
#define HORIZON 24
#endif

byte now;
byte expiry = T;           /* on the leader; the session was established at time 0 */
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

#define PING_DUE (!cut && !expired && now - last_ping >= P + J)
#define EXPIRY_DUE (!expired && now >= expiry)

inline believe() {
    byte bound = sent_at + LEASE;
    byte proven = T;                       /* the connect at time 0 */
    byte k = 0;
    do
    :: k < n ->
        if
        :: answered[k] + P + J < sent_at && sent[k] + T > proven -> proven = sent[k] + T
        :: else
        fi;
        k++
    :: else -> break
    od;
    if
    :: RULE == 1 && proven < bound -> bound = proven
    :: else
    fi;
    if
    :: bound > belief -> belief = bound
    :: else
    fi;
    k = 0; proven = 0; bound = 0
}

active proctype world() {
    do
    /* time passes, unless something that must happen by now has not */
    :: now < HORIZON && !PING_DUE && !EXPIRY_DUE -> now++
    /* the leader's ping and the follower's answer, which carries the touches */
    :: atomic { !cut && !expired && now > last_ping ->
            last_ping = now;
            if
            :: touched -> touched = false; expiry = now + T
            :: else
            fi }
    /* expiry is the leader's decision alone */
    :: atomic { EXPIRY_DUE -> expired = true; expired_at = now; assert(belief <= expired_at) }
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
    /* the answer reaches the client */
    :: atomic { stage == to_client ->
            if
            :: committed -> believe(); assert(!expired || belief <= expired_at)
            :: else
            fi;
            sent[n] = sent_at; answered[n] = now; n++;
            stage = none; sent_at = 0; committed = false; write_request = false }
    :: now >= HORIZON -> break
    od
}
