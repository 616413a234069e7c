package executor

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/inverted"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// invertedScan finds rows by the terms of an inverted index and passes those for which filter is true. The keys of the rows that have a term are
// together, in order, so that those that have several terms are found by merging.
type invertedScan struct {
	access
	searches []planner.InvertedSearch
	filter   expr.Scalar

	found  postings // nil before the first row
	ended  bool
	group  int
	keys   [][]byte
	values [][]byte
	at     int
	buf    []byte
	held   int64 // booked for keys that are sorted in memory
}

func newInvertedScan(ex *execution, n *planner.Scan) (Operator, error) {
	o := &invertedScan{searches: n.Inverted, filter: n.Filter}
	return o, o.init(ex, &n.Access)
}

func (o *invertedScan) Open(context.Context) error {
	o.reset()
	return nil
}

func (o *invertedScan) Close() error {
	o.reset()
	return nil
}

func (o *invertedScan) reset() {
	if o.found != nil {
		o.found.close()
		o.found = nil
	}
	o.ex.mem.shrink(o.held)
	o.held = 0
	o.ended, o.keys, o.values, o.at = false, o.keys[:0], nil, 0
}

func (o *invertedScan) Next(ctx context.Context) (types.Row, error) {
	if o.found == nil && !o.ended {
		if err := o.search(ctx); err != nil {
			return nil, err
		}
	}
	for {
		for o.at == len(o.keys) {
			if o.ended {
				return nil, nil
			}
			if err := o.fetch(ctx); err != nil {
				return nil, err
			}
		}
		key, value := o.keys[o.at], o.values[o.at]
		o.at++
		if value == nil {
			return nil, o.dangling(key)
		}
		row, err := o.decode(key, value)
		if err != nil {
			return nil, err
		}
		ok, err := o.ex.holds(o.filter, row)
		if ok || err != nil {
			return row, err
		}
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
	}
}

// search evaluates the searches and begins to merge the rows of their terms.
func (o *invertedScan) search(ctx context.Context) error {
	o.group = o.ex.firstGroup()
	var all []postings
	for i := range o.searches {
		s := &o.searches[i]
		d, err := s.Value.Eval(&o.ex.ev, nil)
		if err != nil {
			return err
		}
		if d.IsNull() {
			o.ended = true
			break
		}
		q, err := inverted.Class(o.index.Inverted[s.Column].Class).Search(o.ex.rt.Env, s.Op, d, s.Type)
		if err != nil {
			return err
		}
		p, err := o.postings(ctx, q, s.Column)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	o.found = o.intersect(all)
	if o.ended {
		o.found.close()
		o.found = nil
	}
	return nil
}

// fetch reads the next group of rows.
func (o *invertedScan) fetch(ctx context.Context) error {
	o.keys, o.at, o.buf = o.keys[:0], 0, o.buf[:0]
	for len(o.keys) < o.group {
		ok, err := o.found.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			o.ended = true
			break
		}
		from := len(o.buf)
		o.buf = append(rowenc.AppendIndexPrefix(o.buf, o.table.ID, o.table.Primary.ID), o.found.key()...)
		o.keys = append(o.keys, o.buf[from:len(o.buf):len(o.buf)])
	}
	o.group = o.ex.nextGroup(o.group)
	if len(o.keys) == 0 {
		return nil
	}
	var err error
	o.values, err = o.ex.txn.BatchGet(ctx, o.keys)
	return err
}

// postings returns the primary keys, without the prefix of the primary index, of the rows that satisfy a query.
func (o *invertedScan) postings(ctx context.Context, q *inverted.Query, column int) (postings, error) {
	list := func(qs []*inverted.Query) ([]postings, error) {
		var all []postings
		for _, q := range qs {
			p, err := o.postings(ctx, q, column)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
		return all, nil
	}
	switch {
	case q.All:
		return &termPostings{ex: o.ex, prefix: rowenc.AppendIndexPrefix(nil, o.table.ID, o.table.Primary.ID)}, nil
	case q.And != nil:
		all, err := list(q.And)
		return o.intersect(all), err
	case q.Or != nil:
		all, err := list(q.Or)
		return &unionPostings{all: all}, err
	case q.Term == nil:
		return &sortedPostings{}, nil
	}
	prefix, err := rowenc.AppendKeyPrefix(nil, o.table, o.index, types.Bytes(inverted.InColumn(column, q.Term)))
	if err != nil {
		return nil, err
	}
	if q.Prefix {
		return o.beginning(ctx, prefix[:len(prefix)-1]) // without the end of the term
	}
	return &termPostings{ex: o.ex, prefix: prefix}, nil
}

// beginning returns the rows of all terms with a beginning. They come in the order of the terms and are sorted in memory.
func (o *invertedScan) beginning(ctx context.Context, start []byte) (postings, error) {
	it := o.ex.txn.Scan(ctx, kv.Span{Start: start, End: rowenc.PrefixEnd(start)}, percolator.ScanOptions{KeysOnly: true, ReadAhead: true})
	defer it.Close()
	out := &sortedPostings{}
	prefix := len(rowenc.AppendIndexPrefix(nil, o.table.ID, o.table.Primary.ID))
	for it.Next(ctx) {
		key, err := rowenc.AppendRowKey(nil, o.table, o.index, it.Key(), nil)
		if err != nil {
			return nil, err
		}
		n := int64(len(key)) + headerBytes
		if err := o.ex.mem.grow(n); err != nil {
			return nil, err
		}
		o.held += n
		out.keys = append(out.keys, key[prefix:])
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
	}
	if it.Err() != nil {
		return nil, it.Err()
	}
	err := sortPolled(ctx, out.keys, bytes.Compare)
	out.keys = slices.CompactFunc(out.keys, func(a, b []byte) bool { return bytes.Equal(a, b) })
	return out, err
}

// postings are keys of rows in ascending order, each once.
type postings interface {
	// next advances to the next key; false: there is none.
	next(ctx context.Context) (bool, error)
	// seek advances to the first key that is not less than target, and not before the current one.
	seek(ctx context.Context, target []byte) (bool, error)
	// key is the current key, valid until the postings advance.
	key() []byte
	close()
}

// A seek passes the keys of a term one by one at first; to open the iterator again costs as much as some fifty of them. After seeks that led
// further than seekSteps it passes fewer, minSeekSteps in the end, and tries anew after so many seeks as farSeeks.
const (
	seekSteps    = 64
	minSeekSteps = 4
	farSeeks     = 16
)

// termPostings are the rows that have a term.
type termPostings struct {
	ex     *execution
	prefix []byte // of the keys of the term's entries
	it     percolator.Iterator
	cur    []byte
	ended  bool
	far    int // seeks in a row that led further than the keys that were passed
}

// steps is how many keys the next seek passes before the iterator is opened again at the key that is looked for.
func (t *termPostings) steps() int { return max(seekSteps>>t.far, minSeekSteps) }

// open begins at the first key that is not less than from, with a short page where seeks have led far.
func (t *termPostings) open(ctx context.Context, from []byte) {
	t.close()
	opts := percolator.ScanOptions{KeysOnly: true, ReadAhead: true}
	if t.far > 1 {
		opts.PageHint, opts.ReadAhead = 1+t.steps(), false
	}
	t.it = t.ex.txn.Scan(ctx, kv.Span{Start: slices.Concat(t.prefix, from), End: rowenc.PrefixEnd(t.prefix)}, opts)
}

func (t *termPostings) next(ctx context.Context) (bool, error) {
	if t.it == nil && !t.ended {
		t.open(ctx, nil)
	}
	if t.ended || !t.it.Next(ctx) {
		t.ended = true
		if t.it == nil {
			return false, nil
		}
		return false, t.it.Err()
	}
	t.cur = t.it.Key()[len(t.prefix):]
	return true, t.ex.tick(ctx)
}

func (t *termPostings) seek(ctx context.Context, target []byte) (bool, error) {
	if t.cur != nil && bytes.Compare(t.cur, target) >= 0 {
		return !t.ended, nil
	}
	for range t.steps() {
		ok, err := t.next(ctx)
		if !ok || err != nil {
			return ok, err
		}
		if bytes.Compare(t.cur, target) >= 0 {
			t.far = 0
			return true, nil
		}
	}
	t.far = (t.far + 1) % farSeeks
	t.open(ctx, target)
	return t.next(ctx)
}

func (t *termPostings) key() []byte { return t.cur }

func (t *termPostings) close() {
	if t.it != nil {
		t.it.Close()
		t.it = nil
	}
}

// sortedPostings are keys in memory.
type sortedPostings struct {
	keys [][]byte
	at   int // the current key's place, plus 1
}

func (s *sortedPostings) next(context.Context) (bool, error) {
	s.at++
	return s.at <= len(s.keys), nil
}

func (s *sortedPostings) seek(_ context.Context, target []byte) (bool, error) {
	from := max(s.at-1, 0)
	if from > len(s.keys) {
		return false, nil
	}
	n, _ := slices.BinarySearchFunc(s.keys[from:], target, bytes.Compare)
	s.at = from + n + 1
	return s.at <= len(s.keys), nil
}

func (s *sortedPostings) key() []byte { return s.keys[s.at-1] }
func (s *sortedPostings) close()      {}

// commonPostings has the keys that all have. Whichever is behind seeks the key of the one that is ahead.
type commonPostings struct{ all []postings }

// intersect returns the keys that all have. Terms are merged by groups of keys.
func (o *invertedScan) intersect(all []postings) postings {
	terms := &commonTerms{o: o}
	others := make([]postings, 0, len(all))
	for _, p := range all {
		if t, ok := p.(*termPostings); ok {
			terms.terms = append(terms.terms, termList{prefix: t.prefix})
		} else {
			others = append(others, p)
		}
	}
	if len(terms.terms) < 2 {
		return common(all)
	}
	return common(append(others, terms))
}

func common(all []postings) postings {
	if len(all) == 1 {
		return all[0]
	}
	return &commonPostings{all}
}

func (x *commonPostings) next(ctx context.Context) (bool, error) {
	if len(x.all) == 0 {
		return false, nil
	}
	if ok, err := x.all[0].next(ctx); !ok || err != nil {
		return false, err
	}
	return x.agree(ctx)
}

func (x *commonPostings) seek(ctx context.Context, target []byte) (bool, error) {
	if ok, err := x.all[0].seek(ctx, target); !ok || err != nil {
		return false, err
	}
	return x.agree(ctx)
}

// agree advances until all have the same key.
func (x *commonPostings) agree(ctx context.Context) (bool, error) {
	for i, agreed := 1%len(x.all), 1; agreed < len(x.all); i = (i + 1) % len(x.all) {
		target := x.all[(i+len(x.all)-1)%len(x.all)].key()
		ok, err := x.all[i].seek(ctx, target)
		if !ok || err != nil {
			return false, err
		}
		if agreed++; !bytes.Equal(x.all[i].key(), target) {
			agreed = 1
		}
	}
	return true, nil
}

func (x *commonPostings) key() []byte { return x.all[0].key() }

func (x *commonPostings) close() {
	for _, p := range x.all {
		p.close()
	}
}

// unionPostings has the keys that any has.
type unionPostings struct {
	all   []postings
	begun bool
	cur   []byte
}

func (u *unionPostings) next(ctx context.Context) (bool, error) {
	if !u.begun {
		u.begun = true
		if err := u.advance(func(p postings) (bool, error) { return p.next(ctx) }); err != nil {
			return false, err
		}
	} else {
		last := u.cur
		err := u.advance(func(p postings) (bool, error) {
			if bytes.Equal(p.key(), last) {
				return p.next(ctx)
			}
			return true, nil
		})
		if err != nil {
			return false, err
		}
	}
	return u.least(), nil
}

func (u *unionPostings) seek(ctx context.Context, target []byte) (bool, error) {
	u.begun = true
	if err := u.advance(func(p postings) (bool, error) { return p.seek(ctx, target) }); err != nil {
		return false, err
	}
	return u.least(), nil
}

// advance calls f with each, and forgets those that have ended.
func (u *unionPostings) advance(f func(postings) (bool, error)) error {
	kept := u.all[:0]
	for _, p := range u.all {
		ok, err := f(p)
		if err != nil {
			return err
		}
		if ok {
			kept = append(kept, p)
		} else {
			p.close()
		}
	}
	u.all = kept
	return nil
}

// least takes the smallest of the current keys.
func (u *unionPostings) least() bool {
	if len(u.all) == 0 {
		return false
	}
	least := u.all[0].key()
	for _, p := range u.all[1:] {
		if bytes.Compare(p.key(), least) < 0 {
			least = p.key()
		}
	}
	u.cur = append(u.cur[:0], least...)
	return true
}

func (u *unionPostings) key() []byte { return u.cur }

func (u *unionPostings) close() {
	for _, p := range u.all {
		p.close()
	}
}
