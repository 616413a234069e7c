package mvcc

// smGC is the garbage collector, or, where nothing is fenced and nothing removed, somebody who makes
// sure of all that was committed up to a timestamp.
type smGC struct {
	safePoint smTS
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
			for shard := uint8(0); shard < m.cfg.shards(); shard++ {
				m.sync(&n, shard)
			}
		}
		if g.pc = gcCollect; g.restarted && m.mut != mutSyncAnyRun {
			g.pc, g.scanned, g.restarted = gcResolve, 0, false
		}
		m.emit(&n, "sync the logs", nil)
	default:
		for shard := uint8(0); shard < m.cfg.shards(); shard++ {
			if !g.collected.has(shard) {
				m.collect(&n, shard)
				break
			}
		}
		if g.collected == m.cfg.allShards() {
			n.gc = smGC{pc: gcDone}
		}
		m.emit(&n, "collect", nil)
	}
}

func (m *smModel) gcFenceStep(n *smState) {
	g := &n.gc
	for shard := uint8(0); shard < m.cfg.shards(); shard++ {
		if sh := &n.shards[shard]; sh.safePoint < g.safePoint {
			sh.safePoint = g.safePoint
			m.emit(n, "raise the fence", nil)
			return
		}
	}
	g.pc = gcResolve
	if m.mut == mutGCBeforeResolve {
		g.pc = gcSync
	}
	m.gcSteps(n)
}

// gcResolveSteps: each shard is scanned, and what is found resolved, until nothing is found.
func (m *smModel) gcResolveSteps(s *smState) {
	for shard := uint8(0); shard < m.cfg.shards(); shard++ {
		if s.gc.scanned.has(shard) {
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
				found = true
				resolved = m.resolveFully(&n, uint8(k)) || resolved
			}
		}
		if !found {
			g.scanned |= bit(shard)
		} else if !resolved {
			continue // alive
		}
		if g.scanned == m.cfg.allShards() {
			g.pc = gcSync
			if m.cfg.collector == smScanner {
				g.pc = gcDone
				for t := range n.txns {
					if f := n.txns[t].fate; f != 0 && f <= g.safePoint {
						g.closed |= bit(uint8(t))
					}
				}
			}
		}
		m.emit(&n, "scan for locks", nil)
		return
	}
}

// smResolver is the place among the transactions of who is nobody's client.
const smResolver = smTxns - 1

// resolveFully finds out what became of the lock on k and ends it, in one go.
func (m *smModel) resolveFully(s *smState, k uint8) bool {
	txn := &s.txns[smResolver]
	defer func() { *txn = smTxn{} }()
	l := s.holderBut(k, smResolver)
	txn.meet(k, &l)
	target := txn.metTxn - 1
	for range 16 {
		msg := m.question(s, txn, 0)
		v, ts := m.askOnce(s, txn, msg, 0)
		switch v {
		case notYet:
			continue
		case isAlive, isPassed:
			return false
		case isCommitted:
			m.committed(s, target, ts)
		}
		m.finishMet(s, smResolver, ts)
		return true
	}
	m.fail("an inquiry does not end")
	return false
}

// collect removes from a shard what only snapshots at or below the safe point could need.
func (m *smModel) collect(s *smState, shard uint8) {
	g := &s.gc
	g.collected |= bit(shard)
	s.shards[shard].collected = g.safePoint
	for k := range s.keys {
		if s.at[k] != shard {
			continue
		}
		rec := &s.keys[k]
		pivot, at := uint8(smInitial), smTS(0)
		for rest := rec.versions &^ bit(smInitial); rest != 0; {
			var t uint8
			rest, t = rest.next()
			if c := s.txns[t].fate; c <= g.safePoint && c > at {
				pivot, at = t, c
			}
		}
		for rest := rec.versions; rest != 0; {
			var t uint8
			rest, t = rest.next()
			switch {
			case t == smInitial && pivot != smInitial, t != smInitial && t != pivot && s.txns[t].fate <= g.safePoint,
				t == pivot && t != smInitial && m.cfg.txns[t].writes[k] == OpDelete:
				rec.versions &^= bit(t)
			}
		}
		m.collectStatus(s, rec)
	}
}

func (m *smModel) collectStatus(s *smState, rec *smRecords) {
	if m.mut == mutGCAllRollbacks {
		rec.rollbacks = 0
	}
	if o := rec.lock.owner; o != 0 && s.txns[o-1].start <= s.gc.safePoint {
		return
	}
	for t := uint8(0); t < smResolver; t++ {
		if s.txns[t].start <= s.gc.safePoint {
			rec.rollbacks &^= bit(t)
		}
		if s.txns[t].fate <= s.gc.safePoint {
			rec.lockCommit &^= bit(t)
		}
	}
}
