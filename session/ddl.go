package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// runDDL runs a schema change: within the transaction that it shares with other statements, else in one of its own.
func (s *Session) runDDL(ctx context.Context, tree ast.Statement, w ResultWriter) (Tag, error) {
	if !ddl.Handles(tree) {
		return Tag{}, pgerror.New(pgerror.InternalError, "no way to run a %T", tree)
	}
	if s.modes().readOnly {
		if name := changeName(tree); name != "" {
			return Tag{}, readOnlyError(name)
		}
	}
	shared := s.inBlock() || s.tx.pipeline.executed > 1 // of a pipeline
	if err := mustBeAlone(tree, s.tx.phase.explicit()); err != nil {
		return Tag{}, err
	}
	deps := ddl.Deps{
		DB: s.deps.DB, Catalog: s.deps.Catalog, Env: &s.env, SearchPath: s.settings.searchPath,
		Report: reporter{w}, Exec: s.fillTable, Logger: s.log,
	}
	if deps.OneTransaction = !s.deps.Shared; s.deps.Shared {
		deps.CreateRange = s.deps.Router.CreateRange
	}
	if shared {
		if err := s.begin(ctx); err != nil {
			return Tag{}, err
		}
		if err := s.holdPortals(ctx, nil); err != nil {
			return Tag{}, err
		}
		deps.Txn, deps.Guard = s.tx.txn, s.guard
	} else {
		s.abortTxn() // Nothing but the look at the schema; the statement takes its own snapshot.
	}
	tag, err := ddl.Run(ctx, tree, deps)
	if err != nil {
		return Tag{}, err
	}
	if shared {
		s.tx.changed, s.tx.resolver = true, nil
	}
	s.deps.Metrics.Statements.ddl.Inc()
	return verb(tag), nil
}

// changeName names a statement that read-only transactions refuse; "" for those that they do not.
func changeName(tree ast.Statement) string {
	switch n := tree.(type) {
	case *ast.CreateTable:
		return "CREATE TABLE"
	case *ast.CreateIndex:
		return "CREATE INDEX"
	case *ast.CreateView:
		return "CREATE VIEW"
	case *ast.CreateSequence:
		return "CREATE SEQUENCE"
	case *ast.CreateSchema:
		return "CREATE SCHEMA"
	case *ast.AlterTable:
		return "ALTER " + n.Kind
	case *ast.Truncate:
		return "TRUNCATE TABLE"
	case *ast.Comment:
		return "COMMENT"
	case *ast.Drop:
		return "DROP " + n.Kind
	}
	return ""
}

// mustBeAlone refuses in a block what commits in steps.
func mustBeAlone(tree ast.Statement, block bool) error {
	what := ""
	switch n := tree.(type) {
	case *ast.CreateIndex:
		if n.Concurrently {
			what = "CREATE INDEX CONCURRENTLY"
		}
	case *ast.Drop:
		if n.Concurrently {
			what = "DROP INDEX CONCURRENTLY"
		}
	case *ast.Vacuum:
		what = "VACUUM"
	}
	if what == "" || !block {
		return nil
	}
	return pgerror.New(pgerror.ActiveSQLTransaction, "%s cannot run inside a transaction block", what)
}

// fillTable runs the INSERT … SELECT of CREATE TABLE AS in ddl's transaction.
func (s *Session) fillTable(ctx context.Context, txn *percolator.Txn, r catalog.Resolver, stmt *ast.Insert) (int64, error) {
	plan, err := s.build(ctx, stmt, r, nil, nil)
	if err != nil {
		return 0, err
	}
	before := s.tx
	s.tx.txn, s.tx.resolver = txn, r
	defer func() { s.tx.txn, s.tx.resolver = before.txn, before.resolver }()
	// The table is new: no schema change can come between, so the guard need not know.
	e := &run{plan: plan, unguarded: true, keeps: true}
	tag, err := s.executePlan(ctx, e, &rowCollector{discard: true})
	return tag.Rows, err
}

// reporter passes notices on to the client.
type reporter struct{ w ResultWriter }

func (r reporter) Notice(n *pgerror.Error) { r.w.Notice(n) }

// Progress implements ddl.Reporter. The protocol has no message for it.
func (r reporter) Progress(string, int64) {}
