package planner

import (
	"context"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
)

// RoutineDefinition writes the body of a function in SQL's standard form as pg_get_function_sqlbody does. Statements that change rows are as they
// are stored: written, with the schemas of what they name.
func RoutineDefinition(ctx context.Context, d *catalog.RoutineDescriptor, r catalog.Resolver, env *builtin.Env) (string, error) {
	statements, err := RoutineStatements(d)
	if err != nil {
		return "", textError(err, "function", d.Name)
	}
	atomic := strings.HasPrefix(d.Body, "BEGIN ATOMIC")
	var out strings.Builder
	for _, stmt := range statements {
		text := " " + stmt.String()
		if q, ok := stmt.(*ast.Query); ok {
			if text, err = routineQuery(ctx, d, q, r, env, atomic); err != nil {
				return "", textError(err, "function", d.Name)
			}
		}
		if !atomic {
			return text, nil
		}
		out.WriteString(text + ";\n")
	}
	return "BEGIN ATOMIC\n" + out.String() + "END", nil
}

// routineQuery writes a query in the body of a function.
func routineQuery(ctx context.Context, d *catalog.RoutineDescriptor, q *ast.Query, r catalog.Resolver, env *builtin.Env, atomic bool) (string, error) {
	b := verbatimBinder(ctx, r, env)
	b.opts.Rows = RoutineRows(&builtin.RoutineCall{Routine: d.Routine(), Args: d.InputTypes()})
	if _, err := b.bindQuery(q, b.rowScope(), true); err != nil {
		return "", err
	}
	w := newRuleText(b, r, false)
	w.routine = d
	if w.flat = !atomic; atomic {
		w.indent = 1
	} else {
		w.wrap = -1
	}
	w.query(q, nil, false)
	if w.failed {
		return " " + q.String(), nil
	}
	return string(w.buf), nil
}

// returns reports whether a query is that of RETURN, whose value has no name.
func returns(s *ast.Select) bool {
	return len(s.Columns) == 1 && s.Columns[0].Name == "" && s.From == nil
}

// parameter writes an argument of a function: by its name, with that of the function where a query reads something that could have the same name.
func (w *ruleText) parameter(n int) {
	name := ""
	if d := w.routine; d != nil {
		if inputs := d.Routine().Inputs(); n <= len(inputs) {
			name = inputs[n-1].Name
		}
	}
	if name == "" {
		w.str("$" + strconv.Itoa(n))
		return
	}
	for _, l := range w.levels {
		if l.reads || len(l.names) > 0 {
			w.str(keyword.QuoteIdent(w.routine.Name) + ".")
			break
		}
	}
	w.ident(name)
}
