package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// rowLocker is the input of UPDATE, DELETE and MERGE. With Runtime.Lock, the rows are locked before they are passed on, in
// growing groups, so that a statement over many rows and stores sends few lock requests. Rows start with the table's
// full row.
type rowLocker struct {
	ex     *execution
	input  Operator
	table  *catalog.TableDescriptor
	parts  *planner.Parts // of a partitioned table; nil: table has the rows
	single bool           // one row at most
	below  bool           // the input locks its row itself
	// wants reports whether a row is locked; nil: all are.
	wants func(types.Row) (bool, error)

	rows  rowBuffer
	at    int
	group int
	ended bool
	arena rowenc.Arena
	keys  [][]byte
}

func newRowLocker(ex *execution, input Operator, t *catalog.TableDescriptor, props planner.Properties, below bool) rowLocker {
	return rowLocker{ex: ex, input: input, table: t, single: props.AtMostOne, below: below, rows: rowBuffer{mem: &ex.mem}}
}

// reset prepares for a run.
func (l *rowLocker) reset() { l.at, l.group, l.ended = 0, l.ex.firstGroup(), false }

func (l *rowLocker) release() {
	l.rows.release()
	clear(l.keys)
	l.keys = l.keys[:0]
}

// next returns the next row, locked if required.
func (l *rowLocker) next(ctx context.Context) (types.Row, error) {
	switch {
	case !l.ex.rt.Lock, l.below:
		return l.input.Next(ctx)
	case l.single:
		row, err := l.input.Next(ctx)
		if row == nil || err != nil {
			return nil, err
		}
		l.keys = l.keys[:0]
		if err := l.addKey(row); err != nil || len(l.keys) == 0 {
			return row, err
		}
		return row, l.lock(ctx)
	}
	if l.at == len(l.rows.rows) {
		if err := l.fill(ctx); err != nil {
			return nil, err
		}
	}
	if l.at == len(l.rows.rows) {
		return nil, nil
	}
	l.at++
	return l.rows.rows[l.at-1], nil
}

// fill reads and locks the next group.
func (l *rowLocker) fill(ctx context.Context) error {
	l.rows.reset()
	l.keys, l.at = l.keys[:0], 0
	for !l.ended && len(l.rows.rows) < l.group {
		row, err := l.input.Next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			l.ended = true
			break
		}
		if err := l.addKey(row); err != nil {
			return err
		}
		if err := l.rows.add(row); err != nil {
			return err
		}
	}
	l.group = l.ex.nextGroup(l.group)
	if len(l.keys) == 0 {
		return nil
	}
	return l.lock(ctx)
}

func (l *rowLocker) addKey(row types.Row) error {
	if l.wants != nil {
		if wanted, err := l.wants(row); !wanted || err != nil {
			return err
		}
	}
	if l.parts != nil {
		key, err := partKey(l.arena.Start(), l.parts, row)
		l.keys = append(l.keys, l.arena.Finish(key))
		return err
	}
	key, _, err := rowenc.AppendKey(l.arena.Start(), l.table, &l.table.Primary, row)
	if err != nil {
		return err
	}
	l.keys = append(l.keys, l.arena.Finish(key))
	return nil
}

func (l *rowLocker) lock(ctx context.Context) error {
	_, err := l.ex.txn.AcquireLocks(ctx, percolator.LockOptions{}, l.keys...)
	return err
}
