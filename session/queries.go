package session

import (
	"context"
	"errors"
	"io"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

var _ builtin.Queries = (*functionQueries)(nil)

// functionQueries runs the queries that functions such as ts_stat take, within the statement that calls the function.
type functionQueries struct {
	plans    *plans
	runner   *statementRunner
	warnings *warnings
}

// Query implements builtin.Queries.
func (q *functionQueries) Query(ctx context.Context, text string, columns func([]types.Type) error, row func(types.Row) error) error {
	mark := q.plans.meter.Drawn()
	defer q.plans.meter.Release(mark)
	plan, literals, err := q.plan(ctx, text)
	if err != nil {
		return withoutPosition(err)
	}
	var list []types.Type
	for _, c := range plan.Root.Columns() {
		list = append(list, c.Type)
	}
	if err := columns(list); err != nil {
		return err
	}
	to := q.warnings.to
	defer func() { q.warnings.to = to }()
	_, err = q.runner.executePlan(ctx, &run{plan: plan, literals: literals, keeps: true}, &rowFunc{row: row})
	return withoutPosition(err)
}

func (q *functionQueries) plan(ctx context.Context, text string) (*cachedPlan, []sql.Literal, error) {
	st, err := onlyStatement(text, q.plans.meter)
	if err != nil {
		return nil, nil, err
	}
	tree, err := sql.Parse(st, q.plans.meter)
	if err != nil {
		return nil, nil, err
	}
	query, ok := tree.(*ast.Query)
	switch {
	case !ok:
		return nil, nil, pgerror.New(pgerror.InvalidCursorDefinition, "cannot open %s query as cursor", commandName(tree))
	case query.TakeInto() != nil:
		return nil, nil, pgerror.New(pgerror.InvalidCursorDefinition, "cannot open SELECT INTO query as cursor")
	case query.AsOf() != nil:
		return nil, nil, pgerror.Unsupported("AS OF SYSTEM TIME in the query of a function", "Give it to the statement that calls the function.")
	}
	plan, err := q.plans.planTree(ctx, tree, st.Literals, nil)
	if err == nil && len(plan.ParamTypes) > 0 {
		err = pgerror.New(pgerror.UndefinedParameter, "there is no parameter $1")
	}
	return plan, st.Literals, err
}

// onlyStatement returns the only statement of a text.
func onlyStatement(text string, m *sql.Meter) (*sql.Statement, error) {
	var l sql.Lexer
	l.UseMeter(m)
	l.Reset(text)
	next, err := l.Next()
	if err == io.EOF {
		return nil, pgerror.New(pgerror.SyntaxError, "syntax error at end of input")
	}
	if err != nil {
		return nil, err
	}
	st := next.Clone()
	switch _, err := l.Next(); {
	case err == nil:
		return nil, pgerror.New(pgerror.InvalidCursorDefinition, "cannot open multi-query plan as cursor")
	case err != io.EOF:
		return nil, err
	}
	return st, nil
}

// commandName names a statement other than a query.
func commandName(tree ast.Statement) string {
	switch tree.(type) {
	case *ast.Insert:
		return "INSERT"
	case *ast.Update:
		return "UPDATE"
	case *ast.Delete:
		return "DELETE"
	case *ast.Merge:
		return "MERGE"
	}
	if name := changeName(tree); name != "" {
		return name
	}
	return "utility"
}

// withoutPosition removes the position of an error, which is one in the text of the function's query.
func withoutPosition(err error) error {
	var e *pgerror.Error
	if !errors.As(err, &e) || e.Position == 0 {
		return err
	}
	c := *e
	c.Position = 0
	return &c
}

// rowFunc is a ResultWriter that calls a function with each row.
type rowFunc struct {
	rowCollector
	row func(types.Row) error
}

func (f *rowFunc) Row(row types.Row) error { return f.row(row) }

// Revoke refuses: the function has seen the rows.
func (f *rowFunc) Revoke() bool { return false }
