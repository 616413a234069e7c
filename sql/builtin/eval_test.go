package builtin

// A parser and evaluator of SQL expressions for the tests: the part of PostgreSQL's grammar for calls,
// casts and single operators.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// value is an evaluated expression.
type value struct {
	t types.Type
	d types.Datum
}

type exprReader struct {
	src string
	at  int
	env *Env
}

// evalSQL evaluates an expression as SELECT would.
func evalSQL(env *Env, src string) (v value, err error) {
	r := &exprReader{src: src, env: env}
	v, err = r.expr()
	if err != nil {
		return v, err
	}
	if r.space(); r.at < len(r.src) {
		return v, fmt.Errorf("test expression: junk at %q", r.src[r.at:])
	}
	if v.t.OID == types.OIDUnknown {
		v.t = types.TText
	}
	return v, nil
}

func (r *exprReader) space() {
	for r.at < len(r.src) && r.src[r.at] == ' ' {
		r.at++
	}
}

func (r *exprReader) take(s string) bool {
	r.space()
	if strings.HasPrefix(r.src[r.at:], s) {
		r.at += len(s)
		return true
	}
	return false
}

const opChars = "+-*/<>=~!@#%^&|?"

func (r *exprReader) op() string {
	r.space()
	start := r.at
	for r.at < len(r.src) && strings.IndexByte(opChars, r.src[r.at]) >= 0 {
		r.at++
	}
	return r.src[start:r.at]
}

func (r *exprReader) expr() (value, error) {
	l, err := r.operand()
	for err == nil {
		op := r.op()
		if op == "" {
			return l, nil
		}
		var right value
		if right, err = r.operand(); err != nil {
			break
		}
		var o *Overload
		if o, err = ResolveOperator(op, l.t, right.t); err != nil {
			break
		}
		l, err = r.call(o, l, right)
	}
	return l, err
}

// call coerces the arguments and calls.
func (r *exprReader) call(o *Overload, args ...value) (value, error) {
	in := make([]types.Datum, len(args))
	null := false
	for i, a := range args {
		c, ok := FindCast(a.t, o.Args[i], Implicit)
		if !ok {
			return value{}, fmt.Errorf("%s chosen, but there is no cast from %s to %s", o.Name, a.t, o.Args[i])
		}
		var err error
		if in[i], err = c.Apply(r.env, a.d); err != nil {
			return value{}, err
		}
		null = null || in[i].IsNull()
	}
	if null && o.Strict {
		return value{o.Ret, types.Null}, nil
	}
	d, err := o.Fn(r.env, in)
	return value{o.Ret, d}, err
}

func (r *exprReader) operand() (value, error) {
	r.space()
	if op := r.op(); op != "" {
		x, err := r.operand()
		if err != nil {
			return x, err
		}
		o, err := ResolveOperator(op, types.Type{}, x.t)
		if err != nil {
			return x, err
		}
		return r.call(o, x)
	}
	v, err := r.primary()
	for err == nil && r.take("::") {
		var t types.Type
		if t, err = types.ParseTypeName(r.typeName(), nil); err != nil {
			break
		}
		v, err = r.cast(v, t)
	}
	return v, err
}

func (r *exprReader) cast(v value, t types.Type) (value, error) {
	c, ok := FindCast(v.t, t, Explicit)
	if !ok {
		return v, CannotCast(v.t, t)
	}
	d, err := c.Apply(r.env, v.d)
	return value{t, d}, err
}

// typeName parses a type: a word or quoted name, modifiers, brackets, and the rest of the long names.
func (r *exprReader) typeName() string {
	start := r.at
	if r.take(`"char"`) {
		return `"char"`
	}
	r.word()
	for _, more := range []string{" precision", " varying"} {
		if strings.HasPrefix(r.src[r.at:], more) {
			r.at += len(more)
		}
	}
	if r.at < len(r.src) && r.src[r.at] == '(' {
		r.at += strings.IndexByte(r.src[r.at:], ')') + 1
	}
	for strings.HasPrefix(r.src[r.at:], "[]") {
		r.at += 2
	}
	return r.src[start:r.at]
}

func (r *exprReader) word() string {
	start := r.at
	for r.at < len(r.src) && (isLetter(r.src[r.at]) || isDigit(r.src[r.at]) || r.src[r.at] == '_') {
		r.at++
	}
	return r.src[start:r.at]
}

func (r *exprReader) primary() (value, error) {
	switch {
	case r.take("("):
		v, err := r.expr()
		if err == nil && !r.take(")") {
			err = errors.New("test expression: no )")
		}
		return v, err
	case r.take("'"):
		return r.literal()
	case r.at < len(r.src) && (isDigit(r.src[r.at]) || r.src[r.at] == '.'):
		return r.number()
	}
	word := strings.ToLower(r.word())
	switch word {
	case "null":
		return value{types.TUnknown, types.Null}, nil
	case "true", "false":
		return value{types.TBool, types.Bool(word == "true")}, nil
	case "array":
		return r.array()
	case "":
		return value{}, fmt.Errorf("test expression: %q", r.src[r.at:])
	}
	if !r.take("(") {
		return value{}, fmt.Errorf("test expression: %s is no call", word)
	}
	args, err := r.list(")")
	if err != nil {
		return value{}, err
	}
	ts := make([]types.Type, len(args))
	for i, a := range args {
		ts[i] = a.t
	}
	if IsAggregate(word) {
		return r.aggregate(word, ts, args)
	}
	o, err := ResolveFunc(word, ts)
	if err != nil {
		return value{}, err
	}
	return r.call(o, args...)
}

// aggregate runs an aggregate over one row.
func (r *exprReader) aggregate(name string, ts []types.Type, args []value) (value, error) {
	a, err := ResolveAggregate(name, ts)
	if err != nil {
		return value{}, err
	}
	in := make([]types.Datum, len(args))
	for i := range args {
		c, ok := FindCast(args[i].t, a.Args[i], Implicit)
		if !ok {
			return value{}, fmt.Errorf("%s: no cast to %s", name, a.Args[i])
		}
		if in[i], err = c.Apply(r.env, args[i].d); err != nil {
			return value{}, err
		}
	}
	acc := a.NewAccumulator()
	if err := acc.Add(r.env, in); err != nil {
		return value{}, err
	}
	d, err := acc.Result(r.env)
	return value{a.Ret, d}, err
}

func (r *exprReader) list(end string) ([]value, error) {
	var out []value
	if r.take(end) {
		return nil, nil
	}
	for {
		v, err := r.expr()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if r.take(end) {
			return out, nil
		}
		if !r.take(",") {
			return nil, fmt.Errorf("test expression: %q", r.src[r.at:])
		}
	}
}

// setArray evaluates ARRAY(SELECT f(…)) of a set-returning function.
func (r *exprReader) setArray() (value, error) {
	if !r.take("SELECT ") {
		return value{}, errors.New("test expression: ARRAY( without SELECT")
	}
	name := r.word()
	if !r.take("(") {
		return value{}, errors.New("test expression: no call")
	}
	args, err := r.list(")")
	if err != nil {
		return value{}, err
	}
	ts := make([]types.Type, len(args))
	for i, a := range args {
		ts[i] = a.t
	}
	f, err := ResolveSetFunc(name, ts)
	if err != nil {
		return value{}, err
	}
	out := &types.Array{Elem: f.Ret, Elems: []types.Datum{}}
	result := func() (value, error) {
		if !r.take(")") {
			return value{}, errors.New("test expression: no )")
		}
		return value{f.Ret.ArrayOf(), types.NewArray(out)}, nil
	}
	in := make([]types.Datum, len(args))
	for i, a := range args {
		c, ok := FindCast(a.t, f.Args[i], Implicit)
		if !ok {
			return value{}, CannotCast(a.t, f.Args[i])
		}
		if in[i], err = c.Apply(r.env, a.d); err != nil {
			return value{}, err
		}
		if in[i].IsNull() && f.Strict {
			return result()
		}
	}
	rows, err := f.Open(r.env, in)
	for err == nil {
		d, more, nextErr := rows.Next(r.env)
		if err = nextErr; err != nil || !more {
			break
		}
		if len(out.Elems) > 1000 {
			return value{}, errors.New("test expression: too many rows")
		}
		out.Elems = append(out.Elems, d.Clone())
	}
	if err != nil {
		return value{}, err
	}
	return result()
}

func (r *exprReader) array() (value, error) {
	if r.take("(") {
		return r.setArray()
	}
	if !r.take("[") {
		return value{}, errors.New("test expression: ARRAY without [")
	}
	elems, err := r.list("]")
	if err != nil {
		return value{}, err
	}
	var ts []types.Type
	for _, e := range elems {
		ts = append(ts, e.t)
	}
	elem, err := CommonTypeIn("ARRAY", ts)
	if err != nil {
		return value{}, err
	}
	a := &types.Array{Elem: elem}
	for _, e := range elems {
		v, err := r.cast(e, elem)
		if err != nil {
			return v, err
		}
		a.Elems = append(a.Elems, v.d)
	}
	return value{elem.ArrayOf(), types.NewArray(a)}, nil
}

func (r *exprReader) literal() (value, error) {
	var b strings.Builder
	for r.at < len(r.src) {
		c := r.src[r.at]
		r.at++
		if c == '\'' {
			if r.at < len(r.src) && r.src[r.at] == '\'' {
				r.at++
			} else {
				return value{types.TUnknown, types.Text(b.String())}, nil
			}
		}
		b.WriteByte(c)
	}
	return value{}, errors.New("test expression: unterminated literal")
}

func (r *exprReader) number() (value, error) {
	start := r.at
	for r.at < len(r.src) && (isDigit(r.src[r.at]) || r.src[r.at] == '.' || r.src[r.at] == 'e') {
		r.at++
	}
	text := r.src[start:r.at]
	for _, t := range []types.Type{types.TInt4, types.TInt8} {
		if d, err := types.ParseText(t, text, nil); err == nil {
			return value{t, d}, nil
		}
	}
	d, err := types.ParseText(types.TNumeric, text, nil)
	return value{types.TNumeric, d}, err
}

// show formats a result for the transcripts.
func show(env *Env, v value, err error) string {
	var e *pgerror.Error
	if errors.As(err, &e) {
		return describeError(string(e.Code), e.Message, e.Detail, e.Hint)
	}
	if err != nil {
		return "not a client's error: " + err.Error()
	}
	if v.d.IsNull() {
		return v.t.Base().String() + ": NULL"
	}
	if k := v.t.KindOf(); k != v.d.Kind() {
		return fmt.Sprintf("%s result has kind %d, not %d", v.t, v.d.Kind(), k)
	}
	return v.t.Base().String() + ": " + string(types.AppendText(nil, v.d, v.t, &env.Format))
}

func describeError(code, message, detail, hint string) string {
	s := "ERROR " + code + ": " + message
	if detail != "" {
		s += " DETAIL: " + detail
	}
	if hint != "" {
		s += " HINT: " + hint
	}
	return s
}

// connectPG returns a connection to the PostgreSQL of PERCODB_TEST_PG_DSN, or nil.
func connectPG(t testing.TB) *pgconn.PgConn {
	dsn := os.Getenv("PERCODB_TEST_PG_DSN")
	if dsn == "" {
		return nil
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	if _, err := conn.Exec(ctx, "set timezone='UTC'; set statement_timeout='20s'"); err != nil {
		t.Fatal(err)
	}
	return conn.PgConn()
}

// askPG evaluates an expression in PostgreSQL.
func askPG(t testing.TB, conn *pgconn.PgConn, expr string) string {
	results, err := conn.Exec(context.Background(), "SELECT "+expr).ReadAll()
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return describeError(e.Code, e.Message, e.Detail, e.Hint)
	}
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	r := results[0]
	typ := types.Type{OID: types.OID(r.FieldDescriptions[0].DataTypeOID), Mod: -1}.String()
	if len(r.Rows) == 0 {
		return typ + ": no row"
	}
	if r.Rows[0][0] == nil {
		return typ + ": NULL"
	}
	return typ + ": " + string(r.Rows[0][0])
}
