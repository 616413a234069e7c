package percolator

import (
	"bytes"
	"slices"

	"github.com/google/btree"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// writeBuffer contains a transaction's writes in the order they came, as a log.
//
//	log    put a │ put b │ delete a │ put c │ insert a │ …
//	         ▲ prev────────────┘ prev ──────────┘
//	index  a → newest a, b → newest b, …        built by the first read that needs it
//
// With the log a write is one append, a savepoint a length, a rollback to it a truncation, and a reader's view of the
// buffer a length too (I7). Up to smallLog entries it is searched from its end; beyond that a tree of positions is kept,
// brought up to date by the next read. A transaction that only writes, as COPY does, never has one: its keys are sorted
// once, at commit.
//
// Entries of one key are folded into one mutation at commit, or earlier, in place, if neither a savepoint nor an
// iterator can observe it.
//
// Beyond the transaction's share of memory the oldest entries are in a file (spill.go). Positions count from the
// beginning of the entries in memory, lengths of the log from its true beginning.
type writeBuffer struct {
	first     []bufferEntry   // the first chunkLen entries
	rest      [][]bufferEntry // further chunks, each of capacity chunkLen
	spare     [][]bufferEntry // empty chunks, left by a spill for the entries to come
	n         int             // entries in memory
	base      int             // entries before them, which are in spilled
	spilled   *spilled        // nil while everything is in memory
	spilling  *pendingRun     // nil while no run is being written beside the transaction
	sizeBytes int64           // of all entries
	memBytes  int64           // of those in memory
	// account has memBytes and the overhead of spare chunks counted.
	account memory.Account
	// tight: the buffer has grown large, and the collector runs more often until it is closed.
	tight bool
	// frozen is the position below which entries must stay as they are.
	frozen int
	// truncations are the lengths the log was cut to; iterators compare them with their view.
	truncations []int

	newest int         // the position of the entry written last
	sets   *notifySets // whom the entries notify; nil: nobody

	index   *btree.BTreeG[int32] // positions ordered by key, the newest of each key; nil until needed
	indexed int                  // entries below are in the index
	probe   []byte               // the key at position probePos

	// moves records the snapshots at which entries were written, if it was not the transaction's current one. Both
	// writes and from ascend strictly.
	moves []snapshotMove
}

// snapshotMove: the first writes of the buffer were made at snapshots up to from.
type snapshotMove struct {
	writes int
	from   tso.Timestamp
}

// noteMove records that the snapshot moves on from from. If nothing was written since the last move, the last one
// suffices.
func (b *writeBuffer) noteMove(from tso.Timestamp) {
	if b.len() == 0 {
		return
	}
	if last := len(b.moves) - 1; last < 0 || b.moves[last].writes < b.len() {
		b.moves = append(b.moves, snapshotMove{writes: b.len(), from: from})
	}
}

// truncateMoves cuts moves to those of n entries.
func (b *writeBuffer) truncateMoves(n int) {
	for last := len(b.moves) - 1; last >= 0 && b.moves[last].writes > n; last-- {
		if n > 0 && (last == 0 || b.moves[last-1].writes < n) {
			b.moves[last].writes = n
			return
		}
		b.moves = b.moves[:last]
	}
}

// len is the number of entries. Like size, freeze, truncate and get it treats a nil buffer, which a transaction has
// until its first write, as an empty one.
func (b *writeBuffer) len() int {
	if b == nil {
		return 0
	}
	return b.base + b.n
}

// size is the accounted size of the entries in bytes.
func (b *writeBuffer) size() int64 {
	if b == nil {
		return 0
	}
	return b.sizeBytes
}

const (
	chunkLen = 4096
	smallLog = 16
	probePos = -1
	// freeBufferBytes is the size of a write buffer up to which nothing is reserved from the server's memory: small
	// transactions are accounted for with their connections.
	freeBufferBytes = 64 << 10
	// entryOverhead is the cost of an entry in addition to its bytes.
	entryOverhead = 64
)

// bufferEntry is one write, or several of one key folded. prev is the key's next older entry, or -1; it is
// valid for indexed entries.
type bufferEntry struct {
	key, value []byte
	prev       int32
	change
	notify notifyNumber
}

func (e *bufferEntry) sizeBytes() int64 { return int64(len(e.key) + len(e.value) + entryOverhead) }

// change is the effect of a write, or of several in a row, on a key.
type change struct {
	op    mvcc.Op // OpLock: only a lock
	flags changeFlags
}

type changeFlags uint8

const (
	// wantsNew: the key has no value at the snapshot, or the commit fails.
	wantsNew changeFlags = 1 << iota
	// wantsLock: a lock was among the writes, so that a lock must be left on the key.
	wantsLock
	// insertedTwice: the key was inserted while the transaction itself had given it a value.
	insertedTwice
)

// The writes there are.
var (
	changePut    = change{op: mvcc.OpPut}
	changeInsert = change{op: mvcc.OpPut, flags: wantsNew}
	changeDelete = change{op: mvcc.OpDelete}
	changeLock   = change{op: mvcc.OpLock, flags: wantsLock}
)

// has reports whether the change has a flag.
func (c change) has(flag changeFlags) bool { return c.flags&flag != 0 }

// assertsNew reports whether the change is legal only on a key without a value.
func (c change) assertsNew() bool { return c.has(wantsNew) || c.op == mvcc.OpCheckNotExists }

// leavesValue reports whether the key has a value after the change.
func (c change) leavesValue() bool { return c.op == mvcc.OpPut }

// decides reports whether the change determines what a reader finds.
func (c change) decides() bool { return c.op != mvcc.OpLock }

// then returns the change that is c followed by next. It is associative.
//
//	insert, delete   nothing is written, but the key must still have been new
//	delete, insert   put: the old value existed and is replaced
//	insert, insert   fails
//	lock, anything   the other, since every write conflicts at least as a lock does
func (c change) then(next change) change {
	r := change{flags: (c.flags | next.flags) & (wantsLock | insertedTwice)}
	if c.leavesValue() && next.assertsNew() {
		r.flags |= insertedTwice
	}
	switch {
	case !c.decides():
		r.op = next.op
		r.flags |= next.flags & wantsNew
	case !next.decides():
		r.op = c.op
		r.flags |= c.flags & wantsNew
	case next.leavesValue():
		if r.op = mvcc.OpPut; c.assertsNew() {
			r.flags |= wantsNew
		}
	case c.assertsNew():
		r.op = mvcc.OpCheckNotExists
	default:
		r.op = mvcc.OpDelete
	}
	return r
}

// mutation is the change as sent to the shards. notify are those to be notified of it, if it changes the key.
func (c change) mutation(key, value []byte, notify notifyNumber) mvcc.Mutation {
	switch {
	case c.op == mvcc.OpCheckNotExists && c.has(wantsLock):
		return mvcc.Mutation{Op: mvcc.OpLock, MustBeNew: true, Key: key}
	case c.op != mvcc.OpPut && c.op != mvcc.OpDelete:
		notify = 0
	}
	if !c.leavesValue() {
		value = nil
	}
	return mvcc.Mutation{Op: c.op, MustBeNew: c.has(wantsNew), Key: key, Value: value, Notify: uint16(notify)}
}

func (b *writeBuffer) at(i int) *bufferEntry {
	if i < chunkLen {
		return &b.first[i]
	}
	return &b.rest[i/chunkLen-1][i%chunkLen]
}

// add writes to a key. It keeps key and value.
func (b *writeBuffer) add(key, value []byte, c change) {
	if i := b.replaceable(key); i >= 0 {
		e := b.at(i)
		b.count(-e.sizeBytes())
		e.change = e.change.then(c)
		switch {
		case !e.leavesValue():
			e.value = nil
		case c.leavesValue():
			e.value = value
		}
		b.count(e.sizeBytes())
		b.newest = i
		return
	}
	e := bufferEntry{key: key, value: value, prev: -1, change: c}
	b.count(e.sizeBytes())
	if b.n < chunkLen {
		b.first = append(b.first, e)
	} else {
		if b.n%chunkLen == 0 {
			b.rest = append(b.rest, b.newChunk())
		}
		last := len(b.rest) - 1
		b.rest[last] = append(b.rest[last], e)
	}
	b.newest = b.n
	b.n++
}

// count accounts for bytes in memory.
func (b *writeBuffer) count(bytes int64) {
	b.sizeBytes += bytes
	b.memBytes += bytes
}

// newChunk returns an empty chunk.
func (b *writeBuffer) newChunk() []bufferEntry {
	last := len(b.spare) - 1
	if last < 0 {
		return make([]bufferEntry, 0, chunkLen)
	}
	chunk := b.spare[last]
	b.spare[last] = nil
	b.spare = b.spare[:last]
	return chunk
}

// empty removes all entries from memory and keeps their chunks.
func (b *writeBuffer) empty() {
	b.clear()
	b.first = b.first[:0]
	for i, chunk := range b.rest {
		b.spare = append(b.spare, chunk[:0])
		b.rest[i] = nil
	}
	b.rest, b.n, b.frozen, b.memBytes = b.rest[:0], 0, 0, 0
	b.index, b.indexed = nil, 0
}

// clear drops the references of all entries in memory to their keys and values.
func (b *writeBuffer) clear() {
	clear(b.first)
	for _, chunk := range b.rest {
		clear(chunk)
	}
}

// shrinkAccount releases what the account has beyond the entries in memory, those being written and the spare chunks.
func (b *writeBuffer) shrinkAccount() {
	held := b.memBytes + int64(len(b.spare))*chunkLen*entryOverhead
	if b.spilling != nil {
		held += b.spilling.entries.memBytes
	}
	if excess := b.account.Used() - held; excess > 0 {
		b.account.Shrink(excess)
	}
}

// replaceable returns the position of key's newest entry if a further write may be folded into it and it is found
// cheaply, otherwise -1.
func (b *writeBuffer) replaceable(key []byte) int {
	switch {
	case b.n == b.frozen:
	case b.n <= smallLog:
		for i := b.n - 1; i >= b.frozen; i-- {
			if bytes.Equal(b.first[i].key, key) {
				return i
			}
		}
	case b.indexed == b.n:
		if i := b.lookup(key); i >= b.frozen {
			return i
		}
	}
	return -1
}

// get returns the buffered value of key; found is false if the buffer does not determine it.
func (b *writeBuffer) get(key []byte) (value []byte, found bool, _ error) {
	if b == nil {
		return nil, false, nil
	}
	if b.n <= smallLog {
		for i := b.n - 1; i >= 0; i-- {
			if e := &b.first[i]; e.decides() && bytes.Equal(e.key, key) {
				return e.value, true, nil
			}
		}
	} else {
		b.syncIndex()
		if i := b.deciding(b.lookup(key), b.n); i >= 0 {
			return b.at(i).value, true, nil
		}
	}
	if err := b.settle(); err != nil || b.spilled == nil {
		return nil, false, err
	}
	return b.spilled.get(key)
}

// deciding follows a key's entries from i to older ones, to the first below bound that determines what a reader finds;
// -1 if there is none.
func (b *writeBuffer) deciding(i, bound int) int {
	for i >= 0 {
		e := b.at(i)
		if i < bound && e.decides() {
			return i
		}
		i = int(e.prev)
	}
	return -1
}

// lookup returns the newest indexed position of key, or -1.
func (b *writeBuffer) lookup(key []byte) int {
	b.probe = key
	if i, ok := b.index.Get(probePos); ok {
		return int(i)
	}
	return -1
}

// syncIndex brings the index up to the end of the log.
func (b *writeBuffer) syncIndex() {
	if b.index == nil {
		b.index = btree.NewG(32, func(i, j int32) bool { return bytes.Compare(b.keyAt(i), b.keyAt(j)) < 0 })
	}
	for ; b.indexed < b.n; b.indexed++ {
		older, replaced := b.index.ReplaceOrInsert(int32(b.indexed))
		if !replaced {
			older = -1
		}
		b.at(b.indexed).prev = older
	}
}

func (b *writeBuffer) keyAt(i int32) []byte {
	if i == probePos {
		return b.probe
	}
	return b.at(int(i)).key
}

// freeze keeps the entries there are from being changed, and returns their number.
func (b *writeBuffer) freeze() int {
	if b == nil {
		return 0
	}
	b.frozen = b.n
	return b.base + b.n
}

// truncate drops entries until n are left.
func (b *writeBuffer) truncate(n int) {
	if n >= b.len() {
		return
	}
	b.truncations = append(b.truncations, n)
	b.truncateMoves(n)
	if n < b.base {
		_ = b.settle() // A failure concerns entries that are dropped here, or is returned to the next reader of the others.
		b.sizeBytes -= b.spilled.truncate(n)
		b.truncateMemory(0)
		b.base = n
		return
	}
	b.truncateMemory(n - b.base)
}

func (b *writeBuffer) truncateMemory(n int) {
	for i := b.n - 1; i >= n; i-- {
		e := b.at(i)
		b.count(-e.sizeBytes())
		if i < b.indexed {
			if e.prev >= 0 {
				b.index.ReplaceOrInsert(e.prev)
			} else {
				b.index.Delete(int32(i))
			}
		}
	}
	b.n, b.indexed = n, min(b.indexed, n)
	b.frozen = min(b.frozen, n)
	chunks := (n + chunkLen - 1) / chunkLen
	for i := len(b.rest); i >= max(chunks, 1); i-- {
		b.rest[i-1] = nil
	}
	b.rest = b.rest[:max(chunks-1, 0)]
	b.first = cut(b.first, n)
	if len(b.rest) > 0 {
		b.rest[len(b.rest)-1] = cut(b.rest[len(b.rest)-1], n-(chunks-1)*chunkLen)
	}
}

// cut shortens s to at most n entries and drops references to the bytes of the others.
func cut(s []bufferEntry, n int) []bufferEntry {
	if n >= len(s) {
		return s
	}
	clear(s[n:])
	return s[:n]
}

// mutations returns the buffer as a write set in key order, using dst if it is large enough. It fails
// with *mvcc.KeyExistsError when a key was inserted twice. All of it is in memory.
func (b *writeBuffer) mutations(dst []mvcc.Mutation) ([]mvcc.Mutation, error) {
	dst = slices.Grow(dst[:0], b.n)
	if b.ascending() {
		for i := range b.n {
			e := b.at(i)
			dst = append(dst, e.mutation(e.key, e.value, e.notify))
		}
		return dst, nil
	}
	places := b.sorted()
	defer places.release()
	order := places.order
	for i := 0; i < len(order); {
		e := *b.at(int(order[i].at))
		for i++; i < len(order); i++ {
			next := b.at(int(order[i].at))
			if !bytes.Equal(next.key, e.key) {
				break
			}
			e.change, e.notify = e.change.then(next.change), b.sets.union(e.notify, next.notify)
			if next.leavesValue() {
				e.value = next.value
			}
		}
		if e.has(insertedTwice) {
			return nil, &mvcc.KeyExistsError{Key: e.key}
		}
		dst = append(dst, e.mutation(e.key, e.value, e.notify))
	}
	return dst, nil
}

// ascending reports whether the log is already a write set: each key once, in order.
func (b *writeBuffer) ascending() bool {
	for i := range b.n {
		if b.at(i).has(insertedTwice) || i > 0 && bytes.Compare(b.at(i-1).key, b.at(i).key) >= 0 {
			return false
		}
	}
	return true
}
