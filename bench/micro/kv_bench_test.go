package micro

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// loaded holds the tables that the benchmarks of one run read from.
type loaded struct {
	once  sync.Once
	dir   string
	raw   *Raw
	shard *Shard
	err   error
}

var tables loaded // one load for all benchmarks of a run

func (l *loaded) open(b *testing.B) {
	b.Helper()
	l.once.Do(func() {
		ctx := context.Background()
		if l.dir, l.err = os.MkdirTemp("", "percodb-micro"); l.err != nil {
			return
		}
		if l.raw, l.err = OpenRaw(l.dir); l.err != nil {
			return
		}
		if l.err = l.raw.Load(ctx, Rows); l.err != nil {
			return
		}
		if l.shard, l.err = OpenShard(ctx, l.dir); l.err != nil {
			return
		}
		l.err = l.shard.Load(ctx, Rows)
	})
	if l.err != nil {
		b.Fatal(l.err)
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if tables.shard != nil {
		_ = tables.shard.Close()
	}
	if tables.raw != nil {
		_ = tables.raw.DB.Close()
	}
	if tables.dir != "" {
		_ = os.RemoveAll(tables.dir)
	}
	os.Exit(code)
}

// Measure runs f with the timer on and reports the processor time for each of units per iteration.
func Measure(b *testing.B, units int, f func()) {
	b.ReportAllocs()
	b.ResetTimer()
	cpu := CPUTime()
	f()
	cpu = CPUTime() - cpu
	b.StopTimer()
	n := float64(b.N) * float64(units)
	b.ReportMetric(float64(cpu.Nanoseconds())/1e3/n, "cpu-µs/op")
	if units > 1 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/row")
	}
}

// BenchmarkPointRead reads random rows of a million. "raw" opens an iterator for each read, as a
// database must to see the present; "raw-reused" seeks one iterator that never sees a change.
func BenchmarkPointRead(b *testing.B) {
	ctx := context.Background()
	b.Run("raw", func(b *testing.B) {
		tables.open(b)
		Measure(b, 1, func() {
			var key, value []byte
			for range b.N {
				key = Key(key[:0], rand.Uint64N(Rows))
				it, err := tables.raw.DB.NewIter(nil)
				if err != nil {
					b.Fatal(err)
				}
				if !it.SeekPrefixGE(key) {
					b.Fatal("row is missing")
				}
				value = append(value[:0], it.Value()...)
				if err := it.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("raw-reused", func(b *testing.B) {
		tables.open(b)
		it, err := tables.raw.DB.NewIter(nil)
		if err != nil {
			b.Fatal(err)
		}
		defer it.Close()
		Measure(b, 1, func() {
			var key, value []byte
			for range b.N {
				key = Key(key[:0], rand.Uint64N(Rows))
				if !it.SeekPrefixGE(key) {
					b.Fatal("row is missing")
				}
				value = append(value[:0], it.Value()...)
			}
		})
	})
	b.Run("shard", func(b *testing.B) {
		tables.open(b)
		s := tables.shard
		Measure(b, 1, func() {
			var key []byte
			for range b.N {
				key = Key(key[:0], rand.Uint64N(Rows))
				readTS, err := s.Oracle.Now(ctx)
				if err != nil {
					b.Fatal(err)
				}
				desc, shard, err := s.Store.Router().Locate(ctx, key)
				if err != nil {
					b.Fatal(err)
				}
				value, err := shard.Get(ctx, desc.Ref(), key, kv.ReadOptions{ReadTS: readTS})
				if err != nil || len(value) != ValueBytes {
					b.Fatal(len(value), err)
				}
			}
		})
	})
}

// BenchmarkPointReadAfterWrite is BenchmarkPointRead with a write now and then, after which no open
// iterator may serve.
func BenchmarkPointReadAfterWrite(b *testing.B) {
	ctx := context.Background()
	tables.open(b)
	s := tables.shard
	const every = 4
	writes := 0
	Measure(b, 1, func() {
		var key []byte
		for i := range b.N {
			if i%every == 0 {
				w := s.Engine.NewBatch(0)
				w.Put([]byte{0x01, 'x', 0}, nil)
				if err := s.Engine.Apply(w, 0); err != nil {
					b.Fatal(err)
				}
				w.Close()
				writes++
			}
			key = Key(key[:0], rand.Uint64N(Rows))
			readTS, _ := s.Oracle.Now(ctx)
			desc, shard, err := s.Store.Router().Locate(ctx, key)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := shard.Get(ctx, desc.Ref(), key, kv.ReadOptions{ReadTS: readTS}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(writes)/float64(b.N), "writes/op")
}

// parallel runs n operations on as many workers.
func parallel(b *testing.B, workers int, op func(worker, i int) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	for w := range workers {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				if err := op(w, int(i)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		b.Fatal(err)
	default:
	}
}

// BenchmarkWrite overwrites random rows, each in a durable batch or transaction of its own.
func BenchmarkWrite(b *testing.B) {
	ctx := context.Background()
	for _, workers := range []int{1, 64} {
		b.Run(fmt.Sprintf("raw/writers=%d", workers), func(b *testing.B) {
			tables.open(b)
			Measure(b, 1, func() {
				parallel(b, workers, func(int, int) error {
					row := rand.Uint64N(Rows)
					batch := tables.raw.DB.NewBatch()
					if err := batch.Set(Key(nil, row), Value(nil, row), nil); err != nil {
						return err
					}
					if err := batch.Commit(pebble.Sync); err != nil {
						return err
					}
					return batch.Close()
				})
			})
		})
		b.Run(fmt.Sprintf("shard/writers=%d", workers), func(b *testing.B) {
			tables.open(b)
			Measure(b, 1, func() {
				parallel(b, workers, func(int, int) error {
					row := rand.Uint64N(Rows)
					err := tables.shard.Commit(ctx, []mvcc.Mutation{{Op: mvcc.OpPut, Key: Key(nil, row), Value: Value(nil, row)}})
					if _, conflict := err.(*mvcc.WriteConflictError); conflict {
						return nil // two workers have met; as much work as a write
					}
					return err
				})
			})
		})
	}
}

// BenchmarkScan reads all rows; one op is one row.
func BenchmarkScan(b *testing.B) {
	ctx := context.Background()
	b.Run("raw", func(b *testing.B) {
		tables.open(b)
		Measure(b, Rows, func() {
			for range b.N {
				it, err := tables.raw.DB.NewIter(nil)
				if err != nil {
					b.Fatal(err)
				}
				n, bytes := 0, 0
				for ok := it.First(); ok; ok = it.Next() {
					n++
					bytes += len(it.Key()) + len(it.Value())
				}
				if n != Rows {
					b.Fatalf("%d rows", n)
				}
				_ = it.Close()
			}
		})
	})
	b.Run("shard", func(b *testing.B) {
		tables.open(b)
		Measure(b, Rows, func() {
			for range b.N {
				if n, err := scanAll(ctx, tables.shard); err != nil || n != Rows {
					b.Fatal(n, err)
				}
			}
		})
	})
}

func scanAll(ctx context.Context, s *Shard) (rows int, err error) {
	readTS, err := s.Oracle.Now(ctx)
	if err != nil {
		return 0, err
	}
	var page *kv.ScanResponse
	for at := []byte(nil); ; {
		desc, shard, err := s.Store.Router().Locate(ctx, at)
		if err != nil {
			return rows, err
		}
		res, err := shard.Scan(ctx, &kv.ScanRequest{Ranges: []kv.RangeRef{desc.Ref()}, Spans: []kv.Span{{Start: at, End: desc.Span.End}},
			Limit: 1024, Reuse: page, ReadOptions: kv.ReadOptions{ReadTS: readTS}})
		if err != nil {
			return rows, err
		}
		page = res
		rows += len(res.Rows)
		if at = res.ResumeKey; at == nil {
			if at = desc.Span.End; len(at) == 0 {
				return rows, nil
			}
		}
	}
}

// BenchmarkLoad commits a million rows in one transaction, as COPY does; one op is one row.
func BenchmarkLoad(b *testing.B) {
	ctx := context.Background()
	Measure(b, Rows, func() {
		for range b.N {
			b.StopTimer()
			s, err := OpenShard(ctx, b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			ms := make([]mvcc.Mutation, Rows)
			for i := range ms {
				ms[i] = mvcc.Mutation{Op: mvcc.OpPut, MustBeNew: true, Key: Key(nil, uint64(i)), Value: Value(nil, uint64(i))}
			}
			b.StartTimer()
			start := time.Now()
			if err := s.Commit(ctx, ms); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(time.Since(start).Seconds(), "s")
			b.StopTimer()
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}
