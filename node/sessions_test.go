package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
)

// countingRouter counts the requests that go to shards.
type countingRouter struct {
	kv.Router
	located int
}

func (r *countingRouter) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	r.located++
	return r.Router.Locate(ctx, key)
}

// TestPinBeforeReads: a process that starts tells garbage collection of itself before it reads the schema. It had done so
// afterwards: a process whose first reads took longer than the history's life did not start.
func TestPinBeforeReads(t *testing.T) {
	ctx := t.Context()
	n := &Node{opts: Options{Data: t.TempDir(), Listen: "127.0.0.1:0", Memory: memory.NewPool("test", 1<<30)}, log: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry()}
	defer n.Close(context.WithoutCancel(ctx))
	engine, err := n.openEngine()
	if err != nil {
		t.Fatal(err)
	}
	oracle, err := n.openOracle(ctx, engine)
	if err != nil {
		t.Fatal(err)
	}
	store, err := kv.Open(ctx, kv.Options{Engine: engine, Oracle: oracle, EmbeddedOracle: true, Group: rowenc.IndexPrefixLen})
	if err != nil {
		t.Fatal(err)
	}
	n.onClose(func(context.Context) { n.closeStore(store) })
	router := &countingRouter{Router: store.Router()}
	before := -1
	unreachable := errors.New("the controller cannot be reached")
	err = n.startSessions(ctx, &storage{router: router, oracle: oracle}, func(*percolator.DB) (gc.Service, error) {
		before = router.located
		return nil, unreachable
	})
	if !errors.Is(err, unreachable) || before != 0 || router.located != 0 {
		t.Errorf("%d requests before and %d after the pin was refused: %v", before, router.located, err)
	}
}
