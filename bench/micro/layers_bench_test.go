package micro

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	kvrpc "github.com/percodb/percodb/kv/rpc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// What transactions cost above a key-value store, as the paper's table of microbenchmarks has it
// (Peng and Dabek 2010, section 3.2: reads 0.94, single-cell writes 0.23 of Bigtable's rate). Reported
// are rates, and their ratios to that of the raw store, in turns within one run.

// many has a number of clients do n operations and returns the first error.
func many(clients, n int, do func(r *rand.Rand) error) error {
	errs := make(chan error, clients)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for range n / clients {
				if err := do(r); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// way is one of the ways to do an operation that are compared.
type way struct {
	name string
	do   func(r *rand.Rand) error
}

// turns is how many turns each way has in an iteration: what else the machine does meets all of them alike.
const turns = 16

// rates compares ways to do an operation by their rates; the first is what the others are divided by.
// A ratio is the median over all turns.
func rates(b *testing.B, clients, n int, ways ...way) {
	b.Helper()
	for _, w := range ways { // warm up
		if err := many(clients, n/4, w.do); err != nil {
			b.Fatal(err)
		}
	}
	took := make([][]float64, len(ways))
	b.ResetTimer()
	for turn := range b.N * turns {
		for i := range ways {
			w := (i + turn) % len(ways)
			begin := time.Now()
			if err := many(clients, n/turns, ways[w].do); err != nil {
				b.Fatal(err)
			}
			took[w] = append(took[w], time.Since(begin).Seconds())
		}
	}
	for w := range ways {
		ratios := make([]float64, len(took[w]))
		for i := range ratios {
			ratios[i] = took[0][i] / took[w][i]
		}
		if w > 0 {
			b.ReportMetric(median(ratios), ways[w].name+"-ratio")
		}
		b.ReportMetric(float64(n/turns)/median(took[w]), ways[w].name+"/s")
	}
	b.ReportMetric(0, "ns/op")
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// layer is a way to reach a store with a million rows: a bare one and one with transactions.
type layer struct {
	name    string
	raw     kv.Shard // bare Pebble
	plain   kv.Shard // percodb's store
	desc    *kv.RangeDescriptor
	db      *percolator.DB
	clients int
}

// layers are the same two stores in this process and over gRPC; with gRPC, timestamps come over it, too.
func layers(b *testing.B) []layer {
	b.Helper()
	tables.open(b)
	ctx := context.Background()
	raw := rawShard{db: tables.raw.DB}
	desc, plain, err := tables.shard.Store.Router().Locate(ctx, Key(nil, 0))
	if err != nil {
		b.Fatal(err)
	}
	local := percolator.New(tables.shard.Store.Router(), tables.shard.Oracle, percolator.Options{})
	b.Cleanup(func() { local.Close() })
	c := &testCluster{b: b, conns: map[string]*tsorpc.Conn{}}
	oracle := c.remoteOracle(tables.shard.Oracle)
	remoteRaw, remote := c.remote(raw), c.remote(tables.shard.Store)
	db := percolator.New(remoteRouter{tables.shard.Store.Router(), remote}, oracle, percolator.Options{})
	b.Cleanup(func() { db.Close() })
	return []layer{
		{"process", raw, plain, desc, local, 8},
		{"grpc", remoteRaw, remote, desc, db, 64},
	}
}

// BenchmarkReadLayers: reading one row of a million, over one path (a call, or gRPC on loopback):
//
//	raw       a read of a bare Pebble behind the interface of a shard
//	kv        the shard's own read of the latest value, of versions and past the lock table
//	get       percolator's read of the latest value: routed, locks dealt with, no timestamp
//	snapshot  a transaction that takes a timestamp and reads the row as of it
func BenchmarkReadLayers(b *testing.B) {
	ctx := context.Background()
	for _, l := range layers(b) {
		reads := func(get func(key []byte) ([]byte, error)) func(*rand.Rand) error {
			return func(r *rand.Rand) error {
				value, err := get(Key(nil, r.Uint64N(Rows)))
				if err == nil && len(value) != ValueBytes {
					err = fmt.Errorf("%d bytes", len(value))
				}
				return err
			}
		}
		from := func(s kv.Shard) func(*rand.Rand) error {
			return reads(func(key []byte) ([]byte, error) {
				return s.Get(ctx, l.desc.Ref(), key, kv.ReadOptions{ReadTS: tso.MaxTimestamp})
			})
		}
		n := 400_000
		if l.name == "grpc" {
			n = 60_000
		}
		b.Run(l.name, func(b *testing.B) {
			rates(b, l.clients, n, way{"raw", from(l.raw)}, way{"kv", from(l.plain)},
				way{"get", reads(func(key []byte) ([]byte, error) { return l.db.Get(ctx, key) })},
				way{"snapshot", reads(func(key []byte) ([]byte, error) {
					txn, err := l.db.Begin(ctx)
					if err != nil {
						return nil, err
					}
					defer txn.Close()
					return txn.Get(ctx, key)
				})})
		})
	}
}

// BenchmarkWriteLayers: a transaction that writes one row of a million (txn), against a durable write of
// a bare Pebble behind the same interface (raw), by 64 clients at once.
func BenchmarkWriteLayers(b *testing.B) {
	ctx := context.Background()
	for _, l := range layers(b) {
		b.Run(l.name, func(b *testing.B) {
			rates(b, 64, 12_800, way{"raw", func(r *rand.Rand) error {
				row := r.Uint64N(Rows)
				_, err := l.raw.Prewrite(ctx, &kv.PrewriteRequest{
					Ranges: []kv.RangeRef{l.desc.Ref()}, Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: Key(nil, row), Value: Value(nil, row)}}})
				return err
			}}, way{"txn", func(r *rand.Rand) error {
				row := r.Uint64N(Rows)
				txn, err := l.db.Begin(ctx)
				if err != nil {
					return err
				}
				if err := txn.Put(Key(nil, row), Value(nil, row)); err != nil {
					return err
				}
				_, err = txn.Commit(ctx)
				var conflict *mvcc.WriteConflictError
				if errors.As(err, &conflict) {
					return nil // two writers have met; as much work as a write
				}
				return err
			}})
		})
	}
}

// BenchmarkCommitAcrossStores: transactions that write a row on each of two stores over gRPC, one at a
// time, committed asynchronously and in two phases, in turns.
func BenchmarkCommitAcrossStores(b *testing.B) {
	ctx := context.Background()
	c := openCluster(b, 2)
	second := Key(nil, Rows/2)
	c.must(c.router.CreateRange(ctx, kv.Span{Start: second, End: Key(nil, Rows)}))
	here, _, err := c.router.Locate(ctx, Key(nil, 0))
	c.must(err)
	there, _, err := c.router.Locate(ctx, second)
	c.must(err)
	if here.Shard == there.Shard {
		b.Fatal("both ranges are on one store")
	}
	dbs := []*percolator.DB{c.db(percolator.Options{}), c.db(percolator.Options{DisableAsyncCommit: true})}
	var took [2][]float64 // in µs
	once := func(i int, keep bool) {
		row := rand.Uint64N(Rows / 2)
		txn, err := dbs[i].Begin(ctx)
		c.must(err)
		c.must(txn.Put(Key(nil, row), Value(nil, row)))
		c.must(txn.Put(Key(nil, Rows/2+row), Value(nil, row)))
		begin := time.Now()
		_, err = txn.Commit(ctx)
		c.must(err)
		if keep {
			took[i] = append(took[i], float64(time.Since(begin).Nanoseconds())/1e3)
		}
	}
	for n := range 200 {
		once(n%2, false)
	}
	b.ResetTimer()
	for range b.N {
		once(0, true)
		once(1, true)
	}
	async, twoPhase := median(took[0]), median(took[1])
	b.ReportMetric(async, "async-p50-µs")
	b.ReportMetric(twoPhase, "2pc-p50-µs")
	b.ReportMetric(async/twoPhase, "p50-ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCrashedClients: 1,000 clients have locked a row each and are gone, with a transaction of its
// own each, and a scan over the rows comes. Reported is when it has its answer: if it begins as soon as
// the locks have expired (expired); if it begins while they live, and waits because they are of async
// commits that lack a key (waiting), after their TTL as well; or if it begins while they live, and asks
// them to commit later than it reads (pushing), after it began.
func BenchmarkCrashedClients(b *testing.B) {
	const clients, ttl = 1000, 500 * time.Millisecond
	ctx := context.Background()
	c := openCluster(b, 1)
	db := c.db(percolator.Options{})
	desc, shard, err := c.router.Locate(ctx, Key(nil, 0))
	c.must(err)
	first := uint64(0)
	lock := func(async bool) (expired time.Time) {
		starts := make([]tso.Timestamp, clients)
		for i := range starts {
			starts[i], err = c.oracle.Now(ctx)
			c.must(err)
		}
		var row atomic.Uint64
		c.must(many(50, clients, func(*rand.Rand) error {
			i := row.Add(1) - 1
			key := Key(nil, first+i)
			req := &kv.PrewriteRequest{
				Ranges: []kv.RangeRef{desc.Ref()}, Primary: key, StartTS: starts[i], TTLMillis: uint64(ttl.Milliseconds()), TxnSize: 1,
				Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: key, Value: Value(nil, i)}}}
			if async {
				req.Async, req.TxnSize, req.Secondaries = true, 2, [][]byte{Key(nil, Rows+first+i)}
			}
			res, err := shard.Prewrite(ctx, req)
			if err == nil && res.Async != async {
				err = errors.New("not as asked")
			}
			return err
		}))
		return time.UnixMilli(starts[clients-1].Physical()).Add(ttl)
	}
	scan := func() {
		txn, err := db.Begin(ctx)
		c.must(err)
		defer txn.Close()
		it := txn.Scan(ctx, kv.Span{Start: Key(nil, first), End: Key(nil, first+clients)}, percolator.ScanOptions{})
		defer it.Close()
		if it.Next(ctx) {
			b.Fatal("a row of a client that never committed")
		}
		c.must(it.Err())
		first += clients
	}
	for _, how := range []string{"expired", "waiting", "pushing"} {
		b.Run(how, func(b *testing.B) {
			var took []float64 // in ms
			for range b.N {
				b.StopTimer()
				since := lock(how == "waiting")
				switch how {
				case "expired":
					time.Sleep(time.Until(since) + 2*time.Millisecond)
				case "pushing":
					since = time.Now()
				}
				b.StartTimer()
				scan()
				took = append(took, float64(time.Since(since).Microseconds())/1e3)
			}
			b.ReportMetric(median(took), map[string]string{"expired": "ms-after-TTL", "waiting": "ms-after-TTL", "pushing": "ms"}[how])
			b.ReportMetric(0, "ns/op")
		})
	}
}

// remoteRouter routes to a shard's other side of the network by the store's own table.
type remoteRouter struct {
	kv.Router
	shard *kvrpc.Shard
}

func (r remoteRouter) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	desc, _, err := r.Router.Locate(ctx, key)
	return desc, r.shard, err
}

func (r remoteRouter) LocateEnd(ctx context.Context, end []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	desc, _, err := r.Router.LocateEnd(ctx, end)
	return desc, r.shard, err
}
