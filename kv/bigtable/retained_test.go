package bigtable

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
)

// gatedTable is a table in memory whose requests of a kind wait, each of them, until the test lets it go on.
type gatedTable struct {
	*widerow.Memory
	reads, changes bool        // which requests wait
	begun          chan string // the row of a request that waits, "" for several
	end            chan struct{}
	lost           string // changes of this row are not made if their context has ended
}

func (g *gatedTable) wait(wait bool, row string) {
	if wait {
		g.begun <- row
		<-g.end
	}
}

func (g *gatedTable) ReadRows(ctx context.Context, rows widerow.RowSet, f widerow.Filter, o widerow.ReadOptions, visit func(widerow.Row) bool) error {
	_, points := rows.(widerow.RowList)
	g.wait(g.reads && points, "")
	return g.Memory.ReadRows(ctx, rows, f, o, visit)
}

func (g *gatedTable) CheckAndMutate(ctx context.Context, row string, predicate widerow.Filter, matched, unmatched *widerow.Mutation) (bool, error) {
	g.wait(g.changes, row)
	if row == g.lost && ctx.Err() != nil {
		return false, ctx.Err()
	}
	return g.Memory.CheckAndMutate(ctx, row, predicate, matched, unmatched)
}

func newGatedShard(t *testing.T, table *gatedTable) (*Shard, *tsotest.ClockOracle) {
	t.Helper()
	table.Memory, table.begun, table.end = widerow.NewMemory(), make(chan string), make(chan struct{})
	oracle := &tsotest.ClockOracle{}
	s, err := NewShard(t.Context(), NewClient(table, time.Minute), ShardOptions{Oracle: oracle})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, oracle
}

// Goal: who leaves a shared request may use its key for something else, and the others get their own rows. Method: two reads share a request; one
// of them is canceled while it is under way, and its key becomes another one.
func TestGatheredReadKeepsNoKey(t *testing.T) {
	table := &gatedTable{}
	s, oracle := newGatedShard(t, table)
	d := theRange()
	put := func(key string) {
		start := mustNow(t, oracle)
		_, err := s.Prewrite(t.Context(), &kv.PrewriteRequest{Ranges: []kv.RangeRef{d.Ref()}, Primary: []byte(key), StartTS: start, TTLMillis: 60_000,
			Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: []byte(key), Value: []byte(key)}}})
		if err == nil {
			err = s.Commit(t.Context(), &kv.CommitRequest{Ranges: []kv.RangeRef{d.Ref()}, Keys: [][]byte{[]byte(key)}, StartTS: start, CommitTS: mustNow(t, oracle), Primary: true})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	put("b")
	table.reads = true
	ts := mustNow(t, oracle)
	var wg sync.WaitGroup
	get := func(ctx context.Context, key []byte, want string) {
		wg.Go(func() {
			value, err := s.Get(ctx, d.Ref(), key, kv.ReadOptions{ReadTS: ts})
			if want != string(value) || (err != nil) != (ctx.Err() != nil) {
				t.Errorf("%q, want %q: %v", value, want, err)
			}
		})
	}
	for range readsAtOnce {
		get(t.Context(), []byte("b"), "b")
		<-table.begun
	}
	ctx, leave := context.WithCancel(t.Context())
	key, left := []byte("a"), make(chan struct{})
	go func() {
		defer close(left)
		if _, err := s.Get(ctx, d.Ref(), key, kv.ReadOptions{ReadTS: ts}); err == nil {
			t.Error("the canceled read was answered")
		}
	}()
	get(t.Context(), []byte("b"), "b")
	for waiting := 0; waiting < 2; {
		s.reads.mu.Lock()
		waiting = len(s.reads.waiting)
		s.reads.mu.Unlock()
	}
	table.end <- struct{}{}
	<-table.begun // the shared request
	leave()
	<-left
	key[0] = 'c'
	for range readsAtOnce {
		table.end <- struct{}{}
	}
	wg.Wait()
}

// Goal: a prewrite that was canceled undoes what it has locked, whatever its caller does with the keys then. Method: of two keys one is locked, the
// caller leaves, and the key becomes another one before the lock is undone.
func TestUndoKeepsNoKey(t *testing.T) {
	table := &gatedTable{changes: true, lost: "kb"}
	s, oracle := newGatedShard(t, table)
	d := theRange()
	ctx, leave := context.WithCancel(t.Context())
	req := &kv.PrewriteRequest{Ranges: []kv.RangeRef{d.Ref()}, Primary: []byte("a"), StartTS: mustNow(t, oracle), TTLMillis: 60_000, Mutations: []mvcc.Mutation{
		{Op: mvcc.OpPut, Key: []byte("a"), Value: []byte("v")},
		{Op: mvcc.OpPut, Key: []byte("b"), Value: []byte("v")},
	}}
	left := make(chan error)
	go func() {
		_, err := s.Prewrite(ctx, req)
		left <- err
	}()
	<-table.begun
	<-table.begun
	leave()
	table.end <- struct{}{}
	table.end <- struct{}{} // a is locked, b is not.
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled prewrite: %v", err)
	}
	req.Mutations[0].Key[0] = 'c'
	row := <-table.begun
	table.end <- struct{}{}
	if row != "ka" {
		t.Errorf("the row %s is undone", row)
	}
}

// Goal: waits leave nothing in memory. Method: a wait for a lock that nobody removes.
func TestWaitLeavesNothing(t *testing.T) {
	s, oracle := newGatedShard(t, &gatedTable{})
	d := theRange()
	refs, key := []kv.RangeRef{d.Ref()}, [][]byte{[]byte("a")}
	for _, wait := range []time.Duration{0, 5 * time.Millisecond} {
		start := mustNow(t, oracle)
		_, err := s.AcquireLocks(t.Context(), &kv.AcquireLocksRequest{Ranges: refs, Keys: key, Primary: key[0], StartTS: start, TTLMillis: 60_000, Wait: wait})
		if (err != nil) != (wait > 0) {
			t.Fatalf("wait for %v: %v", wait, err)
		}
	}
	if n := len(s.wakeup.keys); n > 0 {
		t.Errorf("%d keys are waited for", n)
	}
}
