package session

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// policy says in which transaction a statement runs, and what follows a conflict.
type policy uint8

const (
	// shared: in a transaction with other statements, of a block, a text or a pipeline, or within another statement.
	shared policy = iota
	// once: a transaction of its own. The statement is not repeated as a whole: its parts may be.
	once
	// alone: a transaction of its own, which is repeated after a conflict (S2).
	alone
	// first: the first statement of a pipeline. It is repeated as if it were alone, until another one follows; Sync commits
	// it.
	first
)

// policies are the rules of each policy.
var policies = [...]struct{ retries, commits bool }{
	shared: {retries: false, commits: false},
	once:   {retries: false, commits: true},
	alone:  {retries: true, commits: true},
	first:  {retries: true, commits: false},
}

const (
	// maxAttempts bounds how often a statement runs on conflicts before the client is sent the error.
	maxAttempts = 64
	// backoffStep is the unit of the growing, random wait between attempts.
	backoffStep = 200 * time.Microsecond
	// backoffMax is the longest wait.
	backoffMax = 20 * time.Millisecond
)

// run is one statement under a policy, and what its attempts share. Where its plan comes from:
//
//	text    a statement of a simple query; a statement without plan has a tree
//	portal  of the extended protocol, or EXECUTE's
//	copy    COPY FROM
//	none    the plan is given, and is the same in every attempt
type run struct {
	policy policy
	text   *sql.Statement
	portal *portal
	copy   *copyIn

	planned  bool // plan or tree is set for the next attempt
	plan     *cachedPlan
	tree     ast.Statement
	literals []sql.Literal
	params   types.Row
	formats  []int16

	announce  bool // the client is sent the columns
	quiet     bool // the caller has called Columns
	completes bool // the client is sent the tag
	byExecute bool // EXECUTE runs it
	begun     bool // the result can be revoked: Begin has been called
	keeps     bool // outlives its statement, so it shares nothing with the session's next
	unguarded bool // the caller answers for schema changes
	executing bool // a statement that runs meanwhile is one of its functions and triggers
	nested    bool // a plan that is being executed has called a function that runs it: that plan is restarted, not this one
	ends      bool // a CALL within a procedure that may end transactions
	latest    bool // it may read the latest value without a snapshot: no other statement follows

	maxRows   int                  // rows of this pull, 0 for all, keepRows for none
	suspended bool                 // the last pull ended at maxRows
	requests  *percolator.Requests // nil: nobody counts them
	executed  bool                 // but for the commit
	completed bool                 // the client has been sent the tag
	tag       Tag                  // of the last pull

	wait              changesWait
	locks             bool  // it takes locks before it writes
	drawn             int64 // by the meter before the first attempt
	start             percolator.Savepoint
	pending           pendingMark // at start
	delivered         deliveryMark
	deferred          executor.DeferredMark
	restarts, retries int

	runtime executor.Runtime
	runner  *executor.Runner // nil: not open
	pulled  int64
}

// keepRows has a pull run the plan to its end and keep its rows for the pulls to come.
const keepRows = -1

// repeat resets what an attempt has changed, for the next one.
func (r *run) repeat() { r.planned, r.executed, r.completed = false, false, false }

// source is the statement's text; nil: it has none of its own.
func (r *run) source() *sql.Statement {
	if r.portal != nil && r.text == nil {
		return r.portal.prepared.statement
	}
	return r.text
}

// repeats reports whether a statement without plan is repeated as a whole after a conflict.
func repeats(tree ast.Statement) bool {
	_, do := tree.(*ast.Do)
	return do
}

// close ends the run's plan and gives its operators back for the next run of the same plan.
func (r *run) close() error {
	if r.runner == nil {
		return nil
	}
	runner := r.runner
	r.runner = nil
	err := runner.Close()
	if err == nil && r.plan.idle == nil {
		r.plan.idle = runner
	}
	return err
}

// statementRunner runs statements: it finds the plan, runs it under a policy, commits, and attempts it again.
type statementRunner struct {
	deps     *Deps
	log      *slog.Logger
	tx       *transaction
	plans    *plans
	portals  *portals
	env      *builtin.Env
	view     *systemView
	warnings *warnings
	commands *commands
	audit    *auditor
	actAs    func(role uint32) (leave func()) // of executor.Runtime; made once, since a method value is an allocation
	scratch  executor.Scratch
	hop      uint8     // of the session's changes; see executor.Runtime
	last     bool      // the transaction is an optimistic one that ends with the plan that runs: its commit checks unique keys
	inputs   types.Row // of the plan that runs, unless that keeps its own
	changed  uint64    // rows, by all plans that have run
}

// execute runs a statement under its policy, or goes on with one that was suspended. It is the only loop that attempts a
// statement again.
func (x *statementRunner) execute(ctx context.Context, r *run, w ResultWriter) error {
	outer, locked := r.begun, x.tx.advisory.mark()
	r.executing = true
	defer func() { r.executing = false }()
	for {
		err := x.attempt(ctx, r, w)
		if err != nil {
			if err = x.prepareAttempt(ctx, r, err, w); err == nil {
				x.tx.advisory.undo(ctx, locked)
				continue
			}
		}
		if r.begun && !outer {
			w.Commit()
			r.begun = false
		}
		return err
	}
}

// executePlan runs a plan within another statement. The tag counts the rows of this pull.
func (x *statementRunner) executePlan(ctx context.Context, r *run, w ResultWriter) (Tag, error) {
	r.planned = true
	err := x.execute(ctx, r, w)
	return r.tag, err
}

// attempt runs a statement once, from where its last attempt left it: plan, result, commit, tag.
func (x *statementRunner) attempt(ctx context.Context, r *run, w ResultWriter) error {
	if !r.executed {
		if r.runner == nil {
			if !r.planned {
				if err := x.planRun(ctx, r); err != nil {
					return err
				}
			}
			if err := x.startRun(ctx, r, w); err != nil {
				return err
			}
		}
		if r.runner != nil {
			if err := x.pull(ctx, r, w); err != nil {
				return errors.Join(err, r.close())
			}
			if r.suspended {
				return nil
			}
			if err := x.finishPlan(r); err != nil {
				return err
			}
		}
		r.executed = true
	}
	if policies[r.policy].commits && !x.tx.phase.explicit() {
		if err := x.tx.commit(ctx); err != nil {
			return err
		}
	}
	if !r.completes || r.completed || r.tag.Verb == "" { // EXECUTE has sent its own tag.
		return nil
	}
	r.completed = true
	return w.Complete(r.tag)
}

// planRun finds the plan of a run under the transaction's schema, or its tree if it is a statement without plan.
func (x *statementRunner) planRun(ctx context.Context, r *run) (err error) {
	r.planned = true
	switch {
	case r.copy != nil:
		return r.copy.plan(ctx)
	case r.portal != nil:
		return x.planPortal(ctx, r)
	}
	startStatement(x.env)
	if r.retries == 0 {
		r.drawn = x.plans.meter.Drawn()
	}
	x.plans.meter.Release(r.drawn) // an earlier attempt's plan
	r.plan, r.tree, err = x.plans.lookup(ctx, r.text, nil, r.latest)
	if err = noParams(r.text, err); err != nil {
		return err
	}
	switch {
	case r.plan == nil:
		if r.policy == alone && !repeats(r.tree) {
			r.policy = once
		}
		return nil
	case r.policy == shared:
		r.plan, err = x.plans.refresh(ctx, r.plan, r.text)
	case x.tx.lockFirst(r.plan):
		x.plans.meter.Release(r.drawn)
		r.plan, r.tree, err = x.plans.lookup(ctx, r.text, nil, r.latest)
	}
	r.tree, r.literals = nil, r.text.Literals
	return err
}

// planPortal finds the plan of a portal. Bind has checked it under the schema of now, unless another statement has moved
// the snapshot or the schema since then.
func (x *statementRunner) planPortal(ctx context.Context, r *run) error {
	po := r.portal
	p := po.prepared
	if p.plan == nil {
		return nil
	}
	if r.retries == 0 {
		x.tx.lockFirst(p.plan)
		if err := x.tx.nextStatement(ctx); err != nil {
			return err
		}
	} else {
		startStatement(x.env)
	}
	if po.view != x.tx.views || x.tx.resolver == nil || x.tx.latest && !r.latest || !p.plan.suits(x.tx.acting) {
		if err := x.plans.validate(ctx, p, r.latest); err != nil {
			return err
		}
		po.view = x.tx.views
	}
	r.plan, r.tree, r.literals = p.plan, nil, p.statement.Literals
	return nil
}

// show notes what other sessions may see of the statement: its text, if it is the client's own.
func (x *statementRunner) show(r *run) {
	st := r.source()
	if st == nil || r.byExecute {
		return
	}
	text := st.Text
	if masked, ok := maskedText(r.tree); ok {
		text = masked
	}
	x.tx.shown.setStatement(text, x.env.StmtTime)
}

// startRun opens a run's plan, or runs what has none.
func (x *statementRunner) startRun(ctx context.Context, r *run, w ResultWriter) (err error) {
	x.show(r)
	switch {
	case r.copy != nil:
		x.beginResult(r, w)
		r.tag, err = r.copy.run(ctx)
		return err
	case r.plan == nil:
		x.warnings.to = w
		x.beginResult(r, w)
		q := request{w: w, formats: r.formats, simple: r.announce, text: r.source()}
		if class := x.audit.class(r.tree); class != "" {
			r.tag, err = x.audit.run(r, class, func() (Tag, error) { return x.commands.run(ctx, r.tree, q) })
		} else {
			r.tag, err = x.commands.run(ctx, r.tree, q)
		}
		return err
	case r.plan.Procedure != nil:
		x.beginResult(r, w)
		r.tag, err = x.callProcedure(ctx, r, w)
		return err
	}
	x.warnings.to = w
	if err := x.open(ctx, r); err != nil {
		return err
	}
	if r.requests != nil {
		x.tx.txn.CountRequests(r.requests)
	}
	if r.locks = !r.plan.ReadOnly && x.tx.txn.Pessimistic(); r.locks && r.restarts == 0 {
		r.start, r.pending, r.delivered = x.tx.txn.Savepoint(), x.tx.pending.mark(), x.tx.markDelivered()
		r.deferred = x.tx.deferred.Mark()
	}
	x.beginResult(r, w)
	if r.locks && r.maxRows != 0 { // What is sent in parts is run to its end first: no part could be revoked.
		if err := r.runner.Drain(ctx); err != nil {
			return errors.Join(err, r.close())
		}
	}
	return nil
}

// beginResult makes the result of a run revocable if another attempt may need that.
func (x *statementRunner) beginResult(r *run, w ResultWriter) {
	switch {
	case r.begun:
		return
	case r.plan == nil && r.copy == nil:
		if r.policy != alone {
			return
		}
		w.Begin(changeBytes)
	case r.copy != nil, r.locks, r.policy == alone && !r.plan.ReadOnly:
		w.Begin(changeBytes)
	case r.policy == alone && x.tx.latest:
		w.Begin(0)
	default:
		return
	}
	r.begun = true
}

// pull sends rows until the plan or the pull ends.
func (x *statementRunner) pull(ctx context.Context, r *run, w ResultWriter) error {
	r.pulled, r.suspended = 0, false
	if r.plan.Returns && !r.quiet { // Also when it goes on: the writer may have had other columns meanwhile.
		if err := w.Columns(r.plan.Root.Columns(), r.formats, r.announce); err != nil {
			return err
		}
	}
	if r.maxRows == keepRows {
		r.suspended = true
		return r.runner.Drain(ctx)
	}
	for r.maxRows == 0 || r.pulled < int64(r.maxRows) {
		row, err := r.runner.Next(ctx)
		if err != nil || row == nil {
			r.tag = Tag{Verb: r.plan.Tag, Rows: r.pulled}
			return err
		}
		if !r.plan.Returns {
			continue
		}
		if err := w.Row(row); err != nil {
			return err
		}
		r.pulled++
	}
	r.suspended = true
	r.tag = Tag{Verb: r.plan.Tag, Rows: r.pulled}
	return nil
}

// finishPlan closes a plan that has run to its end.
func (x *statementRunner) finishPlan(r *run) error {
	if r.plan.Tag != "SELECT" {
		r.tag.Rows = r.runner.Affected()
	}
	for table, rows := range r.runner.Written() {
		x.tx.guard.Writes(table, rows) // For statistics.
		x.changed += uint64(rows)
	}
	x.deps.Metrics.Statements.of(r.plan.Tag).Inc()
	return r.close()
}

// prepareAttempt prepares for another attempt after err, or returns the error for the client.
//
//	a row changed before it was locked   within the transaction, which keeps its locks
//	a conflict                           in a transaction of its own, which locks before it writes
//	nothing has changed yet              for percodb.changes, after a wait
func (x *statementRunner) prepareAttempt(ctx context.Context, r *run, err error, w ResultWriter) error {
	if errors.Is(err, errNoChanges) {
		return x.awaitChanges(ctx, r, w)
	}
	if r.locks && !r.nested && errors.Is(err, percolator.ErrRestartStatement) {
		if err = x.restart(ctx, r, err, w); err == nil {
			return nil
		}
	}
	if !policies[r.policy].retries {
		return err
	}
	repeatable := retryable(err) && x.tx.asOf == 0 && ctx.Err() == nil && (r.copy == nil || r.copy.repeatable())
	if r.plan == nil && r.copy == nil && !repeatable {
		return err // The messages of DO stay.
	}
	if !repeatable { // An error is not preceded by half a result where that can be helped.
		w.RevokeRows()
		return err
	}
	if !w.Revoke() {
		return err
	}
	x.deps.Metrics.StatementRetries.Inc()
	x.tx.startOver()
	if r.portal != nil && r == &r.portal.run { // Not EXECUTE's.
		x.portals.repeatable = r.portal
		x.tx.pipeline = pipelineState{first: r.portal, executed: 1, reads: r.plan != nil && r.plan.ReadOnly}
	}
	if !backoff(ctx, r.retries) {
		return err
	}
	r.retries++
	r.repeat()
	return nil
}

// restart prepares for another attempt within the transaction. The locks that the statement has are kept, so it comes to
// an end however many transactions want its rows.
func (x *statementRunner) restart(ctx context.Context, r *run, err error, w ResultWriter) error {
	if ctx.Err() != nil || r.restarts+1 >= maxAttempts {
		return err
	}
	if !w.Revoke() {
		return sentConflict()
	}
	r.restarts++
	x.deps.Metrics.StatementRestarts.Inc()
	x.undo(r)
	if err := x.tx.beginStatement(ctx); err != nil {
		return err
	}
	if ok, err := r.plan.stands(ctx, x.tx.resolver); err != nil || !ok {
		return errors.Join(err, r.plan.changedError())
	}
	return nil
}

// undo rolls back what a statement has done in its transaction. It keeps its locks.
func (x *statementRunner) undo(r *run) {
	x.tx.txn.RestartStatement(r.start)
	x.tx.pending.rollbackTo(r.pending, x.env.Memory)
	x.tx.forgetDeliveredSince(r.delivered)
	x.tx.deferred.RollbackTo(r.deferred)
}

// backoff waits before another attempt, longer each time, and reports whether there is one.
func backoff(ctx context.Context, attempt int) bool {
	if attempt+1 >= maxAttempts {
		return false
	}
	wait := min(backoffStep<<min(attempt, 10), backoffMax)
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(wait))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sentConflict is the error of a statement that would have to run again, of whose result too much has
// gone to the client.
func sentConflict() error {
	return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update").
		WithDetail("A row changed while the statement waited for it, and a part of the result has been sent already.").
		WithHint("Retry the transaction.")
}

// startStatement sets the clock of a statement.
func startStatement(env *builtin.Env) { env.StmtTime = builtin.UnixToTimestamp(time.Now()) }

// changedError is the error of a statement whose plan does not hold under a new snapshot.
func (c *cachedPlan) changedError() error {
	changed := &catalog.SchemaChangedError{}
	if len(c.Relations) > 0 {
		changed.Table, changed.Name = c.Relations[0].ID, c.Relations[0].Name
	}
	return changed
}
