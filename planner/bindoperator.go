package planner

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Operators and casts of users: they are bound to the calls of their functions, which are inlined like others.

// systemOperator returns the symbol of an operator of PostgreSQL as it is written with its schema.
func systemOperator(symbol string) string {
	return "OPERATOR(" + catalog.SystemSchema + "." + symbol + ")"
}

// operatorName returns what an operator that is written as a symbol or as OPERATOR(schema.symbol) may mean.
//
// Errors: 3F000 there is no such schema.
func (b *binder) operatorName(op string, pos int) (builtin.OperatorName, error) {
	schema, symbol := SplitOperator(op)
	n := builtin.OperatorName{Schema: schema, Symbol: symbol, Casts: b.casts()}
	switch {
	case schema == "":
		n.From = b.sources()
		n.User = catalog.UserOperators(b.r, "", symbol)
	case schema == catalog.SystemSchema:
		n.From = builtin.System
	default:
		if _, exists := b.r.Grants().Schemas[schema]; !exists {
			return n, pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", schema).At(pos)
		}
		b.needSchema(ast.TableName{Pos: ast.Pos(pos), Schema: schema})
		n.From = b.r.Extensions().In(schema)
		n.User = catalog.UserOperators(b.r, schema, symbol)
	}
	return n, nil
}

// SplitOperator divides OPERATOR(schema.symbol); the schema of a bare symbol is "".
func SplitOperator(op string) (schema, symbol string) {
	qualified, ok := strings.CutPrefix(op, "OPERATOR(")
	if !ok {
		return "", op
	}
	qualified = strings.TrimSuffix(qualified, ")")
	at := strings.LastIndexByte(qualified, '.') // No symbol contains a dot.
	schema, symbol = qualified[:at], qualified[at+1:]
	if inner, quoted := strings.CutPrefix(schema, `"`); quoted {
		schema = strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `""`, `"`)
	}
	return schema, symbol
}

// casts returns the casts that users have defined, nil for none.
func (b *binder) casts() *builtin.Casts { return b.r.Operations().Casts() }

// written is operator for one that the statement writes, qualified if with the schema pg_catalog. found becomes the OID of the operator if it is one
// of a user, else 0.
func (b *binder) written(op string, qualified bool, found *uint32, l, r expr.Scalar, pos int) (expr.Scalar, error) {
	if qualified {
		op = systemOperator(op)
	}
	b.writing, b.whole = true, true
	x, err := b.operator(op, l, r, pos)
	b.writing, b.whole = false, false
	*found = b.userOperator
	return x, err
}

// callOperator binds an operator of a user; writing: the statement writes it. Its function is inlined only with whole: constructs like IN and BETWEEN take
// the comparison apart that they have found.
func (b *binder) callOperator(fn *builtin.Overload, args []expr.Scalar, pos int, writing, whole bool) (expr.Scalar, error) {
	op := fn.Operator
	if !writing && b.env != nil && b.env.ImplicitOperator != nil {
		b.env.ImplicitOperator(op)
	}
	b.useOperator(op)
	m := op.Match()
	if m == nil {
		if err := b.coerceArgs(fn, args, pos); err != nil {
			return nil, err
		}
		return &expr.Call{Fn: fn, Args: args}, nil
	}
	call, args, err := b.routineSlots(m, args, pos)
	if err != nil {
		return nil, err
	}
	if !whole {
		b.called(call)
		fn := call.Overload()
		fn.Operator = op
		return &expr.Call{Fn: fn, Args: args}, nil
	}
	x, err := b.routineValue(call, args, pos)
	if c, ok := x.(*expr.Call); ok && c.Fn.Call == call {
		of := *c.Fn
		of.Operator = op
		c.Fn = &of
	}
	return x, err
}

// useOperator records that the statement uses an operator of a user: whoever runs it needs EXECUTE of its function.
func (b *binder) useOperator(op *builtin.Operator) {
	b.useExtension(builtin.Use{Kind: "operator", Operator: op.OID})
	b.mayExecute(op.Routine, op.System)
}

// mayExecute adds the need of EXECUTE of the function behind an operator or a cast of a user.
func (b *binder) mayExecute(r *builtin.Routine, system *builtin.Overload) {
	if r == nil {
		if system != nil {
			b.needFunction(system)
		}
		return
	}
	d := b.r.Routines().ByOID(r.OID)
	if d != nil && !slices.ContainsFunc(b.needs, func(n *Need) bool { return n.Routine != nil && n.Routine.ID == d.ID }) {
		b.needs = append(b.needs, &Need{Routine: d, Privileges: acl.Execute, Behind: true})
	}
}

// needCast adds the use of a cast.
func (b *binder) needCast(c *builtin.Cast) {
	if oid := c.User(); oid != 0 {
		b.useExtension(builtin.Use{Kind: "cast", Cast: oid})
		b.mayExecute(c.Routine(), nil)
		if c.Routine() != nil {
			b.routines = true
			if c.Routine().Volatility == builtin.Volatile {
				b.volatile = true
			}
			return
		}
	} else if c.ThroughText() && b.env != nil && b.env.ObjectUsed != nil {
		b.env.ObjectUsed(builtin.Use{Kind: "conversion", From: c.From.OID, To: c.To.OID})
	}
	b.needFunction(c)
}

// castByRoutine casts e to t by a routine of a user that takes the value alone.
func (b *binder) castByRoutine(e expr.Scalar, t types.Type, c *builtin.Cast, m *builtin.RoutineMatch, how castContext, pos int) (expr.Scalar, error) {
	b.needCast(c)
	call, args, err := b.routineSlots(m, []expr.Scalar{e}, pos)
	if err != nil {
		return nil, err
	}
	x, err := b.routineValue(call, args, pos)
	if err != nil {
		return nil, err
	}
	if x.Type().OID != t.OID {
		x = &expr.Cast{X: x, Typ: withCollationOf(t.Base(), x), Implicit: true}
	}
	if !c.Limits() {
		return x, nil
	}
	return b.applyMod(x, t, how, pos)
}

// ofUser reports whether a value is of a type of a user, whose casts may make operators of other types candidates.
func ofUser(xs ...expr.Scalar) bool {
	return slices.ContainsFunc(xs, func(x expr.Scalar) bool { return x.Type().OID >= types.FirstUserOID })
}

// bareOperator reports whether the symbol alone finds in r the operator of a user for the given types, 0: one of PostgreSQL.
func bareOperator(r catalog.Resolver, symbol string, args []types.Type, of types.OID) bool {
	n, err := (&binder{r: r}).operatorName(symbol, 0)
	if err != nil {
		return false
	}
	l := types.Type{}
	if len(args) == 2 {
		l = args[0]
	}
	o, err := n.Resolve(l, args[len(args)-1])
	if err != nil || o.Operator == nil {
		return err == nil && of == 0
	}
	return o.Operator.OID == of
}

// quantified returns the operator that was bound last for ANY or ALL as plans have it: the symbol of one of PostgreSQL or an extension, else the
// name with the schema.
func (b *binder) quantified(op string) string {
	if d := b.r.Operations().Operator(types.OID(b.userOperator)); b.userOperator != 0 && d != nil {
		return d.Operator().Qualified()
	}
	_, symbol := SplitOperator(op)
	return symbol
}

// WrittenOperator returns the operator of an expression that has one, as it is written; nil for another expression.
func WrittenOperator(e ast.Expr) *string {
	switch n := e.(type) {
	case *ast.Unary:
		return &n.Op
	case *ast.Binary:
		return &n.Op
	case *ast.Quantified:
		return &n.Op
	}
	return nil
}

// PinOperator gives the operator of an expression that has been bound its schema, if it is one of a user.
func PinOperator(e ast.Expr, r catalog.Resolver) {
	oid := uint32(0)
	switch n := e.(type) {
	case *ast.Unary:
		oid = n.Operator
	case *ast.Binary:
		oid = n.Operator
	case *ast.Quantified:
		oid = n.Operator
	}
	if oid == 0 {
		return
	}
	if d := r.Operations().Operator(types.OID(oid)); d != nil {
		*WrittenOperator(e) = d.Operator().Qualified()
	}
}

// callSupport makes the call of a support function of an operator class.
func (b *binder) callSupport(function types.OID, args []expr.Scalar) (expr.Scalar, error) {
	if d := b.r.Routines().ByOID(function); d != nil {
		m := builtin.MatchExactly(d.Routine())
		call, args, err := b.routineSlots(m, args, 0)
		if err != nil {
			return nil, err
		}
		return b.routineValue(call, args, 0)
	}
	fn := builtin.OverloadByOID(function)
	if fn == nil {
		return nil, pgerror.New(pgerror.UndefinedFunction, "missing support function of an operator class")
	}
	ts := make([]types.Type, len(args))
	for i := range args {
		ts[i] = args[i].Type()
	}
	fn, err := fn.Bind(ts)
	if err != nil {
		return nil, err
	}
	if err := b.coerceArgs(fn, args, 0); err != nil {
		return nil, err
	}
	return expr.NewCall(fn, args), nil
}

// nullIf binds NULLIF(x, y).
func (b *binder) nullIf(x, y expr.Scalar, pos int) (expr.Scalar, error) {
	if x.Type().OID == types.OIDUnknown {
		t := y.Type().Base()
		if t.OID == types.OIDUnknown {
			t = types.TText
		}
		v, err := b.coerce(x, t, castImplicit, posOf(x, pos))
		if err != nil {
			return nil, err
		}
		x = v
	}
	// The value is the left operand of the equality: text where varchars are compared.
	name, err := b.operatorName("=", pos)
	if err != nil {
		return nil, err
	}
	fn, err := name.Resolve(x.Type(), y.Type())
	if err != nil {
		return nil, at(err, pos)
	}
	if t := fn.Args[0]; t.OID != x.Type().OID && t.OID != types.OIDRecord {
		if x, err = b.coerce(x, t.Base(), castImplicit, posOf(x, pos)); err != nil {
			return nil, err
		}
	}
	eq, err := b.operator("=", &expr.CaseValue{Typ: x.Type()}, y, pos)
	if err != nil {
		return nil, err
	}
	if eq.Type().OID != types.OIDBool {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "NULLIF requires = operator to yield boolean").At(pos)
	}
	return &expr.NullIf{X: x, Equal: eq}, nil
}
