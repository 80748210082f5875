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
 * With -DHOPS=2 the client's server is an observer, and a follower is its master (observerMasterPort).  Writes pass
 * both servers at once.  A touch waits twice: the observer reports it in its answer to the master's ping, and the
 * master in its answer to the leader's ping.  J bounds the sum of both delays.  So a touch may need 2P + J to reach the
 * leader, and the rule is safe only if the client counts with that.
 *
 *   -DROUNDING      the leader rounds the expiry up to its next tick, as it does; without it the lease has less room
 *   -DLAG           the client's clock loses one unit while it believes, and one unit of T is the margin for that
 *   -DHOPS=2        the client's server is an observer behind an observer master
 *   -DEACH          with -DHOPS=2: J bounds each of the two delays, not their sum
 *   -DTOLD=N        the client believes that half a tick is N units; default: P.  Without server_tick it believes T/4
 *   -DPAIR          all requests are reads, except that the last one is a write; fewer states
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
#ifndef T
#define T 12
#endif
#define J (T / 12)
#define LEASE (T * 2 / 3)
#ifndef TOLD
#define TOLD P
#endif
#ifndef HOPS
#define HOPS 1
#endif
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
#define REQUESTS 2
#endif
#ifndef HORIZON
#define HORIZON 24
#endif

byte without = WITHOUT;
byte now;
byte expiry = EXPIRES(0);         /* on the leader; the session was established at time 0 */
bool cut, expired;
byte expired_at;
bool touched;              /* touch table of the client's server */
byte last_ping;
#if HOPS == 2
bool relayed;              /* touch table of the observer master */
byte last_relay;           /* its latest ping that the observer answered */
byte late = 0;             /* how much of J may pass between observer and master; the rest is the leader's */
#ifdef EACH
#define RELAY_LATE J
#define PING_LATE J
#else
#define RELAY_LATE late
#define PING_LATE (J - late)
#endif
#define RELAY_DUE (!cut && !expired && now - last_relay >= P + RELAY_LATE)
#define LAST_TABLE relayed
#define LINK_IS_OVER touched = false; relayed = false; last_ping = 0; last_relay = 0
#else
#define PING_LATE J
#define RELAY_DUE false
#define LAST_TABLE touched
#define LINK_IS_OVER touched = false; last_ping = 0
#endif

/* the client */
byte sent[REQUESTS], answered[REQUESTS];
byte n;                    /* requests answered so far */
byte belief;               /* sure until; 0: not at all */

/* the one request on its way */
mtype = { none, to_follower, to_leader, to_client };
mtype stage = none;
bool write_request, committed;
byte sent_at;

#ifdef PAIR
#define MAY_READ (n < REQUESTS - 1)
#define MAY_WRITE (n == REQUESTS - 1)
#else
#define MAY_READ true
#define MAY_WRITE true
#endif
#if REQUESTS == 1
#define FORGET skip
#elif REQUESTS == 2
#define FORGET sent[0] = 0; answered[0] = 0
#else
#define FORGET sent[0] = 0; answered[0] = 0; sent[1] = 0; answered[1] = 0
#endif

#define NO(defence) (without == (defence))
#define HEARD(sent) ((sent) + T - (NO(MARGIN) -> 0 : LOST))
#define DELAY (NO(PING) -> 0 : TOLD + J)
#define SOUND (belief == 0 || belief + LOST <= expired_at)
#define PING_DUE (!cut && !expired && now - last_ping >= P + PING_LATE)
#define EXPIRY_DUE (!expired && now >= expiry)

inline believe() {
    byte counted = (NO(SENDING) -> now : sent_at);
    byte bound = counted + (NO(THIRD) -> T : LEASE);
    byte proven = HEARD(NO(CONNECT) -> T / 4 : 0);      /* the connect at time 0; its answer took a while */
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
#if HOPS == 2 && !defined(EACH)
    do
    :: late < J -> late++
    :: break
    od;
#endif
    do
    /* time passes, unless something that must happen by now has not */
    :: now < HORIZON && !PING_DUE && !RELAY_DUE && !EXPIRY_DUE -> now++
    /* the leader's ping and the follower's answer, which carries the touches */
    :: atomic { !cut && !expired && now > last_ping ->
            last_ping = now;
            if
            :: LAST_TABLE -> LAST_TABLE = false; expiry = EXPIRES(now)
            :: else
            fi }
#if HOPS == 2
    /* the master's ping and the observer's answer */
    :: atomic { !cut && !expired && now > last_relay ->
            last_relay = now;
            if
            :: touched -> touched = false; relayed = true
            :: else
            fi }
#endif
    /* expiry is the leader's decision alone */
    :: atomic { EXPIRY_DUE -> expired = true; expired_at = now; assert(SOUND); expiry = 0; LINK_IS_OVER }
    /* the link between follower and leader breaks */
    :: atomic { !cut -> cut = true; LINK_IS_OVER }
    /* the client sends: a read or a write */
    :: atomic { stage == none && n < REQUESTS ->
            stage = to_follower; sent_at = now; committed = false;
            if
            :: MAY_WRITE -> write_request = true
            :: MAY_READ -> write_request = false
            fi }
    /* the follower receives, and notes the touch */
    :: atomic { stage == to_follower ->
            touched = !cut && !expired;
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
            n++;
            if
            :: n < REQUESTS -> sent[n - 1] = sent_at; answered[n - 1] = now
            :: else -> FORGET
            fi;
            stage = none; sent_at = 0; committed = false; write_request = false }
    :: now >= HORIZON -> break
    od
}
