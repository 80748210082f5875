/*
 * A grant on the event.  Client W is next: only the node of P is before its own one.  When the event arrives that the
 * node of P was deleted, W holds the lock, without asking the servers.  Then it reads what P has written.
 *
 * That W is next counts once a watch would tell of the end of its own node before that event.  W asks for a watch on its
 * own node.  Or it has asked for the names of the directory, with a watch on that (NAMES): this tells of one change only.
 * If that is an arrival, W asks for the watch on its own node then.
 *
 * The leader numbers the transactions.  Each of two servers applies them in order, and may be behind.  W is connected to
 * one of them, which sends events and replies in order.  The C client remembers the number of the last reply, but events
 * carry no number.  A new server must have applied what the client remembers.  It first says that the client is
 * connected, and then sends the events that the client has missed, in any order.  The library sees all this later than
 * the C client.  A request that it hands over meanwhile may be sent on the new connection.
 *
 * Faults, at any moments: the connection breaks (BREAKS times); an operator deletes the node of W; the lease of W passes,
 * and then the servers may end its session; somebody closes the session of W.  That the lease passes first is the
 * subject of lease.pml.
 *
 * Properties: if W is granted the lock, its node was the first one at some point in the history, and its lease has not
 * ended its session; a read of W is as new as the last write of P (assertions); W reads, or learns that it has lost its
 * node (no invalid end state).
 *
 *   -DDOWNGRADES    P may change to a shared hold, whose node has a lower number than that of W
 *   -DANYCHECK      any check answered after the event counts, whenever it was handed over
 *   -DNAMES         W has asked for the names, and the event may come before them
 *   -DOWN           the node of P belongs to the session of W, and ends with it
 *   -DWITHOUT=NAME  without one of these defences:
 */
#define LOWER 1         /* a grant on the event, although a lower number may appear */
#define UNPROVEN 2      /* after a reconnect, a read goes first, without a check before it */
#define REPEAT 3        /* a read that was on its way at the reconnect is not repeated */
#define SETWATCHES 4    /* events after a reconnect grant as before */
#define DROPPED 5       /* an event that grants nothing is not followed by a check */
#define MULTI 6         /* a tool deletes both nodes in one transaction */
#define LEASE 7         /* a grant on a lease that has passed */
#define ORDER 8         /* the event of the own node, which came before, is ignored */
#define EARLIER 9       /* names without a watch on the directory grant on the event */
#define MISSED 10       /* nobody looks whether the own node is among the names */
#define USEDUP 11       /* the directory counts as watched after it has told of an arrival */
#define ASKED 12        /* the own node counts as watched when the watch has been asked for */
#define SESSION 13      /* a node of the own session grants on the event */

#ifndef WITHOUT
#define WITHOUT 0
#endif
#ifndef BREAKS
#define BREAKS 1
#endif

/* Messages to the library. */
#define CONNECTED 1
#define P_GONE 2
#define W_GONE 3
#define CHANGED 4       /* the directory */
#define CHECK_OK 5
#define CHECK_FAILED 6
#define READ_DONE 7
#define LISTED 8
#define NAMED 9
#define OWN_SET 10

/* Requests. */
#define CHECK 1
#define READ 2
#define LIST 3
#define NAMES_ALL 4
#define WATCH_OWN 5

/* What W knows of what is ahead. */
#define NOTHING 0
#define LOOKING 1       /* the names are on their way, and with them the watch on the directory */
#define DIRECTORY 2     /* it is next, and the directory tells of the end of its own node */
#define OWN_ASKED 3
#define OWN_NODE 4      /* it is next, and its own node is watched */

byte without = WITHOUT;
byte breaks = BREAKS;
byte fault;             /* beside the breaks: 1 an operator acts, 2 the lease passes, 3 somebody closes the session */

/* The transactions, by their numbers; 0: not yet. */
byte last;
byte written, p_deleted, w_deleted, share, share_deleted, arrived;
bool was_first, ended;

byte applied[2];
bit server;             /* of W */
bool up = true;
byte replied;           /* what the C client remembers */
bool p_told, w_told;
bool own_watch;         /* that on the own node is set */
byte dir_watch;         /* number of the last change that the names show; 0: the directory is not watched */
chan inbox = [8] of { byte, byte };
chan outbox = [7] of { byte, byte };
byte committed;         /* the check at the head of the requests has this number */
bool check_fine;

/* The library. */
byte epoch, grant_epoch;
byte ahead;
bool fresh = true, noted, granted, proven;
byte beats = 1;         /* heartbeats before the grant */
bool want, finished, asked, listing;
bool behind;            /* the event came before the names */

#define NO(defence) (without == (defence))
#ifdef ANYCHECK
#define ANY_CHECK true
#else
#define ANY_CHECK false
#endif
#ifdef OWN
#define OTHER_SESSION NO(SESSION)
#else
#define OTHER_SESSION true
#endif
#define VISIBLE(k) ((k) != 0 && (k) <= applied[server])
#define NEW(k) (VISIBLE(k) && dir_watch != 0 && (k) > dir_watch)
#define TAG (epoch * 4 + noted * 2 + granted)
#define IS_NEXT (ahead == DIRECTORY || ahead == OWN_NODE || (NO(ASKED) && ahead == OWN_ASKED))

inline hand_over(request) {
    outbox!request, TAG
}

inline grant() {
    assert(was_first);
    assert(!ended);
    granted = true;
    grant_epoch = epoch;
    want = true
}

inline tell_p() {
    if
    :: VISIBLE(p_deleted) && !p_told -> p_told = true; inbox!P_GONE, 0
    :: else
    fi
}

inline tell_w() {
    if
    :: VISIBLE(w_deleted) && own_watch && !w_told -> w_told = true; inbox!W_GONE, 0
    :: else
    fi
}

inline tell_directory() {
    if
    :: NEW(p_deleted) || NEW(w_deleted) || NEW(arrived) -> dir_watch = 0; inbox!CHANGED, 0
    :: else
    fi
}

proctype history() {
end:
    do
    :: atomic { p_deleted == 0 && written == 0 -> last++; written = last }
#ifdef DOWNGRADES
    :: atomic { written != 0 && p_deleted == 0 && share == 0 -> last++; share = last }
    :: atomic { p_deleted != 0 && share != 0 && share_deleted == 0 -> last++; share_deleted = last;
            was_first = was_first || w_deleted == 0 }
#endif
    :: atomic { written != 0 && p_deleted == 0 -> last++; p_deleted = last;
            if
            :: was_first = (w_deleted == 0 && share == 0)
            :: NO(MULTI) && w_deleted == 0 -> w_deleted = last
            fi }
#ifdef NAMES
    :: atomic { arrived == 0 -> last++; arrived = last }                                    /* another contender */
#endif
    :: atomic { fault == 1 && w_deleted == 0 && !finished -> last++; w_deleted = last }     /* an operator */
    :: atomic { w_deleted == 0 && ((!fresh && committed == 0 && !(inbox ?? [CHECK_OK, _])) || fault == 3) ->
            last++; w_deleted = last; ended = (fault != 3)
#ifdef OWN
            ; p_deleted = (p_deleted == 0 -> last : p_deleted)
#endif
            }
    od
}

proctype servers() {
    byte tag;
end:
    do
    :: atomic { applied[1 - server] < last -> applied[1 - server]++ }
    :: atomic { applied[server] < last && nfull(inbox) && !(up && committed != 0 && applied[server] >= committed) ->
            applied[server]++;
            if
            :: up -> tell_p(); tell_w(); tell_directory()
#ifdef OWN
            :: up -> tell_w(); tell_p(); tell_directory()
#endif
            :: else
            fi }

    /* The oldest request of W. */
    :: atomic { up && outbox?[CHECK, _] && committed == 0 -> last++; committed = last; check_fine = (w_deleted == 0) }
    :: atomic { up && committed != 0 && applied[server] >= committed ->
            replied = committed;
            outbox?CHECK, tag;
            if
            :: check_fine -> inbox!CHECK_OK, tag
            :: else -> inbox!CHECK_FAILED, tag
            fi;
            committed = 0; check_fine = false; tag = 0 }
    :: atomic { up && outbox?[READ, _] -> outbox?READ, tag; replied = applied[server];
            inbox!READ_DONE, tag * 2 + (applied[server] >= written); tag = 0 }
    :: atomic { up && outbox?[LIST, _] && VISIBLE(p_deleted) && (!VISIBLE(share) || VISIBLE(share_deleted)) ->
            outbox?LIST, tag; replied = applied[server];
            inbox!LISTED, tag; tag = 0 }
    :: atomic { up && outbox?[WATCH_OWN, _] -> outbox?WATCH_OWN, tag; replied = applied[server];
            own_watch = !VISIBLE(w_deleted);
            inbox!OWN_SET, tag * 2 + VISIBLE(w_deleted); tag = 0 }
#ifdef NAMES
    :: atomic { up && outbox?[NAMES_ALL, _] -> outbox?NAMES_ALL, tag; replied = applied[server];
            dir_watch = (NO(EARLIER) -> 0 : applied[server]);
            inbox!NAMED, tag * 2 + VISIBLE(w_deleted); tag = 0 }
#endif

    /* The connection. */
    :: atomic { breaks > 0 && up -> breaks--; up = false; committed = 0; check_fine = false;
            do :: outbox?_, _ :: empty(outbox) -> break od }
    :: atomic { !up ->
            if
            :: applied[0] >= replied -> server = 0
            :: applied[1] >= replied -> server = 1
            fi;
            up = true;
            inbox!CONNECTED, 0;
            if
            :: true -> tell_p(); tell_w(); tell_directory()
            :: true -> tell_w(); tell_directory(); tell_p()
            fi }
    od
}

proctype library() {
    byte tag;
end:
    do
    :: atomic { !finished && inbox?[CONNECTED, _] -> inbox?CONNECTED, tag;
            epoch++;
            if :: !NO(SETWATCHES) -> ahead = NOTHING; behind = false :: else fi;
            if :: asked -> asked = false; want = true :: else fi;               /* the read is repeated */
            if
            :: granted && !proven && !NO(UNPROVEN) -> hand_over(CHECK)
            :: !granted && listing -> hand_over(LIST)                           /* what was asked is asked again */
            :: !granted && noted && !listing -> hand_over(CHECK)
            :: else
            fi;
            tag = 0 }
    :: atomic { beats > 0 && !finished && !granted -> beats--; hand_over(CHECK) }

    /* Who is next, and what tells of the end of the own node. */
    :: atomic { !finished && inbox?[OWN_SET, _] -> inbox?OWN_SET, tag;
            if
            :: ahead == OWN_ASKED && tag % 2 == 1 -> finished = true            /* it is gone */
            :: ahead == OWN_ASKED && tag % 2 == 0 -> ahead = OWN_NODE
            :: else
            fi;
            tag = 0 }
    :: atomic { !finished && inbox?[CHANGED, _] -> inbox?CHANGED, tag;
            if
            :: ahead == DIRECTORY && !NO(USEDUP) -> ahead = OWN_ASKED; hand_over(WATCH_OWN)
            :: else
            fi }
    :: atomic { !finished && inbox?[NAMED, _] -> inbox?NAMED, tag;
            if
            :: granted || (ahead != LOOKING && !noted)
            :: !granted && (ahead == LOOKING || noted) && tag % 2 == 1 && !NO(MISSED) -> finished = true
            :: !granted && (ahead == LOOKING || noted) && (tag % 2 == 0 || NO(MISSED)) ->
                if
                :: behind && (fresh || NO(LEASE)) -> grant(); proven = true
                :: behind && !fresh && !NO(LEASE) -> hand_over(CHECK)
                :: !behind && ahead == LOOKING -> ahead = DIRECTORY
                :: !behind && ahead != LOOKING                                  /* a check is on its way */
                fi
            fi;
            behind = false; tag = 0 }

    :: atomic { !finished && inbox?[P_GONE, _] -> inbox?P_GONE, tag;
#ifdef DOWNGRADES
            if
            :: NO(LOWER) && IS_NEXT && fresh -> grant()
            :: else -> listing = true; hand_over(LIST)
            fi
#else
            if
            :: IS_NEXT && OTHER_SESSION && (fresh || NO(LEASE)) -> grant()
            :: ahead == LOOKING && (fresh || NO(LEASE)) -> ahead = NOTHING; noted = true; behind = true
            :: else -> ahead = NOTHING;
                if
                :: NO(DROPPED)
                :: else -> noted = true; hand_over(CHECK)
                fi
            fi
#endif
            }
    :: atomic { !finished && inbox?[LISTED, _] -> inbox?LISTED, tag;
            if
            :: !granted -> listing = false; noted = true; hand_over(CHECK)
            :: else
            fi;
            tag = 0 }
    :: atomic { !finished && inbox?[W_GONE, _] -> inbox?W_GONE, tag; finished = !NO(ORDER) }
    :: atomic { !finished && inbox?[CHECK_FAILED, _] -> inbox?CHECK_FAILED, tag;
            finished = true; tag = 0 }                                          /* also of a heartbeat while it is next */
    :: atomic { !finished && inbox?[CHECK_OK, _] -> inbox?CHECK_OK, tag;
            fresh = true;
            if
            :: noted && !behind && !granted && ((tag / 4 == epoch && tag % 4 != 0) || ANY_CHECK) -> grant(); proven = true
            :: granted && (tag % 2 == 1 || ANY_CHECK) -> proven = true
            :: else
            fi;
            tag = 0 }

    :: atomic { !finished && inbox?[READ_DONE, _] -> inbox?READ_DONE, tag;
            if
            :: tag / 8 == epoch || NO(REPEAT) -> assert(tag % 2 == 1); finished = true
            :: else -> skip                                                     /* another one is on its way */
            fi;
            tag = 0 }
    :: atomic { !finished && want && (proven || epoch == grant_epoch || NO(UNPROVEN)) ->
            want = false; asked = true; hand_over(READ) }
    :: atomic { finished && nempty(inbox) -> inbox?_, _ }
    :: atomic { fault == 2 && !finished && fresh && !granted -> fresh = false }             /* the lease passes */
    od
}

init {
    atomic {
        last = 1; applied[0] = 1; applied[1] = 1;
        if :: fault = 0 :: fault = 1 :: fault = 2 :: fault = 3 fi;
#ifdef NAMES
        ahead = LOOKING; hand_over(NAMES_ALL);
#else
        if :: OTHER_SESSION -> ahead = OWN_ASKED; hand_over(WATCH_OWN) :: else fi;
#endif
        run history(); run servers(); run library()
    };
    finished
}
