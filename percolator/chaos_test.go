package percolator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// chaos disturbs the requests of one DB: some are lost, some answers are lost, some requests are repeated later, some
// are delayed, and eventually the coordinator crashes.
type chaos struct {
	mu   sync.Mutex
	r    *rand.Rand
	dead atomic.Bool
	late sync.WaitGroup
}

func (ch *chaos) chance(percent int) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.r.IntN(100) < percent
}

func (ch *chaos) pause() time.Duration {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return time.Duration(ch.r.IntN(20_000)) * time.Microsecond
}

func (ch *chaos) wrap(s kv.Shard) kv.Shard {
	return &hookShard{Shard: s,
		before: func(_ context.Context, req any) error {
			switch {
			case ch.dead.Load():
				return errDead
			case ch.chance(2):
				return errLost
			case ch.chance(3):
				time.Sleep(ch.pause() / 10) // the fault is a slow request
			}
			return nil
		},
		after: func(_ context.Context, req, _ any, _ error) error {
			if ch.chance(3) {
				again, pause := duplicate(s, req), ch.pause()
				ch.late.Go(func() {
					time.Sleep(pause) // the fault is a late copy
					again()
				})
			}
			switch {
			case ch.dead.Load():
				return errDead
			case ch.chance(2):
				return errLost
			}
			return nil
		}}
}

// chaosClient runs transactions on its own DB, whose coordinator crashes occasionally.
type chaosClient struct {
	t     *testing.T
	c     *cluster
	r     *rand.Rand
	ch    *chaos
	db    *DB
	seed  uint64
	ended []func()
}

var chaosOptions = Options{
	RetryBudget: 500 * time.Millisecond, ProbeTimeout: 50 * time.Millisecond,
	LockTTL: 100 * time.Millisecond, Workers: 1, MaxPageRows: 3,
}

func (x *chaosClient) revive() {
	x.seed++
	x.ch = &chaos{r: rand.New(rand.NewPCG(x.seed, 99))}
	opts := chaosOptions
	if x.seed%3 == 0 {
		opts.SpillBytes = 1 // every write set goes through a file
	}
	x.db = x.c.db(opts, x.ch.wrap)
	ch, db := x.ch, x.db
	x.ended = append(x.ended, func() {
		db.Close()
		ch.late.Wait()
	})
}

// run executes one transaction and returns what is known of its outcome.
func (x *chaosClient) run(body func(ctx context.Context, txn *Txn) error) (outcome chaosOutcome) {
	ctx := context.Background()
	if x.ch == nil || x.ch.dead.Load() {
		x.revive()
	}
	if x.r.IntN(30) == 0 {
		ch := x.ch
		time.AfterFunc(time.Duration(x.r.IntN(3000))*time.Microsecond, func() { ch.dead.Store(true) })
	}
	txn, err := x.db.Begin(ctx)
	if err == nil {
		if err = body(ctx, txn); err == nil {
			_, err = txn.Commit(ctx)
		}
	}
	var undetermined *UndeterminedError
	var conflict *mvcc.WriteConflictError
	var locked *mvcc.KeyLockedError
	switch {
	case err == nil:
		return chaosCommitted
	case errors.As(err, &undetermined):
		return chaosUnknown
	case errors.As(err, &conflict), errors.As(err, &locked), errors.Is(err, errDead), errors.Is(err, errLost):
		return chaosFailed
	}
	x.t.Errorf("unexpected error: %v", err)
	return chaosFailed
}

type chaosOutcome int

const (
	chaosFailed chaosOutcome = iota
	chaosCommitted
	chaosUnknown
)

// newChaosCluster opens stores whose ranges split early, over a real oracle.
func newChaosCluster(t *testing.T, bounds ...string) *cluster {
	oracle, err := tso.NewLocal(t.Context(), &tso.MemoryWindow{}, tso.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { oracle.Close() })
	return newClusterWith(t, oracle, kv.Options{RangeMaxBytes: 4 << 10}, bounds...)
}

// chaosRun lets clients run for a while, then checks receipts and locks. step is one transaction of a client; it must
// insert its receipt.
func chaosRun(t *testing.T, c *cluster, step func(x *chaosClient, receipt []byte) chaosOutcome) *DB {
	t.Helper()
	var stop atomic.Bool
	var mu sync.Mutex
	reported := map[string]chaosOutcome{}
	count := map[chaosOutcome]int{}
	var wg sync.WaitGroup
	for i := range 6 {
		x := &chaosClient{t: t, c: c, r: rand.New(rand.NewPCG(uint64(i), 3)), seed: uint64(i) << 32}
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				receipt := fmt.Sprintf("%c-receipt-%d-%d", 'a'+x.r.IntN(26), i, n)
				outcome := step(x, []byte(receipt))
				mu.Lock()
				reported[receipt] = outcome
				count[outcome]++
				mu.Unlock()
			}
			for _, end := range x.ended {
				end()
			}
		})
	}
	committed := func() int {
		mu.Lock()
		defer mu.Unlock()
		return count[chaosCommitted]
	}
	for begun := time.Now(); time.Since(begun) < 1500*time.Millisecond || committed() < 20 && time.Since(begun) < time.Minute; {
		time.Sleep(10 * time.Millisecond) // The duration of the run: faults are injected by time and by chance.
	}
	stop.Store(true)
	wg.Wait()
	ranges := 0
	for i := range c.stores {
		n, _ := c.store(i).NumRanges(t.Context())
		ranges += n
	}
	t.Logf("%d committed, %d failed, %d unknown, %d ranges", count[chaosCommitted], count[chaosFailed], count[chaosUnknown], ranges)
	if count[chaosCommitted] < 20 {
		t.Errorf("only %d transactions committed", count[chaosCommitted])
	}
	db := c.db(Options{}, nil)
	checkReceipts(t, db, reported)
	db.waitIdle()
	return db
}

// checkReceipts compares what was reported with the contents, twice: unknown outcomes must not change any more.
func checkReceipts(t *testing.T, db *DB, reported map[string]chaosOutcome) {
	t.Helper()
	time.Sleep(2 * chaosOptions.LockTTL) // running transactions have ended, those of crashed clients expire
	var found [2]map[string]bool
	for i := range found {
		found[i] = map[string]bool{}
		ctx := context.Background()
		it := mustBegin(t, db).Scan(ctx, kv.Span{}, ScanOptions{})
		for it.Next(ctx) {
			found[i][string(it.Key())] = true
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
		it.Close()
		db.waitIdle()
	}
	for receipt, outcome := range reported {
		if found[0][receipt] != found[1][receipt] {
			t.Errorf("%s changed its mind", receipt)
		}
		if outcome != chaosUnknown && found[0][receipt] != (outcome == chaosCommitted) {
			t.Errorf("%s: reported %v, found %v", receipt, outcome, found[0][receipt])
		}
	}
}

// Goal: the total is constant in every snapshot, whatever happens to requests and coordinators; and I4. Method:
// transfers between accounts on one store and on three, every client over a network that loses, repeats and delays;
// audits in between; receipts at the end.
func TestBankUnderChaos(t *testing.T) {
	for _, bounds := range [][]string{nil, {"i", "r"}} {
		t.Run(fmt.Sprintf("stores=%d", len(bounds)+1), func(t *testing.T) {
			const accounts = 9
			account := func(i int) []byte { return fmt.Appendf(nil, "%c-account", 'a'+i*26/accounts) }
			c := newChaosCluster(t, bounds...)
			setup := mustBegin(t, c.db(Options{}, nil))
			for i := range accounts {
				mustPut(t, setup, string(account(i))+"=100")
			}
			mustCommit(t, setup)
			audit := func(ctx context.Context, r Reader, reverse bool) error {
				total := 0
				it := r.Scan(ctx, kv.Span{}, ScanOptions{Reverse: reverse})
				defer it.Close()
				for it.Next(ctx) {
					if strings.HasSuffix(string(it.Key()), "-account") {
						n, err := strconv.Atoi(string(it.Value()))
						if err != nil {
							return err
						}
						total += n
					}
				}
				if it.Err() == nil && total != 100*accounts {
					t.Errorf("total %d", total)
				}
				return it.Err()
			}
			db := chaosRun(t, c, func(x *chaosClient, receipt []byte) chaosOutcome {
				return x.run(func(ctx context.Context, txn *Txn) error {
					if x.r.IntN(10) == 0 {
						if err := audit(ctx, txn, x.r.IntN(2) == 0); err != nil {
							return err
						}
					} else if err := move(ctx, txn, account(x.r.IntN(accounts)), account(x.r.IntN(accounts))); err != nil {
						return err
					}
					return txn.Insert(receipt, []byte("x"))
				})
			})
			if err := audit(t.Context(), mustBegin(t, db), false); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func move(ctx context.Context, txn *Txn, from, to []byte) error {
	if string(from) == string(to) {
		return nil
	}
	values, err := txn.BatchGet(ctx, [][]byte{from, to})
	if err != nil {
		return err
	}
	a, errA := strconv.Atoi(string(values[0]))
	b, errB := strconv.Atoi(string(values[1]))
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	return errors.Join(txn.Put(from, strconv.AppendInt(nil, int64(a-1), 10)), txn.Put(to, strconv.AppendInt(nil, int64(b+1), 10)))
}

// Goal: dependent updates are never lost or partial. Method: keys that form one ring, each with the number of the next;
// a transaction swaps the two inner ones of four neighbours. After any commit all keys still form one ring.
func TestRingUnderChaos(t *testing.T) {
	const length = 12
	node := func(i int) []byte { return fmt.Appendf(nil, "%c-node-%02d", 'a'+i*26/length, i) }
	c := newChaosCluster(t, "i", "r")
	setup := mustBegin(t, c.db(Options{}, nil))
	for i := range length {
		mustPut(t, setup, fmt.Sprintf("%s=%d", node(i), (i+1)%length))
	}
	mustCommit(t, setup)
	next := func(ctx context.Context, r Reader, i int) (int, error) {
		value, err := r.Get(ctx, node(i))
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(string(value))
	}
	db := chaosRun(t, c, func(x *chaosClient, receipt []byte) chaosOutcome {
		return x.run(func(ctx context.Context, txn *Txn) error {
			var ring [4]int // ring[0] → ring[1] → ring[2] → ring[3] becomes 0 → 2 → 1 → 3
			ring[0] = x.r.IntN(length)
			for i := 1; i < 4; i++ {
				var err error
				if ring[i], err = next(ctx, txn, ring[i-1]); err != nil {
					return err
				}
			}
			for _, link := range [][2]int{{0, 2}, {2, 1}, {1, 3}} {
				if err := txn.Put(node(ring[link[0]]), strconv.AppendInt(nil, int64(ring[link[1]]), 10)); err != nil {
					return err
				}
			}
			return txn.Insert(receipt, []byte("x"))
		})
	})
	seen := map[int]bool{}
	txn := mustBegin(t, db)
	for at := 0; !seen[at]; {
		seen[at] = true
		var err error
		if at, err = next(t.Context(), txn, at); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != length {
		t.Errorf("a ring of %d, want %d", len(seen), length)
	}
}
