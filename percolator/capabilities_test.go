package percolator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// plainShard states no capability, and reports every request that needs one.
type plainShard struct {
	kv.Shard
	t *testing.T
}

func (p plainShard) Capabilities() kv.Capabilities { return kv.Capabilities{} }

func (p plainShard) GetLatest(context.Context, kv.RangeRef, []byte, tso.Timestamp) (kv.LatestValue, error) {
	p.t.Error("GetLatest")
	return kv.LatestValue{}, kv.ErrUnsupported
}

func (p plainShard) WaitForRelease(context.Context, []byte, tso.Timestamp) error {
	p.t.Error("WaitForRelease")
	return kv.ErrUnsupported
}

func (p plainShard) CommitLarge(context.Context, *kv.CommitLargeRequest) (kv.CommitLargeResponse, error) {
	p.t.Error("CommitLarge")
	return kv.CommitLargeResponse{}, kv.ErrUnsupported
}

func (p plainShard) Prewrite(ctx context.Context, req *kv.PrewriteRequest) (kv.PrewriteResponse, error) {
	if req.TryOnePC || req.Async {
		p.t.Errorf("prewrite with TryOnePC %v, Async %v", req.TryOnePC, req.Async)
	}
	return p.Shard.Prewrite(ctx, req)
}

func (p plainShard) AcquireLocks(ctx context.Context, req *kv.AcquireLocksRequest) (kv.AcquireLocksResponse, error) {
	at := *req
	at.Wait = 0
	return p.Shard.AcquireLocks(ctx, &at)
}

// Goal: a shard receives no request that needs an unstated capability, and transactions work without: commits on one
// shard and on two, large ones, reads of the latest value, waits for locks, with and without a limit. Method: a shard
// that states nothing and reports a request that needs more.
func TestShardWithoutCapabilities(t *testing.T) {
	ctx := t.Context()
	c := newCluster(t, nil, "m")
	db := c.db(Options{SpillBytes: 1 << 10, TempDir: t.TempDir()}, func(s kv.Shard) kv.Shard { return plainShard{s, t} })
	for _, pairs := range [][]string{{"a=1"}, {"a=2", "z=2"}} {
		txn := mustBegin(t, db)
		mustPut(t, txn, pairs...)
		mustCommit(t, txn)
	}
	large := mustBegin(t, db)
	for i := range 200 {
		mustPut(t, large, "large"+string(rune('a'+i%26))+string(rune('a'+i/26))+"=0123456789")
	}
	mustCommit(t, large)
	if v, err := db.Get(ctx, []byte("z")); string(v) != "2" || err != nil {
		t.Errorf("latest value: %q %v", v, err)
	}
	if got := mustGet(t, mustBegin(t, db), "largeaa"); got != "0123456789" {
		t.Errorf("a key of the large commit: %s", got)
	}

	holder, err := db.BeginTxn(ctx, TxnOptions{Pessimistic: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.AcquireLocks(ctx, LockOptions{}, []byte("a")); err != nil {
		t.Fatal(err)
	}
	limited, err := db.BeginTxn(ctx, TxnOptions{Pessimistic: true, LockTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var unavailable *LockNotAvailableError
	if _, err := limited.AcquireLocks(ctx, LockOptions{}, []byte("a")); !errors.As(err, &unavailable) || !unavailable.Timeout {
		t.Errorf("a wait with a limit ended with %v", err)
	}
	limited.Rollback(ctx)
	patient, err := db.BeginTxn(ctx, TxnOptions{Pessimistic: true})
	if err != nil {
		t.Fatal(err)
	}
	granted := make(chan error, 1)
	go func() {
		_, err := patient.AcquireLocks(ctx, LockOptions{}, []byte("a"))
		granted <- err
	}()
	mustPut(t, holder, "a=3")
	mustCommit(t, holder)
	if err := <-granted; err != nil && !errors.Is(err, ErrRestartStatement) {
		t.Errorf("a wait without a limit ended with %v", err)
	}
	mustPut(t, patient, "a=4")
	mustCommit(t, patient)
	if got := mustGet(t, mustBegin(t, db), "a"); got != "4" {
		t.Errorf("a is %s", got)
	}
}
