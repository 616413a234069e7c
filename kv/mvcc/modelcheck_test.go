package mvcc

// check verifies what must hold in every state.
func (m *smModel) check(s *smState) {
	for t := range m.cfg.txns {
		m.checkOutcome(s, uint8(t))
		m.checkReads(s, uint8(t))
	}
	for t := range m.cfg.txns {
		for u := range m.cfg.txns[:t] {
			m.checkPair(s, uint8(t), uint8(u))
		}
	}
	if m.cfg.serializable() {
		m.checkSerializable(s)
	}
	m.checkTogether(s)
	m.checkObservers(s)
	if m.cfg.collector == smScanner && s.gc.pc == gcDone {
		for t := range m.cfg.txns {
			if f := s.txns[t].committedAt; f != 0 && f <= s.gc.safePoint && !s.gc.closed.has(uint8(t)) {
				m.fail("a commit at or below a timestamp whose locks had all been found")
			}
		}
	}
}

// checkOutcome: a transaction has one outcome, which its client was told and the tables hold.
func (m *smModel) checkOutcome(s *smState, t uint8) {
	txn := &s.txns[t]
	committedAt := txn.committedAt
	switch {
	case committedAt == 0 && txn.outcome == smAcked && m.cfg.txns[t].keysWritten() != 0:
		m.fail("acknowledged, but not committed")
	case committedAt == 0:
		return
	case txn.outcome == smAborted:
		m.fail("reported as aborted, but committed")
	case txn.outcome == smAcked && txn.commit != committedAt:
		m.fail("acknowledged at another commit_ts than that of the records")
	case committedAt <= txn.start || committedAt <= txn.read && txn.read != smLatest:
		m.fail("commit_ts is not above the snapshot")
	case committedAt-committedAt%smTick > s.now:
		m.fail("I6: a commit_ts at or above what the oracle has yet to issue")
	}
	for i := range m.cfg.txns {
		if s.txns[i].start == committedAt {
			m.fail("a computed commit_ts equals an issued timestamp")
		}
	}
	for rest := m.cfg.txns[t].keysWritten(); rest != 0; {
		var k uint8
		rest, k = rest.next()
		rec := &s.keys[k]
		if rec.rollbacks.has(t) {
			m.fail("I3: one transaction has been committed and rolled back")
		}
		if m.mut == mutLockOnlyUnrecorded && m.cfg.txns[t].writes[k] == OpLock {
			continue
		}
		held := (rec.versions | rec.lockCommit).has(t) || rec.lock.owner == t+1 && rec.lock.op != OpPessimistic
		if sh := &s.shards[s.at[k]]; !held && (committedAt > sh.collected || sh.kept.has(t)) {
			m.fail("a write of a committed transaction is lost")
		}
	}
}

// expectedAt returns the writer + 1 whose version of k a snapshot at ts shows to t.
func (m *smModel) expectedAt(s *smState, t, k uint8, ts smTS) uint8 {
	best, at := uint8(smNothing), smTS(0)
	if m.cfg.initial.has(k) {
		best = smInitial + 1
	}
	for u := range m.cfg.txns {
		op := m.cfg.txns[u].writes[k]
		if f := s.txns[u].committedAt; uint8(u) != t && f != 0 && f <= ts && f > at && (op == OpPut || op == OpDelete) {
			best, at = uint8(u)+1, f
		}
	}
	return best
}

// sameValue reports whether two writers left the same value: absence is one value.
func (m *smModel) sameValue(k, a, b uint8) bool {
	absent := func(w uint8) bool { return w == smNothing || w <= smTxns && m.cfg.txns[w-1].writes[k] == OpDelete }
	return a == b || absent(a) && absent(b)
}

// checkReads: every read of a transaction is one of the snapshot at its read_ts.
func (m *smModel) checkReads(s *smState, t uint8) {
	txn := &s.txns[t]
	for k := range txn.saw {
		saw := txn.saw[k]
		if saw == 0 {
			continue
		}
		if saw <= smTxns && s.txns[saw-1].committedAt == 0 {
			m.fail("a read has seen what is not committed")
		}
		if txn.read == smLatest {
			m.checkOrder(s, t)
		} else if !m.sameValue(uint8(k), saw, m.expectedAt(s, t, uint8(k), txn.read)) {
			m.fail("a read differs from the snapshot at its read_ts")
		}
	}
}

// checkLatest: a read of the latest value sees every commit that was acknowledged before it began.
func (m *smModel) checkLatest(s *smState, t, k uint8) {
	txn := &s.txns[t]
	saw := txn.saw[k]
	at := smTS(0)
	if saw <= smTxns {
		at = s.txns[saw-1].committedAt
	}
	for rest := txn.ackedAtBegin; rest != 0; {
		var u uint8
		rest, u = rest.next()
		if op := m.cfg.txns[u].writes[k]; (op == OpPut || op == OpDelete) && s.txns[u].committedAt > at {
			m.fail("a read of the latest value misses an acknowledged commit")
		}
	}
}

// commitOf returns the commit_ts of what a read saw, 0 for nothing and for initial values.
func (s *smState) commitOf(saw uint8) smTS {
	if saw == 0 || saw > smTxns {
		return 0
	}
	return s.txns[saw-1].committedAt
}

// sawBefore is the largest commit_ts that the first n reads of a transaction saw.
func (m *smModel) sawBefore(s *smState, t uint8, n int) (ts smTS) {
	for _, op := range m.cfg.txns[t].ops[:n] {
		ts = max(ts, s.commitOf(s.txns[t].saw[op.key]))
	}
	return ts
}

// checkOrder: no read of the latest value misses what had committed when an earlier read saw its version.
func (m *smModel) checkOrder(s *smState, t uint8) {
	for i, op := range m.cfg.txns[t].ops {
		saw := s.txns[t].saw[op.key]
		if saw == 0 {
			break
		}
		floor, at := m.sawBefore(s, t, i), s.commitOf(saw)
		for u := range m.cfg.txns {
			wrote := m.cfg.txns[u].writes[op.key]
			if f := s.txns[u].committedAt; (wrote == OpPut || wrote == OpDelete) && at < f && f <= floor {
				m.fail("a read of the latest value goes back behind the one before")
			}
		}
	}
}

// checkExists: a key is only reported as existing if it exists in the transaction's snapshot.
func (m *smModel) checkExists(s *smState, t, k uint8) {
	w := m.expectedAt(s, t, k, s.txns[t].read)
	if m.sameValue(k, w, smNothing) {
		m.fail("a key that the snapshot does not have was said to exist")
	}
}

// checkPair: first committer wins, and no two versions of a key have one timestamp.
func (m *smModel) checkPair(s *smState, t, u uint8) {
	a, b := &s.txns[t], &s.txns[u]
	if a.committedAt == 0 || b.committedAt == 0 || m.cfg.txns[t].keysWritten()&m.cfg.txns[u].keysWritten() == 0 {
		return
	}
	if a.committedAt == b.committedAt {
		m.fail("I5: two versions of one key have one commit_ts")
	}
	if a.committedAt > b.committedAt {
		a, b = b, a
	}
	if b.read < a.committedAt {
		m.fail("I8: two transactions that overlap have written one key: a lost update")
	}
}

// checkTogether: a lock excludes others until its transaction ends, or the transaction fails, unless the other follows
// it in every respect: it has seen all writes of this one.
func (m *smModel) checkTogether(s *smState) {
	for t := range m.cfg.txns {
		for rest := s.txns[t].together; rest != 0; {
			var u uint8
			rest, u = rest.next()
			a, b := &s.txns[t], &s.txns[u]
			if a.committedAt > b.committedAt {
				a, b = b, a
			}
			if a.committedAt != 0 && b.read < a.committedAt {
				m.fail("two transactions that have held one key at the same time, not both shared, are committed")
			}
		}
	}
}

// checkSerializable: the committed transactions have an order that explains their reads.
func (m *smModel) checkSerializable(s *smState) {
	var before [smTxns]smMask // before[t]: who must come before t
	for t := range m.cfg.txns {
		txn := &s.txns[t]
		if txn.committedAt == 0 && txn.outcome != smAcked {
			continue
		}
		for k := uint8(0); k < smKeys; k++ {
			saw := txn.saw[k]
			if saw == 0 {
				continue
			}
			seen := smTS(0)
			if saw <= smTxns {
				seen = s.txns[saw-1].committedAt
				before[t] |= bit(saw - 1)
			}
			for u := range m.cfg.txns {
				if u != t && s.txns[u].committedAt > seen && m.cfg.txns[u].keysWritten().has(k) {
					before[u] |= bit(uint8(t))
				}
			}
		}
		for u := range m.cfg.txns {
			if u != t && s.txns[u].committedAt != 0 && s.txns[u].committedAt < txn.committedAt && m.cfg.txns[u].keysWritten()&m.cfg.txns[t].keysWritten() != 0 {
				before[t] |= bit(uint8(u))
			}
		}
	}
	for range smTxns {
		for t := range before {
			for rest := before[t]; rest != 0; {
				var u uint8
				rest, u = rest.next()
				before[t] |= before[u]
			}
		}
	}
	for t := range before {
		if before[t].has(uint8(t)) {
			m.fail("serializable: a cycle of dependencies")
		}
	}
}

// afterCrash: a commit that a crash has undone must not have been reported.
func (m *smModel) afterCrash(s *smState) {
	for t := range m.cfg.txns {
		txn := &s.txns[t]
		if txn.committedAt == 0 {
			continue
		}
		written := m.cfg.txns[t].keysWritten()
		there, locked := false, true
		for rest := written; rest != 0; {
			var k uint8
			rest, k = rest.next()
			rec := &s.keys[k]
			there = there || (rec.versions | rec.lockCommit).has(uint8(t)) || txn.committedAt <= s.shards[s.at[k]].collected && !s.shards[s.at[k]].kept.has(uint8(t))
			locked = locked && (rec.lock.owner == uint8(t)+1 && rec.lock.async || rec.versions.has(uint8(t)))
		}
		if there || locked {
			continue
		}
		known := txn.outcome == smAcked
		for u := range s.txns {
			for _, saw := range s.txns[u].saw {
				known = known || saw == uint8(t)+1
			}
		}
		if known {
			m.fail("a crash has undone a commit that somebody knows of")
		}
		txn.committedAt = 0
	}
}

// checkEnd: once all clients have ended, messages in flight may be lost, or arrive late; in both cases every lock can
// be resolved, and nothing is undone.
func (m *smModel) checkEnd(from *smState) {
	for t := range m.cfg.txns {
		if from.txns[t].pc != pcDone {
			return
		}
	}
	for i := range from.msgs[:from.nmsgs] {
		if from.msgs[i].stage != 0 {
			return
		}
	}
	s := *from
	late := s.msgs
	n := s.nmsgs
	s.msgs, s.nmsgs = [smMsgs]smMsg{}, 0
	s.now += 2 * smClock
	if s.shards[m.cfg.shards()-1].away {
		m.storeReturns(&s)
	}
	s.gc.absent = 0
	m.sweep(&s)
	for i := range late[:n] {
		msg := late[i]
		if msg.kind != msgAcquire || !m.mustWait(&s, &msg) {
			m.handle(&s, &msg)
			m.check(&s)
		}
	}
	m.sweep(&s)
}

// sweep resolves all locks.
func (m *smModel) sweep(s *smState) {
	for k := range s.keys {
		for range smTxns {
			if s.holderBut(uint8(k), smResolver).owner == 0 {
				break
			}
			m.resolveFully(s, uint8(k))
			for s.nmsgs > 0 {
				msg := s.msgs[0]
				s.dropMessage(0)
				m.handle(s, &msg)
			}
		}
		if s.holderBut(uint8(k), smResolver).owner != 0 {
			m.fail("a lock that cannot be resolved")
		}
	}
	m.check(s)
}
