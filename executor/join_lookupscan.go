package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// scanLookupJoin reads the right rows of each left row by a scan of a key prefix. Left rows are processed in growing
// groups, and the distinct prefixes of a group are scanned together; the entries are kept until the last left row that
// needs them. Entries that would take too much memory are scanned again, individually, for their left row.
type scanLookupJoin struct {
	joinOutput
	lefts  leftGroup
	ahead  lookahead
	reader spanReader // reads what was not kept

	have, found bool
	place       int32 // place of the left row's prefix, see lookahead; -1: NULL
	next        int   // entry; -1: the prefix's first
	seen        int   // how many entries of the prefix the left row has seen
	alone       bool  // reader has taken over
}

func newScanLookupJoin(ex *execution, out joinOutput, left Operator, n *planner.LookupJoin) (Operator, error) {
	j := &scanLookupJoin{joinOutput: out, lefts: newLeftGroup(ex, left, n)}
	if err := j.reader.init(ex, &n.Access); err != nil {
		return nil, err
	}
	j.ahead.init(&j.reader, n.Kind == planner.SemiJoin || n.Kind == planner.AntiJoin)
	return j, nil
}

func (j *scanLookupJoin) Open(ctx context.Context) error {
	j.have = false
	j.ahead.release()
	return j.lefts.open(ctx)
}

func (j *scanLookupJoin) Close() error {
	j.reader.stop()
	j.ahead.release()
	return j.lefts.close()
}

func (j *scanLookupJoin) Next(ctx context.Context) (types.Row, error) {
	for {
		if err := j.ex.tick(ctx); err != nil {
			return nil, err
		}
		if !j.have {
			if ok, err := j.nextLeft(ctx); !ok || err != nil {
				return nil, err
			}
		}
		row, err := j.probe(ctx)
		if row != nil || err != nil {
			return row, err
		}
	}
}

// nextLeft advances to the next left row and reports whether there is one.
func (j *scanLookupJoin) nextLeft(ctx context.Context) (bool, error) {
	g := &j.lefts
	for g.at == len(g.rows.rows) {
		if g.leftEnd {
			return false, nil
		}
		if j.ahead.crowded {
			g.group = 1 // the entries for the rows of a group take too much memory
		}
		if err := g.take(ctx); err != nil {
			return false, err
		}
		j.ahead.begin(g.distinct, g.slots)
	}
	j.setLeft(g.rows.rows[g.at])
	j.place = j.ahead.placeOf(g.slots[g.at])
	g.at++
	j.have, j.found, j.alone, j.next, j.seen = true, false, false, -1, 0
	return true, nil
}

// probe takes the next right row that matches; nil when the left row is finished.
func (j *scanLookupJoin) probe(ctx context.Context) (types.Row, error) {
	for {
		right, err := j.candidate(ctx)
		if err != nil {
			return nil, err
		}
		if right == nil {
			j.have = false
			if j.found {
				return nil, nil
			}
			return j.unmatched(), nil
		}
		ok, err := j.matches(right)
		if err != nil {
			return nil, err
		}
		if !ok {
			if err := j.ex.tick(ctx); err != nil {
				return nil, err
			}
			continue
		}
		j.found = true
		switch j.kind {
		case planner.SemiJoin:
			j.have = false
			return j.leftOnly(), nil
		case planner.AntiJoin:
			j.have = false
			return nil, nil
		}
		return j.joined, nil
	}
}

// candidate returns the next right row under the left row's prefix, nil at the end.
func (j *scanLookupJoin) candidate(ctx context.Context) (types.Row, error) {
	if j.place < 0 {
		return nil, nil
	}
	if !j.alone {
		at, err := j.ahead.find(ctx, j.place, j.next, j.lefts.at)
		if err != nil {
			return nil, err
		}
		if at >= 0 {
			j.next = at + 1
			j.seen++
			return j.ahead.row(at)
		}
		if !j.ahead.cut[j.place] {
			return nil, nil
		}
		if err := j.goAlone(ctx); err != nil {
			return nil, err
		}
	}
	return j.reader.next(ctx)
}

// goAlone scans the left row's prefix individually, and skips the entries that have been read before.
func (j *scanLookupJoin) goAlone(ctx context.Context) error {
	j.alone = true
	j.reader.start(j.ahead.spans[j.place : j.place+1])
	for range j.seen {
		if ok, err := j.reader.advance(ctx); !ok || err != nil {
			return err
		}
	}
	return nil
}
