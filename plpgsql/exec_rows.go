package plpgsql

import (
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The numbers of rows that a loop over a query reads at once, first and later.
const (
	firstRows = 10
	moreRows  = 50
)

// cursorRows are rows of a cursor that have been read.
type cursorRows struct{ rows []types.Row }

// Row implements Sink.
func (c *cursorRows) Row(row types.Row) error {
	c.rows = append(c.rows, row.Clone())
	return nil
}

// Reset implements Sink.
func (c *cursorRows) Reset() { c.rows = c.rows[:0] }

// eachRow executes the body of a loop for each row of a cursor, which it closes. ahead: rows are read before the body wants them, since
// nothing else can tell where the cursor is.
func (a *activation) eachRow(name, label string, ahead bool, body []stmt, take func(types.Row) error) (out flow, err error) {
	found := false
	defer func() {
		if e := a.host.Close(name); err == nil && e != nil && a.isOpen(name) {
			err = e
		}
	}()
	read := &cursorRows{}
	count, later := int64(1), int64(1)
	if ahead {
		count, later = firstRows, moreRows
	}
loop:
	for {
		read.Reset()
		n, err := a.host.Fetch(a.ctx, name, &ast.Fetch{Name: name, Direction: "FORWARD", Count: count}, read)
		if err != nil {
			return flow{}, err
		}
		for _, row := range read.rows {
			if err := a.poll(); err != nil {
				return flow{}, err
			}
			found = true
			if err := take(row); err != nil {
				return flow{}, err
			}
			var done bool
			if done, out, err = a.iterate(label, body); err != nil {
				return flow{}, err
			} else if done {
				break loop
			}
		}
		if n < count {
			break
		}
		count = later
	}
	a.setFound(found)
	return out, nil
}

func (a *activation) isOpen(name string) bool {
	_, err := a.host.Columns(name)
	return err == nil
}

// openBound opens a cursor over a bound statement.
func (a *activation) openBound(f sqlFrame, shift int, name string, b *binding, params types.Row, scroll Scroll) (string, error) {
	stack := a.host.Stack()
	if err := stack.push(f); err != nil {
		return "", err
	}
	defer stack.pop()
	if err := a.host.Begin(a.ctx, a.Signature.ReadOnly); err != nil {
		return "", err
	}
	p := b.plan.Planned()
	if !p.Returns {
		return "", pgerror.New("42P11", "cannot open %s query as cursor", p.Tag)
	}
	name, err := a.host.Open(a.ctx, name, b.plan, params, scroll)
	if err != nil {
		return "", a.inStatement(f, err, shift)
	}
	return name, nil
}

func (a *activation) forQuery(s *forQueryStmt) (flow, error) {
	e := s.query
	f := sqlFrame{e.kind, e.text}
	var b *binding
	var err error
	shift := e.shift
	var params types.Row
	if s.dynamic {
		d, err := a.dynamicRows(e, s.using)
		if err != nil {
			return flow{}, err
		}
		if yieldsRows(d.tree) {
			return a.forUtility(s, d)
		}
		if b, err = a.planQuery(d, false); err != nil {
			return flow{}, err
		}
		f, params, shift = d.frame, d.row, 0
	} else {
		if e.refused != nil {
			return flow{}, f.within(e.refused, 0)
		}
		if !planned(e.query) {
			return flow{}, pgerror.New("42P11", "cannot open %s query as cursor", commandName(e.query))
		}
		if b, err = a.bound(e); err != nil {
			return flow{}, err
		}
		params = a.inputsOf(b)
	}
	sh := columnShape(b.plan.Planned().Root.Columns())
	name, err := a.openBound(f, shift, "", b, params, Scroll{NoScroll: true})
	if err != nil {
		return flow{}, err
	}
	any := false
	out, err := a.eachRow(name, s.label, true, s.body, func(row types.Row) error {
		any = true
		return a.assignTargets(s.into, row, sh)
	})
	if err == nil && !any {
		err = a.assignTargets(s.into, nil, sh)
	}
	return out, err
}

// cursorArgs gives the parameters of a bound cursor their values.
func (a *activation) cursorArgs(c *cursorDecl, args []*expression) error {
	for i, e := range args {
		d, t, err := a.eval(e)
		if err == nil {
			err = a.assign(&target{variable: c.params[i]}, d, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openCursor opens the cursor of a variable, whose value becomes its name.
func (a *activation) openCursor(v int, b *binding, f sqlFrame, shift int, params types.Row, scroll Scroll) error {
	name := ""
	if d := a.values[v]; !d.IsNull() {
		if name = d.Text(); a.isOpen(name) {
			return pgerror.New(pgerror.DuplicateCursor, "cursor \"%s\" already in use", name)
		}
	} else if a.vars[v].constant {
		return pgerror.New("22005", "variable \"%s\" is declared CONSTANT", a.vars[v].name)
	}
	name, err := a.openBound(f, shift, name, b, params, scroll)
	if err != nil {
		return err
	}
	a.values[v] = types.Text(name)
	return nil
}

func scrollOf(s scrolling) Scroll { return Scroll{Scroll: s == scrollYes, NoScroll: s == scrollNo} }

// openDeclared opens a bound cursor. Its name is that of the variable unless the variable has another value.
func (a *activation) openDeclared(v int, args []*expression) error {
	c := a.vars[v].cursor
	if d := a.values[v]; !d.IsNull() && a.isOpen(d.Text()) {
		return pgerror.New(pgerror.DuplicateCursor, "cursor \"%s\" already in use", d.Text())
	}
	if err := a.cursorArgs(c, args); err != nil {
		return err
	}
	e := c.query
	f := sqlFrame{e.kind, e.text}
	if e.refused != nil {
		return f.within(e.refused, 0)
	}
	if !planned(e.query) {
		return pgerror.New("42P11", "cannot open %s query as cursor", commandName(e.query))
	}
	b, err := a.bound(e)
	if err != nil {
		return err
	}
	return a.openCursor(v, b, f, e.shift, a.inputsOf(b), scrollOf(c.scroll))
}

func (a *activation) open(s *openStmt) error {
	if s.bound {
		return a.openDeclared(s.cursor, s.args)
	}
	if d := a.values[s.cursor]; !d.IsNull() && a.isOpen(d.Text()) {
		return pgerror.New(pgerror.DuplicateCursor, "cursor \"%s\" already in use", d.Text())
	}
	if s.dynamic {
		d, err := a.dynamicRows(s.query, s.using)
		if err != nil {
			return err
		}
		b, err := a.planQuery(d, true)
		if err != nil {
			return err
		}
		return a.openCursor(s.cursor, b, d.frame, 0, d.row, scrollOf(s.scroll))
	}
	e := s.query
	f := sqlFrame{e.kind, e.text}
	if e.refused != nil {
		return f.within(e.refused, 0)
	}
	if !planned(e.query) {
		return pgerror.New("42P11", "cannot open %s query as cursor", commandName(e.query))
	}
	b, err := a.bound(e)
	if err != nil {
		return err
	}
	return a.openCursor(s.cursor, b, f, e.shift, a.inputsOf(b), scrollOf(s.scroll))
}

func (a *activation) forCursor(s *forCursorStmt) (flow, error) {
	before := a.values[s.cursor]
	if err := a.openDeclared(s.cursor, s.args); err != nil {
		return flow{}, err
	}
	name := a.values[s.cursor].Text()
	columns, err := a.host.Columns(name)
	if err != nil {
		return flow{}, err
	}
	sh := columnShape(columns)
	out, err := a.eachRow(name, s.label, false, s.body, func(row types.Row) error {
		return a.assignFields(s.variable, row, sh)
	})
	if before.IsNull() {
		a.values[s.cursor] = types.Null
	}
	return out, err
}

// cursorName returns the name of the cursor of a variable.
func (a *activation) cursorName(v int) (string, error) {
	d := a.values[v]
	if d.IsNull() {
		return "", pgerror.New(pgerror.NullValueNotAllowed, "cursor variable \"%s\" is null", a.vars[v].name)
	}
	return d.Text(), nil
}

func (a *activation) fetch(s *fetchStmt) error {
	name, err := a.cursorName(s.cursor)
	if err != nil {
		return err
	}
	columns, err := a.host.Columns(name)
	if err != nil {
		return err
	}
	f := &ast.Fetch{Name: name, Direction: s.direction, Count: s.n, All: s.all, Move: s.move}
	if s.count != nil {
		d, t, err := a.eval(s.count)
		if err == nil {
			d, err = a.convert(d, t, types.TInt4)
		}
		if err != nil {
			return err
		}
		if d.IsNull() {
			return pgerror.New(pgerror.NullValueNotAllowed, "relative or absolute cursor position is null")
		}
		f.Count = d.Int()
	}
	one := &oneRow{keep: 1}
	n, err := a.host.Fetch(a.ctx, name, f, one)
	if err != nil {
		return err
	}
	a.rows = n
	a.setFound(n > 0)
	if s.move {
		return nil
	}
	var row types.Row
	if one.n > 0 {
		row = one.rows[0]
	}
	return a.assignTargets(s.into, row, columnShape(columns))
}

func (a *activation) close(s *closeStmt) error {
	name, err := a.cursorName(s.cursor)
	if err != nil {
		return err
	}
	return a.host.Close(name)
}

func (a *activation) forEach(s *forEachStmt) (flow, error) {
	d, t, err := a.eval(s.array)
	if err != nil {
		return flow{}, err
	}
	if d.IsNull() {
		return flow{}, pgerror.New(pgerror.NullValueNotAllowed, "FOREACH expression must not be null")
	}
	if !t.Underlying().IsArray() {
		return flow{}, pgerror.New(pgerror.DatatypeMismatch, "FOREACH expression must yield an array, not type %s", t)
	}
	array, elem := d.Array(), t.Underlying().Elem()
	dims := array.AllDims()
	if s.slice < 0 || s.slice > len(dims) && len(array.Elems) > 0 {
		return flow{}, pgerror.New(pgerror.ArraySubscriptError, "slice dimension (%d) is out of the valid range 0..%d", s.slice, len(dims))
	}
	if !s.into.isArray(a) && s.slice > 0 {
		return flow{}, pgerror.New(pgerror.DatatypeMismatch, "FOREACH ... SLICE loop variable must be of an array type")
	}
	if s.slice == 0 && s.into.isArray(a) {
		return flow{}, pgerror.New(pgerror.DatatypeMismatch, "FOREACH loop variable must not be of an array type")
	}
	step := 1
	if s.slice > 0 {
		for _, dim := range dims[len(dims)-min(s.slice, len(dims)):] {
			step *= int(dim.Len)
		}
	}
	found, out := false, flow{}
	for i := 0; i < len(array.Elems); i += max(step, 1) {
		if err := a.poll(); err != nil {
			return flow{}, err
		}
		found = true
		value, typ := array.Elems[i], elem
		if s.slice > 0 {
			value, typ = types.NewDimArray(elem, array.Elems[i:i+step], dims[len(dims)-s.slice:]), t.Underlying()
		}
		if err := a.assignElement(s.into, value, typ); err != nil {
			return flow{}, err
		}
		var done bool
		if done, out, err = a.iterate(s.label, s.body); err != nil {
			return flow{}, err
		} else if done {
			break
		}
	}
	a.setFound(found)
	return out, nil
}

// assignElement stores an element in the variable, or its fields in the variables, of FOREACH.
func (a *activation) assignElement(t *target, d types.Datum, typ types.Type) error {
	if len(t.list) > 1 && isRow(typ) {
		if d.IsNull() {
			return a.assignTargets(t, nil, &shape{})
		}
		return a.assignTargets(t, d.Record().Fields, recordShape(d.Record()))
	}
	return a.assignTargets(t, types.Row{d}, &shape{names: []string{"element"}, types: []types.Type{typ}})
}

// isArray reports whether a target is one variable that is an array.
func (t *target) isArray(a *activation) bool {
	if t.list != nil {
		if len(t.list) != 1 {
			return false
		}
		t = t.list[0]
	}
	typ := a.vars[t.variable].typ
	if t.field != "" {
		sh := a.shapes[t.variable]
		if sh == nil || sh.find(t.field) < 0 {
			return false
		}
		typ = sh.types[sh.find(t.field)]
	}
	return typ.Underlying().IsArray()
}
