package bigtable

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/percolator"
)

// meeting is a table whose first conditional requests are answered when all of them have arrived.
type meeting struct {
	widerow.Table
	mu      sync.Mutex
	missing int
	all     chan struct{}
	later   int // conditional requests that came after the meeting
}

func (m *meeting) CheckAndMutate(ctx context.Context, row string, predicate widerow.Filter, matched, unmatched *widerow.Mutation) (bool, error) {
	m.mu.Lock()
	m.missing--
	switch {
	case m.missing == 0:
		close(m.all)
	case m.missing < 0:
		m.later++
	}
	m.mu.Unlock()
	select {
	case <-m.all:
		return m.Table.CheckAndMutate(ctx, row, predicate, matched, unmatched)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Goal: prewrite and commit are two round trips deep, however many rows there are, up to requestsAtOnce. Method: no prewrite is answered before all are
// sent; then one conditional request follows.
func TestTwoRoundTrips(t *testing.T) {
	for _, rows := range []int{1, 2, 10, requestsAtOnce} {
		table := &meeting{Table: widerow.NewMemory(), missing: rows, all: make(chan struct{})}
		oracle := &tsotest.ClockOracle{}
		shard, err := NewShard(t.Context(), NewClient(table, time.Minute), ShardOptions{Oracle: oracle})
		if err != nil {
			t.Fatal(err)
		}
		db := percolator.New(NewRouter(shard), oracle, percolator.Options{DrainTimeout: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		txn, err := db.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if err := txn.Put(fmt.Appendf(nil, "row%03d", i), []byte("v")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := txn.Commit(ctx); err != nil {
			t.Errorf("%d rows: %v", rows, err)
		}
		cancel()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		shard.Close()
		if table.later != 1 {
			t.Errorf("%d rows: %d conditional requests after the prewrites", rows, table.later)
		}
	}
}
