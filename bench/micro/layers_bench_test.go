package micro

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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
// is rate-ratio, the rate of transactions ÷ that of the raw store, in turns within one run.

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

// rates compares two ways to do an operation by their rates.
func rates(b *testing.B, clients, n int, raw, ours func(r *rand.Rand) error) {
	b.Helper()
	var wall [2]time.Duration
	for _, do := range []func(*rand.Rand) error{raw, ours} { // warm up
		if err := many(clients, n/4, do); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for range b.N {
		for i, do := range []func(*rand.Rand) error{raw, ours} {
			begin := time.Now()
			if err := many(clients, n, do); err != nil {
				b.Fatal(err)
			}
			wall[i] += time.Since(begin)
		}
	}
	ops := float64(b.N) * float64(n)
	b.ReportMetric(ops/wall[0].Seconds(), "raw/s")
	b.ReportMetric(ops/wall[1].Seconds(), "txn/s")
	b.ReportMetric(float64(wall[0])/float64(wall[1]), "rate-ratio")
	b.ReportMetric(0, "ns/op")
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

// BenchmarkReadLayers: a transaction that reads one row, against the store's own read of the latest
// value without a transaction (kv), and against a bare Pebble behind the same interface (pebble).
func BenchmarkReadLayers(b *testing.B) {
	ctx := context.Background()
	for _, l := range layers(b) {
		through := func(r *rand.Rand) error {
			txn, err := l.db.Begin(ctx)
			if err != nil {
				return err
			}
			defer txn.Close()
			value, err := txn.Get(ctx, Key(nil, r.Uint64N(Rows)))
			if err == nil && len(value) != ValueBytes {
				err = fmt.Errorf("%d bytes", len(value))
			}
			return err
		}
		from := func(s kv.Shard) func(r *rand.Rand) error {
			return func(r *rand.Rand) error {
				value, err := s.Get(ctx, l.desc.Ref(), Key(nil, r.Uint64N(Rows)), kv.ReadOptions{ReadTS: tso.MaxTimestamp})
				if err == nil && len(value) != ValueBytes {
					err = fmt.Errorf("%d bytes", len(value))
				}
				return err
			}
		}
		n := 400_000
		if l.name == "grpc" {
			n = 60_000
		}
		b.Run(l.name+"/kv", func(b *testing.B) { rates(b, l.clients, n, from(l.plain), through) })
		b.Run(l.name+"/pebble", func(b *testing.B) { rates(b, l.clients, n, from(l.raw), through) })
	}
}

// BenchmarkWriteLayers: a transaction that writes one row, against a durable write of a bare Pebble
// behind the same interface.
func BenchmarkWriteLayers(b *testing.B) {
	ctx := context.Background()
	for _, l := range layers(b) {
		b.Run(l.name, func(b *testing.B) {
			rates(b, 64, 12_800, func(r *rand.Rand) error {
				row := r.Uint64N(Rows)
				_, err := l.raw.Prewrite(ctx, &kv.PrewriteRequest{
					Ranges: []kv.RangeRef{l.desc.Ref()}, Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: Key(nil, row), Value: Value(nil, row)}}})
				return err
			}, func(r *rand.Rand) error {
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
			})
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
	var took [2][]time.Duration
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
			took[i] = append(took[i], time.Since(begin))
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
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Nanoseconds()) / 1e3
	}
	b.ReportMetric(median(took[0]), "async-p50-µs")
	b.ReportMetric(median(took[1]), "2pc-p50-µs")
	b.ReportMetric(median(took[0])/median(took[1]), "p50-ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCrashedClients: 1,000 clients have locked a row each and are gone, with a transaction of its
// own each; a scan over the rows begins. Reported is how long after the end of the locks' TTL it has its
// answer, if it waited for that end, and if it begins then.
func BenchmarkCrashedClients(b *testing.B) {
	const clients, ttl = 1000, 400 * time.Millisecond
	ctx := context.Background()
	for _, waiting := range []bool{true, false} {
		name := map[bool]string{true: "scan waits", false: "scan begins afterwards"}[waiting]
		b.Run(name, func(b *testing.B) {
			c := openCluster(b, 1)
			db := c.db(percolator.Options{})
			desc, shard, err := c.router.Locate(ctx, Key(nil, 0))
			c.must(err)
			var late time.Duration
			for range b.N {
				b.StopTimer()
				var last tso.Timestamp
				for row := range uint64(clients) {
					last, err = c.oracle.Now(ctx)
					c.must(err)
					_, err = shard.Prewrite(ctx, &kv.PrewriteRequest{
						Ranges: []kv.RangeRef{desc.Ref()}, Primary: Key(nil, row), StartTS: last, TTLMillis: uint64(ttl.Milliseconds()), TxnSize: 1,
						Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: Key(nil, row), Value: Value(nil, row)}}})
					c.must(err)
				}
				over := time.UnixMilli(last.Physical()).Add(ttl)
				if !waiting {
					time.Sleep(time.Until(over))
				}
				b.StartTimer()
				txn, err := db.Begin(ctx)
				c.must(err)
				it := txn.Scan(ctx, kv.Span{Start: Key(nil, 0), End: Key(nil, clients)}, percolator.ScanOptions{})
				if it.Next(ctx) {
					b.Fatal("a row of a client that never committed")
				}
				c.must(it.Err())
				it.Close()
				txn.Close()
				late += time.Since(over)
			}
			b.ReportMetric(float64(late.Microseconds())/1e3/float64(b.N), "ms-after-TTL")
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
