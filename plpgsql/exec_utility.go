package plpgsql

import (
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// dynamicStatement is a statement of a text that an expression has computed, with its arguments.
type dynamicStatement struct {
	tree  ast.Statement
	frame sqlFrame
	row   types.Row
	types []types.Type
}

// dynamicRows reads the only statement of a text, whose rows are wanted.
func (a *activation) dynamicRows(e *expression, using []*expression) (*dynamicStatement, error) {
	text, err := a.queryText(e)
	if err != nil {
		return nil, err
	}
	d := &dynamicStatement{frame: sqlFrame{statementExpr, text}}
	if d.row, d.types, err = a.arguments(using); err != nil {
		return nil, err
	}
	trees, err := a.parseDynamic(text)
	if err != nil {
		return nil, a.inStatement(d.frame, err, 0)
	}
	if len(trees) != 1 {
		return nil, pgerror.New("42P11", "cannot open multi-query plan as cursor")
	}
	d.tree = trees[0]
	return d, nil
}

// planQuery plans a statement whose rows are read one by one.
func (a *activation) planQuery(d *dynamicStatement, cursor bool) (*binding, error) {
	if !planned(d.tree) {
		return nil, pgerror.New("42P11", "cannot open %s query as cursor", commandName(d.tree))
	}
	b, err := a.planDynamic(d.tree, d.row, d.types, cursor)
	if err != nil {
		return nil, a.inStatement(d.frame, err, 0)
	}
	return b, nil
}

// yieldsRows reports whether a statement without a plan has rows.
func yieldsRows(tree ast.Statement) bool {
	switch tree.(type) {
	case *ast.Explain, *ast.Show:
		return true
	}
	return false
}

// utilityRows executes such a statement and returns its rows.
func (a *activation) utilityRows(d *dynamicStatement) ([]types.Row, *shape, error) {
	read := &cursorRows{}
	res, err := a.command(d.frame, d.tree, read)
	return read.rows, columnShape(res.Columns), err
}

// forUtility executes the body of a loop for each row of a statement without a plan.
func (a *activation) forUtility(s *forQueryStmt, d *dynamicStatement) (out flow, err error) {
	rows, sh, err := a.utilityRows(d)
	if err != nil {
		return flow{}, err
	}
	for _, row := range rows {
		if err := a.poll(); err != nil {
			return flow{}, err
		}
		if err := a.assignTargets(s.into, row, sh); err != nil {
			return flow{}, err
		}
		var done bool
		if done, out, err = a.iterate(s.label, s.body); err != nil {
			return flow{}, err
		} else if done {
			break
		}
	}
	if len(rows) == 0 {
		err = a.assignTargets(s.into, nil, sh)
	}
	a.setFound(len(rows) > 0)
	return out, err
}

// returnUtility is RETURN QUERY of a statement without a plan.
func (a *activation) returnUtility(d *dynamicStatement) error {
	rows, sh, err := a.utilityRows(d)
	if err != nil {
		return err
	}
	want, _ := a.setColumns()
	for _, row := range rows {
		out, err := a.conform(row, sh.types, want, "structure of query does not match function result type")
		if err == nil {
			err = a.yield(out)
		}
		if err != nil {
			return err
		}
	}
	a.rows = int64(len(rows))
	a.setFound(len(rows) > 0)
	return nil
}
