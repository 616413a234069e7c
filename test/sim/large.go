package sim

import (
	"context"
	"time"

	"github.com/percodb/percodb/kv/mvcc"
)

// slowSet is a write set as slow as one of millions of rows: other transactions make progress while the keys are
// checked, and while the versions are written.
type slowSet struct {
	mvcc.WriteSet
	w *world
}

// Parts implements mvcc.WriteSet.
func (s *slowSet) Parts(int) []mvcc.WriteSetPart { return []mvcc.WriteSetPart{s} }

// Read implements mvcc.WriteSet. Every other batch is passed as a whole, if it may be, the keys of the others one by one.
func (s *slowSet) Read(ctx context.Context, pass func(*mvcc.Batch) (bool, error), f func([]mvcc.Mutation) error) error {
	s.rest()
	some := func(b *mvcc.Batch) (bool, error) {
		if pass == nil || s.w.rests.Load()%2 == 0 {
			return false, nil
		}
		passed, err := pass(b)
		if s.rest(); err == nil {
			err = ctx.Err()
		}
		return passed, err
	}
	return s.WriteSet.Read(ctx, some, func(ms []mvcc.Mutation) error {
		for i := range ms { // one key after the other
			if err := f(ms[i : i+1]); err != nil {
				return err
			}
			s.rest()
		}
		return ctx.Err()
	})
}

// rest pauses, mostly shortly, and occasionally for longer than a lock's TTL.
func (s *slowSet) rest() {
	w := s.w
	most := 20 * w.plan.latency
	n := w.rests.Add(1)
	if w.hash("rest", "", n)%16 == 0 {
		most = 2 * w.plan.lockTTL
	}
	time.Sleep(time.Duration(w.hash("for", "", n) % uint64(most)))
}
