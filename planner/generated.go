package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
)

// GeneratedColumn is a column that is computed from the others of its row, over which Value is.
type GeneratedColumn struct {
	Ordinal int
	Value   expr.Scalar
}

// generated binds a table's generated columns over its full row. None depends on another.
func (p *physical) generated(t *catalog.TableDescriptor, scan *scanRel) []GeneratedColumn {
	var out []GeneratedColumn
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Generated == "" {
			continue
		}
		x, err := p.b.catalogExpr(c.Generated, scan, func(sc *scope, e ast.Expr) (expr.Scalar, error) {
			sc.in("column generation expressions", false, false)
			x, err := sc.valueFor(e, c.Type, castAssignment, 0)
			if err != nil {
				return nil, err
			}
			return p.b.assign(x, &assignTarget{col: c}, 0)
		})
		if err != nil {
			p.fail(err)
			return nil
		}
		out = append(out, GeneratedColumn{Ordinal: i, Value: p.compile(x, scan.cols)})
	}
	return out
}

// BindGenerated binds the generated columns of a table over its full row.
func BindGenerated(ctx context.Context, t *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) ([]GeneratedColumn, error) {
	p := &physical{b: &binder{ctx: ctx, r: r, env: env, noSlots: true}}
	out := p.generated(t, p.b.newScan(t, t.Name, nil))
	return out, p.err
}

// withGenerated adds the generated columns to those that an update changes.
func withGenerated(t *catalog.TableDescriptor, changed []int) []int {
	if len(changed) == 0 {
		return changed
	}
	for i := range t.Columns {
		if t.Columns[i].Generated != "" && !slices.Contains(changed, i) {
			changed = append(slices.Clip(changed), i)
		}
	}
	return changed
}

// refuseGenerated is the error of an INSERT that gives a generated column a value.
func refuseGenerated(name string) error {
	return pgerror.New(generatedAlways, "cannot insert a non-DEFAULT value into column \"%s\"", name).
		WithDetail("Column \"%s\" is a generated column.", name)
}
