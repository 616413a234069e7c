package executor

import (
	"context"
	"errors"

	"github.com/percodb/percodb/sql/types"
)

// fillFed reads all right rows into the table by the feed. all is false if they do not fit into memory, or if the feed cannot be used: the
// table is empty then, and the rows are to be pulled.
func (j *hashJoin) fillFed(ctx context.Context) (all bool, err error) {
	j.feed.sink = j.takeRight
	d := divided{feed: j.feed, part: j.part, attempt: j.attempt, absorb: j.absorb}
	all, err = j.feed.read(ctx, &d, j.node.Workers(j.ex.rt.Parallel))
	if errors.Is(err, errCrowded) {
		return false, j.attempt(false)
	}
	return all, err
}

// takeRight adds a right row to the table.
func (j *hashJoin) takeRight(row types.Row) error {
	if !j.mayNot && j.ex.mem.crowded(j.build.held+j.keys.held) {
		return errCrowded
	}
	key, hasNull, err := j.right.keys.eval(&j.ex.ev, row)
	if hasNull || err != nil {
		return err
	}
	return j.addBuild(row, key, false)
}

// attempt is divided's.
func (j *hashJoin) attempt(begin bool) error {
	if !begin {
		j.table = hashTable{}
		j.build.release()
		j.keys.release()
	}
	return nil
}

// rightRows are the right rows of a worker.
type rightRows struct {
	ex     *execution
	input  Operator
	feed   *feed
	rows   rowBuffer
	single bool   // of rows with equal keys one is kept
	seen   keySet // single: the keys of rows
}

// part collects a part of the right rows in a worker's execution.
func (j *hashJoin) part(ex *execution) (part, error) {
	input, err := ex.build(j.node.Right)
	if err != nil {
		return nil, err
	}
	r := &rightRows{ex: ex, input: input, feed: newFeed(input), rows: rowBuffer{mem: &ex.mem}}
	r.single = j.single && 2*j.node.Kept <= j.node.Right.Estimate().Rows // Else most would be looked up twice in vain.
	r.seen = keySet{cols: newKeyColumns(j.node.RightKeys), keys: rowBuffer{mem: &ex.mem}}
	return r, nil
}

func (r *rightRows) divided() divided {
	r.feed.sink = r.take
	return divided{feed: r.feed}
}

// take keeps a row, unless it has a key with NULL or one that is enough once and has been seen.
func (r *rightRows) take(row types.Row) error {
	if r.ex.mem.crowded(r.rows.held + r.seen.keys.held) {
		return errCrowded
	}
	if r.single {
		key, hasNull, err := r.seen.cols.eval(&r.ex.ev, row)
		if hasNull || err != nil {
			return err
		}
		if _, added, err := r.seen.add(key); !added || err != nil {
			return err
		}
	}
	return r.rows.add(row)
}

// Close frees the rows.
func (r *rightRows) Close() error {
	r.rows.release()
	r.seen.release()
	return r.input.Close()
}

// absorb is divided's.
func (j *hashJoin) absorb(ctx context.Context, from part) error {
	for _, row := range from.(*rightRows).rows.rows {
		if err := j.ex.tick(ctx); err != nil {
			return err
		}
		if err := j.takeRight(row); err != nil {
			return err
		}
	}
	return nil
}
