package check

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/entries"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// table checks rows against entries, and entries against rows.
func (k *checker) table(ctx context.Context, t *catalog.TableDescriptor) error {
	k.sum.Tables++
	ordinals := make([]int, len(t.Columns))
	for i := range ordinals {
		ordinals[i] = i
	}
	tc := &tableChecker{checker: k, t: t}
	exprs, err := planner.BindIndexExprs(ctx, t, k.resolver, k.env)
	if err != nil {
		return k.found(t, nil, nil, "the expressions of its indexes cannot be bound: %v", err)
	}
	tc.entries = entries.NewMaker(t, exprs, &expr.Context{Ctx: ctx, Env: k.env})
	if err := tc.decoder.Init(t, &t.Primary, ordinals); err != nil {
		return k.found(t, &t.Primary, nil, "rows cannot be decoded: %v", err)
	}
	if tc.bound, err = planner.BindPartitionCheck(ctx, t, k.resolver, k.env); err != nil {
		return k.found(t, nil, nil, "the bounds of partitions cannot be bound: %v", err)
	}
	if err := tc.bindConditions(ctx); err != nil {
		return err
	}
	if err := tc.bindKeys(ctx); err != nil {
		return err
	}
	if err := tc.bindLateKeys(ctx); err != nil {
		return err
	}
	if err := tc.bindSequences(ctx); err != nil {
		return err
	}
	if err := tc.rows(ctx); err != nil {
		return err
	}
	if err := tc.behind(ctx); err != nil {
		return err
	}
	if err := tc.guards(ctx); err != nil {
		return err
	}
	for i := range t.Indexes {
		if ix := &t.Indexes[i]; ix.State == catalog.IndexPublic {
			if err := tc.entriesOf(ctx, ix); err != nil {
				return err
			}
		}
	}
	for i := range t.Observers {
		if err := tc.acknowledgements(ctx, &t.Observers[i]); err != nil {
			return err
		}
	}
	return nil
}

// guards checks that the keys which are locked in place of others have no values.
func (c *tableChecker) guards(ctx context.Context) error {
	start, end := rowenc.GuardSpan(c.t.ID)
	key, err := firstKey(ctx, kv.Span{Start: start, End: end}, c.txn)
	if key == nil || err != nil {
		return err
	}
	return c.found(c.t, nil, key, "the guard of a key has a value")
}

// tableChecker checks one table.
type tableChecker struct {
	*checker
	t       *catalog.TableDescriptor
	decoder rowenc.Decoder
	entries *entries.Maker // nil: a row is all that the indexes hold
	bound   *planner.PartitionCheck
	conditions
	// Entries that rows should have, waiting to be looked up together.
	wanted []wantedEntry
	keys   []*keyChecker
	late   []*lateChecker
	drawn  []drawn
}

type wantedEntry struct {
	ix                 *catalog.IndexDescriptor
	key, value, rowKey []byte
}

func (c *tableChecker) scan(ctx context.Context, ix *catalog.IndexDescriptor) percolator.Iterator {
	start, end := rowenc.IndexSpan(c.t.ID, ix.ID)
	return c.txn.Scan(ctx, kv.Span{Start: start, End: end}, percolator.ScanOptions{})
}

// rows decodes every row and looks up its entries.
func (c *tableChecker) rows(ctx context.Context) error {
	it := c.scan(ctx, &c.t.Primary)
	defer it.Close()
	row := make(types.Row, len(c.t.Columns))
	for it.Next(ctx) {
		c.sum.Rows++
		c.seen(c.t, c.sum.Rows)
		if err := c.row(ctx, it.Key(), it.Value(), row); err != nil {
			return err
		}
	}
	if it.Err() != nil {
		return it.Err()
	}
	for _, k := range c.keys {
		if err := c.lookUpParents(ctx, k); err != nil {
			return err
		}
	}
	return c.lookUp(ctx)
}

func (c *tableChecker) row(ctx context.Context, key, value []byte, row types.Row) error {
	if err := c.decoder.Decode(key, value, row); err != nil {
		return c.found(c.t, nil, key, "%v", err)
	}
	for i := range c.t.Columns {
		if c.t.Columns[i].NotNull && row[i].IsNull() {
			if err := c.found(c.t, nil, key, "column %q is NULL", c.t.Columns[i].Name); err != nil {
				return err
			}
		}
	}
	own, _, err := rowenc.AppendKey(nil, c.t, &c.t.Primary, row)
	if err != nil || !bytes.Equal(own, key) {
		if err := c.found(c.t, nil, key, "row does not belong under its key"); err != nil {
			return err
		}
	}
	if err := c.place(ctx, key, row); err != nil {
		return err
	}
	if err := c.meets(key, row); err != nil {
		return err
	}
	c.draws(row)
	c.begin(row)
	if err := c.parents(ctx, key, row); err != nil {
		return err
	}
	if err := c.conflicts(ctx, key, row); err != nil {
		return err
	}
	for i := range c.t.Indexes {
		ix := &c.t.Indexes[i]
		if ix.State != catalog.IndexPublic {
			continue
		}
		err := c.entriesFor(ix, row, func(entry wantedEntry) {
			entry.rowKey = slices.Clone(key)
			c.wanted = append(c.wanted, entry)
		})
		if err != nil {
			return c.found(c.t, ix, key, "entry of the row: %v", err)
		}
	}
	if len(c.wanted) >= groupSize {
		return c.lookUp(ctx)
	}
	return nil
}

// place checks that a row is stored where it belongs: a partitioned table has no rows, a partition those within its bound.
func (c *tableChecker) place(ctx context.Context, key []byte, row types.Row) error {
	if c.t.IsPartitioned() {
		return c.found(c.t, nil, key, "a partitioned table has a row of its own")
	}
	ok, err := c.bound.Holds(&expr.Context{Ctx: ctx, Env: c.env}, row)
	if err != nil {
		return c.found(c.t, nil, key, "partition of the row: %v", err)
	}
	if !ok {
		return c.found(c.t, nil, key, "row does not belong to the partition")
	}
	return nil
}

// begin takes the row for which entriesFor is called.
func (c *tableChecker) begin(row types.Row) {
	if c.entries != nil {
		c.entries.Begin(row)
	}
}

// entriesFor calls f with the entries that an index should hold for a row that has begun.
func (c *tableChecker) entriesFor(ix *catalog.IndexDescriptor, row types.Row, f func(wantedEntry)) error {
	add := func(row types.Row) error {
		key, _, err := rowenc.AppendKey(nil, c.t, ix, row)
		if err != nil {
			return err
		}
		value, err := rowenc.AppendEntry(nil, c.t, ix, row)
		if err == nil {
			f(wantedEntry{ix: ix, key: key, value: value})
		}
		return err
	}
	if c.entries == nil {
		return add(row)
	}
	return c.entries.Entries(slices.IndexFunc(c.t.Indexes, func(other catalog.IndexDescriptor) bool { return other.ID == ix.ID }), add)
}

// hasEntry reports whether an index should hold an entry under key for a row that has begun.
func (c *tableChecker) hasEntry(ix *catalog.IndexDescriptor, row types.Row, key []byte) (has bool, err error) {
	if ix.Inverted == nil {
		err = c.entriesFor(ix, row, func(entry wantedEntry) { has = bytes.Equal(entry.key, key) })
		return has, err
	}
	at := slices.IndexFunc(c.t.Indexes, func(other catalog.IndexDescriptor) bool { return other.ID == ix.ID })
	if _, ok, err := c.entries.Entry(at); !ok || err != nil {
		return false, err
	}
	term, err := rowenc.KeyColumns(c.t, ix, key)
	if err != nil {
		return false, err
	}
	terms, err := c.entries.Terms(at)
	_, has = slices.BinarySearchFunc(terms, term[0].Bytes(), bytes.Compare)
	return has, err
}

// lookUp compares the pending entries with what is stored.
func (c *tableChecker) lookUp(ctx context.Context) error {
	keys := make([][]byte, len(c.wanted))
	for i := range c.wanted {
		keys[i] = c.wanted[i].key
	}
	stored, err := c.txn.BatchGet(ctx, keys)
	if err != nil {
		return err
	}
	for i, value := range stored {
		w := &c.wanted[i]
		switch {
		case value == nil:
			err = c.found(c.t, w.ix, w.rowKey, "row has no entry %x", w.key)
		case !bytes.Equal(value, w.value):
			err = c.found(c.t, w.ix, w.rowKey, "entry %x holds %x, the row says %x", w.key, value, w.value)
		}
		if err != nil {
			return err
		}
	}
	c.wanted = c.wanted[:0]
	return nil
}

// entriesOf checks that every entry of an index is that of a row.
func (c *tableChecker) entriesOf(ctx context.Context, ix *catalog.IndexDescriptor) error {
	it := c.scan(ctx, ix)
	defer it.Close()
	var keys, rowKeys [][]byte
	for it.Next(ctx) {
		c.sum.Entries++
		c.seen(c.t, c.sum.Entries)
		rowKey, err := rowenc.AppendRowKey(nil, c.t, ix, it.Key(), it.Value())
		if err != nil {
			if err := c.found(c.t, ix, slices.Clone(it.Key()), "%v", err); err != nil {
				return err
			}
			continue
		}
		keys, rowKeys = append(keys, slices.Clone(it.Key())), append(rowKeys, rowKey)
		if len(keys) == groupSize {
			if err := c.pointsAt(ctx, ix, keys, rowKeys); err != nil {
				return err
			}
			keys, rowKeys = keys[:0], rowKeys[:0]
		}
	}
	if it.Err() != nil {
		return it.Err()
	}
	return c.pointsAt(ctx, ix, keys, rowKeys)
}

// pointsAt checks that the rows under rowKeys exist and have the entries under keys. The rest of an entry was compared
// with its row in the other direction.
func (c *tableChecker) pointsAt(ctx context.Context, ix *catalog.IndexDescriptor, keys, rowKeys [][]byte) error {
	values, err := c.txn.BatchGet(ctx, rowKeys)
	if err != nil {
		return err
	}
	row := make(types.Row, len(c.t.Columns))
	for i, value := range values {
		if value == nil {
			if err := c.found(c.t, ix, keys[i], "points at a row that is not there: %x", rowKeys[i]); err != nil {
				return err
			}
			continue
		}
		if err := c.decoder.Decode(rowKeys[i], value, row); err != nil {
			continue // Reported with the row.
		}
		c.begin(row)
		has, err := c.hasEntry(ix, row, keys[i])
		if err == nil && !has {
			if err := c.found(c.t, ix, keys[i], "is not the entry of the row it points at: %x", rowKeys[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
