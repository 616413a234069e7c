package session

import (
	"context"

	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// preparedCommands runs PREPARE, EXECUTE and DEALLOCATE.
type preparedCommands struct {
	tx         *transaction
	statements *statements
	plans      *plans
	runner     *statementRunner
}

// movedError is an error in a statement within another one, in which the inner text begins at a position.
func movedError(err error, at ast.Pos) error {
	e, ok := err.(*pgerror.Error)
	if !ok || e.Position == 0 {
		return err
	}
	moved := *e
	moved.Position += int(at) - 1
	return &moved
}

// prepare is PREPARE.
func (c *preparedCommands) prepare(ctx context.Context, n *ast.Prepare) error {
	if err := c.statements.free(n.Name); err != nil {
		return err
	}
	if len(n.Types) > 0 {
		if err := c.tx.begin(ctx); err != nil {
			return err
		}
	}
	declared := make([]types.Type, len(n.Types))
	for i := range n.Types {
		t, err := planner.ResolveType(&n.Types[i], c.tx.resolver)
		if err != nil {
			return err
		}
		declared[i] = t
	}
	p := &prepared{name: n.Name, declared: declared, at: c.runner.env.StmtTime, heading: n.Heading}
	mark := c.plans.meter.Drawn()
	var err error
	if p.statement, err = c.plans.lexOne(n.Text); err != nil {
		return err
	}
	if err := c.plans.prepare(ctx, p, false); err != nil {
		return movedError(err, n.At)
	}
	return c.statements.add(p, c.plans.meter, mark)
}

// execute is EXECUTE: the arguments are expressions, cast to the parameters' types.
func (c *preparedCommands) execute(ctx context.Context, n *ast.Execute, q request) error {
	p, err := c.statements.find(n.Name)
	if err != nil {
		return err
	}
	c.tx.lockFirst(p.plan)
	if err := c.plans.validate(ctx, p, false); err != nil {
		return err
	}
	if err := requireArguments(n, p); err != nil {
		return err
	}
	if p.plan == nil {
		return c.runner.execute(ctx, &run{planned: true, tree: p.tree, formats: q.formats, announce: q.simple, completes: true, byExecute: true}, q.w)
	}
	params, err := c.evalArguments(ctx, n.Args, p.params)
	if err != nil {
		return err
	}
	r := &run{
		portal: &portal{prepared: p}, planned: true, plan: p.plan, literals: p.statement.Literals, params: params,
		formats: q.formats, announce: q.simple, completes: true, byExecute: true, begun: c.tx.pipeline.first != nil,
	}
	if !c.tx.phase.shared() && q.simple {
		r.policy = alone
	}
	return c.runner.execute(ctx, r, q.w)
}

func requireArguments(n *ast.Execute, p *prepared) error {
	if len(n.Args) == len(p.params) {
		return nil
	}
	return pgerror.New(pgerror.SyntaxError, "wrong number of parameters for prepared statement %q", n.Name).
		WithDetail("Expected %d parameters but got %d.", len(p.params), len(n.Args))
}

// createAs returns CREATE TABLE … AS EXECUTE as CREATE TABLE … AS of the prepared query, and the values of its parameters.
func (c *preparedCommands) createAs(ctx context.Context, n *ast.CreateTable) (*ast.CreateTable, ddl.Params, error) {
	p, err := c.statements.find(n.AsExecute.Name)
	if err != nil {
		return nil, ddl.Params{}, err
	}
	if err := c.plans.validate(ctx, p, false); err != nil {
		return nil, ddl.Params{}, err
	}
	tree, err := sql.ParseStatement(p.statement.Text)
	if err != nil {
		return nil, ddl.Params{}, err
	}
	query, ok := tree.(*ast.Query)
	if !ok {
		return nil, ddl.Params{}, pgerror.New(pgerror.WrongObjectType, "prepared statement is not a SELECT")
	}
	if err := requireArguments(n.AsExecute, p); err != nil {
		return nil, ddl.Params{}, err
	}
	values, err := c.evalArguments(ctx, n.AsExecute.Args, p.params)
	as := *n
	as.AsQuery = query
	return &as, ddl.Params{Types: p.params, Values: values}, err
}

// deallocate is DEALLOCATE.
func (c *preparedCommands) deallocate(n *ast.Deallocate) (Tag, error) {
	if n.Name == "" {
		c.statements.removeNamed()
		return verb("DEALLOCATE ALL"), nil
	}
	if _, err := c.statements.find(n.Name); err != nil {
		return Tag{}, err
	}
	c.statements.remove(n.Name)
	return verb("DEALLOCATE"), nil
}

// evalArguments computes EXECUTE's arguments as values of the parameters' types: the plan of
// SELECT CAST(arg AS type), … yields them.
func (c *preparedCommands) evalArguments(ctx context.Context, args []ast.Expr, want []types.Type) (types.Row, error) {
	if len(args) != len(want) {
		return nil, pgerror.New(pgerror.SyntaxError, "wrong number of parameters: expected %d, got %d", len(want), len(args))
	}
	if len(args) == 0 {
		return nil, nil
	}
	sel := &ast.Select{}
	for i, arg := range args {
		// The type's printed name is SQL, so that the parser gives its tree.
		cast, err := sql.ParseExpr("NULL::" + want[i].String())
		if err != nil {
			return nil, err
		}
		sel.Columns = append(sel.Columns, ast.SelectItem{Name: "arg", Expr: &ast.Cast{X: arg, Type: cast.(*ast.Cast).Type}})
	}
	plan, err := c.plans.planTree(ctx, &ast.Query{Body: sel}, nil, nil)
	if err != nil {
		return nil, err
	}
	collected := &rowCollector{}
	if _, err := c.runner.executePlan(ctx, &run{plan: plan, keeps: true}, collected); err != nil {
		return nil, err
	}
	if len(collected.rows) != 1 {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "set-returning functions are not allowed in EXECUTE parameters")
	}
	return collected.rows[0], nil
}

// lexOne lexes the text of a statement within another one.
func (m *plans) lexOne(text string) (*sql.Statement, error) {
	var l sql.Lexer
	l.UseMeter(m.meter)
	l.UseStrings(stringsBy(m.settings), false)
	l.Reset(text)
	st, err := l.Next()
	if err != nil {
		return nil, err
	}
	c := st.Clone()
	c.Inner = true
	return c, nil
}
