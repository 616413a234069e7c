package percolator

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator/sortrun"
)

// spilled holds the oldest entries of a write buffer, as sorted runs in a temporary file.
//
//	log    0 ……… 9 │ 10 ……… 19 │ 20 ……… 24
//	       run 0      run 1        in memory
//
// An entry keeps its place in the log, so that a savepoint and an iterator's view are lengths here too.
//
// A run whose keys are all above those of the run before becomes a part of that: a transaction that writes in key
// order has one run.
type spilled struct {
	// files has one file for each level of runs: it is removed when its runs have been merged into one of the next
	// level.
	files []*sortrun.File
	runs  []spilledRun
	// generation changes with every run that is added, so that iterators detect that entries have moved.
	generation int
	failed     *failedRun // nil: none
}

// spilledRun is one run, the log's entries from from on.
type spilledRun struct {
	run  *sortrun.Run
	from int
	// limit: entries from here on have been rolled back.
	limit int
	// sizeBytes is the accounted size of the entries when they were in memory.
	sizeBytes int64
	level     int             // how often its entries have been merged
	look      *sortrun.Cursor // for get
}

// whole reports that no entry of the run has been rolled back or left out.
func (r *spilledRun) whole() bool { return r.run.Len == int64(r.limit-r.from) }

// largeBuffer is the size of a write set from which on the collector runs more often: what such a transaction holds is alive
// for long, and would allow several times as much garbage.
const largeBuffer = 64 << 20

// maxRuns is the maximum number of runs of one level: a reader has a cursor of 40 KiB on each.
const maxRuns = 128

// A spilled record is op, flags (those of the change, and spillNotify), uvarint place in the log, with spillNotify
// uvarint number of the set, value.
const spillNotify = 1 << 7

// spilledEntry is the content of a record. Its value is the record's.
type spilledEntry struct {
	at int // place in the log
	change
	notify notifyNumber
	value  []byte
}

var errSpillTorn = &sortrun.Error{Err: errors.New("a record is malformed")}

func appendSpilled(dst []byte, at int, e *bufferEntry) []byte {
	flags := byte(e.flags)
	if e.notify != 0 {
		flags |= spillNotify
	}
	dst = append(dst, byte(e.op), flags)
	dst = binary.AppendUvarint(dst, uint64(at))
	if e.notify != 0 {
		dst = binary.AppendUvarint(dst, uint64(e.notify))
	}
	return append(dst, e.value...)
}

func decodeSpilled(b []byte) (e spilledEntry, err error) {
	if len(b) < 3 {
		return e, errSpillTorn
	}
	at, k := binary.Uvarint(b[2:])
	if k <= 0 {
		return e, errSpillTorn
	}
	rest := b[2+k:]
	e = spilledEntry{at: int(at), change: change{op: mvcc.Op(b[0]), flags: changeFlags(b[1] &^ spillNotify)}}
	if b[1]&spillNotify != 0 {
		if e.notify, rest, err = cutNotify(rest); err != nil {
			return e, err
		}
	}
	if e.leavesValue() {
		e.value = rest
	}
	return e, nil
}

// cutNotify takes the number of a set off a record.
func cutNotify(b []byte) (notifyNumber, []byte, error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > maxNotifySets {
		return 0, nil, errSpillTorn
	}
	return notifyNumber(n), b[k:], nil
}

// spill moves all entries in memory to a file, which is made in dir if there is none yet.
func (b *writeBuffer) spill(dir string) error {
	if err := b.settle(); err != nil || b.n == 0 {
		return err
	}
	w, err := b.beginRun(dir)
	if err != nil {
		return err
	}
	run, err := b.writeRun(w)
	if err != nil {
		return err
	}
	b.spilled.add(spilledRun{run: run, from: b.base, limit: b.base + b.n, sizeBytes: b.memBytes})
	b.base += b.n
	b.empty()
	return nil
}

// beginRun begins the run of the entries in memory.
func (b *writeBuffer) beginRun(dir string) (*sortrun.Writer, error) {
	if b.spilled == nil {
		b.spilled = &spilled{}
	}
	if b.sizeBytes >= largeBuffer && !b.tight {
		b.tight = true
		memory.TightenCollector()
	}
	return b.spilled.newWriter(dir, 0)
}

// newWriter begins a run of a level.
func (s *spilled) newWriter(dir string, level int) (*sortrun.Writer, error) {
	for len(s.files) <= level {
		s.files = append(s.files, nil)
	}
	if s.files[level] == nil {
		file, err := sortrun.Create(dir)
		if err != nil {
			return nil, err
		}
		s.files[level] = file
	}
	return s.files[level].NewWriter(), nil
}

// Tags of blocks: some keys must be new; some records are neither puts nor deletions, or of keys that have been locked.
const (
	tagNew = 1 << iota
	tagMixed
)

// runWriter writes the records of a run, by key. It marks a block that has a key which occurs twice, or which is neither
// just put nor deleted: an unmarked block is a part of a write set as it is.
type runWriter struct {
	*sortrun.Writer
	any  bool
	last []byte
}

func (w *runWriter) add(key, record []byte, c change) error {
	again := w.any && bytes.Equal(key, w.last)
	if again {
		w.Mark() // the block of the record before, which may be another
	}
	w.any, w.last = true, append(w.last[:0], key...)
	if err := w.Add(key, record); err != nil {
		return err
	}
	if again || c.has(insertedTwice) || c.op != mvcc.OpPut && c.op != mvcc.OpDelete {
		w.Mark()
	}
	if c.has(wantsNew) {
		w.Tag(tagNew)
	}
	return nil
}

// writeRun writes the entries in memory as a run.
func (b *writeBuffer) writeRun(to *sortrun.Writer) (*sortrun.Run, error) {
	w := runWriter{Writer: to}
	var scratch []byte
	put := func(i int, e *bufferEntry) error {
		scratch = appendSpilled(scratch[:0], b.base+i, e)
		return w.add(e.key, scratch, e.change)
	}
	if b.ascending() {
		for i := range b.n {
			if err := put(i, b.at(i)); err != nil {
				return nil, err
			}
		}
		return to.Finish()
	}
	places := b.sorted()
	defer places.release()
	var entries [touchedEntries]*bufferEntry
	for order := places.order; len(order) > 0; {
		group := order[:min(touchedEntries, len(order))]
		order = order[len(group):]
		scratch = append(scratch[:0], b.touch(group, &entries))
		for i, p := range group {
			if err := put(int(p.at), entries[i]); err != nil {
				return nil, err
			}
		}
	}
	return to.Finish()
}

// touchedEntries is how many entries are loaded together.
const touchedEntries = 16

// touch finds the entries of some places and reads bytes of each, so that the processor loads them from memory at the same time: in the
// order of keys they are far from each other. What it returns is of no meaning.
func (b *writeBuffer) touch(places []place, entries *[touchedEntries]*bufferEntry) (seen byte) {
	for i, p := range places {
		entries[i] = b.at(int(p.at))
	}
	for _, e := range entries[:len(places)] {
		if len(e.key) > 0 {
			seen |= e.key[0]
		}
		if len(e.value) > 0 {
			seen |= e.value[0]
		}
	}
	return seen
}

// add takes in a new run.
func (s *spilled) add(r spilledRun) {
	s.generation++
	if n := len(s.runs); n > 0 {
		if last := &s.runs[n-1]; last.whole() && last.limit == r.from && r.run.Follows(last.run) {
			*last = spilledRun{
				run: last.run.Extend(r.run), from: last.from, limit: r.limit, level: last.level,
				sizeBytes: last.sizeBytes + r.sizeBytes,
			}
			return
		}
	}
	s.runs = append(s.runs, r)
}

// compact merges the newest runs while there are most of their level. An error leaves them as they
// were.
func (b *writeBuffer) compact(ctx context.Context, dir string, most int) error {
	if b == nil || b.spilled == nil || len(b.spilled.newest()) < most {
		return nil
	}
	if err := b.settle(); err != nil {
		return err
	}
	return b.spilled.compact(ctx, dir, most)
}

// newest returns the newest runs, those of one level.
func (s *spilled) newest() []spilledRun {
	from := len(s.runs)
	for from > 0 && s.runs[from-1].level == s.runs[len(s.runs)-1].level {
		from--
	}
	return s.runs[from:]
}

func (s *spilled) compact(ctx context.Context, dir string, most int) error {
	for {
		group := s.newest()
		if len(group) < most {
			return nil
		}
		merged, err := s.merge(ctx, dir, group)
		if err != nil {
			return err
		}
		s.generation++
		clear(group)
		s.runs = s.runs[:len(s.runs)-len(group)]
		s.closeFile(merged.level - 1) // These were all its runs: levels only descend.
		s.runs = append(s.runs, merged)
	}
}

// closeFile gives up the file of a level.
func (s *spilled) closeFile(level int) {
	if f := s.files[level]; f != nil {
		_ = f.Close() // It is unlinked, and not read again.
		s.files[level] = nil
	}
}

// merge writes consecutive runs as one, without entries that have been rolled back.
func (s *spilled) merge(ctx context.Context, dir string, group []spilledRun) (spilledRun, error) {
	last := &group[len(group)-1]
	merged := spilledRun{from: group[0].from, limit: last.limit, level: last.level + 1}
	runs := make([]*sortrun.Run, len(group))
	for i := range group {
		runs[i] = group[i].run
		merged.sizeBytes += group[i].sizeBytes
	}
	to, err := s.newWriter(dir, merged.level)
	if err != nil {
		return merged, err
	}
	w := runWriter{Writer: to}
	m := sortrun.NewMerge(runs)
	for n := 0; m.Valid(); m.Next() {
		if n++; n%4096 == 1 && ctx.Err() != nil {
			return merged, ctx.Err()
		}
		e, err := decodeSpilled(m.Value())
		if err != nil {
			return merged, err
		}
		if e.at >= group[m.Run()].limit {
			continue
		}
		if err := w.add(m.Key(), m.Value(), e.change); err != nil {
			return merged, err
		}
	}
	if err = m.Err(); err == nil {
		merged.run, err = w.Finish()
	}
	return merged, err
}

// close gives the files up.
func (b *writeBuffer) close() {
	if b != nil && b.tight {
		b.tight = false
		memory.LoosenCollector()
	}
	if b != nil && b.spilling != nil {
		<-b.spilling.ready
		b.spilling = nil
	}
	if b != nil && b.spilled != nil {
		for level := range b.spilled.files {
			b.spilled.closeFile(level)
		}
		b.spilled = nil
	}
}

// truncate rolls back the entries from n on and returns their accounted size, as far as it is known.
func (s *spilled) truncate(n int) (sizeBytes int64) {
	if f := s.failed; f != nil && n <= f.from {
		sizeBytes, s.failed = f.sizeBytes, nil
	}
	for len(s.runs) > 0 {
		r := &s.runs[len(s.runs)-1]
		if r.from < n {
			if n < r.limit { // Entries are taken to be of one size.
				cut := r.sizeBytes / int64(r.limit-r.from) * int64(r.limit-n)
				r.sizeBytes -= cut
				sizeBytes += cut
				r.limit = n
			}
			break
		}
		sizeBytes += r.sizeBytes
		*r = spilledRun{}
		s.runs = s.runs[:len(s.runs)-1]
	}
	s.generation++
	return sizeBytes
}

// get returns a copy of the runs' value of key; found is false if they do not determine it.
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
			e, err := decodeSpilled(r.look.Value())
			if err != nil {
				return nil, false, err
			}
			if e.at < r.limit && e.decides() { // the newest comes last
				found, value = true, nil
				if e.leavesValue() {
					value = append(make([]byte, 0, len(e.value)), e.value...)
				}
			}
		}
		if err := r.look.Err(); err != nil {
			return nil, false, err
		}
	}
	return value, found, nil
}

// folded is one key of a write set, with the combined effect of all entries of the key. Key and value are valid until
// the next.
type folded struct {
	key, value []byte
	change
	notify notifyNumber
	first  int // place in the log of the key's oldest entry
}

// fold calls f with the keys of a buffer that has been spilled completely, in order. It fails with *mvcc.KeyExistsError
// if a key was inserted twice. adopt, if not nil, is called with blocks that are a part of the write set as they are; f
// is not called with the keys of a block that it accepts. sets are the buffer's.
func (s *spilled) fold(sets *notifySets, f func(*folded) error, adopt func(*sortrun.Block) (bool, error)) error {
	runs := make([]*sortrun.Run, len(s.runs))
	for i := range s.runs {
		runs[i] = s.runs[i].run
	}
	var cur folded
	emit := func() error {
		if cur.has(insertedTwice) {
			return &mvcc.KeyExistsError{Key: bytes.Clone(cur.key)}
		}
		return f(&cur)
	}
	any := false
	m := sortrun.NewMerge(runs)
	for ; m.Valid(); m.Next() {
		for adopt != nil && m.Valid() && s.runs[m.Run()].whole() {
			b := m.Block()
			if b == nil || any && bytes.Compare(cur.key, b.First) >= 0 {
				break
			}
			if any {
				if err := emit(); err != nil {
					return err
				}
				any = false
			}
			if taken, err := adopt(b); err != nil {
				return err
			} else if !taken {
				break
			}
			m.PassBlock()
		}
		if !m.Valid() {
			break
		}
		e, err := decodeSpilled(m.Value())
		if err != nil {
			return err
		}
		if e.at >= s.runs[m.Run()].limit {
			continue
		}
		if any && bytes.Equal(m.Key(), cur.key) {
			cur.change, cur.notify = cur.change.then(e.change), sets.union(cur.notify, e.notify)
			if e.leavesValue() {
				cur.value = append(cur.value[:0], e.value...)
			}
			continue
		}
		if any {
			if err := emit(); err != nil {
				return err
			}
		}
		any = true
		cur.key, cur.value = append(cur.key[:0], m.Key()...), append(cur.value[:0], e.value...)
		cur.change, cur.notify, cur.first = e.change, e.notify, e.at
	}
	if err := m.Err(); err != nil || !any {
		return err
	}
	return emit()
}
