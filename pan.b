	switch (t->back) {
	default: Uerror("bad return move");
	case  0: goto R999; /* nothing to undo */

		 /* PROC world */
;
		;
		
	case 4: // STATE 2
		;
		now.now = trpt->bup.oval;
		;
		goto R999;

	case 5: // STATE 4
		;
		now.last_ping = trpt->bup.oval;
		;
		goto R999;

	case 6: // STATE 7
		;
		now.expiry = trpt->bup.ovals[1];
		now.touched = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;
;
		
	case 7: // STATE 10
		goto R999;

	case 8: // STATE 14
		;
		now.expired_at = trpt->bup.ovals[1];
		now.expired = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 9: // STATE 18
		;
		now.cut = trpt->bup.oval;
		;
		goto R999;

	case 10: // STATE 23
		;
		now.committed = trpt->bup.ovals[2];
		now.sent_at = trpt->bup.ovals[1];
		now.stage = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 3);
		goto R999;

	case 11: // STATE 24
		;
		now.write_request = trpt->bup.oval;
		;
		goto R999;
;
		
	case 12: // STATE 27
		goto R999;

	case 13: // STATE 25
		;
		now.write_request = trpt->bup.oval;
		;
		goto R999;

	case 14: // STATE 30
		;
		now.touched = trpt->bup.oval;
		;
		goto R999;

	case 15: // STATE 32
		;
		now.stage = trpt->bup.oval;
		;
		goto R999;
;
		
	case 16: // STATE 36
		goto R999;

	case 17: // STATE 34
		;
		now.stage = trpt->bup.oval;
		;
		goto R999;

	case 18: // STATE 40
		;
		now.stage = trpt->bup.ovals[1];
		now.committed = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;
;
		;
		;
		;
		
	case 21: // STATE 46
		;
		((P0 *)_this)->_2_7_1_k = trpt->bup.ovals[2];
		((P0 *)_this)->_2_7_1_proven = trpt->bup.ovals[1];
		((P0 *)_this)->_2_7_1_bound = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 3);
		goto R999;
;
		;
		
	case 23: // STATE 53
		;
		((P0 *)_this)->_2_7_1_k = trpt->bup.ovals[2];
		((P0 *)_this)->_2_7_1_proven = trpt->bup.ovals[1];
	/* 0 */	((P0 *)_this)->_2_7_1_proven = trpt->bup.ovals[0];
		;
		;
		ungrab_ints(trpt->bup.ovals, 3);
		goto R999;

	case 24: // STATE 53
		;
		((P0 *)_this)->_2_7_1_k = trpt->bup.oval;
		;
		goto R999;

	case 25: // STATE 60
		;
		((P0 *)_this)->_2_7_1_bound = trpt->bup.ovals[1];
	/* 0 */	((P0 *)_this)->_2_7_1_bound = trpt->bup.ovals[0];
		;
		;
		ungrab_ints(trpt->bup.ovals, 2);
		goto R999;

	case 26: // STATE 83
		;
		now.write_request = trpt->bup.ovals[10];
		now.committed = trpt->bup.ovals[9];
		now.sent_at = trpt->bup.ovals[8];
		now.stage = trpt->bup.ovals[7];
		now.n = trpt->bup.ovals[6];
		now.answered[ Index(now.n, 3) ] = trpt->bup.ovals[5];
		now.sent[ Index(now.n, 3) ] = trpt->bup.ovals[4];
		((P0 *)_this)->_2_7_1_bound = trpt->bup.ovals[3];
		((P0 *)_this)->_2_7_1_proven = trpt->bup.ovals[2];
		((P0 *)_this)->_2_7_1_k = trpt->bup.ovals[1];
		now.belief = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 11);
		goto R999;

	case 27: // STATE 83
		;
		now.write_request = trpt->bup.ovals[9];
		now.committed = trpt->bup.ovals[8];
		now.sent_at = trpt->bup.ovals[7];
		now.stage = trpt->bup.ovals[6];
		now.n = trpt->bup.ovals[5];
		now.answered[ Index(now.n, 3) ] = trpt->bup.ovals[4];
		now.sent[ Index(now.n, 3) ] = trpt->bup.ovals[3];
		((P0 *)_this)->_2_7_1_bound = trpt->bup.ovals[2];
		((P0 *)_this)->_2_7_1_proven = trpt->bup.ovals[1];
		((P0 *)_this)->_2_7_1_k = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 10);
		goto R999;

	case 28: // STATE 83
		;
		now.write_request = trpt->bup.ovals[6];
		now.committed = trpt->bup.ovals[5];
		now.sent_at = trpt->bup.ovals[4];
		now.stage = trpt->bup.ovals[3];
		now.n = trpt->bup.ovals[2];
		now.answered[ Index(now.n, 3) ] = trpt->bup.ovals[1];
		now.sent[ Index(now.n, 3) ] = trpt->bup.ovals[0];
		;
		ungrab_ints(trpt->bup.ovals, 7);
		goto R999;
;
		;
		
	case 30: // STATE 90
		;
		p_restor(II);
		;
		;
		goto R999;
	}

