package builtin

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func formatFuncs() []decl {
	out := []decl{
		{sig: "quote_ident(text) text", fn: text1(keyword.QuoteIdent)}, {sig: "quote_literal(text) text", fn: text1(QuoteLiteral)},
		{sig: "quote_literal(anyelement) text", bind: quoteLiteralAny, flags: stable},
		{sig: "quote_nullable(text) text", flags: nonStrict, fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			if a[0].IsNull() {
				return types.Text("NULL"), nil
			}
			return types.Text(QuoteLiteral(a[0].Text())), nil
		}},
		{sig: "quote_nullable(anyelement) text", bind: quoteNullableAny, flags: nonStrict | stable},
		{sig: "format(text) text", bind: formatFunc, flags: nonStrict | stable},
		{sig: "format(text,variadic any) text", bind: formatFunc, flags: nonStrict | stable},
	}
	return append(out, toCharFuncs()...)
}

// QuoteLiteral quotes a string as a literal.
func QuoteLiteral(s string) string {
	quoted := `'` + strings.ReplaceAll(s, `'`, `''`) + `'`
	if strings.Contains(s, `\`) {
		quoted = `E` + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

func quoteLiteralAny(o *Overload) Func {
	t := o.Args[0]
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		return types.Text(QuoteLiteral(string(appendAsText(nil, env, a[0], t)))), nil
	}
}

func quoteNullableAny(o *Overload) Func {
	quote := quoteLiteralAny(o)
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Text("NULL"), nil
		}
		return quote(env, a)
	}
}

// formatter implements format(): %[n$][-][width]type with types s, I, L.
type formatter struct {
	env  *Env
	args []types.Datum
	ts   []types.Type
	next int // the argument that the next specifier without position takes
	out  []byte
}

func formatFunc(o *Overload) Func {
	ts := o.Args[1:]
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if a[0].IsNull() {
			return types.Null, nil
		}
		f := formatter{env: env, args: a[1:], ts: ts}
		if err := f.run(a[0].Text()); err != nil {
			return types.Null, err
		}
		return types.Bytes(f.out), nil
	}
}

func (f *formatter) run(s string) error {
	for s != "" {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			f.out = append(f.out, s...)
			return nil
		}
		f.out = append(f.out, s[:i]...)
		s = s[i+1:]
		if strings.HasPrefix(s, "%") {
			f.out = append(f.out, '%')
			s = s[1:]
			continue
		}
		rest, err := f.specifier(s)
		if err != nil {
			return err
		}
		s = rest
	}
	return nil
}

func errUnterminated() error {
	return pgerror.New(pgerror.InvalidParameterValue, "unterminated format() type specifier").
		WithHint("For a single \"%\" use \"%%\".")
}

// leadingNumber removes a decimal number from the beginning of s.
func leadingNumber(s string) (n int, rest string, ok bool, err error) {
	end := 0
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	if end == 0 {
		return 0, s, false, nil
	}
	n, convErr := strconv.Atoi(s[:end])
	if convErr != nil || n != int(int32(n)) {
		return 0, s, false, pgerror.New(pgerror.NumericValueOutOfRange, "number is out of range")
	}
	return n, s[end:], true, nil
}

func (f *formatter) specifier(s string) (rest string, err error) {
	position, width, left := 0, 0, false
	n, rest, ok, err := leadingNumber(s)
	if err != nil {
		return "", err
	}
	if ok {
		if strings.HasPrefix(rest, "$") {
			if n == 0 {
				return "", pgerror.New(pgerror.InvalidParameterValue, "format specifies argument 0, but arguments are numbered from 1")
			}
			position, s = n, rest[1:]
			ok = false
		} else {
			width, s = n, rest
		}
	}
	if !ok {
		for strings.HasPrefix(s, "-") {
			left, s = true, s[1:]
		}
		if strings.HasPrefix(s, "*") {
			if width, s, err = f.starWidth(s[1:]); err != nil {
				return "", err
			}
			if width < 0 {
				left, width = true, -width
			}
		} else if width, s, _, err = leadingNumber(s); err != nil {
			return "", err
		}
	}
	if s == "" {
		return "", errUnterminated()
	}
	text, err := f.convert(s, position)
	if err != nil {
		return "", err
	}
	fill := max(0, width-utf8.RuneCountInString(text))
	if len(f.out)+len(text)+fill > MaxValueBytes {
		return "", errTextTooLarge()
	}
	if err := f.env.Reserve(fill); err != nil {
		return "", err
	}
	if !left {
		f.out = append(f.out, strings.Repeat(" ", fill)...)
	}
	f.out = append(f.out, text...)
	if left {
		f.out = append(f.out, strings.Repeat(" ", fill)...)
	}
	return s[1:], nil
}

// starWidth reads the width from an argument: * or *n$.
func (f *formatter) starWidth(s string) (width int, rest string, err error) {
	n, rest, ok, err := leadingNumber(s)
	if err != nil {
		return 0, "", err
	}
	position := 0
	if ok {
		if !strings.HasPrefix(rest, "$") {
			return 0, "", pgerror.New(pgerror.InvalidParameterValue, "width argument position must be ended by \"$\"")
		}
		if n == 0 {
			return 0, "", pgerror.New(pgerror.InvalidParameterValue, "format specifies argument 0, but arguments are numbered from 1")
		}
		position, s = n, rest[1:]
	}
	d, t, err := f.arg(position)
	if err != nil || d.IsNull() {
		return 0, s, err
	}
	if t.KindOf() == types.KindInt {
		return int(d.Int()), s, nil
	}
	v, err := types.ParseText(types.TInt4, f.env.Format.Text(d, t), &f.env.Format)
	return int(v.Int()), s, err
}

// arg returns the argument at a position, or the next one for position 0.
func (f *formatter) arg(position int) (types.Datum, types.Type, error) {
	if position == 0 {
		position = f.next + 1
	}
	if position > len(f.args) {
		return types.Null, types.Type{}, pgerror.New(pgerror.InvalidParameterValue, "too few arguments for format()")
	}
	f.next = position
	return f.args[position-1], f.ts[position-1], nil
}

func (f *formatter) convert(s string, position int) (string, error) {
	kind := s[0]
	if kind != 's' && kind != 'I' && kind != 'L' {
		_, n := utf8.DecodeRuneInString(s)
		return "", pgerror.New(pgerror.InvalidParameterValue, "unrecognized format() type specifier \"%s\"", s[:n]).
			WithHint("For a single \"%\" use \"%%\".")
	}
	d, t, err := f.arg(position)
	if err != nil {
		return "", err
	}
	if d.IsNull() {
		switch kind {
		case 'I':
			return "", pgerror.New(pgerror.NullValueNotAllowed, "null values cannot be formatted as an SQL identifier")
		case 'L':
			return "NULL", nil
		}
		return "", nil
	}
	if err := f.env.ReserveText(d); err != nil {
		return "", err
	}
	text := f.env.Format.Text(d, t)
	switch kind {
	case 'I':
		text = keyword.QuoteIdent(text)
	case 'L':
		text = QuoteLiteral(text)
	}
	return text, nil
}
