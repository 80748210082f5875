/*
 * From alone to shared, as DowngradeFsm does it.  Client 0 holds alone, takes a share, gives back what it held alone, and
 * later the share; clients 1 and 2 want to be alone, and wait for it and for each other.  The node of the share has the
 * number of the writer's node, and is made in one transaction that demands that one.
 *
 * FAULTS faults at any moments: an answer is lost, with or without the request having been executed; the lease of
 * client 0 passes; its session ends, while its nodes are seen for some time more; an operator deletes its node.  It may
 * give up at any moment.
 *
 * Properties: a share and somebody who is alone never hold together, nor two who are alone; no share comes from a hold
 * that was told to be lost; everybody is served; at the end there is no node.
 *
 *   -DWITHOUT=NAME  without one of these defences:
 */
#define BEHIND 1        /* the share has the next number */
#define NOWRITER 2      /* the share is made although the writer's node is gone */
#define OFLOST 3        /* a hold that was told to be lost gives a share */
#define FOREIGN 4       /* a share made by a session that is over is taken for the own one */
#define NOBODY 5        /* nobody is thought to appear before a waiter: the end of the writer is believed */
#define SHARELEFT 6     /* whoever gives up leaves its share */
#define SHAREGHOST 7    /* ... forgets one of unknown outcome */
#define ABANDONED 8     /* ... does not stay behind for the answer */
#define ITSELF 9        /* whoever holds a share may wait to be alone, too */

#ifndef WITHOUT
#define WITHOUT 0
#endif
#ifndef FAULTS
#define FAULTS 2
#endif

byte without = WITHOUT;
byte next;
byte number[3];       /* of the nodes of those who want to be alone; 0: not there */
byte share;           /* of the node of the share */
bool dying;           /* the session of client 0 is over, and the servers delete its nodes soon */
bool holding[3];
bool sharing, lost;
byte faults = FAULTS;
byte ended;

#define NO(defence) (without == (defence))
/* Whoever's node an operator deletes while it holds has lost it already, and learns of it later. */
#define SOUND (!(sharing && (holding[1] || holding[2])) && (holding[0] && number[0] != 0) + holding[1] + holding[2] <= 1)
#define BEFORE(n, mine) ((n) != 0 && (n) < (mine))
#define COUNT(mine) ((BEFORE(number[0], mine) -> 1 : 0) + (BEFORE(number[1], mine) -> 1 : 0) + \
                     (BEFORE(number[2], mine) -> 1 : 0) + (BEFORE(share, mine) -> 1 : 0))
/* The nearest; of a writer and its share, which have the same number, the name decides: here the writer. */
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define UNDER(n, mine) (BEFORE(n, mine) -> (n) : 0)
#define NEAREST(mine) MAX(MAX(UNDER(number[0], mine), UNDER(number[1], mine)), \
                          MAX(UNDER(number[2], mine), UNDER(share, mine)))
#define THERE(n) (number[0] == (n) || number[1] == (n) || number[2] == (n))

proctype writer(byte me) {
    byte watched = 0, before = 0;
    bool the_share = false;

    atomic { next++; number[me] = next };

listing:
    atomic {
        before = COUNT(number[me]);
        watched = NEAREST(number[me]);
        the_share = watched == share && !THERE(watched)
    };
    if
    :: before == 0 -> goto held
    :: before != 0 && ((the_share && share != watched) || (!the_share && !THERE(watched)))      /* the event */
    fi;
    if
    :: NO(NOBODY) && before == 1 -> goto held       /* nobody else was before us */
    :: else -> goto listing
    fi;

held:
    atomic { holding[me] = true; assert(SOUND) };
    atomic { holding[me] = false; number[me] = 0 };
    ended++
}

inline leave() {        /* gives the share back, or takes away what there may be of it */
    share = 0
}

proctype both() {
    byte mine = 0;

    atomic { next++; number[0] = next; mine = next };
    COUNT(mine) == 0;
    holding[0] = true;

taking:
    if
    :: atomic { lost && !NO(OFLOST) -> goto failed }
    :: atomic { (!lost || NO(OFLOST)) && (number[0] == mine || NO(NOWRITER)) && share == 0 ->
            share = mine + NO(BEHIND) }                                     /* done, and answered */
    :: share != 0                                                           /* exists already: it is ours */
    :: atomic { number[0] != mine && share == 0 && !NO(NOWRITER) -> goto failed }
    :: atomic { faults > 0 && number[0] == mine && share == 0 ->            /* done, the answer is lost */
            faults--; share = mine + NO(BEHIND); goto unknown }
    :: atomic { faults > 0 && share == 0 -> faults--; goto unknown }        /* not done, and the same is seen */
    :: atomic { number[0] == mine && share == 0 ->                          /* gives up, and somebody stays behind */
            share = mine };
        if :: NO(ABANDONED) -> goto over :: else -> leave(); goto over fi
    fi;

    /* Made.  Whose is it, and is the writer's hold still one? */
    if
    :: goto judging
    :: if :: NO(SHARELEFT) :: else -> leave() fi; goto over                 /* gives up */
    fi;

unknown:
    if
    :: goto taking                                                          /* again, the same */
    :: if :: NO(SHAREGHOST) :: else -> leave() fi; goto over                /* gives up */
    fi;

judging:
    if
    :: atomic { dying && !NO(FOREIGN) -> goto failed }
    :: atomic { lost && !NO(OFLOST) && !NO(FOREIGN) -> goto failed }
    :: atomic { (!dying || NO(FOREIGN)) && (!lost || NO(OFLOST) || NO(FOREIGN)) -> sharing = true };
        assert(!lost || NO(FOREIGN));
        goto shared
    fi;

shared:
    assert(SOUND);
    atomic { holding[0] = false; number[0] = 0 };
    assert(SOUND);
    if
    :: NO(ITSELF) -> atomic { next++; number[0] = next }; COUNT(number[0]) == 0
    :: else
    fi;
    sharing = false;
    leave();
    goto over;

failed:
    leave();

over:
    atomic { holding[0] = false; sharing = false; number[0] = 0 };
    ended++
}

proctype world() {
end:
    do
    :: atomic { faults > 0 && holding[0] && !sharing && !lost -> faults--; lost = true; holding[0] = false }
    :: atomic { faults > 0 && holding[0] && !sharing && !dying -> faults--; lost = true; holding[0] = false; dying = true }
    :: atomic { dying && (number[0] != 0 || share != 0) -> number[0] = 0; share = 0 }
    :: atomic { faults > 0 && number[0] != 0 && holding[0] && !sharing -> faults--; number[0] = 0 }
    od
}

init {
    atomic { run both(); run writer(1); run writer(2); run world() }
    ended == 3;
    assert(number[0] == 0 && number[1] == 0 && number[2] == 0 && share == 0)
}
