package session

import (
	"context"
	"errors"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

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
func (s *Session) open(ctx context.Context, r *run) error {
	plan := r.plan.Plan
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
	if r.keeps {
		reuse = nil
	}
	inputs, err := planner.Inputs(plan, r.literals, r.params, &s.env, reuse)
	if err != nil {
		return err
	}
	if !r.keeps {
		s.inputs = inputs
	}
	if txn := s.tx.txn; txn != nil && txn.Isolation() == percolator.Serializable {
		s.guard.Reads(plan.Relations)
	}
	if table := writtenTable(plan.Root); table != nil {
		if err := s.holdPortals(ctx, r); err != nil {
			return err
		}
		if !r.unguarded {
			s.guard.Writes(table, 0)
		}
	}
	return s.openRunner(ctx, r, inputs)
}

func (s *Session) openRunner(ctx context.Context, r *run, inputs types.Row) (err error) {
	runner := r.plan.idle
	r.plan.idle = nil
	if runner == nil {
		if runner, err = executor.NewRunner(r.plan.Plan); err != nil {
			return err
		}
	}
	s.fillRuntime(&r.runtime, inputs)
	runner.Bind(&r.runtime)
	if err := runner.Open(ctx); err != nil {
		return errors.Join(err, runner.Close())
	}
	r.runner = runner
	return nil
}

// fillRuntime sets what a run needs of the session.
func (s *Session) fillRuntime(rt *executor.Runtime, inputs types.Row) {
	*rt = executor.Runtime{
		Resolver: s.tx.resolver, Env: &s.env, Inputs: inputs, RowIDs: s.deps.Catalog,
		System: systemView{s}, EagerUnique: s.inBlock() || s.tx.pessimistic || s.tx.pipeline.shared(),
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
