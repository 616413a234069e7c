package mvcc

// smPC is a client's position in its program.
type smPC uint8

const (
	pcIdle     smPC = iota
	pcRun           // its reads and locks
	pcRefresh       // its snapshot is to advance to floor
	pcPrewrite      // its keys are being locked
	pcValidate      // serializable: its reads are being checked again, at commit
	pcCommit        // the primary's commit is in flight
	pcSettle        // a one-phase commit is unanswered: the primary's status is being checked
	pcDecide        // an async commit is unanswered: the status of its keys is being checked
	pcDone
)

// clientSteps are the steps that client t may take by itself.
func (m *smModel) clientSteps(s *smState, t uint8) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	if txn.pc == pcDone {
		return
	}
	if s.deaths > 0 && spec.mayDie && txn.pc != pcIdle {
		n := *s
		n.deaths--
		n.txns[t].retire(smDead)
		m.emit(&n, "a client crashes", nil)
	}
	m.impatience(s, t)
	switch txn.pc {
	case pcIdle:
		if m.observerStep(s, t) {
			return
		}
		n := *s
		m.beginTxn(&n, t)
		m.emit(&n, "begin", nil)
	case pcRun:
		m.run(s, t)
	case pcRefresh, pcValidate:
		m.refreshStep(s, t)
	case pcPrewrite:
		m.prewriteStep(s, t)
	case pcDecide:
		m.decideStep(s, t)
	}
}

// retire ends a client. What late messages refer to stays.
func (t *smTxn) retire(o smOutcome) {
	if o != smAcked {
		t.commit = 0
	}
	*t = smTxn{pc: pcDone, outcome: o, start: t.start, read: t.read, commit: t.commit, committedAt: t.committedAt, together: t.together,
		behind:   t.behind & bit(smChecked),
		lockedAt: t.lockedAt, saw: t.saw, ackedAtBegin: t.ackedAtBegin, ackedAtCommit: t.ackedAtCommit}
}

func (m *smModel) beginTxn(s *smState, t uint8) {
	txn := &s.txns[t]
	txn.pc, txn.start = pcRun, s.tick()
	txn.read = txn.start
	if m.cfg.txns[t].latest {
		txn.read = smLatest
	}
	for i := range s.txns {
		if s.txns[i].outcome == smAcked && s.txns[i].committedAt >= txn.start {
			m.fail("I9: a transaction begins below a commit that was acknowledged before")
		}
	}
}

func (s *smState) acked() (who smMask) {
	for i := range s.txns {
		if s.txns[i].outcome == smAcked {
			who |= bit(uint8(i))
		}
	}
	return who
}

// awaited reports whether the sender of a message still waits for its answer.
func (m *smModel) awaited(s *smState, msg *smMsg) bool {
	txn := &s.txns[msg.txn]
	if txn.outcome != smOpen || !txn.out.all(msg.keys) {
		return false
	}
	switch msg.kind {
	case msgPrewrite, msgLarge:
		return txn.pc == pcPrewrite
	case msgCommit:
		return txn.pc == pcCommit && msg.flags&flagPrimary != 0 && msg.ts == txn.commit
	case msgRollback:
		return txn.pc == pcSettle && msg.flags&flagDecide != 0
	case msgAcquire:
		return txn.pc == pcRun
	}
	return false
}

// impatience: a client does not wait for an answer forever. It sends the request again, or gives up.
func (m *smModel) impatience(s *smState, t uint8) {
	txn := &s.txns[t]
	for i := range s.msgs[:s.nmsgs] {
		msg := &s.msgs[i]
		if s.losses > 0 && msg.txn == t && msg.stage == 0 && m.awaited(s, msg) && !txn.lost.all(msg.keys) {
			n := *s
			n.losses--
			n.txns[t].lost |= msg.keys
			m.emit(&n, "the client tires of", msg)
		}
	}
	lost := txn.lost & txn.out
	if lost == 0 {
		return
	}
	if again, ok := m.request(s, t, lost); ok {
		n := *s
		m.send(&n, again)
		if n.nmsgs != s.nmsgs {
			m.emit(&n, "once more", &again)
		}
	}
	n := *s
	m.giveUp(&n, t)
	m.emit(&n, "the client gives up waiting", nil)
}

// request is what the client would send (again) for the keys.
func (m *smModel) request(s *smState, t uint8, keys smMask) (smMsg, bool) {
	txn := &s.txns[t]
	spec := &m.cfg.txns[t]
	switch txn.pc {
	case pcPrewrite:
		if txn.onePC {
			return smMsg{kind: msgPrewrite, txn: t, keys: spec.mutated(), flags: flagOnePC}, true
		}
		var some smMask
		s.eachShard(keys, func(k smMask) { some = k })
		return m.prewriteMsg(txn, t, some), true
	case pcCommit:
		return smMsg{kind: msgCommit, txn: t, keys: bit(spec.primary), flags: flagPrimary, ts: txn.commit}, true
	case pcSettle:
		return smMsg{kind: msgRollback, txn: t, keys: bit(spec.primary), flags: flagDecide}, true
	case pcRun:
		return smMsg{kind: msgAcquire, txn: t, keys: keys, ts: txn.read}, true
	}
	return smMsg{}, false
}

func (m *smModel) prewriteMsg(txn *smTxn, t uint8, keys smMask) smMsg {
	msg := smMsg{kind: msgPrewrite, txn: t, keys: keys}
	if txn.async {
		msg.flags, msg.ts2 = flagAsync, txn.floor
	}
	return msg
}

// giveUp is the step of a client that receives no answers.
func (m *smModel) giveUp(s *smState, t uint8) {
	txn := &s.txns[t]
	switch {
	case txn.pc == pcRun:
		m.abort(s, t, false)
	case txn.pc == pcPrewrite && txn.onePC:
		m.settleOnePC(s, t)
	case txn.pc == pcPrewrite && txn.async:
		given := txn.lost & txn.out
		txn.out &^= given
		txn.failed |= given
		m.settleAsync(s, t)
	case txn.pc == pcPrewrite:
		m.abort(s, t, true)
	default:
		txn.retire(smUnknown)
	}
}

// run takes the next step of the program: a read, a lock, or the commit.
func (m *smModel) run(s *smState, t uint8) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	if int(txn.next) == len(spec.ops) {
		n := *s
		if !spec.observes && !spec.forgets || m.decideObserved(&n, t) {
			m.startCommit(&n, t)
		}
		m.emit(&n, "commit is asked for", nil)
		return
	}
	op := spec.ops[txn.next]
	switch {
	case op.lock && txn.metTxn != 0:
		m.inquire(s, t, 0, func(s *smState, v smVerdict, ts smTS) {
			if v != isAlive && v != isPassed {
				m.finishMet(s, t, ts)
			}
			s.txns[t].forget()
		})
	case op.lock:
		m.lockStep(s, t, op.key)
	case txn.metTxn != 0:
		m.inquire(s, t, m.callerOf(s, t), func(s *smState, v smVerdict, ts smTS) { m.learn(s, t, v, ts) })
	case m.cfg.fine:
		m.readInSteps(s, t, op.key)
	case m.largeBlocksRead(s, t, op.key):
	default:
		n := *s
		m.fence(&n, t, op.key)
		if m.probeLock(&n, t, op.key) == readPass {
			m.sawVersion(&n, t, op.key, m.versionAt(&n, op.key, txn.read))
		}
		m.emit(&n, "read", nil)
	}
}

// lockStep requests a lock, or checks its holder's status.
func (m *smModel) lockStep(s *smState, t, k uint8) {
	txn := &s.txns[t]
	msg := smMsg{kind: msgAcquire, txn: t, keys: bit(k), ts: txn.read}
	n := *s
	if !txn.out.has(k) {
		n.txns[t].out |= bit(k)
		m.send(&n, msg)
		m.emit(&n, "send", &msg)
		return
	}
	for i := range s.msgs[:s.nmsgs] {
		if s.msgs[i] != msg || !m.mustWait(s, &msg) {
			continue
		}
		l := s.holderBut(k, t)
		n.txns[t].meet(k, &l)
		m.emit(&n, "look into the lock in the way of", &msg)
		n = *s // a deadlock, or the wait was too long: the shard reports it
		n.dropMessage(uint8(i))
		n.txns[t].out &^= bit(k)
		m.abort(&n, t, false)
		m.emit(&n, "no more waiting for", &msg)
	}
}

// callerOf is the timestamp above which the owner of a lock in a read's way may commit.
func (m *smModel) callerOf(s *smState, t uint8) smTS {
	if txn := &s.txns[t]; txn.read != smLatest {
		return txn.read
	}
	if floor := m.floorOf(s, t); floor != 0 {
		return floor
	}
	return smLatest
}

// floorOf is the largest commit_ts that a reader of the latest values has seen.
func (m *smModel) floorOf(s *smState, t uint8) smTS {
	if m.mut == mutLatestWithoutFloor {
		return 0
	}
	return m.sawBefore(s, t, len(m.cfg.txns[t].ops))
}

// fence is BeginRead.
func (m *smModel) fence(s *smState, t, k uint8) {
	txn := &s.txns[t]
	if txn.read == smLatest {
		txn.ackedAtBegin = s.acked()
		if sh := &s.shards[s.at[k]]; m.mut != mutLatestWithoutFence {
			sh.maxTS = max(sh.maxTS, m.floorOf(s, t))
		}
		return
	}
	if m.mut != mutReadWithoutFence {
		sh := &s.shards[s.at[k]]
		sh.maxTS = max(sh.maxTS, txn.read)
	}
}

// probeLock probes the lock table; locks that are not ignored are handled.
func (m *smModel) probeLock(s *smState, t, k uint8) readVerdict {
	txn := &s.txns[t]
	l := &s.keys[k].lock
	if l.owner == 0 {
		return readPass
	}
	o := ReadOptions{ReadTS: txn.read.real()}
	if txn.read == smLatest {
		o.FloorTS = m.floorOf(s, t).real()
	}
	for rest := txn.bypass; rest != 0; {
		var i uint8
		rest, i = rest.next()
		o.Bypass = append(o.Bypass, s.txns[i].start.real())
	}
	for rest := txn.resolved; rest != 0; {
		var i uint8
		rest, i = rest.next()
		o.Resolved = append(o.Resolved, CommittedTxn{StartTS: s.txns[i].start.real(), CommitTS: s.txns[i].committedAt.real()})
	}
	verdict := m.mut.read(smKeyNames[k], m.lockOf(s, l), l.state, l.onePC, &o)
	switch verdict {
	case readThrough:
		m.sawVersion(s, t, k, l.owner)
	case readLocked:
		txn.meet(k, l)
	}
	return verdict
}

// readInSteps lets others make steps between the fence, the probe and the iterator.
func (m *smModel) readInSteps(s *smState, t, k uint8) {
	n := *s
	txn := &n.txns[t]
	switch txn.probe {
	case 0:
		m.fence(&n, t, k)
		txn.probe = 1
		if m.mut == mutIteratorFirst {
			txn.early = m.versionAt(s, k, txn.read)
		}
		m.emit(&n, "fence a read", nil)
	case 1:
		if m.largeBlocksRead(s, t, k) {
			return
		}
		switch m.probeLock(&n, t, k) {
		case readWait:
			return
		case readPass:
			txn.probe = 2
		default:
			txn.probe, txn.early = 0, 0
		}
		m.emit(&n, "look at the lock", nil)
	case 3:
		m.awaitDurable(s, t, k)
	default:
		saw := m.versionAt(s, k, txn.read)
		if m.mut == mutIteratorFirst {
			saw = txn.early
		}
		if txn.read == smLatest && m.mut != mutLatestUnsynced {
			txn.probe, txn.early = 3, saw
		} else {
			txn.probe, txn.early = 0, 0
			m.sawVersion(&n, t, k, saw)
		}
		m.emit(&n, "open the iterator", nil)
	}
}

// awaitDurable ends a read of the latest version when what it saw is durable.
func (m *smModel) awaitDurable(s *smState, t, k uint8) {
	n := *s
	txn := &n.txns[t]
	if m.largeBlocksRead(s, t, k) || m.probeLock(&n, t, k) == readWait {
		return
	}
	saw := txn.early
	n = *s
	txn.probe, txn.early = 0, 0
	m.sawVersion(&n, t, k, saw)
	m.emit(&n, "look at the lock again", nil)
}

// smNothing is what a read saw that found no version.
const smNothing = smInitial + 2

// versionAt returns the writer + 1 of the newest version at or below ts.
func (m *smModel) versionAt(s *smState, k uint8, ts smTS) uint8 {
	rec := &s.keys[k]
	best, at := uint8(smNothing), smTS(0)
	if rec.versions.has(smInitial) {
		best = smInitial + 1
	}
	for rest := rec.versions &^ bit(smInitial); rest != 0; {
		var i uint8
		rest, i = rest.next()
		if c := s.txns[i].committedAt; c <= ts && c > at {
			best, at = i+1, c
		}
	}
	return best
}

// sawVersion ends a read, unless garbage collection may have overtaken it.
func (m *smModel) sawVersion(s *smState, t, k, writer uint8) {
	txn := &s.txns[t]
	sh := &s.shards[s.at[k]]
	if m.tooOld(sh, txn.read) {
		m.abort(s, t, false)
		return
	}
	txn.saw[k] = writer
	txn.next++
	if txn.read == smLatest {
		m.checkLatest(s, t, k)
	}
}

// learn is a reader's reaction to the status of a lock's transaction.
func (m *smModel) learn(s *smState, t uint8, v smVerdict, ts smTS) {
	txn := &s.txns[t]
	target := txn.metTxn - 1
	switch v {
	case isCommitted, isRolledBack:
		if txn.read == smLatest {
			m.finishMet(s, t, ts)
			break
		}
		if v == isCommitted && ts <= txn.read {
			txn.resolved |= bit(target)
		} else {
			txn.bypass |= bit(target)
		}
		m.send(s, smMsg{kind: msgResolve, txn: target, keys: bit(txn.metKey), ts: ts})
	case isPassed:
		txn.bypass |= bit(target)
	case isAlive:
		if m.mut == mutBypassWithoutPush && txn.read != smLatest {
			txn.bypass |= bit(target)
		}
	}
	txn.forget()
}

// moveTo advances the snapshot.
func (m *smModel) moveTo(s *smState, t uint8, ts smTS) {
	txn := &s.txns[t]
	txn.read, txn.floor = ts, 0
	if m.mut != mutBypassKept {
		txn.bypass, txn.resolved = 0, 0
	}
}

// granted continues with a key that has been locked. An insert of an existing key gives up.
func (m *smModel) granted(s *smState, t, k uint8, r *smReply) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	at := r.ts
	txn.lockedAt[k] = at
	m.noteTogether(s, t, k)
	txn.out &^= bit(k)
	txn.next++
	switch {
	case r.saw == 0:
	case !m.sameValue(k, r.saw, smNothing):
		m.abort(s, t, false)
		return
	default:
		txn.saw[k] = r.saw
		txn.forget() // No read follows that would end the inquiry.
	}
	if at <= txn.read {
		return
	}
	if m.mut == mutNoSnapshotMove {
		return
	}
	to := s.tick()
	if m.mut == mutRefreshTooEarly {
		to = at
	}
	for _, op := range spec.ops[:txn.next] {
		if !op.lock {
			txn.need |= bit(op.key)
		}
	}
	if txn.need == 0 || m.mut == mutNoRefresh {
		txn.need = 0
		m.moveTo(s, t, to)
		return
	}
	txn.pc, txn.floor = pcRefresh, to
	if m.mut != mutBypassKept {
		txn.bypass, txn.resolved = 0, 0
	}
}

// refreshStep checks for one more key that its read is unchanged at the new timestamp.
func (m *smModel) refreshStep(s *smState, t uint8) {
	txn := &s.txns[t]
	to := txn.floor
	if txn.metTxn != 0 {
		push := to
		if txn.pc == pcValidate && s.txns[txn.metTxn-1].start < txn.start {
			push = 0 // two must not push each other forever
		}
		m.inquire(s, t, push, func(s *smState, v smVerdict, ts smTS) { m.refreshLearnt(s, t, v, ts, to, push == 0) })
		return
	}
	n := *s
	ntxn := &n.txns[t]
	if txn.need == 0 {
		m.refreshed(&n, t)
		m.emit(&n, "reads are the same", nil)
		return
	}
	k := txn.need.first()
	if txn.pc == pcValidate && m.cfg.txns[t].writes[k] == OpCheckShared {
		m.checkShared(&n, t, k)
		m.emit(&n, "check a shared lock", nil)
		return
	}
	sh := &n.shards[n.at[k]]
	sh.maxTS = max(sh.maxTS, to)
	switch r, conflict := m.validateKey(&n, t, k, txn.read, to, txn.bypass); {
	case m.tooOld(sh, txn.read), conflict && r.answer == ansConflict:
		m.abort(&n, t, txn.pc == pcValidate)
	case conflict:
		ntxn.meet(k, &r.lock)
	default:
		ntxn.need &^= bit(k)
	}
	m.emit(&n, "look at a read again", nil)
}

func (m *smModel) refreshLearnt(s *smState, t uint8, v smVerdict, ts, to smTS, giveWay bool) {
	txn := &s.txns[t]
	target := txn.metTxn - 1
	switch {
	case v == isCommitted && ts <= to, v == isAlive && giveWay && !txn.met.async:
		m.abort(s, t, txn.pc == pcValidate)
		return
	case v == isAlive:
	case v == isPassed:
		txn.bypass |= bit(target)
	default:
		txn.bypass |= bit(target)
		m.send(s, smMsg{kind: msgResolve, txn: target, keys: bit(txn.metKey), ts: ts})
	}
	txn.forget()
}

// refreshed continues when all reads are unchanged.
func (m *smModel) refreshed(s *smState, t uint8) {
	txn := &s.txns[t]
	to := txn.floor
	if m.mut == mutRefreshTooEarly {
		to = s.tick()
	}
	if txn.pc == pcValidate {
		if m.mut == mutSharedCheckedEarly {
			to = s.tick()
		}
		txn.floor, txn.bypass = 0, 0
		m.sendCommit(s, t, to)
		return
	}
	m.moveTo(s, t, to)
	txn.pc = pcRun
}

// abort ends a transaction that is not committed, and reports it to the user. sent: prewrites may be in flight.
func (m *smModel) abort(s *smState, t uint8, sent bool) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	if spec.readsOnly() && !spec.pessimistic {
		txn.retire(smAborted)
		return
	}
	var locked smMask
	for _, op := range spec.ops {
		if op.lock && (txn.lockedAt[op.key] != 0 || txn.out.has(op.key)) {
			locked |= bit(op.key)
		}
	}
	txn.retire(smAborted)
	if sent {
		flags := flagChain
		if m.mut == mutParallelAbort {
			flags = 0
			s.eachShard(spec.keysWritten()&^bit(spec.primary), func(keys smMask) {
				m.send(s, smMsg{kind: msgRollback, txn: t, keys: keys})
			})
		}
		m.send(s, smMsg{kind: msgRollback, txn: t, keys: bit(spec.primary), flags: flags})
	}
	if locked != 0 {
		s.eachShard(locked, func(keys smMask) {
			m.send(s, smMsg{kind: msgRelease, txn: t, keys: keys, ts: smLatest})
		})
	}
}

// ack reports to the user that the transaction is committed.
func (m *smModel) ack(s *smState, t uint8, ts smTS, commitKeys smMask) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	m.committed(s, t, ts)
	txn.commit = ts
	for rest := txn.ackedAtCommit; rest != 0; {
		var i uint8
		if rest, i = rest.next(); s.txns[i].committedAt >= ts {
			m.fail("a commit that was asked for after another had been acknowledged lies below it")
		}
	}
	released := smMask(0)
	for _, op := range spec.ops {
		if op.lock && !spec.writes[op.key].LeavesLock() {
			released |= bit(op.key)
		}
	}
	txn.retire(smAcked)
	if spec.observes {
		m.sendClear(s, t, txn.read)
	}
	s.eachShard(commitKeys, func(keys smMask) {
		m.send(s, smMsg{kind: msgCommit, txn: t, keys: keys, ts: ts})
	})
	if released != 0 {
		s.eachShard(released, func(keys smMask) {
			m.send(s, smMsg{kind: msgRelease, txn: t, keys: keys, ts: smLatest})
		})
	}
}
