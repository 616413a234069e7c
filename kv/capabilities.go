package kv

import (
	"github.com/percodb/percodb/internal/errkind"
)

// Capabilities are the requests and guarantees of a shard beyond those of every shard. They do not change while the
// shard is open. The zero value describes a shard that is reached over a network and takes every transaction through two
// phases; callers do not use capabilities that a shard does not state.
type Capabilities struct {
	// ExactlyOnce: a request is executed once, and it has ended when its call returns. Otherwise a request may arrive
	// twice, and arbitrarily late, whatever was returned to the caller.
	ExactlyOnce bool
	// OnePhase: Prewrite honours TryOnePC. Async: Prewrite honours Async.
	OnePhase, Async bool
	// ReadLatest: GetLatest is answered.
	ReadLatest bool
	// LockQueue: AcquireLocks waits in a queue for up to Wait. LockWait: it waits, in no order. Without either the answer is
	// *mvcc.KeyLockedError at once.
	LockQueue, LockWait bool
	// WaitForRelease: WaitForRelease is answered.
	WaitForRelease bool
	// ReadFence: the shard remembers the timestamps that it has served reads at, and the MinCommitTS of every later
	// prewrite lies above them. Without it MinCommitTS lies above the transaction's own timestamps only, and the
	// transaction's commit_ts is one that was fetched after its locks were set.
	ReadFence bool
	// LargeCommit: CommitLarge is answered.
	LargeCommit bool
	// LateCells is no capability, but the lack of one: a notification cell that was cleared may appear again, by a commit that is executed twice or
	// late, while its transaction is above the safe point.
	LateCells bool
}

// ErrUnsupported is returned for a request that the shard's Capabilities exclude. Nothing was done.
var ErrUnsupported = errkind.New(errkind.Unsupported, "kv: the shard does not state the capability for this request")
