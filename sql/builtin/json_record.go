package builtin

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// recordFunc is a function whose columns the call defines: FROM json_to_record(…) AS x(a int, b text).
type recordFunc struct {
	set, base bool // of an array; the first argument is a record with the values that objects lack
}

var recordFuncs = map[string]recordFunc{
	"json_to_record": {}, "jsonb_to_record": {}, "json_to_recordset": {set: true}, "jsonb_to_recordset": {set: true},
	"json_populate_record": {base: true}, "jsonb_populate_record": {base: true},
	"json_populate_recordset": {set: true, base: true}, "jsonb_populate_recordset": {set: true, base: true},
}

// NeedsColumns reports whether the columns of a function are defined where it is called.
func NeedsColumns(name string) bool {
	f, ok := recordFuncs[name]
	return ok && !f.base
}

// TakesColumns reports whether the columns of a function are defined where it is called with a record of no type.
func TakesColumns(name string) bool { return recordFuncs[name].base }

// ResolveRecordFunc finds a function whose columns the call defines.
//
// Errors: 42883; 42601 if the arguments define the columns.
func ResolveRecordFunc(name string, args []types.Type, columns []SetColumn) (*SetFunc, error) {
	arg, kind := types.TJSON, recordFuncs[name]
	if strings.HasPrefix(name, "jsonb_") {
		arg = types.TJSONB
	}
	params := []types.Type{arg}
	if kind.base {
		params = []types.Type{types.TRecord, arg}
	}
	if len(args) != len(params) || !canCoerce(args[len(args)-1], arg) {
		return nil, ErrNoFunction(name, args)
	}
	if kind.base && args[0].OID != types.OIDRecord {
		return nil, pgerror.New(pgerror.SyntaxError, "a column definition list is only allowed for functions returning \"record\"")
	}
	f := &SetFunc{Name: name, Args: params, Ret: types.TRecord, Strict: !kind.base, Volatility: Stable, Columns: columns, Estimate: 1}
	f.Open = func(env *Env, a []types.Datum) (SetRows, error) {
		return openRecords(env, newRecordPopulator(name, columns), a, arg)
	}
	if kind.set {
		f.Estimate = 100
	}
	return f, nil
}

// newRecordPopulator makes a populator of records with the columns of the call.
func newRecordPopulator(name string, columns []SetColumn) *populator {
	p := &populator{name: name, columns: columns}
	for _, c := range columns {
		p.types, p.names = append(p.types, c.Type), append(p.names, c.Name)
	}
	return p
}

// openRecords opens the rows of a function whose columns the call defines; arg is the type of its last argument.
func openRecords(env *Env, p *populator, a []types.Datum, arg types.Type) (SetRows, error) {
	kind, from := recordFuncs[p.name], a[len(a)-1]
	if kind.base && !a[0].IsNull() {
		r := a[0].Record()
		if err := sameColumns(r.Types, p.columns); err != nil {
			return nil, err
		}
		p = namedPopulator(p.name, r)
	}
	if from.IsNull() && kind.set {
		return &sliceRows{}, nil
	}
	if from.IsNull() {
		return &sliceRows{a[:1]}, nil
	}
	v, err := p.value(env, from, arg)
	if err != nil {
		return nil, err
	}
	if kind.set {
		return p.records(arg, v)
	}
	row, err := p.record(env, v)
	return &sliceRows{[]types.Datum{row}}, err
}

// namedPopulator makes a populator of records like r, whose names and values are those that count.
func namedPopulator(name string, r *types.Record) *populator {
	p := &populator{name: name, types: r.Types, base: r.Fields}
	for i, t := range r.Types {
		p.names = append(p.names, fieldName(r, i))
		p.columns = append(p.columns, SetColumn{Name: fieldName(r, i), Type: t})
	}
	return p
}

// sameColumns checks the fields of a record against the columns of the call.
func sameColumns(fields []types.Type, columns []SetColumn) error {
	err := pgerror.New(pgerror.DatatypeMismatch, "function return row and query-specified return row do not match")
	if len(fields) != len(columns) {
		plural := "s"
		if len(fields) == 1 {
			plural = ""
		}
		return err.WithDetail("Returned row contains %d attribute%s, but query expects %d.", len(fields), plural, len(columns))
	}
	for i, t := range fields {
		if t.OID != columns[i].Type.OID {
			return err.WithDetail("Returned type %s at ordinal position %d, but query expects %s.", TypeName(t), i+1, TypeName(columns[i].Type))
		}
	}
	return nil
}

// populator makes records of JSON objects.
type populator struct {
	name    string
	columns []SetColumn
	types   []types.Type
	names   []string
	of      *types.Defined // the composite type of the records; nil: they are anonymous
	base    types.Row      // the values of members that are missing; nil: NULL
	domain  *types.Defined // over of, whose constraints the records must satisfy; nil: there are none
}

// jsonSource is a JSON value in either form: v, or the text as written for json.
type jsonSource struct {
	v    jsonb.Value
	text string // json: as written; empty for jsonb
}

// value reads a json or jsonb datum.
func (p *populator) value(env *Env, d types.Datum, t types.Type) (jsonSource, error) {
	if t.OID == types.OIDJSONB {
		return jsonSource{v: d.JSONB()}, nil
	}
	b, err := env.ParseText(types.TJSONB, d.Text())
	return jsonSource{v: b.JSONB(), text: d.Text()}, err
}

// member returns the member of an object with a key; text is what json wrote.
func (s jsonSource) member(env *Env, key string) (jsonSource, bool, error) {
	v, ok := s.v.Find(key)
	if !ok || s.text == "" {
		return jsonSource{v: v}, ok, nil
	}
	d, err := findJSON(env, s.text, false, func(_ jsonb.Event, _ int, m *jsonMember) bool { return m.key == key })
	return jsonSource{v: v, text: d.Text()}, ok, err
}

// elements returns the elements of an array.
func (s jsonSource) elements(env *Env) ([]jsonSource, error) {
	var out []jsonSource
	for _, e := range s.v.Members {
		out = append(out, jsonSource{v: e})
	}
	if s.text == "" {
		return out, nil
	}
	err := readJSON(env, s.text, nil, func(i int, m *jsonMember) error {
		out[i].text = m.text
		return nil
	})
	return out, err
}

func (p *populator) record(env *Env, s jsonSource) (types.Datum, error) {
	switch {
	case s.v.Kind() == jsonb.Array:
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "cannot call populate_composite on an array")
	case !s.v.IsContainer():
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "cannot call populate_composite on a scalar")
	}
	row := make(types.Row, len(p.columns))
	for i, c := range p.columns {
		m, ok, err := s.member(env, c.Name)
		switch {
		case err != nil:
		case ok:
			row[i], err = p.convert(env, m, c.Type, c.Name, p.baseOf(i))
		case p.base != nil:
			row[i] = p.base[i]
		default:
			err = types.CheckNull(c.Type, &env.Format)
		}
		if err != nil {
			return types.Null, err
		}
	}
	switch {
	case p.of == nil:
		return types.NewNamedRecord(p.types, p.names, row), nil
	case p.domain != nil:
		d := p.of.Row(row)
		return d, env.CheckDomain(p.domain, d)
	}
	return p.of.Row(row), nil
}

// baseOf returns the value that a column has where the object has no such member.
func (p *populator) baseOf(column int) types.Datum {
	if p.base == nil {
		return types.Null
	}
	return p.base[column]
}

func (p *populator) records(arg types.Type, s jsonSource) (SetRows, error) {
	switch {
	case s.v.Kind() == jsonb.Array:
		return &recordRows{p: p, s: s}, nil
	case arg.OID == types.OIDJSONB:
		return nil, errCall(p.name, "a non-array")
	case s.v.Kind() == jsonb.Object:
		return nil, errCall(p.name, "an object")
	}
	return nil, errCall(p.name, "a scalar")
}

// recordRows yields a record for each element of an array.
type recordRows struct {
	p     *populator
	s     jsonSource
	elems []jsonSource
	i     int
}

func (r *recordRows) Next(env *Env) (types.Datum, bool, error) {
	if r.elems == nil {
		var err error
		if r.elems, err = r.s.elements(env); err != nil {
			return types.Null, false, err
		}
	}
	if r.i == len(r.elems) {
		return types.Null, false, nil
	}
	e := r.elems[r.i]
	r.i++
	if e.v.Kind() != jsonb.Object {
		return types.Null, false, pgerror.New(pgerror.InvalidParameterValue, "argument of %s must be an array of objects", r.p.name)
	}
	d, err := r.p.record(env, e)
	return d, true, err
}

// convert makes a value of type t of a JSON value; key is its member's, for errors. What a composite value lacks is base's.
func (p *populator) convert(env *Env, s jsonSource, t types.Type, key string, base types.Datum) (types.Datum, error) {
	if t.IsDomain() {
		d, err := p.convert(env, s, t.Underlying(), key, base)
		if err == nil && t.Def.Constrained() {
			err = env.CheckDomain(t.Def, d)
		}
		return d, err
	}
	switch {
	case s.v.Kind() == jsonb.Null:
		return types.Null, nil
	case t.OID == types.OIDJSON && s.text != "":
		return types.Text(s.text), nil
	case t.OID == types.OIDJSON:
		return jsonbPrint(env, s.v)
	case t.OID == types.OIDJSONB:
		return types.JSONB(s.v), nil
	case t.IsArray() && s.v.Kind() != jsonb.String:
		return p.array(env, s, t.Elem(), key)
	case t.IsComposite() && s.v.Kind() != jsonb.String:
		inner := newPopulator(p.name, t)
		if !base.IsNull() {
			inner.base = base.Record().Fields
		}
		return inner.record(env, s)
	}
	text, err := p.text(env, s)
	if err != nil {
		return types.Null, err
	}
	d, err := env.ParseText(t.Base(), text)
	if err != nil || t.Mod < 0 {
		return d, err
	}
	return ApplyMod(d, t, false)
}

// text returns the text that a type's input function reads: json as written.
func (p *populator) text(env *Env, s jsonSource) (string, error) {
	if s.text != "" && s.v.Kind() != jsonb.String {
		return s.text, nil
	}
	d, err := jsonbText(env, s.v)
	return d.Text(), err
}
