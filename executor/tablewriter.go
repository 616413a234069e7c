package executor

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/entries"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// tableWriter converts changes of rows to changes of keys: the row's own, and an entry in every index, including those
// being backfilled. It checks NOT NULL and CHECK constraints; it passes keys that must be new to the sink.
type tableWriter struct {
	ex     *execution
	table  *catalog.TableDescriptor
	checks []planner.Check
	// generated are the columns that generate computes.
	generated []planner.GeneratedColumn
	bound     *planner.PartitionCheck // nil: rows are not checked to belong to the table
	sink      writeSink
	notNull   []int
	rowid     int // ordinal of the hidden rowid, -1 for none
	indexes   []indexWriter
	// entries and former compute what the indexes hold of a row, and of the one that an update replaces; nil: the row is all.
	entries, former *entries.Maker
	moves           bool // an update may change the primary key
	notify          *notifier
	keys            *keyQueue // of foreign keys; nil: none is concerned

	arena          rowenc.Arena
	oldKey, newKey []byte // scratch
	oldVal, newVal []byte
}

// indexWriter is a secondary index as a statement writes it.
type indexWriter struct {
	*catalog.IndexDescriptor
	at int // place in the table's Indexes
	// affected: an update by the statement's Set may change the entry.
	affected bool
}

// newTableWriter prepares writing to a table, whose observers and bound index expressions are given; changed are the ordinals that updates may
// change.
func newTableWriter(ex *execution, t *catalog.TableDescriptor, checks []planner.Check, changed []int, o *planner.Observed, x *planner.IndexExprs) *tableWriter {
	w := &tableWriter{ex: ex, table: t, rowid: -1, notify: newNotifier(ex, o)}
	w.entries, w.former = entries.NewMaker(t, x, &ex.ev), entries.NewMaker(t, x, &ex.ev)
	w.sink = writeSink{ex: ex, notify: w.notify}
	w.checks = slices.Clone(checks)
	slices.SortFunc(w.checks, func(a, b planner.Check) int { return strings.Compare(a.Name, b.Name) })
	for i := range t.Columns {
		if t.Columns[i].Hidden {
			w.rowid = i
		} else if t.Columns[i].NotNull {
			w.notNull = append(w.notNull, i)
		}
	}
	w.moves = w.touches(&t.Primary, changed)
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		affected := w.moves || w.touches(ix, changed) || x != nil && slices.ContainsFunc(x.Reads[i], func(ord int) bool { return slices.Contains(changed, ord) })
		w.indexes = append(w.indexes, indexWriter{ix, i, affected})
	}
	return w
}

// allOrdinals lists the ordinals of all columns of a table.
func allOrdinals(t *catalog.TableDescriptor) []int {
	all := make([]int, len(t.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}

// touches reports whether an index holds one of the columns.
func (w *tableWriter) touches(ix *catalog.IndexDescriptor, ordinals []int) bool {
	for _, ord := range ordinals {
		id := w.table.Columns[ord].ID
		if slices.ContainsFunc(ix.Inverted, func(c catalog.InvertedColumn) bool { return c.ColumnID == id }) {
			return true
		}
		if slices.Contains(ix.Include, id) || slices.ContainsFunc(ix.Columns, func(c catalog.IndexColumn) bool { return c.ColumnID == id }) {
			return true
		}
	}
	return false
}

// takesKeys reports whether an update may give a row a key that another row must not have: then all
// old keys must be freed before new ones are taken.
func (w *tableWriter) takesKeys() bool {
	return w.moves || slices.ContainsFunc(w.indexes, func(ix indexWriter) bool { return ix.affected && ix.Unique })
}

// hasRowID reports whether the primary key is a rowid, which is unique by construction.
func (w *tableWriter) hasRowID() bool { return w.rowid >= 0 }

// generate computes the generated columns of a full row. It is called before check.
func (w *tableWriter) generate(row types.Row) error {
	for i := range w.generated {
		g := &w.generated[i]
		d, err := g.Value.Eval(&w.ex.ev, row)
		if err != nil {
			return err
		}
		row[g.Ordinal] = d
	}
	return nil
}

// check tests the table's constraints on a full row.
func (w *tableWriter) check(ctx context.Context, row types.Row) error {
	for _, ord := range w.notNull {
		if row[ord].IsNull() {
			return w.notNullViolation(ctx, ord, row)
		}
	}
	for i := range w.checks {
		d, err := w.checks[i].Cond.Eval(&w.ex.ev, row)
		if err != nil {
			return err
		}
		if !d.IsNull() && !d.Bool() {
			return w.checkViolation(ctx, w.checks[i].Name, row)
		}
	}
	if w.bound == nil {
		return nil
	}
	if ok, err := w.bound.Holds(&w.ex.ev, row); err != nil || !ok {
		if err != nil {
			return err
		}
		return w.boundViolation(ctx, row)
	}
	return nil
}

// fillRowID gives a row without primary key its rowid.
func (w *tableWriter) fillRowID(ctx context.Context, row types.Row) error {
	if w.rowid < 0 || !row[w.rowid].IsNull() {
		return nil
	}
	id, err := w.ex.rt.RowIDs.NextRowID(ctx, w.table.ID)
	row[w.rowid] = types.Int(id)
	return err
}

// insert writes a new row and its entries.
func (w *tableWriter) insert(ctx context.Context, row types.Row) error {
	key, _, err := rowenc.AppendKey(w.arena.Start(), w.table, &w.table.Primary, row)
	if err != nil {
		return err
	}
	key = w.arena.Finish(key)
	value, err := rowenc.AppendRow(w.arena.Start(), w.table, row)
	if err != nil {
		return err
	}
	if err := w.sink.store(ctx, key, w.arena.Finish(value), !w.hasRowID(), w.notify.everyone()); err != nil {
		return err
	}
	if w.entries != nil {
		w.entries.Begin(row)
	}
	for i := range w.indexes {
		if err := w.insertEntry(ctx, &w.indexes[i], row); err != nil {
			return err
		}
	}
	return w.keys.inserted(ctx, row)
}

// entryRow returns what an index holds of a row that make has begun; false: the index has no entry for it.
func entryRow(make *entries.Maker, ix *indexWriter, row types.Row) (types.Row, bool, error) {
	if make == nil {
		return row, true, nil
	}
	return make.Entry(ix.at)
}

func (w *tableWriter) insertEntry(ctx context.Context, iw *indexWriter, row types.Row) error {
	if iw.Inverted != nil {
		return w.entries.Entries(iw.at, func(held types.Row) error { return w.putEntry(ctx, iw.IndexDescriptor, held) })
	}
	row, ok, err := entryRow(w.entries, iw, row)
	if !ok || err != nil {
		return err
	}
	return w.putEntry(ctx, iw.IndexDescriptor, row)
}

// putEntry writes an entry for what an index holds of a row.
func (w *tableWriter) putEntry(ctx context.Context, ix *catalog.IndexDescriptor, row types.Row) error {
	key, hasNull, err := rowenc.AppendKey(w.arena.Start(), w.table, ix, row)
	if err != nil {
		return err
	}
	key = w.arena.Finish(key)
	value, err := rowenc.AppendEntry(w.arena.Start(), w.table, ix, row)
	if err != nil {
		return err
	}
	return w.sink.store(ctx, key, w.arena.Finish(value), ix.Unique && !hasNull, 0)
}

// delete removes a row and its entries.
func (w *tableWriter) delete(ctx context.Context, row types.Row) error {
	if err := w.erase(ctx, row); err != nil {
		return err
	}
	return w.keys.deleted(row)
}

// moveOut is delete for a row that becomes next, in another partition of the table in.
func (w *tableWriter) moveOut(ctx context.Context, old, next types.Row, in *catalog.TableDescriptor) error {
	if err := w.erase(ctx, old); err != nil {
		return err
	}
	return w.keys.moved(old, next, in)
}

func (w *tableWriter) erase(ctx context.Context, row types.Row) error {
	if err := w.remove(ctx, &w.table.Primary, row, w.notify.everyone()); err != nil {
		return err
	}
	if w.former != nil {
		w.former.Begin(row)
	}
	for i := range w.indexes {
		if err := w.removeEntry(ctx, &w.indexes[i], row); err != nil {
			return err
		}
	}
	return nil
}

// removeEntry removes what an index holds of a row that former has begun.
func (w *tableWriter) removeEntry(ctx context.Context, iw *indexWriter, row types.Row) error {
	if iw.Inverted != nil {
		return w.former.Entries(iw.at, func(held types.Row) error { return w.remove(ctx, iw.IndexDescriptor, held, 0) })
	}
	held, ok, err := entryRow(w.former, iw, row)
	if !ok || err != nil {
		return err
	}
	return w.remove(ctx, iw.IndexDescriptor, held, 0)
}

func (w *tableWriter) remove(ctx context.Context, ix *catalog.IndexDescriptor, row types.Row, notify notifyRef) error {
	key, hasNull, err := rowenc.AppendKey(w.arena.Start(), w.table, ix, row)
	if err != nil {
		return err
	}
	return w.sink.delete(ctx, w.arena.Finish(key), ix.Unique && !hasNull && ix != &w.table.Primary, notify)
}

// update replaces a row: in place where its primary key stays, and only those entries that change.
func (w *tableWriter) update(ctx context.Context, old, row types.Row) error {
	key, _, err := rowenc.AppendKey(w.arena.Start(), w.table, &w.table.Primary, row)
	if err != nil {
		return err
	}
	key = w.arena.Finish(key)
	mustBeNew, notify := false, notifyRef(0)
	if w.moves {
		if w.oldKey, _, err = rowenc.AppendKey(w.oldKey[:0], w.table, &w.table.Primary, old); err != nil {
			return err
		}
		if mustBeNew = !bytes.Equal(w.oldKey, key); mustBeNew {
			notify = w.notify.everyone()
			if err := w.sink.delete(ctx, w.arena.Keep(w.oldKey), false, notify); err != nil {
				return err
			}
		}
	}
	if !mustBeNew {
		if notify, err = w.notify.changed(old, row); err != nil {
			return err
		}
	}
	value, err := rowenc.AppendRow(w.arena.Start(), w.table, row)
	if err != nil {
		return err
	}
	if err := w.sink.store(ctx, key, w.arena.Finish(value), mustBeNew, notify); err != nil {
		return err
	}
	if w.entries != nil {
		w.former.Begin(old)
		w.entries.Begin(row)
	}
	for i := range w.indexes {
		if !w.indexes[i].affected {
			continue
		}
		if err := w.updateIndex(ctx, &w.indexes[i], old, row); err != nil {
			return err
		}
	}
	return w.keys.updated(ctx, old, row, mustBeNew)
}

// updateIndex replaces what an index holds of a row.
func (w *tableWriter) updateIndex(ctx context.Context, iw *indexWriter, old, row types.Row) error {
	if w.entries == nil {
		return w.updateEntry(ctx, iw.IndexDescriptor, old, row)
	}
	if iw.Inverted != nil {
		return w.updateTerms(ctx, iw, old, row)
	}
	old, had, err := w.former.Entry(iw.at)
	if err != nil {
		return err
	}
	row, has, err := w.entries.Entry(iw.at)
	switch {
	case err != nil:
		return err
	case had && has:
		return w.updateEntry(ctx, iw.IndexDescriptor, old, row)
	case had:
		return w.remove(ctx, iw.IndexDescriptor, old, 0)
	case has:
		return w.insertEntry(ctx, iw, row)
	}
	return nil
}

// updateTerms replaces the entries of an inverted index: those of terms that both rows have stay, unless the row's key changes.
func (w *tableWriter) updateTerms(ctx context.Context, iw *indexWriter, old, row types.Row) error {
	if w.moves {
		if err := w.removeEntry(ctx, iw, old); err != nil {
			return err
		}
		return w.insertEntry(ctx, iw, row)
	}
	before, err := termsOf(w.former, iw)
	if err != nil {
		return err
	}
	after, err := termsOf(w.entries, iw)
	if err != nil {
		return err
	}
	for len(before)+len(after) > 0 {
		order := -1
		switch {
		case len(before) == 0:
			order = 1
		case len(after) > 0:
			order = bytes.Compare(before[0], after[0])
		}
		switch {
		case order < 0:
			err, before = w.remove(ctx, iw.IndexDescriptor, w.former.WithTerm(iw.at, before[0]), 0), before[1:]
		case order > 0:
			err, after = w.putEntry(ctx, iw.IndexDescriptor, w.entries.WithTerm(iw.at, after[0])), after[1:]
		default:
			before, after = before[1:], after[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// termsOf returns the terms that an inverted index has of a row.
func termsOf(make *entries.Maker, iw *indexWriter) ([][]byte, error) {
	_, ok, err := make.Entry(iw.at)
	if !ok || err != nil {
		return nil, err
	}
	return make.Terms(iw.at)
}

func (w *tableWriter) updateEntry(ctx context.Context, ix *catalog.IndexDescriptor, old, row types.Row) (err error) {
	var hadNull, hasNull bool
	if w.oldKey, hadNull, err = rowenc.AppendKey(w.oldKey[:0], w.table, ix, old); err != nil {
		return err
	}
	if w.newKey, hasNull, err = rowenc.AppendKey(w.newKey[:0], w.table, ix, row); err != nil {
		return err
	}
	moved := !bytes.Equal(w.oldKey, w.newKey)
	if w.newVal, err = rowenc.AppendEntry(w.newVal[:0], w.table, ix, row); err != nil {
		return err
	}
	if moved {
		if err := w.sink.delete(ctx, w.arena.Keep(w.oldKey), ix.Unique && !hadNull, 0); err != nil {
			return err
		}
	} else {
		if w.oldVal, err = rowenc.AppendEntry(w.oldVal[:0], w.table, ix, old); err != nil {
			return err
		}
		if bytes.Equal(w.oldVal, w.newVal) {
			return nil
		}
	}
	return w.sink.store(ctx, w.arena.Keep(w.newKey), w.arena.Keep(w.newVal), moved && ix.Unique && !hasNull, 0)
}

func (w *tableWriter) notNullViolation(ctx context.Context, ord int, row types.Row) error {
	column := w.table.Columns[ord].Name
	e := pgerror.New(pgerror.NotNullViolation, "null value in column %q of relation %q violates not-null constraint", column, w.table.Name)
	e.Schema, e.Table, e.Column = w.table.Schema, w.table.Name, column
	return w.withRow(ctx, e, row)
}

func (w *tableWriter) checkViolation(ctx context.Context, constraint string, row types.Row) error {
	e := pgerror.New(pgerror.CheckViolation, "new row for relation %q violates check constraint %q", w.table.Name, constraint)
	e.Schema, e.Table, e.Constraint = w.table.Schema, w.table.Name, constraint
	return w.withRow(ctx, e, row)
}

// boundViolation is the error of a row that does not belong to a partition.
func (w *tableWriter) boundViolation(ctx context.Context, row types.Row) error {
	e := pgerror.New(pgerror.CheckViolation, "new row for relation %q violates partition constraint", w.table.Name)
	e.Schema, e.Table = w.table.Schema, w.table.Name
	return w.withRow(ctx, e, row)
}

// withRow adds the detail of constraint errors: the row, or the columns of it that the role may read by the privileges in force.
func (w *tableWriter) withRow(ctx context.Context, e *pgerror.Error, row types.Row) error {
	role := w.ex.rt.Role
	if role == 0 || w.ex.rt.Resolver == nil {
		_, values := w.describe(row, func(int) bool { return true })
		return e.WithDetail("Failing row contains %s.", values)
	}
	a, t := accessNow(ctx, w.ex.rt.inForce(ctx), role, w.table)
	switch {
	case a == nil || a.RowSecurity(t) == catalog.RowSecurityApplies:
		return e
	case a.Relation(t, acl.Select, false) != 0:
		_, values := w.describe(row, func(int) bool { return true })
		return e.WithDetail("Failing row contains %s.", values)
	}
	names, values := w.describe(row, func(i int) bool { return a.Column(t, i, acl.Select) != 0 })
	if names == "()" {
		return e
	}
	return e.WithDetail("Failing row contains %s = %s.", names, values)
}

// describe prints the columns of a row that are shown, and their names, as PostgreSQL does in the details of constraint errors.
func (w *tableWriter) describe(row types.Row, shown func(ordinal int) bool) (names, values string) {
	columns, out := []byte{'('}, []byte{'('}
	for i := range w.table.Columns {
		if w.table.Columns[i].Hidden || !shown(i) {
			continue
		}
		if len(out) > 1 {
			out, columns = append(out, ", "...), append(columns, ", "...)
		}
		columns = append(columns, w.table.Columns[i].Name...)
		if row[i].IsNull() {
			out = append(out, "null"...)
			continue
		}
		out = append(out, clip(types.AppendText(nil, row[i], w.table.Columns[i].Type, &w.ex.rt.Env.Format))...)
	}
	return string(append(columns, ')')), string(append(out, ')'))
}

// describedBytes is how many bytes of a value PostgreSQL shows of a failing row.
const describedBytes = 64

func clip(s []byte) []byte {
	if len(s) <= describedBytes {
		return s
	}
	n := describedBytes
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return append(s[:n:n], "..."...)
}
