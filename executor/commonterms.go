package executor

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
)

// commonTerms are the rows that have all of several terms. It takes a group of keys from the list of the rarest term, and keeps those that are in
// the lists of the others.
//
//	rarest   ●  ●   ● ●    ●  ● │ ●     a group
//	next     ● ●●● ●●●●  ●●●● ●●│●●     the part between the group's first and last key is walked over
//	last     ●●●●●●●●●●●●●●●●●●●│●●     has many more keys than are left: each of these is looked up
//
// A list is walked over without a copy of its keys, which costs a fraction of an iterator's Next, and of a lookup.
type commonTerms struct {
	o     *invertedScan
	terms []termList // the rarest first, once it has begun
	begun bool
	ended bool     // the rarest has no keys behind the group
	from  []byte   // where its next group begins
	size  int      // of that group
	keys  [][]byte // of the group, in arena
	arena []byte
	in    []bool // which of them a list has
	at    int    // the current key's place, plus 1
	held  int64  // booked for the group
}

// termList is the list of one term.
type termList struct {
	prefix []byte // of the keys of its entries
	lookUp int    // groups that are to be looked up before the list is walked over again
}

const (
	firstTermGroup = 64
	mostTermGroup  = 8192
	termGroupBytes = 256 << 10
	// fewTermKeys: a term that has no more keys is rare enough, whatever the others have.
	fewTermKeys = 16
	// A walk over a list ends when it has passed so many keys for each of the group, and is tried again after so many groups. Its pages have so
	// many keys at least.
	walkedPerKey = 64
	lookUpGroups = 16
	leastWalked  = 4 * walkedPerKey
)

func (c *commonTerms) next(ctx context.Context) (bool, error) {
	for c.at++; c.at > len(c.keys); c.at = 1 {
		if ok, err := c.fill(ctx); !ok || err != nil {
			c.keys, c.at = c.keys[:0], 0
			return false, err
		}
	}
	return true, nil
}

func (c *commonTerms) seek(ctx context.Context, target []byte) (bool, error) {
	from := max(c.at-1, 0)
	n := sort.Search(len(c.keys)-from, func(i int) bool { return bytes.Compare(c.keys[from+i], target) >= 0 })
	if c.at = from + n; c.at == len(c.keys) && bytes.Compare(c.from, target) < 0 {
		c.from = append(c.from[:0], target...)
	}
	return c.next(ctx)
}

func (c *commonTerms) key() []byte { return c.keys[c.at-1] }

func (c *commonTerms) close() {
	c.o.ex.mem.shrink(c.held)
	c.held, c.keys, c.arena, c.in = 0, nil, nil, nil
}

// fill makes the next group that is not empty. False: there is none.
func (c *commonTerms) fill(ctx context.Context) (bool, error) {
	for !c.ended {
		var err error
		if c.begun {
			c.ended, err = c.read(ctx, c.terms[0].prefix, c.size)
		} else {
			c.begun = true
			err = c.begin(ctx)
		}
		if err != nil {
			return false, err
		}
		if n := len(c.keys); n > 0 {
			c.from = append(append(c.from[:0], c.keys[n-1]...), 0)
			c.size = max(1, min(4*c.size, mostTermGroup, termGroupBytes*n/max(len(c.arena), 1)))
		}
		for i := 1; i < len(c.terms) && len(c.keys) > 0; i++ {
			if err := c.keep(ctx, &c.terms[i]); err != nil {
				return false, err
			}
		}
		if err := c.o.ex.tick(ctx); err != nil {
			return false, err
		}
		if len(c.keys) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// begin orders the terms and reads the first group: of lists that end in it the shortest is the rarest, of others the one that gets furthest
// with as many keys.
func (c *commonTerms) begin(ctx context.Context) error {
	type probe struct {
		termList
		ended bool
		keys  int
		last  []byte
	}
	c.size = firstTermGroup
	probes := make([]probe, len(c.terms))
	for i := range c.terms {
		p := &probes[i]
		p.termList = c.terms[i]
		var err error
		if p.ended, err = c.read(ctx, p.prefix, c.size); err != nil {
			return err
		}
		if p.keys = len(c.keys); p.keys > 0 {
			p.last = bytes.Clone(c.keys[p.keys-1])
		}
		if p.ended && p.keys <= fewTermKeys {
			c.terms[0], c.terms[i] = c.terms[i], c.terms[0]
			c.ended = true
			return nil
		}
	}
	slices.SortStableFunc(probes, func(a, b probe) int {
		switch {
		case a.ended && b.ended:
			return cmp.Compare(a.keys, b.keys)
		case a.ended != b.ended:
			return map[bool]int{true: -1, false: 1}[a.ended]
		}
		return bytes.Compare(b.last, a.last)
	})
	for i := range probes {
		c.terms[i] = probes[i].termList
	}
	var err error
	c.ended, err = c.read(ctx, c.terms[0].prefix, c.size)
	return err
}

// read makes a group of the keys of a list that follow, about n. ended reports that there are no more.
func (c *commonTerms) read(ctx context.Context, prefix []byte, n int) (ended bool, _ error) {
	c.keys, c.arena, ended = c.keys[:0], c.arena[:0], true
	ascending := true
	walk := percolator.Walk{KeysOnly: true, PageRows: n}
	walk.Pair = func(key, _ []byte) error {
		at := len(c.arena)
		c.arena = append(c.arena, key[len(prefix):]...)
		c.keys = append(c.keys, c.arena[at:len(c.arena):len(c.arena)])
		if last := len(c.keys) - 1; last > 0 && bytes.Compare(c.keys[last-1], c.keys[last]) > 0 {
			ascending = false // It was locked.
		}
		return nil
	}
	walk.Stop = func() bool {
		ended = len(c.keys) < n
		return !ended
	}
	span := kv.Span{Start: slices.Concat(prefix, c.from), End: rowenc.PrefixEnd(prefix)}
	if _, err := c.o.ex.txn.Walk(ctx, []kv.Span{span}, walk); err != nil {
		return false, err
	}
	if !ascending {
		slices.SortFunc(c.keys, bytes.Compare)
	}
	return ended, c.book(int64(cap(c.arena)) + headerBytes*int64(cap(c.keys)))
}

// book accounts for the memory of the group.
func (c *commonTerms) book(n int64) error {
	if n <= c.held {
		return nil
	}
	if err := c.o.ex.mem.grow(n - c.held); err != nil {
		return err
	}
	c.held = n
	return nil
}

// keep removes the keys from the group that a list does not have.
func (c *commonTerms) keep(ctx context.Context, t *termList) error {
	c.in = slices.Grow(c.in[:0], len(c.keys))[:len(c.keys)]
	clear(c.in)
	decided := 0
	if t.lookUp--; t.lookUp < 0 {
		var err error
		if decided, err = c.walkOver(ctx, t); err != nil {
			return err
		}
		if t.lookUp = 0; decided < len(c.keys) {
			t.lookUp = lookUpGroups
		}
	}
	if err := c.lookUp(ctx, t, decided); err != nil {
		return err
	}
	kept := c.keys[:0]
	for i, key := range c.keys {
		if c.in[i] {
			kept = append(kept, key)
		}
	}
	c.keys = kept
	return nil
}

// walkOver finds the keys of the group that a list has, and returns how many are decided: not all if the list has many more.
func (c *commonTerms) walkOver(ctx context.Context, t *termList) (decided int, _ error) {
	keys, walked, stopped := c.keys, 0, false
	walk := percolator.Walk{KeysOnly: true, PageRows: max(leastWalked, min(4*len(keys), mostTermGroup))}
	walk.Pair = func(key, _ []byte) error {
		walked++
		key = key[len(t.prefix):]
		order := -1
		for decided < len(keys) {
			if order = bytes.Compare(keys[decided], key); order >= 0 {
				break
			}
			decided++
		}
		switch {
		case decided < len(keys) && order == 0:
			c.in[decided] = true
		case decided > 0 && bytes.Compare(key, keys[decided-1]) <= 0: // It was locked.
			if at, found := slices.BinarySearchFunc(keys, key, bytes.Compare); found {
				c.in[at] = true
			}
		}
		return nil
	}
	walk.Stop = func() bool {
		stopped = walked >= walkedPerKey*decided+leastWalked
		return stopped
	}
	last := keys[len(keys)-1]
	span := kv.Span{Start: slices.Concat(t.prefix, keys[0]), End: slices.Concat(t.prefix, last, []byte{0})}
	if _, err := c.o.ex.txn.Walk(ctx, []kv.Span{span}, walk); err != nil {
		return 0, err
	}
	if !stopped {
		decided = len(keys)
	}
	return decided, nil
}

// lookUp finds the keys of the group from a place on that a list has.
func (c *commonTerms) lookUp(ctx context.Context, t *termList, from int) error {
	if from == len(c.keys) {
		return nil
	}
	entries, arena := make([][]byte, 0, len(c.keys)-from), []byte(nil)
	for _, key := range c.keys[from:] {
		at := len(arena)
		arena = append(append(arena, t.prefix...), key...)
		entries = append(entries, arena[at:len(arena):len(arena)])
	}
	values, err := c.o.ex.txn.BatchGet(ctx, entries)
	if err != nil {
		return err
	}
	for i := range values {
		c.in[from+i] = values[i] != nil
	}
	return nil
}
