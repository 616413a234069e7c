package mvcc

// The large commit of the model: CommitLarge, step by step. The message that requests it represents its lock as well.
//
//	stage 1  the lock is in the table; the keys are checked one by one
//	stage 2  readers wait from here on; ts is the bound below the commit_ts
//	stage 3  ts is the commit_ts; the files are written. In worlds with ahead the oracle has yet to pass it
//	stage 4  of a mutant: the first file is the store's
//	stage 5  the files are the store's; the lock goes next

// checked is the flag of a key that the large commit has checked.
func checked(k uint8) smFlags { return 1 << (12 + k) }

// largeIn returns the running large commits, of others than t, that have some of the keys.
func (m *smModel) largeIn(s *smState, keys smMask, t uint8, f func(*smMsg) bool) bool {
	for i := range s.msgs[:s.nmsgs] {
		l := &s.msgs[i]
		gone := m.mut == mutLargeLeavesFirst && l.stage >= 3
		if l.kind == msgLarge && l.stage != 0 && !gone && l.txn != t && l.keys&keys != 0 && f(l) {
			return true
		}
	}
	return false
}

// waitsForLarge reports whether a request waits for a large commit.
func (m *smModel) waitsForLarge(s *smState, msg *smMsg) bool {
	return msg.kind != msgClear && m.mut != mutLargeWritersPass && m.largeIn(s, msg.keys, msg.txn, func(*smMsg) bool { return true })
}

// largeBlocksRead reports whether a read of k waits for a large commit.
func (m *smModel) largeBlocksRead(s *smState, t, k uint8) bool {
	return m.mut != mutLargeReadersPass && m.largeIn(s, bit(k), t, func(l *smMsg) bool {
		commitTS := l.ts
		if l.stage == 1 {
			commitTS = 0
		}
		if m.mut == mutLargeAheadPassed && commitTS%smTick != 0 && l.stage == 3 {
			return false
		}
		return decideLargeRead(commitTS.real(), s.txns[t].read.real())
	})
}

// largeBelow reports whether a large commit of a transaction that began at or below the safe point runs on a shard: the
// fence is incomplete until it has ended.
func (m *smModel) largeBelow(s *smState, shard uint8) bool {
	for i := range s.msgs[:s.nmsgs] {
		l := &s.msgs[i]
		if l.kind == msgLarge && l.stage != 0 && s.at[l.keys.first()] == shard && s.txns[l.txn].start <= s.gc.safePoint {
			return m.mut != mutGCPassesLarge
		}
	}
	return false
}

// sendOnePhase requests the one-phase commit of a transaction's keys.
func (m *smModel) sendOnePhase(s *smState, t uint8, keys smMask) {
	if m.cfg.txns[t].mode == smLarge {
		m.send(s, smMsg{kind: msgLarge, txn: t, keys: keys})
		return
	}
	m.send(s, smMsg{kind: msgPrewrite, txn: t, keys: keys, flags: flagOnePC})
}

// beginLarge puts the lock of a large commit into the table.
func (m *smModel) beginLarge(s *smState, msg *smMsg) {
	shard, together := s.servedBy(msg.keys)
	if !together {
		m.delivered(s, msg, smReply{answer: ansStale}, false)
		return
	}
	sh := &s.shards[shard]
	sh.maxTS = max(sh.maxTS, s.txns[msg.txn].read) // a key's absence is a read
	msg.stage = 1
	if m.mut == mutLargeBoundEarly {
		msg.ts = s.tick()
	}
	m.sendAgain(s, *msg)
}

// carryLarge takes the next step of a large commit, which is no longer among the messages; false: it has to wait.
func (m *smModel) carryLarge(s *smState, msg *smMsg) (what string, ok bool) {
	t := msg.txn
	txn := &s.txns[t]
	shard := s.at[msg.keys.first()]
	switch msg.stage {
	case 1:
		for rest := msg.keys; rest != 0; {
			var k uint8
			if rest, k = rest.next(); msg.flags&checked(k) == 0 {
				return m.checkLarge(s, msg, k)
			}
		}
		msg.stage, what = 2, "readers wait for"
		if m.mut == mutLargeBoundEarly {
			break
		}
		msg.ts = smFromReal(largeBound(s.shards[shard].maxTS.real(), txn.start.real(), txn.read.real()))
	case 2:
		msg.stage, what = 3, "take a commit_ts for"
		switch {
		case m.cfg.ahead > 0:
			msg.ts = s.now + smTS(m.cfg.ahead)*smTick
			if m.mut != mutLargeAheadIssued {
				msg.ts++
			}
		case m.mut != mutLargeBoundEarly:
			msg.ts = s.tick()
		}
	case 3, 4:
		if s.now < msg.ts && m.mut != mutLargeAheadEarly {
			what = "wait for the oracle with"
			s.tick()
			break
		}
		what = "ingest the files of"
		m.ingest(s, msg)
	default:
		for rest := msg.keys; rest != 0; {
			var k uint8
			if rest, k = rest.next(); s.keys[k].lock.owner == t+1 {
				s.keys[k].lock = smLock{} // pessimistic, or what replaced it
			}
		}
		m.delivered(s, msg, smReply{answer: ansOK, ts: msg.ts}, false)
		return "leave the table after", true
	}
	m.sendAgain(s, *msg)
	return what, true
}

// checkLarge checks a key under its latch.
func (m *smModel) checkLarge(s *smState, msg *smMsg, k uint8) (what string, ok bool) {
	t := msg.txn
	if probe := (smMsg{kind: msgPrewrite, txn: t, keys: bit(k)}); m.latched(s, &probe) || m.waits(s, bit(k)) {
		return "", false
	}
	what = "check a key of"
	if m.tooOld(&s.shards[s.at[k]], s.txns[t].start) {
		m.delivered(s, msg, smReply{answer: ansTooOld}, false)
		return what, true
	}
	if verdict := m.prewriteVerdict(s, k, t); verdict.failed() {
		m.delivered(s, msg, m.prewriteRefusal(s, t, k, verdict), false)
		return what, true
	}
	msg.flags |= checked(k)
	m.sendAgain(s, *msg)
	return what, true
}

// ingest makes the versions the store's, at once and durably; a mutant does it file by file.
func (m *smModel) ingest(s *smState, msg *smMsg) {
	keys := msg.keys
	if m.mut == mutLargeFileByFile && msg.stage == 3 {
		keys, msg.stage = bit(keys.first()), 4
	} else {
		msg.stage = 5
	}
	for rest := msg.keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		m.putRecord(s, k, msg.txn, m.cfg.txns[msg.txn].writes[k], msg.ts)
		if m.cfg.crashes > 0 && keys.has(k) { // other unsynced data stays unsynced
			s.disk[k].versions |= s.keys[k].versions & bit(msg.txn)
			s.disk[k].lockCommit |= s.keys[k].lockCommit & bit(msg.txn)
			if m.cfg.txns[msg.txn].notifies.has(k) {
				s.disk[k].cell = s.keys[k].cell
			}
		}
	}
}

// crashLarge ends the clients of large commits, which share the process of their shard.
func (m *smModel) crashLarge(s *smState, shard uint8) {
	for t := range m.cfg.txns {
		spec, txn := &m.cfg.txns[t], &s.txns[t]
		if spec.mode != smLarge || s.at[spec.primary] != shard || txn.pc == pcIdle || txn.pc == pcDone {
			continue
		}
		txn.retire(smDead)
		for i := uint8(0); i < s.nmsgs; {
			if s.msgs[i].kind == msgLarge && s.msgs[i].txn == uint8(t) {
				s.dropMessage(i)
			} else {
				i++
			}
		}
	}
}

func smLargeConfigs(wide uint8) []smConfig {
	remove := smWriter(smOnePC, 0)
	remove.writes[0] = OpDelete
	locker := smWriter(smLarge, 0, 1)
	locker.writes[1] = OpLock
	return []smConfig{
		{
			name: "large", what: "step by step: a large commit, an increment of one of its keys, a reader; the process may end",
			keys: 2, initial: 3, fine: true, embedded: true, crashes: 1,
			txns: []smTxnSpec{smIncrement(smLarge, 0, 1), smIncrement(smOnePC, 1), smReader(0, 1)},
		},
		{
			name: "large-latest", what: "step by step: a large commit that only locks one of its keys, a writer, a reader of the latest values",
			keys: 2, initial: 3, fine: true, embedded: true, crashes: 1,
			txns: []smTxnSpec{locker, smWriter(smOnePC, 0, 1), {ops: smReads(1, 0), latest: true}},
		},
		{
			name: "large-pair", what: "two large commits of the same keys, and a reader",
			keys: 2, initial: 3, fine: true, embedded: true, crashes: wide,
			txns: []smTxnSpec{smIncrement(smLarge, 0, 1), smIncrement(smLarge, 1), smReader(1, 0)},
		},
		{
			name: "large-2pc", what: "a large commit that meets the locks of a writer in two phases who may die",
			keys: 2, initial: 3, fine: true, embedded: true, deaths: 1, jumps: 1, crashes: wide,
			txns: []smTxnSpec{smIncrement(smLarge, 0, 1), smWriter(smTwoPC, 1, 0).mortal()},
		},
		{
			name: "large-locks", what: "a large commit of what was locked before, beside a pessimistic and an optimistic increment",
			keys: 2, initial: 3, fine: true, embedded: true, crashes: wide, jumps: wide,
			txns: []smTxnSpec{smPessimistic(smLarge, 0, 1), smPessimistic(smOnePC, 1), smIncrement(smOnePC, 0)},
		},
		{
			name: "large-ahead", what: "step by step: a large commit whose commit_ts lies ahead of the oracle, an increment of one of its keys, a reader; the process may end",
			keys: 2, initial: 3, fine: true, embedded: true, ahead: 1 + wide, crashes: 1,
			txns: []smTxnSpec{smIncrement(smLarge, 0, 1), smIncrement(smOnePC, 1), smReader(0, 1)},
		},
		{
			name: "large-ahead-latest", what: "the same with a writer of both keys, and a reader of the latest values",
			keys: 2, initial: 3, fine: true, embedded: true, ahead: 2, crashes: wide,
			txns: []smTxnSpec{smWriter(smLarge, 0, 1), smWriter(smOnePC, 0, 1), {ops: smReads(1, 0), latest: true}},
		},
		{
			name: "large-ahead-pair", what: "two large commits of one key whose commit_ts lie ahead of the oracle, and a reader",
			keys: 2, initial: 3, fine: true, embedded: true, ahead: 2, crashes: wide,
			txns: []smTxnSpec{smIncrement(smLarge, 0, 1), smIncrement(smLarge, 1), smReader(1, 0)},
		},
		{
			name: "large-gc", what: "garbage collection under a large commit, a removal of one of its keys, and a reader",
			keys: 2, initial: 3, fine: true, embedded: true, collector: smCollects, crashes: wide,
			txns: []smTxnSpec{smWriter(smLarge, 0, 1), remove, smReader(0)},
		},
	}
}
