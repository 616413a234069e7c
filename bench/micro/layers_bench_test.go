package micro

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// What transactions cost above a key-value store, as the paper's table of microbenchmarks has it
// (Peng and Dabek 2010, section 3.2: reads 0.94, single-cell writes 0.23 of Bigtable's rate). Reported
// are rates, and their ratios to that of the raw store, in turns within one run.

// turns is how many turns each way has in an iteration: what else the machine does meets all of them alike.
const turns = 16

// rates compares ways to do an operation by their rates; the first is what the others are divided by.
// A ratio is the median over all turns.
func rates(b *testing.B, clients, n int, ways ...Way) {
	b.Helper()
	took, err := Turns(clients, n/turns, b.N*turns, ways...)
	if err != nil {
		b.Fatal(err)
	}
	for w := range ways {
		ratios := make([]float64, len(took[w]))
		perSecond := make([]float64, len(took[w]))
		for i, t := range took[w] {
			ratios[i] = took[0][i].Wall.Seconds() / t.Wall.Seconds()
			perSecond[i] = float64(t.Ops) / t.Wall.Seconds()
		}
		if w > 0 {
			b.ReportMetric(Median(ratios), ways[w].Name+"-ratio")
		}
		b.ReportMetric(Median(perSecond), ways[w].Name+"/s")
	}
	b.ReportMetric(0, "ns/op")
}

// layers are the loaded stores, in this process and over gRPC.
func layers(b *testing.B) []Layer {
	b.Helper()
	tables.open(b)
	ls, stop, err := Layers(context.Background(), tables.raw, tables.shard)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(stop)
	return ls
}

// BenchmarkReadLayers: reading one row of a million, over one path (a call, or gRPC on loopback), in the
// ways of ReadWays.
func BenchmarkReadLayers(b *testing.B) {
	for _, l := range layers(b) {
		n := 400_000
		if l.Name == "grpc" {
			n = 60_000
		}
		b.Run(l.Name, func(b *testing.B) { rates(b, l.Clients, n, l.ReadWays(context.Background(), Rows)...) })
	}
}

// BenchmarkWriteLayers: a transaction that writes one row of a million, against a durable write of a bare
// Pebble behind the same interface, by 64 clients at once.
func BenchmarkWriteLayers(b *testing.B) {
	for _, l := range layers(b) {
		b.Run(l.Name, func(b *testing.B) { rates(b, 64, 12_800, l.WriteWays(context.Background(), Rows)...) })
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
	async, twoPhase := Median(took[0]), Median(took[1])
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
		c.must(Many(50, clients, func(*rand.Rand) error {
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
					time.Sleep(time.Until(since) + 2*time.Millisecond) // The lock expires.
				case "pushing":
					since = time.Now()
				}
				b.StartTimer()
				scan()
				took = append(took, float64(time.Since(since).Microseconds())/1e3)
			}
			b.ReportMetric(Median(took), map[string]string{"expired": "ms-after-TTL", "waiting": "ms-after-TTL", "pushing": "ms"}[how])
			b.ReportMetric(0, "ns/op")
		})
	}
}
