package executor

import (
	"context"
)

// An UPDATE or DELETE of which each row is independent of the others takes its rows from a feed, and workers make the writes of a part
// of the rows each. The session's goroutine takes the writes over and passes them to the transaction.

// feedFrom has a change take its rows from a feed, if its input admits one.
func (m *modify) feedFrom(fed bool) {
	if fed && !m.ex.together && (m.ex.plan == nil || !m.ex.plan.CallsRoutines) {
		m.feed = newFeed(m.input)
	}
}

// readFed changes all rows of the feed. done is false if there is none at this time.
func (m *modify) readFed(ctx context.Context, d divided, workers int) (done bool, err error) {
	if m.feed == nil || m.ex.rt.Lock { // Locks are taken in groups, before anything is written.
		return false, nil
	}
	direct := m.writer.sink.direct
	d.attempt = func(begin bool) error {
		m.writer.sink.discard()
		m.affected = 0
		m.writer.sink.direct = direct && !begin
		return nil
	}
	done, err = m.feed.read(ctx, &d, workers)
	m.writer.sink.direct = direct
	return done, err
}

// absorb takes over what a worker has changed.
func (m *modify) absorb(from *modify) error {
	m.affected += from.affected
	return m.writer.sink.absorb(&from.writer.sink)
}

// maxRuns is up to how many ascending runs of keys are brought into order.
const maxRuns = 64

// mergeRuns returns a list of what a and b have, in order if they consist of few ascending runs.
func mergeRuns[T any](a, b []T, compare func(a, b T) int) []T {
	var runs [][]T
	for _, list := range [][]T{a, b} {
		for from, i := 0, 1; i <= len(list); i++ {
			if i < len(list) && compare(list[i-1], list[i]) < 0 {
				continue
			}
			if runs, from = append(runs, list[from:i]), i; len(runs) > maxRuns {
				return append(a, b...)
			}
		}
	}
	for len(runs) > 1 {
		half := runs[:0]
		for i := 0; i < len(runs); i += 2 {
			if i+1 < len(runs) {
				half = append(half, mergeTwo(runs[i], runs[i+1], compare))
			} else {
				half = append(half, runs[i])
			}
		}
		runs = half
	}
	if len(runs) == 0 {
		return a
	}
	return runs[0]
}

// mergeTwo returns the merge of two ascending runs.
func mergeTwo[T any](a, b []T, compare func(a, b T) int) []T {
	merged := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}
