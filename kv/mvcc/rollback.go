package mvcc

import (
	"context"

	"github.com/percodb/percodb/tso"
)

// Rollback removes the locks of startTS on keys and leaves a rollback record on each, lock or not:
// its prewrite may still be on its way. Durable on return. Error: *AlreadyCommittedError.
func (s *State) Rollback(ctx context.Context, adm Admission, keys [][]byte, startTS tso.Timestamp) error {
	if err := validateKeys(keys); err != nil {
		return err
	}
	_, err := s.finishKeys(ctx, adm, keys, startTS, 0, func(w *writer, i int, v *keyView) (finish, error) {
		if !v.ownLock(startTS) {
			if err := w.lookAll(v, keys[i], startTS); err != nil {
				return finishNothing, err
			}
		}
		return decideRollback(startTS, v)
	})
	return err
}
