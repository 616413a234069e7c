package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// Inserter stores full table rows without a plan: COPY FROM. Keys and values are carved from large
// chunks that the transaction keeps. One goroutine's.
type Inserter struct {
	ex     execution
	writer *tableWriter
	row    types.Row
	rows   int64

	triggers *triggers
	m        modify
	parts    *parts // of a partitioned table; nil: writer stores the rows
}

// NewInserter prepares inserting into t, whose observers and bound index expressions are given (nil: none), under rt, whose Txn, Env, RowIDs and EagerUnique are used.
func NewInserter(t *catalog.TableDescriptor, checks []planner.Check, o *planner.Observed, x *planner.IndexExprs, rt *Runtime) *Inserter {
	in := &Inserter{row: make(types.Row, len(t.Columns))}
	in.ex.bind(rt)
	in.writer = newTableWriter(&in.ex, t, checks, nil, o, x)
	in.writer.sink.direct, in.writer.sink.resume = true, true
	return in
}

// Divide makes the inserter store the rows in the partitions of the table.
func (in *Inserter) Divide(plan *planner.Parts) {
	if plan == nil {
		return
	}
	in.m.begin(&in.ex, nil, in.writer, nil)
	in.m.triggers = in.triggers
	in.parts = newParts(&in.m, in.writer.table, plan)
	in.parts.once = true
	in.parts.tune = func(w *tableWriter, _ *planner.Leaf) {
		w.sink.direct, w.sink.resume = true, true
		if w.keys != nil {
			in.ex.keys.resume = true
		}
	}
}

// Confine makes the inserter refuse rows that do not belong to the table, which is a partition.
func (in *Inserter) Confine(bound *planner.PartitionCheck) {
	in.writer.bound = bound
	if in.triggers != nil {
		in.triggers.bound = bound
	}
}

// Generate makes the inserter compute generated columns.
func (in *Inserter) Generate(columns []planner.GeneratedColumn) { in.writer.generated = columns }

// Enforce makes the rows subject to foreign keys: Flush checks them.
func (in *Inserter) Enforce(refs *planner.References) {
	if refs != nil {
		in.writer.keys = in.ex.queueFor(refs)
		in.ex.keys.resume = true
	}
}

// Fire has the rows execute triggers: those after them when Flush is called.
func (in *Inserter) Fire(g *planner.Triggers) {
	if in.triggers = newTriggers(&in.ex, in.writer.table, g, catalog.TriggerInsert); in.triggers != nil {
		in.triggers.sink = &in.writer.sink
	}
	in.m.triggers = in.triggers
}

// Begin executes the triggers before the statement.
func (in *Inserter) Begin(ctx context.Context) error {
	in.ex.ev.Ctx = ctx
	return in.triggers.begin(ctx)
}

// Insert stores a full row in the order of the table's columns. A hidden rowid is NULL and is assigned here; constraints
// are checked and index entries are written. row is not kept. A unique violation is returned here, or by the next Flush,
// under EagerUnique, and otherwise by the commit.
func (in *Inserter) Insert(ctx context.Context, row types.Row) error {
	in.ex.ev.Ctx = ctx
	if err := in.ex.tick(ctx); err != nil {
		return err
	}
	if in.parts != nil {
		in.rows++
		return in.parts.insert(ctx, row)
	}
	copy(in.row, row)
	if err := in.writer.fillRowID(ctx, in.row); err != nil {
		return err
	}
	if ok, err := in.triggers.before(ctx, catalog.TriggerInsert, nil, in.row); !ok || err != nil {
		return err
	}
	if err := in.writer.generate(in.row); err != nil {
		return err
	}
	if err := in.writer.check(ctx, in.row); err != nil {
		return err
	}
	if err := in.writer.insert(ctx, in.row); err != nil {
		return err
	}
	if err := in.triggers.written(catalog.TriggerInsert, nil, in.row); err != nil {
		return err
	}
	in.rows++
	return nil
}

// Flush finishes the checks under way; call it after the last row.
func (in *Inserter) Flush(ctx context.Context) error {
	if in.parts == nil {
		in.m.writer = in.writer
	}
	if err := in.m.write(ctx); err != nil {
		return err
	}
	if err := in.ex.keys.run(ctx); err != nil {
		return err
	}
	in.m.ex = &in.ex
	return in.m.fire(ctx)
}

// Written calls f with each partition that rows were stored in, and their number.
func (in *Inserter) Written(f func(t *catalog.TableDescriptor, rows int64)) {
	for _, l := range in.m.leaves {
		f(l.writer.table, l.affected)
	}
}

// Close releases what triggers and foreign keys hold of the rows.
func (in *Inserter) Close() error {
	in.ex.keys.reset()
	err := firstError(in.triggers.release(), in.ex.fired.release())
	for _, l := range in.m.leaves {
		err = firstError(err, l.triggers.release())
	}
	return err
}

// Rows is the number of rows inserted.
func (in *Inserter) Rows() int64 { return in.rows }
