package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// virtualScan returns the rows of a system table, which are computed together when the first is fetched.
type virtualScan struct {
	ex       *execution
	table    *catalog.TableDescriptor
	ordinals []int
	filter   expr.Scalar
	rows     rowBuffer
	out      types.Row
	at       int
	ready    bool
}

func newVirtualScan(ex *execution, n *planner.VirtualScan) *virtualScan {
	return &virtualScan{
		ex: ex, table: n.Table, ordinals: n.Ordinals, filter: n.Filter,
		rows: rowBuffer{mem: &ex.mem}, out: make(types.Row, len(n.Ordinals)),
	}
}

func (o *virtualScan) Open(context.Context) error {
	o.at, o.ready = 0, false
	o.rows.reset()
	return nil
}

func (o *virtualScan) Close() error {
	o.rows.release()
	return nil
}

func (o *virtualScan) Next(ctx context.Context) (types.Row, error) {
	if !o.ready {
		if err := o.table.Rows(ctx, o.ex.rt.Resolver, o.ex.rt.System, o.take); err != nil {
			return nil, err
		}
		o.ready = true
	}
	if o.at == len(o.rows.rows) {
		return nil, nil
	}
	row := o.rows.rows[o.at]
	o.at++
	return row, nil
}

// take keeps the requested columns of a full row.
func (o *virtualScan) take(full types.Row) error {
	for i, ord := range o.ordinals {
		o.out[i] = full[ord]
	}
	ok, err := o.ex.holds(o.filter, o.out)
	if !ok || err != nil {
		return err
	}
	return o.rows.add(o.out)
}
