package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

const (
	// maxAttempts bounds how often a statement runs on conflicts before the client hears of them.
	maxAttempts = 64
	// backoffStep is the unit of the growing, random wait between attempts.
	backoffStep = 200 * time.Microsecond
	// backoffMax is the longest wait.
	backoffMax = 20 * time.Millisecond
)

// execution is one run of a plan, perhaps in several pulls.
type execution struct {
	plan     *cachedPlan
	literals []sql.Literal
	params   types.Row
	formats  []int16
	// announce: tell the client of the columns; quiet: the caller has called Columns.
	announce, quiet bool
	maxRows         int  // rows of this pull, 0 for all
	suspended       bool // the last pull ended at maxRows
	keeps           bool // outlives its statement, so it shares nothing with the session's next
	unguarded       bool // the caller answers for schema changes

	runtime executor.Runtime
	runner  *executor.Runner // nil: not open
	pulled  int64
}

// close ends the run and gives its operators back for the next run of the same plan.
func (e *execution) close() error {
	if e.runner == nil {
		return nil
	}
	runner := e.runner
	e.runner = nil
	err := runner.Close()
	if err == nil && e.plan.idle == nil {
		e.plan.idle = runner
	}
	return err
}

// startStatement sets the clock of a statement.
func (s *Session) startStatement() {
	s.env.StmtTime = builtin.UnixToTimestamp(time.Now())
}

// backoff waits before another attempt, longer each time, and reports whether there is one.
func (s *Session) backoff(attempt int) bool {
	if attempt+1 >= maxAttempts {
		return false
	}
	wait := min(backoffStep<<min(attempt, 10), backoffMax)
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(wait))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// runPlan runs a plan, or goes on with one that was suspended, and sends its rows. The tag counts the
// rows of this pull.
func (s *Session) runPlan(ctx context.Context, e *execution, w ResultWriter) (Tag, error) {
	plan := e.plan.plan
	if e.runner == nil {
		if err := s.open(ctx, e); err != nil {
			return Tag{}, err
		}
	}
	if plan.Returns && !e.quiet {
		if err := w.Columns(plan.Root.Columns(), e.formats, e.announce); err != nil {
			return Tag{}, errors.Join(err, e.close())
		}
	}
	if err := s.pull(ctx, e, w); err != nil {
		return Tag{}, errors.Join(err, e.close())
	}
	tag := Tag{Verb: plan.Tag, Rows: e.pulled}
	if e.suspended {
		return tag, nil
	}
	if plan.Tag != "SELECT" {
		tag.Rows = e.runner.Affected()
		if table := writtenTable(plan.Root); table != nil {
			s.guard.Writes(table, tag.Rows) // For statistics.
		}
	}
	s.deps.Metrics.Statements.of(plan.Tag).Inc()
	return tag, e.close()
}

// open checks what must hold before a plan runs, and starts it.
func (s *Session) open(ctx context.Context, e *execution) error {
	plan := e.plan.plan
	if s.txn.block && s.txn.failed {
		return failedBlockError()
	}
	if !plan.ReadOnly && s.readOnly() {
		return pgerror.New(pgerror.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", plan.Tag)
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	reuse := s.inputs[:0]
	if e.keeps {
		reuse = nil
	}
	inputs, err := planner.Inputs(plan, e.literals, e.params, &s.env, reuse)
	if err != nil {
		return err
	}
	if !e.keeps {
		s.inputs = inputs
	}
	if table := writtenTable(plan.Root); table != nil {
		if err := s.holdPortals(ctx, e); err != nil {
			return err
		}
		if !e.unguarded {
			s.guard.Writes(table, 0)
		}
	}
	return s.openRunner(ctx, e, inputs)
}

func (s *Session) openRunner(ctx context.Context, e *execution, inputs types.Row) (err error) {
	runner := e.plan.idle
	e.plan.idle = nil
	if runner == nil {
		if runner, err = executor.NewRunner(e.plan.plan); err != nil {
			return err
		}
	}
	s.fillRuntime(&e.runtime, inputs)
	runner.Bind(&e.runtime)
	if err := runner.Open(ctx); err != nil {
		return errors.Join(err, runner.Close())
	}
	e.runner = runner
	return nil
}

// fillRuntime sets what a run needs of the session.
func (s *Session) fillRuntime(rt *executor.Runtime, inputs types.Row) {
	*rt = executor.Runtime{
		Txn: s.txn.txn, Resolver: s.txn.resolver, Env: &s.env, Inputs: inputs, RowIDs: s.deps.Catalog,
		System: s, EagerUnique: s.txn.block || s.txn.implicitBlock || s.txn.executions > 0 && s.txn.alone == nil,
		GroupSize: s.deps.GroupSize, PageHint: s.deps.PageHint, Scratch: &s.scratch, Logger: s.log,
	}
}

// writtenTable returns the table that a plan changes, nil for queries.
func writtenTable(root planner.Node) *catalog.TableDescriptor {
	switch n := root.(type) {
	case *planner.Insert:
		return n.Table
	case *planner.Update:
		return n.Table
	case *planner.Delete:
		return n.Table
	}
	return nil
}

// readOnly reports whether the running transaction may not write.
func (s *Session) readOnly() bool {
	if s.txn.block {
		return s.txn.readOnly
	}
	return s.settings.readOnly
}

// pull sends rows until the plan or the pull ends.
func (s *Session) pull(ctx context.Context, e *execution, w ResultWriter) error {
	e.pulled, e.suspended = 0, false
	for e.maxRows == 0 || e.pulled < int64(e.maxRows) {
		row, err := e.runner.Next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			return nil
		}
		if !e.plan.plan.Returns {
			continue
		}
		if err := w.Row(row); err != nil {
			return err
		}
		e.pulled++
	}
	e.suspended = true
	return nil
}
