package executor

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// countChanges notes how many rows the session's statements have changed before the statement changes any.
func (ex *execution) countChanges() {
	if ex.plan != nil && ex.plan.CallsRoutines && ex.rt.Triggers != nil {
		ex.rowsChanged = ex.rt.Triggers.RowsChanged()
	}
}

// unmodified returns 27000 if a function or trigger that the statement calls has changed a row since the statement read it; what is what the
// statement is about to do with it.
func (w *tableWriter) unmodified(ctx context.Context, old types.Row, what string) error {
	ex := w.ex
	if ex.plan == nil || !ex.plan.CallsRoutines || ex.rt.Triggers == nil || ex.rt.Triggers.RowsChanged() == ex.rowsChanged {
		return nil
	}
	key, _, err := rowenc.AppendKey(nil, w.table, &w.table.Primary, old)
	if err != nil {
		return err
	}
	value, err := ex.txn.Get(ctx, key)
	if err != nil {
		return err
	}
	read, err := rowenc.AppendRow(nil, w.table, old)
	if err != nil {
		return err
	}
	if value != nil && !bytes.Equal(value, read) { // The row may have been written before a column was added.
		var decoder rowenc.Decoder
		row := make(types.Row, len(w.table.Columns))
		err := decoder.Init(w.table, &w.table.Primary, allOrdinals(w.table))
		if err == nil {
			err = decoder.Decode(key, value, row)
		}
		if err == nil {
			value, err = rowenc.AppendRow(nil, w.table, row)
		}
		if err != nil {
			return err
		}
	}
	if bytes.Equal(value, read) {
		return nil
	}
	return pgerror.New("27000", "tuple to be %s was already modified by an operation triggered by the current command", what).
		WithHint("Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.")
}
