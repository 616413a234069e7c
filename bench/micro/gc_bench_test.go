package micro

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// churnRows is the size of the tables that are changed over and over.
const churnRows = 20_000

// churned is a store with a table whose rows are all written a number of times.
type churned struct {
	b     *testing.B
	shard *Shard
	db    *percolator.DB
}

func openChurned(b *testing.B) *churned {
	b.Helper()
	shard, err := OpenShard(context.Background(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { shard.Close() })
	db := percolator.New(shard.Store.Router(), shard.Oracle, percolator.Options{})
	b.Cleanup(func() { db.Close() })
	return &churned{b: b, shard: shard, db: db}
}

// write writes every row times times, each time in one transaction.
func (c *churned) write(times int) {
	c.b.Helper()
	for n := range uint64(times) {
		ms := make([]mvcc.Mutation, churnRows)
		for row := range uint64(churnRows) {
			ms[row] = mvcc.Mutation{Op: mvcc.OpPut, Key: Key(nil, row), Value: Value(nil, row+n)}
		}
		if err := c.shard.Commit(context.Background(), ms); err != nil {
			c.b.Fatal(err)
		}
	}
}

// fence makes all versions that are not the newest now garbage, and returns the safe point.
func (c *churned) fence() tso.Timestamp {
	c.b.Helper()
	ctx := context.Background()
	ts, err := c.shard.Oracle.Now(ctx)
	if err == nil {
		ts, err = c.shard.Store.SetSafePoint(ctx, ts)
	}
	if err != nil {
		c.b.Fatal(err)
	}
	return ts
}

// collect works at garbage collection until it is done or ctx ends, and returns how many versions went.
func (c *churned) collect(ctx context.Context, sp tso.Timestamp) (versions int, done bool, err error) {
	for !done && err == nil {
		var res kv.CollectGarbageResponse
		res, err = c.shard.Store.CollectGarbage(ctx, &kv.CollectGarbageRequest{SafePoint: sp})
		versions, done = versions+res.Versions, res.Done
	}
	return versions, done, err
}

// read reads a row in a transaction of its own.
func (c *churned) read(r *rand.Rand) error {
	ctx := context.Background()
	txn, err := c.db.Begin(ctx)
	if err != nil {
		return err
	}
	defer txn.Close()
	value, err := txn.Get(ctx, Key(nil, r.Uint64N(churnRows)))
	if err == nil && len(value) != ValueBytes {
		err = fmt.Errorf("%d bytes", len(value))
	}
	return err
}

// update writes a row in a transaction of its own.
func (c *churned) update(r *rand.Rand) error {
	ctx := context.Background()
	txn, err := c.db.Begin(ctx)
	if err != nil {
		return err
	}
	row := r.Uint64N(churnRows)
	if err := txn.Put(Key(nil, row), Value(nil, row)); err != nil {
		return err
	}
	_, err = txn.Commit(ctx)
	var conflict *mvcc.WriteConflictError
	if errors.As(err, &conflict) {
		return nil // two writers have met
	}
	return err
}

// BenchmarkReadsAfterGC: point reads of a table whose rows have all been written 100 times and then
// collected, compared with a table that was written once and is on disk, too. The store has had two
// seconds of idle time, and no manual compaction.
func BenchmarkReadsAfterGC(b *testing.B) {
	fresh, old := openChurned(b), openChurned(b)
	fresh.write(1)
	if err := fresh.shard.Engine.Flush(); err != nil {
		b.Fatal(err)
	}
	old.write(100)
	versions, _, err := old.collect(context.Background(), old.fence())
	if err != nil {
		b.Fatal(err)
	}
	if versions < 98*churnRows {
		b.Fatalf("%d versions were collected", versions)
	}
	time.Sleep(2 * time.Second) // Background compactions run as they would in a server.
	rates(b, 8, 200_000, Way{"fresh", fresh.read}, Way{"collected", old.read})
}

// BenchmarkTrafficDuringGC: what 32 clients get done, half of it reads and half of it durable updates of
// one row, while a round of garbage collection goes over what ten updates of every row have left,
// against what they get done while the round is held up, in short turns. Reported is the median ratio of
// the rates, and how many versions were removed in a second of the round's turns.
func BenchmarkTrafficDuringGC(b *testing.B) {
	const pairs, n = 16, 4000
	c := openChurned(b)
	c.write(1)
	traffic := func() float64 { // operations per second
		begin := time.Now()
		if err := Many(32, n, func(r *rand.Rand) error {
			if r.Uint32()%2 == 0 {
				return c.read(r)
			}
			return c.update(r)
		}); err != nil {
			b.Fatal(err)
		}
		return n / time.Since(begin).Seconds()
	}
	traffic() // warm up
	var ratios []float64
	var removed, turns float64
	var sp tso.Timestamp
	b.ResetTimer()
	for len(ratios) < b.N*pairs {
		if sp == 0 {
			b.StopTimer()
			c.write(10)
			sp = c.fence()
			b.StartTimer()
		}
		var without, with float64
		if len(ratios)%2 == 0 {
			without = traffic()
		}
		ctx, stop := context.WithCancel(context.Background())
		begin := time.Now()
		var versions int
		var done bool
		var err error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			versions, done, err = c.collect(ctx, sp)
		}()
		with = traffic()
		stop()
		if <-ended; err != nil && !errors.Is(err, context.Canceled) {
			b.Fatal(err)
		}
		took := time.Since(begin)
		if len(ratios)%2 != 0 {
			without = traffic()
		}
		if done {
			sp = 0 // the round was over before the turn was
			continue
		}
		removed, turns = removed+float64(versions), turns+took.Seconds()
		ratios = append(ratios, with/without)
	}
	b.ReportMetric(Median(ratios), "rate-ratio")
	b.ReportMetric(removed/turns, "removed/s")
	b.ReportMetric(0, "ns/op")
}
