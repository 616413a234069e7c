package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// workTable contains the rows that the WorkScans of one RecursiveUnion read: those of the last iteration.
type workTable struct{ rows rowBuffer }

// recursiveUnion yields the rows of init, then runs step over the rows of the last round until a
// round yields none. Without all, a row that was yielded before is dropped.
type recursiveUnion struct {
	ex         *execution
	init, step Operator
	all        bool
	anew       []int // WITH items that read the work table
	work       *workTable
	next       rowBuffer // the rows of the round under way
	seen       keySet
	inStep     bool
	done       bool
}

func newRecursiveUnion(ex *execution, init, step Operator, n *planner.RecursiveUnion, work *workTable) *recursiveUnion {
	return &recursiveUnion{
		ex: ex, init: init, step: step, all: n.All, anew: n.Anew, work: work,
		next: rowBuffer{mem: &ex.mem},
		seen: keySet{cols: wholeRow(typesOf(n)), keys: rowBuffer{mem: &ex.mem}},
	}
}

func (o *recursiveUnion) Open(ctx context.Context) error {
	o.inStep, o.done = false, false
	return o.init.Open(ctx)
}

func (o *recursiveUnion) Close() error {
	o.next.release()
	o.work.rows.release()
	o.seen.release()
	return closeBoth(o.init, o.step)
}

func (o *recursiveUnion) Next(ctx context.Context) (types.Row, error) {
	for !o.done {
		if err := o.ex.tick(ctx); err != nil {
			return nil, err
		}
		source := o.init
		if o.inStep {
			source = o.step
		}
		row, err := source.Next(ctx)
		if err != nil {
			return nil, err
		}
		if row == nil {
			if err := source.Close(); err != nil {
				return nil, err
			}
			if err := o.nextRound(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if !o.all {
			_, added, err := o.seen.add(row)
			if err != nil {
				return nil, err
			}
			if !added {
				continue
			}
		}
		if err := o.next.add(row); err != nil {
			return nil, err
		}
		return row, nil
	}
	return nil, nil
}

// nextRound makes the rows gathered the work table and starts step over them.
func (o *recursiveUnion) nextRound(ctx context.Context) error {
	o.work.rows.release()
	o.work.rows, o.next = o.next, o.work.rows
	if len(o.work.rows.rows) == 0 {
		o.done = true
		return nil
	}
	for _, i := range o.anew {
		if err := o.ex.ctes[i].close(); err != nil {
			return err
		}
	}
	o.inStep = true
	return o.step.Open(ctx)
}

// workScan reads the work table of its union.
type workScan struct {
	work *workTable
	at   int
	out  types.Row
}

func (o *workScan) Open(context.Context) error { o.at = 0; return nil }
func (o *workScan) Close() error               { return nil }

func (o *workScan) Next(context.Context) (types.Row, error) {
	if o.at >= len(o.work.rows.rows) {
		return nil, nil
	}
	copy(o.out, o.work.rows.rows[o.at])
	o.at++
	return o.out, nil
}
