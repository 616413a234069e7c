package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// RoutineStatements parses the body of a function in SQL. RETURN is a query.
func RoutineStatements(d *catalog.RoutineDescriptor) ([]ast.Statement, error) {
	switch {
	case d.Standard:
		return sql.ParseStandardBody(d.Body)
	case d.Language == "internal":
		p := InternalFunction(d)
		if p == nil {
			return nil, pgerror.New(pgerror.UndefinedFunction, "there is no built-in function named \"%s\"", d.Body)
		}
		return []ast.Statement{internalStatement(d, p)}, nil
	}
	return sql.ParseBody(d.Body)
}

// RoutineRows returns the row of the arguments that the statements of a function in SQL may name.
func RoutineRows(call *builtin.RoutineCall) []InputRow {
	row := InputRow{Name: call.Routine.Name, Param: 1, Open: true}
	for i, p := range call.Routine.Inputs() {
		row.Columns = append(row.Columns, Column{Name: p.Name, Type: call.Args[i]})
	}
	return []InputRow{row}
}

// HasPlan reports whether a statement is a query or a change of rows: others are executed without a plan.
func HasPlan(tree ast.Statement) bool {
	switch tree.(type) {
	case *ast.Query, *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge, *ast.CallProcedure:
		return true
	}
	return false
}

// CheckRoutine checks the body of a function in SQL, and returns its statements as binding has left them. Positions of errors are in the body.
//
// Errors: those of the statements, 42P13 if they do not return what the function does.
func CheckRoutine(ctx context.Context, d *catalog.RoutineDescriptor, r catalog.Resolver, env *builtin.Env) ([]ast.Statement, error) {
	statements, err := RoutineStatements(d)
	if err != nil || slices.ContainsFunc(d.InputTypes(), types.Type.IsPolymorphic) {
		return statements, err
	}
	routine := builtin.NewRoutine(builtin.Routine{OID: d.OID(), Kind: d.Kind, Schema: d.Schema, Name: d.Name, Params: d.Params, Ret: d.Ret, Set: d.Set})
	call := &builtin.RoutineCall{Routine: routine, Args: d.InputTypes(), Ret: d.Ret, Columns: routine.Columns()}
	for i, stmt := range statements {
		opts := Options{NoSlots: true, Rows: RoutineRows(call)}
		last := i == len(statements)-1
		if !HasPlan(stmt) {
			continue
		}
		if _, procedure := stmt.(*ast.CallProcedure); last && !procedure {
			opts.Result = call
		}
		if _, err := Build(ctx, stmt, r, env, opts); err != nil {
			return nil, inRoutine(err, d.Name)
		}
	}
	if n := len(statements); d.Ret.OID != types.OIDVoid && (n == 0 || !returnsRows(statements[n-1])) {
		return nil, inRoutine(noResult(call), d.Name)
	}
	return statements, nil
}

// returnsRows reports whether a statement may be the last one of a function that returns something.
func returnsRows(tree ast.Statement) bool {
	_, procedure := tree.(*ast.CallProcedure)
	return HasPlan(tree) && !procedure
}

// inRoutine adds the function to an error that has no position in its body.
func inRoutine(err error, name string) error {
	e, ok := err.(*pgerror.Error)
	if !ok || e.Position > 0 || e.Where != "" {
		return err
	}
	c := *e
	c.Where = "SQL function \"" + name + "\""
	return &c
}

// returnMismatch is the error of a function whose last statement does not return what it does.
func returnMismatch(call *builtin.RoutineCall, format string, args ...any) error {
	return pgerror.New(pgerror.InvalidFunctionDefinition, "return type mismatch in function declared to return %s", builtin.TypeName(call.Ret)).
		WithDetail(format, args...)
}

func noResult(call *builtin.RoutineCall) error {
	return returnMismatch(call, "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.")
}

// returned are the columns that the last statement of a function must have; nil: any. whole: a single column of the function's type does, too.
func returned(call *builtin.RoutineCall) (columns []builtin.SetColumn, whole bool) {
	ret := call.Ret.Underlying()
	switch {
	case call.Columns != nil:
		return call.Columns, call.Routine.Kind != builtin.ProcedureRoutine
	case ret.IsComposite():
		for _, f := range ret.Def.Fields {
			columns = append(columns, builtin.SetColumn{Name: f.Name, Type: f.Type})
		}
		return columns, true
	case ret.OID == types.OIDRecord:
		return nil, true
	}
	return []builtin.SetColumn{{Name: call.Routine.ColumnName(), Type: call.Ret}}, false
}

// shape gives a query the columns of the rows that a function returns.
//
// Errors: 42P13 it cannot return them.
func (b *binder) shape(q *query, call *builtin.RoutineCall) error {
	b.resolveUnknowns(q)
	if call.Ret.OID == types.OIDVoid {
		return nil
	}
	columns, whole := returned(call)
	if whole && len(q.cols) == 1 && b.cols[q.cols[0].id].Type.OID == call.Ret.OID || columns == nil {
		return nil
	}
	scalar := !whole && call.Columns == nil
	if err := checkReturned(call, len(q.cols), len(columns), scalar); err != nil {
		return err
	}
	for i, c := range columns {
		have := b.cols[q.cols[i].id].Type
		if err := b.retype(q, i, c.Type, castAssignment); err != nil {
			return returnedType(call, err, have, c.Type, i, scalar)
		}
		if t := b.cols[q.cols[i].id].Type; t.OID != c.Type.OID { // The value is the same under both types.
			id := b.newColumn(c.Name, c.Type)
			q.casts = nil
			q.root = &projectRel{input: q.root, items: []projection{{id: id, e: &expr.Cast{X: b.column(q.cols[i].id, 0), Typ: c.Type, Implicit: true}}}}
			q.cols[i].id = id
		}
		q.cols[i].name = c.Name
	}
	return nil
}

// checkReturned checks the number of columns.
func checkReturned(call *builtin.RoutineCall, have, want int, scalar bool) error {
	switch {
	case scalar && have != 1:
		return returnMismatch(call, "Final statement must return exactly one column.")
	case have > want:
		return returnMismatch(call, "Final statement returns too many columns.")
	case have < want:
		return returnMismatch(call, "Final statement returns too few columns.")
	}
	return nil
}

// returnedType is the error of a column of a type that cannot be cast; other errors stay.
func returnedType(call *builtin.RoutineCall, err error, have, want types.Type, i int, scalar bool) error {
	if pe, ok := err.(*pgerror.Error); !ok || pe.Code != pgerror.CannotCoerce {
		return err
	}
	if scalar {
		return returnMismatch(call, "Actual return type is %s.", builtin.TypeName(have))
	}
	return returnMismatch(call, "Final statement returns %s instead of %s at column %d.", builtin.TypeName(have), builtin.TypeName(want), i+1)
}

// shapeReturning is shape for RETURNING.
func (b *binder) shapeReturning(targets []target, call *builtin.RoutineCall) error {
	if call.Ret.OID == types.OIDVoid {
		return nil
	}
	if targets == nil {
		return noResult(call)
	}
	columns, whole := returned(call)
	if whole && len(targets) == 1 && targets[0].e.Type().OID == call.Ret.OID || columns == nil {
		return nil
	}
	scalar := !whole && call.Columns == nil
	if err := checkReturned(call, len(targets), len(columns), scalar); err != nil {
		return err
	}
	for i, c := range columns {
		have := targets[i].e.Type()
		x, err := b.coerce(targets[i].e, c.Type, castAssignment, targets[i].pos)
		if err != nil {
			return returnedType(call, err, have, c.Type, i, scalar)
		}
		targets[i].e, targets[i].name = x, c.Name
	}
	return nil
}

// CheckRoutineTypes refuses pseudo-types that a language does not take for arguments or results.
func CheckRoutineTypes(d *catalog.RoutineDescriptor, language string) error {
	procedural := language == "PL/pgSQL"
	pseudo := func(t types.Type) bool {
		return t.Category() == types.CategoryPseudo && !t.IsPolymorphic() && !t.Underlying().IsComposite()
	}
	if ret := d.Ret; pseudo(ret) && ret.OID != types.OIDVoid && ret.OID != types.OIDRecord && ret.OID != types.OIDUnknown &&
		!(procedural && (ret.OID == types.OIDTrigger || ret.OID == types.OIDEventTrigger)) {
		return pgerror.New(unsuitable(procedural), "%s functions cannot return type %s", language, builtin.TypeName(ret))
	}
	for _, t := range d.InputTypes() {
		if !pseudo(t) || procedural && t.OID == types.OIDRecord {
			continue
		}
		verb := "have arguments of"
		if procedural {
			verb = "accept"
		}
		return pgerror.New(unsuitable(procedural), "%s functions cannot %s type %s", language, verb, builtin.TypeName(t))
	}
	return nil
}

func unsuitable(procedural bool) pgerror.Code {
	if procedural {
		return pgerror.FeatureNotSupported
	}
	return pgerror.InvalidFunctionDefinition
}
