package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// populateFuncs declares json_populate_record and jsonb_populate_record.
func populateFuncs() []decl {
	return []decl{
		{sig: "json_populate_record(anyelement,json) anyelement", bind: populateRecord, flags: nonStrict | stable},
		// The third argument has no effect in PostgreSQL either.
		{sig: "json_populate_record(anyelement,json,bool) anyelement", bind: populateRecord, flags: nonStrict | stable},
		{sig: "jsonb_populate_record(anyelement,jsonb) anyelement", bind: populateRecord, flags: nonStrict | stable},
	}
}

func populateSetFuncs() []setDecl {
	return []setDecl{
		{sig: "json_populate_recordset(anyelement,json) anyelement", open: populateRecordSet, flags: nonStrict | stable, estimate: 100},
		{sig: "json_populate_recordset(anyelement,json,bool) anyelement", open: populateRecordSet, flags: nonStrict | stable, estimate: 100},
		{sig: "jsonb_populate_recordset(anyelement,jsonb) anyelement", open: populateRecordSet, flags: nonStrict | stable, estimate: 100},
	}
}

// newPopulator makes a populator of values of a composite type.
func newPopulator(name string, t types.Type) *populator {
	p := &populator{name: name, columns: compositeColumns(t), of: t.Def}
	for _, c := range p.columns {
		p.types, p.names = append(p.types, c.Type), append(p.names, c.Name)
	}
	return p
}

// populatorOf makes the populator of a call for its first argument.
func populatorOf(o *Overload, base types.Datum) (*populator, error) {
	t := o.Args[0].Underlying()
	switch {
	case t.OID == types.OIDRecord && base.IsNull():
		return nil, pgerror.New(pgerror.FeatureNotSupported, "could not determine row type for result of %s", o.Name).
			WithHint("Provide a non-null record argument, or call the function in the FROM clause using a column definition list.")
	case t.OID == types.OIDRecord:
		return namedPopulator(o.Name, base.Record()), nil
	case !t.IsComposite():
		return nil, pgerror.New(pgerror.DatatypeMismatch, "first argument of %s must be a row type", o.Name)
	}
	p := newPopulator(o.Name, t)
	if !base.IsNull() {
		p.base = base.Record().Fields
	}
	if d := o.Args[0]; d.IsDomain() && d.Def.Constrained() {
		p.domain = d.Def
	}
	return p, nil
}

func populateRecord(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		p, err := populatorOf(o, a[0])
		if err != nil || a[1].IsNull() {
			return a[0], err
		}
		v, err := p.value(env, a[1], o.Args[1])
		if err != nil {
			return types.Null, err
		}
		return p.record(env, v)
	}
}

func populateRecordSet(o *Overload) func(env *Env, args []types.Datum) (SetRows, error) {
	return func(env *Env, a []types.Datum) (SetRows, error) {
		p, err := populatorOf(o, a[0])
		if err != nil || a[1].IsNull() {
			return &sliceRows{}, err
		}
		v, err := p.value(env, a[1], o.Args[1])
		if err != nil {
			return nil, err
		}
		return p.records(o.Args[1], v)
	}
}
