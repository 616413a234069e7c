package micro

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// side is one of two ways to do the same work; run does n operations of it.
type side struct {
	name string
	run  func(n int) error
}

// compare runs the two sides in turns of n operations, b.N turns each, and reports the processor
// time of an operation on either and their ratio. Turns make a change of the machine's speed hit
// both.
func compare(b *testing.B, n int, raw, ours side) {
	b.Helper()
	var cpu, wall [2]time.Duration
	for _, s := range []side{raw, ours} { // warm up
		if err := s.run(n); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for range b.N {
		for i, s := range []side{raw, ours} {
			c, w := CPUTime(), time.Now()
			if err := s.run(n); err != nil {
				b.Fatal(err)
			}
			cpu[i] += CPUTime() - c
			wall[i] += time.Since(w)
		}
	}
	ops := float64(b.N) * float64(n)
	for i, s := range []side{raw, ours} {
		b.ReportMetric(float64(cpu[i].Nanoseconds())/1e3/ops, s.name+"-cpu-µs")
		b.ReportMetric(float64(wall[i].Nanoseconds())/1e3/ops, s.name+"-µs")
	}
	b.ReportMetric(float64(cpu[1])/float64(cpu[0]), "cpu-ratio")
	b.ReportMetric(float64(wall[1])/float64(wall[0]), "time-ratio")
	b.ReportMetric(0, "ns/op") // of a turn, and so of no interest
}

// openPercolator returns transactions over the loaded store.
func openPercolator(b *testing.B) *percolator.DB {
	b.Helper()
	tables.open(b)
	db := percolator.New(tables.shard.Store.Router(), tables.shard.Oracle, percolator.Options{})
	b.Cleanup(func() { db.Close() })
	return db
}

// BenchmarkPercolatorPointRead: a transaction that reads one random row of a million, against a
// bare Pebble that opens an iterator and seeks.
func BenchmarkPercolatorPointRead(b *testing.B) {
	ctx := context.Background()
	db := openPercolator(b)
	var value, key []byte
	compare(b, 100_000, side{"raw", func(n int) error {
		for range n {
			key = Key(key[:0], rand.Uint64N(Rows))
			it, err := tables.raw.DB.NewIter(nil)
			if err != nil {
				return err
			}
			if !it.SeekPrefixGE(key) {
				return errors.New("row is missing")
			}
			value = append(value[:0], it.Value()...)
			if err := it.Close(); err != nil {
				return err
			}
		}
		return nil
	}}, side{"percolator", func(n int) error {
		for range n {
			key = Key(key[:0], rand.Uint64N(Rows))
			txn, err := db.Begin(ctx)
			if err != nil {
				return err
			}
			got, err := txn.Get(ctx, key)
			if err != nil || len(got) != ValueBytes {
				return fmt.Errorf("%d bytes: %w", len(got), err)
			}
		}
		return nil
	}})
}

// BenchmarkPercolatorScan: a transaction that reads a million rows, against a bare Pebble iterator.
func BenchmarkPercolatorScan(b *testing.B) {
	ctx := context.Background()
	db := openPercolator(b)
	compare(b, Rows, side{"raw", func(n int) error {
		it, err := tables.raw.DB.NewIter(nil)
		if err != nil {
			return err
		}
		rows, bytes := 0, 0
		for ok := it.First(); ok; ok = it.Next() {
			bytes += len(it.Key()) + len(it.Value())
			rows++
		}
		if rows != n {
			return fmt.Errorf("%d rows of %d bytes", rows, bytes)
		}
		return it.Close()
	}}, side{"percolator", func(n int) error {
		txn, err := db.Begin(ctx)
		if err != nil {
			return err
		}
		it := txn.Scan(ctx, kv.Span{Start: Key(nil, 0), End: Key(nil, Rows)}, percolator.ScanOptions{})
		defer it.Close()
		rows, bytes := 0, 0
		for it.Next(ctx) {
			bytes += len(it.Key()) + len(it.Value())
			rows++
		}
		if rows != n {
			return fmt.Errorf("%d rows of %d bytes: %w", rows, bytes, it.Err())
		}
		return nil
	}})
}

// BenchmarkPercolatorWrite: a transaction that overwrites one random row, against a bare Pebble's
// synced batch, by one writer and by 64.
func BenchmarkPercolatorWrite(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			ctx := context.Background()
			db := openPercolator(b)
			many := func(n int, write func(key, value []byte) error) error {
				errs := make(chan error, writers)
				var wg sync.WaitGroup
				for range writers {
					wg.Go(func() {
						for range n / writers {
							row := rand.Uint64N(Rows)
							if err := write(Key(nil, row), Value(nil, row)); err != nil {
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
			compare(b, 6400, side{"raw", func(n int) error {
				return many(n, func(key, value []byte) error {
					batch := tables.raw.DB.NewBatch()
					if err := batch.Set(key, value, nil); err != nil {
						return err
					}
					if err := batch.Commit(pebble.Sync); err != nil {
						return err
					}
					return batch.Close()
				})
			}}, side{"percolator", func(n int) error {
				return many(n, func(key, value []byte) error {
					txn, err := db.Begin(ctx)
					if err != nil {
						return err
					}
					if err := txn.Put(key, value); err != nil {
						return err
					}
					_, err = txn.Commit(ctx)
					var conflict *mvcc.WriteConflictError
					if errors.As(err, &conflict) {
						return nil // two writers have met; as much work as a write
					}
					return err
				})
			}})
		})
	}
}

// BenchmarkTimestamps: timestamps a second in this process, in bursts (32.8 million a second is
// what the layout of a timestamp can sustain; a burst may borrow 100 ms), and over gRPC on
// loopback, client and server both in this process.
func BenchmarkTimestamps(b *testing.B) {
	oracle, err := tso.NewLocal(context.Background(), &tso.MemoryWindow{}, tso.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer oracle.Close()
	rate := func(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mts/s") }
	b.Run("process", func(b *testing.B) {
		ctx := context.Background()
		for n := 0; n < b.N; {
			b.StopTimer()
			time.Sleep(70 * time.Millisecond) // The clock overtakes the timestamps of the last burst.
			b.StartTimer()
			for end := min(b.N, n+1<<20); n < end; n++ {
				if _, err := oracle.Now(ctx); err != nil {
					b.Fatal(err)
				}
			}
		}
		rate(b)
	})
	b.Run("process-sustained", func(b *testing.B) {
		for range b.N {
			if _, err := oracle.Now(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := tsorpc.NewGRPCServer()
	tsorpc.RegisterOracle(server, oracle)
	go server.Serve(l)
	defer server.Stop()
	conn, err := tsorpc.Dial(l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	client := tsorpc.NewClient(conn, tsorpc.ClientOptions{})
	defer client.Close()
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("grpc/callers=%d", callers), func(b *testing.B) {
			parallel(b, callers, func(int, int) error {
				_, err := client.Now(context.Background())
				return err
			})
			rate(b)
		})
	}
}
