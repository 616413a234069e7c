package mvcc

import (
	"hash/maphash"
	"math/bits"
	"unsafe"

	"github.com/percodb/percodb/tso"
)

// The exhaustive small-scope model of the protocol. It represents everything that affects the protocol (tables, max_ts,
// oracle, messages in flight, clients as small programs) in a few hundred bytes, and visits every state that can be
// reached within a configuration's bounds. The rules are those of the server: the state of a key becomes a keyView for
// the functions of decide*.go.
//
//	modelstate    the state, its timestamps, its canonical form
//	modelshard    verbs of a shard        modelnet      messages: delayed, lost, duplicated
//	modelclient   transactions            modelresolve  what becomes of locks that are met
//	modelgc       garbage collection      modelcheck    what must hold in every state
//	modelobserve  observers
//	modelsearch   breadth-first search    modelconfig, modelmutant: what is searched

const (
	smTxns = 5 // the last is a resolver
	smKeys = 3
	smMsgs = 14
)

// smTS is a timestamp: clock(2) tick(11) subtick(3). A clock step is 10 s of the oracle's time, much longer than a TTL.
// 0 is none.
type smTS uint16

const (
	smSubBits  = tso.SubtickBits
	smTick     = smTS(1) << smSubBits
	smClock    = smTS(1) << 14
	smTickMask = smClock - smTick
	smLatest   = ^smTS(0) // a read of the latest value

	smEpochMillis = 1000
	smStepMillis  = 10_000
	smTTLMillis   = 3000
)

// real returns the timestamp as the server knows it.
func (ts smTS) real() tso.Timestamp {
	switch ts {
	case 0:
		return 0
	case smLatest:
		return tso.MaxTimestamp
	}
	return tso.FromPhysical(smEpochMillis+smStepMillis*int64(ts/smClock)) + tso.Timestamp(ts%smClock)
}

func smFromReal(ts tso.Timestamp) smTS {
	if ts == 0 {
		return 0
	}
	physical := ts.Physical()
	return smTS((physical-smEpochMillis)/smStepMillis)*smClock + smTS(ts-tso.FromPhysical(physical))
}

// smMask is a set of keys or transactions.
type smMask uint8

func bit(i uint8) smMask               { return 1 << i }
func (m smMask) has(i uint8) bool      { return m>>i&1 != 0 }
func (m smMask) first() uint8          { return uint8(bits.TrailingZeros8(uint8(m))) }
func (m smMask) all(of smMask) bool    { return of&^m == 0 }
func (m smMask) next() (smMask, uint8) { return m & (m - 1), m.first() }

// smLock is a lock in the lock table.
type smLock struct {
	owner     uint8 // transaction + 1, 0: the key is free
	op        Op
	async     bool
	onePC     bool
	shared    bool
	state     entryState
	ttl       uint8 // clock steps survived after a restart
	filler    uint8
	min       smTS // min_commit_ts
	stored    smTS // min_commit_ts on disk; pushes do not reach it
	forUpdate smTS
}

// The structs of the state have no gaps between their fields, because they are hashed as bytes. Each of these indexes
// is 0 if a filler ends where the next field, or the struct, does; otherwise it does not compile.
var (
	_ = [1]int{}[unsafe.Offsetof(smLock{}.filler)+1-unsafe.Offsetof(smLock{}.min)]
	_ = [1]int{}[unsafe.Offsetof(smRecords{}.filler)+1-unsafe.Offsetof(smRecords{}.used)]
	_ = [1]int{}[unsafe.Offsetof(smTxn{}.filler)+1-unsafe.Offsetof(smTxn{}.ackedAtBegin)]
)

// smRecords is the stored state of a key. Version t is the one that transaction t wrote; all its versions have one
// commit_ts, or the model has found a violation.
type smRecords struct {
	lock       smLock
	versions   smMask // bit smInitial: the version that was there at first
	rollbacks  smMask
	lockCommit smMask
	filler     uint8
	used       smTS // as of when the newest recorded use of a shared lock was
	cell       smTS // the notify cell of the key's observer
}

const smInitial = 7

// smShard is one shard's memory and meta data.
type smShard struct {
	maxTS, safePoint, collected smTS
	lost                        smTS   // State.lostTS
	bound                       smTS   // State.lockBound, while the shard is away; 0: far ahead
	kept                        smMask // transactions whose records collection has kept
	away                        bool   // the collector cannot reach the shard; clients sometimes can
}

// smOutcome is what a client has reported to its user.
type smOutcome uint8

const (
	smOpen smOutcome = iota
	smAcked
	smAborted
	smUnknown
	smDead // the client has crashed
)

// smTxn is one client and its transaction.
type smTxn struct {
	start, read, commit, floor, minCommit smTS

	committedAt smTS // commit_ts once the transaction is committed; its client may not know it yet
	cell        smTS // of an observer: the cell that it has found

	lockedAt [smKeys]smTS

	// The lock whose status is being checked.
	gathered         smTS
	met              smLock
	metKey, metTxn   uint8 // metTxn: transaction + 1
	asked            smMask
	asking           smAsk
	bypass, resolved smMask // transactions whose locks are ignored or read through

	pc      smPC
	next    uint8 // position in the program
	outcome smOutcome

	out, ok, lost, need smMask // keys whose request is unanswered, answered, perhaps arrived unanswered, to be sent again
	failed, refused     smMask // of an async commit: keys that were given up, because a shard refused them
	onePC, async, plain bool   // how it commits; plain: a shard answered with plain locks

	probe  uint8         // progress of a read that takes several steps
	early  uint8         // what was read and may not be durable, or what a mutant read too early
	saw    [smKeys]uint8 // 0: not read; smInitial+1, or transaction + 1
	filler uint8

	ackedAtBegin, ackedAtCommit smMask // who had been acknowledged when this one began, or was to be committed

	// together: the transactions that have held a key that this one believed to be its own, or the reverse. behind: the
	// transactions that follow this one's shared locks, checked at its potential commit_ts.
	together, behind smMask
}

// smMsg is a request that is in flight, or being executed.
type smMsg struct {
	kind  smKind
	txn   uint8
	keys  smMask
	stage uint8
	flags smFlags
	ts    smTS
	ts2   smTS
	aside smTS // max_ts that a mutant read too early, + 1
}

// smState is one state of the world.
type smState struct {
	now    smTS // the newest timestamp issued
	keys   [smKeys]smRecords
	disk   [smKeys]smRecords // what a crash leaves; only where shards crash
	shards [2]smShard
	shared [smKeys][smTxns]smTS // as of when a transaction holds a key shared, in memory; 0: it does not
	txns   [smTxns]smTxn
	msgs   [smMsgs]smMsg
	gc     smGC
	at     [smKeys]uint8 // shard of each key
	nmsgs  uint8

	dups, losses, crashes, deaths, splits, aways uint8 // left

	hinted uint8 // of a mutant: observers have a hint
}

// tick issues a timestamp.
func (s *smState) tick() smTS {
	s.now += smTick
	return s.now
}

// timestamps calls f for every timestamp of the state.
func (s *smState) timestamps(f func(*smTS)) {
	f(&s.now)
	for i := range s.keys {
		for _, l := range [2]*smLock{&s.keys[i].lock, &s.disk[i].lock} {
			f(&l.min)
			f(&l.stored)
			f(&l.forUpdate)
		}
		f(&s.keys[i].used)
		f(&s.disk[i].used)
		f(&s.keys[i].cell)
		f(&s.disk[i].cell)
		for t := range s.shared[i] {
			f(&s.shared[i][t])
		}
	}
	for i := range s.shards {
		f(&s.shards[i].maxTS)
		f(&s.shards[i].safePoint)
		f(&s.shards[i].collected)
		f(&s.shards[i].lost)
		f(&s.shards[i].bound)
	}
	for i := range s.txns {
		t := &s.txns[i]
		for _, ts := range [...]*smTS{&t.start, &t.read, &t.commit, &t.floor, &t.minCommit, &t.committedAt, &t.cell, &t.gathered,
			&t.met.min, &t.met.stored, &t.met.forUpdate} {
			f(ts)
		}
		for k := range t.lockedAt {
			f(&t.lockedAt[k])
		}
	}
	for i := range s.msgs[:s.nmsgs] {
		f(&s.msgs[i].ts)
		f(&s.msgs[i].ts2)
		f(&s.msgs[i].aside)
	}
	for _, ts := range [...]*smTS{&s.gc.safePoint, &s.gc.bound, &s.gc.cleared[0], &s.gc.cleared[1]} {
		f(ts)
	}
}

// canonical gives equivalent states one form: messages in order, and no gaps between timestamps, of which only the
// order matters.
func (s *smState) canonical() {
	s.sortMessages()
	var used [smClock / smTick / 64]uint64
	highest := smTS(0)
	s.timestamps(func(ts *smTS) {
		if *ts != 0 && *ts != smLatest {
			tick := *ts & smTickMask / smTick
			used[tick/64] |= 1 << (tick % 64)
			highest = max(highest, tick)
		}
	})
	for tick := s.now&smTickMask/smTick + 1; tick < highest; tick++ { // how far ahead a commit_ts lies matters
		used[tick/64] |= 1 << (tick % 64)
	}
	var rank [128]smTS
	n := smTS(0)
	for tick := smTS(1); tick <= highest; tick++ {
		if used[tick/64]>>(tick%64)&1 != 0 {
			n++
			rank[tick] = n
		}
	}
	if n == highest {
		return
	}
	s.timestamps(func(ts *smTS) {
		if *ts != 0 && *ts != smLatest {
			*ts = *ts&^smTickMask | rank[*ts&smTickMask/smTick]*smTick
		}
	})
}

func (s *smState) sortMessages() {
	m := s.msgs[:s.nmsgs]
	for i := 1; i < len(m); i++ {
		for j := i; j > 0 && m[j].less(&m[j-1]); j-- {
			m[j], m[j-1] = m[j-1], m[j]
		}
	}
}

func (m *smMsg) less(o *smMsg) bool {
	a := uint64(m.kind)<<40 | uint64(m.txn)<<32 | uint64(m.keys)<<24 | uint64(m.flags)<<8 | uint64(m.stage)
	b := uint64(o.kind)<<40 | uint64(o.txn)<<32 | uint64(o.keys)<<24 | uint64(o.flags)<<8 | uint64(o.stage)
	if a != b {
		return a < b
	}
	if m.ts != o.ts {
		return m.ts < o.ts
	}
	if m.ts2 != o.ts2 {
		return m.ts2 < o.ts2
	}
	return m.aside < o.aside
}

// smHash is a fingerprint of a canonical state, wide enough to avoid collisions.
type smHash struct{ a, b uint64 }

var smSeedA, smSeedB = maphash.MakeSeed(), maphash.MakeSeed()

func (s *smState) hash() smHash {
	return smHash{maphash.Comparable(smSeedA, *s), maphash.Comparable(smSeedB, *s)}
}
