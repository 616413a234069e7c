package builtin

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Parameter is a parameter of a function that calls may name: make_interval(days => 10).
type Parameter struct {
	Name    string
	Type    types.Type
	Default types.Datum // NULL: the argument must be given
}

// namedSignatures lists the parameters of the functions of a name that have named parameters, those with VARIADIC or those without.
func namedSignatures(f FuncName, variadic bool) (all [][]Parameter) {
	for _, p := range ProcsNamed(f.system()) {
		if p.row < 0 || p.Value("proargnames") == pgdata.Null {
			continue
		}
		var list []Parameter
		isVariadic := false
		for _, param := range p.Parameters() {
			if param.Mode == 'o' {
				continue
			}
			isVariadic = isVariadic || param.Mode == 'v'
			list = append(list, Parameter{Name: param.Name, Type: param.Type, Default: defaultValue(param)})
		}
		if isVariadic == variadic {
			all = append(all, list)
		}
	}
	return all
}

// defaultValue reads a default, which pg_proc has as SQL: a number, a boolean, or a string with its type.
func defaultValue(p ProcParameter) types.Datum {
	text := p.Default
	if text == "" {
		return types.Null
	}
	if i := strings.LastIndex(text, "'::"); i > 0 {
		text = strings.ReplaceAll(text[1:i], "''", "'")
	}
	d, err := types.ParseText(p.Type, text, nil)
	if err != nil {
		panic("builtin: default " + p.Default + " of a parameter: " + err.Error())
	}
	return d
}

// ResolveNamed finds the parameters of the function for a call with named arguments, and the position of each argument
// among them. names has an entry for each argument, "" for positional ones, which come first; args has their types, for
// the error. Parameters behind the last one that is given are left out. variadic: the last argument is VARIADIC.
//
// Errors: 42601 a name is given twice, 42883 no function has such parameters.
func (f FuncName) ResolveNamed(names []string, args []types.Type, variadic bool) (list []Parameter, places []int, err error) {
	for i, n := range names {
		if n != "" && slices.Contains(names[:i], n) {
			return nil, nil, pgerror.New(pgerror.SyntaxError, "argument name \"%s\" used more than once", n)
		}
	}
	for _, list := range namedSignatures(f, variadic) {
		if places := placeNamed(list, names); places != nil {
			return list[:slices.Max(places)+1], places, nil
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
