package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/percolator"
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
	maxRows         int  // rows of this pull, 0 for all, keepRows for none
	suspended       bool // the last pull ended at maxRows
	keeps           bool // outlives its statement, so it shares nothing with the session's next
	held            bool // the caller holds the output back
	unguarded       bool // the caller answers for schema changes

	runtime executor.Runtime
	runner  *executor.Runner // nil: not open
	pulled  int64
}

// keepRows has a pull run the plan to its end and keep its rows for the pulls to come.
const keepRows = -1

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
// rows of this pull. One that takes locks runs again when it had to wait for a row that has changed
// meanwhile (S5).
func (s *Session) runPlan(ctx context.Context, e *execution, w ResultWriter) (Tag, error) {
	s.out = w
	if e.runner != nil {
		return s.runOnce(ctx, e, w)
	}
	if err := s.open(ctx, e); err != nil {
		return Tag{}, err
	}
	if e.plan.plan.ReadOnly || !s.tx.txn.Pessimistic() {
		return s.runOnce(ctx, e, w)
	}
	return s.runLocking(ctx, e, w)
}

// runOnce pulls from the open runner of e.
func (s *Session) runOnce(ctx context.Context, e *execution, w ResultWriter) (Tag, error) {
	plan := e.plan.plan
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

// runLocking runs the open plan of e, and again while what it read is found to have changed before it
// was locked. The locks it has by then are kept, so it comes to an end however many want its rows.
func (s *Session) runLocking(ctx context.Context, e *execution, w ResultWriter) (Tag, error) {
	if !e.held {
		w.Begin(changeBytes)
		defer w.Commit()
	}
	txn := s.tx.txn
	start := txn.Savepoint()
	for attempt := 0; ; attempt++ {
		tag, err := s.runLocked(ctx, e, w)
		if !errors.Is(err, percolator.ErrRestartStatement) || ctx.Err() != nil {
			return tag, err
		}
		if !w.Revoke() {
			return Tag{}, sentConflict()
		}
		if attempt+1 >= maxAttempts {
			return Tag{}, err
		}
		s.deps.Metrics.StatementRestarts.Inc()
		txn.RestartStatement(start)
		if err := s.newSnapshot(ctx); err != nil {
			return Tag{}, err
		}
		if ok, err := e.plan.stands(ctx, s.tx.resolver); err != nil || !ok {
			return Tag{}, errors.Join(err, s.planGone(e))
		}
		if err := s.open(ctx, e); err != nil {
			return Tag{}, err
		}
	}
}

// runLocked is runOnce of a plan that takes locks. What goes to the client in parts is run to its end
// first: no part could be taken back.
func (s *Session) runLocked(ctx context.Context, e *execution, w ResultWriter) (Tag, error) {
	if e.maxRows != 0 {
		if err := e.runner.Drain(ctx); err != nil {
			return Tag{}, errors.Join(err, e.close())
		}
	}
	return s.runOnce(ctx, e, w)
}

// sentConflict is the error of a statement that would have to run again, of whose result too much has
// gone to the client.
func sentConflict() error {
	return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update").
		WithDetail("A row changed while the statement waited for it, and a part of the result has been sent already.").
		WithHint("Retry the transaction.")
}

// planGone is the error of a statement whose plan does not hold under a new snapshot.
func (s *Session) planGone(e *execution) error {
	gone := &catalog.SchemaChangedError{}
	if len(e.plan.plan.Relations) > 0 {
		t := e.plan.plan.Relations[0]
		gone.Table, gone.Name = t.ID, t.Name
	}
	return gone
}

// newSnapshot tells the transaction that another statement begins. Where each has a snapshot of its
// own, open cursors take what they still have to show into memory, and the schema is looked at anew.
func (s *Session) newSnapshot(ctx context.Context) error {
	moves := s.tx.modes.isolation.perStatement()
	if moves {
		if err := s.holdPortals(ctx, nil); err != nil {
			return err
		}
	}
	if err := s.tx.txn.BeginStatement(ctx); err != nil {
		return err
	}
	if s.tx.txn.ReadTS() != s.tx.resolvedAt {
		s.tx.resolver = nil
	}
	return s.begin(ctx)
}

// nextStatement is newSnapshot for every statement of a transaction but its first, whose snapshot is
// as new as can be.
func (s *Session) nextStatement(ctx context.Context) error {
	if s.tx.txn == nil || !s.tx.queried {
		return nil
	}
	return s.newSnapshot(ctx)
}

// open checks what must hold before a plan runs, and starts it.
func (s *Session) open(ctx context.Context, e *execution) error {
	plan := e.plan.plan
	if s.tx.phase == failed {
		return failedBlockError()
	}
	if !plan.ReadOnly && s.modes().readOnly {
		return readOnlyError(plan.Command())
	}
	if !s.tx.latest {
		if err := s.use(ctx); err != nil {
			return err
		}
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
	if txn := s.tx.txn; txn != nil && txn.Isolation() == percolator.Serializable {
		s.guard.Reads(plan.Relations)
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
		Resolver: s.tx.resolver, Env: &s.env, Inputs: inputs, RowIDs: s.deps.Catalog,
		System: s, EagerUnique: s.inBlock() || s.tx.pessimistic || s.tx.executions > 0 && s.tx.alone == nil,
		GroupSize: s.deps.GroupSize, PageHint: s.deps.PageHint, Scratch: &s.scratch, Logger: s.log,
	}
	if s.tx.latest {
		rt.Txn = s.useLatest()
		return
	}
	rt.Txn, rt.Lock = s.tx.txn, s.tx.txn.Pessimistic()
}

func readOnlyError(command string) error {
	return pgerror.New(pgerror.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", command)
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

// pull sends rows until the plan or the pull ends.
func (s *Session) pull(ctx context.Context, e *execution, w ResultWriter) error {
	e.pulled, e.suspended = 0, false
	if e.maxRows == keepRows {
		e.suspended = true
		return e.runner.Drain(ctx)
	}
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
