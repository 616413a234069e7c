package bigtable

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
)

// Goal: a limiter lets a second's rows through at once and then as many as the limit says; who does not wait any more returns. Method: a clock that
// advances when everyone waits.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter{perSecond: 100}
		begun := time.Now()
		for range 40 {
			if err := l.wait(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begun); took < 2990*time.Millisecond || took > 3010*time.Millisecond {
			t.Errorf("400 rows at 100 a second, of which 100 at once, took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.wait(ctx, 1000); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait that is given up: %v", err)
		}
	})
}

// Goal: the limit holds for reads and prewrites, also for the rows of a scan. Method: more rows than a second's, over the emulator.
func TestRowLimit(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	e.mustPut(t, "a=1", "b=1", "c=1", "d=1")
	e.shard.limit.perSecond = 4
	ref := theRange()
	begun := time.Now()
	opts := kv.ReadOptions{ReadTS: mustNow(t, e.oracle)}
	for range 5 {
		if _, err := e.shard.Get(t.Context(), ref.Ref(), []byte("a"), opts); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.shard.Scan(t.Context(), &kv.ScanRequest{Ranges: []kv.RangeRef{ref.Ref()}, Spans: []kv.Span{{}}, Limit: 10, ReadOptions: opts}); err != nil {
		t.Fatal(err)
	}
	if e.shard.limit.take(0); e.shard.limit.left > -2 {
		t.Errorf("five reads and a scan of four rows left %v", e.shard.limit.left)
	}
	if took := time.Since(begun); took < 400*time.Millisecond {
		t.Errorf("six requests at four rows a second took %v", took)
	}
}
