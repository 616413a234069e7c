package bigtable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/percolator"
)

// hinting are processes over one table in memory, with the clock of a bubble, and the hints between them.
type hinting struct {
	t      *testing.T
	oracle *tsotest.ClockOracle
	shards map[uint64]*Shard
	dbs    map[uint64]*percolator.DB
	table  forgetfulTable

	mu   sync.Mutex
	log  []string                            // of the hints sent
	lose func(h notify.LockHint) (lost bool) // nil: none are lost
}

// forgetfulTable loses the answers of conditional requests.
type forgetfulTable struct {
	widerow.Table
	lose atomic.Int32 // how many
}

func (f *forgetfulTable) CheckAndMutate(ctx context.Context, row string, predicate widerow.Filter, matched, unmatched *widerow.Mutation) (bool, error) {
	made, err := f.Table.CheckAndMutate(ctx, row, predicate, matched, unmatched)
	if f.lose.Add(-1) >= 0 {
		return false, status.Error(codes.Unavailable, "lost")
	}
	return made, err
}

func newHinting(t *testing.T, processes ...uint64) *hinting {
	h := &hinting{t: t, oracle: &tsotest.ClockOracle{}, shards: map[uint64]*Shard{}, dbs: map[uint64]*percolator.DB{}}
	h.table.Table = widerow.NewMemory()
	for _, p := range processes {
		shard, err := NewShard(t.Context(), NewClient(&h.table, time.Minute), ShardOptions{Oracle: h.oracle})
		if err != nil {
			t.Fatal(err)
		}
		shard.ConnectHints(func(hint notify.LockHint) { h.send(p, hint) })
		h.shards[p], h.dbs[p] = shard, percolator.New(NewRouter(shard), h.oracle, percolator.Options{Process: p})
	}
	return h
}

func (h *hinting) close() {
	for _, db := range h.dbs {
		if err := db.Close(); err != nil {
			h.t.Error(err)
		}
	}
}

func (h *hinting) send(from uint64, hint notify.LockHint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	what := "asks"
	if hint.Released {
		what = "released"
	}
	text := fmt.Sprintf("%d %s %d %s", from, what, hint.Process, hint.Key)
	if h.lose != nil && h.lose(hint) {
		h.log = append(h.log, text+" lost")
		return
	}
	h.log = append(h.log, text)
	to := h.shards[hint.Process]
	hint.Process = from
	go to.ReceiveHint(hint)
}

// sent returns the hints sent since the last call.
func (h *hinting) sent() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	log := fmt.Sprint(h.log)
	h.log = nil
	return log
}

// hold begins a transaction of a process that locks keys.
func (h *hinting) hold(process uint64, keys ...string) *percolator.Txn {
	h.t.Helper()
	txn, err := h.dbs[process].BeginTxn(h.t.Context(), percolator.TxnOptions{Pessimistic: true})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, key := range keys {
		if _, err := txn.AcquireLocks(h.t.Context(), percolator.LockOptions{}, []byte(key)); err != nil {
			h.t.Fatal(err)
		}
	}
	return txn
}

// wait begins a transaction of a process that waits for a key. When it has the lock it ends, and the time since began is sent.
func (h *hinting) wait(process uint64, key string, began time.Time) <-chan time.Duration {
	txn := h.hold(process)
	got := make(chan time.Duration, 1)
	go func() {
		_, err := txn.AcquireLocks(h.t.Context(), percolator.LockOptions{}, []byte(key))
		if err != nil && !errors.Is(err, percolator.ErrRestartStatement) {
			h.t.Error(err)
		}
		took := time.Since(began)
		if err := txn.Rollback(h.t.Context()); err != nil {
			h.t.Error(err)
		}
		got <- took
	}()
	return got
}

// ends are the ways by which a transaction that has locked k ends.
var ends = map[string]func(context.Context, *percolator.Txn) error{
	"commit": func(ctx context.Context, txn *percolator.Txn) error {
		err := txn.Put([]byte("k"), []byte("v"))
		if err == nil {
			_, err = txn.Commit(ctx)
		}
		return err
	},
	"rollback": func(ctx context.Context, txn *percolator.Txn) error { return txn.Rollback(ctx) },
}

// Goal: a waiter has the row of another process as soon as its lock is gone, however it goes, also after several waits of the shard; two messages are sent. Method: two shards with
// the clock of a bubble: polls would come later, those of the first 30 ms apart.
func TestHintWakesTheWaiter(t *testing.T) {
	for name, end := range ends {
		for _, after := range []time.Duration{7 * time.Millisecond, 133 * time.Millisecond, 517 * time.Millisecond, 2203 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHinting(t, 1, 2)
					defer h.close()
					began := time.Now()
					holder := h.hold(1, "k")
					got := h.wait(2, "k", began)
					time.Sleep(after) // in the bubble's time
					if err := end(t.Context(), holder); err != nil {
						t.Fatal(err)
					}
					if took := <-got; took != after {
						t.Errorf("the waiter had the row after %v", took)
					}
					received, sent := counted(t, h.shards[2].c.metrics.hintsReceived), counted(t, h.shards[1].c.metrics.hintsSent)
					if received != 1 || sent != 1 {
						t.Errorf("%d hints were sent, %d received", sent, received)
					}
				})
			})
		}
	}
}

// Goal: a lost hint costs the waiter no more than its next poll, and a lost question is asked again; while nobody of another process waits nothing is sent. Method: hints
// that are lost, in a bubble.
func TestLostHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHinting(t, 1, 2)
		defer h.close()
		for range 100 {
			holder := h.hold(1, "k")
			got := h.wait(1, "k", time.Now())
			time.Sleep(5 * time.Millisecond) // in the bubble's time
			if err := holder.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-got
		}
		if sent := h.sent(); sent != "[]" {
			t.Errorf("without waiters of other processes: %v", sent)
		}

		h.lose = func(hint notify.LockHint) bool { return hint.Released }
		began, holder := time.Now(), h.hold(1, "k")
		got := h.wait(2, "k", began)
		time.Sleep(133 * time.Millisecond) // in the bubble's time
		if err := holder.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := <-got; took > 133*time.Millisecond+pollMost {
			t.Errorf("the waiter had the row after %v", took)
		}
		if sent := h.sent(); sent != "[2 asks 1 k 1 released 2 k lost]" {
			t.Errorf("a lost answer: %v", sent)
		}

		questions := 0
		h.lose = func(hint notify.LockHint) bool { questions++; return questions == 1 }
		began, holder = time.Now(), h.hold(1, "k")
		got = h.wait(2, "k", began)
		time.Sleep(333 * time.Millisecond) // in the bubble's time
		if err := holder.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := <-got; took != 333*time.Millisecond {
			t.Errorf("the waiter had the row after %v", took)
		}
		if sent := h.sent(); sent != "[2 asks 1 k lost 2 asks 1 k 1 released 2 k]" {
			t.Errorf("a lost question: %v", sent)
		}
	})
}

// Goal: the hint is also sent when the removal of the lock was not answered, and the lock is found to be gone. Method: a table that loses the answer of the release, and of the commit.
func TestHintAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHinting(t, 1, 2)
		defer h.close()
		for name, end := range ends {
			holder := h.hold(1, "k")
			start := holder.StartTS()
			h.shards[1].ReceiveHint(notify.LockHint{Process: 2, Holder: start, Key: []byte("k")})
			lost := map[string]int32{"commit": 2, "rollback": 1}[name] // of a commit, those of the prewrite and of the commit point
			h.table.lose.Store(lost)
			if err := end(t.Context(), holder); err != nil {
				t.Fatal(err)
			}
			if sent := h.sent(); sent != "[1 released 2 k]" {
				t.Errorf("%s: %v", name, sent)
			}
		}
	})
}

// Goal: a process asks once for all of its waiters for a row, and they get it one after another. Method: ten waiters in a bubble; the hints sent.
func TestOneHintForManyWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHinting(t, 1, 2)
		defer h.close()
		holder := h.hold(1, "k")
		var all []<-chan time.Duration
		for range 10 {
			all = append(all, h.wait(2, "k", time.Now()))
		}
		time.Sleep(133 * time.Millisecond) // in the bubble's time
		if err := holder.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, got := range all {
			<-got
		}
		if sent := h.sent(); sent != "[2 asks 1 k 1 released 2 k]" {
			t.Error(sent)
		}
	})
}

// Goal: a question about a transaction that is gone, or never was, is answered at once and leaves nothing; a late answer does nothing; what is remembered of waiters is
// bounded, and forgotten when nobody asks any more. Method: hints as they may arrive, in a bubble.
func TestHintsOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHinting(t, 1, 2)
		defer h.close()
		shard := h.shards[1]
		holder := h.hold(1, "k")
		start := holder.StartTS()
		if err := holder.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		shard.ReceiveHint(notify.LockHint{Process: 2, Holder: start, Key: []byte("k")})
		shard.ReceiveHint(notify.LockHint{Process: 2, Holder: 7, Key: []byte("never")})
		shard.ReceiveHint(notify.LockHint{Process: 2, Holder: start, Key: []byte("k"), Released: true})
		if sent := h.sent(); sent != "[1 released 2 k 1 released 2 never]" || shard.awaited.count.Load() != 0 {
			t.Errorf("%v, %d locks are awaited", sent, shard.awaited.count.Load())
		}

		for i := range maxAwaited + 10 {
			shard.awaited.add(fmt.Append(nil, i), start, uint64(i))
		}
		for i := range uint64(2 * maxAwaitedBy) {
			shard.awaited.add([]byte("0"), start, i)
		}
		if n, by := shard.awaited.count.Load(), len(shard.awaited.take([]byte("0"), start)); n != maxAwaited || by != maxAwaitedBy {
			t.Errorf("%d locks are awaited, the first by %d processes", n, by)
		}
		time.Sleep(awaitedFor + 1) // in the bubble's time
		shard.awaited.add([]byte("k"), start, 2)
		if n := shard.awaited.count.Load(); n != 1 {
			t.Errorf("%d locks are awaited", n)
		}
		if n := len(shard.wakeup.keys); n != 0 {
			t.Errorf("%d keys are waited for", n)
		}
	})
}
