package plpgsql

import (
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// binding is an expression or a statement bound to the schema and to the shapes of the rows that it names.
type binding struct {
	plan   Plan
	epoch  uint64
	simple expr.Scalar // the value, if it is computed without executing the plan
	// constant: simple always has the same value, which PostgreSQL computes when it plans the expression.
	constant bool
	typ      types.Type // of simple
	order    []int      // of each input of the plan, its place in sources
	sources  []source   // the values of the parameters
	rows     []rowUse
	columns  []types.Type
}

// source is a variable, or a field of one.
type source struct {
	variable int
	field    int // -1: the variable
}

// rowUse is a variable of type record that an expression names, with the shape that it had when the expression was bound.
type rowUse struct {
	variable int
	shape    *shape
}

// fits reports whether all rows have the shapes for which an expression was bound.
func (b *binding) fits(a *activation) bool {
	for i := range b.rows {
		if u := &b.rows[i]; !u.shape.same(a.shapes[u.variable]) {
			return false
		}
	}
	return true
}

// scope resolves the names in an expression. It implements planner.Variables.
type scope struct {
	a *activation
	e *expression
	b *binding
}

// Precedence implements planner.Variables.
func (s *scope) Precedence() planner.Precedence {
	switch s.a.resolve {
	case preferVariable:
		return planner.VariableFirst
	case preferColumn:
		return planner.ColumnFirst
	}
	return planner.Ambiguous
}

// Variable implements planner.Variables.
func (s *scope) Variable(parts []string, star, must bool) (*planner.Variable, error) {
	if len(parts) > 3 {
		return nil, nil
	}
	v, used := s.e.names.lookup(parts, func(v int) bool { return s.a.vars[v].record })
	if used == 0 {
		return nil, nil
	}
	d := s.a.vars[v]
	if !d.record {
		if t, ok := s.a.caseTypes[v]; ok {
			return &planner.Variable{Name: d.name, Param: s.param(source{v, -1}), Type: t}, nil
		}
		if used == len(parts) && !star {
			return &planner.Variable{Name: d.name, Param: s.param(source{v, -1}), Type: d.typ}, nil
		}
		return nil, nil
	}
	switch rest := parts[used:]; {
	case len(rest) == 0:
		return s.row(v)
	case len(rest) == 1 && !star:
		sh, err := s.shape(v)
		if err != nil {
			return nil, err
		}
		i := sh.find(rest[0])
		if i < 0 {
			if !must {
				return nil, nil
			}
			return nil, noField(d.name, rest[0])
		}
		return &planner.Variable{Name: rest[0], Param: s.param(source{v, i}), Type: sh.types[i]}, nil
	}
	return nil, nil
}

func noField(record, field string) error {
	return pgerror.New(pgerror.UndefinedColumn, "record \"%s\" has no field \"%s\"", record, field)
}

func notAssigned(record string) error {
	return pgerror.New(pgerror.ObjectNotInPrerequisite, "record \"%s\" is not assigned yet", record).
		WithDetail("The tuple structure of a not-yet-assigned record is indeterminate.")
}

// shape returns the shape of a row, on which the binding depends from then on.
func (s *scope) shape(v int) (*shape, error) {
	sh := s.a.shapes[v]
	if sh == nil {
		return nil, notAssigned(s.a.vars[v].name)
	}
	if s.a.vars[v].any() {
		for i := range s.b.rows {
			if s.b.rows[i].variable == v {
				return sh, nil
			}
		}
		s.b.rows = append(s.b.rows, rowUse{v, sh})
	}
	return sh, nil
}

// row returns a row variable as a whole.
func (s *scope) row(v int) (*planner.Variable, error) {
	d := s.a.vars[v]
	if s.a.shapes[v] == nil { // As a whole it is NULL.
		s.b.rows = append(s.b.rows, rowUse{v, nil})
		return &planner.Variable{Name: d.name, Param: s.param(source{v, -1}), Type: types.TRecord}, nil
	}
	sh, err := s.shape(v)
	if err != nil {
		return nil, err
	}
	out := &planner.Variable{Name: d.name, Param: s.param(source{v, -1}), Type: d.typ.Underlying(), Fields: []planner.Variable{}}
	for i := range sh.names {
		out.Fields = append(out.Fields, planner.Variable{Name: sh.names[i], Param: s.param(source{v, i}), Type: sh.types[i]})
	}
	return out, nil
}

// param returns the number of the parameter that has the value of a source.
func (s *scope) param(src source) int {
	for i, have := range s.b.sources {
		if have == src {
			return i + 1
		}
	}
	s.b.sources = append(s.b.sources, src)
	return len(s.b.sources)
}

// bound returns the binding of an expression under the present schema and shapes.
func (a *activation) bound(e *expression) (*binding, error) {
	b := a.exprs[e.id]
	if b != nil && b.fits(a) {
		if b.epoch == a.host.Epoch() {
			return b, nil
		}
		ok, err := a.host.Holds(a.ctx, b.plan)
		if err != nil {
			return nil, err
		}
		if ok {
			b.epoch = a.host.Epoch()
			return b, nil
		}
	}
	b, err := a.bind(e, e.query)
	if err != nil {
		return nil, sqlFrame{e.kind, e.text}.within(err, e.shift)
	}
	a.exprs[e.id] = b
	return b, nil
}

// bind binds a query.
func (a *activation) bind(e *expression, tree ast.Statement) (*binding, error) {
	if e.refused != nil {
		return nil, e.refused
	}
	b := &binding{}
	opts := planner.Options{NoSlots: true, Variables: &scope{a, e, b}, Cursor: e.cursor}
	if t := e.target; t != nil && len(t.path) > 0 {
		old, err := a.assignedPart(e, b)
		if err != nil {
			return nil, err
		}
		opts.Assign = old
	}
	plan, err := a.host.Plan(a.ctx, tree, opts)
	if err != nil {
		return nil, err
	}
	b.plan = plan
	p := plan.Planned()
	for _, c := range p.Root.Columns() {
		b.columns = append(b.columns, c.Type)
	}
	for i := range p.Inputs {
		b.order = append(b.order, p.Inputs[i].Param-1)
	}
	if e.kind != statementExpr && len(b.columns) == 1 {
		if b.simple = planner.SimpleValue(p); b.simple != nil {
			b.typ, b.constant = b.simple.Type(), len(b.order) == 0 && !expr.Volatile(b.simple)
			if b.typ.OID == types.OIDUnknown {
				b.typ = types.TText
			}
		}
	}
	ok, err := a.host.Holds(a.ctx, plan) // for the privileges
	if err == nil && !ok {
		err = pgerror.New(pgerror.InternalError, "a new plan does not hold")
	}
	b.epoch = a.host.Epoch()
	return b, err
}

// assignedPart describes the value whose part an assignment replaces.
func (a *activation) assignedPart(e *expression, b *binding) (*planner.AssignedPart, error) {
	t, s := e.target, &scope{a, e, b}
	v := a.vars[t.variable]
	if t.field == "" {
		old := planner.Variable{Name: v.name, Param: s.param(source{t.variable, -1}), Type: v.typ}
		return &planner.AssignedPart{Old: old, Path: t.path}, nil
	}
	sh, err := s.shape(t.variable)
	if err != nil {
		return nil, err
	}
	i := sh.find(t.field)
	if i < 0 {
		return nil, noField(v.name, t.field)
	}
	return &planner.AssignedPart{Old: planner.Variable{Name: t.field, Param: s.param(source{t.variable, i}), Type: sh.types[i]}, Path: t.path}, nil
}

// load returns the value of a source.
func (a *activation) load(s source) types.Datum {
	d := a.values[s.variable]
	if s.field < 0 || d.IsNull() {
		return d
	}
	return d.Record().Fields[s.field]
}

// inputsOf returns the values of the parameters of a statement. They are the caller's.
func (a *activation) inputsOf(b *binding) types.Row {
	row := make(types.Row, len(b.sources))
	for i, s := range b.sources {
		row[i] = a.load(s)
	}
	return row
}

// eval computes an expression.
func (a *activation) eval(e *expression) (types.Datum, types.Type, error) {
	b := a.exprs[e.id]
	if b == nil || b.epoch != a.host.Epoch() || len(b.rows) > 0 && !b.fits(a) {
		var err error
		if b, err = a.bound(e); err != nil {
			return types.Null, types.Type{}, err
		}
	}
	if b.simple == nil {
		return a.evalQuery(e, b)
	}
	in := a.inputs[:0]
	for _, i := range b.order {
		s := b.sources[i]
		if s.field < 0 {
			in = append(in, a.values[s.variable])
		} else {
			in = append(in, a.load(s))
		}
	}
	a.inputs = in
	a.ev.Begin(in)
	d, err := b.simple.Eval(&a.ev, nil)
	if err != nil && b.constant {
		err = a.inStatement(sqlFrame{e.kind, e.text}, err, e.shift)
	}
	return d, b.typ, err
}

// oneRow takes the first rows of a statement.
type oneRow struct {
	rows []types.Row
	keep int
	n    int64
}

// Row implements Sink.
func (o *oneRow) Row(row types.Row) error {
	if o.n++; len(o.rows) < o.keep {
		o.rows = append(o.rows, row.Clone())
	}
	return nil
}

// Reset implements Sink.
func (o *oneRow) Reset() { o.rows, o.n = o.rows[:0], 0 }

// evalQuery computes an expression by executing its plan.
func (a *activation) evalQuery(e *expression, b *binding) (types.Datum, types.Type, error) {
	f := sqlFrame{e.kind, e.text}
	if len(b.columns) != 1 {
		what := "query"
		if e.kind == assignExpr {
			what = "assignment source"
		}
		return types.Null, types.Type{}, pgerror.New(pgerror.SyntaxError, "%s returned %d columns", what, len(b.columns)).InContext("query: %s", e.text)
	}
	one := &oneRow{keep: 1}
	if _, err := a.runPlan(f, e.shift, b, 2, one); err != nil {
		return types.Null, types.Type{}, err
	}
	switch {
	case len(one.rows) == 0:
		return types.Null, b.columns[0], nil
	case one.n > 1:
		return types.Null, types.Type{}, pgerror.New(pgerror.CardinalityViolation, "query returned more than one row").InContext("query: %s", e.text)
	}
	return one.rows[0][0], b.columns[0], nil
}

// runPlan executes a bound statement with the values of the variables.
func (a *activation) runPlan(f sqlFrame, shift int, b *binding, limit int, to Sink) (Result, error) {
	return a.runBound(f, shift, b, a.inputsOf(b), limit, to)
}

// inStatement adds a statement's line of context to an error that a client may see.
func (a *activation) inStatement(f sqlFrame, err error, shift int) error {
	e, catchable := a.host.Explain(err)
	if !catchable {
		return err
	}
	return f.within(e, shift)
}

// condition computes a condition; NULL counts as false.
func (a *activation) condition(e *expression) (bool, error) {
	d, t, err := a.eval(e)
	if err != nil || d.IsNull() {
		return false, err
	}
	if t.OID != types.OIDBool {
		if d, err = a.convert(d, t, types.TBool); err != nil || d.IsNull() {
			return false, err
		}
	}
	return d.Bool(), nil
}

// convert converts a value as an assignment does.
func (a *activation) convert(d types.Datum, from, to types.Type) (types.Datum, error) {
	if from == to || from.OID == to.OID && to.Mod < 0 && to.Def == nil {
		return d, nil
	}
	cast, err := a.cast(from, to)
	if err != nil || cast == nil {
		return d, err
	}
	a.ev.Begin(nil)
	return cast.Eval(&a.ev, types.Row{d})
}

// cast returns the conversion from one type to another; nil: there is nothing to do.
func (a *activation) cast(from, to types.Type) (expr.Scalar, error) {
	key := castKey{from, to}
	if c, ok := a.casts[key]; ok {
		return c, nil
	}
	r, err := a.host.Schema(a.ctx)
	if err != nil {
		return nil, err
	}
	c, err := planner.Conversion(a.ctx, from, to, r, a.host.Env())
	if err != nil {
		return nil, err
	}
	if a.casts == nil {
		a.casts = map[castKey]expr.Scalar{}
	}
	a.casts[key] = c
	return c, nil
}
