package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// observerUse is an observer and its table.
type observerUse struct {
	table    *catalog.TableDescriptor
	observer *catalog.ObserverDescriptor
}

// observersOn lists the observers whose statements name a relation, and those of the relation itself.
func (r *run) observersOn(ctx context.Context, id uint64) ([]observerUse, error) {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	var users []observerUse
	for _, t := range all {
		for i := range t.Observers {
			if o := &t.Observers[i]; t.ID == id || slices.Contains(o.DependsOn, id) {
				users = append(users, observerUse{t, o})
			}
		}
	}
	return users, nil
}

// brokenObservers lists the observers that could not run if t became next.
func (r *run) brokenObservers(ctx context.Context, t, next *catalog.TableDescriptor) ([]observerUse, error) {
	users, err := r.observersOn(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	var broken []observerUse
	for _, use := range users {
		table, o := use.table, use.observer
		if table.ID == t.ID {
			table = next
			if o = next.ObserverByID(o.ID); o == nil {
				continue
			}
		}
		err := r.checkObserver(ctx, replaced{r.r, next}, table, o)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			broken = append(broken, use)
		}
	}
	return broken, nil
}

// checkObserver checks that an observer's columns exist, and that its condition and its statements can be planned.
func (r *run) checkObserver(ctx context.Context, schema catalog.Resolver, t *catalog.TableDescriptor, o *catalog.ObserverDescriptor) error {
	for _, id := range o.Columns {
		if t.Ordinal(id) < 0 {
			return pgerror.New(pgerror.UndefinedColumn, "an observed column does not exist")
		}
	}
	if o.When != "" {
		e, err := sql.ParseExpr(o.When)
		if err == nil {
			_, err = planner.BindRows(ctx, e, planner.ObserverRows(t), schema, r.Env, types.TBool, inWhen)
		}
		if err != nil {
			return err
		}
	}
	if o.Body == "" {
		return nil
	}
	return r.checkBody(ctx, schema, t, o, o.Body)
}

// renameInObservers has the statements of observers name a relation by its new name.
func (r *run) renameInObservers(ctx context.Context, t *catalog.TableDescriptor, name string) error {
	users, err := r.observersOn(ctx, t.ID)
	if err != nil {
		return err
	}
	for _, use := range users {
		if !slices.Contains(use.observer.DependsOn, t.ID) {
			continue
		}
		body, err := renamedInBody(use.observer.Body, t, name)
		if err != nil {
			return err
		}
		now, err := r.r.RelationByID(ctx, use.table.ID) // which may have changed with another of its observers
		if err != nil {
			return err
		}
		next := now.Clone()
		next.ObserverByID(use.observer.ID).Body = body
		if err := r.update(ctx, now, next, false); err != nil {
			return err
		}
	}
	return nil
}

// renamedInBody is the text of statements that name a relation by its new name. The old one stays as its alias, for the columns that
// are qualified by it.
func renamedInBody(text string, t *catalog.TableDescriptor, name string) (string, error) {
	statements, err := ParseObserverBody(text)
	if err != nil {
		return "", err
	}
	rename := func(n *ast.TableName, alias *string) {
		if n.Schema == t.Schema && n.Name == t.Name {
			n.Name = name
			if *alias == "" {
				*alias = t.Name
			}
		}
	}
	for _, stmt := range statements {
		ast.InspectStatement(stmt, ast.Visitor{Table: func(ref *ast.TableRef) { rename(&ref.Name, &ref.Alias) }})
		switch n := stmt.(type) {
		case *ast.Insert:
			rename(&n.Table, &n.Alias)
		case *ast.Update:
			rename(&n.Table, &n.Alias)
		case *ast.Delete:
			rename(&n.Table, &n.Alias)
		}
	}
	return bodyText(statements), nil
}

// renameColumnInObservers has the observers of the table next name a column by its new name, where they qualify it by NEW or KEY, or
// as one of the relation of changed rows.
func renameColumnInObservers(next *catalog.TableDescriptor, from, to string) error {
	rename := ast.Visitor{Expr: func(e ast.Expr) {
		ref, ok := e.(*ast.ColumnRef)
		if !ok || len(ref.Parts) != 2 || ref.Parts[1] != from {
			return
		}
		switch ref.Parts[0] {
		case planner.NewRow, planner.KeyRow, catalog.ChangedName:
			ref.Parts[1] = to
		}
	}}
	for i := range next.Observers {
		o := &next.Observers[i]
		if o.When != "" {
			e, err := sql.ParseExpr(o.When)
			if err != nil {
				return err
			}
			ast.InspectExpr(e, rename)
			o.When = e.String()
		}
		if o.Body == "" {
			continue
		}
		statements, err := ParseObserverBody(o.Body)
		if err != nil {
			return err
		}
		for _, stmt := range statements {
			ast.InspectStatement(stmt, rename)
		}
		o.Body = bodyText(statements)
	}
	return nil
}
