package mvcc

// smAsk is a client's next request about a lock in its way.
type smAsk uint8

const (
	askNothing smAsk = iota
	askStatus
	askSecondaries
	askSecondariesExpired // the primary's TTL has run out
	askForceSync
)

// plainMet is set among the asked keys when one has a plain lock.
const plainMet = smMask(1 << 7)

// smVerdict is the result of an inquiry.
type smVerdict uint8

const (
	notYet smVerdict = iota
	isAlive
	isPassed
	isCommitted
	isRolledBack
	isUndecided
)

// meet records a lock that is in the way.
func (t *smTxn) meet(k uint8, l *smLock) {
	t.metKey, t.metTxn, t.met = k, l.owner, *l
	t.asking, t.asked, t.gathered = askStatus, 0, 0
}

// forget ends the inquiry.
func (t *smTxn) forget() {
	t.metKey, t.metTxn, t.met = 0, 0, smLock{}
	t.asking, t.asked, t.gathered = askNothing, 0, 0
}

// inquire is the next step of client t's inquiry: a request and its answer. A copy of the request may stay in flight.
// caller is the read in whose way the lock is, or 0.
func (m *smModel) inquire(from *smState, t uint8, caller smTS, learnt func(s *smState, v smVerdict, ts smTS)) {
	for _, keep := range [2]bool{false, true} {
		s := *from
		msg := m.question(&s, &s.txns[t], caller)
		if m.latched(&s, &msg) {
			return
		}
		if keep {
			if s.dups == 0 || !m.mayDecide(&msg) {
				return
			}
			s.dups--
			m.sendAgain(&s, msg)
		}
		v, ts := m.askOnce(&s, &s.txns[t], msg, caller)
		what := "ask"
		if keep {
			what = "ask, with a copy under way,"
		}
		if v != notYet {
			target := s.txns[t].metTxn - 1
			if v == isCommitted {
				m.committed(&s, target, ts)
			}
			learnt(&s, v, ts)
		}
		m.emit(&s, what, &msg)
	}
}

func (m *smModel) mayDecide(msg *smMsg) bool {
	return msg.flags&(flagIfMissing|flagOwner|flagEnded) != 0 || msg.ts2 != 0
}

// question is the next request of an inquiry.
func (m *smModel) question(s *smState, txn *smTxn, caller smTS) smMsg {
	target := txn.metTxn - 1
	spec := &m.cfg.txns[target]
	switch txn.asking {
	case askStatus, askForceSync:
		msg := smMsg{kind: msgStatus, txn: target, keys: bit(spec.lockPrimary(txn.met.op)), ts: caller, ts2: s.tick()}
		if m.mut == mutLocalClock {
			msg.ts2 += smClock
		}
		if expired(m.lockOf(s, &txn.met), msg.ts2.real(), 0) || m.mut == mutRollsBackEarly {
			msg.flags |= flagIfMissing
		}
		if m.knownEnded(s, target) {
			msg.flags |= flagIfMissing | flagEnded
		}
		if txn.met.op == OpPessimistic {
			msg.flags |= flagPess
		}
		if txn.asking == askForceSync {
			msg.flags |= flagForceSync
		}
		return msg
	default:
		msg := smMsg{kind: msgSecondaries, txn: target}
		first := true
		s.eachShard(spec.secondaries()&^txn.asked, func(keys smMask) {
			if first {
				msg.keys, first = keys, false
			}
		})
		if txn.asking == askSecondariesExpired {
			msg.ts2 = s.now
		}
		if m.knownEnded(s, target) {
			msg.flags |= flagEnded
		}
		return msg
	}
}

// knownEnded reports whether others know that a client has crashed.
func (m *smModel) knownEnded(s *smState, t uint8) bool {
	return m.cfg.known && (s.txns[t].outcome == smDead || m.mut == mutTakenForEnded)
}

// askOnce executes one request of an inquiry.
func (m *smModel) askOnce(s *smState, txn *smTxn, msg smMsg, caller smTS) (smVerdict, smTS) {
	if msg.kind == msgStatus {
		return m.askedPrimary(s, txn, msg, caller)
	}
	r := m.secondaryRequest(s, &msg)
	switch {
	case r.answer == ansStale || r.answer == ansTooOld:
		return isAlive, 0
	case r.answer == ansAlive:
		txn.gathered = max(txn.gathered, r.min)
		if !r.async {
			txn.asked |= plainMet
		}
		if !r.locks.all(msg.keys) {
			if txn.asked.has(7) {
				txn.asking = askForceSync
				return notYet, 0
			}
			return isAlive, 0
		}
	}
	decided := r.answer == ansCommitted || r.answer == ansRolledBack
	txn.asked |= msg.keys
	switch {
	case !decided && !(txn.asked &^ plainMet).all(m.cfg.txns[msg.txn].secondaries()):
		return notYet, 0
	case txn.asked.has(7):
		txn.asking = askForceSync
		return notYet, 0
	case r.answer == ansCommitted:
		return isCommitted, r.ts
	case r.answer == ansRolledBack:
		return isRolledBack, 0
	case m.mut == mutResolverRollsBack:
		return isRolledBack, 0
	}
	// All are locked.
	s.eachShard(m.cfg.txns[msg.txn].keysWritten(), func(keys smMask) {
		m.send(s, smMsg{kind: msgResolve, txn: msg.txn, keys: keys, ts: txn.gathered})
	})
	return isCommitted, txn.gathered
}

func (m *smModel) askedPrimary(s *smState, txn *smTxn, msg smMsg, caller smTS) (smVerdict, smTS) {
	r := m.statusRequest(s, &msg)
	forced := msg.flags&flagForceSync != 0
	switch {
	case r.answer == ansCommitted:
		return isCommitted, r.ts
	case r.answer == ansRolledBack && r.undecided:
		return isUndecided, 0
	case r.answer == ansRolledBack:
		return isRolledBack, 0
	case r.answer == ansAlive && r.lock.async && !forced:
		txn.asking, txn.gathered = askSecondaries, r.min
		if expired(m.lockOf(s, &r.lock), msg.ts2.real(), 0) {
			txn.asking = askSecondariesExpired
		}
		if m.cfg.txns[msg.txn].secondaries() == 0 {
			return isCommitted, r.min
		}
		return notYet, 0
	case r.answer == ansAlive && caller != 0 && caller != smLatest && r.min > caller && r.lock.op != OpPessimistic:
		return isPassed, 0
	}
	return isAlive, 0
}

// finishMet ends the lock that was looked into, now that the outcome is known.
func (m *smModel) finishMet(s *smState, t uint8, ts smTS) {
	txn := &s.txns[t]
	target := txn.metTxn - 1
	if txn.met.op == OpPessimistic {
		m.releaseRequest(s, &smMsg{kind: msgRelease, txn: target, keys: bit(txn.metKey), ts: txn.met.forUpdate})
		return
	}
	m.resolveRequest(s, &smMsg{kind: msgResolve, txn: target, keys: bit(txn.metKey), ts: ts})
}

// resolveRequest is ResolveLock: ts is the commit_ts, or 0.
func (m *smModel) resolveRequest(s *smState, msg *smMsg) smReply {
	start := s.txns[msg.txn].start.real()
	m.quiet = m.mut == mutResolverQuiet
	defer func() { m.quiet = false }()
	return m.finishKeys(s, msg.keys, msg.txn, msg.ts, false, func(k uint8, v *keyView) (finish, error) {
		return decideResolve(smKeyNames[k], start, msg.ts.real(), v)
	})
}
