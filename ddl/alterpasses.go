package ddl

import (
	"cmp"
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/types"
)

// The commands of one ALTER TABLE are executed in passes, PostgreSQL's: what goes goes first, then columns change their types, all at once, then come
// new columns, and then what may name them.
const (
	passDrop = iota
	passType
	passDropRead // DROP COLUMN of a column that the conversion of another reads
	passAddColumn
	passColumn
	passIndex
	passConstraint
	passMisc
)

// inPasses returns commands in the order of execution.
func inPasses(commands []ast.AlterCommand) []ast.AlterCommand {
	if len(commands) == 1 {
		return commands
	}
	read := map[string]bool{}
	for _, n := range retypings(commands) {
		if n.Using == nil {
			continue
		}
		for _, name := range columnNames(n.Using) {
			read[name] = true
		}
	}
	ordered := slices.Clone(commands)
	slices.SortStableFunc(ordered, func(a, b ast.AlterCommand) int { return cmp.Compare(passOf(a, read), passOf(b, read)) })
	return ordered
}

// passOf returns the pass of a command; read are the columns that conversions read.
func passOf(cmd ast.AlterCommand, read map[string]bool) int {
	switch n := cmd.(type) {
	case *ast.DropColumn:
		if read[n.Name] {
			return passDropRead
		}
		return passDrop
	case *ast.DropConstraint:
		return passDrop
	case *ast.AddColumn:
		return passAddColumn
	case *ast.AlterColumn:
		switch {
		case n.SetType != nil:
			return passType
		case n.DropDefault, n.DropNotNull, n.Drop != "":
			return passDrop
		case n.SetNotNull:
			return passColumn
		case n.IdentityOptions != nil:
			return passMisc
		}
		return passConstraint
	case *ast.AddConstraint:
		if n.Constraint.Kind == ast.Check || n.Constraint.Kind == ast.ForeignKey {
			return passConstraint
		}
		return passIndex
	}
	return passMisc
}

func retypes(cmd ast.AlterCommand) bool {
	n, ok := cmd.(*ast.AlterColumn)
	return ok && n.SetType != nil
}

// retypings are the commands that change the type of a column.
func retypings(commands []ast.AlterCommand) (all []*ast.AlterColumn) {
	for _, cmd := range commands {
		if retypes(cmd) {
			all = append(all, cmd.(*ast.AlterColumn))
		}
	}
	return all
}

// retyped is a column that gets another type.
type retyped struct {
	ordinal int
	convert expr.Scalar // over a row as it was
}

// alterTypes is ALTER COLUMN … TYPE, of one column or several: every row is rewritten once, and each new value is computed from the row as it was.
func (r *run) alterTypes(ctx context.Context, t *catalog.TableDescriptor, commands []*ast.AlterColumn) error {
	next := t.Clone()
	var columns []retyped
	for _, n := range commands {
		ord, err := mustColumn(t, n.Name, n.Position())
		if err != nil {
			return err
		}
		if slices.ContainsFunc(columns, func(c retyped) bool { return c.ordinal == ord }) {
			return retypedTwice(n)
		}
		convert, err := r.retype(ctx, t, next, ord, n)
		if err != nil {
			return err
		}
		columns = append(columns, retyped{ord, convert})
	}
	if err := r.fitRetyped(ctx, next, columns); err != nil {
		return err
	}
	if err := r.convertRows(ctx, t, next, columns); err != nil {
		return err
	}
	if err := r.dropIndexes(ctx, t); err != nil {
		return err
	}
	if err := r.update(ctx, t, next, true); err != nil {
		return err
	}
	if next.IsPartitioned() || next.IsPartition() {
		return nil // That is done when all tables have the new type.
	}
	for _, c := range columns {
		now, err := r.current(ctx, next)
		if err != nil {
			return err
		}
		if err := r.refitKeys(ctx, now, next.Columns[c.ordinal].ID); err != nil {
			return err
		}
	}
	return nil
}

// fitRetyped checks what depends on columns that have new types in next.
func (r *run) fitRetyped(ctx context.Context, next *catalog.TableDescriptor, columns []retyped) error {
	for _, c := range columns {
		if err := r.fitDependents(ctx, next, c.ordinal); err != nil {
			return err
		}
	}
	return r.mapIndexExpressions(ctx, next, func(ast.Expr) {})
}

// convertRows rewrites the rows of t as those of next.
func (r *run) convertRows(ctx context.Context, t, next *catalog.TableDescriptor, columns []retyped) error {
	checks := slices.DeleteFunc(slices.Clone(next.Checks), func(c catalog.CheckDescriptor) bool { return c.NotValid })
	verify, err := r.verifier(ctx, next, checks, nil)
	if err != nil {
		return err
	}
	ev := r.evaluator(ctx)
	renumber(next)
	values := make(types.Row, len(columns))
	return r.rewrite(ctx, t, next, func(row types.Row) (types.Row, error) {
		for i, c := range columns {
			d, err := ev.eval(c.convert, row)
			if err != nil {
				return nil, err
			}
			if d.IsNull() && next.Columns[c.ordinal].NotNull {
				return nil, containsNulls(next, c.ordinal)
			}
			values[i] = d
		}
		for i, c := range columns {
			row[c.ordinal] = values[i]
		}
		return row, verify(row)
	})
}
