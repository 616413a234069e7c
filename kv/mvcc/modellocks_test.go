package mvcc

// What the model knows of locks beyond the tables: which transactions have relied on which locks, and the check of
// shared ones.

// smChecked is set in smTxn.behind while a commit is in flight whose shared locks have been checked, whether its client
// runs or not.
const smChecked = 7

// toValidate returns the keys that are checked again when the transaction has its commit_ts.
func (sp *smTxnSpec) toValidate(mut smMutant) smMask {
	keys := sp.keysShared()
	if mut == mutSharedUnchecked {
		keys = 0
	}
	if sp.serializable {
		keys |= sp.reads()
	}
	return keys
}

// checkShared is the request that checks one shared lock, and its answer.
func (m *smModel) checkShared(s *smState, t, k uint8) {
	txn := &s.txns[t]
	if m.tooOld(&s.shards[s.at[k]], txn.start) || m.prewriteVerdict(s, k, t) != prewriteCheck {
		m.abort(s, t, true)
		return
	}
	m.putRecord(s, k, t, OpCheckShared, txn.floor)
	if s.keys[k].used == txn.floor {
		m.sync(s, s.at[k])
	}
	txn.need &^= bit(k)
}

// noteTogether records, when client t learns that it has locked k, its conflicts: others that believe that they hold
// the key, and have not ended.
func (m *smModel) noteTogether(s *smState, t, k uint8) {
	mine, _ := m.cfg.txns[t].locks(k)
	for i := range m.cfg.txns {
		u, other := uint8(i), &s.txns[i]
		theirs, locks := m.cfg.txns[u].locks(k)
		if u == t || !locks || theirs.shared && mine.shared || other.lockedAt[k] == 0 ||
			other.committedAt != 0 || other.outcome == smAcked || other.outcome == smAborted {
			continue
		}
		// A transaction that has its commit_ts, and whose shared lock was checked afterwards, no longer needs the
		// lock: see percolator's checkShared.
		checked := other.behind.has(smChecked) || other.pc == pcValidate && !other.need.has(k) && m.mut != mutSharedCheckedEarly
		if theirs.shared && checked {
			other.behind |= bit(t)
			continue
		}
		other.together |= bit(t)
		s.txns[t].together |= bit(u)
	}
}
