package mvcc

import (
	"errors"
	"slices"

	"github.com/percodb/percodb/tso"
)

// smAnswer is a shard's answer.
type smAnswer uint8

const (
	ansOK smAnswer = iota
	ansLocked
	ansConflict
	ansExists
	ansLost
	ansRolledBack
	ansCommitted
	ansTooOld
	ansPushed
	ansNotFound
	ansStale
	ansAlive
)

// smReply is an answer with its details.
type smReply struct {
	answer smAnswer
	key    uint8
	lock   smLock // of ansLocked
	ts     smTS   // commit_ts, or the timestamp as of which a key is locked
	min    smTS
	async  bool
	locks  smMask // keys found locked
	// undecided: see TxnStatus.
	undecided bool
	saw       uint8 // the version that a lock has found, if it had to check
}

var smKeyNames = [smKeys][]byte{[]byte("a"), []byte("k"), []byte("z")}

// lockOf returns the lock in the form of the decisions.
func (m *smModel) lockOf(s *smState, l *smLock) *Lock {
	owner := l.owner - 1
	return &Lock{
		Op: l.op, StartTS: s.txns[owner].start.real(), Primary: smKeyNames[m.cfg.txns[owner].lockPrimary(l.op)],
		TTLMillis: smTTLMillis + smStepMillis*uint64(l.ttl), MinCommitTS: l.min.real(),
		ForUpdateTS: l.forUpdate.real(), Async: l.async, Shared: l.shared,
	}
}

// sharedLock returns the lock by which transaction t shares k.
func (s *smState) sharedLock(k, t uint8) smLock {
	return smLock{owner: t + 1, op: OpPessimistic, state: stateDurable, shared: true, forUpdate: s.shared[k][t]}
}

// holderBut returns a lock of another transaction than t on k, or none.
func (s *smState) holderBut(k, t uint8) smLock {
	if l := s.keys[k].lock; l.owner != 0 && l.owner != t+1 {
		return l
	}
	for u, at := range s.shared[k] {
		if at != 0 && uint8(u) != t {
			return s.sharedLock(k, uint8(u))
		}
	}
	return smLock{}
}

// view gathers the state of key k for transaction t.
func (m *smModel) view(s *smState, k, t uint8) (v keyView) {
	rec := &s.keys[k]
	if rec.lock.owner != 0 {
		v.lock = m.lockOf(s, &rec.lock)
		if rec.lock.owner != t+1 {
			v.other = v.lock
		}
	} else if o := s.holderBut(k, t); o.owner != 0 {
		v.other = m.lockOf(s, &o)
		v.lock = v.other
	}
	if s.shared[k][t] != 0 {
		own := s.sharedLock(k, t)
		v.lock = m.lockOf(s, &own)
	}
	m.viewRecords(s, k, t, &v)
	return v
}

// viewRecords gathers what is stored.
func (m *smModel) viewRecords(s *smState, k, t uint8, v *keyView) {
	rec := &s.keys[k]
	if rec.versions.has(smInitial) {
		v.newest = writeRecord{op: OpPut, startTS: 1, commitTS: 2}
	}
	for rest := rec.versions &^ bit(smInitial); rest != 0; {
		var i uint8
		rest, i = rest.next()
		if c := s.txns[i].committedAt.real(); c > v.newest.commitTS {
			v.newest = writeRecord{op: m.cfg.txns[i].writes[k], startTS: s.txns[i].start.real(), commitTS: c}
		}
	}
	for rest := rec.lockCommit; rest != 0; {
		var i uint8
		rest, i = rest.next()
		if c := s.txns[i].committedAt.real(); c > v.lockCommitTS {
			v.lockCommitTS, v.lockCommitStartTS = c, s.txns[i].start.real()
		}
	}
	if (rec.versions | rec.lockCommit).has(t) {
		v.ownCommitTS = s.txns[t].committedAt.real()
	}
	v.rolledBack = rec.rollbacks.has(t)
	v.sharedUseTS = rec.used.real()
}

// servedBy returns the shard of keys, or false if there is more than one.
func (s *smState) servedBy(keys smMask) (uint8, bool) {
	first := s.at[keys.first()]
	for rest := keys; rest != 0; {
		var k uint8
		if rest, k = rest.next(); s.at[k] != first {
			return 0, false
		}
	}
	return first, true
}

// tooOld reports whether the fence refuses ts.
func (m *smModel) tooOld(sh *smShard, ts smTS) bool {
	return sh.safePoint != 0 && ts <= sh.safePoint && m.mut != mutNoFence
}

// prewrite checks a request and, if it succeeds, puts its locks into the table. Nothing is stored yet; continue with
// prewriteApply and prewriteSync unless done.
func (m *smModel) prewrite(s *smState, msg *smMsg) (r smReply, done bool) {
	t := msg.txn
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	shardID, together := s.servedBy(msg.keys)
	if !together {
		return smReply{answer: ansStale}, true
	}
	sh := &s.shards[shardID]
	if m.tooOld(sh, txn.start) {
		return smReply{answer: ansTooOld}, true
	}
	if spec.checks(msg.keys) {
		sh.maxTS = max(sh.maxTS, txn.read)
	}
	var toLock, met smMask
	worst, worstAt := prewriteLock, uint8(0)
	for rest := msg.keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		switch verdict := m.prewriteVerdict(s, k, t); {
		case verdict.failed() && verdict > worst:
			worst, worstAt = verdict, k
		case verdict == prewriteDuplicate:
			met |= bit(k)
		case verdict == prewriteLock:
			toLock |= bit(k)
		}
	}
	if worst.failed() {
		return m.prewriteRefusal(s, t, worstAt, worst), true
	}
	return m.insertLocks(s, msg, sh, toLock, met)
}

func (sp *smTxnSpec) checks(keys smMask) bool {
	for k, op := range sp.writes {
		if op == OpCheckNotExists && keys.has(uint8(k)) {
			return true
		}
	}
	return false
}

// prewriteVerdict gathers and decides as checkMutations does.
func (m *smModel) prewriteVerdict(s *smState, k, t uint8) prewriteVerdict {
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	mut := Mutation{Op: spec.writes[k], MustBeNew: spec.mustBeNew.has(k), Key: smKeyNames[k], LockedAt: txn.lockedAt[k].real()}
	start, read := txn.start.real(), txn.read.real()
	v := m.view(s, k, t)
	if v.ownPess(start) && v.lock.ForUpdateTS == mut.LockedAt && !mut.MustBeNew {
		v.newest, v.ownCommitTS = writeRecord{}, 0 // lookForPrewrite omits the lookup
	}
	return m.mut.prewrite(start, read, &mut, &v)
}

func (m *smModel) prewriteRefusal(s *smState, t, k uint8, verdict prewriteVerdict) smReply {
	switch verdict {
	case prewriteCommitted:
		return smReply{answer: ansCommitted, ts: s.txns[t].committedAt}
	case prewriteRolledBack:
		return smReply{answer: ansRolledBack}
	case prewriteConflict:
		return smReply{answer: ansConflict}
	case prewriteExists:
		return smReply{answer: ansExists, key: k}
	case prewriteLost:
		return smReply{answer: ansLost}
	default:
		return smReply{answer: ansLocked, key: k, lock: s.holderBut(k, t)}
	}
}

// insertLocks is lockTable.insert and the choice of timestamps after it.
func (m *smModel) insertLocks(s *smState, msg *smMsg, sh *smShard, toLock, met smMask) (smReply, bool) {
	t := msg.txn
	spec, txn := &m.cfg.txns[t], &s.txns[t]
	onePC := msg.flags&flagOnePC != 0 && met == 0 && spec.fallback&msg.keys == 0
	if met != 0 && m.mut == mutOnePCOverOwnLock {
		onePC = msg.flags&flagOnePC != 0
	}
	r := smReply{answer: ansOK, async: true, locks: met}
	if toLock == 0 && !(onePC && met != 0) {
		m.ownMinimum(s, met, &r)
		if onePC {
			r.ts = txn.read
		}
		return r, true
	}
	floor := max(msg.ts2, txn.read)
	if onePC && !m.cfg.embedded && m.mut != mutNoFloor {
		floor = s.tick() // commitFloor
	}
	minTS := max(sh.maxTS, txn.start, floor)
	if msg.aside != 0 {
		minTS = max(msg.aside-1, txn.start, floor)
	}
	for rest := toLock; rest != 0; {
		var k uint8
		rest, k = rest.next()
		minTS = max(minTS, txn.lockedAt[k])
	}
	minTS++
	async := msg.flags&flagAsync != 0 && spec.fallback&msg.keys == 0
	commitTS := minTS
	switch {
	case onePC:
		if commitTS = m.onePCTimestamp(s, minTS, spec.serializable); commitTS == 0 {
			m.fail("no timestamp left in the tick: the model's bounds are too wide")
		}
		if spec.serializable {
			sh.maxTS = max(sh.maxTS, commitTS)
		}
	case async:
		if _, ok := nextTS(minTS.real() - 1); !ok {
			m.fail("no timestamp left in the tick: the model's bounds are too wide")
		}
	}
	for rest := toLock; rest != 0; {
		var k uint8
		rest, k = rest.next()
		s.keys[k].lock = smLock{owner: t + 1, op: spec.writes[k], min: commitTS, stored: commitTS, async: async,
			onePC: onePC, state: stateInflight, forUpdate: txn.lockedAt[k]}
	}
	if onePC && spec.serializable {
		if _, here := s.servedBy(msg.keys | spec.reads()); !here && m.mut != mutReadsElsewhere {
			m.withdraw(s, toLock)
			return smReply{answer: ansStale}, true
		}
		if r, conflict := m.validateReads(s, t, txn.read, commitTS, s.at[msg.keys.first()]); conflict {
			m.withdraw(s, toLock)
			return r, true
		}
	}
	msg.stage, msg.ts = 1, commitTS
	msg.flags &^= flagOnePC
	if onePC {
		msg.flags |= flagOnePC
	}
	return r, false
}

// withdraw removes inserted locks again.
func (m *smModel) withdraw(s *smState, keys smMask) {
	for rest := keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		s.keys[k].lock = smLock{}
	}
}

// ownMinimum puts the minimum of locks met into the reply.
func (m *smModel) ownMinimum(s *smState, met smMask, r *smReply) {
	for rest := met; rest != 0; {
		var k uint8
		rest, k = rest.next()
		if m.mut == mutDuplicateRaises {
			sh := &s.shards[s.at[k]]
			s.keys[k].lock.min = max(s.keys[k].lock.min, sh.maxTS+1)
		}
		r.min = max(r.min, s.keys[k].lock.min)
		r.async = r.async && s.keys[k].lock.async
	}
}

func (m *smModel) onePCTimestamp(s *smState, minTS smTS, issued bool) smTS {
	if m.cfg.embedded || issued {
		return s.tick()
	}
	if m.mut == mutNoSubticks {
		return minTS - minTS%smTick + smTick
	}
	next, ok := nextTS(minTS.real() - 1)
	if !ok {
		return 0
	}
	return smFromReal(next)
}

// validateReads is State.validate for one transaction's reads on a shard. Nothing changes on a shard for keys of
// others.
func (m *smModel) validateReads(s *smState, t uint8, from, to smTS, shard uint8) (smReply, bool) {
	for rest := m.cfg.txns[t].reads(); rest != 0; {
		var k uint8
		if rest, k = rest.next(); s.at[k] != shard {
			continue
		}
		if r, conflict := m.validateKey(s, t, k, from, to, 0); conflict {
			return r, true
		}
	}
	return smReply{}, false
}

func (m *smModel) validateKey(s *smState, t, k uint8, from, to smTS, bypass smMask) (smReply, bool) {
	rec := &s.keys[k]
	args := RefreshRequest{StartTS: s.txns[t].start.real(), FromTS: from.real(), ToTS: to.real()}
	for rest := bypass; rest != 0; {
		var i uint8
		rest, i = rest.next()
		args.Bypass = append(args.Bypass, s.txns[i].start.real())
	}
	if rec.lock.owner != 0 && m.mut != mutRefreshIgnoresLocks &&
		decideRefreshLock(&args, m.lockOf(s, &rec.lock), rec.lock.state) != readPass {
		return smReply{answer: ansLocked, key: k, lock: rec.lock}, true
	}
	for rest := rec.versions &^ bit(smInitial); rest != 0; {
		var i uint8
		rest, i = rest.next()
		w := writeRecord{startTS: s.txns[i].start.real(), commitTS: s.txns[i].committedAt.real()}
		if decideRefresh(&args, &w) {
			return smReply{answer: ansConflict, key: k}, true
		}
	}
	return smReply{}, false
}

// prewriteApply makes the batch visible.
func (m *smModel) prewriteApply(s *smState, msg *smMsg) {
	msg.stage = 2
	if msg.flags&flagOnePC == 0 {
		return
	}
	for rest := msg.keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		op := m.cfg.txns[msg.txn].writes[k]
		if m.mut == mutLockOnlyUnrecorded && op == OpLock {
			continue
		}
		m.putRecord(s, k, msg.txn, op, msg.ts)
	}
}

// prewriteSync makes it durable, and answers.
func (m *smModel) prewriteSync(s *smState, msg *smMsg) smReply {
	r := smReply{answer: ansOK, async: true}
	for rest := msg.keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		l := &s.keys[k].lock
		if l.owner != msg.txn+1 {
			continue
		}
		if l.onePC || msg.flags&flagOnePC != 0 {
			*l = smLock{}
		} else {
			l.state = stateDurable
		}
	}
	m.sync(s, s.at[msg.keys.first()])
	if msg.flags&flagOnePC != 0 {
		r.ts = msg.ts
		return r
	}
	m.ownMinimum(s, m.lockedBy(s, msg.txn)&msg.keys, &r)
	return r
}

func (m *smModel) lockedBy(s *smState, t uint8) (keys smMask) {
	for k := range s.keys {
		if l := &s.keys[k].lock; l.owner == t+1 && l.op != OpPessimistic {
			keys |= bit(uint8(k))
		}
	}
	return keys
}

// putRecord stores a commit's record on a key.
func (m *smModel) putRecord(s *smState, k, t uint8, op Op, ts smTS) {
	sh := &s.shards[s.at[k]]
	switch decideRecord(op, sh.lost.real(), sh.safePoint.real()) {
	case recordVersion:
		m.committed(s, t, ts)
		s.keys[k].versions |= bit(t)
		m.putCell(s, k, t, ts)
	case recordLock:
		m.committed(s, t, ts)
		s.keys[k].lockCommit |= bit(t)
	case recordUse:
		if m.mut != mutUseUnrecorded {
			s.keys[k].used = max(s.keys[k].used, ts)
		}
	}
}

// noteLost is State.noteLost.
func (m *smModel) noteLost(s *smState, k, t uint8) {
	sh := &s.shards[s.at[k]]
	sh.lost = max(sh.lost, s.txns[t].start)
}

func (m *smModel) putRollback(s *smState, k, t uint8) {
	if m.mut == mutCollapseRollbacks {
		s.keys[k].rollbacks = 0 // only the newest is kept
	}
	s.keys[k].rollbacks |= bit(t)
}

// committed records that a transaction's commit_ts has become known.
func (m *smModel) committed(s *smState, t uint8, ts smTS) {
	committedAt := &s.txns[t].committedAt
	if *committedAt != 0 && *committedAt != ts {
		m.fail("I4: one transaction has two commit_ts")
	}
	*committedAt = ts
}

// sync makes all applied batches of a shard durable.
func (m *smModel) sync(s *smState, shard uint8) {
	if m.cfg.crashes == 0 {
		return
	}
	for k := range s.keys {
		if s.at[k] != shard {
			continue
		}
		rec := s.keys[k]
		if rec.lock.op == OpPessimistic || rec.lock.onePC || rec.lock.state == stateInflight {
			rec.lock = smLock{}
		}
		if rec.lock.state == stateFinishing && (rec.versions | rec.lockCommit | rec.rollbacks).has(rec.lock.owner-1) {
			rec.lock = smLock{} // applied, and gone from disk
		}
		rec.lock.min, rec.lock.ttl, rec.lock.state = rec.lock.stored, 0, stateDurable
		if rec.lock.owner == 0 {
			rec.lock = smLock{}
		}
		s.disk[k] = rec
	}
}

// carryOut applies the decision about transaction t's lock on key k. decides: it must be durable before it is reported.
func (m *smModel) carryOut(s *smState, do finish, k, t uint8, commitTS smTS) (decides bool) {
	l := &s.keys[k].lock
	own := l.owner == t+1
	switch do {
	case finishCommit:
		m.putRecord(s, k, t, l.op, commitTS)
		decides = k == m.cfg.txns[t].primary
	case finishRecord:
		m.putRollback(s, k, t)
		decides = true
	}
	if do != finishNothing && (own && l.op == OpPessimistic || s.shared[k][t] != 0) {
		m.noteLost(s, k, t)
	}
	if do != finishNothing && own {
		*l = smLock{}
	}
	if do != finishNothing {
		s.shared[k][t] = 0
	}
	return decides
}

// waits reports that a lock's state is about to change: requests for the latch wait for that first.
func (m *smModel) waits(s *smState, keys smMask) bool {
	for rest := keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		if l := &s.keys[k].lock; l.owner != 0 && l.state != stateDurable {
			return true
		}
	}
	return false
}

// answerOf converts the error of a decision.
func (m *smModel) answerOf(err error) smAnswer {
	var (
		pushed     *CommitTSExpiredError
		rolledBack *RolledBackError
		notFound   *LockNotFoundError
		committed  *AlreadyCommittedError
		noTxn      *TxnNotFoundError
		corruption *CorruptionError
		mismatch   *PrimaryMismatchError
	)
	switch {
	case err == nil:
		return ansOK
	case errors.As(err, &pushed):
		return ansPushed
	case errors.As(err, &rolledBack):
		return ansRolledBack
	case errors.As(err, &notFound), errors.As(err, &noTxn):
		return ansNotFound
	case errors.As(err, &committed):
		return ansCommitted
	case errors.As(err, &mismatch):
		return ansAlive
	case errors.As(err, &corruption):
		m.fail("a decision met what the protocol cannot have written: " + corruption.Detail)
	default:
		m.fail("unexpected error: " + err.Error())
	}
	return ansOK
}

// finishKeys decides about all keys and applies the decisions in one batch, or does nothing. looks: the decision
// depends on stored records.
func (m *smModel) finishKeys(s *smState, keys smMask, t uint8, commitTS smTS, looks bool, decide func(k uint8, v *keyView) (finish, error)) smReply {
	shard, together := s.servedBy(keys)
	if !together {
		return smReply{answer: ansStale}
	}
	var todo [smKeys]finish
	for rest := keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		v := m.view(s, k, t)
		if looks && m.recordsGone(s, k, t, &v) {
			return smReply{answer: ansTooOld}
		}
		do, err := decide(k, &v)
		if err != nil {
			return smReply{answer: m.answerOf(err), ts: smFromReal(v.ownCommitTS)}
		}
		todo[k] = do
	}
	decides := false
	for rest := keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		decides = m.carryOut(s, todo[k], k, t, commitTS) || decides
	}
	if decides && m.mut != mutStatusNotDurable {
		m.sync(s, shard)
	}
	return smReply{answer: ansOK}
}

// recordsCollected reports whether the records of t on k may have been collected.
func (s *smState) recordsCollected(k, t uint8) bool {
	sh := &s.shards[s.at[k]]
	return s.txns[t].start <= sh.collected && !sh.kept.has(t)
}

// recordsGone is State.recordsGone as lookAll calls it: there is no record of t on k, and it may have been collected.
func (m *smModel) recordsGone(s *smState, k, t uint8, v *keyView) bool {
	return s.recordsCollected(k, t) && !v.ownLock(s.txns[t].start.real()) && v.ownCommitTS == 0 &&
		!v.rolledBack && m.mut != mutTrustsCollected
}

// commitRequest checks a commit; in fine steps its locks are then finishing.
func (m *smModel) commitRequest(s *smState, msg *smMsg) smReply {
	start, commit := s.txns[msg.txn].start.real(), msg.ts.real()
	return m.finishKeys(s, msg.keys, msg.txn, msg.ts, true, func(k uint8, v *keyView) (finish, error) {
		return m.mut.commit(smKeyNames[k], start, commit, msg.flags&flagPrimary != 0, v)
	})
}

func (m *smModel) rollbackRequest(s *smState, msg *smMsg) smReply {
	start := s.txns[msg.txn].start.real()
	return m.finishKeys(s, msg.keys, msg.txn, 0, true, func(_ uint8, v *keyView) (finish, error) { return decideRollback(start, v) })
}

// statusRequest is CheckTxnStatus: ts is the caller's read, ts2 now.
func (m *smModel) statusRequest(s *smState, msg *smMsg) (r smReply) {
	t := msg.txn
	primary := msg.keys.first()
	q := statusQuery{
		startTS: s.txns[t].start.real(), callerTS: msg.ts.real(), nowTS: msg.ts2.real(),
		rollbackIfMissing:    msg.flags&flagIfMissing != 0,
		resolvingPessimistic: msg.flags&flagPess != 0, forceSync: msg.flags&flagForceSync != 0,
		processEnded: msg.flags&flagEnded != 0,
	}
	if msg.ts == smLatest {
		q.callerTS = 0
	}
	answer := m.finishKeys(s, bit(primary), t, 0, !q.resolvingPessimistic, func(k uint8, v *keyView) (finish, error) {
		st, do, pushTS, err := m.mut.status(smKeyNames[k], &q, v)
		if err != nil {
			return finishNothing, err
		}
		if do == finishRecord && s.now/smClock == s.txns[t].start/smClock && (!q.processEnded || s.txns[t].outcome != smDead) {
			m.fail("a lock was rolled back by others before its TTL had run out")
		}
		if pushTS != 0 {
			s.keys[primary].lock.min = max(s.keys[primary].lock.min, smFromReal(pushTS))
		}
		switch {
		case st.CommitTS != 0:
			r.answer, r.ts = ansCommitted, smFromReal(st.CommitTS)
		case st.RolledBack:
			r.answer, r.undecided = ansRolledBack, st.Undecided
		case s.shared[primary][t] != 0:
			r.answer, r.lock = ansAlive, s.sharedLock(primary, t)
		default:
			r.answer, r.lock, r.min = ansAlive, s.keys[primary].lock, s.keys[primary].lock.min
		}
		if m.mut == mutStatusWithoutRecord && do == finishRecord {
			do = finishRollback
		}
		return do, nil
	})
	if answer.answer != ansOK {
		return answer
	}
	return r
}

// secondaryRequest is CheckSecondaryLocks: ts2 is now, or 0.
func (m *smModel) secondaryRequest(s *smState, msg *smMsg) smReply {
	t := msg.txn
	shard, together := s.servedBy(msg.keys)
	if !together {
		return smReply{answer: ansStale}
	}
	sh := &s.shards[shard]
	sh.maxTS = max(sh.maxTS, s.txns[t].start)
	st, alive, r := SecondaryStatus{}, false, smReply{answer: ansAlive, async: true}
	var missing smMask
	for rest := msg.keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		v := m.view(s, k, t)
		if m.recordsGone(s, k, t, &v) {
			return smReply{answer: ansTooOld}
		}
		switch decideSecondary(s.txns[t].start.real(), &v) {
		case secondaryLocked:
			r.locks |= bit(k)
			r.min = max(r.min, s.keys[k].lock.min)
			r.async = r.async && s.keys[k].lock.async
			alive = alive || msg.flags&flagEnded == 0 && !expired(v.lock, msg.ts2.real(), 0)
		case secondaryCommitted:
			st.CommitTS = v.ownCommitTS
		case secondaryRolledBack:
			st.RolledBack = true
		case secondaryMissing:
			missing |= bit(k)
		}
	}
	if st.CommitTS != 0 && st.RolledBack {
		m.fail("I3: one transaction has been committed and rolled back")
	}
	if decideMissingSecondary(&st, msg.flags&flagOwner != 0, msg.ts2 != 0 || msg.flags&flagEnded != 0, alive) {
		for rest := missing; rest != 0; {
			var k uint8
			rest, k = rest.next()
			m.carryOut(s, finishRecord, k, t, 0)
			st.RolledBack = true
		}
		if missing != 0 {
			m.sync(s, shard)
		}
	}
	switch {
	case st.CommitTS != 0:
		return smReply{answer: ansCommitted, ts: smFromReal(st.CommitTS)}
	case st.RolledBack:
		return smReply{answer: ansRolledBack}
	}
	return r
}

// acquireRequest is AcquireLocks of one key; ts is the snapshot. ansLocked: another transaction holds it.
func (m *smModel) acquireRequest(s *smState, msg *smMsg) smReply {
	t, k := msg.txn, msg.keys.first()
	sh := &s.shards[s.at[k]]
	if m.tooOld(sh, msg.ts) {
		return smReply{answer: ansTooOld}
	}
	var saw uint8
	if slices.Contains(m.cfg.txns[t].ops, smOp{key: k, lock: true, look: true}) {
		saw = m.versionAt(s, k, smLatest)
		sh.maxTS = max(sh.maxTS, msg.ts)
	}
	v := m.view(s, k, t)
	op, _ := m.cfg.txns[t].locks(k)
	switch decideAcquire(s.txns[t].start.real(), op.shared, false, &v) {
	case acquireTake, acquireJoin:
		at := smFromReal(lockedAt(msg.ts.real(), op.shared, &v))
		if m.mut == mutLockAtSnapshot {
			at = msg.ts
		}
		if op.shared {
			s.shared[k][t] = at
			return smReply{answer: ansOK, ts: at, saw: saw}
		}
		s.keys[k].lock = smLock{owner: t + 1, op: OpPessimistic, state: stateDurable, forUpdate: at}
		return smReply{answer: ansOK, ts: at, saw: saw}
	case acquireHeld:
		return smReply{answer: ansOK, ts: max(smFromReal(v.lock.ForUpdateTS), s.txns[t].start), saw: saw}
	case acquireRolledBack:
		return smReply{answer: ansRolledBack}
	case acquireCommitted:
		return smReply{answer: ansCommitted, ts: smFromReal(v.ownCommitTS)}
	default:
		return smReply{answer: ansLocked, key: k, lock: s.holderBut(k, t)}
	}
}

// releaseRequest is ReleaseLocks; ts is the bound.
func (m *smModel) releaseRequest(s *smState, msg *smMsg) smReply {
	for rest := msg.keys; rest != 0; {
		var k uint8
		rest, k = rest.next()
		v := m.view(s, k, msg.txn)
		bound := msg.ts.real()
		if msg.ts == smLatest {
			bound = tso.MaxTimestamp
		} else {
			m.noteLost(s, k, msg.txn)
		}
		switch {
		case !decideRelease(s.txns[msg.txn].start.real(), bound, &v):
		case v.lock.Shared:
			s.shared[k][msg.txn] = 0
		default:
			s.keys[k].lock = smLock{}
		}
	}
	return smReply{answer: ansOK}
}

// crash drops a shard's memory and its unsynced data, and restarts it.
func (m *smModel) crash(s *smState, shard uint8) {
	now := s.tick()
	s.shards[shard].maxTS, s.shards[shard].lost = now, now
	for t := range s.txns {
		if txn := &s.txns[t]; txn.probe != 0 && s.at[m.cfg.txns[t].ops[txn.next].key] == shard {
			txn.probe, txn.early = 0, 0 // the read is repeated
		}
	}
	m.crashLarge(s, shard)
	s.gc.restarted = s.gc.restarted || s.gc.pc == gcResolve || s.gc.pc == gcSync
	for i := uint8(0); i < s.nmsgs; {
		if msg := &s.msgs[i]; msg.stage != 0 && s.at[msg.keys.first()] == shard {
			s.nmsgs--
			s.msgs[i] = s.msgs[s.nmsgs]
			s.msgs[s.nmsgs] = smMsg{}
		} else {
			i++
		}
	}
	for k := range s.keys {
		if s.at[k] != shard {
			continue
		}
		s.keys[k], s.shared[k] = s.disk[k], [smTxns]smTS{}
		l := &s.keys[k].lock
		if l.owner == 0 {
			continue
		}
		recovered := recoverLock(smKeyNames[k], *m.lockOf(s, l), now.real())
		l.min = smFromReal(recovered.MinCommitTS)
		l.ttl = uint8(recovered.TTLMillis / smStepMillis)
		switch {
		case m.mut == mutRaiseSecondaries:
			l.min = max(l.min, now+1)
		case m.mut == mutPushForgotten:
			l.min = l.stored
		}
	}
	m.afterCrash(s)
}
