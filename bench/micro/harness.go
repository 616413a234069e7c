package micro

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Rows is the size of the tables read from; ValueBytes that of a row's value.
const (
	Rows       = 1_000_000
	ValueBytes = 100
	cacheBytes = 512 << 20
)

// Key returns the key of a row: a table's prefix and eight bytes, like rowenc's.
func Key(dst []byte, row uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 't', 0, 0, 42, 1), row)
}

// Value fills a value of ValueBytes that compresses about as well as a row does.
func Value(dst []byte, row uint64) []byte {
	dst = append(dst, fmt.Sprintf("%032x", row*0x9e3779b97f4a7c15)...)
	for len(dst)%ValueBytes != 0 {
		dst = append(dst, byte('a'+len(dst)%7))
	}
	return dst
}

// Raw is a bare Pebble with the settings that kv/storage uses, less its key order and its block
// properties, which are percodb's own cost.
type Raw struct{ DB *pebble.DB }

// quiet discards log messages.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}

// Fatalf is called where Pebble cannot go on.
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// OpenRaw opens a bare Pebble in dir.
func OpenRaw(dir string) (*Raw, error) {
	cache := pebble.NewCache(cacheBytes)
	defer cache.Unref()
	o := &pebble.Options{
		Cache:                       cache,
		Logger:                      quiet{},
		FormatMajorVersion:          pebble.FormatValueSeparation,
		MemTableSize:                64 << 20,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       100,
		LBaseMaxBytes:               64 << 20,
		BytesPerSync:                512 << 10,
		WALBytesPerSync:             512 << 10,
	}
	for i := range o.Levels {
		o.Levels[i] = pebble.LevelOptions{BlockSize: 16 << 10, IndexBlockSize: 256 << 10, FilterPolicy: bloom.FilterPolicy(10)}
	}
	o.Experimental.EnableColumnarBlocks = func() bool { return true }
	o.Experimental.ReadSamplingMultiplier = -1
	db, err := pebble.Open(filepath.Join(dir, "raw"), o)
	if err != nil {
		return nil, err
	}
	return &Raw{DB: db}, nil
}

// Load fills the table with rows and brings it to rest.
func (r *Raw) Load(ctx context.Context, rows uint64) error {
	var key, value []byte
	for row := uint64(0); row < rows; {
		b := r.DB.NewBatch()
		for range min(10_000, rows-row) {
			key, value = Key(key[:0], row), Value(value[:0], row)
			if err := b.Set(key, value, nil); err != nil {
				return err
			}
			row++
		}
		if err := b.Commit(pebble.NoSync); err != nil {
			return err
		}
		if err := b.Close(); err != nil {
			return err
		}
	}
	if err := r.DB.Flush(); err != nil {
		return err
	}
	return r.DB.Compact(ctx, []byte{0}, []byte{0xff}, false)
}

// Shard is a store with an embedded oracle, as one process runs it.
type Shard struct {
	Engine *kv.Engine
	Oracle *tso.Local
	Store  *kv.Store
}

// OpenShard opens a store in dir.
func OpenShard(ctx context.Context, dir string) (*Shard, error) {
	engine, err := kv.OpenEngine(kv.EngineOptions{Dir: filepath.Join(dir, "kv"), CacheBytes: cacheBytes})
	if err != nil {
		return nil, err
	}
	oracle, err := tso.NewLocal(ctx, engine.WindowStore(), tso.Options{})
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	store, err := kv.Open(ctx, kv.Options{Engine: engine, Oracle: oracle, EmbeddedOracle: true})
	if err != nil {
		return nil, errors.Join(err, oracle.Close(), engine.Close())
	}
	return &Shard{Engine: engine, Oracle: oracle, Store: store}, nil
}

// Close closes the store and what it stands on.
func (s *Shard) Close() error {
	return errors.Join(s.Store.Close(), s.Oracle.Close(), s.Engine.Close())
}

// Load fills the table with rows, by transactions of 10,000, and brings it to rest.
func (s *Shard) Load(ctx context.Context, rows uint64) error {
	for row := uint64(0); row < rows; {
		ms := make([]mvcc.Mutation, min(10_000, rows-row))
		for i := range ms {
			ms[i] = mvcc.Mutation{Op: mvcc.OpPut, Key: Key(nil, row), Value: Value(nil, row)}
			row++
		}
		if err := s.Commit(ctx, ms); err != nil {
			return err
		}
	}
	if err := s.Engine.Flush(); err != nil {
		return err
	}
	return s.Engine.Compact(ctx, []byte{0x20, 0}, []byte{0x21, 0})
}

// Commit commits mutations in one phase.
func (s *Shard) Commit(ctx context.Context, ms []mvcc.Mutation) error {
	startTS, err := s.Oracle.Now(ctx)
	if err != nil {
		return err
	}
	desc, shard, err := s.Store.Router().Locate(ctx, ms[0].Key)
	if err != nil {
		return err
	}
	res, err := shard.Prewrite(ctx, &kv.PrewriteRequest{
		Ranges: []kv.RangeRef{desc.Ref()}, Mutations: ms, Primary: ms[0].Key, StartTS: startTS,
		TTLMillis: 3000, TxnSize: uint32(len(ms)), TryOnePC: true,
	})
	if err == nil && res.OnePCCommitTS == 0 {
		err = errors.New("not committed in one phase")
	}
	return err
}

// CPUTime returns the processor time the process has used.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
