package builtin

import (
	"strconv"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// recordFuncs are the functions whose columns the call defines: FROM json_to_record(…) AS x(a int, b text).
var recordFuncs = map[string]bool{"json_to_record": false, "jsonb_to_record": false, "json_to_recordset": true, "jsonb_to_recordset": true}

// NeedsColumns reports whether the columns of a function are defined where it is called.
func NeedsColumns(name string) bool {
	_, ok := recordFuncs[name]
	return ok
}

// ResolveRecordFunc finds a function whose columns the call defines.
//
// Errors: 42883.
func ResolveRecordFunc(name string, args []types.Type, columns []SetColumn) (*SetFunc, error) {
	arg := types.TJSON
	if name == "jsonb_to_record" || name == "jsonb_to_recordset" {
		arg = types.TJSONB
	}
	if len(args) != 1 || !canCoerce(args[0], arg) {
		return nil, ErrNoFunction(name, args)
	}
	p := &populator{name: name, columns: columns}
	for _, c := range columns {
		p.types, p.names = append(p.types, c.Type), append(p.names, c.Name)
	}
	f := &SetFunc{Name: name, Args: []types.Type{arg}, Ret: types.TRecord, Strict: true, Volatility: Stable, Columns: columns, Estimate: 1}
	f.Open = func(env *Env, a []types.Datum) (SetRows, error) {
		v, err := p.value(env, a[0], arg)
		if err != nil {
			return nil, err
		}
		if !recordFuncs[name] {
			row, err := p.record(env, v)
			return &sliceRows{[]types.Datum{row}}, err
		}
		return p.records(arg, v)
	}
	if recordFuncs[name] {
		f.Estimate = 100
	}
	return f, nil
}

// populator makes records of JSON objects.
type populator struct {
	name    string
	columns []SetColumn
	types   []types.Type
	names   []string
	of      *types.Defined // the composite type of the records; nil: they are anonymous
	base    types.Row      // the values of members that are missing; nil: NULL
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
			row[i], err = p.convert(env, m, c.Type, keyPath{key: c.Name})
		case p.base != nil:
			row[i] = p.base[i]
		default:
			err = types.CheckNull(c.Type, &env.Format)
		}
		if err != nil {
			return types.Null, err
		}
	}
	if p.of != nil {
		return p.of.Row(row), nil
	}
	return types.NewNamedRecord(p.types, p.names, row), nil
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

// keyPath says in errors where a value is.
type keyPath struct {
	key   string
	index int // of an array's element, 1 for the first; 0: the member itself
}

// convert makes a value of type t of a JSON value.
func (p *populator) convert(env *Env, s jsonSource, t types.Type, at keyPath) (types.Datum, error) {
	if t.IsDomain() {
		d, err := p.convert(env, s, t.Underlying(), at)
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
		return p.array(env, s, t, at)
	case t.IsComposite() && s.v.Kind() != jsonb.String:
		return newPopulator(p.name, t).record(env, s)
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

func (p *populator) array(env *Env, s jsonSource, t types.Type, at keyPath) (types.Datum, error) {
	if s.v.Kind() != jsonb.Array {
		err := pgerror.New(pgerror.InvalidTextRepresentation, "expected JSON array")
		return types.Null, err.WithHint("See the value of key \"" + at.key + "\"" + at.element() + ".")
	}
	elems, err := s.elements(env)
	if err != nil {
		return types.Null, err
	}
	if err := env.reserveList(len(elems)); err != nil {
		return types.Null, err
	}
	out := &types.Array{Elem: t.Elem(), Elems: make([]types.Datum, len(elems))}
	for i, e := range elems {
		if out.Elems[i], err = p.convert(env, e, t.Elem(), keyPath{at.key, i + 1}); err != nil {
			return types.Null, err
		}
	}
	return types.NewArray(out), nil
}

func (k keyPath) element() string {
	if k.index == 0 {
		return ""
	}
	return "[" + strconv.Itoa(k.index-1) + "]"
}
