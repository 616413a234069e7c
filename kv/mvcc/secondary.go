package mvcc

import (
	"context"

	"github.com/percodb/percodb/tso"
)

// SecondaryArgs asks the secondaries of an async commit for its fate.
type SecondaryArgs struct {
	Keys           [][]byte
	StartTS, NowTS tso.Timestamp
	Owner          bool
}

// CheckSecondaryLocks is not built yet.
func (s *State) CheckSecondaryLocks(ctx context.Context, adm Admission, args *SecondaryArgs) (SecondaryStatus, error) {
	return SecondaryStatus{}, errNotYet
}
