package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// castContext restricts which casts may be used.
type castContext = builtin.CastContext

const (
	castImplicit   = builtin.Implicit
	castAssignment = builtin.Assignment
	castExplicit   = builtin.Explicit
)

// ambiguousParameter is PostgreSQL's SQLSTATE for a parameter used as two types.
const ambiguousParameter pgerror.Code = "42P08"

// coerce makes e a value of type t, with t's modifier where it has one.
func (b *binder) coerce(e expr.Scalar, t types.Type, how castContext, pos int) (expr.Scalar, error) {
	if err := b.pass(); err != nil {
		return nil, err
	}
	from := e.Type()
	given := from
	if from == t || (from.OID == t.OID && t.Mod < 0) {
		return e, nil
	}
	if t.IsDomain() {
		return b.coerceToDomain(e, t, how, pos)
	}
	if from.IsDomain() {
		e = undomain(e)
		if from = e.Type(); from == t || (from.OID == t.OID && t.Mod < 0) {
			return e, nil
		}
	}
	if from.OID == types.OIDUnknown {
		x, err := b.coerceUnknown(e, t, how, pos)
		if err != nil {
			return nil, err
		}
		return b.applyMod(x, t, how, pos)
	}
	if from.OID == t.OID {
		return b.applyMod(e, t, how, pos)
	}
	if x := widenLiteral(e, t); x != nil {
		return b.applyMod(x, t, how, pos)
	}
	return b.cast(e, given, t, how, pos)
}

// cast looks up the cast; errors name the type that e was given with, which may be a domain.
func (b *binder) cast(e expr.Scalar, given, t types.Type, how castContext, pos int) (expr.Scalar, error) {
	if rec, ok := e.(*expr.Record); ok && t.OID == types.OIDRecord {
		return rec, nil
	}
	if rec, ok := expr.Unlabel(e).(*expr.Record); ok && rec.Typ.OID == types.OIDRecord && t.IsComposite() {
		return b.recordAs(rec, t, how, pos)
	}
	c, ok := b.casts().Find(e.Type(), t, how)
	if !ok {
		return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast type %s to %s", builtin.TypeName(given), builtin.TypeName(t)).At(pos)
	}
	if m := c.Match(); m != nil && b.notes == nil {
		return b.castByRoutine(e, t, c, m, how, pos)
	}
	return b.newCast(e, t, c, how), nil
}

func (b *binder) newCast(e expr.Scalar, t types.Type, c *builtin.Cast, how castContext) expr.Scalar {
	b.needCast(c)
	x := &expr.Cast{X: e, Typ: withCollationOf(t, e), Fn: c, Implicit: how != castExplicit}
	if c.NoOp() {
		x.Fn = nil
	}
	return x
}

// applyMod brings a value of the right type to the modifier: varchar(3), numeric(10,2).
func (b *binder) applyMod(e expr.Scalar, t types.Type, how castContext, pos int) (expr.Scalar, error) {
	if t.Mod < 0 || e.Type().Same(t) {
		return e, nil
	}
	if isNullConst(e) && b.notes == nil {
		return expr.NewNull(t), nil
	}
	c, ok := b.casts().Find(e.Type(), t, how)
	if !ok {
		return nil, pgerror.New(pgerror.CannotCoerce, "cannot cast type %s to %s", e.Type(), t).At(pos)
	}
	return b.newCast(e, t, c, how), nil
}

// coerceUnknown decides the type of a literal, parameter or NULL.
func (b *binder) coerceUnknown(e expr.Scalar, t types.Type, how castContext, pos int) (expr.Scalar, error) {
	base := t.Base()
	if t.OID == types.OIDInterval {
		base = t // The modifier determines the unit of a bare number: interval '1' day.
	}
	switch x := e.(type) {
	case *expr.Const:
		if x.Value.IsNull() {
			return expr.NewNull(base), nil
		}
		return b.parseConst(x, base, pos)
	case *expr.Input:
		if x.Param > 0 {
			return b.decideParam(x, base, pos)
		}
		in := *x
		in.Typ = base
		return &in, nil
	}
	return b.coerce(&expr.Cast{X: e, Typ: types.TText, Implicit: true}, base, how, pos)
}

// parseConst reads an unslotted literal: now, or where its meaning depends on the session, then.
func (b *binder) parseConst(c *expr.Const, t types.Type, pos int) (expr.Scalar, error) {
	if t.Def != nil {
		b.typeLiteral(c, t)
	}
	if t.OID == types.OIDRegconfig || t.OID == types.OIDRegdictionary {
		return b.textSearchConst(c, t, pos)
	}
	if dependsOnSession(t) {
		if err := b.fixTime(c, t); err != nil {
			return nil, at(err, pos)
		}
		return &expr.Parse{X: &expr.Const{Value: c.Value, Typ: types.TText}, Typ: t, Pos: pos}, nil
	}
	f := &types.Format{}
	if b.env != nil {
		f.Uncommitted = b.env.Format.Uncommitted
	}
	d, err := types.ParseText(t, c.Value.Text(), f)
	if err != nil {
		return nil, at(err, pos)
	}
	return &expr.Const{Value: d, Typ: t}, nil
}

// textSearchConst reads the name of a text search configuration or dictionary: its number is the constant. For a statement that may be stored
// the syntax tree gets the name with its schema, if a user has defined the object.
func (b *binder) textSearchConst(c *expr.Const, t types.Type, pos int) (expr.Scalar, error) {
	names := &pgcatalog.Objects{Resolver: func() catalog.Resolver { return b.r }}
	d, err := types.ParseText(t, c.Value.Text(), &types.Format{Names: names})
	if err != nil {
		return nil, at(err, pos)
	}
	if found := b.r.TextSearch().ByOID(types.OID(d.Int())); found != nil {
		if b.env != nil && b.env.ObjectUsed != nil {
			b.env.ObjectUsed(builtin.Use{Kind: found.Kind(), TextSearch: uint32(found.ID)})
		}
		for i := range b.texts {
			if b.texts[i].c == c {
				b.texts[i].literal.Value = ast.QuoteIdent(found.Schema) + "." + ast.QuoteIdent(found.Name)
			}
		}
	}
	return &expr.Const{Value: d, Typ: t}, nil
}

// fixTime reads a literal date or time of a statement that may be stored, and writes the value into the syntax tree in a form that means
// the same in every session: in PostgreSQL the definition of a view or a default contains the value.
func (b *binder) fixTime(c *expr.Const, t types.Type) error {
	elem := t
	if t.IsArray() {
		elem = t.Elem()
	}
	if rt := elem.Ranges(); rt != nil {
		elem = rt.Sub
	}
	switch elem.OID {
	case types.OIDDate, types.OIDTime, types.OIDTimestamp, types.OIDTimestamptz, types.OIDInterval:
	default:
		return nil
	}
	for i := range b.texts {
		if b.texts[i].c != c || b.env == nil {
			continue
		}
		d, err := types.ParseText(t, c.Value.Text(), &b.env.Format)
		if err != nil {
			return err
		}
		text := (&types.Format{}).Text(d, t)
		c.Value, b.texts[i].literal.Value = types.Text(text), text
	}
	return nil
}

// dependsOnSession reports whether text of the type reads differently in different sessions.
func dependsOnSession(t types.Type) bool {
	if t.HasDomain() {
		return true // Its constraints are evaluated in the session.
	}
	switch t.OID {
	case types.OIDDate, types.OIDTime, types.OIDTimestamp, types.OIDTimestamptz, types.OIDInterval,
		types.OIDRegclass, types.OIDRegtype, types.OIDRegnamespace, types.OIDRegrole, types.OIDRegproc, types.OIDRegprocedure, types.OIDRegoper, types.OIDRegoperator, types.OIDACLItem:
		return true
	}
	if m := t.Methods(); m != nil {
		return m.SessionInput
	}
	if t.IsComposite() {
		for i := range t.Def.Fields {
			if dependsOnSession(t.Def.Fields[i].Type) {
				return true
			}
		}
	}
	if rt := t.Ranges(); rt != nil {
		return dependsOnSession(rt.Sub)
	}
	elem := t.Elem()
	return elem.Valid() && dependsOnSession(elem)
}

// decideParam fixes a parameter's type; a parameter fixed otherwise before is an error.
func (b *binder) decideParam(in *expr.Input, t types.Type, pos int) (expr.Scalar, error) {
	have := &b.params[in.Param-1]
	if have.OID == types.OIDUnknown {
		*have = t
	}
	if have.OID != t.OID {
		return nil, pgerror.New(ambiguousParameter, "inconsistent types deduced for parameter $%d", in.Param).
			WithDetail("%s versus %s", have, t).At(in.Pos)
	}
	x := *in
	x.Typ = *have
	return &x, nil
}

// widenLiteral makes a numeric literal a literal of a wider type, whose value is read from the same
// digits; nil where a cast could change or refuse the value.
func widenLiteral(e expr.Scalar, t types.Type) expr.Scalar {
	in, ok := e.(*expr.Input)
	if !ok || in.Param > 0 || !widens(in.Typ.OID, t.OID) {
		return nil
	}
	x := *in
	x.Typ = t.Base()
	return &x
}

func widens(from, to types.OID) bool {
	rank := func(o types.OID) int {
		switch o {
		case types.OIDInt4:
			return 1
		case types.OIDInt8:
			return 2
		case types.OIDNumeric:
			return 3
		case types.OIDFloat8:
			return 4
		}
		return 0
	}
	return rank(from) > 0 && rank(from) < rank(to)
}

// commonType is the type to which values of the given types are brought; context names the
// construct for errors, pos the places of the values.
func (b *binder) commonType(ts []types.Type, pos []int, context string) (types.Type, error) {
	t, err := b.casts().CommonTypeIn(context, ts)
	if err == nil || len(pos) == 0 {
		return t, err
	}
	// PostgreSQL points at the first value whose type differs from the previous ones.
	for n := 2; n <= len(ts); n++ {
		if _, e := b.casts().CommonTypeIn(context, ts[:n]); e != nil {
			return t, at(err, pos[n-1])
		}
	}
	return t, at(err, pos[len(pos)-1])
}

// unify brings all values to their common type, in place.
func (b *binder) unify(es []expr.Scalar, pos []int, context string) (types.Type, error) {
	if len(es) == 1 && es[0].Type().OID != types.OIDUnknown {
		return es[0].Type(), nil
	}
	ts := make([]types.Type, len(es))
	for i, e := range es {
		ts[i] = e.Type()
	}
	if context == "VALUES" && allUnknown(ts) {
		return types.TUnknown, nil // the context of the list decides
	}
	t, err := b.commonType(ts, pos, context)
	if err != nil {
		return types.Type{}, err
	}
	for i := range es {
		if es[i], err = b.coerce(es[i], t, castImplicit, pos[i]); err != nil {
			return types.Type{}, err
		}
	}
	return commonCollation(t, es, pos)
}

func allUnknown(ts []types.Type) bool {
	for _, t := range ts {
		if t.OID != types.OIDUnknown {
			return false
		}
	}
	return true
}

// requireOrder fails for a type without an order, which ORDER BY names.
func requireOrder(t types.Type, pos int) error {
	if t.Ordered() {
		return requireCollation(t, "string comparison")
	}
	return pgerror.New(pgerror.UndefinedFunction, "could not identify an ordering operator for type %s", t).
		WithHint("Use an explicit ordering operator or modify the query.").At(pos)
}

// operator makes L op R.
func (b *binder) operator(op string, l, r expr.Scalar, pos int) (expr.Scalar, error) {
	x, err := b.plainOperator(op, l, r, pos)
	if err != nil {
		return nil, err
	}
	return collated(x, pos, l, r)
}

// plainOperator is operator for arguments of the default collation.
func (b *binder) plainOperator(op string, l, r expr.Scalar, pos int) (expr.Scalar, error) {
	writing, whole := b.writing, b.whole
	b.writing, b.whole = false, false // Of the operators in what is inlined.
	x, user, err := b.findOperator(op, l, r, pos, writing, whole)
	b.userOperator = user
	return x, err
}

// findOperator is plainOperator. user is the OID of the operator if it is one of a user; writing: the statement writes it; whole: its
// function may be inlined.
func (b *binder) findOperator(op string, l, r expr.Scalar, pos int, writing, whole bool) (x expr.Scalar, user uint32, err error) {
	given := [2]types.Type{l.Type(), r.Type()} // for errors: domains by their names
	l, r = undomain(l), undomain(r)
	name, err := b.operatorName(op, pos)
	if err != nil {
		return nil, 0, err
	}
	op = name.Symbol
	if name.From&builtin.System != 0 && name.User == nil && b.notes == nil && !(name.Casts != nil && ofUser(l, r)) {
		b.needOperator(op, l.Type(), r.Type())
		if x, err := b.commonOperator(op, l, r, pos); x != nil || err != nil {
			return x, 0, err
		}
	}
	fn, err := name.Resolve(given[0], given[1])
	if err != nil {
		return nil, 0, at(err, pos)
	}
	if fn.Operator != nil {
		x, err = b.callOperator(fn, []expr.Scalar{l, r}, pos, writing, whole)
		return x, uint32(fn.Operator.OID), err
	}
	b.useExtension(fn.Use())
	cmp := expr.ParseCmpOp(op)
	fails := cmp != 0 && fn.Args[0].IsArray() && !comparable(cmp, fn.Args[0])
	if fails {
		fn = builtin.IncomparableCall(op, fn.Args[0])
	}
	args := []expr.Scalar{l, r}
	if err := b.coerceArgs(fn, args, pos); err != nil {
		return nil, 0, err
	}
	if fails || b.notes != nil {
		return &expr.Call{Fn: fn, Args: args}, 0, nil
	}
	return expr.NewCall(fn, args), 0, nil
}

// commonOperator makes the comparisons that nearly every statement has without a search.
func (b *binder) commonOperator(op string, l, r expr.Scalar, pos int) (expr.Scalar, error) {
	cmp := expr.ParseCmpOp(op)
	if cmp == 0 {
		return nil, nil
	}
	lt, rt := l.Type(), r.Type()
	var err error
	switch {
	case isText(lt) && isText(rt), isText(lt) && rt.OID == types.OIDUnknown, lt.OID == types.OIDUnknown && isText(rt):
		return b.textComparison(cmp, l, r, pos)
	case lt.OID == types.OIDUnknown && comparesByItself(rt):
		l, err = b.coerce(l, rt.Base(), castImplicit, posOf(l, pos))
	case rt.OID == types.OIDUnknown && comparesByItself(lt):
		r, err = b.coerce(r, lt.Base(), castImplicit, posOf(r, pos))
	case isInt(lt) && isInt(rt), lt.OID == rt.OID && comparesByItself(lt):
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	class, ok := expr.CompareClass(l.Type(), r.Type())
	if !ok {
		return nil, nil
	}
	return expr.NewCompare(cmp, expr.Unlabel(l), expr.Unlabel(r), class), nil
}

// textComparison compares text and varchar, both as text.
func (b *binder) textComparison(op expr.CmpOp, l, r expr.Scalar, pos int) (expr.Scalar, error) {
	for _, side := range [...]*expr.Scalar{&l, &r} {
		if (*side).Type().OID == types.OIDUnknown {
			x, err := b.coerce(*side, types.TText, castImplicit, posOf(*side, pos))
			if err != nil {
				return nil, err
			}
			*side = x
		}
	}
	return expr.NewCompare(op, expr.Unlabel(l), expr.Unlabel(r), types.TText), nil
}

func isText(t types.Type) bool { return t.OID == types.OIDText || t.OID == types.OIDVarchar }

func isInt(t types.Type) bool {
	return t.OID == types.OIDInt4 || t.OID == types.OIDInt8 || t.OID == types.OIDInt2
}

// comparesByItself reports whether a type has its own comparison operators, which PostgreSQL chooses if the other side
// has the same type or none.
func comparesByItself(t types.Type) bool {
	switch t.OID {
	case types.OIDInt4, types.OIDInt8, types.OIDInt2, types.OIDBool, types.OIDFloat8,
		types.OIDNumeric, types.OIDDate, types.OIDTimestamp, types.OIDTimestamptz, types.OIDUUID, types.OIDJSONB:
		return true
	}
	if m := t.Methods(); m != nil {
		return !m.Unordered && m.Borrows == 0 && m.Extension == ""
	}
	return t.IsEnum()
}

// posOf returns the position of a literal or parameter, otherwise pos.
func posOf(e expr.Scalar, pos int) int {
	if in, ok := e.(*expr.Input); ok && in.Pos > 0 {
		return in.Pos
	}
	return pos
}

func (b *binder) prefixOperator(op string, x expr.Scalar, pos int) (expr.Scalar, error) {
	given := x.Type()
	x = undomain(x)
	name, err := b.operatorName(op, pos)
	if err != nil {
		return nil, err
	}
	fn, err := name.Resolve(types.Type{}, given)
	if err != nil {
		return nil, at(err, pos)
	}
	if fn.Operator != nil {
		call, err := b.callOperator(fn, []expr.Scalar{x}, pos, true, true)
		b.userOperator = uint32(fn.Operator.OID)
		if err != nil {
			return nil, err
		}
		return collated(call, pos, x)
	}
	b.needFunction(fn)
	args := []expr.Scalar{x}
	err = b.coerceArgs(fn, args, pos)
	b.userOperator = 0
	if err != nil {
		return nil, err
	}
	return collated(expr.NewCall(fn, args), pos, args...)
}

func (b *binder) coerceArgs(fn *builtin.Overload, args []expr.Scalar, pos int) error {
	for i := range args {
		x, err := b.coerce(args[i], fn.Args[i].Base(), castImplicit, posOf(args[i], pos))
		if err != nil {
			return err
		}
		args[i] = x
	}
	if fn.Volatility == builtin.Volatile {
		b.volatile = true
	}
	return nil
}
