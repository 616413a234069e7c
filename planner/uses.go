package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// ViewUses returns the objects that the query of a view names.
func ViewUses(ctx context.Context, view *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) ([]catalog.ObjectUse, error) {
	q, err := storedQuery(view.ViewQuery)
	if err != nil {
		return nil, textError(err, "view", view.Name)
	}
	u := newUses(verbatimBinder(ctx, r, env))
	if _, err := u.b.bindQuery(q, nil, true); err != nil {
		return nil, textError(err, "view", view.Name)
	}
	for _, s := range u.b.scans {
		u.add(catalog.ObjectUse{Kind: catalog.UsedRelation, ID: s.table.OID()})
	}
	return u.collect(), nil
}

// ExprUses returns the objects that a stored expression names.
func ExprUses(ctx context.Context, e catalog.StoredExpr, r catalog.Resolver, env *builtin.Env) ([]catalog.ObjectUse, error) {
	u := newUses(verbatimBinder(ctx, r, env))
	if e.Routine != nil {
		if err := u.bindRoutine(e.Routine); err != nil {
			return nil, err
		}
		return u.collect(), nil
	}
	x, err := u.b.bindStored(e)
	if err != nil {
		return nil, err
	}
	for _, s := range u.b.scans {
		if e.Table == nil || s.table.ID != e.Table.ID {
			u.add(catalog.ObjectUse{Kind: catalog.UsedRelation, ID: s.table.OID()})
		}
	}
	u.walk(x)
	return u.collect(), nil
}

// bindRoutine binds the queries in the body of a function. Of the statements that change rows it is known which tables they are.
func (u *uses) bindRoutine(d *catalog.RoutineDescriptor) error {
	statements, err := RoutineStatements(d)
	if err != nil {
		return err
	}
	u.b.opts.Rows = RoutineRows(&builtin.RoutineCall{Routine: d.Routine(), Args: d.InputTypes()})
	arguments := u.b.rowScope()
	for _, stmt := range statements {
		if q, ok := stmt.(*ast.Query); ok {
			if _, err := u.b.bindQuery(q, arguments, true); err != nil {
				return err
			}
			continue
		}
		named := func(name *ast.TableName) {
			if t, err := u.b.r.Relation(u.b.ctx, name.Schema, name.Name); err == nil && t != nil {
				u.add(catalog.ObjectUse{Kind: catalog.UsedRelation, ID: t.OID()})
			}
		}
		ast.InspectStatement(stmt, ast.Visitor{Table: func(ref *ast.TableRef) { named(&ref.Name) }, Target: named})
	}
	for _, s := range u.b.scans {
		u.add(catalog.ObjectUse{Kind: catalog.UsedRelation, ID: s.table.OID()})
	}
	return nil
}

// uses collects what a bound text names, in the order of its first mention.
type uses struct {
	b   *binder
	all []catalog.ObjectUse
}

func newUses(b *binder) *uses {
	u := &uses{b: b}
	b.onName = func(_ *ast.ColumnRef, t *catalog.TableDescriptor, ordinal int) {
		u.add(catalog.ObjectUse{Kind: catalog.UsedRelation, ID: t.OID(), Column: t.Columns[ordinal].ID})
	}
	return u
}

func (u *uses) add(use catalog.ObjectUse) {
	if !slices.Contains(u.all, use) {
		u.all = append(u.all, use)
	}
}

// collect adds what binding has noted besides names of columns.
func (u *uses) collect() []catalog.ObjectUse {
	for _, x := range u.b.notes.bound {
		u.walk(x)
	}
	for _, args := range u.b.notes.args {
		for _, x := range args {
			u.walk(x)
		}
	}
	for _, n := range u.b.needs {
		if n.Routine != nil && !n.Behind {
			u.add(catalog.ObjectUse{Kind: catalog.UsedRoutine, ID: uint32(n.Routine.ID)})
		}
	}
	for _, oid := range u.b.usedOperators {
		u.add(catalog.ObjectUse{Kind: catalog.UsedOperator, ID: uint32(oid)})
	}
	for _, oid := range u.b.usedCasts {
		u.add(catalog.ObjectUse{Kind: catalog.UsedCast, ID: uint32(oid)})
	}
	slices.SortFunc(u.all, catalog.CompareUses)
	return u.all
}

// ofType adds a type that a constant or a cast has.
func (u *uses) ofType(t types.Type) {
	if t.OID >= types.FirstUserOID {
		u.add(catalog.ObjectUse{Kind: catalog.UsedType, ID: uint32(t.OID)})
	}
}

// walk adds the objects that constants name: sequences and other relations, configurations and dictionaries of full-text search.
func (u *uses) walk(x expr.Scalar) {
	expr.Walk(x, func(s expr.Scalar) bool {
		switch s := s.(type) {
		case *expr.Cast:
			u.ofType(s.Typ)
			if s.Collate != 0 && s.Typ.Coll != nil {
				u.add(catalog.ObjectUse{Kind: catalog.UsedCollation, ID: s.Typ.Coll.OID})
			}
		case *expr.Parse:
			u.ofType(s.Typ)
			c, ok := s.X.(*expr.Const)
			if !ok || s.Typ.OID != types.OIDRegclass || c.Value.IsNull() {
				break
			}
			if d, err := s.Eval(&expr.Context{Ctx: u.b.ctx, Env: u.b.env}, nil); err == nil {
				u.add(catalog.ObjectUse{Kind: catalog.UsedRelation, ID: uint32(d.Int())})
			}
		case *expr.Const:
			u.ofType(s.Typ)
			if s.Value.IsNull() {
				break
			}
			switch s.Typ.OID {
			case types.OIDRegconfig:
				u.add(catalog.ObjectUse{Kind: catalog.UsedConfiguration, ID: uint32(s.Value.Int())})
			case types.OIDRegdictionary:
				u.add(catalog.ObjectUse{Kind: catalog.UsedDictionary, ID: uint32(s.Value.Int())})
			}
		}
		return true
	})
}
