package percolator

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator/sortrun"
)

// spilled holds the oldest entries of a write buffer, as sorted runs in a temporary file.
//
//	log    0 ……… 9 │ 10 ……… 19 │ 20 ……… 24
//	       run 0      run 1        in memory
//
// An entry keeps its place in the log, so that a savepoint and an iterator's view are lengths here too.
type spilled struct {
	file *sortrun.File
	runs []spilledRun
	// generation changes with every run that is added, so that iterators know that entries have moved.
	generation int
}

// spilledRun is one run, the log's entries from from on.
type spilledRun struct {
	run  *sortrun.Run
	from int
	// limit: entries from here on have been rolled back.
	limit int
	// sizeBytes is what the entries counted for in memory.
	sizeBytes int64
	level     int             // how often its entries have been merged
	look      *sortrun.Cursor // of get
}

// maxRuns is how many runs of one level there may be: a reader has a cursor on each.
const maxRuns = 64

// A spilled record is op, flags, uvarint place in the log, value.
const (
	spillNew = 1 << iota
	spillLocked
	spillTwice
)

var errSpillTorn = &sortrun.Error{Err: errors.New("a record is malformed")}

func appendSpilled(dst []byte, at int, e *entry) []byte {
	var flags byte
	if e.mustBeNew {
		flags |= spillNew
	}
	if e.locked {
		flags |= spillLocked
	}
	if e.twice {
		flags |= spillTwice
	}
	dst = append(dst, byte(e.op), flags)
	dst = binary.AppendUvarint(dst, uint64(at))
	return append(dst, e.value...)
}

// decodeSpilled returns an entry's place in the log, its change and its value, which is b's.
func decodeSpilled(b []byte) (at int, c change, value []byte, err error) {
	if len(b) < 3 {
		return 0, c, nil, errSpillTorn
	}
	n, k := binary.Uvarint(b[2:])
	if k <= 0 {
		return 0, c, nil, errSpillTorn
	}
	c = change{op: mvcc.Op(b[0]), mustBeNew: b[1]&spillNew != 0, locked: b[1]&spillLocked != 0, twice: b[1]&spillTwice != 0}
	if c.leavesValue() {
		value = b[2+k:]
	}
	return int(n), c, value, nil
}

// spill moves all entries in memory to the file, which is made in dir if there is none yet.
func (b *writeBuffer) spill(dir string) error {
	if b.n == 0 {
		return nil
	}
	if b.spilled == nil {
		file, err := sortrun.Create(dir)
		if err != nil {
			return err
		}
		b.spilled = &spilled{file: file}
	}
	w := b.spilled.file.NewWriter()
	var scratch []byte
	for _, p := range b.sorted() {
		e := b.at(int(p.at))
		scratch = appendSpilled(scratch[:0], b.base+int(p.at), e)
		if err := w.Add(e.key, scratch); err != nil {
			return err
		}
	}
	run, err := w.Finish()
	if err != nil {
		return err
	}
	b.spilled.runs = append(b.spilled.runs, spilledRun{run: run, from: b.base, limit: b.base + b.n, sizeBytes: b.memBytes})
	b.spilled.generation++
	b.base += b.n
	b.first, b.rest, b.n, b.frozen, b.memBytes = nil, nil, 0, 0, 0
	b.index, b.indexed = nil, 0
	return b.spilled.compact()
}

// compact merges the newest runs while there are too many of their level.
func (s *spilled) compact() error {
	for {
		from := len(s.runs)
		for from > 0 && s.runs[from-1].level == s.runs[len(s.runs)-1].level {
			from--
		}
		if len(s.runs)-from < maxRuns {
			return nil
		}
		merged, err := s.merge(s.runs[from:])
		if err != nil {
			return err
		}
		clear(s.runs[from:])
		s.runs = append(s.runs[:from], merged)
	}
}

// merge writes consecutive runs as one, without what has been rolled back.
func (s *spilled) merge(group []spilledRun) (spilledRun, error) {
	last := &group[len(group)-1]
	merged := spilledRun{from: group[0].from, limit: last.limit, level: last.level + 1}
	runs := make([]*sortrun.Run, len(group))
	for i := range group {
		runs[i] = group[i].run
		merged.sizeBytes += group[i].sizeBytes
	}
	w := s.file.NewWriter()
	m := sortrun.NewMerge(runs)
	for ; m.Valid(); m.Next() {
		at, _, _, err := decodeSpilled(m.Value())
		if err != nil {
			return merged, err
		}
		if at >= group[m.Run()].limit {
			continue
		}
		if err := w.Add(m.Key(), m.Value()); err != nil {
			return merged, err
		}
	}
	err := m.Err()
	if err == nil {
		merged.run, err = w.Finish()
	}
	return merged, err
}

// close gives the file up.
func (b *writeBuffer) close() {
	if b != nil && b.spilled != nil {
		_ = b.spilled.file.Close() // It has no name, and nobody reads it again.
		b.spilled = nil
	}
}

// truncate rolls back the entries from n on and returns what they counted for, as far as that is known.
func (s *spilled) truncate(n int) (sizeBytes int64) {
	for len(s.runs) > 0 {
		r := &s.runs[len(s.runs)-1]
		if r.from < n {
			r.limit = min(r.limit, n)
			break
		}
		sizeBytes += r.sizeBytes
		*r = spilledRun{}
		s.runs = s.runs[:len(s.runs)-1]
	}
	s.generation++
	return sizeBytes
}

// get returns a copy of what the runs say of key; found is false when they say nothing.
func (s *spilled) get(key []byte) (value []byte, found bool, _ error) {
	for i := len(s.runs) - 1; i >= 0 && !found; i-- {
		r := &s.runs[i]
		if bytes.Compare(key, r.run.First()) < 0 || bytes.Compare(key, r.run.Last()) > 0 {
			continue
		}
		if r.look == nil {
			r.look = r.run.NewCursor()
		}
		for ok := r.look.SeekGE(key); ok && bytes.Equal(r.look.Key(), key); ok = r.look.Next() {
			at, c, v, err := decodeSpilled(r.look.Value())
			if err != nil {
				return nil, false, err
			}
			if at < r.limit && c.decides() { // the newest comes last
				found, value = true, nil
				if c.leavesValue() {
					value = append(make([]byte, 0, len(v)), v...)
				}
			}
		}
		if err := r.look.Err(); err != nil {
			return nil, false, err
		}
	}
	return value, found, nil
}

// folded is one key of a write set, with what all entries of the key do together. Key and value are valid
// until the next.
type folded struct {
	key, value []byte
	change
	first int // place in the log of the key's oldest entry
}

// fold calls f with the keys of a buffer that has been spilled to its last entry, in order. It fails with
// *mvcc.KeyExistsError when a key was inserted twice.
func (s *spilled) fold(f func(*folded) error) error {
	runs := make([]*sortrun.Run, len(s.runs))
	for i := range s.runs {
		runs[i] = s.runs[i].run
	}
	var cur folded
	emit := func() error {
		if cur.twice {
			return &mvcc.KeyExistsError{Key: bytes.Clone(cur.key)}
		}
		return f(&cur)
	}
	any := false
	m := sortrun.NewMerge(runs)
	for ; m.Valid(); m.Next() {
		at, c, value, err := decodeSpilled(m.Value())
		if err != nil {
			return err
		}
		if at >= s.runs[m.Run()].limit {
			continue
		}
		if any && bytes.Equal(m.Key(), cur.key) {
			cur.change = cur.change.then(c)
			if c.leavesValue() {
				cur.value = append(cur.value[:0], value...)
			}
			continue
		}
		if any {
			if err := emit(); err != nil {
				return err
			}
		}
		any = true
		cur.key, cur.value = append(cur.key[:0], m.Key()...), append(cur.value[:0], value...)
		cur.change, cur.first = c, at
	}
	if err := m.Err(); err != nil || !any {
		return err
	}
	return emit()
}
