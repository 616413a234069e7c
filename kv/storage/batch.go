package storage

import (
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// Durability is the guarantee of a batch's Apply.
type Durability uint8

const (
	// NoSync: the batch survives a crash only once a later one has been synced.
	NoSync Durability = iota
	// Sync: the batch is durable once SyncWait has returned nil. Concurrent syncs share one.
	Sync
)

// MaxBatchBytes bounds a batch; Pebble's own limit is 4 GiB.
const MaxBatchBytes = math.MaxUint32 - 64<<20

// Batch is a set of changes applied at once. Used by one goroutine.
type Batch struct {
	e      *Engine
	b      *pebble.Batch
	synced bool // Apply(Sync) was called, SyncWait not yet
}

// NewBatch returns an empty batch with capacity for sizeHint bytes (0: default). The caller closes it.
func (e *Engine) NewBatch(sizeHint int) *Batch {
	b, _ := e.batches.Get().(*Batch)
	if b == nil {
		b = &Batch{e: e}
	}
	b.synced = false
	if sizeHint > 0 {
		b.b = e.db.NewBatchWithSize(sizeHint)
	} else {
		b.b = e.db.NewBatch()
	}
	return b
}

// The mutators copy key and value. On a batch that is not applied they cannot fail: Pebble returns
// errors only for indexed batches.

// Put sets key to value.
func (b *Batch) Put(key, value []byte) { _ = b.b.Set(key, value, nil) }

// Delete removes key.
func (b *Batch) Delete(key []byte) { _ = b.b.Delete(key, nil) }

// DeleteRange removes all keys of [lower, upper). Its cost does not depend on their number, but reads near them are a
// little slower until compactions have removed them.
func (b *Batch) DeleteRange(lower, upper []byte) { _ = b.b.DeleteRange(lower, upper, nil) }

// Len returns the size of the batch in bytes.
func (b *Batch) Len() int { return b.b.Len() }

// Empty reports whether the batch holds no change.
func (b *Batch) Empty() bool { return b.b.Empty() }

// Apply makes the batch visible. After Apply(Sync) the caller must call SyncWait before Close,
// whether or not Apply failed.
func (e *Engine) Apply(b *Batch, d Durability) (err error) {
	if err := e.Err(); err != nil {
		return err
	}
	if b.b.Empty() {
		return nil
	}
	defer e.recoverFailure(&err)
	if d == Sync {
		e.syncs.Add(1)
		err = e.db.ApplyNoSyncWait(b.b, pebble.Sync)
		b.synced = err == nil
	} else {
		err = e.db.Apply(b.b, pebble.NoSync)
	}
	e.applied.Add(1)
	e.written.Add(uint64(b.b.Len()))
	if err != nil {
		return e.fail(err)
	}
	return e.Err()
}

// SyncWait returns once an applied batch is durable.
func (b *Batch) SyncWait() error {
	if !b.synced {
		return b.e.Err()
	}
	b.synced = false
	if err := b.b.SyncWait(); err != nil {
		return b.e.fail(err)
	}
	return nil
}

// Close releases the batch.
func (b *Batch) Close() {
	if b.synced {
		_ = b.SyncWait() // the engine has recorded the failure
	}
	// A batch whose write failed may still be referenced by the commit queue: do not reuse it.
	if b.e.Err() == nil {
		_ = b.b.Close()
	}
	b.b = nil
	b.e.batches.Put(b)
}
