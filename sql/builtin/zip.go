package builtin

import "github.com/percodb/percodb/sql/types"

// Zip returns a set-returning function that yields the rows of several side by side: one that has ended before the others yields NULLs. Its
// arguments are those of all of them, and so are its columns.
func Zip(name string, list []*SetFunc) *SetFunc {
	out := &SetFunc{Name: name, Ret: types.TRecord}
	for _, f := range list {
		out.Args = append(out.Args, f.Args...)
		out.Columns = append(out.Columns, f.columns()...)
		out.Volatility = max(out.Volatility, f.Volatility)
		out.Estimate = max(out.Estimate, f.Estimate)
	}
	ts := make([]types.Type, len(out.Columns))
	names := make([]string, len(out.Columns))
	for i, c := range out.Columns {
		ts[i], names[i] = c.Type, c.Name
	}
	out.Open = func(env *Env, args []types.Datum) (SetRows, error) {
		rows := &zipped{types: ts, names: names, parts: make([]zipPart, len(list))}
		for i, f := range list {
			given := args[:len(f.Args)]
			args = args[len(f.Args):]
			p := &rows.parts[i]
			p.width, p.record = len(f.columns()), f.Columns != nil
			if f.Strict && hasNull(given) {
				continue
			}
			var err error
			if p.rows, err = f.Open(env, given); err != nil {
				return nil, err
			}
		}
		return rows, nil
	}
	return out
}

// One returns a set-returning function that yields its argument, of type t, once.
func One(name string, t types.Type) *SetFunc {
	var columns []SetColumn
	if below := t.Underlying(); below.IsComposite() {
		columns = compositeColumns(below)
	}
	return &SetFunc{Columns: columns, Name: name, Args: []types.Type{t}, Ret: t, Estimate: 1, Open: func(_ *Env, args []types.Datum) (SetRows, error) {
		return &sliceRows{args[:1:1]}, nil
	}}
}

// columns returns the columns, also of a function that yields values.
func (f *SetFunc) columns() []SetColumn {
	if f.Columns != nil {
		return f.Columns
	}
	name := f.Column
	if name == "" {
		name = f.Name
	}
	return []SetColumn{{Name: name, Type: f.Ret}}
}

// zipped are the rows of Zip.
type zipped struct {
	types []types.Type
	names []string
	parts []zipPart
}

type zipPart struct {
	rows   SetRows // nil: ended
	width  int
	record bool // the rows are records
}

func (z *zipped) Next(env *Env) (types.Datum, bool, error) {
	fields := make(types.Row, len(z.types))
	some, at := false, 0
	for i := range z.parts {
		p := &z.parts[i]
		if p.rows != nil {
			d, ok, err := p.rows.Next(env)
			switch {
			case err != nil:
				return types.Null, false, err
			case !ok:
				p.rows = nil
			case p.record && !d.IsNull():
				copy(fields[at:at+p.width], d.Record().Fields)
			case !p.record:
				fields[at] = d
			}
			some = some || ok
		}
		at += p.width
	}
	if !some {
		return types.Null, false, nil
	}
	return types.NewNamedRecord(z.types, z.names, fields), true, nil
}
