package builtin

import (
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// IndeterminateCollation is PostgreSQL's SQLSTATE for a collation that could not be derived.
const IndeterminateCollation pgerror.Code = "42P22"

// collationFuncs declares the functions about collations.
func collationFuncs() []decl {
	return []decl{
		{sig: "pg_collation_is_visible(oid) bool", flags: stable, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			visible, ok := c.CollationVisible(oidArg(a[0]))
			if !ok {
				return types.Null, nil
			}
			return types.Bool(visible), nil
		})},
		{sig: "pg_collation_actual_version(oid) text", flags: volatile, fn: catalogFunc(func(_ *Env, c Catalog, a []types.Datum) (types.Datum, error) {
			version, ok := c.CollationVersion(oidArg(a[0]))
			if !ok {
				return types.Null, pgerror.New(pgerror.UndefinedObject, "collation with OID %d does not exist", a[0].Int())
			}
			return textOrNull(version, version != "")
		})},
		// The planner computes it: it depends on the argument's expression.
		{sig: "pg_collation_for(any) text", flags: stable, fn: constant(types.Null)},
	}
}

// Undetermined is the error of an operation that depends on a collation and has none.
func Undetermined(what string) *pgerror.Error {
	return pgerror.New(IndeterminateCollation, "could not determine which collation to use for %s", what).
		WithHint("Use the COLLATE clause to set the collation explicitly.")
}

// UndeterminedCall returns an overload of two arguments that fails unless one of them is NULL.
func UndeterminedCall(name, what string, args []types.Type) *Overload {
	return &Overload{Name: name, Args: args, Ret: types.TBool, Strict: true, Fn: failing(what), Undetermined: true}
}

func failing(what string) Func {
	return func(*Env, []types.Datum) (types.Datum, error) { return types.Null, Undetermined(what) }
}

// sensitive names what the functions and operators over text that depend on the collation do with it, for messages.
var sensitive = map[string]string{
	"lower": "lower() function", "upper": "upper() function", "initcap": "initcap() function",
	"~~*": "ILIKE", "!~~*": "ILIKE",
	"~": "regular expression", "!~": "regular expression", "~*": "regular expression", "!~*": "regular expression",
	"regexp_match": "regular expression", "regexp_replace": "regular expression", "regexp_count": "regular expression",
	"regexp_instr": "regular expression", "regexp_like": "regular expression", "regexp_substr": "regular expression",
	"regexp_split_to_array": "regular expression",
	"strpos":                "string comparison", "position": "string comparison", "replace": "string comparison", "split_part": "string comparison",
	"starts_with": "string comparison", "^@": "string comparison",
}

// Collated returns o for arguments of collation c: it orders, converts and returns text in it.
func (o *Overload) Collated(c *collation.Collation) *Overload {
	r := *o
	if r.Ret.Collatable() {
		r.Ret.Coll = c
	}
	name := o.Name
	if strings.HasSuffix(name, "~~") && len(o.Args) > 0 && o.Args[0].OID == types.OIDCitext {
		name += "*"
	}
	what, sensible := sensitive[name]
	sensible = sensible && len(o.Args) > 0 && o.Args[0].IsString()
	switch {
	case sensible && c.Undetermined():
		r.Fn = failing(what)
	case c.Undetermined():
	case sensible:
		if f := collatedFunc(name, c); f != nil {
			r.Fn = f
		}
	case o.bind != nil:
		r.Args = collatedTypes(o.Args, c.Plain())
		r.Fn = o.bind(&r)
	}
	return &r
}

func collatedTypes(ts []types.Type, c *collation.Collation) []types.Type {
	out := make([]types.Type, len(ts))
	for i, t := range ts {
		if t.Collatable() {
			t.Coll = c
		}
		out[i] = t
	}
	return out
}

// collatedFunc returns the function or operator with a name for another collation than the default; nil: the same one serves.
func collatedFunc(name string, c *collation.Collation) Func {
	if c.ByBytes() && !c.ASCII() {
		return nil
	}
	switch name {
	case "lower":
		return convertCase(c, asciiLower, c.Lower)
	case "upper":
		return convertCase(c, asciiUpper, c.Upper)
	case "initcap":
		return convertCase(c, asciiTitle, c.Title)
	case "~~*", "!~~*":
		lower := convertCase(c, asciiLower, c.Lower)
		match := likeFunc(false, false, name == "!~~*")
		return func(env *Env, a []types.Datum) (types.Datum, error) {
			x, err := lower(env, a[:1])
			if err != nil {
				return types.Null, err
			}
			pattern, err := lower(env, a[1:2])
			if err != nil {
				return types.Null, err
			}
			return match(env, []types.Datum{x, pattern})
		}
	}
	return nil
}

// convertCase converts a text with one of two functions: of ASCII alone, or by the rules of c's language.
func convertCase(c *collation.Collation, ascii, full func(string) string) Func {
	if c.ASCII() {
		return textMap(ascii)
	}
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		s := a[0].Text()
		// Words of any length are converted at once; a character becomes three at most.
		if err := env.Reserve(3 * len(s)); err != nil {
			return types.Null, err
		}
		if err := env.Step(len(s)); err != nil {
			return types.Null, err
		}
		return types.Text(full(s)), nil
	}
}

func asciiLower(s string) string { return asciiMap(s, 'A', 'Z') }
func asciiUpper(s string) string { return asciiMap(s, 'a', 'z') }

// asciiMap changes the case of the letters between first and last.
func asciiMap(s string, first, last byte) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && byte(r) >= first && byte(r) <= last {
			return r ^ 0x20
		}
		return r
	}, s)
}

// asciiTitle converts the first letter of each word to upper case; letters outside of ASCII are no letters.
func asciiTitle(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		was := inWord
		lower, upper := r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z'
		inWord = lower || upper || r >= '0' && r <= '9'
		if was && upper || !was && lower {
			return r ^ 0x20
		}
		return r
	}, s)
}

// Collated returns a for arguments of collation c.
func (a *Aggregate) Collated(c *collation.Collation) *Aggregate {
	r := *a
	r.Args = collatedTypes(a.Args, c.Plain())
	if r.Ret.Collatable() {
		r.Ret.Coll = c
	}
	if a.make != nil {
		o := *a.declared
		o.Args, o.Ret = r.Args, r.Ret
		r.NewAccumulator = a.make(&o)
	}
	return &r
}
