package executor

import (
	"context"
	"iter"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// Runner is a plan prepared for execution: the tree of operators with its buffers. A session may keep it with a prepared
// statement and run it repeatedly, with another Runtime each time, one run at a time; a run allocates only what the
// operators must return. Not safe for concurrent use.
//
//	r, err := NewRunner(plan)
//	r.Bind(rt); r.Open(ctx); r.Next(ctx) …; r.Close()
type Runner struct {
	ex      execution
	root    Operator
	started bool // Next has been called
	ended   bool // the root has no more rows
	// held are rows read from the tree that have not been returned yet.
	held RowStore
}

// Build is NewRunner and Bind: an operator tree for one run. The Runtime must stay unchanged while
// the plan runs.
func Build(p *planner.Plan, rt *Runtime) (*Runner, error) {
	r, err := NewRunner(p)
	if err != nil {
		return nil, err
	}
	r.Bind(rt)
	return r, nil
}

// NewRunner makes the operators of a plan.
func NewRunner(p *planner.Plan) (*Runner, error) { return newRunner(p, nil) }

// NewAnalyzedRunner is NewRunner for EXPLAIN ANALYZE: every operator is measured.
func NewAnalyzedRunner(p *planner.Plan) (*Runner, *Analysis, error) {
	a := &Analysis{nodes: make(map[planner.Node]*NodeStats)}
	r, err := newRunner(p, a)
	return r, a, err
}

func newRunner(p *planner.Plan, a *Analysis) (*Runner, error) {
	r := &Runner{ex: execution{plan: p, analyze: a}}
	if r.ex.together = len(p.Modifying) > 0; r.ex.together {
		r.ex.pending = map[string][]byte{}
	}
	for i, n := range p.CTEs {
		op, err := r.ex.build(n)
		if err != nil {
			return nil, err
		}
		r.ex.ctes = append(r.ex.ctes, &cteBuffer{ex: &r.ex, op: op, rows: rowBuffer{mem: &r.ex.mem}, modifies: slices.Contains(p.Modifying, i)})
	}
	var err error
	r.root, err = r.ex.build(p.Root)
	r.held.init(&r.ex, p.Root.Columns())
	return r, err
}

// Bind sets the environment of the next run. The runner must not be open.
func (r *Runner) Bind(rt *Runtime) { r.ex.bind(rt) }

// Open implements Operator.
func (r *Runner) Open(ctx context.Context) error {
	r.ex.ev.Ctx = ctx
	r.started, r.ended = false, false
	return r.root.Open(ctx)
}

// Next implements Operator. For INSERT, UPDATE and DELETE the first call does all the work.
func (r *Runner) Next(ctx context.Context) (types.Row, error) {
	if err := r.modify(ctx); err != nil {
		return nil, err
	}
	if row, err := r.held.Next(); row != nil || err != nil {
		return row, err
	}
	return r.pull(ctx)
}

// modify runs a statement with data-modifying WITH items when its first row is asked for: the root to its end, whose rows are held, then the
// items, each to its end. Then all writes are applied, in the order in which the changes have run.
func (r *Runner) modify(ctx context.Context) error {
	if !r.ex.together || r.started {
		return nil
	}
	for !r.ended {
		if _, err := r.takeIn(ctx); err != nil {
			return err
		}
	}
	for _, i := range r.ex.plan.Modifying {
		if err := r.ex.ctes[i].finish(ctx); err != nil {
			return err
		}
	}
	for _, m := range r.ex.finishing {
		if err := m.write(ctx); err != nil {
			return err
		}
	}
	if err := r.ex.keys.run(ctx); err != nil {
		return err
	}
	var own []*triggers
	for _, m := range r.ex.finishing {
		own = append(own, m.allTriggers()...)
	}
	return r.ex.fireAfter(ctx, own...)
}

// pull takes a row from the tree.
func (r *Runner) pull(ctx context.Context) (types.Row, error) {
	if r.ended {
		return nil, nil
	}
	r.started = true
	r.ex.ev.Ctx = ctx
	if err := r.ex.tick(ctx); err != nil {
		return nil, err
	}
	row, err := r.root.Next(ctx)
	r.ended = row == nil
	return row, err
}

// Hold ensures that the remaining rows are those that would be returned now, before the transaction writes: cursors do
// not see changes made after they were opened. It is called for every open Runner of a transaction before another
// statement of it writes. Rows that could change are read and kept (RowStore); a plan that reads along one iterator,
// which sees the transaction's writes up to its creation, only creates the iterator.
func (r *Runner) Hold(ctx context.Context) error {
	if err := r.modify(ctx); err != nil {
		return err
	}
	steady := r.ex.plan.Root.Properties().ReadsAhead
	if steady && r.started {
		return nil
	}
	if !steady {
		return r.Drain(ctx)
	}
	_, err := r.takeIn(ctx)
	return err
}

// Drain reads and keeps all rows still to come, before the transaction's snapshot moves away from that
// of the query.
func (r *Runner) Drain(ctx context.Context) error {
	if err := r.modify(ctx); err != nil {
		return err
	}
	for {
		if more, err := r.takeIn(ctx); !more || err != nil {
			return err
		}
	}
}

// takeIn keeps the next row of the tree for Next.
func (r *Runner) takeIn(ctx context.Context) (bool, error) {
	row, err := r.pull(ctx)
	if row == nil || err != nil {
		return false, err
	}
	return true, r.held.Add(row)
}

// Detach is Drain, after which the rows can be had although the transaction is over.
func (r *Runner) Detach(ctx context.Context) error {
	if err := r.Drain(ctx); err != nil {
		return err
	}
	r.ex.txn, r.ex.rt.Txn = nil, nil
	return r.closeTree()
}

// Close implements Operator. It keeps the operators for another run and drops all they hold of
// this one, the runtime included; Affected stays.
func (r *Runner) Close() error {
	err := r.closeTree()
	err = firstError(err, r.held.Reset())
	r.ex.unbind()
	return err
}

func (r *Runner) closeTree() error {
	err := r.root.Close()
	for _, s := range r.ex.subplans {
		if s != nil {
			err = firstError(err, s.forget())
		}
	}
	for _, c := range r.ex.ctes {
		err = firstError(err, c.close())
	}
	r.ex.changed = changedRows{}
	clear(r.ex.pending)
	r.ex.keys.reset()
	err = firstError(err, r.ex.fired.release())
	r.ex.finishing = r.ex.finishing[:0]
	return err
}

// Affected is the number of rows that the run inserted, updated or deleted, those of data-modifying WITH items apart.
func (r *Runner) Affected() int64 {
	if len(r.ex.modifies) <= len(r.ex.plan.Modifying) {
		return 0
	}
	return r.ex.modifies[len(r.ex.modifies)-1].affected
}

// Written yields the table of every change of the plan, and of those by actions of foreign keys, and the number of rows of it that the run has
// changed. It is called before Close.
func (r *Runner) Written() iter.Seq2[*catalog.TableDescriptor, int64] {
	return func(yield func(*catalog.TableDescriptor, int64) bool) {
		for _, m := range r.ex.modifies {
			if len(m.leaves) == 0 && !yield(m.writer.table, m.affected) {
				return
			}
			for _, l := range m.leaves {
				if !yield(l.writer.table, l.affected) {
					return
				}
			}
		}
		if r.ex.keys == nil {
			return
		}
		for id, rows := range r.ex.keys.changed {
			if !yield(r.ex.keys.writers[id].table, rows) {
				return
			}
		}
	}
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
