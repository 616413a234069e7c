package mvcc

// startCommit sends the prewrites.
func (m *smModel) startCommit(s *smState, t uint8) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	if spec.readsOnly() {
		if spec.pessimistic {
			m.abort(s, t, false)
		}
		s.txns[t].retire(smAcked)
		return
	}
	txn.ackedAtCommit = s.acked()
	txn.pc, txn.out = pcPrewrite, spec.mutated()
	involved := spec.mutated()
	if spec.serializable {
		involved |= spec.reads()
	}
	_, together := s.servedBy(involved)
	switch {
	case (spec.mode == smOnePC || spec.mode == smLarge) && together:
		txn.onePC = true
		m.sendOnePhase(s, t, spec.mutated())
		return
	case spec.mode == smAsync:
		txn.async = true
		if txn.floor = s.tick(); m.mut == mutNoFloor {
			txn.floor = 0
		}
	}
	txn.out &^= spec.keysShared()
	m.sendPrewrites(s, t, txn.out)
}

func (m *smModel) sendPrewrites(s *smState, t uint8, keys smMask) {
	s.eachShard(keys, func(keys smMask) { m.send(s, m.prewriteMsg(&s.txns[t], t, keys)) })
}

// answered continues with an answer.
func (m *smModel) answered(s *smState, msg *smMsg, r smReply) {
	t := msg.txn
	txn := &s.txns[t]
	switch msg.kind {
	case msgAcquire:
		if r.answer == ansOK {
			m.granted(s, t, msg.keys.first(), &r)
		} else {
			txn.out = 0
			m.abort(s, t, false)
		}
	case msgPrewrite, msgLarge:
		m.prewritten(s, msg, r)
	case msgCommit:
		m.primaryAnswered(s, t, r)
	case msgRollback:
		switch r.answer {
		case ansCommitted:
			m.ack(s, t, r.ts, 0)
		case ansTooOld:
			txn.retire(smUnknown)
		default:
			m.abort(s, t, false)
		}
	}
}

// prewritten continues with the answer to a prewrite.
func (m *smModel) prewritten(s *smState, msg *smMsg, r smReply) {
	t := msg.txn
	txn := &s.txns[t]
	txn.out &^= msg.keys
	switch r.answer {
	case ansOK:
		if txn.onePC && r.ts != 0 {
			m.ack(s, t, r.ts, 0)
			return
		}
		txn.ok |= msg.keys
		txn.onePC = false
		txn.minCommit = max(txn.minCommit, r.min)
		txn.plain = txn.plain || !r.async
	case ansCommitted:
		m.ack(s, t, r.ts, 0)
		return
	case ansLocked:
		txn.need |= msg.keys
		if txn.metTxn == 0 {
			txn.meet(r.key, &r.lock)
		}
		return
	case ansStale:
		m.rerouted(s, t, msg.keys)
		return
	default:
		if r.answer == ansExists {
			m.checkExists(s, t, r.key)
		}
		m.refusedPrewrite(s, t, msg.keys, r.answer != ansLost)
		return
	}
	if txn.async {
		m.settleAsync(s, t)
	}
}

func (m *smModel) rerouted(s *smState, t uint8, keys smMask) {
	txn := &s.txns[t]
	if txn.onePC && txn.lost != 0 {
		m.settleOnePC(s, t)
		return
	}
	keys &^= m.cfg.txns[t].keysShared()
	txn.onePC = false
	txn.out |= keys
	m.sendPrewrites(s, t, keys)
}

// refusedPrewrite continues when a shard has refused to lock the keys. final: it will refuse later attempts, too; a
// lost pessimistic lock, for one, may be amended once the key is free.
func (m *smModel) refusedPrewrite(s *smState, t uint8, keys smMask, final bool) {
	txn := &s.txns[t]
	switch {
	case txn.onePC && txn.lost == 0 && final:
		m.abort(s, t, false)
	case txn.onePC:
		m.settleOnePC(s, t)
	case txn.async:
		txn.failed |= keys
		if final || m.mut == mutGiveWayIsRefusal {
			txn.refused |= keys
		}
		m.settleAsync(s, t)
	default:
		m.abort(s, t, true)
	}
}

// prewriteStep resolves locks in the way, or continues when all keys are locked.
func (m *smModel) prewriteStep(s *smState, t uint8) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	if txn.metTxn != 0 {
		n := *s
		m.giveWay(&n, t)
		m.emit(&n, "give way", nil)
		m.inquire(s, t, 0, func(s *smState, v smVerdict, ts smTS) {
			if v != isAlive && v != isPassed {
				m.finishMet(s, t, ts)
			}
			txn := &s.txns[t]
			again := txn.need
			txn.forget()
			txn.need, txn.out = 0, txn.out|again
			if txn.onePC {
				m.sendOnePhase(s, t, again)
			} else {
				m.sendPrewrites(s, t, again)
			}
		})
		return
	}
	if !txn.ok.all(spec.mutated() &^ spec.keysShared()) {
		return
	}
	n := *s
	if spec.keysWritten() == 0 {
		n.txns[t].retire(smAcked)
		m.emit(&n, "nothing to commit", nil)
		return
	}
	if txn.async && !txn.plain {
		m.ack(&n, t, txn.minCommit, spec.keysWritten())
		m.emit(&n, "all keys are locked", nil)
		return
	}
	ts := n.tick()
	if look := spec.toValidate(m.mut); look != 0 {
		n.txns[t].pc, n.txns[t].floor, n.txns[t].need, n.txns[t].bypass = pcValidate, ts, look, 0
		m.emit(&n, "take a commit_ts to validate at", nil)
		return
	}
	m.sendCommit(&n, t, ts)
	m.emit(&n, "take a commit_ts", nil)
}

// giveWay: rather than wait for a lock, the transaction fails.
func (m *smModel) giveWay(s *smState, t uint8) {
	txn := &s.txns[t]
	failed := txn.need
	txn.forget()
	txn.need = 0
	switch {
	case txn.onePC && txn.lost == 0:
		m.abort(s, t, false)
	case txn.onePC:
		m.settleOnePC(s, t)
	case txn.async:
		txn.failed |= failed
		if m.mut == mutGiveWayIsRefusal {
			txn.refused |= failed
		}
		m.settleAsync(s, t)
	default:
		m.abort(s, t, true)
	}
}

// sendCommit sends the commit point.
func (m *smModel) sendCommit(s *smState, t uint8, ts smTS) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	txn.pc, txn.commit, txn.out, txn.lost = pcCommit, ts, bit(spec.primary), 0
	if spec.keysShared() != 0 {
		txn.behind |= bit(smChecked)
	}
	m.send(s, smMsg{kind: msgCommit, txn: t, keys: bit(spec.primary), flags: flagPrimary, ts: ts})
}

func (m *smModel) primaryAnswered(s *smState, t uint8, r smReply) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	switch {
	case r.answer == ansOK:
		m.ack(s, t, txn.commit, spec.keysWritten()&^bit(spec.primary))
	case r.answer == ansPushed:
		txn.together |= txn.behind &^ bit(smChecked) // the check was useless
		txn.behind = 0
		txn.pc, txn.commit, txn.out, txn.lost = pcPrewrite, 0, 0, 0
		txn.ok = spec.mutated()
		txn.plain = true
	case r.answer == ansNotFound && txn.lost != 0, r.answer == ansTooOld:
		txn.retire(smUnknown)
	default:
		m.abort(s, t, true)
	}
}

// settleOnePC ends a one-phase commit of which an attempt is unanswered: the primary is made to refuse it, or reports
// that it was executed.
func (m *smModel) settleOnePC(s *smState, t uint8) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	if m.mut == mutSettleUnasked {
		m.abort(s, t, false)
		return
	}
	txn.forget()
	txn.need, txn.lost, txn.onePC = 0, 0, false
	txn.pc, txn.out = pcSettle, bit(spec.primary)
	m.send(s, smMsg{kind: msgRollback, txn: t, keys: bit(spec.primary), flags: flagDecide})
}

// settleAsync ends an async commit when all batches have ended and some have failed. Unless it is certain that a batch
// is not locked and never will be, the outcome has to be decided in order.
func (m *smModel) settleAsync(s *smState, t uint8) {
	txn := &s.txns[t]
	if txn.failed == 0 {
		return
	}
	if txn.need != 0 { // the first failed batch ends the waits of the others
		txn.failed |= txn.need
		txn.need = 0
		txn.forget()
	}
	if txn.out != 0 {
		return
	}
	if txn.failed&(txn.refused|^txn.lost) != 0 || m.mut == mutParallelAbort {
		m.abort(s, t, true)
		return
	}
	first := txn.failed.first()
	*txn = smTxn{pc: pcDecide, start: txn.start, read: txn.read, floor: txn.floor, committedAt: txn.committedAt, need: bit(first), together: txn.together,
		lockedAt: txn.lockedAt, saw: txn.saw, ackedAtBegin: txn.ackedAtBegin, ackedAtCommit: txn.ackedAtCommit}
}

// decideStep checks the keys of the client's own async commit, first the one in doubt, and makes the first unlocked one
// permanently refuse the lock.
func (m *smModel) decideStep(from *smState, t uint8) {
	spec := &m.cfg.txns[t]
	for _, keep := range [2]bool{false, true} {
		s := *from
		txn := &s.txns[t]
		if txn.ok.all(spec.keysWritten()) {
			m.allLocked(&s, t)
			m.emit(&s, "decide", nil)
			return
		}
		msg := smMsg{kind: msgSecondaries, txn: t, keys: txn.need, flags: flagOwner}
		if msg.keys == 0 {
			s.eachShard(spec.keysWritten()&^txn.ok, func(keys smMask) { msg.keys = keys })
		}
		if keep {
			if s.dups == 0 {
				return
			}
			s.dups--
			m.sendAgain(&s, msg)
		}
		switch r := m.secondaryRequest(&s, &msg); r.answer {
		case ansCommitted:
			m.ack(&s, t, r.ts, spec.keysWritten())
		case ansRolledBack:
			m.abort(&s, t, true)
		case ansAlive:
			txn.need = 0
			txn.ok |= msg.keys
			txn.minCommit = max(txn.minCommit, r.min)
			txn.plain = txn.plain || !r.async
		default:
			txn.retire(smUnknown)
		}
		m.emit(&s, "decide by", &msg)
	}
}

// allLocked ends a decision that found all keys locked.
func (m *smModel) allLocked(s *smState, t uint8) {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	if !txn.plain {
		m.ack(s, t, txn.minCommit, spec.keysWritten())
		return
	}
	txn.pc, txn.out = pcSettle, bit(spec.primary)
	m.send(s, smMsg{kind: msgRollback, txn: t, keys: bit(spec.primary), flags: flagDecide})
}
