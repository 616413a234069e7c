package pgcatalog

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The names of functions and operators, as regproc, regprocedure, regoper and regoperator print and read them.

// RoutineName implements types.Names.
func (o *Objects) RoutineName(t, id types.OID) (string, bool) {
	switch t {
	case types.OIDRegproc, types.OIDRegprocedure:
		p := builtin.ProcByOID(id)
		if p == nil {
			return o.userRoutineName(id, t == types.OIDRegprocedure)
		}
		name := keyword.QuoteIdent(p.Name)
		if e := p.Extension(); e != nil {
			return o.extensionRoutine(p, e, t == types.OIDRegprocedure)
		}
		if p.Schema() != catalog.SystemSchema || t == types.OIDRegproc && len(builtin.ProcsNamed(p.Name)) > 1 {
			name = keyword.QuoteIdent(p.Schema()) + "." + name
		}
		if t == types.OIDRegprocedure {
			name += "(" + typeList(p.Args) + ")"
		}
		return name, true
	}
	row, ok := pgdata.Operators().ByOID(uint32(id))
	if !ok || !builtin.OperatorShown(row) {
		return o.userOperatorName(id, t == types.OIDRegoperator)
	}
	name := pgdata.Operators().Value(row, "oprname")
	if visible, _ := o.OperatorVisible(id); !visible {
		name = catalog.SystemSchema + "." + name
	}
	if t == types.OIDRegoperator {
		return name + "(" + operandName(row, "oprleft") + "," + operandName(row, "oprright") + ")", true
	}
	if found, err := o.operatorOIDs("", name); err == nil && len(found) > 1 {
		name = catalog.SystemSchema + "." + name
	}
	return name, true
}

// extensionRoutine is RoutineName for a function of an extension; false if that is not installed.
func (o *Objects) extensionRoutine(p *builtin.Proc, e *builtin.Extension, withTypes bool) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	d := r.Extensions().Named(e.Name)
	if d == nil {
		return "", false
	}
	name := keyword.QuoteIdent(p.Name)
	if found, err := o.functions("", p.Name); err != nil || !withTypes && len(found) > 1 || !slices.Contains(catalog.Path(r), d.Schema) {
		name = keyword.QuoteIdent(d.Schema) + "." + name
	}
	if withTypes {
		name += "(" + typeList(p.Args) + ")"
	}
	return name, true
}

// typeList returns the names of types, separated by commas.
func typeList(oids []types.OID) string {
	names := make([]string, len(oids))
	for i, id := range oids {
		names[i] = builtin.TypeName(types.Type{OID: id, Mod: -1})
	}
	return strings.Join(names, ",")
}

// operandName returns the name of an operand's type, NONE for the left one of a prefix operator.
func operandName(row int, column string) string {
	t := types.Type{OID: types.OID(pgdata.Operators().Number(row, column)), Mod: -1}
	if !t.Valid() {
		return "NONE"
	}
	return builtin.TypeName(t)
}

// operatorsNamed returns the rows of the operators with a name.
func operatorsNamed(name string) []int {
	var rows []int
	for _, row := range builtin.OperatorRows() {
		if pgdata.Operators().Value(row, "oprname") == name {
			rows = append(rows, row)
		}
	}
	return rows
}

// RoutineOID implements types.Names.
func (o *Objects) RoutineOID(t types.OID, text string) (types.OID, error) {
	switch t {
	case types.OIDRegproc:
		return o.functionOID(text)
	case types.OIDRegprocedure:
		p, err := o.function(text)
		if err != nil {
			return 0, err
		}
		return p.OID, nil
	case types.OIDRegoper:
		return o.operatorOID(text)
	}
	return o.operatorWithTypes(text)
}

// functionOID finds a function by its name alone.
func (o *Objects) functionOID(text string) (types.OID, error) {
	schema, name, err := SplitName(text)
	if err != nil {
		return 0, err
	}
	all, err := o.functions(schema, name)
	switch {
	case err != nil:
		return 0, err
	case len(all) == 0:
		return 0, pgerror.New(pgerror.UndefinedFunction, "function \"%s\" does not exist", text)
	case len(all) > 1:
		return 0, pgerror.New(pgerror.AmbiguousFunction, "more than one function named \"%s\"", text)
	}
	return all[0].OID, nil
}

// functions returns the functions with a name that a schema contains, "" for those that the search path finds.
func (o *Objects) functions(schema, name string) ([]*builtin.Proc, error) {
	if err := o.schemaExists(schema); err != nil {
		return nil, err
	}
	path := []string{schema}
	r := o.Resolver()
	if schema == "" {
		schema = catalog.SystemSchema
		if r != nil {
			path = catalog.Path(r)
		}
	}
	var found []*builtin.Proc
	for _, p := range builtin.ProcsNamed(name) {
		if p.Schema() == schema {
			found = append(found, p)
		}
	}
	if r == nil {
		return found, nil
	}
	found = append(found, userProcs(r, path, name)...)
	return found, eachInstalled(r, func(d *catalog.ExtensionDescriptor, e *builtin.Extension) error {
		for _, p := range e.Procs() {
			if p.Name == name && slices.Contains(path, d.Schema) {
				found = append(found, p)
			}
		}
		return nil
	})
}

// schemaExists returns 3F000 unless a schema exists; "" is none.
func (o *Objects) schemaExists(schema string) error {
	if r := o.Resolver(); schema != "" && r != nil {
		if ok, err := r.SchemaExists(background(), schema); err != nil || !ok {
			if err == nil {
				err = pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", schema)
			}
			return err
		}
	}
	return nil
}

// function finds a function that is written as "name(types)".
func (o *Objects) function(text string) (*builtin.Proc, error) {
	schema, name, args, err := o.nameAndTypes(text, false)
	if err != nil {
		return nil, err
	}
	all, err := o.functions(schema, name)
	if err != nil {
		return nil, err
	}
next:
	for _, p := range all {
		if len(p.Args) != len(args) {
			continue
		}
		for i, t := range args {
			if p.Args[i] != t.OID {
				continue next
			}
		}
		return p, nil
	}
	return nil, pgerror.New(pgerror.UndefinedFunction, "function \"%s\" does not exist", text)
}

// operatorOID finds an operator by its name alone.
func (o *Objects) operatorOID(text string) (types.OID, error) {
	schema, name, err := o.operatorName(text)
	if err != nil {
		return 0, err
	}
	found, err := o.operatorOIDs(schema, name)
	if err != nil {
		return 0, err
	}
	switch len(found) {
	case 0:
		return 0, errNoOperator(text)
	case 1:
		return found[0], nil
	}
	return 0, pgerror.New(pgerror.AmbiguousFunction, "more than one operator named %s", text)
}

// operatorName divides the name of an operator, which may be qualified.
func (o *Objects) operatorName(text string) (schema, name string, err error) {
	text = strings.TrimSpace(text)
	if at := strings.LastIndexByte(text, '.'); at > 0 {
		if _, schema, err = SplitName(text[:at]); err != nil {
			return "", "", err
		}
		text = text[at+1:]
	}
	if text == "" {
		return "", "", pgerror.New(pgerror.InvalidName, "invalid name syntax")
	}
	return schema, text, o.schemaExists(schema)
}

// operatorWithTypes finds an operator that is written as "+(integer,integer)"; NONE is the left type of a prefix operator.
func (o *Objects) operatorWithTypes(text string) (types.OID, error) {
	name, words, err := callWords(text)
	if err != nil {
		return 0, err
	}
	schema, name, err := o.operatorName(name)
	if err != nil {
		return 0, err
	}
	switch {
	case len(words) == 1:
		return 0, pgerror.New(pgerror.UndefinedParameter, "missing argument").WithHint("Use NONE to denote the missing argument of a unary operator.")
	case len(words) != 2:
		return 0, pgerror.New(pgerror.TooManyArguments, "too many arguments").WithHint("Provide two argument types for operator.")
	}
	args, err := o.argumentTypes(words, true)
	if err != nil {
		return 0, err
	}
	if id := o.findOperator(schema, name, args[0], args[1]); id != 0 {
		return id, nil
	}
	return 0, errNoOperator(text)
}

// nameAndTypes divides "name(types)".
func (o *Objects) nameAndTypes(text string, none bool) (schema, name string, args []types.Type, err error) {
	head, words, err := callWords(text)
	if err != nil {
		return "", "", nil, err
	}
	if schema, name, err = SplitName(head); err != nil {
		return "", "", nil, err
	}
	args, err = o.argumentTypes(words, none)
	return schema, name, args, err
}

// argumentTypes reads the names of types; with none, NONE is the zero Type.
func (o *Objects) argumentTypes(words []string, none bool) ([]types.Type, error) {
	args := make([]types.Type, len(words))
	for i, word := range words {
		if none && strings.EqualFold(word, "none") {
			continue
		}
		t, err := types.ParseTypeName(word, o)
		if err != nil {
			return nil, err
		}
		args[i] = t.Base()
	}
	return args, nil
}

// callWords divides "name(word, word)". Commas in quotes, parentheses and brackets do not separate words.
func callWords(text string) (name string, words []string, err error) {
	open, quoted := -1, false
	for i := 0; i < len(text) && open < 0; i++ {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == '(' && !quoted:
			open = i
		}
	}
	if open < 0 {
		return "", nil, pgerror.New(pgerror.InvalidTextRepresentation, "expected a left parenthesis")
	}
	list, ok := strings.CutSuffix(strings.TrimRight(text[open+1:], " \t\n\r\f\v"), ")")
	if !ok {
		return "", nil, pgerror.New(pgerror.InvalidTextRepresentation, "expected a right parenthesis")
	}
	if strings.TrimSpace(list) == "" {
		return text[:open], nil, nil
	}
	depth, start := 0, 0
	quoted = false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ',' && depth == 0:
			words, start = append(words, strings.TrimSpace(list[start:i])), i+1
		}
	}
	if quoted || depth != 0 {
		return "", nil, pgerror.New(pgerror.InvalidTextRepresentation, "improper type name")
	}
	words = append(words, strings.TrimSpace(list[start:]))
	for _, word := range words {
		if word == "" {
			return "", nil, pgerror.New(pgerror.InvalidTextRepresentation, "expected a type name")
		}
	}
	return text[:open], words, nil
}
