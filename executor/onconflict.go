package executor

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// onConflict inserts rows unless an arbiter index contains their key. Rows are processed in groups, whose keys are
// looked up together; a key that this statement has written since is looked up again. A concurrent insert by another
// transaction causes a write conflict at commit.
type onConflict struct {
	m        *modify
	plan     *planner.OnConflict
	arbiters []*catalog.IndexDescriptor
	at       []int          // places of the arbiters among the table's indexes, -1 for the primary key
	late     []lateArbiter  // arbiters that are checked late
	decoder  rowenc.Decoder // of whole rows

	group  int
	rows   rowBuffer
	locks  [][]byte // scratch
	keys   [][]byte // by row and arbiter; nil where a NULL keeps the row out of conflict
	values [][]byte // values of the keys when the group was looked up

	written map[string]struct{} // arbiter keys this statement has written or removed
	touched map[string]struct{} // primary keys of the rows it has inserted or updated
	held    int64               // booked for written and touched

	pair   types.Row // the existing row, then the excluded one
	newRow types.Row
}

func newOnConflict(m *modify, t *catalog.TableDescriptor, plan *planner.OnConflict) (*onConflict, error) {
	width := len(t.Columns)
	c := &onConflict{
		m: m, plan: plan, arbiters: plan.Arbiters, group: 1,
		rows: rowBuffer{mem: &m.ex.mem}, pair: make(types.Row, 2*width), newRow: make(types.Row, width),
	}
	if c.arbiters == nil {
		if !m.writer.hasRowID() {
			c.arbiters = append(c.arbiters, &t.Primary)
		}
		for i := range t.Indexes {
			if t.Indexes[i].Unique {
				c.arbiters = append(c.arbiters, &t.Indexes[i])
			}
		}
	}
	var err error
	if c.late, err = newLateArbiters(m.ex, plan.Late); err != nil {
		return nil, err
	}
	if len(c.late) > 0 && (!m.writer.sink.direct || m.ex.together) {
		return nil, pgerror.Unsupported("ON CONFLICT over an exclusion constraint in a statement with other changes, or with subqueries in RETURNING",
			"Run the INSERT as a statement of its own.")
	}
	for _, ix := range c.arbiters {
		c.at = append(c.at, slices.IndexFunc(t.Indexes, func(other catalog.IndexDescriptor) bool { return other.ID == ix.ID }))
	}
	return c, c.decoder.Init(t, &t.Primary, allOrdinals(t))
}

// release forgets a run.
func (c *onConflict) release() {
	c.rows.release()
	c.written, c.touched = nil, nil
	c.m.ex.mem.shrink(c.held)
	c.held = 0
	c.group = 1
}

// add takes a row, which is copied.
func (c *onConflict) add(ctx context.Context, row types.Row) error {
	if err := c.rows.add(row); err != nil {
		return err
	}
	if len(c.rows.rows) < c.group {
		return nil
	}
	return c.settle(ctx)
}

// settle inserts or updates the rows taken.
func (c *onConflict) settle(ctx context.Context) error {
	if err := c.lookUp(ctx); err != nil {
		return err
	}
	for i, row := range c.rows.rows {
		if err := c.settleRow(ctx, i*len(c.arbiters), row); err != nil {
			return err
		}
	}
	c.rows.reset()
	c.group = c.m.ex.nextGroup(max(c.group, firstGroupSize/2))
	return nil
}

// lookUp reads the arbiters' keys of all rows taken.
func (c *onConflict) lookUp(ctx context.Context) error {
	c.keys, c.values = c.keys[:0], c.values[:0]
	var wanted [][]byte
	for _, row := range c.rows.rows {
		for i := range c.arbiters {
			key, err := c.arbiterKey(i, row)
			if err != nil {
				return err
			}
			if key != nil {
				wanted = append(wanted, key)
			}
			c.keys = append(c.keys, key)
		}
	}
	found, err := c.m.ex.txn.BatchGet(ctx, wanted)
	if err != nil {
		return err
	}
	for _, key := range c.keys {
		if key == nil {
			c.values = append(c.values, nil)
			continue
		}
		c.values = append(c.values, found[0])
		found = found[1:]
	}
	if c.m.ex.rt.Lock {
		return c.lock(ctx)
	}
	return nil
}

// arbiterKey returns the key of a row in an arbiter, nil if the row is in conflict with none: a key column is NULL, or the arbiter is partial and has
// no entry for the row.
func (c *onConflict) arbiterKey(i int, row types.Row) ([]byte, error) {
	w := c.m.writer
	if make := w.entries; make != nil && c.at[i] >= 0 {
		make.Begin(row)
		held, ok, err := make.Entry(c.at[i])
		if !ok || err != nil {
			return nil, err
		}
		row = held
	}
	key, hasNull, err := rowenc.AppendKey(nil, w.table, c.arbiters[i], row)
	if hasNull || err != nil {
		return nil, err
	}
	return key, nil
}

// lock locks the keys that are free, so that no other transaction inserts them, and for DO UPDATE the existing keys and
// their rows, so that no other transaction changes them.
func (c *onConflict) lock(ctx context.Context) error {
	t := c.m.writer.table
	c.locks = c.locks[:0]
	for i, key := range c.keys {
		taken := c.values[i] != nil
		if key == nil || taken && !c.plan.DoUpdate {
			continue
		}
		c.locks = append(c.locks, key)
		if ix := c.arbiters[i%len(c.arbiters)]; taken && ix.ID != t.Primary.ID {
			rowKey, err := rowenc.AppendRowKey(nil, t, ix, key, c.values[i])
			if err != nil {
				return err
			}
			c.locks = append(c.locks, rowKey)
		}
	}
	if len(c.locks) == 0 {
		return nil
	}
	_, err := c.m.ex.txn.AcquireLocks(ctx, percolator.LockOptions{Existence: true}, c.locks...)
	return err
}

// settleRow handles one row; its keys begin at at.
func (c *onConflict) settleRow(ctx context.Context, at int, row types.Row) error {
	for i, ix := range c.arbiters {
		key := c.keys[at+i]
		if key == nil {
			continue
		}
		value := c.values[at+i]
		if c.changed(key) {
			var err error
			if value, err = c.m.writer.sink.get(ctx, key); err != nil {
				return err
			}
		}
		if value != nil {
			return c.conflict(ctx, ix, key, value, row)
		}
	}
	for i := range c.late {
		if taken, err := c.late[i].taken(ctx, row); taken || err != nil {
			return err
		}
	}
	if err := c.m.writer.insert(ctx, row); err != nil {
		return err
	}
	if err := c.m.triggers.written(catalog.TriggerInsert, nil, row); err != nil {
		return err
	}
	if err := c.note(ctx, row); err != nil {
		return err
	}
	return c.m.changed(ctx, row)
}

// changed reports whether the statement has written or removed a key of an arbiter.
func (c *onConflict) changed(key []byte) bool {
	_, written := c.written[string(key)]
	if !written && c.m.ex.together {
		_, written = c.m.ex.pending[string(key)]
	}
	return written
}

// affected reports whether the statement has changed or inserted the row with a primary key.
func (c *onConflict) affected(key []byte) bool {
	_, touched := c.touched[string(key)]
	if !touched && c.m.ex.together {
		_, touched = c.m.ex.pending[string(key)]
	}
	return touched
}

// conflict handles a row whose key in ix is taken.
func (c *onConflict) conflict(ctx context.Context, ix *catalog.IndexDescriptor, key, value []byte, row types.Row) error {
	if !c.plan.DoUpdate {
		return nil
	}
	w := c.m.writer
	if ix.ID != w.table.Primary.ID {
		var err error
		if key, err = rowenc.AppendRowKey(nil, w.table, ix, key, value); err != nil {
			return err
		}
	}
	if c.affected(key) {
		return pgerror.New(pgerror.CardinalityViolation, "ON CONFLICT DO UPDATE command cannot affect row a second time").
			WithHint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
	}
	if ix.ID != w.table.Primary.ID {
		var err error
		if value, err = c.m.ex.txn.Get(ctx, key); err != nil {
			return err
		}
		if value == nil {
			return (&access{table: w.table, index: ix}).dangling(key)
		}
	}
	old := c.pair[:len(w.table.Columns)]
	if err := c.decoder.Decode(key, value, old); err != nil {
		return err
	}
	copy(c.pair[len(old):], row)
	return c.update(ctx, old)
}

// requireStay fails if the new row belongs to another partition.
func (c *onConflict) requireStay() error {
	w := c.m.writer
	if w.bound == nil {
		return nil
	}
	if ok, err := w.bound.Holds(&w.ex.ev, c.newRow); ok || err != nil {
		return err
	}
	return pgerror.New(pgerror.FeatureNotSupported, "invalid ON UPDATE specification").
		WithDetail("The result tuple would appear in a different partition than the original tuple.")
}

// update sets the existing row, which is the first half of pair.
func (c *onConflict) update(ctx context.Context, old types.Row) error {
	ex, w := c.m.ex, c.m.writer
	// Unlike PostgreSQL, which evaluates WHERE for a row that the policies hide.
	if err := c.m.pass(c.plan.Policies, old, true); err != nil {
		return err
	}
	ok, err := ex.holds(c.plan.Where, c.pair)
	if !ok || err != nil {
		return err
	}
	if err := ex.evalAll(c.plan.Set, c.pair, c.newRow); err != nil {
		return err
	}
	if ok, err := c.m.triggers.before(ctx, catalog.TriggerUpdate, old, c.newRow); !ok || err != nil {
		return err
	}
	if err := w.unmodified(ctx, old, "updated"); err != nil {
		return err
	}
	if err := w.generate(c.newRow); err != nil {
		return err
	}
	if err := c.m.pass(c.plan.Policies, c.newRow, false); err != nil {
		return err
	}
	if err := c.requireStay(); err != nil {
		return err
	}
	if err := w.check(ctx, c.newRow); err != nil {
		return err
	}
	if err := w.update(ctx, old, c.newRow); err != nil {
		return err
	}
	if err := c.m.triggers.written(catalog.TriggerUpdate, old, c.newRow); err != nil {
		return err
	}
	if err := c.note(ctx, old); err != nil {
		return err
	}
	if err := c.note(ctx, c.newRow); err != nil {
		return err
	}
	c.m.replaced = true
	defer func() { c.m.replaced = false }()
	return c.m.changed(ctx, c.newRow)
}

// note records a row that was written or removed, and makes its writes visible to later lookups.
func (c *onConflict) note(ctx context.Context, row types.Row) error {
	if c.m.writer.sink.pending == nil {
		if err := c.m.writer.sink.flush(ctx); err != nil {
			return err
		}
	}
	if c.written == nil {
		c.written, c.touched = make(map[string]struct{}), make(map[string]struct{})
	}
	t := c.m.writer.table
	for i := range c.arbiters {
		key, err := c.arbiterKey(i, row)
		if err != nil {
			return err
		}
		if key == nil {
			continue
		}
		c.written[string(key)] = struct{}{}
		if err := c.book(key); err != nil {
			return err
		}
	}
	key, _, err := rowenc.AppendKey(nil, t, &t.Primary, row)
	if err != nil {
		return err
	}
	c.touched[string(key)] = struct{}{}
	return c.book(key)
}

func (c *onConflict) book(key []byte) error {
	n := int64(len(key)) + headerBytes
	if err := c.m.ex.mem.grow(n); err != nil {
		return err
	}
	c.held += n
	return nil
}
