package builtin

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Parameter is a parameter of a function that calls may name: make_interval(days => 10).
type Parameter struct {
	Name    string
	Type    types.Type
	Default types.Datum // NULL: the argument must be given
}

// namedSignatures lists the parameters of the functions whose parameters have names in PostgreSQL 15,
// once for each number of arguments.
func namedSignatures(f FuncName) [][]Parameter {
	switch f.system() {
	case "make_date":
		return [][]Parameter{intParameters("year", "month", "day")}
	case "make_time":
		return [][]Parameter{append(intParameters("hour", "min"), Parameter{Name: "sec", Type: types.TFloat8})}
	case "make_timestamp":
		return [][]Parameter{timestampParameters()}
	case "make_timestamptz":
		zone := Parameter{Name: "timezone", Type: types.TText}
		return [][]Parameter{timestampParameters(), append(timestampParameters(), zone)}
	case "make_interval":
		all := intParameters("years", "months", "weeks", "days", "hours", "mins")
		for i := range all {
			all[i].Default = types.Int(0)
		}
		return [][]Parameter{append(all, Parameter{Name: "secs", Type: types.TFloat8, Default: types.Float(0)})}
	case "jsonb_path_exists", "jsonb_path_match", "jsonb_path_query", "jsonb_path_query_array", "jsonb_path_query_first",
		"jsonb_path_exists_tz", "jsonb_path_match_tz", "jsonb_path_query_tz", "jsonb_path_query_array_tz", "jsonb_path_query_first_tz":
		return [][]Parameter{{{Name: "target", Type: types.TJSONB}, {Name: "path", Type: types.TJSONPath},
			{Name: "vars", Type: types.TJSONB, Default: types.JSONB(noVariables)}, {Name: "silent", Type: types.TBool, Default: types.Bool(false)}}}
	}
	return nil
}

func intParameters(names ...string) []Parameter {
	list := make([]Parameter, len(names), len(names)+2)
	for i, name := range names {
		list[i] = Parameter{Name: name, Type: types.TInt4}
	}
	return list
}

func timestampParameters() []Parameter {
	return append(intParameters("year", "month", "mday", "hour", "min"), Parameter{Name: "sec", Type: types.TFloat8})
}

// ResolveNamed finds the parameters of the function for a call with named arguments, and the position of each argument
// among them. names has an entry for each argument, "" for positional ones, which come first; args has their types, for
// the error.
//
// Errors: 42601 a name is given twice, 42883 no function has such parameters.
func (f FuncName) ResolveNamed(names []string, args []types.Type) (list []Parameter, places []int, err error) {
	for i, n := range names {
		if n != "" && slices.Contains(names[:i], n) {
			return nil, nil, pgerror.New(pgerror.SyntaxError, "argument name \"%s\" used more than once", n)
		}
	}
	for _, list := range namedSignatures(f) {
		if places := placeNamed(list, names); places != nil {
			return list, places, nil
		}
	}
	e := ErrNoFunction(f.String(), args)
	e.Message = "function " + namedSignature(f.String(), names, args) + " does not exist"
	return nil, nil, e
}

// placeNamed returns the position of every argument in list; nil if one has none, two have the same, or a parameter
// without default is missing.
func placeNamed(list []Parameter, names []string) []int {
	if len(names) > len(list) {
		return nil
	}
	places := make([]int, len(names))
	for i, n := range names {
		places[i] = i
		if n != "" {
			places[i] = slices.IndexFunc(list, func(p Parameter) bool { return p.Name == n })
		}
		if places[i] < 0 || slices.Contains(places[:i], places[i]) {
			return nil
		}
	}
	for i := range list {
		if list[i].Default.IsNull() && !slices.Contains(places, i) {
			return nil
		}
	}
	return places
}

// namedSignature is CallSignature with the names: "make_interval(years => integer)".
func namedSignature(name string, names []string, args []types.Type) string {
	var b strings.Builder
	b.WriteString(name)
	b.WriteByte('(')
	for i, t := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		if names[i] != "" {
			b.WriteString(names[i] + " => ")
		}
		b.WriteString(TypeName(t))
	}
	b.WriteByte(')')
	return b.String()
}
