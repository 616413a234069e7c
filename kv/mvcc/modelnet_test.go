package mvcc

// smKind is what a message asks for.
type smKind uint8

const (
	msgPrewrite smKind = iota + 1
	msgCommit
	msgRollback
	msgResolve
	msgStatus
	msgSecondaries
	msgAcquire
	msgRelease
	msgLarge
	msgClear
)

var smKindNames = [...]string{"", "prewrite", "commit", "rollback", "resolve", "status", "secondaries", "acquire", "release", "large commit", "clear"}

// smFlags are the options of a message.
type smFlags uint16

const (
	flagOnePC     smFlags = 1 << iota
	flagAsync             // prewrite
	flagPrimary           // commit: the commit point
	flagChain             // rollback: the other keys follow
	flagDecide            // rollback: the client waits for the answer
	flagIfMissing         // status
	flagPess              // status
	flagForceSync         // status
	flagOwner             // secondaries
	flagEnded             // status, secondaries: the client has crashed
)

// send puts a message in flight, unless an identical one is.
func (m *smModel) send(s *smState, msg smMsg) {
	for i := range s.msgs[:s.nmsgs] {
		if s.msgs[i] == msg {
			return
		}
	}
	m.sendAgain(s, msg)
}

// sendAgain puts a message in flight.
func (m *smModel) sendAgain(s *smState, msg smMsg) {
	if int(s.nmsgs) == smMsgs {
		m.fail("too many messages: the model's bounds are too wide")
		return
	}
	s.msgs[s.nmsgs] = msg
	s.nmsgs++
}

func (s *smState) dropMessage(i uint8) {
	s.nmsgs--
	s.msgs[i] = s.msgs[s.nmsgs]
	s.msgs[s.nmsgs] = smMsg{}
}

// eachShard calls f for the keys of each shard.
func (s *smState) eachShard(keys smMask, f func(keys smMask)) {
	var of [2]smMask
	for rest := keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		of[s.at[k]] |= bit(k)
	}
	for _, some := range of {
		if some != 0 {
			f(some)
		}
	}
}

// deliveries are the steps of the network and of requests that shards execute.
func (m *smModel) deliveries(s *smState) {
	for i := uint8(0); i < s.nmsgs; i++ {
		if i > 0 && s.msgs[i] == s.msgs[i-1] {
			continue
		}
		msg := s.msgs[i]
		if msg.stage != 0 {
			m.carryOn(s, i)
			continue
		}
		if m.latched(s, &msg) || m.refusesLocks(s, &msg) || m.waitsForLarge(s, &msg) {
			continue
		}
		if msg.kind == msgAcquire && m.mustWait(s, &msg) {
			continue
		}
		for _, keep := range [2]bool{false, true} {
			if keep && s.dups == 0 {
				break
			}
			for _, lose := range [2]bool{false, true} {
				if lose && (s.losses == 0 || !m.awaited(s, &msg) || m.inSteps(&msg)) {
					break
				}
				m.deliver(s, i, keep, lose)
			}
		}
	}
}

// latched reports whether a request holds the latch of one of the keys, or is about to change its lock.
func (m *smModel) latched(s *smState, msg *smMsg) bool {
	if !m.cfg.fine {
		return false
	}
	for i := range s.msgs[:s.nmsgs] {
		o := &s.msgs[i]
		held := (o.stage == 1 || o.stage == 3) && o.kind != msgLarge
		if held && o.keys&msg.keys != 0 {
			return true
		}
	}
	return msg.kind != msgClear && m.waits(s, msg.keys)
}

// mustWait reports whether another transaction holds the requested lock: the request is in the queue.
func (m *smModel) mustWait(s *smState, msg *smMsg) bool {
	l := s.holderBut(msg.keys.first(), msg.txn)
	op, _ := m.cfg.txns[msg.txn].locks(msg.keys.first())
	return l.owner != 0 && !(op.shared && l.shared)
}

// inSteps reports whether the request is executed in several steps, between which others make theirs.
func (m *smModel) inSteps(msg *smMsg) bool {
	return m.cfg.fine && (msg.kind == msgPrewrite || msg.kind == msgCommit || msg.kind == msgClear) || msg.kind == msgLarge
}

// deliver executes message i. keep leaves a copy in flight, lose drops the answer.
func (m *smModel) deliver(from *smState, i uint8, keep, lose bool) {
	s := *from
	msg := s.msgs[i]
	what := "deliver"
	if keep {
		s.dups--
		what = "deliver a copy of"
		if m.awaited(&s, &msg) { // it was sent again because the first was not answered in time
			s.txns[msg.txn].lost |= msg.keys
		}
	} else {
		s.dropMessage(i)
	}
	if lose {
		s.losses--
		s.txns[msg.txn].lost |= msg.keys
		what += ", answer lost,"
	}
	if m.inSteps(&msg) {
		m.begin(&s, &msg)
	} else {
		r := m.handle(&s, &msg)
		m.delivered(&s, &msg, r, lose)
	}
	m.emit(&s, what, &msg)
}

// handle executes a request in one step.
func (m *smModel) handle(s *smState, msg *smMsg) smReply {
	switch msg.kind {
	case msgPrewrite:
		r, done := m.prewrite(s, msg)
		if !done {
			m.prewriteApply(s, msg)
			r = m.prewriteSync(s, msg)
		}
		return r
	case msgCommit:
		return m.commitRequest(s, msg)
	case msgRollback:
		return m.rollbackRequest(s, msg)
	case msgResolve:
		return m.resolveRequest(s, msg)
	case msgStatus:
		return m.statusRequest(s, msg)
	case msgSecondaries:
		return m.secondaryRequest(s, msg)
	case msgAcquire:
		return m.acquireRequest(s, msg)
	case msgClear:
		return m.clearRequest(s, msg)
	default:
		return m.releaseRequest(s, msg)
	}
}

// begin is the first step of a request: under latches, it looks and changes the lock table.
func (m *smModel) begin(s *smState, msg *smMsg) {
	staged := *msg
	if msg.kind == msgLarge {
		m.beginLarge(s, &staged)
		return
	}
	if msg.kind == msgClear {
		if m.clears(s, &staged) {
			staged.stage = 1
			m.sendAgain(s, staged)
		}
		return
	}
	if msg.kind == msgPrewrite {
		if m.mut == mutMaxTSBeforeInsert {
			if msg.aside == 0 {
				staged.aside = s.shards[s.at[msg.keys.first()]].maxTS + 1
				staged.stage = 3
				m.sendAgain(s, staged)
				return
			}
			staged.stage = 0
		}
		r, done := m.prewrite(s, &staged)
		if done {
			m.delivered(s, msg, r, false)
			return
		}
		staged.aside = 0
		m.sendAgain(s, staged)
		return
	}
	// Judge on a copy; carry out step by step.
	after := *s
	r := m.commitRequest(&after, msg)
	if r.answer != ansOK {
		m.delivered(s, msg, r, false)
		return
	}
	owned := m.lockedBy(s, msg.txn) & msg.keys
	if owned == 0 {
		*s = after
		m.delivered(s, msg, r, false)
		return
	}
	for rest := owned; rest != 0; {
		var k uint8
		rest, k = rest.next()
		l := &s.keys[k].lock
		l.state = stateFinishing
		l.min = max(l.min, msg.ts)
	}
	staged.stage = 1
	m.sendAgain(s, staged)
}

// carryOn is the next step of a request: its batch becomes visible, or durable.
func (m *smModel) carryOn(from *smState, i uint8) {
	s := *from
	msg := s.msgs[i]
	s.dropMessage(i)
	switch {
	case msg.kind == msgLarge:
		if what, ok := m.carryLarge(&s, &msg); ok {
			m.emit(&s, what, &msg)
		}
	case msg.kind == msgClear:
		s.keys[smRow].cell = 0
		m.emit(&s, "apply", &msg)
	case msg.stage == 3: // of a mutant
		m.begin(&s, &msg)
		m.emit(&s, "insert the locks of", &msg)
	case msg.stage == 1 && msg.kind == msgPrewrite:
		m.prewriteApply(&s, &msg)
		if m.mut == mutLockLeavesBeforeSync && msg.flags&flagOnePC != 0 {
			m.clearLocks(&s, &msg)
		}
		m.sendAgain(&s, msg)
		m.emit(&s, "apply", &msg)
	case msg.stage == 1:
		m.commitApply(&s, &msg)
		msg.stage = 2
		if m.mut == mutLockLeavesBeforeSync {
			m.clearLocks(&s, &msg)
		}
		m.sendAgain(&s, msg)
		m.emit(&s, "apply", &msg)
	default:
		r := smReply{answer: ansOK}
		if msg.kind == msgPrewrite {
			r = m.prewriteSync(&s, &msg)
		} else {
			m.clearLocks(&s, &msg)
			if msg.keys.has(m.cfg.txns[msg.txn].primary) {
				m.sync(&s, s.at[msg.keys.first()])
			}
		}
		if s.losses > 0 && m.awaited(&s, &msg) {
			lost := s
			lost.losses--
			lost.txns[msg.txn].lost |= msg.keys
			m.emit(&lost, "sync, answer lost,", &msg)
		}
		m.delivered(&s, &msg, r, false)
		m.emit(&s, "sync", &msg)
	}
}

func (m *smModel) commitApply(s *smState, msg *smMsg) {
	for rest := m.lockedBy(s, msg.txn) & msg.keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		m.putRecord(s, k, msg.txn, s.keys[k].lock.op, msg.ts)
	}
}

func (m *smModel) clearLocks(s *smState, msg *smMsg) {
	for rest := m.lockedBy(s, msg.txn) & msg.keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		s.keys[k].lock = smLock{}
	}
}

// delivered handles the consequences of an answer.
func (m *smModel) delivered(s *smState, msg *smMsg, r smReply, lose bool) {
	spec := &m.cfg.txns[msg.txn]
	switch {
	case msg.kind == msgCommit && msg.flags&flagPrimary == 0:
		gone := s.recordsCollected(msg.keys.first(), msg.txn)
		if (r.answer == ansRolledBack || r.answer == ansNotFound) && !gone {
			m.fail("a secondary refuses the commit of a transaction that is committed")
		}
	case msg.kind == msgRollback && msg.flags&flagChain != 0 && r.answer == ansOK:
		s.eachShard(spec.keysWritten()&^msg.keys, func(keys smMask) {
			m.send(s, smMsg{kind: msgRollback, txn: msg.txn, keys: keys})
		})
	}
	if !lose && m.awaited(s, msg) {
		m.answered(s, msg, r)
	}
}

// noise are the steps of no participant: time, crashes, splits.
func (m *smModel) noise(s *smState) {
	if m.cfg.splits > 0 && s.splits > 0 {
		m.split(s)
	}
	m.loseHint(s)
	switch sh := &s.shards[m.cfg.shards()-1]; {
	case sh.away:
		n := *s
		m.storeReturns(&n)
		m.emit(&n, "the shard is back", nil)
	case s.aways > 0:
		m.storeLeaves(s)
	}
	if s.now/smClock < smTS(m.cfg.jumps) {
		n := *s
		n.now += smClock
		m.emit(&n, "time passes", nil)
	}
	if s.crashes > 0 {
		for shard := uint8(0); shard < m.cfg.shards(); shard++ {
			n := *s
			n.crashes--
			m.crash(&n, shard)
			m.emit(&n, "a shard crashes", nil)
		}
	}
	if m.cfg.crashes > 0 {
		for shard := uint8(0); shard < m.cfg.shards(); shard++ {
			n := *s
			m.sync(&n, shard)
			if n.disk != s.disk {
				m.emit(&n, "the log is synced", nil)
			}
		}
	}
}

// split moves the last key to another shard. Pessimistic locks are lost.
func (m *smModel) split(from *smState) {
	s := *from
	k := uint8(m.cfg.keys - 1)
	if m.cfg.fine {
		return
	}
	to := 1 - s.at[k]
	old, sh := &s.shards[s.at[k]], &s.shards[to]
	if m.mut != mutSplitForgetsMaxTS {
		sh.maxTS = max(sh.maxTS, old.maxTS)
	}
	sh.safePoint, sh.collected = max(sh.safePoint, old.safePoint), max(sh.collected, old.collected)
	sh.lost = max(sh.lost, old.lost)
	s.at[k] = to
	s.splits--
	if s.keys[k].lock.op == OpPessimistic {
		sh.lost = max(sh.lost, s.now)
		s.keys[k].lock = smLock{}
	}
	if s.shared[k] != [smTxns]smTS{} {
		sh.lost, s.shared[k] = max(sh.lost, s.now), [smTxns]smTS{}
	}
	m.emit(&s, "the range splits", nil)
}
