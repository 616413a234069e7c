package kv

import (
	"github.com/percodb/percodb/internal/errkind"
)

// Capabilities state what a shard does beyond the requests that every shard answers. They do not change while
// the shard is open. The zero value describes a shard that is reached over a network and takes every transaction
// through two phases; what a shard does not state, nobody asks of it.
type Capabilities struct {
	// ExactlyOnce: a request is carried out once, and it has ended when its call returns. Without it a request may
	// arrive twice, and as late as it likes, whatever its caller was told.
	ExactlyOnce bool
	// OnePhase: Prewrite honours TryOnePC. Async: Prewrite honours Async.
	OnePhase, Async bool
	// ReadLatest: GetLatest is answered.
	ReadLatest bool
	// LockQueue: AcquireLocks waits in a queue for up to Wait. Without it the answer is *mvcc.KeyLockedError at once.
	LockQueue bool
	// WaitForRelease: WaitForRelease is answered.
	WaitForRelease bool
	// LargeCommit: CommitLarge is answered.
	LargeCommit bool
}

// ErrUnsupported answers a request that the shard's Capabilities exclude. Nothing was done.
var ErrUnsupported = errkind.New(errkind.Unsupported, "kv: the shard does not state the capability for this request")
