package mvcc

// The observers of the model. Writers change the row smRow and notify; an observer is a transaction that
//
//	looks   finds the row's notify cell, which is part of no snapshot
//	begins  takes its snapshot, perhaps after it has locked the acknowledgement; reads acknowledgement and row
//	decides whether the change is already acknowledged, or lies above its snapshot
//	commits the acknowledgement, which has its snapshot as its value, with what it does
//	clears  the cell up to its snapshot, by a message
//
// A forgetter is a transaction that deletes the acknowledgement of a row that is gone and has no cell.

const (
	smRow = 0
	smAck = 1
)

// observerStep is the step of an observer or forgetter that has not begun; false: it is no such transaction.
func (m *smModel) observerStep(s *smState, t uint8) bool {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	switch {
	case spec.forgets && m.forgettable(s):
		return false // it begins as others do
	case spec.forgets || spec.observes && txn.cell == 0 && !m.finds(s):
		if m.writersDone(s) {
			n := *s
			n.txns[t].retire(smAborted)
			m.emit(&n, "nothing more to do", nil)
		}
		return true
	case spec.observes && txn.cell == 0:
		n := *s
		n.hinted = 0
		if n.txns[t].cell = s.keys[smRow].cell; n.txns[t].cell == 0 {
			return true
		}
		if m.mut == mutAckBeforeSnapshot {
			n.txns[t].early = m.versionAt(s, smAck, smLatest)
		}
		m.emit(&n, "find a cell", nil)
		return true
	}
	return false
}

// finds reports whether an observer that looks for work finds some: scans find every cell.
func (m *smModel) finds(s *smState) bool {
	if m.mut == mutHintOnly {
		return s.hinted != 0
	}
	return s.keys[smRow].cell != 0
}

// loseHint is a step of the network in the world of a mutant that relies on hints.
func (m *smModel) loseHint(s *smState) {
	if s.hinted != 0 {
		n := *s
		n.hinted = 0
		m.emit(&n, "a hint is lost", nil)
	}
}

// writersDone reports whether no change is to come.
func (m *smModel) writersDone(s *smState) bool {
	for t := range m.cfg.txns {
		if m.cfg.txns[t].notifies != 0 && s.txns[t].pc != pcDone {
			return false
		}
	}
	return true
}

// forgettable reports whether the latest acknowledgement is of a row that is gone.
func (m *smModel) forgettable(s *smState) bool { return m.rowGone(s, m.versionAt(s, smAck, smLatest)) }

// rowGone reports whether an acknowledgement is flagged so.
func (m *smModel) rowGone(s *smState, ack uint8) bool {
	return ack != 0 && ack <= smTxns && m.cfg.txns[ack-1].observes && m.sameValue(smRow, s.txns[ack-1].saw[smRow], smNothing)
}

// ackedUpTo is the value of the acknowledgement that a transaction has read, 0 for none.
func (m *smModel) ackedUpTo(s *smState, t uint8) smTS {
	ack := s.txns[t].saw[smAck]
	if m.mut == mutAckBeforeSnapshot {
		ack = s.txns[t].early
	}
	if ack == 0 || ack > smTxns || m.sameValue(smAck, ack, smNothing) {
		return 0
	}
	return s.txns[ack-1].read
}

// decideObserved ends an observer or forgetter that has nothing to commit; true: it continues with its commit.
func (m *smModel) decideObserved(s *smState, t uint8) bool {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	if spec.forgets {
		return m.decideForget(s, t)
	}
	acked, change := m.ackedUpTo(s, t), txn.cell
	if acked == 0 && m.mut != mutCellNotReadAgain {
		change = s.keys[smRow].cell // the acknowledgement may have been forgotten since the cell was found
	}
	switch {
	case change == 0 || change > txn.read:
		m.abort(s, t, false)
		return false
	case change <= acked:
		m.abort(s, t, false)
		m.sendClear(s, t, acked)
		return false
	}
	if m.mut == mutClearBeforeCommit {
		m.sendClear(s, t, txn.read)
	}
	return true
}

// decideForget reports whether a forgetter may delete the acknowledgement: it has found no cell, and the log of the
// row's shard has been synced since, in the same run: the removal of the cell is durable.
func (m *smModel) decideForget(s *smState, t uint8) bool {
	cell := s.keys[smRow].cell
	if m.cfg.crashes > 0 && m.mut != mutForgetUnsynced {
		cell = max(cell, s.disk[smRow].cell)
	}
	if cell != 0 || !m.rowGone(s, s.txns[t].saw[smAck]) {
		m.abort(s, t, false)
		return false
	}
	return true
}

func (m *smModel) sendClear(s *smState, t uint8, upTo smTS) {
	m.send(s, smMsg{kind: msgClear, txn: t, keys: bit(smRow), ts: upTo})
}

// putCell is writer.putCells.
func (m *smModel) putCell(s *smState, k, t uint8, ts smTS) {
	if !m.cfg.txns[t].notifies.has(k) || m.quiet {
		return
	}
	c := decideNotify(notifyCell{latest: s.keys[k].cell.real()}, ts.real(), 0)
	s.keys[k].cell = smFromReal(c.latest)
	if m.mut == mutHintOnly {
		s.hinted = 1
	}
}

// clears decides about a NotifyClear.
func (m *smModel) clears(s *smState, msg *smMsg) bool {
	c := notifyCell{latest: s.keys[smRow].cell.real()}
	large := m.largeIn(s, msg.keys, msg.txn, func(*smMsg) bool { return true })
	if m.mut == mutClearPassesLarge {
		large = false
	}
	upTo := msg.ts.real()
	if m.mut == mutClearUnconditional {
		upTo = smLatest.real()
	}
	return decideClear(c, upTo, large)
}

// clearRequest is NotifyClear in one step.
func (m *smModel) clearRequest(s *smState, msg *smMsg) smReply {
	if m.clears(s, msg) {
		s.keys[smRow].cell = 0
	}
	return smReply{answer: ansOK}
}

// changeAt returns the writer + 1 of the newest change of the row at or below ts of which observers were notified.
func (m *smModel) changeAt(s *smState, ts smTS) (writer uint8) {
	at := smTS(0)
	for t := range m.cfg.txns {
		if c := s.txns[t].committedAt; m.cfg.txns[t].notifies.has(smRow) && c > at && c <= ts {
			writer, at = uint8(t)+1, c
		}
	}
	return writer
}

// checkObservers: at most one observer commits for a change, and every change that can be read has its cell or is
// acknowledged.
func (m *smModel) checkObservers(s *smState) {
	var delivered smMask
	acked := smTS(0)
	for t := range m.cfg.txns {
		txn := &s.txns[t]
		if !m.cfg.txns[t].observes || txn.committedAt == 0 {
			continue
		}
		switch change := m.changeAt(s, txn.read); {
		case change == 0:
			m.fail("an observer is committed without a change")
		case delivered.has(change):
			m.fail("two observer transactions are committed for one change")
		default:
			delivered |= bit(change)
		}
		acked = max(acked, txn.read)
	}
	row := &s.keys[smRow]
	for t := range m.cfg.txns {
		c := s.txns[t].committedAt
		if m.cfg.txns[t].notifies.has(smRow) && row.versions.has(uint8(t)) && row.cell < c && acked < c {
			m.fail("a change whose notification is lost")
		}
	}
	m.checkFound(s, acked)
}

// checkFound: while there is an observer with nothing to do, no change is left to it.
func (m *smModel) checkFound(s *smState, acked smTS) {
	if row := &s.keys[smRow]; s.nmsgs != 0 || row.cell <= acked || m.finds(s) || !m.writersDone(s) {
		return
	}
	idle := false
	for t := range m.cfg.txns {
		if m.cfg.txns[t].observes && s.txns[t].pc != pcDone {
			if s.txns[t].pc != pcIdle || s.txns[t].cell != 0 {
				return
			}
			idle = true
		}
	}
	if idle {
		m.fail("a change that no observer finds")
	}
}

// Programs.

func smObserver(mode smMode) smTxnSpec {
	t := smWriter(mode, smAck)
	t.ops, t.observes = smReads(smAck, smRow), true
	return t
}

// smClaimer is an observer that locks the acknowledgement first.
func smClaimer(mode smMode) smTxnSpec {
	t := smObserver(mode)
	t.pessimistic = true
	t.ops = append([]smOp{{key: smAck, lock: true}}, t.ops...)
	return t
}

func smForgetter(mode smMode) smTxnSpec {
	t := smWriter(mode, smAck)
	t.ops, t.writes[smAck], t.forgets = smReads(smAck), OpDelete, true
	return t
}

// notifying makes a writer notify the row's observers.
func (sp smTxnSpec) notifying() smTxnSpec {
	sp.notifies = bit(smRow)
	return sp
}

func smObserverConfigs(wide uint8) []smConfig {
	remove := smWriter(smOnePC, smRow).notifying()
	remove.writes[smRow] = OpDelete
	secondary := smWriter(smTwoPC, 2, smRow).notifying().mortal() // its primary is on another shard
	apart := [smKeys]uint8{smRow: 0, smAck: 0, 2: 1}
	return []smConfig{
		{
			name: "observe", what: "a writer in two phases who may die and one in one phase, and two observers",
			keys: 3, at: apart, initial: bit(smRow), dups: wide, deaths: 1, jumps: 1,
			txns: []smTxnSpec{secondary, smWriter(smOnePC, smRow).notifying(), smObserver(smOnePC), smObserver(smOnePC)},
		},
		{
			name: "observe-apart", what: "a writer, and two observers whose acknowledgement is on another shard, and of whom one may die",
			keys: 2, at: smApart, initial: bit(smRow), dups: wide, losses: wide, deaths: 1, jumps: 1,
			txns: []smTxnSpec{smWriter(smAsync, smRow).notifying(), smObserver(smTwoPC).mortal(), smObserver(smOnePC)},
		},
		{
			name: "observe-claims", what: "a writer, two observers who lock the acknowledgement first, and a restart that loses the locks",
			keys: 2, initial: bit(smRow), crashes: 1, losses: wide, jumps: wide,
			txns: []smTxnSpec{smWriter(smOnePC, smRow).notifying(), smClaimer(smOnePC), smClaimer(smTwoPC)},
		},
		{
			name: "observe-large", what: "step by step: a large commit, a writer in one phase, and an observer; the process may end",
			keys: 2, initial: bit(smRow), fine: true, embedded: true, crashes: wide,
			txns: []smTxnSpec{smWriter(smOnePC, smRow).notifying(), smWriter(smLarge, smRow).notifying(), smObserver(smOnePC)},
		},
		{
			name: "observe-gone", what: "a removal, two observers, the deletion of its acknowledgement, which is on another shard, and a restart",
			keys: 2, at: smApart, initial: bit(smRow), crashes: 1, dups: wide,
			txns: []smTxnSpec{remove, smObserver(smOnePC), smObserver(smOnePC), smForgetter(smOnePC)},
		},
	}
}
