package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// ChangeSource claims changed rows for a client in the statement's transaction, max at most, and returns rows of
// catalog.ChangedRelation, which are valid until the transaction ends. max and wait are those of percodb.changes, NULL if not
// given.
type ChangeSource func(ctx context.Context, n *planner.Changes, max, wait types.Datum) ([]types.Row, error)

// changedRows is what percodb.changes has claimed for a statement, which has one call of it at most.
type changedRows struct {
	claimed bool
	rows    []types.Row
}

// changes yields the rows that percodb.changes claims. They are claimed once for the statement: a join that opens the operator again
// gets them again.
type changes struct {
	ex   *execution
	node *planner.Changes
	at   int
}

func (o *changes) Open(context.Context) error {
	o.at = 0
	return nil
}

func (o *changes) Close() error { return nil }

func (o *changes) Next(ctx context.Context) (types.Row, error) {
	if !o.ex.changed.claimed {
		if err := o.claim(ctx); err != nil {
			return nil, err
		}
	}
	rows := o.ex.changed.rows
	if err := o.ex.tick(ctx); err != nil || o.at == len(rows) {
		return nil, err
	}
	o.at++
	return rows[o.at-1], nil
}

func (o *changes) claim(ctx context.Context) (err error) {
	var args [2]types.Datum
	for i, x := range []expr.Scalar{o.node.Max, o.node.Wait} {
		if x == nil {
			continue
		}
		if args[i], err = x.Eval(&o.ex.ev, nil); err != nil {
			return err
		}
	}
	rows, err := o.ex.rt.Changes(ctx, o.node, args[0], args[1])
	if err == nil {
		o.ex.changed = changedRows{claimed: true, rows: rows}
	}
	return err
}
