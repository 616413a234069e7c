package planner

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Variables are what a statement may name beside the columns it reads: the variables of a procedural language. Each is a parameter of the
// statement.
type Variables interface {
	// Variable returns what a name of up to three parts means; nil: it is no variable. star: the row of that name is meant. must: a name
	// that begins as a row's but has no such field is an error, 42703.
	Variable(name []string, star, must bool) (*Variable, error)
	// Precedence says what a name means that a variable and a column have.
	Precedence() Precedence
}

// Precedence says what a name means that a variable and a column have.
type Precedence uint8

// The precedences.
const (
	Ambiguous Precedence = iota // an error
	VariableFirst
	ColumnFirst
)

// Variable is a parameter of a statement that has a name.
type Variable struct {
	Name  string
	Param int // 1-based
	Type  types.Type
	// Fields are those of a row: Param is the row itself then. nil: it is no row.
	Fields []Variable
}

// AssignedPart is a part of a value that an assignment replaces: the query computes the new value of the whole.
type AssignedPart struct {
	Old  Variable
	Path []ast.Step
}

// columnOrVariable is columnRef where there are variables.
func (sc *scope) columnOrVariable(e *ast.ColumnRef, vars Variables) (expr.Scalar, error) {
	precedence := vars.Precedence()
	if precedence == VariableFirst {
		if v, err := sc.b.findVariable(vars, e.Parts, false, int(e.Pos)); v != nil || err != nil {
			return v, err
		}
	}
	x, err := sc.column(e)
	if err == nil && precedence != Ambiguous {
		return x, nil
	}
	if err != nil && !isUndefined(err) {
		return nil, err
	}
	v, failed := sc.b.findVariable(vars, e.Parts, err != nil, int(e.Pos))
	switch {
	case failed != nil:
		return nil, failed
	case v == nil:
		return x, err
	case err == nil:
		return nil, pgerror.New(pgerror.AmbiguousColumn, "column reference \"%s\" is ambiguous", nameOf(e.Parts)).
			WithDetail("It could refer to either a PL/pgSQL variable or a table column.").At(int(e.Pos))
	}
	return v, nil
}

func nameOf(parts []string) string {
	s := parts[0]
	for _, p := range parts[1:] {
		s += "." + p
	}
	return s
}

// isUndefined reports whether an error says that a name means no column.
func isUndefined(err error) bool {
	pe, ok := err.(*pgerror.Error)
	return ok && (pe.Code == pgerror.UndefinedColumn || pe.Code == pgerror.UndefinedTable || pe.Code == pgerror.FeatureNotSupported)
}

func (b *binder) findVariable(vars Variables, parts []string, must bool, pos int) (expr.Scalar, error) {
	v, err := vars.Variable(parts, false, must)
	if err != nil || v == nil {
		return nil, err
	}
	return b.variable(v, pos), nil
}

// variable makes the expression of a variable; a row is a record of its fields.
func (b *binder) variable(v *Variable, pos int) expr.Scalar {
	if v.Fields == nil {
		return b.variableInput(v, pos)
	}
	elems, names := make([]expr.Scalar, len(v.Fields)), make([]string, len(v.Fields))
	for i := range v.Fields {
		elems[i], names[i] = b.variableInput(&v.Fields[i], pos), v.Fields[i].Name
	}
	rec := expr.NewRecord(elems, names)
	if v.Type.IsComposite() {
		rec.Typ = v.Type
		b.useType(v.Type)
	}
	rec.Present = b.variableInput(v, pos)
	return rec
}

func (b *binder) variableInput(v *Variable, pos int) *expr.Input {
	for len(b.params) < v.Param {
		b.params, b.paramPos = append(b.params, types.TUnknown), append(b.paramPos, 0)
	}
	b.params[v.Param-1], b.paramPos[v.Param-1] = v.Type, max(pos, 1)
	b.useType(v.Type)
	return &expr.Input{Index: -1, Param: v.Param, Typ: v.Type, Pos: pos}
}

// variableStar expands name.* of a row variable; false: the name is no variable.
func (b *binder) variableStar(targets []target, e *ast.Star) ([]target, bool, error) {
	vars := b.opts.Variables
	if vars == nil || len(e.Table) == 0 {
		return nil, false, nil
	}
	v, err := vars.Variable(e.Table, true, false)
	if err != nil || v == nil || v.Fields == nil {
		return nil, false, err
	}
	for i := range v.Fields {
		f := &v.Fields[i]
		targets = append(targets, target{e: b.variableInput(f, int(e.Pos)), name: f.Name, pos: int(e.Pos), id: -1})
	}
	return targets, true, nil
}

// detached suspends what the statement around has in sight while a text is bound that the catalog has: variables, and the aggregates and
// limits that look for the scopes named in them, as those of the text count from 0 again. It returns what ends that.
func (b *binder) detached() func() {
	vars, trackers, limits := b.opts.Variables, b.trackers, b.limits
	b.opts.Variables, b.trackers, b.limits = nil, nil, nil
	return func() { b.opts.Variables, b.trackers, b.limits = vars, trackers, limits }
}

// assignedWhole replaces the value that a query computes by that of the whole whose part it is.
func (sb *selectBinder) assignedWhole() error {
	a := sb.b.opts.Assign
	if a == nil || sb.q == nil || sb.q != sb.b.travels {
		return nil
	}
	if len(sb.targets) != 1 {
		return pgerror.New(pgerror.SyntaxError, "assignment source returned %d columns", len(sb.targets))
	}
	t := &assignTarget{col: &catalog.ColumnDescriptor{Name: a.Old.Name, Type: a.Old.Type}, part: a.Path, pos: sb.targets[0].pos}
	if err := t.check(); err != nil {
		return err
	}
	value, err := sb.b.assign(sb.targets[0].e, t, sb.targets[0].pos)
	if err != nil {
		return err
	}
	sb.targets[0].e, err = sb.b.assignPart(sb.sc, t, sb.b.variableInput(&a.Old, 0), value)
	return err
}

// Conversion binds the conversion of a value of one type, the only column of the row that it is evaluated over, to another type as an
// assignment of PL/pgSQL converts it: by an assignment cast, else through the text. nil: the value is as it is to be.
func Conversion(ctx context.Context, from, to types.Type, r catalog.Resolver, env *builtin.Env) (expr.Scalar, error) {
	if from.Same(to) && !to.IsDomain() || from.OID == to.OID && to.Mod < 0 && !to.IsDomain() {
		return nil, nil
	}
	bind := &binder{ctx: ctx, r: r, env: env, noSlots: true}
	id := bind.newColumn("value", from)
	x := expr.Scalar(bind.column(id, 0))
	y, err := bind.coerce(x, to, castAssignment, 0)
	if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.CannotCoerce {
		y, err = bind.throughText(x, to)
	}
	if err != nil {
		return nil, err
	}
	p := &physical{b: bind}
	out := p.compile(y, []int{id})
	return out, p.err
}

// throughText converts a value by its text.
func (b *binder) throughText(x expr.Scalar, to types.Type) (expr.Scalar, error) {
	text, err := b.coerce(x, types.TText, castExplicit, 0)
	if err != nil {
		return nil, err
	}
	base := to.Underlying()
	y, err := b.applyMod(&expr.Parse{X: text, Typ: base.Base()}, base, castAssignment, 0)
	if err == nil && to.IsDomain() {
		y, err = b.coerce(y, to, castAssignment, 0)
	}
	return y, err
}

// SimpleValue returns the expression of a plan that computes one value without reading a table; nil: the plan does more.
func SimpleValue(p *Plan) expr.Scalar {
	if len(p.CTEs) > 0 || p.Subqueries > 0 || p.Tag != "SELECT" || p.Locks != "" || p.Changes != nil {
		return nil
	}
	switch n := p.Root.(type) {
	case *Values:
		if len(n.Rows) == 1 && len(n.Rows[0]) == 1 {
			return n.Rows[0][0]
		}
	case *Project:
		if v, ok := n.Input.(*Values); ok && len(v.Rows) == 1 && len(v.Rows[0]) == 0 && len(n.Exprs) == 1 {
			return n.Exprs[0]
		}
	}
	return nil
}
