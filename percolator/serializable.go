package percolator

import (
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
)

// readsAreHere reports whether everything that a serializable transaction has read lies on the shard it writes to, so
// that this shard alone can commit it. If so, the ranges are added to the part's.
func (c *committer) readsAreHere(ctx context.Context) (bool, error) {
	if len(c.reads) == 0 {
		return true, nil
	}
	if len(c.reads) > maxOnePhaseReads {
		return false, nil
	}
	parts, err := spanList.split(ctx, &backoff{db: c.db}, c.reads, nil)
	if err != nil || len(parts) > 1 || parts[0].name != c.parts[0].name {
		return false, err
	}
	for _, ref := range parts[0].refs {
		if !slices.ContainsFunc(c.parts[0].refs, func(r kv.RangeRef) bool { return r.ID == ref.ID }) {
			c.parts[0].refs = append(c.parts[0].refs, ref)
		}
	}
	return true, nil
}

// maxOnePhaseReads bounds the spans that go with a one-phase commit, under whose latches they are
// looked at.
const maxOnePhaseReads = 1024
