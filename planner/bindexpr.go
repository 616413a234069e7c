package planner

import (
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func itoa(n int) string { return strconv.Itoa(n) }

// expr binds an expression. Literals and parameters whose type is not determined yet are returned with type unknown;
// coerce gives them one.
func (sc *scope) expr(e ast.Expr) (expr.Scalar, error) {
	if err := sc.b.enter(e.Position()); err != nil {
		return nil, err
	}
	x, err := sc.bindExpr(e)
	sc.b.leave()
	if err == nil {
		sc.b.notes.expr(sc, e, x)
	}
	return x, err
}

func (sc *scope) bindExpr(e ast.Expr) (expr.Scalar, error) {
	switch e := e.(type) {
	case *ast.ColumnRef:
		return sc.columnRef(e)
	case *ast.Literal:
		return sc.b.literal(e)
	case *ast.Param:
		return sc.b.param(e)
	case *ast.Bool:
		return expr.NewBool(e.Value), nil
	case *ast.Null:
		return expr.NewNull(types.TUnknown), nil
	case *ast.Binary:
		return sc.binary(e)
	case *ast.Unary:
		return sc.unary(e)
	case *ast.Call:
		return sc.call(e)
	case *ast.Cast:
		return sc.cast(e)
	case *ast.Case:
		return sc.withoutSets("CASE", func() (expr.Scalar, error) { return sc.caseExpr(e) })
	case *ast.IsTest:
		return sc.isTest(e)
	case *ast.IsDistinct:
		return sc.isDistinct(e)
	case *ast.Between:
		return sc.between(e)
	case *ast.InList:
		return sc.inList(e)
	case *ast.Like:
		return sc.like(e)
	default:
		return sc.bindRareExpr(e)
	}
}

func (sc *scope) bindRareExpr(e ast.Expr) (expr.Scalar, error) {
	switch e := e.(type) {
	case *ast.InSubquery:
		return sc.inSubquery(e)
	case *ast.Quantified:
		return sc.quantified(e)
	case *ast.Exists:
		return sc.exists(e)
	case *ast.Subquery:
		return sc.scalarSubquery(e)
	case *ast.ArraySubquery:
		return sc.arraySubquery(e)
	case *ast.Array:
		return sc.array(e, types.Type{})
	case *ast.Row:
		return sc.row(e)
	case *ast.Subscript:
		return sc.subscript(e)
	case *ast.Field:
		return sc.field(e)
	case *ast.AtTimeZone:
		args, ts, err := sc.args([]ast.Expr{e.Zone, e.X})
		if err != nil {
			return nil, err
		}
		f := builtin.SystemFunc("timezone")
		f.Schema = catalog.SystemSchema
		return sc.b.function(f, args, ts, int(e.Pos))
	case *ast.Collate:
		return sc.collate(e)
	case *ast.Default:
		return nil, pgerror.New(pgerror.SyntaxError, "DEFAULT is not allowed in this context").At(int(e.Pos))
	case *ast.Star:
		if len(e.Table) > 0 {
			return sc.starRow(e)
		}
		return nil, pgerror.New(pgerror.SyntaxError, "row expansion via \"*\" is not supported here").At(int(e.Pos))
	}
	return nil, pgerror.New(pgerror.InternalError, "unknown expression %T", e)
}

// boolean binds an expression that must be a condition.
func (sc *scope) boolean(e ast.Expr, clause string) (expr.Scalar, error) {
	x, err := sc.expr(e)
	if err != nil {
		return nil, err
	}
	return sc.b.toBoolean(x, clause, startOf(e))
}

func (b *binder) toBoolean(x expr.Scalar, clause string, pos int) (expr.Scalar, error) {
	given := x.Type()
	x = undomain(x)
	switch x.Type().OID {
	case types.OIDBool:
		return x, nil
	case types.OIDUnknown:
		return b.coerce(x, types.TBool, castImplicit, pos)
	}
	if clause == "JOIN conditions" {
		clause = "JOIN/ON" // as PostgreSQL calls it here
	}
	return nil, pgerror.New(pgerror.DatatypeMismatch, "argument of %s must be type boolean, not type %s", clause, builtin.TypeName(given)).At(pos)
}

// literalTypes gives each kind of literal its type.
var literalTypes = [...]types.Type{
	ast.LiteralInt4:    types.TInt4,
	ast.LiteralInt8:    types.TInt8,
	ast.LiteralNumeric: types.TNumeric,
	ast.LiteralString:  types.TUnknown,
	ast.LiteralBit:     types.TBit,
}

// literal makes an input of a slotted literal and a constant of any other.
func (b *binder) literal(e *ast.Literal) (expr.Scalar, error) {
	t := literalTypes[e.Kind]
	if e.Slot >= 0 && !b.noSlots {
		return &expr.Input{Index: -1, Slot: e.Slot, Typ: t, Pos: int(e.Pos)}, nil
	}
	if t.OID == types.OIDUnknown {
		c := &expr.Const{Value: types.Text(e.Value), Typ: t}
		b.texts = append(b.texts, textLiteral{c, e})
		return c, nil
	}
	d, err := types.ParseText(t, e.Value, &types.Format{})
	return &expr.Const{Value: d, Typ: t}, at(err, int(e.Pos))
}

// negativeLiteral makes the constant that a minus before a number is for PostgreSQL's parser; nil if lit is no number.
func (b *binder) negativeLiteral(lit *ast.Literal) (expr.Scalar, error) {
	if lit.Kind == ast.LiteralString || lit.Kind == ast.LiteralBit || strings.HasPrefix(lit.Value, "-") {
		return nil, nil
	}
	negative := *lit
	negative.Value = "-" + lit.Value
	return b.literal(&negative)
}

// param makes an input of $n.
func (b *binder) param(e *ast.Param) (expr.Scalar, error) {
	if len(b.inlining) > 0 {
		if e.Number < 1 || e.Number > len(b.arguments) {
			return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", e.Number).At(int(e.Pos))
		}
		return b.column(b.arguments[e.Number-1], int(e.Pos)), nil
	}
	if len(b.opts.Rows) > 0 && b.opts.Rows[0].Open {
		if e.Number < 1 || e.Number > len(b.opts.Rows[0].Columns) {
			return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", e.Number).At(int(e.Pos))
		}
		return &expr.Input{Index: -1, Param: e.Number, Typ: b.params[e.Number-1], Pos: int(e.Pos)}, nil
	}
	if vars := b.opts.Variables; vars != nil {
		x, err := b.findVariable(vars, []string{"$" + itoa(e.Number)}, false, int(e.Pos))
		if x == nil && err == nil {
			err = pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", e.Number).At(int(e.Pos))
		}
		return x, err
	}
	if b.noSlots && b.opts.ParamTypes == nil || e.Number < 1 || e.Number > 65535 {
		return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", e.Number).At(int(e.Pos))
	}
	for len(b.params) < e.Number {
		n := len(b.params)
		t := types.TUnknown
		if n < len(b.opts.ParamTypes) && b.opts.ParamTypes[n].Valid() {
			t = b.opts.ParamTypes[n]
		}
		b.params = append(b.params, t)
		b.paramPos = append(b.paramPos, 0)
	}
	if b.paramPos[e.Number-1] == 0 {
		b.paramPos[e.Number-1] = max(int(e.Pos), 1)
	}
	return &expr.Input{Index: -1, Param: e.Number, Typ: b.params[e.Number-1], Pos: int(e.Pos)}, nil
}

func (sc *scope) binary(e *ast.Binary) (expr.Scalar, error) {
	switch e.Op {
	case "AND", "OR":
		return sc.logical(e)
	}
	l, lok := e.L.(*ast.Row)
	if r, rok := e.R.(*ast.Row); lok && rok {
		return sc.rowCompare(e.Op, l, r, int(e.Pos))
	}
	if op := expr.ParseCmpOp(e.Op); op != 0 {
		if sub, ok := e.R.(*ast.Subquery); ok && lok {
			return sc.rowSubquery(op, l, sub.Query, int(e.Pos))
		}
	}
	left, err := sc.expr(e.L)
	if err != nil {
		return nil, err
	}
	right, err := sc.expr(e.R)
	if err != nil {
		return nil, err
	}
	x, err := sc.b.written(e.Op, e.Qualified, &e.Operator, left, right, int(e.Pos))
	return byRowID(x), err
}

// logical binds a chain of one connective without recursion on its length.
func (sc *scope) logical(e *ast.Binary) (expr.Scalar, error) {
	var parts []ast.Expr
	var at ast.Expr = e
	for {
		bin, ok := at.(*ast.Binary)
		if !ok || bin.Op != e.Op {
			break
		}
		parts = append(parts, bin.R)
		at = bin.L
	}
	args := make([]expr.Scalar, 0, len(parts)+1)
	x, err := sc.boolean(at, e.Op)
	if err != nil {
		return nil, err
	}
	args = append(args, x)
	for i := len(parts) - 1; i >= 0; i-- {
		if x, err = sc.boolean(parts[i], e.Op); err != nil {
			return nil, err
		}
		args = append(args, x)
	}
	if e.Op == "AND" {
		return &expr.And{Args: args}, nil
	}
	return &expr.Or{Args: args}, nil
}

func (sc *scope) unary(e *ast.Unary) (expr.Scalar, error) {
	if e.Op == "NOT" {
		x, err := sc.boolean(e.X, "NOT")
		if err != nil {
			return nil, err
		}
		return &expr.Not{X: x}, nil
	}
	// -5 is a constant in PostgreSQL's grammar: what counts is that -2147483648 is an integer… it is
	// not there either, being the negation of a bigint.
	if lit, ok := e.X.(*ast.Literal); ok && sc.b.notes != nil && e.Op == "-" {
		if x, err := sc.b.negativeLiteral(lit); x != nil || err != nil {
			return x, err
		}
	}
	x, err := sc.expr(e.X)
	if err != nil {
		return nil, err
	}
	op := e.Op
	if e.Qualified {
		op = systemOperator(op)
	}
	y, err := sc.b.prefixOperator(op, x, int(e.Pos))
	e.Operator = sc.b.userOperator
	return y, err
}

func (sc *scope) isTest(e *ast.IsTest) (expr.Scalar, error) {
	if e.What == "NULL" {
		x, err := sc.expr(e.X)
		if err != nil {
			return nil, err
		}
		return &expr.IsNull{X: sc.b.textIfUnknown(x), Not: e.Not}, nil
	}
	if form, ok := strings.CutSuffix(e.What, "NORMALIZED"); ok {
		return sc.isNormalized(e, strings.TrimSpace(form))
	}
	clause := "IS "
	if e.Not {
		clause += "NOT "
	}
	x, err := sc.boolean(e.X, clause+e.What)
	if err != nil {
		return nil, err
	}
	if e.What == "UNKNOWN" {
		return &expr.IsNull{X: x, Not: e.Not}, nil
	}
	return &expr.IsBool{X: x, Want: e.What == "TRUE", Not: e.Not}, nil
}

// isNormalized binds X IS [NOT] form NORMALIZED; the form "" is NFC.
func (sc *scope) isNormalized(e *ast.IsTest, form string) (expr.Scalar, error) {
	args := []ast.Expr{e.X}
	if form != "" {
		args = append(args, &ast.Literal{Pos: e.Pos, Kind: ast.LiteralString, Slot: -1, Value: form})
	}
	x, err := sc.call(&ast.Call{Pos: e.Pos, Name: []string{catalog.SystemSchema, "is_normalized"}, Args: args})
	if err != nil || !e.Not {
		return x, err
	}
	sc.b.notes.part(e, x)
	return &expr.Not{X: x}, nil
}

// textIfUnknown gives an expression of unknown type the type text, where any type would do. A
// parameter stays unknown: PostgreSQL refuses to guess there.
func (b *binder) textIfUnknown(x expr.Scalar) expr.Scalar {
	if x.Type().OID != types.OIDUnknown {
		return x
	}
	if in, ok := x.(*expr.Input); ok && in.Param > 0 {
		return x
	}
	y, err := b.coerce(x, types.TText, castImplicit, 0)
	if err != nil {
		return x
	}
	return y
}

func (sc *scope) isDistinct(e *ast.IsDistinct) (expr.Scalar, error) {
	if l, ok := e.L.(*ast.Row); ok {
		if r, ok := e.R.(*ast.Row); ok {
			return sc.rowDistinct(e, l, r)
		}
	}
	l, err := sc.expr(e.L)
	if err != nil {
		return nil, err
	}
	r, err := sc.expr(e.R)
	if err != nil {
		return nil, err
	}
	return sc.b.distinct(l, r, e.Not, int(e.Pos))
}

// distinct makes L IS [NOT] DISTINCT FROM R, which compares as = does.
func (b *binder) distinct(l, r expr.Scalar, not bool, pos int) (expr.Scalar, error) {
	eq, err := b.operator("=", l, r, pos)
	if err != nil {
		return nil, err
	}
	if call, ok := eq.(*expr.Call); ok && b.notes != nil {
		return &expr.IsDistinct{L: call.Args[0], R: call.Args[1], Not: not}, nil
	}
	c, ok := eq.(*expr.Compare)
	if call, fails := eq.(*expr.Call); fails && call.Fn.Undetermined {
		return nil, builtin.Undetermined("string comparison")
	}
	if ok {
		return &expr.IsDistinct{L: c.L, R: c.R, Class: c.Class, Not: not}, nil
	}
	if call, ok := eq.(*expr.Call); ok && len(call.Args) == 2 {
		l, r = call.Args[0], call.Args[1] // an untyped NULL among them has its type
	}
	l, r = b.textIfUnknown(l), b.textIfUnknown(r)
	equal, err := b.operator("=", &expr.Column{ID: -1, Typ: l.Type()}, &expr.Column{ID: -1, Ordinal: 1, Typ: r.Type()}, pos)
	if err != nil {
		return nil, err
	}
	return &expr.IsDistinct{L: l, R: r, Equal: equal, Not: not}, nil
}

func (sc *scope) rowDistinct(e *ast.IsDistinct, l, r *ast.Row) (expr.Scalar, error) {
	if len(l.Elems) != len(r.Elems) {
		return nil, unequalRows(int(e.Pos))
	}
	args := make([]expr.Scalar, len(l.Elems))
	for i := range l.Elems {
		x, err := sc.isDistinct(&ast.IsDistinct{Pos: e.Pos, L: l.Elems[i], R: r.Elems[i], Not: e.Not})
		if err != nil {
			return nil, err
		}
		args[i] = x
	}
	if e.Not {
		return &expr.And{Args: args}, nil
	}
	return &expr.Or{Args: args}, nil
}

func unequalRows(pos int) error {
	return pgerror.New(pgerror.SyntaxError, "unequal number of entries in row expressions").At(pos)
}

// between binds X BETWEEN as PostgreSQL's grammar rewrites it: as two comparisons, each with its own operators. If one
// class compares all three, X is evaluated once.
func (sc *scope) between(e *ast.Between) (expr.Scalar, error) {
	x, err := sc.expr(e.X)
	if err != nil {
		return nil, err
	}
	lo, err := sc.expr(e.Low)
	if err != nil {
		return nil, err
	}
	hi, err := sc.expr(e.High)
	if err != nil {
		return nil, err
	}
	one, err := sc.b.betweenOne(x, lo, hi, e.Not, int(e.Pos))
	if err != nil || !e.Symmetric {
		return one, err
	}
	again := expr.Clone
	if sc.b.notes != nil {
		again = func(s expr.Scalar) expr.Scalar { return s }
	}
	two, err := sc.b.betweenOne(again(x), again(hi), again(lo), e.Not, int(e.Pos))
	if err != nil {
		return nil, err
	}
	if e.Not {
		return &expr.And{Args: []expr.Scalar{one, two}}, nil
	}
	return &expr.Or{Args: []expr.Scalar{one, two}}, nil
}

func (b *binder) betweenOne(x, lo, hi expr.Scalar, not bool, pos int) (expr.Scalar, error) {
	ops := [2]string{">=", "<="}
	if not {
		ops = [2]string{"<", ">"}
	}
	low, err := b.operator(ops[0], x, lo, pos)
	if err != nil {
		return nil, err
	}
	second := x
	if !isLeaf(x) && b.notes == nil {
		second = expr.Clone(x)
	}
	high, err := b.operator(ops[1], second, hi, pos)
	if err != nil {
		return nil, err
	}
	args := []expr.Scalar{low, high}
	l, lok := low.(*expr.Compare)
	h, hok := high.(*expr.Compare)
	if lok && hok && l.Class == h.Class && !isLeaf(x) {
		return &expr.Between{X: l.L, Low: l.R, High: h.R, Class: l.Class, Not: not}, nil
	}
	if not {
		return &expr.Or{Args: args}, nil
	}
	return &expr.And{Args: args}, nil
}

// isLeaf reports whether evaluating x is nearly free.
func isLeaf(x expr.Scalar) bool {
	switch x.(type) {
	case *expr.Column, *expr.Const, *expr.Input, *expr.CaseValue:
		return true
	}
	return false
}

// inList binds X IN (a, b, …): a list if there is a common type, otherwise a chain of comparisons.
func (sc *scope) inList(e *ast.InList) (expr.Scalar, error) {
	if row, ok := e.X.(*ast.Row); ok {
		return sc.rowInList(e, row)
	}
	x, err := sc.expr(e.X)
	if err != nil {
		return nil, err
	}
	list := make([]expr.Scalar, len(e.List))
	for i := range e.List {
		if list[i], err = sc.expr(e.List[i]); err != nil {
			return nil, err
		}
	}
	return sc.b.inList(x, list, e)
}

func (b *binder) inList(x expr.Scalar, list []expr.Scalar, e *ast.InList) (expr.Scalar, error) {
	if b.notes != nil {
		return b.verbatimInList(x, list, e)
	}
	if in, err := b.uniformInList(x, list, e); in != nil || err != nil {
		return in, err
	}
	op := "="
	if e.Not {
		op = "<>"
	}
	args := make([]expr.Scalar, len(list))
	for i := range list {
		l := x
		if i > 0 {
			l = expr.Clone(x)
		}
		cmp, err := b.operator(op, l, list[i], int(e.Pos))
		if err != nil {
			return nil, err
		}
		args[i] = cmp
	}
	switch {
	case len(args) == 1:
		return args[0], nil
	case e.Not:
		return &expr.And{Args: args}, nil
	}
	return &expr.Or{Args: args}, nil
}

// uniformInList makes an InList where one comparison class serves X and the whole list; nil where
// there is none. PostgreSQL finds the common type of the list with X first.
func (b *binder) uniformInList(x expr.Scalar, list []expr.Scalar, e *ast.InList) (expr.Scalar, error) {
	if len(list) < 2 {
		return nil, nil
	}
	ts := make([]types.Type, 0, len(list)+1)
	ts = append(ts, x.Type())
	for _, v := range list {
		ts = append(ts, v.Type())
	}
	common, err := b.commonType(ts, nil, "IN")
	if err == nil && common.IsArray() && slices.ContainsFunc(ts, func(t types.Type) bool { return t.OID != common.OID && t.OID != types.OIDUnknown }) {
		return nil, nil // There are no arrays of arrays to which PostgreSQL could compare.
	}
	if err != nil || common.OID == types.OIDUnknown || common.OID == types.OIDRecord {
		return nil, nil
	}
	probe, err := b.operator("=", x, expr.NewNull(common), int(e.Pos))
	if err != nil {
		return nil, nil
	}
	c, ok := probe.(*expr.Compare)
	if !ok {
		return nil, nil
	}
	for i, v := range list {
		if list[i], err = b.coerce(v, listType(c, common), castImplicit, startOf(e.List[i])); err != nil {
			return nil, err
		}
	}
	return expr.NewInList(c.L, list, c.Class, e.Not), nil
}

// listType is the type that the probe's comparison requires of the list's values.
func listType(c *expr.Compare, common types.Type) types.Type {
	if t := c.R.Type(); t.OID != types.OIDUnknown {
		return t.Base()
	}
	return common.Base()
}

func (sc *scope) rowInList(e *ast.InList, row *ast.Row) (expr.Scalar, error) {
	op := "="
	if e.Not {
		op = "<>"
	}
	args := make([]expr.Scalar, len(e.List))
	for i, v := range e.List {
		r, ok := v.(*ast.Row)
		if !ok {
			return nil, unequalRows(startOf(v))
		}
		x, err := sc.rowCompare(op, row, r, int(e.Pos))
		if err != nil {
			return nil, err
		}
		args[i] = x
	}
	switch {
	case len(args) == 1:
		return args[0], nil
	case e.Not:
		return &expr.And{Args: args}, nil
	}
	return &expr.Or{Args: args}, nil
}

// rowCompare binds (a, b) op (c, d).
func (sc *scope) rowCompare(op string, l, r *ast.Row, pos int) (expr.Scalar, error) {
	if len(l.Elems) != len(r.Elems) {
		return nil, unequalRows(pos)
	}
	if len(l.Elems) == 0 {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "cannot compare rows of zero length").At(pos)
	}
	x, y := make([]expr.Scalar, len(l.Elems)), make([]expr.Scalar, len(l.Elems))
	for i := range l.Elems {
		var err error
		if x[i], err = sc.expr(l.Elems[i]); err != nil {
			return nil, err
		}
		if y[i], err = sc.expr(r.Elems[i]); err != nil {
			return nil, err
		}
	}
	return sc.b.rowOperator(op, x, y, pos)
}

func (sc *scope) row(e *ast.Row) (expr.Scalar, error) {
	elems, err := sc.rowElems(e, nil, castImplicit)
	if err != nil {
		return nil, err
	}
	for i := range elems {
		elems[i] = sc.b.textIfUnknown(elems[i])
	}
	return expr.NewRecord(elems, nil), nil
}

func (sc *scope) caseExpr(e *ast.Case) (expr.Scalar, error) {
	out := &expr.Case{}
	var subject expr.Scalar
	if e.Operand != nil {
		x, err := sc.expr(e.Operand)
		if err != nil {
			return nil, err
		}
		if subject = sc.b.textIfUnknown(x); !isLeaf(subject) || sc.b.notes != nil {
			out.Operand = subject
			subject = &expr.CaseValue{Typ: subject.Type()}
		}
	}
	// The arms' values follow each other with ELSE first, as PostgreSQL chooses their type.
	values := make([]expr.Scalar, 0, len(e.Whens)+1)
	pos := make([]int, 0, len(e.Whens)+1)
	for _, w := range e.Whens {
		cond, err := sc.caseCond(subject, &w)
		if err != nil {
			return nil, err
		}
		then, err := sc.expr(w.Then)
		if err != nil {
			return nil, err
		}
		out.Whens = append(out.Whens, expr.When{Cond: cond})
		values, pos = append(values, then), append(pos, startOf(w.Then))
	}
	if e.Else != nil {
		x, err := sc.expr(e.Else)
		if err != nil {
			return nil, err
		}
		values, pos = append([]expr.Scalar{x}, values...), append([]int{startOf(e.Else)}, pos...)
	}
	t, err := sc.b.unify(values, pos, "CASE")
	if err != nil {
		return nil, err
	}
	if e.Else != nil {
		out.Else, values = values[0], values[1:]
	}
	for i := range out.Whens {
		out.Whens[i].Then = values[i]
	}
	if out.Typ = t; e.Else == nil {
		out.Typ = t.Base() // An absent ELSE is a NULL without modifier.
	}
	return out, nil
}

func (sc *scope) caseCond(subject expr.Scalar, w *ast.When) (expr.Scalar, error) {
	if subject == nil {
		return sc.boolean(w.Cond, "CASE/WHEN")
	}
	x, err := sc.expr(w.Cond)
	if err != nil {
		return nil, err
	}
	return sc.b.operator("=", expr.Clone(subject), x, int(w.Pos))
}

// field binds (x).name: a field of a record whose shape is known, or else a call of the function of that name with the record.
func (sc *scope) field(e *ast.Field) (expr.Scalar, error) {
	x, err := sc.fieldOf(e)
	if isUndefined(err) && e.Name != "*" {
		if call := sc.functionOfRow(e.Name, e.X, e.Pos); call != nil {
			return call, nil
		}
	}
	return x, err
}

// fieldOf binds (x).name over a record whose shape is known.
func (sc *scope) fieldOf(e *ast.Field) (expr.Scalar, error) {
	if e.Name == "*" {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "row expansion via \"*\" is not supported here").At(startOf(e))
	}
	x, err := sc.expr(e.X)
	if err != nil {
		return nil, err
	}
	if columns := sc.b.recordColumns(x); columns != nil {
		for i, c := range columns {
			if c.Name == e.Name {
				return &expr.Field{X: x, Index: i, Name: c.Name, Typ: c.Type}, nil
			}
		}
		return nil, pgerror.New(pgerror.UndefinedColumn, "could not identify column \"%s\" in record data type", e.Name).At(startOf(e))
	}
	given := x.Type()
	if x = undomain(x); x.Type().IsComposite() {
		return compositeField(x, e)
	}
	rec, ok := x.(*expr.Record)
	if !ok {
		return nil, pgerror.New(pgerror.WrongObjectType,
			"column notation .%s applied to type %s, which is not a composite type", e.Name, builtin.TypeName(given)).At(startOf(e.X))
	}
	for i := range rec.Elems {
		if rec.FieldName(i) == e.Name {
			return rec.Elems[i], nil
		}
	}
	return nil, pgerror.New(pgerror.UndefinedColumn, "could not identify column \"%s\" in record data type", e.Name).At(startOf(e.X))
}

// recordFields returns the fields of a value that is an anonymous record of known shape; nil for other values.
func (b *binder) recordFields(x expr.Scalar) []builtin.SetColumn {
	rec, ok := x.(*expr.Record)
	if !ok || rec.Typ.OID != types.OIDRecord {
		return b.recordColumns(x)
	}
	fields := make([]builtin.SetColumn, len(rec.Elems))
	for i, e := range rec.Elems {
		fields[i] = builtin.SetColumn{Name: rec.FieldName(i), Type: e.Type()}
	}
	return fields
}

// recordColumns returns the fields of the records of a function in a select list, or of a column whose records are known; nil if x is
// neither.
func (b *binder) recordColumns(x expr.Scalar) []builtin.SetColumn {
	switch x := x.(type) {
	case *expr.Column:
		return b.cols[x.ID].fields
	case *expr.Call:
		if x.Fn.Call != nil {
			return x.Fn.Call.Columns
		}
	}
	return nil
}
