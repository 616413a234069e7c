package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Options configure a check.
type Options struct {
	Level Level
	// Strict: a transaction must see what was acknowledged before it began.
	Strict bool
	// Opaque: what aborted and undetermined transactions have read must be a snapshot as well.
	Opaque bool
	// MaxAnomalies ends the search: 8.
	MaxAnomalies int
}

// CheckListAppend returns the anomalies that a history of appends and list reads proves; none if Options.Level allows
// the history. The values that are appended to a key must be unique.
func CheckListAppend(h *History, opts Options) []Anomaly {
	if opts.MaxAnomalies == 0 {
		opts.MaxAnomalies = 8
	}
	c := &checker{h: h, opts: opts, keyIDs: map[string]int32{}, seen: map[string]bool{}}
	if c.index(); len(c.found) > 0 {
		return c.found
	}
	c.promote()
	c.orderVersions()
	c.directAnomalies()
	if opts.Level > ReadCommitted {
		c.internalReads()
		c.lostUpdates()
	} else {
		c.ownAppendsVisible()
	}
	c.lostAppends()
	if !c.full() {
		c.addEdges()
		c.findCycles()
	}
	return c.found
}

// place is where a value was appended.
type place struct {
	txn, op int32
	last    bool // the transaction's last append to the key
}

// keyInfo is what is known of one key.
type keyInfo struct {
	name     string
	appended map[int64]place
	order    []int64 // the longest list seen without a reader's own appends: the versions, in order
	seenBy   int32   // its reader
	unseen   []int32 // committed transactions whose last append to the key no read has shown
}

// read is one read of a key without the reader's own appends.
type read struct {
	txn, op int32
	key     int32
	list    []int64
}

type checker struct {
	h      *History
	opts   Options
	keyIDs map[string]int32
	keys   []keyInfo
	// counts[t]: t's writes count, because it is committed, or unknown and seen.
	counts []bool
	reads  []read // of all participating transactions, at least as readers
	edges  []edge
	found  []Anomaly
	seen   map[string]bool // what was found, by its transactions
}

func (c *checker) full() bool { return len(c.found) >= c.opts.MaxAnomalies }

// isNew reports whether no anomaly of exactly these transactions was found yet.
func (c *checker) isNew(txns []int32) bool {
	name := fmt.Sprint(slices.Sorted(slices.Values(txns)))
	known := c.seen[name]
	c.seen[name] = true
	return !known
}

// report adds an anomaly with the description of its transactions.
func (c *checker) report(class Class, txns []int32, format string, args ...any) {
	if c.full() {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  "+format+"\n", args...)
	a := Anomaly{Class: class}
	for i, t := range txns {
		a.Txns = append(a.Txns, int(t))
		if !slices.Contains(txns[:i], t) {
			c.h.describe(&b, t)
		}
	}
	a.Story = b.String()
	c.found = append(c.found, a)
}

// index numbers the keys and records who appended what.
func (c *checker) index() {
	for t := range c.h.Txns {
		if txn := &c.h.Txns[t]; txn.Outcome == Committed && txn.End < txn.Begin {
			c.report(Malformed, []int32{int32(t)}, "T%d ended before it began", t)
		}
		ops := c.h.Txns[t].Ops
		for o := range ops {
			op := &ops[o]
			id, ok := c.keyIDs[op.Key]
			if !ok {
				id = int32(len(c.keys))
				c.keyIDs[op.Key] = id
				c.keys = append(c.keys, keyInfo{name: op.Key, appended: map[int64]place{}})
			}
			if op.Kind != OpAppend {
				continue
			}
			k := &c.keys[id]
			if before, twice := k.appended[op.Value]; twice {
				c.report(Malformed, []int32{before.txn, int32(t)}, "%d is appended to %s twice", op.Value, op.Key)
			}
			k.appended[op.Value] = place{txn: int32(t), op: int32(o), last: true}
			for earlier := o - 1; earlier >= 0; earlier-- {
				if ops[earlier].Kind == OpAppend && ops[earlier].Key == op.Key {
					p := k.appended[ops[earlier].Value]
					p.last = false
					k.appended[ops[earlier].Value] = p
					break
				}
			}
		}
	}
}

// external removes a reader's own appends from the end of a list that it read. Own appends elsewhere stay, for the
// checks to find.
func (c *checker) external(t int32, k *keyInfo, list []int64) []int64 {
	for len(list) > 0 {
		p, ok := k.appended[list[len(list)-1]]
		if !ok || p.txn != t {
			break
		}
		list = list[:len(list)-1]
	}
	return list
}

// promote determines which transactions participate: the committed, and those of unknown outcome whose writes one of
// them (with Options.Opaque, any transaction) has seen.
func (c *checker) promote() {
	c.counts = make([]bool, len(c.h.Txns))
	var queue []int32
	for t := range c.h.Txns {
		c.counts[t] = c.h.Txns[t].Outcome == Committed
		if c.counts[t] || c.opts.Opaque {
			queue = append(queue, int32(t))
		}
	}
	for len(queue) > 0 {
		t := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		ops := c.h.Txns[t].Ops
		for o := range ops {
			if ops[o].Kind == OpAppend {
				continue
			}
			id := c.keyIDs[ops[o].Key]
			k := &c.keys[id]
			list := c.external(t, k, ops[o].List)
			c.reads = append(c.reads, read{txn: t, op: int32(o), key: id, list: list})
			for _, value := range list {
				if p, ok := k.appended[value]; ok && !c.counts[p.txn] && c.h.Txns[p.txn].Outcome == Unknown {
					c.counts[p.txn] = true
					if !c.opts.Opaque {
						queue = append(queue, p.txn)
					}
				}
			}
		}
	}
	slices.SortFunc(c.reads, func(a, b read) int {
		if a.txn != b.txn {
			return int(a.txn) - int(b.txn)
		}
		return int(a.op) - int(b.op)
	})
}

// orderVersions takes the longest list of each key as the order of its versions.
func (c *checker) orderVersions() {
	for i := range c.reads {
		r := &c.reads[i]
		if k := &c.keys[r.key]; len(r.list) > len(k.order) {
			k.order, k.seenBy = r.list, r.txn
		}
	}
	for id := range c.keys {
		k := &c.keys[id]
		at := make(map[int64]int, len(k.order))
		for i, value := range k.order {
			if first, twice := at[value]; twice {
				c.report(Duplicate, []int32{k.seenBy}, "T%d saw %d in %s at %d and at %d", k.seenBy, value, k.name, first, i)
			}
			at[value] = i
		}
		for value, p := range k.appended {
			if _, ok := at[value]; !ok && p.last && c.counts[p.txn] {
				k.unseen = append(k.unseen, p.txn)
			}
		}
		slices.Sort(k.unseen)
	}
}

// directAnomalies finds the anomalies that a single read proves.
func (c *checker) directAnomalies() {
	for i := range c.reads {
		r := &c.reads[i]
		k := &c.keys[r.key]
		if !slices.Equal(r.list, k.order[:len(r.list)]) {
			c.report(Incompatible, []int32{r.txn, k.seenBy}, "%s: T%d saw %v, T%d saw %v", k.name, r.txn, r.list, k.seenBy, k.order)
			continue
		}
		for _, value := range r.list {
			p, ok := k.appended[value]
			switch {
			case !ok:
				c.report(Garbage, []int32{r.txn}, "T%d saw %d in %s", r.txn, value, k.name)
			case c.h.Txns[p.txn].Outcome == Aborted:
				c.report(G1a, []int32{r.txn, p.txn}, "T%d saw %d in %s, which T%d appended and which was aborted", r.txn, value, k.name, p.txn)
			}
		}
		if n := len(r.list); n > 0 {
			p, ok := k.appended[r.list[n-1]]
			if ok && !p.last && p.txn != r.txn && c.isNew([]int32{r.txn, p.txn}) {
				c.report(G1b, []int32{r.txn, p.txn}, "T%d saw %s end in %d, to which T%d appended more before it committed", r.txn, k.name, r.list[n-1], p.txn)
			}
		}
	}
}

// internalReads checks a transaction's reads against its own earlier statements: one snapshot, and its own appends.
func (c *checker) internalReads() {
	type known struct {
		read bool
		list []int64 // read, and appended since; only what was appended if nothing was read
	}
	for t := range c.h.Txns {
		if !c.counts[t] && !c.opts.Opaque || len(c.h.Txns[t].Ops) < 2 {
			continue
		}
		state := map[string]*known{}
		for o := range c.h.Txns[t].Ops {
			op := &c.h.Txns[t].Ops[o]
			s := state[op.Key]
			if s == nil {
				s = &known{}
				state[op.Key] = s
			}
			if op.Kind == OpAppend {
				s.list = append(s.list[:len(s.list):len(s.list)], op.Value)
				continue
			}
			suffix := op.List
			if !s.read {
				suffix = suffix[max(0, len(suffix)-len(s.list)):]
			}
			if !slices.Equal(suffix, s.list) && (s.read || len(s.list) > 0) {
				c.report(Internal, []int32{int32(t)}, "statement %d should end in %v", o+1, s.list)
			}
			s.read, s.list = true, op.List
		}
	}
}

// ownAppendsVisible is internalReads for snapshots by statement: every list that a transaction reads ends with its own
// appends to the key, since the key is locked.
func (c *checker) ownAppendsVisible() {
	for t := range c.h.Txns {
		if !c.counts[t] && !c.opts.Opaque {
			continue
		}
		own := map[string][]int64{}
		for o := range c.h.Txns[t].Ops {
			op := &c.h.Txns[t].Ops[o]
			if op.Kind == OpAppend {
				own[op.Key] = append(own[op.Key], op.Value)
				continue
			}
			want := own[op.Key]
			if !slices.Equal(op.List[max(0, len(op.List)-len(want)):], want) {
				c.report(Internal, []int32{int32(t)}, "statement %d should end in %v", o+1, want)
			}
		}
	}
}

// lostUpdates finds two transactions that read the same version of a key and both replaced it.
func (c *checker) lostUpdates() {
	type version struct {
		key int32
		len int
	}
	by := map[version]int32{}
	for i := range c.reads {
		r := &c.reads[i]
		if !c.counts[r.txn] || !c.appends(r.txn, c.keys[r.key].name) {
			continue
		}
		v := version{r.key, len(r.list)}
		first, ok := by[v]
		if !ok {
			by[v] = r.txn
		} else if first != r.txn && c.isNew([]int32{first, r.txn}) {
			c.report(LostUpdate, []int32{first, r.txn}, "T%d and T%d both read %s as %v, appended to it, and committed", first, r.txn, c.keys[r.key].name, r.list)
		}
	}
}

func (c *checker) appends(t int32, key string) bool {
	ops := c.h.Txns[t].Ops
	for o := range ops {
		if ops[o].Kind == OpAppend && ops[o].Key == key {
			return true
		}
	}
	return false
}

// lostAppends finds acknowledged appends that a later statement did not see. At levels with snapshots such an append is
// a cycle as well; the description here is shorter, and it applies to every level.
func (c *checker) lostAppends() {
	if !c.opts.Strict {
		return
	}
	// earliest[k][n]: the append that was acknowledged first among those after version n of k.
	earliest := make([][]int32, len(c.keys))
	for id := range c.keys {
		earliest[id] = c.earliestAfter(&c.keys[id])
	}
	for i := range c.reads {
		r := &c.reads[i]
		k := &c.keys[r.key]
		if len(r.list) >= len(earliest[r.key]) || c.h.Txns[r.txn].Stale {
			continue
		}
		w := earliest[r.key][len(r.list)]
		if w < 0 || w == r.txn {
			continue
		}
		began := c.h.Txns[r.txn].Begin
		if at := c.h.Txns[r.txn].Ops[r.op].At; at != 0 {
			began = at
		}
		if c.ackedAt(w) < began && c.isNew([]int32{r.txn, w}) {
			c.report(LostAppend, []int32{r.txn, w}, "T%d began at %d and read %s as %v; T%d had appended to it and was acknowledged at %d",
				r.txn, began, k.name, r.list, w, c.ackedAt(w))
		}
	}
}

// ackedAt is when a transaction was acknowledged, the end of time if it was not.
func (c *checker) ackedAt(t int32) int64 {
	if c.h.Txns[t].Outcome != Committed {
		return math.MaxInt64
	}
	return c.h.Txns[t].End
}

// earliestAfter returns for each length of a list the transaction that was acknowledged first among
// those that a reader of this length does not see, or -1.
func (c *checker) earliestAfter(k *keyInfo) []int32 {
	out := make([]int32, len(k.order)+1)
	best := int32(-1)
	consider := func(t int32) {
		if c.counts[t] && (best < 0 || c.ackedAt(t) < c.ackedAt(best)) {
			best = t
		}
	}
	for _, t := range k.unseen {
		consider(t)
	}
	for n := len(k.order); n >= 0; n-- {
		if n < len(k.order) {
			if p, ok := k.appended[k.order[n]]; ok {
				consider(p.txn)
			}
		}
		out[n] = best
	}
	return out
}
