package mvcc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/percodb/percodb/tso"
)

func (w *world) putOnePhase(key, value string) tso.Timestamp {
	w.t.Helper()
	m := Mutation{Op: OpPut, Key: []byte(key), Value: []byte(value)}
	if value == "" {
		m.Op, m.Value = OpDelete, nil
	}
	res, err := w.Prewrite(context.Background(), admitAll{}, &PrewriteRequest{
		Mutations: []Mutation{m}, Primary: m.Key, StartTS: w.now(), TTLMillis: 1000, TryOnePC: true})
	if err != nil || res.OnePCCommitTS == 0 {
		w.t.Fatal(res, err)
	}
	return res.OnePCCommitTS
}

func (w *world) read(key string, ts tso.Timestamp) (string, error) {
	if err := w.BeginRead(context.Background(), ts); err != nil {
		return "", err
	}
	value, err := w.Get(context.Background(), []byte(key), &ReadOptions{ReadTS: ts})
	return string(value), err
}

// remembered reports whether a read of key at ts would be answered without an iterator.
func (w *world) remembered(key string, ts tso.Timestamp) bool {
	hash := w.marks.hash([]byte(key))
	return w.recent.Load().find(hash, w.marks.at(hash), []byte(key), ts) != nil
}

// Goal: an empty value is not treated as absent when it is remembered. Method: reads until it is.
func TestRecentReadOfAnEmptyValue(t *testing.T) {
	w := newWorld(t, true, nil)
	m := Mutation{Op: OpPut, Key: []byte("k"), Value: []byte{}}
	res, err := w.Prewrite(context.Background(), admitAll{}, &PrewriteRequest{
		Mutations: []Mutation{m}, Primary: m.Key, StartTS: w.now(), TTLMillis: 1000, TryOnePC: true})
	if err != nil || res.OnePCCommitTS == 0 {
		t.Fatal(res, err)
	}
	for n := range 4 {
		ts := w.now()
		if err := w.BeginRead(context.Background(), ts); err != nil {
			t.Fatal(err)
		}
		value, err := w.Get(context.Background(), m.Key, &ReadOptions{ReadTS: ts})
		if value == nil || err != nil || w.remembered("k", ts) != (n > 0) {
			t.Errorf("read %d: %v, %v", n, value, err)
		}
	}
}

// Goal: a remembered value is used only where it is valid. Method: a key is read until it is remembered, then written,
// deleted, dropped; all its history is read after each step.
func TestRecentReads(t *testing.T) {
	w := newWorld(t, true, nil)
	want := func(ts tso.Timestamp, value string) {
		t.Helper()
		if got, err := w.read("k", ts); got != value || err != nil {
			t.Fatalf("at %s: %q, %v; want %q", show(ts), got, err, value)
		}
	}
	before := w.now()
	first := w.putOnePhase("k", "one")
	for _, expect := range []bool{false, false, true} { // a miss, a second that remembers
		if w.remembered("k", w.now()) != expect {
			t.Fatalf("remembered: %v", !expect)
		}
		want(w.now(), "one")
	}
	between := w.now()
	second := w.putOnePhase("k", "two")
	if !w.remembered("k", first) || w.remembered("k", before) || w.remembered("k", w.now()) {
		t.Fatal("a value is remembered from its version to its last read, and no further than the next write")
	}
	want(before, "")
	want(first, "one")
	want(between, "one")
	want(second, "two")
	if want(w.now(), "two"); !w.remembered("k", w.now()) { // its second read
		t.Fatal("a new value takes the place of the old one")
	}
	want(between, "one")
	if !w.remembered("k", w.now()) {
		t.Fatal("a read of the past has put what is old in the place of what is new")
	}
	third := w.putOnePhase("k", "")
	want(second, "two")
	want(third, "")
	want(w.now(), "")
	w.putOnePhase("k", "longer than a short value may be") // OnePCShortValueBytes of the fixture is 16
	for range 3 {
		want(w.now(), "longer than a short value may be")
	}
	if w.remembered("k", w.now()) {
		t.Fatal("long values are not remembered")
	}
	w.putOnePhase("k", "four")
	want(w.now(), "four")
	want(w.now(), "four")
	safePoint := w.now()
	if _, err := w.SetSafePoint(context.Background(), safePoint); err != nil {
		t.Fatal(err)
	}
	var tooOld *TooOldError
	if _, err := w.read("k", second); !errors.As(err, &tooOld) {
		t.Fatal(err)
	}
	want(w.now(), "four")
	if dropped, err := w.DropSpan([]byte("a"), []byte("z"), safePoint, nil); !dropped || err != nil {
		t.Fatal(dropped, err)
	}
	want(w.now(), "")
}

// Goal (I7): the order raise max_ts, probe, mark uses no remembered value that was overwritten since, and no other
// order would do. Method: all interleavings of a reader that remembers a value from below the writer's commit_ts, as in
// T-ORD-1.
func TestRecentReadsOrder(t *testing.T) {
	steps := map[string]func(*orderState){"raise": raiseMax, "probe": probe, "mark": func(s *orderState) { s.sawWrite = s.marked }}
	mark := func(s *orderState) { s.marked = true }
	for _, order := range [][3]string{
		{"raise", "probe", "mark"}, {"raise", "mark", "probe"}, {"probe", "raise", "mark"},
		{"probe", "mark", "raise"}, {"mark", "raise", "probe"}, {"mark", "probe", "raise"},
	} {
		reader := []func(*orderState){steps[order[0]], steps[order[1]], steps[order[2]]}
		runs, missed := interleave(orderState{}, reader, []func(*orderState){insert, mark, applyIt, unlock})
		if right := order == [3]string{"raise", "probe", "mark"}; runs != 35 || (missed == 0) != right {
			t.Errorf("%s: %d of %d interleavings take an old value", fmt.Sprint(order), missed, runs)
		}
	}
}

// Goal: no read misses a write that was acknowledged before its timestamp was issued, while values are continuously
// remembered and evicted. Method: writers increment counters, readers, singly and in batches, check that a counter is
// at least what it was at the timestamp; a repeated read of a snapshot returns the same.
func TestRecentReadsUnderWrites(t *testing.T) {
	w := newWorld(t, true, nil)
	const keys, rounds = 8, 400
	var acked [keys]atomic.Uint64
	key := func(i int) []byte { return fmt.Appendf(nil, "k%d", i) }
	ctx := context.Background()
	var writers, readers sync.WaitGroup
	for i := range keys {
		writers.Go(func() {
			for n := uint64(1); n <= rounds; n++ {
				value := binary.BigEndian.AppendUint64(nil, n)
				if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: []Mutation{{Op: OpPut, Key: key(i), Value: value}},
					Primary: key(i), StartTS: w.now(), TTLMillis: 1000, TryOnePC: true}); err != nil {
					t.Error(err)
					return
				}
				acked[i].Store(n)
			}
		})
	}
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					readAtLeast(t, w, acked[:], key)
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

func readAtLeast(t *testing.T, w *world, acked []atomic.Uint64, key func(int) []byte) {
	ctx := context.Background()
	var least [8]uint64
	var all [][]byte
	for i := range acked {
		least[i] = acked[i].Load()
		all = append(all, key(i))
	}
	o := &ReadOptions{ReadTS: w.now()}
	if err := w.BeginRead(ctx, o.ReadTS); err != nil {
		t.Error(err)
		return
	}
	values, locked, err := w.BatchGet(ctx, all, o)
	if err != nil || len(locked) > 0 {
		t.Error(locked, err)
		return
	}
	for i, value := range values {
		again, err := w.Get(ctx, all[i], o)
		if err != nil || string(again) != string(value) {
			t.Errorf("a snapshot has changed: %x, then %x, %v", value, again, err)
		}
		if len(value) == 0 && least[i] == 0 {
			continue
		}
		if n := binary.BigEndian.Uint64(value); n < least[i] {
			t.Errorf("key %d was %d before the snapshot, which says %d", i, least[i], n)
		}
	}
}

// Goal: the remembered values stay within their bound, and reads stay correct. Method: many more values than fit, from
// several goroutines; then the accounted size is compared with the contents.
func TestRecentReadsStayWithinTheirBound(t *testing.T) {
	const limit = 10_000
	w := newWorld(t, true, nil)
	w.recent.Store(newRecentReads(limit))
	var keys []string
	for i := range 200 {
		keys = append(keys, fmt.Sprintf("key%03d", i))
		w.putOnePhase(keys[i], keys[i])
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 3 {
				for _, key := range keys {
					if got, err := w.read(key, w.now()); err != nil || got != key {
						t.Errorf("%s: %q %v", key, got, err)
					}
				}
			}
		})
	}
	readers.Wait()
	var there int64
	r := w.recent.Load()
	for i := range r.places {
		there += r.places[i].read.Load().size()
	}
	if counted := r.bytes.Load(); counted != there || there > limit || there < limit/2 {
		t.Errorf("%d bytes are remembered, %d counted, of %d", there, counted, limit)
	}
}
