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

func (s *slowSet) Read(ctx context.Context, f func([]mvcc.Mutation) error) error {
	s.rest()
	err := s.WriteSet.Read(ctx, func(ms []mvcc.Mutation) error {
		for i := range ms { // one key after the other
			if err := f(ms[i : i+1]); err != nil {
				return err
			}
			s.rest()
		}
		return ctx.Err()
	})
	return err
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
