package percolator

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// changes are the writes a transaction can make.
var changes = []change{changePut, changeInsert, changeDelete, changeLock}

// modelKey is the state of a key for a simple reader of the log, if the key had a value at the snapshot or not.
type modelKey struct {
	present bool // a reader finds a value
	own     bool // that the transaction determines, not the snapshot
	failed  bool // an insert found a value
}

func (m modelKey) apply(c change) modelKey {
	switch c.op {
	case mvcc.OpPut:
		m.failed = m.failed || c.has(wantsNew) && m.present
		m.present, m.own = true, true
	case mvcc.OpDelete:
		m.present, m.own = false, true
	}
	return m
}

// Goal: merging a key's writes into one mutation loses nothing: it fails if the single writes would have failed, and
// leaves the same result, whether or not the key had a value. Method: all sequences of up to five writes, merged from
// the left, from the right and from the middle, against a model.
func TestFoldedWritesEqualTheWritesOneByOne(t *testing.T) {
	var try func(seq []change)
	try = func(seq []change) {
		if len(seq) > 0 {
			checkFold(t, seq)
		}
		if len(seq) < 5 {
			for _, c := range changes {
				try(append(slices.Clip(seq), c))
			}
		}
	}
	try(nil)
}

func foldAll(seq []change) change {
	c := seq[0]
	for _, next := range seq[1:] {
		c = c.then(next)
	}
	return c
}

func checkFold(t *testing.T, seq []change) {
	t.Helper()
	got := foldAll(seq)
	for split := 1; split < len(seq); split++ {
		if c := foldAll(seq[:split]).then(foldAll(seq[split:])); c != got && !(c.has(insertedTwice) && got.has(insertedTwice)) {
			t.Fatalf("%v: %v when split at %d, else %v", seq, c, split, got)
		}
	}
	locked := slices.Contains(seq, changeLock)
	mutation := got.mutation(nil, nil, 0)
	for _, present := range []bool{false, true} {
		want := modelKey{present: present}
		for _, c := range seq {
			want = want.apply(c)
		}
		failed := got.has(insertedTwice) || present && (mutation.MustBeNew || mutation.Op == mvcc.OpCheckNotExists)
		if failed != want.failed {
			t.Fatalf("%v folds to %v: fails %v, want %v (key present: %v)", seq, got, failed, want.failed, present)
		}
		if failed {
			continue
		}
		after := present
		switch mutation.Op {
		case mvcc.OpPut:
			after = true
		case mvcc.OpDelete:
			after = false
		}
		if after != want.present || locked && mutation.Op == mvcc.OpCheckNotExists {
			t.Fatalf("%v folds to %v: leaves %v, want %v", seq, got, after, want.present)
		}
	}
}

// bufferModel is a write buffer that copies its contents for every snapshot.
type bufferModel struct {
	keys map[string]modelValue
}

type modelValue struct {
	value []byte // nil: deleted
	set   bool   // the buffer determines what a reader finds
	seq   []change
	mask  uint // of the observers that the key's writes notify, bit n for the number n
	hop   uint8
}

func (m *bufferModel) clone() *bufferModel {
	return &bufferModel{keys: maps.Clone(m.keys)}
}

func (m *bufferModel) add(key string, value []byte, c change) {
	v := m.keys[key]
	v.seq = append(slices.Clip(v.seq), c)
	if c.op != mvcc.OpLock {
		v.value, v.set = value, true
	}
	m.keys[key] = v
}

// scan returns what a scan of the buffer alone has to return: own puts and deletions in order.
func (m *bufferModel) scan(span kv.Span, reverse bool) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m.keys)) {
		if v := m.keys[k]; v.set && spanContains(span, []byte(k)) {
			out = append(out, fmt.Sprintf("%s=%s %v", k, v.value, v.value == nil))
		}
	}
	if reverse {
		slices.Reverse(out)
	}
	return out
}

// openScan is a scan of the buffer with what it has yet to yield.
type openScan struct {
	s    *bufferScan
	want []string
}

// Goal: the write buffer answers reads and scans, rolls back to savepoints, shows an open iterator the contents at its
// beginning, and returns the correct write set, at any size and with or without an index. Method: random operations
// against a model that copies everything; few keys for many versions, many for large logs. Two of three buffers
// occasionally move their contents to a file.
func TestBufferAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		keys := []int{3, 12, 40, 3000}[seed%4]
		ops := []int{20, 200, 200, 20_000}[seed%4]
		spillOneIn := []int{0, 20, 200}[seed%3]
		runBuffer(t, r, keys, ops, spillOneIn)
	}
}

func runBuffer(t *testing.T, r *rand.Rand, keys, ops, spillOneIn int) {
	t.Helper()
	b := &writeBuffer{}
	defer b.close()
	dir := t.TempDir()
	now := &bufferModel{keys: map[string]modelValue{}}
	type savepoint struct {
		at    int
		model *bufferModel
	}
	saved := []savepoint{{b.freeze(), now.clone()}}
	var open []openScan
	key := func() string { return fmt.Sprintf("k%04d", r.IntN(keys)) }
	weight := 8
	if ops > 1000 {
		weight = 400 // models are copied for savepoints and scans; keep these rare
	}
	for i := range ops {
		if spillOneIn > 0 && r.IntN(spillOneIn) == 0 {
			spill := b.spill
			if r.IntN(2) == 0 {
				spill = b.spillBeside
			}
			if err := spill(dir); err != nil {
				t.Fatal(err)
			}
		}
		switch op := r.IntN(4 * weight); {
		case op == 0 && len(saved) < 8:
			saved = append(saved, savepoint{b.freeze(), now.clone()})
		case op == 1:
			at := r.IntN(len(saved))
			saved = saved[:at+1]
			b.truncate(saved[at].at)
			b.freeze()
			now = saved[at].model.clone()
		case op == 2 && b.len() > 0:
			span := randomSpan(r, key)
			s := &bufferScan{}
			reverse := r.IntN(2) == 0
			s.init(b, span, nil, reverse)
			open = append(open, openScan{s, now.scan(span, reverse)})
		case op == 3 && len(open) > 0:
			at := r.IntN(len(open))
			if drainSome(t, &open[at], r.IntN(50)) {
				open = slices.Delete(open, at, at+1)
			}
		case op < 2*weight:
			k := key()
			value, found, err := b.get([]byte(k))
			if err != nil {
				t.Fatal(err)
			}
			if want := now.keys[k]; found != want.set || !bytes.Equal(value, want.value) || found && (value == nil) != (want.value == nil) {
				t.Fatalf("get %s: %q %v, want %q %v", k, value, found, want.value, want.set)
			}
		default:
			k, c := key(), changes[r.IntN(len(changes))]
			var value []byte
			if c.op == mvcc.OpPut {
				value = fmt.Appendf(nil, "v%d", i)
			}
			b.add([]byte(k), value, c)
			now.add(k, value, c)
			if c.op != mvcc.OpLock && r.IntN(3) == 0 {
				v, mask, hop := now.keys[k], 2*uint(1+r.IntN(7)), uint8(r.IntN(3))
				v.mask, v.hop = v.mask|mask, max(v.hop, hop)
				now.keys[k] = v
				b.notify(&mvcc.NotifySet{Hop: hop, Observers: observersOf(mask)})
			}
		}
	}
	for i := range open {
		drainSome(t, &open[i], 1<<30)
	}
	if b.spilled != nil && len(b.spilled.runs) > 3*maxRuns {
		t.Fatalf("%d runs", len(b.spilled.runs))
	}
	checkMutations(t, b, now)
}

// observersOf returns the numbers of the bits of a mask.
func observersOf(mask uint) (observers []uint64) {
	for n := range uint64(bits.Len(mask)) {
		if mask>>n&1 != 0 {
			observers = append(observers, n)
		}
	}
	return observers
}

// notified describes whom a mutation notifies.
func notified(m *mvcc.Mutation, sets *notifySets) string {
	if m.Notify == 0 {
		return ""
	}
	set := sets.list[m.Notify-1]
	return fmt.Sprint(set.Observers, " hop ", set.Hop)
}

func randomSpan(r *rand.Rand, key func() string) kv.Span {
	span := kv.Span{Start: []byte(key()), End: []byte(key())}
	if bytes.Compare(span.Start, span.End) > 0 {
		span.Start, span.End = span.End, span.Start
	}
	if r.IntN(4) == 0 {
		span.Start = nil
	}
	if r.IntN(4) == 0 {
		span.End = nil
	}
	return span
}

// drainSome advances a scan and reports whether it has ended correctly.
func drainSome(t *testing.T, o *openScan, steps int) bool {
	t.Helper()
	for range steps {
		e, err := o.s.peek()
		if errors.Is(err, ErrIteratorInvalid) {
			if o.s.bound <= slices.Min(o.s.b.truncations) {
				t.Fatal("iterator invalid though nothing it sees was dropped")
			}
			return true
		}
		if e == nil {
			if len(o.want) != 0 {
				t.Fatalf("scan ended before %v", o.want)
			}
			return true
		}
		got := fmt.Sprintf("%s=%s %v", e.key, e.value, e.value == nil)
		if len(o.want) == 0 || got != o.want[0] {
			t.Fatalf("scan yields %s, want %v", got, o.want)
		}
		o.want = o.want[1:]
		o.s.advance()
	}
	return false
}

func checkMutations(t *testing.T, b *writeBuffer, m *bufferModel) {
	t.Helper()
	var want []mvcc.Mutation
	var wantNotified, gotNotified []string
	twice := false
	for _, k := range slices.Sorted(maps.Keys(m.keys)) {
		v := m.keys[k]
		c := foldAll(v.seq)
		twice = twice || c.has(insertedTwice)
		want = append(want, c.mutation([]byte(k), v.value, 0))
		told := ""
		if op := want[len(want)-1].Op; v.mask != 0 && (op == mvcc.OpPut || op == mvcc.OpDelete) {
			told = fmt.Sprint(observersOf(v.mask), " hop ", v.hop)
		}
		wantNotified = append(wantNotified, told)
	}
	got, err := allMutations(b)
	var exists *mvcc.KeyExistsError
	if errors.As(err, &exists) != twice {
		t.Fatalf("mutations: %v, inserted twice: %v", err, twice)
	}
	if err == nil && !slices.EqualFunc(got, want, func(a, b mvcc.Mutation) bool {
		return a.Op == b.Op && a.MustBeNew == b.MustBeNew && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value)
	}) {
		t.Fatalf("mutations\n%v\nwant\n%v", got, want)
	}
	for i := range got {
		gotNotified = append(gotNotified, notified(&got[i], b.sets))
	}
	if err == nil && !slices.Equal(gotNotified, wantNotified) {
		t.Fatalf("notified\n%q\nwant\n%q", gotNotified, wantNotified)
	}
}

// allMutations returns the write set of a buffer, wherever it lies.
func allMutations(b *writeBuffer) (ms []mvcc.Mutation, err error) {
	if b.spilled == nil {
		return b.mutations(nil)
	}
	if err := b.spill(""); err != nil {
		return nil, err
	}
	err = b.spilled.fold(b.sets, func(f *folded) error {
		ms = append(ms, f.mutation(bytes.Clone(f.key), bytes.Clone(f.value), f.notify))
		return nil
	}, nil)
	return ms, err
}

// Goal: the accounted size is that of the entries, also after replacing in place and rolling back.
func TestBufferSize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	b := &writeBuffer{}
	for range 3 {
		from := b.freeze()
		size := b.sizeBytes
		for range 10_000 {
			key := fmt.Appendf(nil, "k%d", r.IntN(5000))
			b.get(key)
			b.add(key, make([]byte, r.IntN(100)), changes[r.IntN(len(changes))])
		}
		var sum int64
		for i := range b.n {
			sum += b.at(i).sizeBytes()
		}
		if sum != b.sizeBytes {
			t.Fatalf("size %d, entries weigh %d", b.sizeBytes, sum)
		}
		if r.IntN(2) == 0 {
			b.truncate(from)
			if b.sizeBytes != size {
				t.Fatalf("size %d after rollback, was %d", b.sizeBytes, size)
			}
		}
	}
}

// Goal: a transaction that updates one row again and again, reading it before, does not grow.
func TestRepeatedUpdatesAreFoldedInPlace(t *testing.T) {
	b := &writeBuffer{}
	for i := range 100 {
		b.add(fmt.Appendf(nil, "k%d", i), []byte("v"), changes[0])
	}
	for range 10_000 {
		b.get([]byte("k50"))
		b.add([]byte("k50"), []byte("w"), changes[0])
	}
	if b.n > 101 {
		t.Fatalf("%d entries", b.n)
	}
}

// BenchmarkBufferLoad: a million rows written without a read, in key order and not, then made a
// write set, as COPY does.
func BenchmarkBufferLoad(b *testing.B) {
	const rows = 1_000_000
	for _, order := range []string{"ascending", "random"} {
		keys := make([][]byte, rows)
		for i := range keys {
			keys[i] = fmt.Appendf(nil, "table/%012d", i)
		}
		if order == "random" {
			rand.Shuffle(rows, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		}
		b.Run("order="+order, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				buf := &writeBuffer{}
				for _, k := range keys {
					buf.add(k, k, changes[1])
				}
				if m, err := buf.mutations(nil); err != nil || len(m) != rows {
					b.Fatal(len(m), err)
				}
			}
		})
	}
}
