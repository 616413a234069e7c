package mvcc

// smGC is the garbage collector, or, if it fences and removes nothing, a scanner that verifies all that was committed
// up to a timestamp.
type smGC struct {
	safePoint smTS
	cleared   [2]smTS // no shard has a lock at or below it
	bound     smTS    // of the unavailable shard, as the directory has stored it
	absent    smMask  // shards that take no part in the round
	left      smMask  // transactions whose locks were left
	leftOn    smMask  // shards that have such locks
	rounds    uint8   // left
	pc        uint8
	scanned   smMask // shards without locks of transactions begun at or below safePoint
	collected smMask // shards
	restarted bool   // a shard was, since the first scan
	closed    smMask // transactions committed at or below safePoint once all shards were scanned
}

const (
	gcIdle uint8 = iota
	gcFence
	gcResolve
	gcSync
	gcCollect
	gcDone
)

// gcSteps are the collector's steps, in their order.
func (m *smModel) gcSteps(s *smState) {
	if m.cfg.collector == smNoCollector || s.gc.pc == gcDone {
		return
	}
	n := *s
	g := &n.gc
	switch g.pc {
	case gcIdle:
		g.safePoint = n.tick()
		g.pc = gcFence
		if m.cfg.collector == smScanner {
			g.pc = gcResolve
		}
		m.emit(&n, "a safe point is chosen", nil)
	case gcFence:
		m.gcFenceStep(&n)
	case gcResolve:
		m.gcResolveSteps(s)
	case gcSync:
		if m.mut != mutNoSyncLog {
			for rest := m.cfg.allShards() &^ g.absent; rest != 0; {
				var shard uint8
				rest, shard = rest.next()
				m.sync(&n, shard)
			}
		}
		if g.pc = gcCollect; g.restarted && m.mut != mutSyncAnyRun {
			g.pc, g.scanned, g.restarted, g.left, g.leftOn = gcResolve, 0, false, 0, 0
		}
		m.emit(&n, "sync the logs", nil)
	default:
		m.collect(&n, (m.cfg.allShards() &^ g.absent &^ g.collected).first())
		if g.collected == m.cfg.allShards()&^g.absent {
			m.endRound(&n)
		}
		m.emit(&n, "collect", nil)
	}
}

// endRound records on which shards there is no lock at or below the safe point.
func (m *smModel) endRound(s *smState) {
	g := &s.gc
	for shard := range g.cleared {
		if taken := !g.absent.has(uint8(shard)) && !g.leftOn.has(uint8(shard)); taken || m.mut == mutClearedUnseen {
			g.cleared[shard] = g.safePoint
		}
	}
	if g.rounds--; g.rounds == 0 {
		done := smGC{pc: gcDone}
		if m.cfg.aways > 0 { // a shard that returns requests it
			done.safePoint = g.safePoint
		}
		s.gc = done
		return
	}
	s.gc = smGC{rounds: g.rounds, safePoint: g.safePoint, cleared: g.cleared}
}

// protected are the transactions that may have a lock at or below the safe point.
func (m *smModel) protected(s *smState) (spans []TSSpan) {
	if m.mut == mutNothingProtected {
		return nil
	}
	for rest := s.gc.absent; rest != 0; {
		var shard uint8
		rest, shard = rest.next()
		spans = append(spans, TSSpan{After: s.gc.cleared[shard].real(), Through: s.gc.bound.real()})
	}
	for rest := s.gc.left; rest != 0 && m.mut != mutLeftUnprotected; {
		var t uint8
		rest, t = rest.next()
		spans = append(spans, TSSpan{After: s.txns[t].start.real() - 1, Through: s.txns[t].start.real()})
	}
	return mergeSpans(spans)
}

// storeLeaves is the step in which the last shard becomes unavailable to the collector, and storeReturns the one in
// which it is available again: the answer to its first announcement.
func (m *smModel) storeLeaves(from *smState) {
	s := *from
	s.aways--
	sh := &s.shards[m.cfg.shards()-1]
	sh.away, sh.bound = true, s.now
	m.emit(&s, "a shard is away", nil)
}

func (m *smModel) storeReturns(s *smState) {
	sh := &s.shards[m.cfg.shards()-1]
	if m.mut != mutBackUnfenced {
		sh.safePoint = max(sh.safePoint, s.gc.safePoint)
	}
	sh.away, sh.bound = false, 0
}

// refusesLocks reports whether the shard refuses locks of a transaction, because it began above the bound.
func (m *smModel) refusesLocks(s *smState, msg *smMsg) bool {
	if msg.kind != msgPrewrite && msg.kind != msgAcquire {
		return false
	}
	for rest := msg.keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		if sh := &s.shards[s.at[k]]; sh.away && s.txns[msg.txn].start > sh.bound && m.mut != mutNoLockBound {
			return true
		}
	}
	return false
}

func (m *smModel) gcFenceStep(n *smState) {
	g := &n.gc
	for shard := uint8(0); shard < m.cfg.shards(); shard++ {
		sh := &n.shards[shard]
		if sh.away && !g.absent.has(shard) {
			g.absent |= bit(shard)
			g.bound = sh.bound
		}
		if !g.absent.has(shard) && sh.safePoint < g.safePoint {
			sh.safePoint = g.safePoint
			m.emit(n, "raise the fence", nil)
			return
		}
		if m.largeBelow(n, shard) {
			return
		}
	}
	g.pc = gcResolve
	if m.mut == mutGCBeforeResolve {
		g.pc = gcSync
	}
	m.gcSteps(n)
}

// gcResolveSteps: each shard is scanned, and the locks found are resolved, until none is found.
func (m *smModel) gcResolveSteps(s *smState) {
	for shard := uint8(0); shard < m.cfg.shards(); shard++ {
		if (s.gc.scanned | s.gc.absent).has(shard) {
			continue
		}
		n := *s
		g := &n.gc
		if m.mut != mutScanWithoutFence {
			n.shards[shard].maxTS = max(n.shards[shard].maxTS, g.safePoint)
		}
		found, resolved := false, false
		for k := range n.keys {
			l := &n.keys[k].lock
			if n.at[k] == shard && l.owner != 0 && l.op != OpPessimistic && n.txns[l.owner-1].start <= g.safePoint {
				switch m.resolveFully(&n, uint8(k)) {
				case smLeft:
					g.left |= bit(l.owner - 1)
					g.leftOn |= bit(shard)
				case smResolved:
					found, resolved = true, true
				default:
					found = true
				}
			}
		}
		if !found {
			g.scanned |= bit(shard)
		} else if !resolved {
			continue // alive
		}
		if g.scanned == m.cfg.allShards()&^g.absent {
			g.pc = gcSync
			if m.cfg.collector == smScanner {
				g.pc = gcDone
				for t := range n.txns {
					if f := n.txns[t].committedAt; f != 0 && f <= g.safePoint {
						g.closed |= bit(uint8(t))
					}
				}
			}
		}
		m.emit(&n, "scan for locks", nil)
		return
	}
}

// smResolver is the index of a resolver that is not a client.
const smResolver = smTxns - 1

// smResolution is the result for a lock that was to be resolved.
type smResolution uint8

const (
	smAlive smResolution = iota
	smResolved
	smLeft // a shard that takes no part knows the outcome
)

// resolveFully determines the outcome for the lock on k and resolves it, in one step.
func (m *smModel) resolveFully(s *smState, k uint8) smResolution {
	txn := &s.txns[smResolver]
	defer func() { *txn = smTxn{} }()
	l := s.holderBut(k, smResolver)
	txn.meet(k, &l)
	target := txn.metTxn - 1
	for range 16 {
		msg := m.question(s, txn, 0)
		if shard, together := s.servedBy(msg.keys); together && s.gc.absent.has(shard) {
			return smLeft
		}
		v, ts := m.askOnce(s, txn, msg, 0)
		switch v {
		case notYet:
			continue
		case isAlive, isPassed:
			return smAlive
		case isCommitted:
			m.committed(s, target, ts)
		}
		m.finishMet(s, smResolver, ts)
		return smResolved
	}
	m.fail("an inquiry does not end")
	return smAlive
}

// collect removes what only snapshots at or below the safe point could need from a shard.
func (m *smModel) collect(s *smState, shard uint8) {
	g := &s.gc
	g.collected |= bit(shard)
	sh := &s.shards[shard]
	var before []TSSpan
	for rest := sh.kept; rest != 0; {
		var t uint8
		rest, t = rest.next()
		before = append(before, TSSpan{After: s.txns[t].start.real() - 1, Through: s.txns[t].start.real()})
	}
	spans := keptFrom(before, sh.collected.real(), g.safePoint.real(), m.protected(s))
	sh.collected, sh.kept = g.safePoint, 0
	for t := range m.cfg.txns {
		if start := s.txns[t].start; start != 0 && keepForAbsent(start.real(), spans) {
			sh.kept |= bit(uint8(t))
		}
	}
	for k := range s.keys {
		if s.at[k] != shard {
			continue
		}
		rec := &s.keys[k]
		pivot, at := uint8(smInitial), smTS(0)
		for rest := rec.versions &^ bit(smInitial); rest != 0; {
			var t uint8
			rest, t = rest.next()
			if c := s.txns[t].committedAt; c <= g.safePoint && c > at {
				pivot, at = t, c
			}
		}
		for rest := rec.versions; rest != 0; {
			var t uint8
			rest, t = rest.next()
			switch {
			case t == smInitial && pivot != smInitial, t != smInitial && t != pivot && s.txns[t].committedAt <= g.safePoint,
				t == pivot && t != smInitial && m.cfg.txns[t].writes[k] == OpDelete:
				rec.versions &^= bit(t)
				if t != smInitial {
					rec.lockCommit |= bit(t) & sh.kept
				}
			}
		}
		m.collectStatus(s, rec, sh.kept)
	}
}

func (m *smModel) collectStatus(s *smState, rec *smRecords, kept smMask) {
	if m.mut == mutGCAllRollbacks {
		rec.rollbacks = 0
	}
	if o := rec.lock.owner; o != 0 && s.txns[o-1].start <= s.gc.safePoint {
		return
	}
	for t := uint8(0); t < smResolver; t++ {
		if kept.has(t) {
			continue
		}
		if s.txns[t].start <= s.gc.safePoint {
			rec.rollbacks &^= bit(t)
		}
		if s.txns[t].committedAt <= s.gc.safePoint {
			rec.lockCommit &^= bit(t)
		}
	}
}
