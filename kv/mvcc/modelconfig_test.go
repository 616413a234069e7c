package mvcc

// smMode is how a transaction tries to commit.
type smMode uint8

const (
	smTwoPC smMode = iota
	smAsync
	smOnePC
	smLarge // in one phase, from a file, by a client in the shard's process
)

type smCollector uint8

const (
	smNoCollector smCollector = iota
	smCollects                // garbage collection
	smScanner                 // finds all locks up to a timestamp, and does nothing else
)

// smOp is a read of a key, or a pessimistic lock on it; look: with a check of its existence, for an insert; shared:
// others may hold it in the same mode.
type smOp struct {
	key                uint8
	lock, look, shared bool
}

// smTxnSpec is a transaction's program.
type smTxnSpec struct {
	ops          []smOp
	writes       [smKeys]Op
	mustBeNew    smMask
	primary      uint8
	mode         smMode
	serializable bool
	pessimistic  bool
	apart        bool // its pessimistic locks have another primary, firstLock
	firstLock    uint8
	latest       bool   // its reads are of the latest value
	mayDie       bool   // its client may crash
	notifies     smMask // keys of which observers are notified
	observes     bool   // it handles a notification, and writes the acknowledgement
	forgets      bool   // it deletes the acknowledgement of a row that is gone
	fallback     smMask // keys whose shard answers an async prewrite, or a first one-phase one, with plain locks
}

// smConfig is a bounded world.
type smConfig struct {
	name      string
	what      string
	keys      int
	at        [smKeys]uint8 // shard of each key
	txns      []smTxnSpec
	initial   smMask // keys that have a value at first
	embedded  bool   // the oracle lives with the shards
	fine      bool   // the steps of reads, prewrites and commits are apart
	collector smCollector
	// ahead is by how many ticks the commit_ts of a large commit lies ahead of the oracle, besides its subtick; 0: the
	// oracle has issued it.
	ahead uint8

	// rounds is the number of rounds of collection, one if 0. aways is how often the last shard is unavailable to the
	// collector for a while.
	rounds, aways uint8

	// known: others know at once that a client has crashed, and do not wait for its TTL.
	known bool

	// How often a message is delivered twice, an answer is lost or its client times out, a shard and a client crash,
	// the last key moves to another shard, and 10 s pass.
	dups, losses, crashes, deaths, splits, jumps uint8
}

func (c *smConfig) shards() (n uint8) {
	for _, at := range c.at[:c.keys] {
		n = max(n, at+1)
	}
	if c.splits > 0 {
		n = 2
	}
	return n
}

func (c *smConfig) allShards() smMask { return bit(c.shards()) - 1 }

func (c *smConfig) serializable() bool {
	for i := range c.txns {
		if c.txns[i].serializable {
			return true
		}
	}
	return false
}

func (c *smConfig) initialState() smState {
	s := smState{now: smTick, at: c.at, dups: c.dups, losses: c.losses, crashes: c.crashes, deaths: c.deaths, splits: c.splits, aways: c.aways}
	s.gc.rounds = max(1, c.rounds)
	for k := range c.keys {
		if c.initial.has(uint8(k)) {
			s.keys[k].versions = bit(smInitial)
		}
		if c.crashes > 0 {
			s.disk[k] = s.keys[k]
		}
	}
	return s
}

// mutated returns the keys of the mutations.
func (sp *smTxnSpec) mutated() (keys smMask) {
	for k, op := range sp.writes {
		if op != 0 {
			keys |= bit(uint8(k))
		}
	}
	return keys
}

// keysWritten returns the keys that prewrite locks.
func (sp *smTxnSpec) keysWritten() (keys smMask) {
	for k, op := range sp.writes {
		if op.LeavesLock() {
			keys |= bit(uint8(k))
		}
	}
	return keys
}

// keysShared returns the keys that the commit checks for being held shared.
func (sp *smTxnSpec) keysShared() (keys smMask) {
	for k, op := range sp.writes {
		if op == OpCheckShared {
			keys |= bit(uint8(k))
		}
	}
	return keys
}

// lockPrimary returns the primary of the transaction's locks of a kind.
func (sp *smTxnSpec) lockPrimary(op Op) uint8 {
	if sp.apart && op == OpPessimistic {
		return sp.firstLock
	}
	return sp.primary
}

// locks returns the mode in which the program locks a key.
func (sp *smTxnSpec) locks(k uint8) (op smOp, ok bool) {
	for _, op := range sp.ops {
		if op.lock && op.key == k {
			return op, true
		}
	}
	return smOp{}, false
}

func (sp *smTxnSpec) secondaries() smMask { return sp.keysWritten() &^ bit(sp.primary) }

func (sp *smTxnSpec) readsOnly() bool { return sp.mutated() == 0 }

func (sp *smTxnSpec) reads() (keys smMask) {
	for _, op := range sp.ops {
		if !op.lock {
			keys |= bit(op.key)
		}
	}
	return keys
}

// Programs.

func smReads(keys ...uint8) (ops []smOp) {
	for _, k := range keys {
		ops = append(ops, smOp{key: k})
	}
	return ops
}

func smPuts(keys ...uint8) (writes [smKeys]Op) {
	for _, k := range keys {
		writes[k] = OpPut
	}
	return writes
}

// smLocking locks and then reads each key.
func smLocking(keys ...uint8) (ops []smOp) {
	for _, k := range keys {
		ops = append(ops, smOp{key: k, lock: true}, smOp{key: k})
	}
	return ops
}

func smReader(keys ...uint8) smTxnSpec { return smTxnSpec{ops: smReads(keys...)} }

func smWriter(mode smMode, keys ...uint8) smTxnSpec {
	return smTxnSpec{mode: mode, writes: smPuts(keys...), primary: keys[0]}
}

// smIncrement reads and writes keys, optimistically.
func smIncrement(mode smMode, keys ...uint8) smTxnSpec {
	t := smWriter(mode, keys...)
	t.ops = smReads(keys...)
	return t
}

func smPessimistic(mode smMode, keys ...uint8) smTxnSpec {
	t := smWriter(mode, keys...)
	t.ops, t.pessimistic = smLocking(keys...), true
	return t
}

// smInserting inserts keys that its locks have found to be new. The prewrite does not check.
func smInserting(mode smMode, keys ...uint8) smTxnSpec {
	t := smWriter(mode, keys...)
	t.pessimistic = true
	for _, k := range keys {
		t.ops = append(t.ops, smOp{key: k, lock: true, look: true})
	}
	return t
}

// smSharing locks key shared, reads it, and writes others.
func smSharing(mode smMode, key uint8, writes ...uint8) smTxnSpec {
	t := smWriter(mode, writes...)
	t.ops, t.pessimistic = []smOp{{key: key, lock: true, shared: true}, {key: key}}, true
	t.writes[key] = OpCheckShared
	t.apart, t.firstLock = true, key
	return t
}

// smGuarded locks one key, reads another, and writes a third: only the lock keeps what it reads and writes consistent.
func smGuarded(mode smMode, lock, read, write uint8) smTxnSpec {
	t := smWriter(mode, write)
	t.ops, t.pessimistic = []smOp{{key: lock, lock: true}, {key: read}}, true
	t.writes[lock], t.primary = OpLock, lock
	return t
}

// smSkew reads one key and writes another.
func smSkew(mode smMode, read, write uint8) smTxnSpec {
	t := smWriter(mode, write)
	t.ops, t.serializable = smReads(read), true
	return t
}

func (sp smTxnSpec) mortal() smTxnSpec {
	sp.mayDie = true
	return sp
}
