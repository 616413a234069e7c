package executor

import (
	"context"

	"github.com/percodb/percodb/sql/types"
)

// cteBuffer holds the rows of a WITH item for all its readers. It runs the item only as far as a
// reader has come: WITH RECURSIVE without end is legal under a LIMIT.
type cteBuffer struct {
	ex      *execution
	op      Operator
	rows    rowBuffer
	started bool
	done    bool
	// modifies: the item changes data.
	modifies bool
}

// row returns row i, or nil beyond the end.
func (c *cteBuffer) row(ctx context.Context, i int) (types.Row, error) {
	for i >= len(c.rows.rows) && !c.done {
		if !c.started {
			c.started = true
			if err := c.op.Open(ctx); err != nil {
				return nil, err
			}
		}
		row, err := c.op.Next(ctx)
		if err != nil {
			return nil, err
		}
		if row == nil {
			c.done = true
			if c.modifies { // Its writes are still to be applied.
				break
			}
			if err := c.op.Close(); err != nil {
				return nil, err
			}
			break
		}
		if err := c.rows.add(row); err != nil {
			return nil, err
		}
	}
	if i < len(c.rows.rows) {
		return c.rows.rows[i], nil
	}
	return nil, nil
}

// finish runs a data-modifying item to its end. Rows that nobody has read are dropped.
func (c *cteBuffer) finish(ctx context.Context) error {
	if c.done {
		return nil
	}
	if !c.started {
		c.started = true
		if err := c.op.Open(ctx); err != nil {
			return err
		}
	}
	for {
		row, err := c.op.Next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			break
		}
		if err := c.ex.tick(ctx); err != nil {
			return err
		}
	}
	c.done = true
	return nil
}

// close ends the item's run and discards its rows.
func (c *cteBuffer) close() error {
	c.rows.release()
	c.started, c.done = false, false
	return c.op.Close()
}

// cteScan reads a WITH item.
type cteScan struct {
	ex  *execution
	cte int
	at  int
	out types.Row // a copy, so that callers cannot change the rows of other readers
}

func (o *cteScan) Open(context.Context) error { o.at = 0; return nil }
func (o *cteScan) Close() error               { return nil }

func (o *cteScan) Next(ctx context.Context) (types.Row, error) {
	row, err := o.ex.ctes[o.cte].row(ctx, o.at)
	if row == nil || err != nil {
		return nil, err
	}
	o.at++
	copy(o.out, row)
	return o.out, nil
}
