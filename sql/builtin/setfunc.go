package builtin

import (
	"sync"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// SetFunc is a set-returning function for given argument types: one column of rows, or records of several.
type SetFunc struct {
	Name       string
	Args       []types.Type
	Ret        types.Type
	Strict     bool // no rows for a NULL argument
	Volatility Volatility
	Open       func(env *Env, args []types.Datum) (SetRows, error)
	// Estimate estimates the number of rows, for the planner.
	Estimate float64
	// Columns are the fields of the records that the function returns; nil: it returns values of type Ret. Must not be changed.
	Columns []SetColumn
	// Column names the column of a function without Columns; "": an alias names it, or the function.
	Column string
	// Call is the call of a routine that a user has defined; nil: it is none.
	Call *RoutineCall

	declared *Overload
}

// Signature returns that of the declared function, as Overload.Signature does.
func (f *SetFunc) Signature() string { return f.declared.Signature() }

// SetColumn is a field of the records of a set-returning function.
type SetColumn struct {
	Name string
	Type types.Type
}

// SetRows returns a set function's rows one by one.
type SetRows interface {
	// Next returns the next value; false after the last.
	Next(env *Env) (types.Datum, bool, error)
}

type setDecl struct {
	sig      string
	flags    flags
	estimate float64
	open     func(o *Overload) func(env *Env, args []types.Datum) (SetRows, error)
	columns  []SetColumn
	column   string
	// columnsFor returns the columns for resolved types; nil: they are columns.
	columnsFor func(o *Overload) []SetColumn
}

type setOverload struct {
	o    *Overload
	decl *setDecl
}

var setFuncs = sync.OnceValue(func() map[string][]setOverload {
	m := map[string][]setOverload{}
	for _, list := range [][]setDecl{seriesFuncs(), listFuncs(), explodeFuncs(), partitionFuncs(), optionFuncs(), jsonSetFuncs(), jsonPathSetFuncs(), populateSetFuncs(), rangeSetFuncs(), textSearchSetFuncs(), documentSetFuncs(), snapshotSetFuncs(), serverSetFuncs()} {
		for i := range list {
			d := decl{sig: list[i].sig, flags: list[i].flags}
			o := d.overload()
			m[o.Name] = append(m[o.Name], setOverload{o, &list[i]})
		}
	}
	return m
})

// IsSet reports whether the name may mean a set-returning function.
func (f FuncName) IsSet() bool { return len(f.setFuncs()) > 0 }

// ResolveSetFunc finds the overload of a set-returning function.
//
// Errors: 42883, 42725, 42804 as ResolveFunc.
func ResolveSetFunc(name string, args []types.Type) (*SetFunc, error) {
	return SystemFunc(name).ResolveSet(args)
}

// ResolveSet is ResolveSetFunc for the functions that the name may mean.
func (f FuncName) ResolveSet(args []types.Type) (*SetFunc, error) {
	var candidates []*Overload
	decls := map[*Overload]*setDecl{}
	for _, s := range f.setFuncs() {
		if len(s.o.Args) == len(args) {
			candidates = append(candidates, s.o)
			decls[s.o] = s.decl
		}
	}
	chosen, err := pick(f.String(), candidates, args)
	if err != nil {
		return nil, err
	}
	o, err := chosen.resolved(args)
	if err != nil {
		return nil, err
	}
	d := decls[chosen]
	columns := d.columns
	if d.columnsFor != nil {
		columns = d.columnsFor(o)
	}
	if ret := o.Ret.Underlying(); ret.IsComposite() {
		columns = compositeColumns(ret)
	}
	return &SetFunc{
		Name: f.Name, Args: o.Args, Ret: o.Ret, Strict: o.Strict, Volatility: o.Volatility,
		Open: d.open(o), Estimate: d.estimate, Columns: columns, Column: d.column, declared: chosen,
	}, nil
}

// compositeColumns are the fields of a composite type.
func compositeColumns(t types.Type) []SetColumn {
	columns := make([]SetColumn, len(t.Def.Fields))
	for i := range columns {
		columns[i] = SetColumn{Name: t.Def.Fields[i].Name, Type: t.Def.Fields[i].Type}
	}
	return columns
}

type openFunc = func(env *Env, args []types.Datum) (SetRows, error)

func opens(f openFunc) func(*Overload) openFunc { return func(*Overload) openFunc { return f } }

// sliceRows returns existing datums.
type sliceRows struct{ rest []types.Datum }

func (s *sliceRows) Next(*Env) (types.Datum, bool, error) {
	if len(s.rest) == 0 {
		return types.Null, false, nil
	}
	d := s.rest[0]
	s.rest = s.rest[1:]
	return d, true, nil
}

// intSeries implements generate_series of integers.
type intSeries struct {
	next, stop, step int64
	done             bool
}

func (s *intSeries) Next(*Env) (types.Datum, bool, error) {
	if s.done || s.step > 0 && s.next > s.stop || s.step < 0 && s.next < s.stop {
		return types.Null, false, nil
	}
	d := types.Int(s.next)
	next, err := AddInt8(s.next, s.step)
	s.next, s.done = next, err != nil
	return d, true, nil
}

func errZeroStep() error {
	return pgerror.New(pgerror.InvalidParameterValue, "step size cannot equal zero")
}

func openIntSeries(_ *Env, a []types.Datum) (SetRows, error) {
	s := &intSeries{next: a[0].Int(), stop: a[1].Int(), step: 1}
	if len(a) == 3 {
		s.step = a[2].Int()
	}
	if s.step == 0 {
		return nil, errZeroStep()
	}
	return s, nil
}

type numericSeries struct{ next, stop, step *apd.Decimal }

func (s *numericSeries) Next(*Env) (types.Datum, bool, error) {
	c := types.CompareNumeric(s.next, s.stop)
	if c > 0 && !s.step.Negative || c < 0 && s.step.Negative {
		return types.Null, false, nil
	}
	d := s.next
	var err error
	s.next, err = AddNumeric(s.next, s.step)
	return types.Decimal(d), true, err
}

func openNumericSeries(_ *Env, a []types.Datum) (SetRows, error) {
	s := &numericSeries{next: a[0].Decimal(), stop: a[1].Decimal(), step: types.NewNumeric(1)}
	if len(a) == 3 {
		s.step = a[2].Decimal()
	}
	for _, x := range []struct {
		name  string
		value *apd.Decimal
	}{{"start", s.next}, {"stop", s.stop}, {"step", s.step}} {
		if x.value.Form == apd.Finite {
			continue
		}
		what := "value cannot be "
		if x.name == "step" {
			what = "size cannot be "
		}
		if isNaN(x.value) {
			what += "NaN"
		} else {
			what += "infinity"
		}
		return nil, pgerror.New(pgerror.InvalidParameterValue, "%s %s", x.name, what)
	}
	if signum(s.step) == 0 {
		return nil, errZeroStep()
	}
	return s, nil
}

// timeSeries implements generate_series of timestamps.
type timeSeries struct {
	next, stop int64
	step       types.Interval
	down       bool
	done       bool
	add        func(env *Env, ts int64, iv types.Interval) (int64, error)
}

func (s *timeSeries) Next(env *Env) (types.Datum, bool, error) {
	if s.done || !s.down && s.next > s.stop || s.down && s.next < s.stop {
		return types.Null, false, nil
	}
	d := types.Int(s.next)
	var err error
	s.next, err = s.add(env, s.next, s.step)
	s.done = !types.TimestampFinite(s.next)
	return d, true, err
}

func openTimeSeries(add func(env *Env, ts int64, iv types.Interval) (int64, error)) openFunc {
	return func(_ *Env, a []types.Datum) (SetRows, error) {
		s := &timeSeries{next: a[0].Int(), stop: a[1].Int(), step: a[2].Interval(), add: add}
		c := types.CompareInterval(s.step, types.Interval{})
		if c == 0 {
			return nil, errZeroStep()
		}
		s.down = c < 0
		return s, nil
	}
}

// openZoneSeries implements generate_series with a time zone, as of PostgreSQL 16.
func openZoneSeries(env *Env, a []types.Datum) (SetRows, error) {
	zone, err := types.LoadZone(a[3].Text())
	if err != nil {
		return nil, err
	}
	return openTimeSeries(func(_ *Env, ts int64, iv types.Interval) (int64, error) {
		return addTimestamptzIn(zone.Location, ts, iv)
	})(env, a)
}

func seriesFuncs() []setDecl {
	local := func(_ *Env, ts int64, iv types.Interval) (int64, error) { return AddTimestamp(ts, iv) }
	return []setDecl{
		{sig: "generate_series(int4,int4) int4", open: opens(openIntSeries), estimate: 1000},
		{sig: "generate_series(int4,int4,int4) int4", open: opens(openIntSeries), estimate: 1000},
		{sig: "generate_series(int8,int8) int8", open: opens(openIntSeries), estimate: 1000},
		{sig: "generate_series(int8,int8,int8) int8", open: opens(openIntSeries), estimate: 1000},
		{sig: "generate_series(numeric,numeric) numeric", open: opens(openNumericSeries), estimate: 1000},
		{sig: "generate_series(numeric,numeric,numeric) numeric", open: opens(openNumericSeries), estimate: 1000},
		{sig: "generate_series(timestamp,timestamp,interval) timestamp", open: opens(openTimeSeries(local)), estimate: 1000},
		{sig: "generate_series(timestamptz,timestamptz,interval) timestamptz", flags: stable,
			open: opens(openTimeSeries(AddTimestamptz)), estimate: 1000},
		{sig: "generate_series(timestamptz,timestamptz,interval,text) timestamptz", open: opens(openZoneSeries), estimate: 1000},
		{sig: "generate_subscripts(anyarray,int4) int4", open: opens(openSubscripts), estimate: 10},
		{sig: "generate_subscripts(anyarray,int4,bool) int4", open: opens(openSubscripts), estimate: 10},
	}
}

func openSubscripts(_ *Env, a []types.Datum) (SetRows, error) {
	array, n := a[0].Array(), a[1].Int()
	if n < 1 || n > int64(array.NDims()) {
		return &sliceRows{}, nil
	}
	d := array.Dim(int(n - 1))
	low, high := int64(d.Low), int64(d.High())
	if len(a) == 3 && a[2].Bool() {
		return &intSeries{next: high, stop: low, step: -1}, nil
	}
	return &intSeries{next: low, stop: high, step: 1}, nil
}

func listFuncs() []setDecl {
	return []setDecl{
		{sig: "unnest(anyarray) anyelement", estimate: 10, open: opens(func(_ *Env, a []types.Datum) (SetRows, error) {
			return &sliceRows{a[0].Array().Elems}, nil
		})},
		{sig: "pg_listening_channels() text", flags: stable, estimate: 10, open: opens(openListeningChannels)},
		{sig: "regexp_split_to_table(text,text) text", estimate: 10, open: opens(openRegexSplit)},
		{sig: "regexp_split_to_table(text,text,text) text", estimate: 10, open: opens(openRegexSplit)},
		{sig: "regexp_matches(text,text) text[]", estimate: 1, open: opens(openRegexMatches)},
		{sig: "regexp_matches(text,text,text) text[]", estimate: 1, open: opens(openRegexMatches)},
		{sig: "string_to_table(text,text) text", flags: nonStrict, estimate: 10, open: opens(openStringToTable)},
		{sig: "string_to_table(text,text,text) text", flags: nonStrict, estimate: 10, open: opens(openStringToTable)},
	}
}

// openListeningChannels is pg_listening_channels.
func openListeningChannels(env *Env, _ []types.Datum) (SetRows, error) {
	if env.Session == nil {
		return nil, errNoService("session information")
	}
	rows := &sliceRows{}
	for _, channel := range env.Session.ListeningChannels() {
		rows.rest = append(rows.rest, types.Text(channel))
	}
	return rows, nil
}

func openRegexSplit(env *Env, a []types.Datum) (SetRows, error) {
	parts, err := regexSplit(env, "regexp_split_to_table()", a)
	return &sliceRows{parts}, err
}

func openRegexMatches(env *Env, a []types.Datum) (SetRows, error) {
	o, err := regexArgs(a, 2)
	if err != nil {
		return nil, err
	}
	re, err := env.patterns.regex(env, a[1].Text(), o)
	if err != nil {
		return nil, err
	}
	s := a[0].Text()
	var out []types.Datum
	err = re.each(env, s, 0, func(m []int) (bool, error) {
		if err := env.count(elementBytes + int64(len(m)/2)*types.DatumBytes); err != nil {
			return false, err
		}
		out = append(out, matchArray(s, m))
		return o.global, nil
	})
	return &sliceRows{out}, err
}

func openStringToTable(env *Env, a []types.Datum) (SetRows, error) {
	d, err := stringToArray(env, a)
	if err != nil || d.IsNull() {
		return &sliceRows{}, err
	}
	return &sliceRows{d.Array().Elems}, nil
}
