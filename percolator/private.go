package percolator

import (
	"bytes"
	"context"
	"sort"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator/sortrun"
)

// privateSpans are the parts of the key space that only this transaction can use until it commits: those of the tables
// and indexes that it has created. Their keys need no locks, and only the write buffer determines which of them exist.
//
// A key above all that have been written to its span is new. Others are looked up in the buffer, until the lookups in
// its file have cost as much as a merge of the file; from then on VerifyNew finds the keys that were inserted twice.
type privateSpans struct {
	list       []privateSpan // ascending, disjoint
	at         int           // of the span that find returned last
	lookups    int           // in runs, since VerifyNew
	unverified bool          // keys have been left to VerifyNew
}

type privateSpan struct {
	kv.Span
	since int    // the length of the write buffer when the span was added
	last  []byte // no larger key of the span has been written
}

// find returns the span that has key, or nil.
func (p *privateSpans) find(key []byte) *privateSpan {
	if len(p.list) == 0 {
		return nil
	}
	if s := &p.list[p.at]; spanContains(s.Span, key) {
		return s
	}
	i := p.above(key) - 1
	if i < 0 || !spanContains(p.list[i].Span, key) {
		return nil
	}
	p.at = i
	return &p.list[i]
}

// above returns the position of the first span that begins above key.
func (p *privateSpans) above(key []byte) int {
	return sort.Search(len(p.list), func(i int) bool { return bytes.Compare(p.list[i].Start, key) > 0 })
}

// add adds a span, unless it is part of one. It is not larger than one.
func (p *privateSpans) add(span kv.Span, since int) {
	if p.find(span.Start) != nil {
		return
	}
	i := p.above(span.Start)
	p.list = append(p.list, privateSpan{})
	copy(p.list[i+1:], p.list[i:])
	p.list[i] = privateSpan{Span: span, since: since}
}

// wrote records a write.
func (p *privateSpans) wrote(key []byte) {
	if s := p.find(key); s != nil && bytes.Compare(key, s.last) > 0 {
		s.last = key
	}
}

// truncate removes the spans that were added when the write buffer had n entries or more. It returns whether keys
// have been written to one of them.
func (p *privateSpans) truncate(n int) (used bool) {
	kept := p.list[:0]
	for _, s := range p.list {
		if s.since < n {
			kept = append(kept, s)
		} else {
			used = used || s.last != nil
		}
	}
	clear(p.list[len(kept):])
	p.list, p.at = kept, 0
	return used
}

// AddPrivateSpan states that no other transaction reads or writes keys of span before this one has committed, and that
// the span has no versions: it is that of a table or an index that this transaction creates. Its keys are not locked
// from now on. The caller adds the span before it writes the table's or index's descriptor; RollbackTo a savepoint taken
// before removes the span. Spans do not overlap, but a span may be part of an earlier one.
func (t *Txn) AddPrivateSpan(span kv.Span) { t.private.add(span, t.buf.len()) }

// truncatePrivate removes the private spans added since the write buffer had n entries.
func (t *Txn) truncatePrivate(n int) {
	if len(t.private.list) > 0 && t.private.truncate(n) && t.locks != nil {
		t.locks.loose = true // Their keys may be inserted again, and are not locked.
	}
}

// checkPrivate is LockNew for the keys in private spans; public are the others before taken, and at their positions.
func (t *Txn) checkPrivate(keys [][]byte) (public [][]byte, at []int, taken int, _ error) {
	var passed map[string]struct{} // the keys before, from the first on that is not above the others of its span
	for i, key := range keys {
		s := t.private.find(key)
		if s == nil {
			public, at = append(public, key), append(at, i)
			continue
		}
		above := bytes.Compare(key, s.last) > 0
		if above {
			s.last = key
		}
		if t.private.unverified || above && passed == nil {
			continue
		}
		if passed == nil {
			passed = make(map[string]struct{}, len(keys))
			for _, before := range keys[:i] {
				passed[string(before)] = struct{}{}
			}
		}
		_, twice := passed[string(key)]
		if !twice && !above {
			var err error
			if twice, err = t.writtenBefore(key); err != nil {
				return nil, nil, -1, err
			}
		}
		if twice {
			return public, at, i, nil
		}
		passed[string(key)] = struct{}{}
	}
	return public, at, -1, nil
}

// lookupEntries is how many entries are merged in the time of one lookup in a run.
const lookupEntries = 64

// writtenBefore reports whether the transaction has given a private key a value. It leaves that to VerifyNew if lookups
// have become too many.
func (t *Txn) writtenBefore(key []byte) (bool, error) {
	if t.buf != nil && t.buf.spilled != nil {
		t.private.lookups += len(t.buf.spilled.runs)
		if t.private.lookups*lookupEntries > t.buf.len() {
			t.private.unverified = true
			return false, nil
		}
	}
	value, _, err := t.buf.get(key)
	return value != nil, err
}

// VerifyNew returns *mvcc.KeyExistsError if a key that LockNew has called new was inserted twice: for private spans LockNew may leave
// that to this call. A statement calls it after its last write. It returns the error of writes that could not be moved to a
// file: they are those of the statement.
func (t *Txn) VerifyNew(ctx context.Context) error {
	t.private.lookups = 0
	if t.buf != nil {
		if err := t.buf.settle(); err != nil {
			return err
		}
	}
	if !t.private.unverified {
		return nil
	}
	t.private.unverified = false
	if t.done {
		return ErrTxnDone
	}
	if err := t.buf.spill(t.db.opts.TempDir); err != nil {
		return err
	}
	t.buf.shrinkAccount()
	n := 0
	check := func() error {
		if n++; n%4096 == 0 {
			return ctx.Err()
		}
		return nil
	}
	return t.buf.spilled.fold(t.buf.sets,
		func(*folded) error { return check() },
		func(*sortrun.Block) (bool, error) { return true, check() }) // no key of the block is in another run, or twice in it
}
