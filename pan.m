#define rand	pan_rand
#define pthread_equal(a,b)	((a)==(b))
#if defined(HAS_CODE) && defined(VERBOSE)
	#ifdef BFS_PAR
		bfs_printf("Pr: %d Tr: %d\n", II, t->forw);
	#else
		cpu_printf("Pr: %d Tr: %d\n", II, t->forw);
	#endif
#endif
	switch (t->forw) {
	default: Uerror("bad forward move");
	case 0:	/* if without executable clauses */
		continue;
	case 1: /* generic 'goto' or 'skip' */
		IfNotBlocked
		_m = 3; goto P999;
	case 2: /* generic 'else' */
		IfNotBlocked
		if (trpt->o_pm&1) continue;
		_m = 3; goto P999;

		 /* PROC world */
	case 3: // STATE 1 - /work/wt-lead/formal/lease.pml:85 - [((((now<24)&&!(((!(cut)&&!(expired))&&((now-last_ping)>=(2+1)))))&&!((!(expired)&&(now>=expiry)))))] (0:0:0 - 1)
		IfNotBlocked
		reached[0][1] = 1;
		if (!((((((int)now.now)<24)&& !((( !(((int)now.cut))&& !(((int)now.expired)))&&((((int)now.now)-((int)now.last_ping))>=(2+1)))))&& !(( !(((int)now.expired))&&(((int)now.now)>=((int)now.expiry)))))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 4: // STATE 2 - /work/wt-lead/formal/lease.pml:85 - [now = (now+1)] (0:0:1 - 1)
		IfNotBlocked
		reached[0][2] = 1;
		(trpt+1)->bup.oval = ((int)now.now);
		now.now = (((int)now.now)+1);
#ifdef VAR_RANGES
		logval("now", ((int)now.now));
#endif
		;
		_m = 3; goto P999; /* 0 */
	case 5: // STATE 3 - /work/wt-lead/formal/lease.pml:87 - [(((!(cut)&&!(expired))&&(now>last_ping)))] (9:0:1 - 1)
		IfNotBlocked
		reached[0][3] = 1;
		if (!((( !(((int)now.cut))&& !(((int)now.expired)))&&(((int)now.now)>((int)now.last_ping)))))
			continue;
		/* merge: last_ping = now(0, 4, 9) */
		reached[0][4] = 1;
		(trpt+1)->bup.oval = ((int)now.last_ping);
		now.last_ping = ((int)now.now);
#ifdef VAR_RANGES
		logval("last_ping", ((int)now.last_ping));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 6: // STATE 5 - /work/wt-lead/formal/lease.pml:90 - [(touched)] (87:0:2 - 1)
		IfNotBlocked
		reached[0][5] = 1;
		if (!(((int)now.touched)))
			continue;
		/* merge: touched = 0(87, 6, 87) */
		reached[0][6] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.touched);
		now.touched = 0;
#ifdef VAR_RANGES
		logval("touched", ((int)now.touched));
#endif
		;
		/* merge: expiry = (now+12)(87, 7, 87) */
		reached[0][7] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.expiry);
		now.expiry = (((int)now.now)+12);
#ifdef VAR_RANGES
		logval("expiry", ((int)now.expiry));
#endif
		;
		/* merge: .(goto)(87, 10, 87) */
		reached[0][10] = 1;
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 4 */
	case 7: // STATE 10 - /work/wt-lead/formal/lease.pml:92 - [.(goto)] (0:87:0 - 2)
		IfNotBlocked
		reached[0][10] = 1;
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 8: // STATE 12 - /work/wt-lead/formal/lease.pml:94 - [((!(expired)&&(now>=expiry)))] (87:0:2 - 1)
		IfNotBlocked
		reached[0][12] = 1;
		if (!(( !(((int)now.expired))&&(((int)now.now)>=((int)now.expiry)))))
			continue;
		/* merge: expired = 1(87, 13, 87) */
		reached[0][13] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.expired);
		now.expired = 1;
#ifdef VAR_RANGES
		logval("expired", ((int)now.expired));
#endif
		;
		/* merge: expired_at = now(87, 14, 87) */
		reached[0][14] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.expired_at);
		now.expired_at = ((int)now.now);
#ifdef VAR_RANGES
		logval("expired_at", ((int)now.expired_at));
#endif
		;
		/* merge: assert((belief<=expired_at))(87, 15, 87) */
		reached[0][15] = 1;
		spin_assert((((int)now.belief)<=((int)now.expired_at)), "(belief<=expired_at)", II, tt, t);
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 4 */
	case 9: // STATE 17 - /work/wt-lead/formal/lease.pml:96 - [(!(cut))] (87:0:1 - 1)
		IfNotBlocked
		reached[0][17] = 1;
		if (!( !(((int)now.cut))))
			continue;
		/* merge: cut = 1(0, 18, 87) */
		reached[0][18] = 1;
		(trpt+1)->bup.oval = ((int)now.cut);
		now.cut = 1;
#ifdef VAR_RANGES
		logval("cut", ((int)now.cut));
#endif
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 10: // STATE 20 - /work/wt-lead/formal/lease.pml:98 - [(((stage==none)&&(n<3)))] (26:0:3 - 1)
		IfNotBlocked
		reached[0][20] = 1;
		if (!(((now.stage==4)&&(((int)now.n)<3))))
			continue;
		/* merge: stage = to_follower(26, 21, 26) */
		reached[0][21] = 1;
		(trpt+1)->bup.ovals = grab_ints(3);
		(trpt+1)->bup.ovals[0] = now.stage;
		now.stage = 3;
#ifdef VAR_RANGES
		logval("stage", now.stage);
#endif
		;
		/* merge: sent_at = now(26, 22, 26) */
		reached[0][22] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.sent_at);
		now.sent_at = ((int)now.now);
#ifdef VAR_RANGES
		logval("sent_at", ((int)now.sent_at));
#endif
		;
		/* merge: committed = 0(26, 23, 26) */
		reached[0][23] = 1;
		(trpt+1)->bup.ovals[2] = ((int)now.committed);
		now.committed = 0;
#ifdef VAR_RANGES
		logval("committed", ((int)now.committed));
#endif
		;
		_m = 3; goto P999; /* 3 */
	case 11: // STATE 24 - /work/wt-lead/formal/lease.pml:101 - [write_request = 1] (0:87:1 - 1)
		IfNotBlocked
		reached[0][24] = 1;
		(trpt+1)->bup.oval = ((int)now.write_request);
		now.write_request = 1;
#ifdef VAR_RANGES
		logval("write_request", ((int)now.write_request));
#endif
		;
		/* merge: .(goto)(87, 27, 87) */
		reached[0][27] = 1;
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 12: // STATE 27 - /work/wt-lead/formal/lease.pml:103 - [.(goto)] (0:87:0 - 2)
		IfNotBlocked
		reached[0][27] = 1;
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 13: // STATE 25 - /work/wt-lead/formal/lease.pml:102 - [write_request = 0] (0:87:1 - 1)
		IfNotBlocked
		reached[0][25] = 1;
		(trpt+1)->bup.oval = ((int)now.write_request);
		now.write_request = 0;
#ifdef VAR_RANGES
		logval("write_request", ((int)now.write_request));
#endif
		;
		/* merge: .(goto)(87, 27, 87) */
		reached[0][27] = 1;
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 14: // STATE 29 - /work/wt-lead/formal/lease.pml:105 - [((stage==to_follower))] (35:0:1 - 1)
		IfNotBlocked
		reached[0][29] = 1;
		if (!((now.stage==3)))
			continue;
		/* merge: touched = 1(0, 30, 35) */
		reached[0][30] = 1;
		(trpt+1)->bup.oval = ((int)now.touched);
		now.touched = 1;
#ifdef VAR_RANGES
		logval("touched", ((int)now.touched));
#endif
		;
		_m = 3; goto P999; /* 1 */
	case 15: // STATE 31 - /work/wt-lead/formal/lease.pml:108 - [(write_request)] (87:0:1 - 1)
		IfNotBlocked
		reached[0][31] = 1;
		if (!(((int)now.write_request)))
			continue;
		/* merge: stage = to_leader(87, 32, 87) */
		reached[0][32] = 1;
		(trpt+1)->bup.oval = now.stage;
		now.stage = 2;
#ifdef VAR_RANGES
		logval("stage", now.stage);
#endif
		;
		/* merge: .(goto)(87, 36, 87) */
		reached[0][36] = 1;
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 3 */
	case 16: // STATE 36 - /work/wt-lead/formal/lease.pml:110 - [.(goto)] (0:87:0 - 2)
		IfNotBlocked
		reached[0][36] = 1;
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 17: // STATE 33 - /work/wt-lead/formal/lease.pml:109 - [(!(write_request))] (87:0:1 - 1)
		IfNotBlocked
		reached[0][33] = 1;
		if (!( !(((int)now.write_request))))
			continue;
		/* merge: stage = to_client(87, 34, 87) */
		reached[0][34] = 1;
		(trpt+1)->bup.oval = now.stage;
		now.stage = 1;
#ifdef VAR_RANGES
		logval("stage", now.stage);
#endif
		;
		/* merge: .(goto)(87, 36, 87) */
		reached[0][36] = 1;
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 3 */
	case 18: // STATE 38 - /work/wt-lead/formal/lease.pml:112 - [((((stage==to_leader)&&!(cut))&&!(expired)))] (87:0:2 - 1)
		IfNotBlocked
		reached[0][38] = 1;
		if (!((((now.stage==2)&& !(((int)now.cut)))&& !(((int)now.expired)))))
			continue;
		/* merge: committed = 1(87, 39, 87) */
		reached[0][39] = 1;
		(trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((int)now.committed);
		now.committed = 1;
#ifdef VAR_RANGES
		logval("committed", ((int)now.committed));
#endif
		;
		/* merge: stage = to_client(87, 40, 87) */
		reached[0][40] = 1;
		(trpt+1)->bup.ovals[1] = now.stage;
		now.stage = 1;
#ifdef VAR_RANGES
		logval("stage", now.stage);
#endif
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 3 */
	case 19: // STATE 42 - /work/wt-lead/formal/lease.pml:114 - [((stage==to_client))] (0:0:0 - 1)
		IfNotBlocked
		reached[0][42] = 1;
		if (!((now.stage==1)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 20: // STATE 43 - /work/wt-lead/formal/lease.pml:116 - [(committed)] (0:0:0 - 1)
		IfNotBlocked
		reached[0][43] = 1;
		if (!(((int)now.committed)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 21: // STATE 44 - /work/wt-lead/formal/lease.pml:60 - [bound = (sent_at+8)] (0:56:3 - 1)
		IfNotBlocked
		reached[0][44] = 1;
		(trpt+1)->bup.ovals = grab_ints(3);
		(trpt+1)->bup.ovals[0] = ((int)((P0 *)_this)->_2_7_1_bound);
		((P0 *)_this)->_2_7_1_bound = (((int)now.sent_at)+8);
#ifdef VAR_RANGES
		logval("world:bound", ((int)((P0 *)_this)->_2_7_1_bound));
#endif
		;
		/* merge: proven = 12(56, 45, 56) */
		reached[0][45] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P0 *)_this)->_2_7_1_proven);
		((P0 *)_this)->_2_7_1_proven = 12;
#ifdef VAR_RANGES
		logval("world:proven", ((int)((P0 *)_this)->_2_7_1_proven));
#endif
		;
		/* merge: k = 0(56, 46, 56) */
		reached[0][46] = 1;
		(trpt+1)->bup.ovals[2] = ((int)((P0 *)_this)->_2_7_1_k);
		((P0 *)_this)->_2_7_1_k = 0;
#ifdef VAR_RANGES
		logval("world:k", ((int)((P0 *)_this)->_2_7_1_k));
#endif
		;
		/* merge: .(goto)(0, 57, 56) */
		reached[0][57] = 1;
		;
		_m = 3; goto P999; /* 3 */
	case 22: // STATE 47 - /work/wt-lead/formal/lease.pml:63 - [((k<n))] (0:0:0 - 1)
		IfNotBlocked
		reached[0][47] = 1;
		if (!((((int)((P0 *)_this)->_2_7_1_k)<((int)now.n))))
			continue;
		_m = 3; goto P999; /* 0 */
	case 23: // STATE 48 - /work/wt-lead/formal/lease.pml:65 - [(((((answered[k]+2)+1)<sent_at)&&((sent[k]+12)>proven)))] (56:0:3 - 1)
		IfNotBlocked
		reached[0][48] = 1;
		if (!(((((((int)now.answered[ Index(((int)((P0 *)_this)->_2_7_1_k), 3) ])+2)+1)<((int)now.sent_at))&&((((int)now.sent[ Index(((int)((P0 *)_this)->_2_7_1_k), 3) ])+12)>((int)((P0 *)_this)->_2_7_1_proven)))))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: _2_7_1_proven */  (trpt+1)->bup.ovals = grab_ints(3);
		(trpt+1)->bup.ovals[0] = ((P0 *)_this)->_2_7_1_proven;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P0 *)_this)->_2_7_1_proven = 0;
		/* merge: proven = (sent[k]+12)(56, 49, 56) */
		reached[0][49] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P0 *)_this)->_2_7_1_proven);
		((P0 *)_this)->_2_7_1_proven = (((int)now.sent[ Index(((int)((P0 *)_this)->_2_7_1_k), 3) ])+12);
#ifdef VAR_RANGES
		logval("world:proven", ((int)((P0 *)_this)->_2_7_1_proven));
#endif
		;
		/* merge: .(goto)(56, 52, 56) */
		reached[0][52] = 1;
		;
		/* merge: k = (k+1)(56, 53, 56) */
		reached[0][53] = 1;
		(trpt+1)->bup.ovals[2] = ((int)((P0 *)_this)->_2_7_1_k);
		((P0 *)_this)->_2_7_1_k = (((int)((P0 *)_this)->_2_7_1_k)+1);
#ifdef VAR_RANGES
		logval("world:k", ((int)((P0 *)_this)->_2_7_1_k));
#endif
		;
		/* merge: .(goto)(0, 57, 56) */
		reached[0][57] = 1;
		;
		_m = 3; goto P999; /* 4 */
	case 24: // STATE 53 - /work/wt-lead/formal/lease.pml:68 - [k = (k+1)] (0:56:1 - 3)
		IfNotBlocked
		reached[0][53] = 1;
		(trpt+1)->bup.oval = ((int)((P0 *)_this)->_2_7_1_k);
		((P0 *)_this)->_2_7_1_k = (((int)((P0 *)_this)->_2_7_1_k)+1);
#ifdef VAR_RANGES
		logval("world:k", ((int)((P0 *)_this)->_2_7_1_k));
#endif
		;
		/* merge: .(goto)(0, 57, 56) */
		reached[0][57] = 1;
		;
		_m = 3; goto P999; /* 1 */
	case 25: // STATE 59 - /work/wt-lead/formal/lease.pml:72 - [(((1==1)&&(proven<bound)))] (67:0:2 - 1)
		IfNotBlocked
		reached[0][59] = 1;
		if (!(((1==1)&&(((int)((P0 *)_this)->_2_7_1_proven)<((int)((P0 *)_this)->_2_7_1_bound)))))
			continue;
		if (TstOnly) return 1; /* TT */
		/* dead 1: _2_7_1_bound */  (trpt+1)->bup.ovals = grab_ints(2);
		(trpt+1)->bup.ovals[0] = ((P0 *)_this)->_2_7_1_bound;
#ifdef HAS_CODE
		if (!readtrail)
#endif
			((P0 *)_this)->_2_7_1_bound = 0;
		/* merge: bound = proven(0, 60, 67) */
		reached[0][60] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P0 *)_this)->_2_7_1_bound);
		((P0 *)_this)->_2_7_1_bound = ((int)((P0 *)_this)->_2_7_1_proven);
#ifdef VAR_RANGES
		logval("world:bound", ((int)((P0 *)_this)->_2_7_1_bound));
#endif
		;
		/* merge: .(goto)(0, 63, 67) */
		reached[0][63] = 1;
		;
		_m = 3; goto P999; /* 2 */
	case 26: // STATE 64 - /work/wt-lead/formal/lease.pml:76 - [((bound>belief))] (87:0:11 - 1)
		IfNotBlocked
		reached[0][64] = 1;
		if (!((((int)((P0 *)_this)->_2_7_1_bound)>((int)now.belief))))
			continue;
		/* merge: belief = bound(87, 65, 87) */
		reached[0][65] = 1;
		(trpt+1)->bup.ovals = grab_ints(11);
		(trpt+1)->bup.ovals[0] = ((int)now.belief);
		now.belief = ((int)((P0 *)_this)->_2_7_1_bound);
#ifdef VAR_RANGES
		logval("belief", ((int)now.belief));
#endif
		;
		/* merge: .(goto)(87, 68, 87) */
		reached[0][68] = 1;
		;
		/* merge: k = 0(87, 69, 87) */
		reached[0][69] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P0 *)_this)->_2_7_1_k);
		((P0 *)_this)->_2_7_1_k = 0;
#ifdef VAR_RANGES
		logval("world:k", ((int)((P0 *)_this)->_2_7_1_k));
#endif
		;
		/* merge: proven = 0(87, 70, 87) */
		reached[0][70] = 1;
		(trpt+1)->bup.ovals[2] = ((int)((P0 *)_this)->_2_7_1_proven);
		((P0 *)_this)->_2_7_1_proven = 0;
#ifdef VAR_RANGES
		logval("world:proven", ((int)((P0 *)_this)->_2_7_1_proven));
#endif
		;
		/* merge: bound = 0(87, 71, 87) */
		reached[0][71] = 1;
		(trpt+1)->bup.ovals[3] = ((int)((P0 *)_this)->_2_7_1_bound);
		((P0 *)_this)->_2_7_1_bound = 0;
#ifdef VAR_RANGES
		logval("world:bound", ((int)((P0 *)_this)->_2_7_1_bound));
#endif
		;
		/* merge: assert((!(expired)||(belief<=expired_at)))(87, 73, 87) */
		reached[0][73] = 1;
		spin_assert(( !(((int)now.expired))||(((int)now.belief)<=((int)now.expired_at))), "( !(expired)||(belief<=expired_at))", II, tt, t);
		/* merge: .(goto)(87, 76, 87) */
		reached[0][76] = 1;
		;
		/* merge: sent[n] = sent_at(87, 77, 87) */
		reached[0][77] = 1;
		(trpt+1)->bup.ovals[4] = ((int)now.sent[ Index(((int)now.n), 3) ]);
		now.sent[ Index(now.n, 3) ] = ((int)now.sent_at);
#ifdef VAR_RANGES
		logval("sent[n]", ((int)now.sent[ Index(((int)now.n), 3) ]));
#endif
		;
		/* merge: answered[n] = now(87, 78, 87) */
		reached[0][78] = 1;
		(trpt+1)->bup.ovals[5] = ((int)now.answered[ Index(((int)now.n), 3) ]);
		now.answered[ Index(now.n, 3) ] = ((int)now.now);
#ifdef VAR_RANGES
		logval("answered[n]", ((int)now.answered[ Index(((int)now.n), 3) ]));
#endif
		;
		/* merge: n = (n+1)(87, 79, 87) */
		reached[0][79] = 1;
		(trpt+1)->bup.ovals[6] = ((int)now.n);
		now.n = (((int)now.n)+1);
#ifdef VAR_RANGES
		logval("n", ((int)now.n));
#endif
		;
		/* merge: stage = none(87, 80, 87) */
		reached[0][80] = 1;
		(trpt+1)->bup.ovals[7] = now.stage;
		now.stage = 4;
#ifdef VAR_RANGES
		logval("stage", now.stage);
#endif
		;
		/* merge: sent_at = 0(87, 81, 87) */
		reached[0][81] = 1;
		(trpt+1)->bup.ovals[8] = ((int)now.sent_at);
		now.sent_at = 0;
#ifdef VAR_RANGES
		logval("sent_at", ((int)now.sent_at));
#endif
		;
		/* merge: committed = 0(87, 82, 87) */
		reached[0][82] = 1;
		(trpt+1)->bup.ovals[9] = ((int)now.committed);
		now.committed = 0;
#ifdef VAR_RANGES
		logval("committed", ((int)now.committed));
#endif
		;
		/* merge: write_request = 0(87, 83, 87) */
		reached[0][83] = 1;
		(trpt+1)->bup.ovals[10] = ((int)now.write_request);
		now.write_request = 0;
#ifdef VAR_RANGES
		logval("write_request", ((int)now.write_request));
#endif
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 15 */
	case 27: // STATE 69 - /work/wt-lead/formal/lease.pml:79 - [k = 0] (0:87:10 - 3)
		IfNotBlocked
		reached[0][69] = 1;
		(trpt+1)->bup.ovals = grab_ints(10);
		(trpt+1)->bup.ovals[0] = ((int)((P0 *)_this)->_2_7_1_k);
		((P0 *)_this)->_2_7_1_k = 0;
#ifdef VAR_RANGES
		logval("world:k", ((int)((P0 *)_this)->_2_7_1_k));
#endif
		;
		/* merge: proven = 0(87, 70, 87) */
		reached[0][70] = 1;
		(trpt+1)->bup.ovals[1] = ((int)((P0 *)_this)->_2_7_1_proven);
		((P0 *)_this)->_2_7_1_proven = 0;
#ifdef VAR_RANGES
		logval("world:proven", ((int)((P0 *)_this)->_2_7_1_proven));
#endif
		;
		/* merge: bound = 0(87, 71, 87) */
		reached[0][71] = 1;
		(trpt+1)->bup.ovals[2] = ((int)((P0 *)_this)->_2_7_1_bound);
		((P0 *)_this)->_2_7_1_bound = 0;
#ifdef VAR_RANGES
		logval("world:bound", ((int)((P0 *)_this)->_2_7_1_bound));
#endif
		;
		/* merge: assert((!(expired)||(belief<=expired_at)))(87, 73, 87) */
		reached[0][73] = 1;
		spin_assert(( !(((int)now.expired))||(((int)now.belief)<=((int)now.expired_at))), "( !(expired)||(belief<=expired_at))", II, tt, t);
		/* merge: .(goto)(87, 76, 87) */
		reached[0][76] = 1;
		;
		/* merge: sent[n] = sent_at(87, 77, 87) */
		reached[0][77] = 1;
		(trpt+1)->bup.ovals[3] = ((int)now.sent[ Index(((int)now.n), 3) ]);
		now.sent[ Index(now.n, 3) ] = ((int)now.sent_at);
#ifdef VAR_RANGES
		logval("sent[n]", ((int)now.sent[ Index(((int)now.n), 3) ]));
#endif
		;
		/* merge: answered[n] = now(87, 78, 87) */
		reached[0][78] = 1;
		(trpt+1)->bup.ovals[4] = ((int)now.answered[ Index(((int)now.n), 3) ]);
		now.answered[ Index(now.n, 3) ] = ((int)now.now);
#ifdef VAR_RANGES
		logval("answered[n]", ((int)now.answered[ Index(((int)now.n), 3) ]));
#endif
		;
		/* merge: n = (n+1)(87, 79, 87) */
		reached[0][79] = 1;
		(trpt+1)->bup.ovals[5] = ((int)now.n);
		now.n = (((int)now.n)+1);
#ifdef VAR_RANGES
		logval("n", ((int)now.n));
#endif
		;
		/* merge: stage = none(87, 80, 87) */
		reached[0][80] = 1;
		(trpt+1)->bup.ovals[6] = now.stage;
		now.stage = 4;
#ifdef VAR_RANGES
		logval("stage", now.stage);
#endif
		;
		/* merge: sent_at = 0(87, 81, 87) */
		reached[0][81] = 1;
		(trpt+1)->bup.ovals[7] = ((int)now.sent_at);
		now.sent_at = 0;
#ifdef VAR_RANGES
		logval("sent_at", ((int)now.sent_at));
#endif
		;
		/* merge: committed = 0(87, 82, 87) */
		reached[0][82] = 1;
		(trpt+1)->bup.ovals[8] = ((int)now.committed);
		now.committed = 0;
#ifdef VAR_RANGES
		logval("committed", ((int)now.committed));
#endif
		;
		/* merge: write_request = 0(87, 83, 87) */
		reached[0][83] = 1;
		(trpt+1)->bup.ovals[9] = ((int)now.write_request);
		now.write_request = 0;
#ifdef VAR_RANGES
		logval("write_request", ((int)now.write_request));
#endif
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 12 */
	case 28: // STATE 77 - /work/wt-lead/formal/lease.pml:119 - [sent[n] = sent_at] (0:87:7 - 3)
		IfNotBlocked
		reached[0][77] = 1;
		(trpt+1)->bup.ovals = grab_ints(7);
		(trpt+1)->bup.ovals[0] = ((int)now.sent[ Index(((int)now.n), 3) ]);
		now.sent[ Index(now.n, 3) ] = ((int)now.sent_at);
#ifdef VAR_RANGES
		logval("sent[n]", ((int)now.sent[ Index(((int)now.n), 3) ]));
#endif
		;
		/* merge: answered[n] = now(87, 78, 87) */
		reached[0][78] = 1;
		(trpt+1)->bup.ovals[1] = ((int)now.answered[ Index(((int)now.n), 3) ]);
		now.answered[ Index(now.n, 3) ] = ((int)now.now);
#ifdef VAR_RANGES
		logval("answered[n]", ((int)now.answered[ Index(((int)now.n), 3) ]));
#endif
		;
		/* merge: n = (n+1)(87, 79, 87) */
		reached[0][79] = 1;
		(trpt+1)->bup.ovals[2] = ((int)now.n);
		now.n = (((int)now.n)+1);
#ifdef VAR_RANGES
		logval("n", ((int)now.n));
#endif
		;
		/* merge: stage = none(87, 80, 87) */
		reached[0][80] = 1;
		(trpt+1)->bup.ovals[3] = now.stage;
		now.stage = 4;
#ifdef VAR_RANGES
		logval("stage", now.stage);
#endif
		;
		/* merge: sent_at = 0(87, 81, 87) */
		reached[0][81] = 1;
		(trpt+1)->bup.ovals[4] = ((int)now.sent_at);
		now.sent_at = 0;
#ifdef VAR_RANGES
		logval("sent_at", ((int)now.sent_at));
#endif
		;
		/* merge: committed = 0(87, 82, 87) */
		reached[0][82] = 1;
		(trpt+1)->bup.ovals[5] = ((int)now.committed);
		now.committed = 0;
#ifdef VAR_RANGES
		logval("committed", ((int)now.committed));
#endif
		;
		/* merge: write_request = 0(87, 83, 87) */
		reached[0][83] = 1;
		(trpt+1)->bup.ovals[6] = ((int)now.write_request);
		now.write_request = 0;
#ifdef VAR_RANGES
		logval("write_request", ((int)now.write_request));
#endif
		;
		/* merge: .(goto)(0, 88, 87) */
		reached[0][88] = 1;
		;
		_m = 3; goto P999; /* 7 */
	case 29: // STATE 85 - /work/wt-lead/formal/lease.pml:121 - [((now>=24))] (0:0:0 - 1)
		IfNotBlocked
		reached[0][85] = 1;
		if (!((((int)now.now)>=24)))
			continue;
		_m = 3; goto P999; /* 0 */
	case 30: // STATE 90 - /work/wt-lead/formal/lease.pml:123 - [-end-] (0:0:0 - 3)
		IfNotBlocked
		reached[0][90] = 1;
		if (!delproc(1, II)) continue;
		_m = 3; goto P999; /* 0 */
	case  _T5:	/* np_ */
		if (!((!(trpt->o_pm&4) && !(trpt->tau&128))))
			continue;
		/* else fall through */
	case  _T2:	/* true */
		_m = 3; goto P999;
#undef rand
	}

