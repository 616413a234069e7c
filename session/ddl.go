package session

import (
	"context"
	"log/slog"

	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// schemaCommands runs schema changes, through package ddl.
type schemaCommands struct {
	deps     *Deps
	log      *slog.Logger
	tx       *transaction
	portals  *portals
	plans    *plans
	runner   *statementRunner
	settings *settings.Settings
	env      *builtin.Env
	acting   *principal
	identity *identity
	backends *backends

	procedural *procedural
	prepared   *preparedCommands

	within *newSchema // whose elements are being created; nil: none is

	vacuumNoticed bool // The client has been sent VACUUM's notice, which is the same for each table.
}

// run runs a schema change: within the transaction that it shares with other statements, else in one of its own.
func (c *schemaCommands) run(ctx context.Context, tree ast.Statement, w ResultWriter) (Tag, error) {
	if n, ok := tree.(*ast.CreateSchema); ok && len(n.Elements) > 0 {
		return c.createSchema(ctx, n, w)
	}
	if !ddl.Handles(tree) {
		return Tag{}, pgerror.New(pgerror.InternalError, "no way to run a %T", tree)
	}
	if c.tx.activeModes().ReadOnly {
		if name := changeName(tree); name != "" {
			return Tag{}, readOnlyError(name)
		}
	}
	shared := c.tx.phase.shared() || c.tx.pipeline.executed > 1 // of a pipeline
	if !shared {
		fires, err := c.truncateFires(ctx, tree)
		if err != nil {
			return Tag{}, err
		}
		if shared = fires || changesRows(tree); shared { // The functions of triggers are a part of its transaction.
			c.tx.forgetUnused()
			c.tx.phase.on(share)
		}
	}
	if err := mustBeAlone(tree, c.tx.phase.explicit()); err != nil {
		return Tag{}, err
	}
	deps := c.dependencies(reporter{w})
	if n, ok := tree.(*ast.CreateTable); ok && n.AsExecute != nil {
		var err error
		if tree, deps.Params, err = c.prepared.createAs(ctx, n); err != nil {
			return Tag{}, err
		}
	}
	fresh := c.tx.txn == nil && c.tx.asOf == 0 // The role is checked by the schema in force.
	if err := c.tx.begin(ctx); err != nil {
		return Tag{}, err
	}
	schema := c.tx.resolver
	if shared {
		if err := c.portals.hold(ctx, c.tx.txn, nil); err != nil {
			return Tag{}, err
		}
		deps.Txn, deps.Guard = c.tx.txn, c.tx.guard
		deps.Refresh = c.tx.beginChange
		deps.FireTruncate = c.fireTruncate
	} else {
		c.tx.abort() // Nothing but the look at the schema; the statement takes its own snapshot.
		c.env.BeginTxn()
		if !fresh {
			roles, err := c.deps.Catalog.Roles(ctx)
			if err == nil {
				err = c.acting.permit(roles)
			}
			if err != nil {
				return Tag{}, err
			}
		}
	}
	tag, err := c.lockRelations(ctx, tree, schema, shared, func() (string, error) { return ddl.Run(ctx, tree, deps) })
	if err != nil {
		return Tag{}, err
	}
	if _, vacuum := tree.(*ast.Vacuum); vacuum && !c.vacuumNoticed {
		c.vacuumNoticed = true
		w.Notice(pgerror.New(pgerror.SuccessfulCompletion, "VACUUM has nothing to do: tables hold no dead rows").
			WithDetail("Garbage collection removes row versions that were replaced longer ago than percodb.gc_life."))
	}
	c.deps.Metrics.Statements.ddl.Inc()
	return verb(tag), nil
}

// changesRows reports whether a statement is CREATE TABLE AS of a query whose WITH changes rows: it has all that belongs to a transaction which does.
func changesRows(tree ast.Statement) bool {
	n, ok := tree.(*ast.CreateTable)
	return ok && n.AsQuery != nil && n.AsQuery.With.Modifies()
}

// dependencies are those of a statement that runs alone.
func (c *schemaCommands) dependencies(report ddl.Reporter) ddl.Deps {
	deps := ddl.Deps{
		DB: c.deps.DB, Catalog: c.deps.Catalog, Temporary: c.tx.temporary(), Env: c.env, SearchPath: c.settings.SearchPath,
		Report: report, Exec: c.execute, Restrict: c.restrict, Restricted: c.acting.restricted, Logger: c.log, Builds: c.deps.Builds,
		CheckProcedural: c.procedural.check, LockTimeout: c.settings.LockTimeout, Session: c.tx.guard.Session, User: c.acting.current, SessionUser: c.acting.session,
		Database: c.identity.database, EndSessions: c.endSessions, CheckSetting: settings.Check, SuperuserSetting: settings.ForSuperusers,
	}
	if s := c.within; s != nil {
		deps.SearchPath, deps.User = append([]string{s.name}, deps.SearchPath...), s.owner
	}
	if deps.OneTransaction = !c.deps.Shared; c.deps.Shared {
		deps.CreateRange = c.deps.Router.CreateRange
	}
	return deps
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
	case *ast.CreateMaterializedView:
		return "CREATE MATERIALIZED VIEW"
	case *ast.RefreshMaterializedView:
		return "REFRESH MATERIALIZED VIEW"
	case *ast.CreateSequence:
		return "CREATE SEQUENCE"
	case *ast.CreateSchema:
		return "CREATE SCHEMA"
	case *ast.CreateObserver:
		return "CREATE OBSERVER"
	case *ast.AlterObserver:
		return "ALTER OBSERVER"
	case *ast.DropObserver:
		return "DROP OBSERVER"
	case *ast.AlterTable:
		return "ALTER " + n.Kind
	case *ast.CreateRole:
		return "CREATE ROLE"
	case *ast.AlterRole, *ast.AlterRoleSet:
		return "ALTER ROLE"
	case *ast.AlterDatabaseSet:
		return "ALTER DATABASE"
	case *ast.Database:
		if n.Alter {
			return "ALTER DATABASE"
		}
		return "CREATE DATABASE"
	case *ast.AlterObject:
		return "ALTER " + n.Object.Kind
	case *ast.DropObjects:
		return "DROP " + n.Objects[0].Kind
	case *ast.CreateFunction:
		if n.Procedure {
			return "CREATE PROCEDURE"
		}
		return "CREATE FUNCTION"
	case *ast.AlterFunction:
		return "ALTER " + n.Function.Kind
	case *ast.Define:
		return "CREATE " + n.Kind
	case *ast.AlterTextSearch:
		return "ALTER " + n.Kind()
	case *ast.CreateTrigger:
		return "CREATE TRIGGER"
	case *ast.CreatePolicy:
		return "CREATE POLICY"
	case *ast.AlterPolicy:
		return "ALTER POLICY"
	case *ast.CreateType:
		return "CREATE TYPE"
	case *ast.CreateDomain:
		return "CREATE DOMAIN"
	case *ast.AlterDomain:
		return "ALTER DOMAIN"
	case *ast.AlterEnum, *ast.AlterType, *ast.RenameAttribute:
		return "ALTER TYPE"
	case *ast.GrantRole:
		if n.Revoke {
			return "REVOKE ROLE"
		}
		return "GRANT ROLE"
	case *ast.Grant:
		if n.Revoke {
			return "REVOKE"
		}
		return "GRANT"
	case *ast.AlterDefaultPrivileges:
		return "ALTER DEFAULT PRIVILEGES"
	case *ast.OwnedBy:
		if n.To != nil {
			return "REASSIGN OWNED"
		}
		return "DROP OWNED"
	case *ast.Truncate:
		return "TRUNCATE TABLE"
	case *ast.Cluster:
		return "CLUSTER"
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
	case *ast.Reindex:
		what = ddl.ReindexesAlone(n)
	case *ast.Cluster:
		if n.Table == nil {
			what = "CLUSTER"
		}
	case *ast.CreateObserver:
		if n.From == "BEGINNING" {
			what = "CREATE OBSERVER ... FROM BEGINNING"
		}
	case *ast.AlterObserver:
		if n.Change == ast.RetryObserver {
			what = "ALTER OBSERVER ... RETRY"
		}
	default:
		what = ddl.DatabaseAlone(tree)
	}
	if what == "" || !block {
		return nil
	}
	return pgerror.New(pgerror.ActiveSQLTransaction, "%s cannot run inside a transaction block", what)
}

// execute runs a statement of a schema change in ddl's transaction.
func (c *schemaCommands) execute(ctx context.Context, e ddl.Execution) ([]types.Row, int64, error) {
	own, schema := c.tx.txn, c.tx.resolver
	if e.As != 0 {
		defer c.restrict(e.As)()
	}
	under := e.PlanUnder
	if under == nil {
		under = e.Resolver
	}
	plan, err := c.plans.buildWith(ctx, e.Statement, under, planner.Options{NoSlots: true, ParamTypes: e.Params.Types, Params: e.Params.Values})
	if err != nil {
		return nil, 0, err
	}
	if e.Guard != nil {
		for _, table := range plan.Writes {
			e.Guard.Writes(table, 0)
		}
	}
	c.tx.txn, c.tx.resolver = e.Txn, e.Resolver
	defer func() { c.tx.txn, c.tx.resolver = own, schema }()
	collected := &rowCollector{discard: !plan.Returns}
	// The schema cannot change in between, since it is being changed, so the guard need not know.
	tag, err := c.runner.executePlan(ctx, &run{plan: plan, params: e.Params.Values, unguarded: true, keeps: true}, collected)
	return collected.rows, tag.Rows, err
}

// endSessions ends the sessions of this process that use a database.
func (c *schemaCommands) endSessions(ctx context.Context, database uint32) error {
	var others []*Session
	c.deps.Sessions(func(other *Session) {
		if other.identity.databaseOID == database && other.identity.key != c.identity.key {
			others = append(others, other)
		}
	})
	for _, other := range others {
		if err := c.backends.maySignal(other, "terminate superuser process", "process is being terminated"); err != nil {
			return err
		}
	}
	for _, other := range others {
		c.deps.Terminate(other, nil)
	}
	return nil
}

// reporter passes notices on to the client.
type reporter struct{ w ResultWriter }

func (r reporter) Notice(n *pgerror.Error) { r.w.Notice(n) }

// Progress implements ddl.Reporter. The protocol has no message for it.
func (r reporter) Progress(string, int64) {}
