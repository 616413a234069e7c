package bigtable

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"cloud.google.com/go/bigtable"

	engine "github.com/percodb/percodb/kv/bigtable"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// Ratio is the rate of percodb's transactions of one row over that of Bigtable's requests.
type Ratio struct {
	Operation string  `json:"operation"`
	Raw       float64 `json:"raw_per_s"`
	Percodb   float64 `json:"percodb_per_s"`
	Paper     float64 `json:"paper_ratio"`
}

const (
	// figureRows are so many that a row has few versions: the emulator copies all of them for every request, which the service does not.
	figureRows    = 16_000
	figureLoad    = 500 // rows of a transaction that loads them
	figureClients = 16
	figureTurns   = 5
	figureFamily  = "d"
)

// figure8 has bare requests and transactions take turns, over one table each, from this process.
func (o *Options) figure8(ctx context.Context, d *deployment) (_ []Ratio, err error) {
	raw, err := openRaw(ctx, d.addr)
	if err != nil {
		return nil, err
	}
	opts := engine.Options{Project: "p", Instance: "i", Emulator: d.addr}
	if _, err := engine.CreateTable(ctx, opts); err != nil {
		return nil, err
	}
	client, err := engine.Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	oracle, err := tso.NewLocal(ctx, &memoryWindow{}, tso.Options{})
	if err != nil {
		return nil, err
	}
	defer oracle.Close()
	shard, err := engine.NewShard(ctx, client, engine.ShardOptions{Oracle: oracle})
	if err != nil {
		return nil, err
	}
	defer shard.Close()
	db := percolator.New(engine.NewRouter(shard), oracle, percolator.Options{})
	defer func() { err = errors.Join(err, db.Close()) }()

	value := make([]byte, 100)
	write := func(ctx context.Context, row int) error {
		txn, err := db.Begin(ctx)
		if err != nil {
			return err
		}
		if err := txn.Put(figureKey(row), value); err != nil {
			return err
		}
		_, err = txn.Commit(ctx)
		return err
	}
	read := func(ctx context.Context, row int) error {
		txn, err := db.Begin(ctx)
		if err != nil {
			return err
		}
		_, err = txn.Get(ctx, figureKey(row))
		return errors.Join(err, txn.Rollback(ctx))
	}
	load := func(from int) error {
		txn, err := db.Begin(ctx)
		if err != nil {
			return err
		}
		var keys []string
		var changes []*bigtable.Mutation
		for row := from; row < from+figureLoad; row++ {
			if err := txn.Put(figureKey(row), value); err != nil {
				return err
			}
			change := bigtable.NewMutation()
			change.Set(figureFamily, "v", 0, value)
			keys, changes = append(keys, string(figureKey(row))), append(changes, change)
		}
		_, err = txn.Commit(ctx)
		errs, rawErr := raw.ApplyBulk(ctx, keys, changes)
		return errors.Join(append(errs, err, rawErr)...)
	}
	rawWrite := func(ctx context.Context, row int) error {
		change := bigtable.NewMutation()
		change.Set(figureFamily, "v", 0, value)
		return raw.Apply(ctx, string(figureKey(row)), change)
	}
	rawRead := func(ctx context.Context, row int) error {
		_, err := raw.ReadRow(ctx, string(figureKey(row)))
		return err
	}
	for from := 0; from < figureRows; from += figureLoad {
		if err := load(from); err != nil {
			return nil, err
		}
	}
	reads, err := o.turns(ctx, rawRead, read)
	if err != nil {
		return nil, err
	}
	writes, err := o.turns(ctx, rawWrite, write)
	reads.Operation, reads.Paper, writes.Operation, writes.Paper = "read", 0.94, "write", 0.23
	return []Ratio{reads, writes}, err
}

func figureKey(row int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(row)) }

// openRaw creates a table of one family.
func openRaw(ctx context.Context, emulator string) (*bigtable.Table, error) {
	opts := engine.EmulatorOptions(emulator)
	admin, err := bigtable.NewAdminClient(ctx, "p", "i", opts...)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if err := admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: "raw", ColumnFamilies: map[string]bigtable.Family{figureFamily: {GCPolicy: bigtable.MaxVersionsPolicy(1)}}}); err != nil {
		return nil, err
	}
	client, err := bigtable.NewClientWithConfig(ctx, "p", "i", bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true}, opts...)
	if err != nil {
		return nil, err
	}
	return client.Open("raw"), nil
}

// turns has both take turns, and returns their rates.
func (o *Options) turns(ctx context.Context, raw, ours func(context.Context, int) error) (r Ratio, err error) {
	var counts [2]int
	var took [2]time.Duration
	for range figureTurns {
		for i, do := range []func(context.Context, int) error{raw, ours} {
			n, d, err := o.turn(ctx, do)
			if err != nil {
				return r, err
			}
			counts[i] += n
			took[i] += d
		}
	}
	r.Raw, r.Percodb = float64(counts[0])/took[0].Seconds(), float64(counts[1])/took[1].Seconds()
	return r, nil
}

// turn has clients do it for a while, each with rows of its own.
func (o *Options) turn(ctx context.Context, do func(context.Context, int) error) (n int, took time.Duration, err error) {
	begun := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for client := range figureClients {
		wg.Go(func() {
			done := 0
			var failed error
			for time.Since(begun) < o.TurnFor/figureTurns && failed == nil {
				const own = figureRows / figureClients
				failed = do(ctx, client*own+rand.IntN(own))
				done++
			}
			mu.Lock()
			defer mu.Unlock()
			n += done
			err = errors.Join(err, failed)
		})
	}
	wg.Wait()
	if err != nil {
		err = fmt.Errorf("after %d operations: %w", n, err)
	}
	return n, time.Since(begun), err
}

// memoryWindow keeps the window of an oracle that ends with this process.
type memoryWindow struct {
	mu    sync.Mutex
	upper tso.Timestamp
}

// Load implements tso.WindowStore.
func (w *memoryWindow) Load(context.Context) (tso.Timestamp, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.upper, nil
}

// Save implements tso.WindowStore.
func (w *memoryWindow) Save(_ context.Context, upper tso.Timestamp) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.upper = upper
	return nil
}
