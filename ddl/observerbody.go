package ddl

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// ParseObserverBody parses the statements of an observer: queries and changes of rows. Positions of errors are in text.
func ParseObserverBody(text string) ([]ast.Statement, error) {
	lexer := sql.NewLexer()
	lexer.Reset(text)
	var all []ast.Statement
	for {
		st, err := lexer.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		at := len([]rune(text[:st.Offset])) + 1
		stmt, err := sql.Parse(st, nil)
		if err != nil {
			return nil, err
		}
		switch n := stmt.(type) {
		case *ast.Query:
			if x := n.AsOf(); x != nil {
				return nil, pgerror.Unsupported("AS OF SYSTEM TIME in an observer", "An observer reads the state that it is to handle.").At(x.Position())
			}
		case *ast.Insert, *ast.Update, *ast.Delete:
		default:
			return nil, pgerror.Unsupported("this statement in an observer", "The statements of an observer are SELECT, INSERT, UPDATE and DELETE.").At(at)
		}
		if ast.WithOf(stmt).Modifies() {
			return nil, pgerror.Unsupported("a data-modifying WITH in an observer", "Make each change a statement of its own.").At(ast.WithOf(stmt).Position())
		}
		called := 0
		ast.InspectStatement(stmt, ast.Visitor{Expr: func(e ast.Expr) { called = max(called, changesCall(e)) }})
		if called > 0 {
			return nil, pgerror.Unsupported("percodb.changes in an observer", "The statements find the changed row in NEW and KEY, or the rows in the relation \"changed\".").At(called)
		}
		all = append(all, stmt)
	}
	if len(all) == 0 {
		return nil, pgerror.New(pgerror.SyntaxError, "the body of the observer has no statement").At(1)
	}
	return all, nil
}

// observerBody checks the statements of an observer of t. It returns them as they are stored, with the relations' names qualified, so
// that they mean the same whatever is created later, and the ids of the relations that they name.
func (r *run) observerBody(ctx context.Context, t *catalog.TableDescriptor, o *catalog.ObserverDescriptor, text string) (stored string, relations []uint64, err error) {
	statements, err := r.plannedBody(ctx, r.r, t, o, text)
	if err != nil {
		return "", nil, err
	}
	qualify := func(name *ast.TableName) {
		if err != nil || name.Schema == "" && name.Name == catalog.ChangedName {
			return
		}
		var desc *catalog.TableDescriptor
		if desc, err = r.mustFind(ctx, *name); err != nil {
			return
		}
		name.Schema = desc.Schema
		if !slices.Contains(relations, desc.ID) {
			relations = append(relations, desc.ID)
		}
	}
	for _, stmt := range statements {
		ast.InspectStatement(stmt, ast.Visitor{Table: func(ref *ast.TableRef) { qualify(&ref.Name) }, Target: qualify, Expr: r.pinNames})
	}
	return bodyText(statements), relations, err
}

// bodyText is the form in which statements are stored.
func bodyText(statements []ast.Statement) string {
	texts := make([]string, len(statements))
	for i, stmt := range statements {
		texts[i] = stmt.String()
	}
	return strings.Join(texts, ";\n")
}

// checkBody fails if the statements of an observer of t cannot be planned under a schema.
func (r *run) checkBody(ctx context.Context, schema catalog.Resolver, t *catalog.TableDescriptor, o *catalog.ObserverDescriptor, text string) error {
	_, err := r.plannedBody(ctx, schema, t, o, text)
	return err
}

// plannedBody returns the statements of an observer of t, once they have been planned under a schema. Those of an observer that handles
// rows one by one may name NEW and KEY.
func (r *run) plannedBody(ctx context.Context, schema catalog.Resolver, t *catalog.TableDescriptor, o *catalog.ObserverDescriptor, text string) ([]ast.Statement, error) {
	statements, err := ParseObserverBody(text)
	if err != nil {
		return nil, err
	}
	opts := planner.Options{NoSlots: true}
	if o.Batch == 1 {
		opts.Rows = planner.ObserverRows(t)
	}
	schema = catalog.WithLocal(schema, catalog.ChangedRelation(t, o))
	for _, stmt := range statements {
		_, err := planner.Build(ctx, stmt, schema, r.Env, opts)
		if pg, ok := err.(*pgerror.Error); ok && o.Batch > 1 && pg.Code == pgerror.UndefinedTable && pg.Hint == "" && namesRow(stmt) {
			return nil, pg.WithHint("An observer that handles several rows together finds them in the relation \"changed\".")
		}
		if err != nil {
			return nil, err
		}
	}
	return statements, nil
}

// namesRow reports whether a statement has names qualified by NEW or KEY.
func namesRow(stmt ast.Statement) bool {
	found := false
	ast.InspectStatement(stmt, ast.Visitor{Expr: func(e ast.Expr) {
		ref, ok := e.(*ast.ColumnRef)
		found = found || ok && (ref.Parts[0] == planner.NewRow || ref.Parts[0] == planner.KeyRow)
	}})
	return found
}

// shifted moves the position of an error in a text that is a part of the statement's, from the given number of characters on.
func shifted(err error, by int) error {
	var pg *pgerror.Error
	if !errors.As(err, &pg) || pg.Position == 0 {
		return err
	}
	moved := *pg
	moved.Position += by
	return &moved
}

// unplaced removes the position of an error in a text that the statement does not contain.
func unplaced(err error) error {
	var pg *pgerror.Error
	if !errors.As(err, &pg) {
		return err
	}
	moved := *pg
	moved.Position = 0
	return &moved
}
