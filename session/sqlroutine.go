package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/plpgsql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// bodyKey identifies the body of a function in SQL for the types of a call.
type bodyKey struct {
	oid     types.OID
	version uint64
	types   string
}

// sqlBody is the body of a function in SQL, with the plans of its statements.
type sqlBody struct {
	statements []sqlStatement
	busy       bool // an execution uses the plans
}

type sqlStatement struct {
	tree  ast.Statement
	plan  plpgsql.Plan // nil: to be made
	epoch uint64       // when the plan was last found to hold
}

// maxBodies bounds the bodies that a session keeps.
const maxBodies = 500

// sql executes a function in SQL.
func (x *routines) sql(ctx context.Context, f *catalog.RoutineDescriptor, call *builtin.RoutineCall, args types.Row, out *routineRows) (types.Datum, error) {
	body, err := x.body(ctx, f, call)
	if err != nil {
		return types.Null, err
	}
	if body.busy { // The function calls itself: its plans are in use.
		again := &sqlBody{statements: make([]sqlStatement, len(body.statements))}
		for i := range body.statements {
			again.statements[i].tree = body.statements[i].tree
		}
		body = again
	}
	body.busy = true
	defer func() { body.busy = false }()
	e := &sqlExecution{x: x, f: f, call: call, body: body, args: args}
	for i := range body.statements {
		if err := e.statement(ctx, i, out); err != nil {
			return types.Null, e.explain(err, i)
		}
	}
	return e.value, nil
}

// body finds the body of a function for the types of a call.
func (x *routines) body(ctx context.Context, f *catalog.RoutineDescriptor, call *builtin.RoutineCall) (*sqlBody, error) {
	key := bodyKey{f.OID(), f.Version, callTypes(call)}
	if b := x.bodies[key]; b != nil {
		return b, nil
	}
	statements, err := planner.RoutineStatements(f)
	if err != nil {
		return nil, err
	}
	b := &sqlBody{}
	for _, tree := range statements {
		b.statements = append(b.statements, sqlStatement{tree: tree})
	}
	if x.bodies == nil || len(x.bodies) >= maxBodies {
		x.bodies = map[bodyKey]*sqlBody{}
	}
	x.bodies[key] = b
	return b, nil
}

// callTypes names the types of a call.
func callTypes(call *builtin.RoutineCall) string {
	var b strings.Builder
	for _, t := range call.Args {
		fmt.Fprint(&b, t.OID, ",")
	}
	fmt.Fprint(&b, call.Ret.OID)
	for _, c := range call.Columns {
		fmt.Fprint(&b, ",", c.Type.OID)
	}
	return b.String()
}

// sqlExecution is one execution of a function in SQL.
type sqlExecution struct {
	x     *routines
	f     *catalog.RoutineDescriptor
	call  *builtin.RoutineCall
	body  *sqlBody
	args  types.Row
	value types.Datum
	// starting: a statement is being planned.
	starting bool
}

// statement executes a statement of the body.
func (e *sqlExecution) statement(ctx context.Context, i int, out *routineRows) error {
	h, st := e.x.h, &e.body.statements[i]
	steady := e.f.Volatility != builtin.Volatile
	if !planner.HasPlan(st.tree) {
		return e.command(ctx, st.tree, steady)
	}
	if err := h.Begin(ctx, steady); err != nil {
		return err
	}
	last := i == len(e.body.statements)-1
	e.starting = true
	if err := e.plan(ctx, st, last); err != nil {
		return err
	}
	plan := st.plan.Planned()
	if steady && plan.Changing() {
		return pgerror.New(pgerror.FeatureNotSupported, "%s is not allowed in a non-volatile function", plan.Command())
	}
	e.starting = false
	if !last || e.call.Ret.OID == types.OIDVoid {
		_, err := h.Run(ctx, st.plan, e.args, 0, ignored{})
		return err
	}
	make := e.valueOf(plan)
	if out != nil {
		out.make = make
		_, err := h.Run(ctx, st.plan, e.args, 0, out)
		return err
	}
	limit := 1
	if plan.Changing() { // It runs to its end.
		limit = 0
	}
	one := &firstRow{make: make}
	_, err := h.Run(ctx, st.plan, e.args, limit, one)
	e.value = one.value
	return err
}

// valueOf returns what makes the function's value of a row of the last statement.
func (e *sqlExecution) valueOf(plan *planner.Plan) func(types.Row) types.Datum {
	columns := plan.Root.Columns()
	if len(columns) == 1 && columns[0].Type.OID == e.call.Ret.OID && e.call.Columns == nil {
		return func(row types.Row) types.Datum { return row[0].Clone() }
	}
	if e.call.Columns == nil && e.call.Ret.OID == types.OIDRecord {
		ts, names := make([]types.Type, len(columns)), make([]string, len(columns))
		for i, c := range columns {
			ts[i], names[i] = c.Type, c.Name
		}
		return func(row types.Row) types.Datum { return types.NewNamedRecord(ts, names, row.Clone()) }
	}
	return valueMaker(e.call)
}

// plan finds the plan of a statement.
func (e *sqlExecution) plan(ctx context.Context, st *sqlStatement, last bool) error {
	h := e.x.h
	if st.plan != nil {
		if st.epoch == h.Epoch() && st.epoch != 0 {
			return nil
		}
		ok, err := h.Holds(ctx, st.plan)
		if ok || err != nil {
			st.epoch = h.Epoch()
			return err
		}
	}
	opts := planner.Options{NoSlots: true, Rows: planner.RoutineRows(e.call)}
	if last {
		opts.Result = e.call
	}
	opts.Stored = e.f.Standard
	var err error
	if st.plan, err = h.Plan(ctx, st.tree, opts); err != nil {
		st.plan = nil
		return err
	}
	st.epoch = h.Epoch()
	_, err = h.Holds(ctx, st.plan) // It checks the privileges.
	return err
}

// command executes a statement without plan.
func (e *sqlExecution) command(ctx context.Context, tree ast.Statement, steady bool) error {
	switch n := tree.(type) {
	case *ast.Begin, *ast.Commit, *ast.Rollback, *ast.Savepoint, *ast.ReleaseSavepoint, *ast.RollbackTo:
		return pgerror.New(pgerror.FeatureNotSupported, "%s is not allowed in an SQL function", statementName(tree))
	case *ast.Copy:
		if n.File == nil {
			return pgerror.New(pgerror.FeatureNotSupported, "cannot COPY to/from client in an SQL function")
		}
	}
	if name := statementName(tree); steady && name != "" {
		return pgerror.New(pgerror.FeatureNotSupported, "%s is not allowed in a non-volatile function", name)
	}
	_, err := e.x.h.Command(ctx, tree, ignored{})
	return err
}

// statementName names a statement that only volatile functions may contain, "" for another one.
func statementName(tree ast.Statement) string {
	switch n := tree.(type) {
	case *ast.Begin:
		return "BEGIN"
	case *ast.Commit:
		return "COMMIT"
	case *ast.Rollback:
		return "ROLLBACK"
	case *ast.Savepoint:
		return "SAVEPOINT"
	case *ast.ReleaseSavepoint:
		return "RELEASE SAVEPOINT"
	case *ast.RollbackTo:
		return "ROLLBACK TO SAVEPOINT"
	case *ast.CallProcedure:
		return "CALL"
	case *ast.Do:
		return "DO"
	case *ast.Set:
		if n.Reset {
			return "RESET"
		}
		return "SET"
	}
	return changeName(tree)
}

// explain adds the function to an error, and the position in its body.
func (e *sqlExecution) explain(err error, i int) error {
	pg, final := e.x.h.Explain(err)
	if !final || pg.Complete {
		return err
	}
	c := *pg
	if c.Position > 0 && !e.f.Standard {
		c.InternalPosition, c.InternalQuery = c.Position, e.f.Body
	}
	c.Position = 0
	if e.starting {
		return c.InContext("SQL function \"%s\" during startup", e.f.Name)
	}
	return c.InContext("SQL function \"%s\" statement %d", e.f.Name, i+1)
}

// ignored takes no rows.
type ignored struct{}

func (ignored) Row(types.Row) error { return nil }
func (ignored) Reset()              {}

// firstRow keeps the first row.
type firstRow struct {
	make  func(types.Row) types.Datum
	seen  bool
	value types.Datum
}

func (o *firstRow) Row(row types.Row) error {
	if !o.seen {
		o.seen, o.value = true, o.make(row)
	}
	return nil
}

func (o *firstRow) Reset() { o.seen, o.value = false, types.Null }
