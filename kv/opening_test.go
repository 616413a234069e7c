package kv

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/percodb/percodb/tso"
)

// restarting fails the first call of each kind as an oracle process does that is being restarted.
type restarting struct {
	mu     sync.Mutex
	failed map[string]bool
}

func (r *restarting) first(call string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.failed[call] = true }()
	return !r.failed[call]
}

type restartingOracle struct {
	tso.Oracle
	*restarting
}

func (o restartingOracle) Now(ctx context.Context) (tso.Timestamp, error) {
	if o.first("now") {
		return 0, &tso.UnavailableError{Err: errors.New("connection reset")}
	}
	return o.Oracle.Now(ctx)
}

type restartingDirectory struct {
	Directory
	*restarting
}

func (d restartingDirectory) Announce(ctx context.Context, a *Announcement) (*Membership, error) {
	if d.first("announce") {
		return nil, &UnavailableError{Err: errors.New("connection reset")}
	}
	return d.Directory.Announce(ctx, a)
}

func (d restartingDirectory) RegisterShard(ctx context.Context, reg *Registration) ([]RangeDescriptor, error) {
	if d.first("register") {
		return nil, &UnavailableError{Err: errors.New("connection reset")}
	}
	return d.Directory.RegisterShard(ctx, reg)
}

// Goal: a store starts while the oracle process is being restarted. Method: the first call of each kind fails as
// unavailable.
func TestStoreStartsWhileTheOracleIsRestarted(t *testing.T) {
	c := newTestCluster(t, "a")
	r := &restarting{failed: map[string]bool{}}
	store, err := Open(context.Background(), Options{Dir: "b", FS: c.fs, ShardID: "b", Addr: "b",
		Oracle: restartingOracle{c.oracle, r}, Directory: restartingDirectory{c.dir, r}})
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.stores["b"] = store
	c.mu.Unlock()
	for _, call := range []string{"announce", "now", "register"} {
		if !r.failed[call] {
			t.Errorf("no call of %s failed", call)
		}
	}
}
