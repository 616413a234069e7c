package builtin

import (
	"errors"
	"math"
	"strings"

	"github.com/cockroachdb/apd/v3"
	"golang.org/x/text/unicode/norm"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// identFuncs declares functions that read texts of SQL and of settings: identifiers, sizes, lists of types, forms of Unicode.
func identFuncs() []decl {
	out := []decl{
		{sig: "parse_ident(text) text[]", fn: parseIdent}, {sig: "parse_ident(text,bool) text[]", fn: parseIdent},
		{sig: "pg_size_bytes(text) int8", fn: fn1(func(a types.Datum) (types.Datum, error) { return sizeBytes(a.Text()) })},
		{sig: "oidvectortypes(oidvector) text", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			var names []string
			for _, e := range a[0].Array().Elems {
				names = append(names, env.Format.Text(e, types.TRegtype))
			}
			return types.Text(strings.Join(names, ", ")), nil
		}},
		{sig: "getpgusername() name", flags: stable, fn: session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
			return types.Text(s.User()), nil
		})},
		{sig: "current_query() text", flags: volatile, fn: session(func(s SessionInfo, _ []types.Datum) (types.Datum, error) {
			return types.Text(s.StatementText()), nil
		})},
	}
	for name, f := range map[string]func(text string, form norm.Form) types.Datum{
		"normalize":     func(text string, form norm.Form) types.Datum { return types.Text(form.String(text)) },
		"is_normalized": func(text string, form norm.Form) types.Datum { return types.Bool(form.IsNormalString(text)) },
	} {
		ret := map[string]string{"normalize": " text", "is_normalized": " bool"}[name]
		fn := func(_ *Env, a []types.Datum) (types.Datum, error) {
			form, err := unicodeForm(a)
			if err != nil {
				return types.Null, err
			}
			return f(a[0].Text(), form), nil
		}
		out = append(out, decl{sig: name + "(text)" + ret, fn: fn}, decl{sig: name + "(text,text)" + ret, fn: fn})
	}
	return out
}

// unicodeForm returns the form that the second argument names; NFC if there is none.
func unicodeForm(a []types.Datum) (norm.Form, error) {
	if len(a) < 2 {
		return norm.NFC, nil
	}
	switch strings.ToUpper(a[1].Text()) {
	case "NFC":
		return norm.NFC, nil
	case "NFD":
		return norm.NFD, nil
	case "NFKC":
		return norm.NFKC, nil
	case "NFKD":
		return norm.NFKD, nil
	}
	return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid normalization form: %s", a[1].Text())
}

// parseIdent divides a qualified identifier into its parts, without what stands behind it unless it is to be strict.
func parseIdent(_ *Env, a []types.Datum) (types.Datum, error) {
	text := a[0].Text()
	strict := len(a) < 2 || a[1].Bool()
	fail := func(detail string) (types.Datum, error) {
		err := pgerror.New(pgerror.InvalidParameterValue, "string is not a valid identifier: \"%s\"", text)
		if detail != "" {
			err = err.WithDetail("%s", detail)
		}
		return types.Null, err
	}
	list := &types.Array{Elem: types.TText, Elems: []types.Datum{}}
	rest := trimBlanks(text)
	for afterDot := false; ; {
		part, after, problem := takeIdentifier(rest)
		if problem != "" {
			return fail(problem)
		}
		if part == "" {
			switch {
			case strings.HasPrefix(rest, "."):
				return fail("No valid identifier before \".\".")
			case afterDot:
				return fail("No valid identifier after \".\".")
			}
			return fail("")
		}
		list.Elems = append(list.Elems, types.Text(part))
		rest = trimBlanks(after)
		if !strings.HasPrefix(rest, ".") {
			break
		}
		rest, afterDot = trimBlanks(rest[1:]), true
	}
	if rest != "" && strict {
		return fail("")
	}
	return types.NewArray(list), nil
}

func trimBlanks(s string) string { return strings.TrimLeft(s, " \t\n\r\f") }

// takeIdentifier takes an identifier, quoted or not, off a text; part is empty if none begins there. problem is the detail of an error.
func takeIdentifier(s string) (part, after, problem string) {
	if !strings.HasPrefix(s, `"`) {
		n := 0
		for n < len(s) && (isLetter(s[n]) || s[n] == '_' || s[n] >= 0x80 || n > 0 && (isDigit(s[n]) || s[n] == '$')) {
			n++
		}
		return strings.ToLower(s[:n]), s[n:], ""
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != '"':
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == '"':
			b.WriteByte('"')
			i++
		case b.Len() == 0:
			return "", "", "Quoted identifier must not be empty."
		default:
			return b.String(), s[i+1:], ""
		}
	}
	return "", "", "String has unclosed double quotes."
}

// sizeUnits are the units of sizes, each 1024 times the one before.
var sizeUnits = []string{"bytes", "kB", "MB", "GB", "TB", "PB"}

// sizeBytes reads a size with a unit, as pg_size_pretty prints them.
func sizeBytes(text string) (types.Datum, error) {
	number, unit := splitSize(strings.Trim(text, " \t\n\v\f\r"))
	invalid := func() *pgerror.Error {
		return pgerror.New(pgerror.InvalidParameterValue, "invalid size: \"%s\"", text)
	}
	d, err := types.ParseText(types.TNumeric, number, nil)
	if number == "" || err != nil {
		var pg *pgerror.Error
		if errors.As(err, &pg) && pg.Code == pgerror.NumericValueOutOfRange {
			return types.Null, err
		}
		return types.Null, invalid()
	}
	size := d.Decimal()
	if unit != "" {
		at := -1
		for i, name := range sizeUnits {
			if strings.EqualFold(name, unit) {
				at = i
			}
		}
		if at < 0 {
			return types.Null, invalid().WithDetail("Invalid size unit: \"%s\".", unit).
				WithHint("Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".")
		}
		if size, err = MulNumeric(size, types.NewNumeric(1<<(10*at))); err != nil {
			return types.Null, err
		}
	}
	return sizeInt8(types.RoundNumeric(size, 0))
}

func sizeInt8(d *apd.Decimal) (types.Datum, error) {
	n, err := d.Int64()
	if err != nil || n == math.MinInt64 && !d.Negative {
		return types.Null, errInt8Range()
	}
	return types.Int(n), nil
}

// splitSize cuts a size behind its number, which may have an exponent.
func splitSize(s string) (number, unit string) {
	i := 0
	digits := func() (any bool) {
		for i < len(s) && isDigit(s[i]) {
			i, any = i+1, true
		}
		return any
	}
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	found := digits()
	if i < len(s) && s[i] == '.' {
		i++
		found = digits() || found
	}
	if !found {
		return "", s
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '-' || s[j] == '+') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			i = j
			digits()
		}
	}
	return s[:i], strings.TrimLeft(s[i:], " \t\n\v\f\r")
}
