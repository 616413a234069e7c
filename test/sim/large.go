package sim

import (
	"context"
	"time"

	"github.com/percodb/percodb/kv/mvcc"
)

// slowSet is a write set that takes its time, as one of millions of rows does: others take their steps while the
// keys are checked, and while the versions are written.
type slowSet struct {
	mvcc.WriteSet
	w *world
}

func (s *slowSet) Read(ctx context.Context, f func([]mvcc.Mutation) error) error {
	s.rest()
	err := s.WriteSet.Read(ctx, func(ms []mvcc.Mutation) error {
		for i := range ms { // the keys one by one
			if err := f(ms[i : i+1]); err != nil {
				return err
			}
			s.rest()
		}
		return ctx.Err()
	})
	return err
}

// rest is mostly short, and now and then longer than a lock lives.
func (s *slowSet) rest() {
	w := s.w
	most := 20 * w.plan.latency
	n := w.rests.Add(1)
	if w.hash("rest", "", n)%16 == 0 {
		most = 2 * w.plan.lockTTL
	}
	time.Sleep(time.Duration(w.hash("for", "", n) % uint64(most)))
}
