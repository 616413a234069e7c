package mvcc

import (
	"context"
	"errors"
	"time"

	"github.com/percodb/percodb/tso"
)

// AcquireArgs asks for pessimistic locks on Keys, which ascend strictly. Nothing is kept after the
// call. ReadTS is the transaction's snapshot, StartTS if 0.
type AcquireArgs struct {
	Keys               [][]byte
	Primary            []byte
	StartTS, ReadTS    tso.Timestamp
	TTLMillis          uint64
	Wait               time.Duration
	SkipLocked, Shared bool
	// Alive is a transaction found alive although the TTL of its lock has run out.
	Alive tso.Timestamp
}

var errNotYet = errors.New("mvcc: not built yet")

// AcquireLocks takes pessimistic locks.
func (s *State) AcquireLocks(ctx context.Context, adm Admission, args *AcquireArgs) ([]tso.Timestamp, error) {
	return nil, errNotYet
}

// ReleaseLocks drops pessimistic locks.
func (s *State) ReleaseLocks(ctx context.Context, adm Admission, keys [][]byte, startTS, forUpdateTS tso.Timestamp) error {
	return errNotYet
}
