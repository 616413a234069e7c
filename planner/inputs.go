package planner

import (
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// inputSteps is what reading a literal counts as (builtin.Env.Step).
const inputSteps = 64

// Inputs returns the input values of an execution of p, in the order of p.Inputs: literals are parsed as the type that
// the plan gave them, parameters are used unchanged, positions of cursors are asked of env. reuse, which may be nil, is used as the result's storage if it is
// large enough.
//
// Errors: those of parsing a literal as its type, at the literal's position; 08P01 if a parameter is missing.
func Inputs(p *Plan, literals []sql.Literal, params types.Row, env *builtin.Env, reuse types.Row) (types.Row, error) {
	out := reuse[:0]
	if cap(out) < len(p.Inputs) {
		out = make(types.Row, 0, len(p.Inputs))
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if in.Param > 0 {
			if in.Param > len(params) {
				return nil, pgerror.New(pgerror.ProtocolViolation, "bind message supplies %d parameters, but the statement requires %d",
					len(params), len(p.ParamTypes))
			}
			out = append(out, params[in.Param-1])
			continue
		}
		if in.Cursor > 0 {
			d, err := p.CurrentOf[in.Cursor-1].value(params, env)
			if err != nil {
				return nil, err
			}
			out = append(out, d)
			continue
		}
		if err := env.Step(inputSteps); err != nil {
			return nil, err
		}
		d, err := literalValue(&literals[in.Slot], in.Type, env)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// literalValue reads a literal as a value of type t.
func literalValue(l *sql.Literal, t types.Type, env *builtin.Env) (types.Datum, error) {
	switch {
	case l.Kind == ast.LiteralInt4 || l.Kind == ast.LiteralInt8:
		if t.OID == types.OIDInt4 || t.OID == types.OIDInt8 {
			if n, ok := smallInt(l.Value); ok {
				return types.Int(n), nil
			}
		}
	case t.OID == types.OIDText:
		return types.Text(l.Value), nil
	}
	d, err := types.ParseText(t, l.Value, &env.Format)
	return d, at(err, l.Pos)
}

// smallInt reads an integer of at most 18 digits, which cannot overflow.
func smallInt(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 18 {
		return 0, false
	}
	n := int64(0)
	for i := 0; i < len(s); i++ {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, true
}
