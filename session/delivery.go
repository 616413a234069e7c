package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/percolator/observe"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// Changes of observed tables are delivered by package percolator/observe; its transactions are those of sessions: of clients
// that call percodb.changes (changes.go), and of the server, which runs the bodies of observers (observing.go).

// Delivery returns the delivery of an observer of a table.
func Delivery(db *percolator.DB, t *catalog.TableDescriptor, o *catalog.ObserverDescriptor) *observe.Observer {
	return &observe.Observer{
		ID: o.ID, Cells: db.Observers(),
		Rows: rowenc.AppendIndexPrefix(nil, t.ID, t.Primary.ID), Acks: rowenc.AppendIndexPrefix(nil, t.ID, o.AckIndex),
	}
}

// rowSpan contains the keys of a table's rows.
func rowSpan(t *catalog.TableDescriptor) kv.Span {
	start, end := rowenc.IndexSpan(t.ID, t.Primary.ID)
	return kv.Span{Start: start, End: end}
}

// delivery is a claim of changed rows in the open transaction.
type delivery struct {
	*observe.Claim
	of *observe.Observer
}

// changedColumns is the number of columns of catalog.ChangedRelation that precede the table's.
const changedColumns = 2

// changedRows decodes the rows of claimed changes: they are those of catalog.ChangedRelation, valid until the transaction
// ends; their memory is drawn from account.
func changedRows(t *catalog.TableDescriptor, changes []observe.Change, account *memory.Account) (_ []types.Row, err error) {
	if len(changes) == 0 {
		return nil, nil
	}
	size := int64(0)
	for i := range changes {
		size += int64(len(changes[i].Key) + len(changes[i].Row) + (len(t.Columns)+changedColumns)*datumBytes)
	}
	if err := account.Grow(size); err != nil {
		return nil, err
	}
	ordinals := make([]int, len(t.Columns))
	for i := range ordinals {
		ordinals[i] = i
	}
	var d rowenc.Decoder
	if err := d.Init(t, &t.Primary, ordinals); err != nil {
		return nil, err
	}
	rows := make([]types.Row, len(changes))
	for i := range changes {
		if rows[i], err = changedRow(t, &changes[i], &d); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// datumBytes is the size of a types.Datum.
const datumBytes = 24

// changedRow decodes the row of a change.
func changedRow(t *catalog.TableDescriptor, c *observe.Change, d *rowenc.Decoder) (types.Row, error) {
	row := make(types.Row, changedColumns+len(t.Columns))
	gone := c.Row == nil
	row[0], row[1] = types.Int(int64(c.CommitTS)), types.Bool(gone)
	columns := row[changedColumns:]
	if !gone {
		return row, d.Decode(c.Key, c.Row, columns)
	}
	key, err := rowenc.KeyColumns(t, &t.Primary, c.Key)
	for i := range key {
		columns[t.Ordinal(t.Primary.Columns[i].ColumnID)] = key[i]
	}
	return row, err
}

// acknowledge makes the transaction's commit acknowledge a claim: all that it has delivered, whatever became of it.
func (t *transaction) acknowledge(d delivery, table *catalog.TableDescriptor) error {
	t.guard.Writes(table, 0)
	t.delivered = append(t.delivered, d)
	return d.Acknowledge(t.txn)
}

// acknowledged returns the claims whose cells the commit allows to be cleared: those whose acknowledgements are all there. Rollbacks to
// savepoints have taken others back.
func (t *transaction) acknowledged(ctx context.Context) (list []delivery, err error) {
	for _, d := range t.delivered {
		ok, err := d.Written(ctx, t.txn)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, d)
		} else {
			t.cursors.rolledBack([]delivery{d})
		}
	}
	return list, nil
}

// clearCells clears the cells of claims whose acknowledgements are committed. One that stays is cleared by whoever claims its
// row next.
func (t *transaction) clearCells(ctx context.Context, list []delivery) {
	for _, d := range list {
		if err := d.Clear(ctx); err != nil {
			t.log.Debug("notify cells of handled changes stay", "observer", d.of.ID, "err", err)
		}
	}
}

// deliveryMark is a position among the claims of a transaction.
type deliveryMark struct {
	claims int
	used   int64 // memory of the rows
}

func (t *transaction) markDelivered() deliveryMark {
	return deliveryMark{len(t.delivered), t.claimed.Used()}
}

// forgetDeliveredSince forgets the claims after a mark, which were rolled back: their statement runs again.
func (t *transaction) forgetDeliveredSince(m deliveryMark) {
	t.delivered = t.delivered[:m.claims]
	t.claimed.Shrink(t.claimed.Used() - m.used)
}

// forgetDelivered forgets the changes that are delivered in the transaction.
func (t *transaction) forgetDelivered() {
	t.delivered = nil
	t.claimed.Shrink(t.claimed.Used())
}
