package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/entries"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// scanRows calls f with every full row of t; the row is valid until f returns. In a block it reads through the block's
// transaction. Outside a block it reads a new snapshot: the table is closed, so this snapshot is current, and includes
// what an earlier command of the same statement has rewritten in chunks.
func (r *run) scanRows(ctx context.Context, t *catalog.TableDescriptor, phase string, f func(row types.Row) error) error {
	ordinals := make([]int, len(t.Columns))
	for i := range ordinals {
		ordinals[i] = i
	}
	var d rowenc.Decoder
	if err := d.Init(t, &t.Primary, ordinals); err != nil {
		return err
	}
	reader := r.txn
	if r.alone {
		var err error
		if reader, err = r.DB.Begin(ctx); err != nil {
			return err
		}
		defer reader.Close()
	}
	start, end := rowenc.IndexSpan(t.ID, t.Primary.ID)
	it := reader.Scan(ctx, kv.Span{Start: start, End: end}, percolator.ScanOptions{})
	defer it.Close()
	row := make(types.Row, len(ordinals))
	var n int64
	take := func(key, value []byte) error {
		if err := d.Decode(key, value, row); err != nil {
			return err
		}
		if err := f(row); err != nil {
			return err
		}
		if n++; n%r.ProgressRows == 0 {
			r.Report.Progress(phase, n)
		}
		return nil
	}
	if r.alone { // and what f writes is not in reader
		return readAhead(ctx, it, take)
	}
	for it.Next(ctx) {
		if err := take(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Err()
}

// backfill fills indexes of t with an entry for every row.
func (r *run) backfill(ctx context.Context, t *catalog.TableDescriptor, indexes []*catalog.IndexDescriptor) error {
	for _, ix := range indexes {
		r.own(t, ix.ID)
	}
	make, err := r.entryMaker(ctx, t)
	if err != nil {
		return err
	}
	out := r.newChunks()
	fill := func() error {
		if make != nil {
			defer r.actAsOwner(t)()
		}
		return r.scanRows(ctx, t, "building index", func(row types.Row) error {
			if make != nil {
				make.Begin(row)
			}
			for _, ix := range indexes {
				if err := writeEntry(ctx, out, t, ix, make, row); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = fill()
	if err := r.explainDuplicate(t, out.finish(ctx, err)); err != nil {
		return err
	}
	return r.verifyLateKeys(ctx, t, indexes)
}

// rewrite writes every row of old as a row of next, with all entries. transform makes the new row, and may reuse the old
// one for it.
func (r *run) rewrite(ctx context.Context, old, next *catalog.TableDescriptor, transform func(row types.Row) (types.Row, error)) error {
	err := requireUnobserved(old, "rewriting the rows", "Drop its observers first; those that are created again FROM BEGINNING handle all rows.")
	if err != nil {
		return err
	}
	r.ownIndexes(next)
	make, err := r.entryMaker(ctx, next)
	if err != nil {
		return err
	}
	out := r.newChunks()
	err = r.scanRows(ctx, old, "rewriting table", func(row types.Row) error {
		row, err := transform(row)
		if err != nil {
			return err
		}
		if err := writeRow(ctx, out, next, row); err != nil {
			return err
		}
		if make != nil {
			make.Begin(row)
			defer r.actAsOwner(next)() // not before: transform evaluates expressions of the statement, with the privileges of the user
		}
		for i := range next.Indexes {
			if err := writeEntry(ctx, out, next, &next.Indexes[i], make, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err := r.explainDuplicate(next, out.finish(ctx, err)); err != nil || !next.HasLateKeys() {
		return err
	}
	var late []*catalog.IndexDescriptor
	for i := range next.Indexes {
		late = append(late, &next.Indexes[i])
	}
	return r.verifyLateKeys(ctx, next, late)
}

func writeRow(ctx context.Context, out *chunks, t *catalog.TableDescriptor, row types.Row) error {
	key, _, err := rowenc.AppendKey(out.arena.Start(), t, &t.Primary, row)
	if err != nil {
		return err
	}
	key = out.arena.Finish(key)
	value, err := rowenc.AppendRow(out.arena.Start(), t, row)
	if err != nil {
		return err
	}
	value = out.arena.Finish(value)
	if t.HasPrimaryKey() {
		return out.insert(ctx, key, value)
	}
	return out.put(ctx, key, value) // A rowid is unique by birth.
}

// actAsOwner begins the evaluation of what the indexes of t compute, with the privileges of the table's owner; leave ends it. Whoever makes,
// rebuilds or analyzes an index does not trust the functions that its expressions call.
func (r *run) actAsOwner(t *catalog.TableDescriptor) (leave func()) {
	if r.Restrict == nil {
		return func() {}
	}
	return r.Restrict(t.OwnerOID())
}

// entryMaker returns what computes the entries of the indexes of t; nil if a row is all they hold.
func (r *run) entryMaker(ctx context.Context, t *catalog.TableDescriptor) (*entries.Maker, error) {
	exprs, err := planner.BindIndexExprs(ctx, t, r.r, r.Env)
	if exprs != nil && err == nil {
		defer r.actAsOwner(t)()
		err = planner.AuthorizeCalls(r.Env, slices.Concat(exprs.Computed, exprs.Where)...)
	}
	return entries.NewMaker(t, exprs, &expr.Context{Ctx: ctx, Env: r.Env}), err
}

// writeEntry writes the entry that a secondary index of t has for a row, which make has begun.
func writeEntry(ctx context.Context, out *chunks, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, make *entries.Maker, row types.Row) error {
	if make == nil {
		return putEntry(ctx, out, t, ix, row)
	}
	at := slices.IndexFunc(t.Indexes, func(other catalog.IndexDescriptor) bool { return other.ID == ix.ID })
	return make.Entries(at, func(held types.Row) error { return putEntry(ctx, out, t, ix, held) })
}

// putEntry writes the entry for what an index holds of a row.
func putEntry(ctx context.Context, out *chunks, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, row types.Row) error {
	key, hasNull, err := rowenc.AppendKey(out.arena.Start(), t, ix, row)
	if err != nil {
		return err
	}
	key = out.arena.Finish(key)
	value, err := rowenc.AppendEntry(out.arena.Start(), t, ix, row)
	if err != nil {
		return err
	}
	value = out.arena.Finish(value)
	if ix.Unique && !hasNull {
		return out.insert(ctx, key, value)
	}
	return out.put(ctx, key, value)
}

// renumber gives all indexes of t new ids, because its rows are to be rewritten; no column will be missing in them.
func renumber(t *catalog.TableDescriptor) {
	for i := range t.Columns {
		t.Columns[i].Missing = nil
	}
	t.Primary.ID = t.NextIndexID
	t.NextIndexID++
	for i := range t.Indexes {
		t.Indexes[i].ID = t.NextIndexID
		t.NextIndexID++
	}
}

// own declares to the block's transaction that it alone can use the keys of an index to whose id no committed descriptor
// refers. The table is closed, or new.
func (r *run) own(t *catalog.TableDescriptor, index uint32) {
	if !r.alone {
		start, end := rowenc.IndexSpan(t.ID, index)
		r.txn.AddPrivateSpan(kv.Span{Start: start, End: end})
	}
}

// ownIndexes is own for all indexes of t.
func (r *run) ownIndexes(t *catalog.TableDescriptor) {
	r.own(t, t.Primary.ID)
	for i := range t.Indexes {
		r.own(t, t.Indexes[i].ID)
	}
}

// dropIndexes queues the keys of all indexes of t, as they were, for the garbage collector.
func (r *run) dropIndexes(ctx context.Context, t *catalog.TableDescriptor) error {
	if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Table: t.ID, Index: t.Primary.ID}); err != nil {
		return err
	}
	for i := range t.Indexes {
		if err := r.ch.DropSpan(ctx, catalog.DroppedSpan{Table: t.ID, Index: t.Indexes[i].ID}); err != nil {
			return err
		}
	}
	return nil
}

// explainDuplicate turns the error of a key that occurs twice into the client's.
func (r *run) explainDuplicate(t *catalog.TableDescriptor, err error) error {
	exists, ok := errkind.As[*mvcc.KeyExistsError](err)
	if !ok {
		return err
	}
	ix := &t.Primary
	if _, id, _, err := rowenc.SplitKey(exists.Key); err == nil {
		for i := range t.Indexes {
			if t.Indexes[i].ID == id {
				ix = &t.Indexes[i]
			}
		}
	}
	e := pgerror.New(pgerror.UniqueViolation, "could not create unique index %q", ix.Name)
	e.Schema, e.Table, e.Constraint, e.Cause = t.Schema, t.Name, ix.Name, err
	values, decodeErr := rowenc.KeyColumns(t, ix, exists.Key)
	if decodeErr != nil {
		return e
	}
	var names, texts strings.Builder
	for i, c := range ix.Columns {
		if i > 0 {
			names.WriteString(", ")
			texts.WriteString(", ")
		}
		col := t.ColumnByID(c.ColumnID)
		names.WriteString(col.Name)
		texts.Write(types.AppendText(nil, values[i], col.Type, nil))
	}
	return e.WithDetail("Key (%s)=(%s) is duplicated.", names.String(), texts.String())
}
