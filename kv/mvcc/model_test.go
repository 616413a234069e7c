package mvcc

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/tso"
)

// modelVersion is a committed version in the model; value "" is a deletion.
type modelVersion struct {
	commitTS tso.Timestamp
	value    string
}

// modelTxn is a transaction that holds locks.
type modelTxn struct {
	startTS tso.Timestamp
	writes  map[string]string
	keys    [][]byte // ascending; the first is the primary
}

// model is snapshot isolation with a few maps.
type model struct {
	versions map[string][]modelVersion // oldest first
	locks    map[string]*modelTxn
}

func (m *model) commit(writes map[string]string, commitTS tso.Timestamp) {
	for key, value := range writes {
		m.versions[key] = append(m.versions[key], modelVersion{commitTS, value})
	}
}

func (m *model) get(key string, ts tso.Timestamp) string {
	value := ""
	for _, v := range m.versions[key] {
		if v.commitTS <= ts {
			value = v.value
		}
	}
	return value
}

// blocked reports whether a write of keys at startTS must fail.
func (m *model) blocked(writes map[string]string, startTS tso.Timestamp) bool {
	for key := range writes {
		if m.locks[key] != nil {
			return true
		}
		if v := m.versions[key]; len(v) > 0 && v[len(v)-1].commitTS > startTS {
			return true
		}
	}
	return false
}

func (m *model) scan(start, end string, ts tso.Timestamp, reverse bool) []string {
	var rows []string
	for _, key := range slices.Sorted(maps.Keys(m.versions)) {
		if value := m.get(key, ts); value != "" && key >= start && (end == "" || key < end) {
			rows = append(rows, key+"="+value)
		}
	}
	if reverse {
		slices.Reverse(rows)
	}
	return rows
}

// modelRun drives a world and a model with the same requests.
type modelRun struct {
	*world
	m    *model
	rng  *rand.Rand
	open []*modelTxn
	past []tso.Timestamp // timestamps to read at
	idle []tso.Timestamp // start_ts of transactions that have not written yet
	// done contains commits whose secondaries a power cut may turn back into locks.
	done []doneTxn
}

type doneTxn struct {
	*modelTxn
	commitTS tso.Timestamp
}

// Goal: for any order of requests, one- and two-phase commits, rollbacks, crashes and pages of any size, every read at
// any timestamp sees exactly what the model contains. Method: seeded random requests; keys that are prefixes of each
// other; long and short values.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := &modelRun{
				world: newWorld(t, seed%2 == 0, nil),
				m:     &model{versions: map[string][]modelVersion{}, locks: map[string]*modelTxn{}},
				rng:   rand.New(rand.NewPCG(seed, 9)),
			}
			for range 400 {
				r.step()
			}
			for len(r.open) > 0 {
				r.finishOne()
			}
			r.checkReads()
			if findings, err := r.Check(context.Background()); len(findings) > 0 || err != nil {
				t.Error(findings, err)
			}
		})
	}
}

func (r *modelRun) step() {
	switch n := r.rng.IntN(100); {
	case n < 35:
		r.write(true)
	case n < 50:
		r.write(false)
	case n < 65:
		r.finishOne()
	case n < 96:
		r.checkReads()
	case n < 98:
		if err := r.eng.Flush(); err != nil {
			r.t.Fatal(err)
		}
	default:
		r.crashAndResolve()
	}
	r.past = append(r.past, r.now())
	if r.rng.IntN(3) == 0 {
		r.idle = append(r.idle, r.now())
	}
}

func (r *modelRun) key() string {
	return strings.Repeat("a", r.rng.IntN(4)) + []string{"", "\x00", "b", "\xff", "\x09"}[r.rng.IntN(5)]
}

func (r *modelRun) write(onePC bool) {
	txn := &modelTxn{startTS: r.now(), writes: map[string]string{}}
	if len(r.idle) > 0 && r.rng.IntN(3) == 0 {
		i := r.rng.IntN(len(r.idle))
		txn.startTS = r.idle[i]
		r.idle = slices.Delete(r.idle, i, i+1)
	}
	for range 1 + r.rng.IntN(12) {
		value := ""
		if r.rng.IntN(4) > 0 {
			value = fmt.Sprintf("%d-%s", txn.startTS, strings.Repeat("x", r.rng.IntN(24)))
		}
		txn.writes[r.key()] = value
	}
	args := &PrewriteRequest{StartTS: txn.startTS, TTLMillis: 3000, TryOnePC: onePC}
	for key, value := range txn.writes {
		m := Mutation{Op: OpPut, Key: []byte(key), Value: []byte(value)}
		if value == "" {
			m = Mutation{Op: OpDelete, Key: []byte(key)}
		}
		args.Mutations = append(args.Mutations, m)
	}
	slices.SortFunc(args.Mutations, func(a, b Mutation) int { return bytes.Compare(a.Key, b.Key) })
	for i := range args.Mutations {
		txn.keys = append(txn.keys, args.Mutations[i].Key)
	}
	args.Primary = txn.keys[0]
	res, err := r.Prewrite(context.Background(), admitAll{}, args)
	switch {
	case (err != nil) != r.m.blocked(txn.writes, txn.startTS):
		r.t.Fatalf("write of %q at %s: %v", txn.keys, show(txn.startTS), err)
	case err != nil:
	case res.OnePCCommitTS != 0:
		r.m.commit(txn.writes, res.OnePCCommitTS)
	default:
		for key := range txn.writes {
			r.m.locks[key] = txn
		}
		r.open = append(r.open, txn)
	}
}

// finishOne commits or rolls back a transaction that holds locks.
func (r *modelRun) finishOne() {
	if len(r.open) == 0 {
		return
	}
	i := r.rng.IntN(len(r.open))
	txn := r.open[i]
	r.open = slices.Delete(r.open, i, i+1)
	for key := range txn.writes {
		delete(r.m.locks, key)
	}
	ctx := context.Background()
	if r.rng.IntN(3) == 0 {
		if err := r.Rollback(ctx, admitAll{}, txn.keys, txn.startTS); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	commitTS := r.now()
	if _, err := r.Commit(ctx, admitAll{}, txn.keys[:1], txn.startTS, commitTS, true); err != nil {
		r.t.Fatal(err)
	}
	r.m.commit(txn.writes, commitTS)
	r.done = append(r.done, doneTxn{txn, commitTS})
	if r.rng.IntN(4) == 0 {
		r.crashAndResolve()
	} else {
		r.resolveSecondaries(r.done[len(r.done)-1])
	}
}

func (r *modelRun) resolveSecondaries(d doneTxn) {
	if len(d.keys) == 1 {
		return
	}
	if _, err := r.ResolveLock(context.Background(), admitAll{}, d.keys[1:], d.startTS, d.commitTS); err != nil {
		r.t.Fatal(err)
	}
}

// crashAndResolve cuts the power; commits of secondaries need not have survived, their primaries do.
func (r *modelRun) crashAndResolve() {
	r.crash()
	for _, d := range r.done {
		r.resolveSecondaries(d)
	}
	if err := r.eng.Flush(); err != nil {
		r.t.Fatal(err)
	}
	r.done = r.done[:0]
}

// checkReads compares a few point reads, and both directions of a scan in pages, with the model.
func (r *modelRun) checkReads() {
	ts := r.now()
	if len(r.past) > 0 && r.rng.IntN(3) > 0 {
		ts = r.past[r.rng.IntN(len(r.past))]
	}
	o := ReadOptions{ReadTS: ts}
	for _, txn := range r.open {
		o.Bypass = append(o.Bypass, txn.startTS) // they will commit above: timestamps are issued later
	}
	ctx := context.Background()
	if err := r.BeginRead(ctx, ts); err != nil {
		r.t.Fatal(err)
	}
	var keys [][]byte
	for range 8 {
		keys = append(keys, []byte(r.key()))
	}
	slices.SortFunc(keys, bytes.Compare)
	values, locked, err := r.BatchGet(ctx, keys, &o)
	if err != nil || len(locked) > 0 {
		r.t.Fatal(locked, err)
	}
	for i, key := range keys {
		value, err := r.Get(ctx, key, &o)
		if want := r.m.get(string(key), ts); err != nil || string(value) != want || string(values[i]) != want {
			r.t.Fatalf("get %q at %s: %q and %q, want %q (%v)", key, show(ts), value, values[i], want, err)
		}
	}
	for _, reverse := range []bool{false, true} {
		start, end := r.key(), r.key()
		if start > end {
			start, end = end, start
		}
		got := r.scanPages(start, end, o, reverse)
		if want := r.m.scan(start, end, ts, reverse); !slices.Equal(got, want) {
			r.t.Fatalf("scan [%q, %q) at %s, reverse %v:\n%q\nwant\n%q", start, end, show(ts), reverse, got, want)
		}
	}
}

func (r *modelRun) scanPages(start, end string, o ReadOptions, reverse bool) (rows []string) {
	if end != "" && start >= end {
		return nil
	}
	args := ScanRequest{Spans: spanOf(start, end), Reverse: reverse, ReadOptions: o,
		Limit: 1 + r.rng.IntN(6), MaxBytes: 1 + r.rng.IntN(60)}
	for range 1000 {
		page, err := r.Scan(context.Background(), &args)
		if err != nil || len(page.Locked) > 0 {
			r.t.Fatal(page, err)
		}
		for _, row := range page.Rows {
			rows = append(rows, fmt.Sprintf("%s=%s", row.Key, row.Value))
		}
		if page.ResumeKey == nil {
			return rows
		}
		if !resumeSpans(&args, page.ResumeKey) {
			return rows
		}
		args.Reuse = page
	}
	r.t.Fatal("the scan does not end")
	return nil
}
