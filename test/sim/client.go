package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/test/history"
	"github.com/percodb/percodb/tso"
)

// client is a session that runs transactions one after the other, in processes that die.
type client struct {
	w    *world
	id   int
	rng  *rand.Rand
	life int

	mu     sync.Mutex
	p      *process
	db     *percolator.DB
	router kv.Router
	dbs    []*percolator.DB // of all processes
	cancel context.CancelFunc
}

func (w *world) newClient(id int) *client {
	return &client{w: w, id: id, rng: rand.New(rand.NewPCG(w.seed, 1000+uint64(id)))}
}

func (c *client) process() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.p
}

// cancelCurrent cancels the context of the running transaction, if there is one.
func (c *client) cancelCurrent() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
	return fmt.Sprintf("c%d", c.id)
}

// connect gives the client a new process if it has none that runs.
func (c *client) connect() error {
	w := c.w
	c.mu.Lock()
	defer c.mu.Unlock()
	w.mu.Lock()
	alive := c.p != nil && !c.p.dead
	w.mu.Unlock()
	if alive {
		return nil
	}
	c.life++
	p := &process{id: c.id<<16 | c.life, name: fmt.Sprintf("c%d.%d", c.id, c.life), w: w, cut: map[*node]bool{}, sent: map[string]int{}}
	router, err := w.router(p)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	jitter := rand.New(rand.NewPCG(w.seed, uint64(p.id)))
	spillBytes := int64(0) // the default
	if w.plan.spills {
		spillBytes = 1
	}
	packLocks := 0 // the default
	if w.plan.packsHeld {
		packLocks = 1
	}
	db := percolator.New(router, w.brokenOracle(oracleConn{p}), percolator.Options{
		RetryBudget: 4 * w.plan.lockTTL, ProbeTimeout: w.plan.lockTTL, LockTTL: w.plan.lockTTL, Workers: 1, MaxPageRows: 3,
		DisableAsyncCommit: w.plan.noAsync, SpillBytes: spillBytes, PackLocks: packLocks,
		Jitter: func(n time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(jitter.Int64N(int64(n)))
		},
	})
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	c.p, c.db, c.router = p, db, router
	c.dbs = append(c.dbs, db)
	return nil
}

// router returns a process's router: in a cluster with the directory and a separate cache.
func (w *world) router(p *process) (kv.Router, error) {
	switch {
	case w.plan.table:
		return &tableRouter{p: p}, nil
	case w.plan.embedded:
		return &embeddedRouter{p: p, n: w.nodes[0]}, nil
	}
	return kv.NewRouter(kv.RouterOptions{
		Directory: w.directory,
		Dial: func(_ context.Context, info kv.ShardInfo) (kv.Shard, error) {
			for _, n := range w.nodes {
				if n.name == info.ID {
					return w.brokenShard(p, &shardConn{p, n}), nil
				}
			}
			return nil, fmt.Errorf("no node %s", info.ID)
		},
	})
}

// embeddedRouter is the router of a process that contains the store.
type embeddedRouter struct {
	p *process
	n *node
}

func (r *embeddedRouter) router() (kv.Router, error) {
	w := r.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.n.store == nil || r.p.dead {
		return nil, &kv.UnavailableError{Shard: r.n.name, Err: errDown}
	}
	return r.n.store.Router(), nil
}

func (r *embeddedRouter) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	router, err := r.router()
	if err != nil {
		return nil, nil, err
	}
	desc, _, err := router.Locate(ctx, key)
	return desc, r.p.w.brokenShard(r.p, &shardConn{r.p, r.n}), err
}

func (r *embeddedRouter) LocateEnd(ctx context.Context, end []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	router, err := r.router()
	if err != nil {
		return nil, nil, err
	}
	desc, _, err := router.LocateEnd(ctx, end)
	return desc, r.p.w.brokenShard(r.p, &shardConn{r.p, r.n}), err
}

func (r *embeddedRouter) Invalidate(*kv.StaleRangeError)             {}
func (r *embeddedRouter) CreateRange(context.Context, kv.Span) error { return nil }
func (r *embeddedRouter) Ranges(ctx context.Context) ([]kv.RangeDescriptor, error) {
	router, err := r.router()
	if err != nil {
		return nil, err
	}
	return router.Ranges(ctx)
}
func (r *embeddedRouter) RangeSizes(context.Context) (map[uint64]int64, error) {
	return nil, errors.New("not asked for in these tests")
}

// run is the client's loop: it pauses, runs a transaction, and repeats.
func (c *client) run() {
	for n := 0; n < c.w.plan.txns && !c.w.stopping.Load(); n++ {
		time.Sleep(time.Duration(c.rng.Int64N(int64(5*c.w.plan.latency)) + 1))
		if err := c.connect(); err != nil {
			c.w.problem("connect: %v", err)
			return
		}
		c.w.workload.step(c)
	}
}

// close ends all processes of the client.
func (c *client) close() {
	c.mu.Lock()
	dbs := c.dbs
	c.mu.Unlock()
	for _, db := range dbs {
		if err := db.Close(); err != nil {
			c.w.problem("close c%d: %v", c.id, err)
		}
	}
}

// attempt is one transaction as its client observed it.
type attempt struct {
	history.Txn
	err      error
	startTS  tso.Timestamp
	commitTS tso.Timestamp
}

// transact runs body as one transaction and returns the outcome that the client knows.
func (c *client) transact(opts percolator.TxnOptions, body func(ctx context.Context, x *txn) error) (a attempt) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.mu.Lock()
	db := c.db
	c.cancel = cancel
	c.mu.Unlock()
	a.Session, a.Begin, a.Outcome = c.id, c.w.clock.Add(1), history.Aborted
	inner, err := db.BeginTxn(ctx, opts)
	if err == nil {
		x := &txn{Txn: inner, c: c, a: &a}
		a.startTS = inner.StartTS()
		if err = body(ctx, x); err == nil {
			err = x.closeCursor(ctx, c.rng.IntN(4) > 0)
		}
		if err != nil {
			_ = inner.Rollback(context.WithoutCancel(ctx)) // locks that it could not release expire
		} else {
			a.commitTS, err = inner.Commit(ctx)
		}
		if err != nil && x.cursor != nil {
			x.cursor.it.Close()
		}
		a.Ops = dropUnread(a.Ops)
		a.Note = fmt.Sprintf("start_ts %d, read_ts %d, commit_ts %d", a.startTS, inner.ReadTS(), a.commitTS)
	}
	a.End, a.err = c.w.clock.Add(1), err
	c.w.txns.Add(1)
	if conflict, ok := errkind.As[*mvcc.WriteConflictError](err); ok && conflict.Cause != mvcc.CauseWrite {
		c.w.expired.Add(1)
	}
	switch {
	case err == nil:
		a.Outcome = history.Committed
		c.w.committed.Add(1)
	case errkind.Of(err) == errkind.Undetermined:
		a.Outcome = history.Unknown
	case !expected(err) && !(c.w.plan.collects && tooOld(err)):
		c.w.problem("c%d, transaction %d: unexpected error %v", c.id, a.startTS, err)
	}
	if err != nil {
		a.Note += fmt.Sprintf(", %v", err)
	}
	c.w.notef("c%d.%d: transaction %d is %v (%s) %v", c.id, c.life, a.startTS, a.Outcome, a.Note, a.Ops)
	return a
}

// expected reports whether a transaction may end with err in a world like this one.
func expected(err error) bool {
	switch errkind.Of(err) {
	case errkind.WriteConflict, errkind.ReadConflict, errkind.Locked, errkind.LockNotAvailable, errkind.LockLost, errkind.Deadlock,
		errkind.Exists, errkind.Unavailable, errkind.OracleUnavailable, errkind.StaleRoute, errkind.Closed:
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, errGiveUp) || errors.Is(err, errBusiness)
}

// notAvailable reports that a lock could not be acquired, which ends a statement and not its transaction.
func notAvailable(err error) bool {
	return errkind.Of(err) == errkind.LockNotAvailable
}

// tooOld reports that the transaction's snapshot is below the safe point.
func tooOld(err error) bool {
	return errkind.Of(err) == errkind.TooOld
}

var (
	errGiveUp   = errors.New("the statement was run too often")
	errBusiness = errors.New("the transaction has changed its mind")
)

// txn is a running transaction, with the record of its statements.
type txn struct {
	*percolator.Txn
	c      *client
	a      *attempt
	cursor *cursor // nil: none is open
}

// statement runs body as one statement, and again if a wait for a lock has advanced the snapshot: the record of the
// first attempt is then dropped.
func (x *txn) statement(ctx context.Context, body func() error) error {
	sp, ops := x.Savepoint(), len(x.a.Ops)
	if err := x.BeginStatement(ctx); err != nil {
		return err
	}
	if err := x.readOn(ctx, x.c.ahead()); err != nil {
		return err
	}
	for range 50 {
		err := body()
		if !errors.Is(err, percolator.ErrRestartStatement) {
			return err
		}
		x.c.w.notef("c%d: transaction %d runs a statement again, at %d", x.c.id, x.a.startTS, x.ReadTS())
		x.RestartStatement(sp)
		x.a.Ops = x.a.Ops[:ops]
		if err := x.BeginStatement(ctx); err != nil {
			return err
		}
	}
	return errGiveUp
}

// lock acquires a pessimistic transaction's locks on keys that it is about to write; optimistic transactions find
// conflicts at commit.
func (x *txn) lock(ctx context.Context, keys ...string) error {
	if !x.Pessimistic() {
		return nil
	}
	raw := make([][]byte, len(keys))
	for i, key := range keys {
		raw[i] = []byte(key)
	}
	_, err := x.AcquireLocks(ctx, percolator.LockOptions{}, raw...)
	return err
}

// lockNew is lock for keys that are about to be inserted, which pessimistic transactions do as INSERT does: an existing
// key is an error at once.
func (x *txn) lockNew(ctx context.Context, keys ...string) error {
	if !x.Pessimistic() {
		return nil
	}
	raw := make([][]byte, len(keys))
	for i, key := range keys {
		raw[i] = []byte(key)
	}
	taken, err := x.LockNew(ctx, raw...)
	if err != nil || taken < 0 {
		return err
	}
	return &mvcc.KeyExistsError{Key: raw[taken]}
}

func (x *txn) getInt(ctx context.Context, key string) (n int64, found bool, err error) {
	value, err := x.Get(ctx, []byte(key))
	if err != nil || value == nil {
		return 0, false, err
	}
	n, err = strconv.ParseInt(string(value), 10, 64)
	return n, true, err
}

func (x *txn) putInt(key string, n int64) error {
	return x.Put([]byte(key), strconv.AppendInt(nil, n, 10))
}

// ahead is the number of rows by which an open cursor is advanced when a statement begins.
func (c *client) ahead() int { return c.rng.IntN(3) }

// cutUp returns all keys as one span, or as several adjacent ones.
func (c *client) cutUp() []kv.Span {
	spans := []kv.Span{{}}
	for i := range numLists {
		if last := &spans[len(spans)-1]; c.rng.IntN(4) == 0 && string(last.Start) < list(i) {
			last.End = []byte(list(i))
			spans = append(spans, kv.Span{Start: []byte(list(i))})
		}
	}
	return spans
}

// scanInts reads the numbers of all keys with a prefix.
func scanInts(ctx context.Context, r percolator.Reader, span kv.Span, suffix string, reverse bool) (map[string]int64, error) {
	values := map[string]int64{}
	it := r.Scan(ctx, span, percolator.ScanOptions{Reverse: reverse})
	defer it.Close()
	for it.Next(ctx) {
		if !strings.HasSuffix(string(it.Key()), suffix) {
			continue
		}
		n, err := strconv.ParseInt(string(it.Value()), 10, 64)
		if err != nil {
			return nil, err
		}
		values[string(it.Key())] = n
	}
	return values, it.Err()
}
