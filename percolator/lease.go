package percolator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// maxTxnLife is how long heartbeats keep a transaction alive that does not end.
const maxTxnLife = time.Hour

// lease keeps a transaction's locks from expiring, by renewing the TTL of its primary. It costs a timer
// until half a TTL has passed. Safe for concurrent use once begun.
type lease struct {
	db      *DB
	startTS tso.Timestamp
	primary []byte
	begun   time.Time
	// openMillis is how long the transaction had been open when the lease began: a TTL counts from the start_ts, so this
	// is added. ttlMillis is the extension by one heartbeat.
	openMillis, ttlMillis uint64

	// prewritten: from here on a missing primary means that others have rolled it back. Before, a lock that is
	// missing was in memory only, and its store has restarted.
	prewritten atomic.Bool
	// lockedAt is the timestamp as of which the primary was locked pessimistically, 0 if it was not; alone: not shared.
	lockedAt tso.Timestamp
	alone    bool
	// hold: the lock is a Hold's, which lives as long as its owner; else nil.
	hold *holdState
	// doomed: the transaction has been rolled back. It is advisory; the shard decides.
	doomed atomic.Bool

	mu struct {
		sync.Mutex
		timer   *time.Timer // nil: not begun, or over
		cancel  context.CancelFunc
		beating chan struct{} // closed when the heartbeat under way is over
	}
}

// begin sets the TTL of a transaction that has been open for openMillis and starts to renew it.
func (l *lease) begin(db *DB, startTS tso.Timestamp, primary []byte, openMillis, ttlMillis uint64) {
	l.db, l.startTS, l.primary = db, startTS, primary
	l.begun, l.openMillis, l.ttlMillis = time.Now(), openMillis, ttlMillis
	if l.hold != nil {
		l.hold.renew(l.begun)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.timer = time.AfterFunc(l.period(), l.beat)
}

func (l *lease) period() time.Duration { return time.Duration(l.ttlMillis) * time.Millisecond / 2 }

// ttl is the TTL for a lock that is taken now.
func (l *lease) ttl() uint64 {
	return l.openMillis + uint64(time.Since(l.begun).Milliseconds()) + l.ttlMillis
}

// running reports whether the lease has begun and not been stopped.
func (l *lease) running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.timer != nil
}

func (l *lease) beat() {
	l.mu.Lock()
	if l.mu.timer == nil || l.doomed.Load() || l.hold == nil && time.Since(l.begun) > maxTxnLife {
		l.mu.Unlock()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.period())
	beating := make(chan struct{})
	l.mu.cancel, l.mu.beating = cancel, beating
	l.mu.Unlock()

	start, prewritten := time.Now(), l.prewritten.Load()
	ttlMillis := l.ttlNow(ctx)
	err := l.send(ctx, ttlMillis)
	if errkind.Of(err) == errkind.LockNotFound && !prewritten && l.alone && l.hold == nil {
		err = l.lockAgain(ctx, ttlMillis)
	}
	cancel()
	if kind := errkind.Of(err); kind == errkind.RolledBack || prewritten && kind == errkind.LockNotFound {
		l.doomed.Store(true)
	}
	if l.hold != nil {
		l.beatHold(start, err)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.cancel, l.mu.beating = nil, nil
	close(beating)
	if l.mu.timer != nil && !l.doomed.Load() {
		l.mu.timer.Reset(l.period())
	}
}

// send raises the TTL once. Errors that may pass are left to the next beat, which finds the route
// corrected.
func (l *lease) send(ctx context.Context, ttlMillis uint64) error {
	desc, shard, err := l.db.router.Locate(ctx, l.primary)
	if err != nil {
		return err
	}
	l.db.metrics.heartbeats.Inc()
	_, err = shard.Heartbeat(ctx, &kv.HeartbeatRequest{Range: desc.Ref(), Primary: l.primary, StartTS: l.startTS, TTLMillis: ttlMillis,
		LeaseMillis: l.ttlMillis})
	l.routeFailed(err, desc)
	return err
}

func (l *lease) routeFailed(err error, desc *kv.RangeDescriptor) {
	l.db.forgetRoute(err, desc.Ref())
	if stale, ok := errkind.As[*kv.StaleRangeError](err); ok {
		l.db.router.Invalidate(stale)
	}
}

// ttlNow is ttl by the oracle's clock, by which other transactions determine expiry: a restart of the oracle moves it
// forward.
func (l *lease) ttlNow(ctx context.Context) uint64 {
	ttlMillis := l.ttl()
	if now, err := l.db.oracle.Now(ctx); err == nil {
		ttlMillis = max(ttlMillis, uint64(max(0, now.Physical()-l.startTS.Physical()))+l.ttlMillis)
	}
	return ttlMillis
}

// lockAgain acquires the primary's pessimistic lock again, which its store has lost. The transaction relies on it as
// before if nothing was committed on the key since; if something was, the commit detects it.
func (l *lease) lockAgain(ctx context.Context, ttlMillis uint64) error {
	desc, shard, err := l.db.router.Locate(ctx, l.primary)
	if err != nil {
		return err
	}
	req := &kv.AcquireLocksRequest{Ranges: []kv.RangeRef{desc.Ref()}, Keys: [][]byte{l.primary},
		Primary: l.primary, StartTS: l.startTS, ReadTS: l.lockedAt, TTLMillis: ttlMillis, LeaseMillis: l.ttlMillis, Process: l.db.opts.Process}
	_, err = shard.AcquireLocks(ctx, req)
	l.routeFailed(err, desc)
	return err
}

// stop ends the heartbeats and waits for the last. It may be called more than once, and on a lease
// that has not begun.
func (l *lease) stop() {
	l.mu.Lock()
	if l.mu.timer != nil {
		l.mu.timer.Stop()
		l.mu.timer = nil
	}
	cancel, beating := l.mu.cancel, l.mu.beating
	l.mu.Unlock()
	if beating != nil {
		cancel()
		<-beating
	}
}
