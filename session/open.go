package session

import (
	"context"
	"errors"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// keptInputs is the length of the longest row of inputs that is kept for the next statement.
const keptInputs = 1 << 14

// open checks what must hold before a plan runs, and starts it.
func (x *statementRunner) open(ctx context.Context, r *run) error {
	plan := r.plan.Plan
	if x.tx.phase == failed {
		return failedBlockError()
	}
	if plan.Unpopulated != "" {
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "materialized view %q has not been populated", plan.Unpopulated).
			WithHint("Use the REFRESH MATERIALIZED VIEW command.")
	}
	if plan.Changing() && x.tx.activeModes().ReadOnly {
		return readOnlyError(plan.Command())
	}
	r.wait.used = x.tx.queried || len(x.tx.savepoints) > 0 || r.text == nil && r.portal == nil
	if !x.tx.latest {
		if err := x.tx.use(ctx); err != nil {
			return err
		}
	}
	inputs, err := x.authorizedInputs(ctx, r)
	if err != nil {
		return err
	}
	if !x.tx.latest {
		x.tx.shown.relations.take(plan.RelationLocks)
	}
	if len(plan.Guesses) > 0 {
		if inputs, err = x.planForValues(ctx, r, inputs); err != nil {
			return err
		}
		plan = r.plan.Plan
	}
	if txn := x.tx.txn; txn != nil && txn.Isolation() == percolator.Serializable {
		x.tx.guard.Reads(plan.Relations)
	}
	if len(plan.Writes) > 0 {
		if err := x.portals.hold(ctx, x.tx.txn, r); err != nil {
			return err
		}
	}
	for _, table := range plan.Writes {
		if !r.unguarded {
			x.tx.guard.Writes(table, 0)
		}
	}
	return x.openRunner(ctx, r, inputs)
}

// authorizedInputs checks the privileges that a run's plan needs, and returns the values of its inputs.
func (x *statementRunner) authorizedInputs(ctx context.Context, r *run) (types.Row, error) {
	if err := x.tx.authorize(ctx, r.plan); err != nil {
		return nil, err
	}
	reuse := x.inputs[:0]
	if r.keeps {
		reuse = nil
	}
	inputs, err := planner.Inputs(r.plan.Plan, r.literals, r.params, x.env, reuse)
	if err == nil && !r.keeps && cap(inputs) <= keptInputs {
		x.inputs = inputs
	}
	return inputs, err
}

// planForValues gives a run the plan for its inputs, and returns those of that plan.
func (x *statementRunner) planForValues(ctx context.Context, r *run, inputs types.Row) (types.Row, error) {
	st, declared := r.text, []types.Type(nil)
	if r.portal != nil {
		st, declared = r.portal.prepared.statement, r.portal.prepared.params
	}
	if st == nil {
		// The plan is given.
		if !r.plan.TestsHold(&expr.Context{Ctx: ctx, Env: x.env, Inputs: inputs}) {
			return nil, pgerror.New(pgerror.InternalError, "a plan was executed for other values than it holds for")
		}
		return inputs, nil
	}
	plan, err := x.plans.forValues(ctx, r.plan, execution{st, declared, r.params}, inputs)
	if err != nil || plan == r.plan {
		return inputs, err
	}
	r.plan = plan
	return x.authorizedInputs(ctx, r)
}

func (x *statementRunner) openRunner(ctx context.Context, r *run, inputs types.Row) (err error) {
	runner := r.plan.idle
	r.plan.idle = nil
	if runner == nil {
		if runner, err = executor.NewRunner(r.plan.Plan); err != nil {
			return err
		}
	}
	x.fillRuntime(&r.runtime, inputs)
	if r.plan.Changes != nil {
		r.runtime.Changes = x.changeSource(r)
	}
	runner.Bind(&r.runtime)
	if err := runner.Open(ctx); err != nil {
		return errors.Join(err, runner.Close())
	}
	r.runner = runner
	return nil
}

// fillRuntime sets what a run needs of the session.
func (x *statementRunner) fillRuntime(rt *executor.Runtime, inputs types.Row) {
	*rt = executor.Runtime{
		Resolver: x.tx.resolver, Role: x.tx.acting.current, Env: x.env, Inputs: inputs, RowIDs: x.deps.Catalog,
		System: x.view, Triggers: &x.commands.procedural, EagerUnique: x.tx.phase.shared() && !x.last || x.tx.pessimistic || x.tx.pipeline.shared(),
		ActAs: x.actAs, GroupSize: x.deps.GroupSize, PageHint: x.deps.PageHint, Scratch: &x.scratch, Logger: x.log, Hop: x.hop,
		Parallel: parallelism(x.plans.settings), Deferred: x.tx.deferred, Replica: x.plans.settings.Replica,
	}
	if x.tx.latest {
		rt.Txn = x.tx.useLatest()
		return
	}
	rt.Txn, rt.Lock = x.tx.txn, x.tx.txn.Pessimistic()
}

// parallelism is what the settings permit.
func parallelism(s *settings.Settings) planner.Parallelism {
	return planner.Parallelism{Workers: min(s.WorkersPerGather, s.MaxWorkers), SetupCost: s.ParallelSetupCost}
}

func readOnlyError(command string) error {
	return pgerror.New(pgerror.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", command)
}
