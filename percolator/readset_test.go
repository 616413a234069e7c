package percolator

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/percodb/percodb/kv"
)

// Goal: after any merging and coalescing the record covers all reads of the completed statements and of the current
// one, and after forgetStatement all reads of the completed ones. Method: random reads against a list of them, with
// limits from one to many.
func TestReadRecordCoversWhatWasRead(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	key := func() []byte {
		return binary.BigEndian.AppendUint32([]byte{byte(rng.IntN(3))}, uint32(rng.IntN(5000)))
	}
	for round := range 300 {
		var r readSet
		limit := 1 + rng.IntN(40)
		r.init(limit)
		var older, newer []kv.Span
		check := func(spans []kv.Span) {
			t.Helper()
			list := r.list()
			for _, s := range spans {
				covered := false
				for _, l := range list {
					covered = covered || spanContains(l, s.Start) && (len(l.End) == 0 || len(s.End) > 0 && string(s.End) <= string(l.End))
				}
				if !covered {
					t.Fatalf("round %d: [%x, %x) is not covered", round, s.Start, s.End)
				}
			}
			if len(r.spans) > max(limit, 4) {
				t.Fatalf("round %d: %d spans, the limit is %d", round, len(r.spans), limit)
			}
		}
		for range rng.IntN(400) {
			switch rng.IntN(40) {
			case 0:
				r.beginStatement()
				older, newer = append(older, newer...), nil
			case 1:
				r.forgetStatement()
				newer = nil
				check(older)
			case 2, 3:
				s := kv.Span{Start: key(), End: key()}
				if s.Valid() {
					r.addSpan(s, slot{at: -1})
					newer = append(newer, s)
				}
			default:
				k := key()
				r.addPoint(k)
				newer = append(newer, kv.Span{Start: k, End: append(k[:len(k):len(k)], 0)})
			}
		}
		check(append(older, newer...))
	}
}

// Goal: the narrowest gaps are closed first, so that a transaction that reads much of one table and little of another
// has no conflicts about keys between the tables.
func TestCoalescingClosesTheNarrowestGaps(t *testing.T) {
	var r readSet
	r.init(64)
	row := func(table byte, n int) []byte { return binary.BigEndian.AppendUint64([]byte{table, 1}, uint64(n)) }
	for i := range 10_000 {
		r.addPoint(row(1, 3*i))
		if i%1000 == 0 {
			r.addPoint(row(9, 1_000_000*i))
		}
	}
	for _, probe := range [][]byte{row(1, 1_000_000), row(2, 0), row(8, 5), row(9, 1_500_000), row(0, 1<<40)} {
		for _, s := range r.list() {
			if spanContains(s, probe) {
				t.Errorf("%x counts as read, with [%x, %x)", probe, s.Start, s.End)
			}
		}
	}
}

// Goal: closing a scan whose spans were read by an earlier statement keeps the record valid.
func TestScanClosedAfterItsStatement(t *testing.T) {
	db := newCluster(t, nil).db(Options{}, nil)
	base := mustBegin(t, db)
	for i := range 100 {
		mustPut(t, base, fmt.Sprintf("k%02d=v", i))
	}
	mustCommit(t, base)
	txn := mustBeginTxn(t, db, pessimistic)
	var spans []kv.Span
	for i := range 10 {
		spans = append(spans, kv.Span{Start: fmt.Appendf(nil, "k%d", i), End: fmt.Appendf(nil, "k%d5", i)})
	}
	it := txn.ScanSpans(t.Context(), spans, ScanOptions{})
	if !it.Next(t.Context()) {
		t.Fatal(it.Err())
	}
	if err := txn.BeginStatement(t.Context()); err != nil {
		t.Fatal(err)
	}
	it.Close()
	txn.reads.forgetStatement()
	if got := len(txn.reads.spans); got != 1 {
		t.Fatalf("%d spans", got)
	}
}
