package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The places of expressions, as errors name them.
const (
	inCheck   = "check constraints"
	inDefault = "DEFAULT expressions"
	inUsing   = "transform expressions"
)

// bind binds an expression over full rows of t (nil: over no row) and casts it to target as an
// assignment would.
func (r *run) bind(ctx context.Context, t *catalog.TableDescriptor, e ast.Expr, target types.Type, place string) (expr.Scalar, error) {
	if err := refuseSystemColumns(t, e, place); err != nil {
		return nil, err
	}
	return planner.BindExpr(ctx, e, t, r.r, r.Env, target, place)
}

// refuseSystemColumns fails for an expression of a table that names one of the columns that PostgreSQL keeps for itself.
func refuseSystemColumns(t *catalog.TableDescriptor, e ast.Expr, place string) (err error) {
	if t == nil {
		return nil
	}
	ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
		ref, ok := x.(*ast.ColumnRef)
		if !ok || len(ref.Parts) != 1 || !slices.Contains(catalog.SystemColumns, ref.Parts[0]) || err != nil {
			return
		}
		name := ref.Parts[0]
		switch place {
		case inCheck:
			if name != "tableoid" {
				err = pgerror.New(pgerror.InvalidColumnReference, "system column %q reference in check constraint is invalid", name).At(ref.Position())
			}
		case inGenerated:
			if name != "tableoid" {
				err = pgerror.New(pgerror.InvalidColumnReference, "cannot use system column %q in column generation expression", name).At(ref.Position())
			}
		case inIndex, inPredicate:
			err = systemColumnIndex()
		}
	}})
	return err
}

// bindText binds an expression kept as text.
func (r *run) bindText(ctx context.Context, t *catalog.TableDescriptor, text string, target types.Type, place string) (expr.Scalar, error) {
	e, err := sql.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	return planner.BindExpr(ctx, e, t, catalog.ForStored(r.r), r.Env, target, place)
}

// defaultText checks the default of a column and returns its text.
func (r *run) defaultText(ctx context.Context, column string, e ast.Expr, target types.Type) (string, error) {
	if _, null := e.(*ast.Null); null && !target.IsDomain() && target.Mod < 0 {
		return "", nil // DEFAULT NULL is no default, but for a domain, whose own it replaces, and where PostgreSQL stores a cast to a modifier.
	}
	if at, found := columnIn(e); found {
		return "", pgerror.New(pgerror.FeatureNotSupported, "cannot use column reference in DEFAULT expression").At(at)
	}
	bound, err := r.bind(ctx, nil, e, target, inDefault)
	if err == nil {
		err = r.literalFits(ctx, bound)
	}
	if pg, ok := err.(*pgerror.Error); ok && pg.Code == pgerror.DatatypeMismatch {
		from, err := r.bind(ctx, nil, e, types.Type{}, inDefault)
		if err != nil {
			return "", err
		}
		base := from.Type().Base()
		return "", pgerror.New(pgerror.DatatypeMismatch, "column %q is of type %s but default expression is of type %s",
			column, target.String(), base.String()).WithHint("You will need to rewrite or cast the expression.").At(e.Position())
	}
	if err == nil {
		err = r.pinSequences(ctx, e)
	}
	if err != nil {
		return "", err
	}
	return r.pinned(e), nil
}

// literalFits fails for a literal that cannot be read as a value of its type: what cannot be read now never can.
func (r *run) literalFits(ctx context.Context, bound expr.Scalar) error {
	if literal, ok := bound.(*expr.Parse); ok {
		_, err := literal.Eval(&expr.Context{Ctx: ctx, Env: r.Env}, nil)
		return err
	}
	return nil
}

// columnIn finds a column's name in an expression.
func columnIn(e ast.Expr) (position int, found bool) {
	query := false
	ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
		switch x.(type) {
		case *ast.Subquery, *ast.Exists, *ast.InSubquery, *ast.Quantified, *ast.ArraySubquery:
			query = true // Its columns are its own, and what binds it refuses it.
		case *ast.ColumnRef:
			if !found && !query {
				position, found = x.Position(), true
			}
		}
	}})
	return position, found
}

// evaluator evaluates bound expressions one after another. One goroutine's.
type evaluator struct{ ev expr.Context }

func (r *run) evaluator(ctx context.Context) *evaluator {
	return &evaluator{ev: expr.Context{Ctx: ctx, Env: r.Env}}
}

func (e *evaluator) eval(s expr.Scalar, row types.Row) (types.Datum, error) {
	if err := planner.AuthorizeCalls(e.ev.Env, s); err != nil {
		return types.Null, err
	}
	return s.Eval(&e.ev, row)
}
