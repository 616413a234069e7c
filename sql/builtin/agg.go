package builtin

import (
	"slices"
	"sync"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Aggregate is an aggregate function for given argument types.
type Aggregate struct {
	Name string
	Args []types.Type // coerce the arguments to these; none for count(*)
	Ret  types.Type
	// NewAccumulator makes the state of one group.
	NewAccumulator func() Accumulator
	// NullsIgnored: Add does nothing if the first argument is NULL.
	NullsIgnored bool
	// OrderMatters: the result depends on the order of the rows.
	OrderMatters bool
	// FirstByOrder: the result is the first value that is not NULL in ascending (min, -1) or descending (max, 1) order,
	// so that an index can provide it; 0 otherwise.
	FirstByOrder int
	// Direct is the number of direct arguments of an aggregate WITHIN GROUP, which come first in Args. Its accumulators are OrderedSets.
	Direct int
	// Hypothetical: it takes how each row compares with the direct arguments. Its Args have none but those.
	Hypothetical bool
	// AddRows adds n rows to an accumulator whatever their values are: that of count(*); nil for others.
	AddRows func(acc Accumulator, n int64)
	// AddInts is Add for many values of a type represented by integers, none of them NULL; nil where there is no such function.
	AddInts func(acc Accumulator, values []int64) error
	// Combine adds to an accumulator the rows that another one has got, which is not used any more. Nil for aggregates whose
	// result would depend on how the rows were divided.
	Combine func(into, from Accumulator) error

	declared *Overload
	make     func(*Overload) func() Accumulator // makes NewAccumulator
}

// Signature returns that of the declared function, as Overload.Signature does.
func (a *Aggregate) Signature() string { return a.declared.Signature() }

// Accumulator is the state of one group of an aggregate. Add must clone the args that it keeps.
type Accumulator interface {
	Add(env *Env, args []types.Datum) error
	// Result may be called again after further Adds.
	Result(env *Env) (types.Datum, error)
}

// aggDecl declares an aggregate: make gets the resolved overload.
type aggDecl struct {
	sig   string
	make  func(o *Overload) func() Accumulator
	flags aggFlags
	// combine, addRows and addInts are Combine, AddRows and AddInts.
	combine func(into, from Accumulator) error
	addRows func(acc Accumulator, n int64)
	addInts func(acc Accumulator, values []int64) error
}

type aggFlags uint8

const (
	aggKeepsNulls aggFlags = 1 << iota
	aggOrdered
	aggMin
	aggMax
)

type aggOverload struct {
	o    *Overload
	decl *aggDecl
}

var aggregates = sync.OnceValue(func() map[string][]aggOverload {
	return declareAggregates(countAggs(), sumAggs(), minMaxAggs(), statAggs(), logicAggs(), collectAggs(), jsonAggs(), bitAggs(), moneyAggs(), rangeAggs())
})

// declareAggregates lists aggregates by name.
func declareAggregates(lists ...[]aggDecl) map[string][]aggOverload {
	m := map[string][]aggOverload{}
	for _, list := range lists {
		for i := range list {
			o := parseSignature(list[i].sig)
			m[o.Name] = append(m[o.Name], aggOverload{o, &list[i]})
		}
	}
	return m
}

// IsAggregate reports whether an aggregate has the name.
func IsAggregate(name string) bool { return SystemFunc(name).IsAggregate() }

// IsAggregate reports whether the name may mean an aggregate.
func (f FuncName) IsAggregate() bool { return len(f.aggregates()) > 0 }

// ResolveAggregate finds the overload of an aggregate; count(*) has no arguments.
//
// Errors: 42883, 42725, 42804 as ResolveFunc.
func ResolveAggregate(name string, args []types.Type) (*Aggregate, error) {
	return SystemFunc(name).ResolveAggregate(args)
}

// ResolveAggregate is the function ResolveAggregate for the aggregates that the name may mean.
func (f FuncName) ResolveAggregate(args []types.Type) (*Aggregate, error) {
	return f.resolveAggregate(f.aggregates(), args)
}

func (f FuncName) resolveAggregate(all []aggOverload, args []types.Type) (*Aggregate, error) {
	var candidates []*Overload
	decls := map[*Overload]*aggDecl{}
	for _, a := range all {
		if len(a.o.Args) == len(args) {
			candidates = append(candidates, a.o)
			decls[a.o] = a.decl
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
	agg := &Aggregate{
		Name: f.Name, Args: o.Args, Ret: o.Ret, NewAccumulator: d.make(o),
		NullsIgnored: d.flags&aggKeepsNulls == 0 && len(o.Args) > 0, OrderMatters: d.flags&aggOrdered != 0,
		AddRows: d.addRows, AddInts: d.addInts, Combine: d.combine, declared: chosen, make: d.make,
	}
	switch {
	case d.flags&aggMin != 0:
		agg.FirstByOrder = -1
	case d.flags&aggMax != 0:
		agg.FirstByOrder = 1
	}
	return agg, nil
}

// pick chooses the overload for a call among those with the right number of arguments. Errors: 42883, 42725.
func pick(name string, candidates []*Overload, args []types.Type) (*Overload, error) {
	chosen, ambiguous := findExact(candidates, args), false
	if chosen == nil {
		chosen, ambiguous = choose(nil, candidates, args)
	}
	switch {
	case ambiguous:
		return nil, pgerror.New(pgerror.AmbiguousFunction, "function %s is not unique", CallSignature(name, args)).
			WithHint("Could not choose a best candidate function. You might need to add explicit type casts.")
	case chosen == nil:
		return nil, ErrNoFunction(name, args)
	}
	return chosen, nil
}

// fixed returns a constructor that does not depend on the resolved types.
func fixed(f func() Accumulator) func(*Overload) func() Accumulator {
	return func(*Overload) func() Accumulator { return f }
}

// adding returns the addInts function of accumulators of one type.
func adding[T Accumulator](f func(acc T, values []int64) error) func(acc Accumulator, values []int64) error {
	return func(acc Accumulator, values []int64) error { return f(acc.(T), values) }
}

// combining returns the combine function of accumulators of one type.
func combining[T Accumulator](f func(into, from T) error) func(into, from Accumulator) error {
	return func(into, from Accumulator) error { return f(into.(T), from.(T)) }
}

// countStar is count(*), countAny is count(x).
type countStar struct{ n int64 }
type countAny struct{ n int64 }

func (c *countStar) Add(*Env, []types.Datum) error    { c.n++; return nil }
func (c *countStar) Result(*Env) (types.Datum, error) { return types.Int(c.n), nil }

func (c *countAny) Add(_ *Env, a []types.Datum) error {
	if !a[0].IsNull() {
		c.n++
	}
	return nil
}
func (c *countAny) Result(*Env) (types.Datum, error) { return types.Int(c.n), nil }

func countAggs() []aggDecl {
	return []aggDecl{
		{sig: "count() int8", make: fixed(func() Accumulator { return new(countStar) }),
			combine: combining(func(into, from *countStar) error { into.n += from.n; return nil }),
			addRows: func(acc Accumulator, n int64) { acc.(*countStar).n += n }},
		{sig: "count(any) int8", make: fixed(func() Accumulator { return new(countAny) }),
			combine: combining(func(into, from *countAny) error { into.n += from.n; return nil })},
	}
}

// extreme implements min and max.
type extreme struct {
	t    types.Type
	sign int // 1: max, -1: min
	some bool
	best types.Datum
	buf  []byte // owns best's bytes
}

func (x *extreme) Add(_ *Env, a []types.Datum) error {
	d := a[0]
	if d.IsNull() {
		return nil
	}
	if x.some {
		// Of equal values with different text (1.0 and 1.00, citext) PostgreSQL keeps the last, of strings the first.
		if c := types.Compare(d, x.best, x.t) * x.sign; c < 0 || c == 0 && d.Kind() == types.KindBytes && x.t.OID != types.OIDCitext {
			return nil
		}
	}
	x.some = true
	switch d.Kind() {
	case types.KindBytes:
		x.buf = append(x.buf[:0], d.Bytes()...)
		x.best = types.Bytes(x.buf)
	case types.KindArray, types.KindRow, types.KindRange:
		x.best = d.Clone()
	default:
		x.best = d
	}
	return nil
}

// combine keeps the better of two values; of equal ones with different text, either.
func (x *extreme) combine(from *extreme) error {
	if !from.some {
		return nil
	}
	return x.Add(nil, []types.Datum{from.best})
}

func (x *extreme) Result(*Env) (types.Datum, error) {
	if x.best.Kind() == types.KindBytes {
		return x.best.Clone(), nil // Add may overwrite buf
	}
	return x.best, nil
}

// extremeInt is extreme for all types whose datums are integers.
type extremeInt struct {
	sign int64
	some bool
	best int64
}

func (x *extremeInt) Add(_ *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	if n := a[0].Int(); !x.some || (x.sign > 0 && n > x.best) || (x.sign < 0 && n < x.best) {
		x.some, x.best = true, n
	}
	return nil
}

func (x *extremeInt) addInts(values []int64) error {
	if len(values) == 0 {
		return nil
	}
	best := values[0]
	if x.some {
		best = x.best
	}
	if x.sign > 0 {
		for _, n := range values {
			best = max(best, n)
		}
	} else {
		for _, n := range values {
			best = min(best, n)
		}
	}
	x.some, x.best = true, best
	return nil
}

func (x *extremeInt) combine(from *extremeInt) error {
	if !from.some {
		return nil
	}
	return x.Add(nil, []types.Datum{types.Int(from.best)})
}

func (x *extremeInt) Result(*Env) (types.Datum, error) {
	if !x.some {
		return types.Null, nil
	}
	return types.Int(x.best), nil
}

// combineExtremes are the combine functions of min and max, by type, where equal values have the same text, or the first
// of them in the order of the rows does not matter.
var combineExtremes = map[string]func(into, from Accumulator) error{
	"float4": combining((*extreme).combine), "float8": combining((*extreme).combine), "text": combining((*extreme).combine),
}

func minMaxAggs() []aggDecl {
	var out []aggDecl
	for _, x := range []struct {
		name  string
		sign  int
		flags aggFlags
	}{{"min", -1, aggMin}, {"max", 1, aggMax}} {
		for _, t := range []string{"int2", "int4", "int8", "oid", "date", "time", "timestamp", "timestamptz"} {
			out = append(out, aggDecl{sig: x.name + "(" + t + ") " + t, flags: x.flags, combine: combining((*extremeInt).combine), addInts: adding((*extremeInt).addInts),
				make: fixed(func() Accumulator { return &extremeInt{sign: int64(x.sign)} })})
		}
		for _, info := range types.Infos() {
			t := types.Type{OID: info.OID, Mod: -1}
			if m := t.Methods(); m != nil && m.MinMax {
				out = append(out, aggDecl{sig: x.name + "(" + info.Name + ") " + info.Name, flags: x.flags, combine: combining((*extreme).combine),
					make: fixed(func() Accumulator { return &extreme{t: t, sign: x.sign} })})
			}
		}
		for _, t := range []string{"float4", "float8", "numeric", "text", "bpchar", "interval", "anyarray", "anyenum"} {
			out = append(out, aggDecl{sig: x.name + "(" + t + ") " + t, flags: x.flags, combine: combineExtremes[t], make: func(o *Overload) func() Accumulator {
				return func() Accumulator { return &extreme{t: o.Args[0], sign: x.sign} }
			}})
		}
	}
	return out
}

// logical implements bool_and and bool_or.
type logical struct{ or, some, value bool }

func (l *logical) Add(_ *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	v := a[0].Bool()
	switch {
	case !l.some:
		l.some, l.value = true, v
	case l.or:
		l.value = l.value || v
	default:
		l.value = l.value && v
	}
	return nil
}

func (l *logical) Result(*Env) (types.Datum, error) {
	if !l.some {
		return types.Null, nil
	}
	return types.Bool(l.value), nil
}

func (l *logical) combine(from *logical) error {
	if !from.some {
		return nil
	}
	return l.Add(nil, []types.Datum{types.Bool(from.value)})
}

// bitwise implements bit_and, bit_or and bit_xor.
type bitwise struct {
	op    byte
	some  bool
	value int64
}

func (b *bitwise) Add(_ *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	n := a[0].Int()
	switch {
	case !b.some:
		b.some, b.value = true, n
	case b.op == '&':
		b.value &= n
	case b.op == '|':
		b.value |= n
	default:
		b.value ^= n
	}
	return nil
}

func (b *bitwise) combine(from *bitwise) error {
	if !from.some {
		return nil
	}
	return b.Add(nil, []types.Datum{types.Int(from.value)})
}

func (b *bitwise) Result(*Env) (types.Datum, error) {
	if !b.some {
		return types.Null, nil
	}
	return types.Int(b.value), nil
}

func logicAggs() []aggDecl {
	out := []aggDecl{
		{sig: "bool_and(bool) bool", make: fixed(func() Accumulator { return &logical{} }), combine: combining((*logical).combine)},
		{sig: "every(bool) bool", make: fixed(func() Accumulator { return &logical{} }), combine: combining((*logical).combine)},
		{sig: "bool_or(bool) bool", make: fixed(func() Accumulator { return &logical{or: true} }), combine: combining((*logical).combine)},
	}
	for _, op := range []struct {
		name string
		op   byte
	}{{"bit_and", '&'}, {"bit_or", '|'}, {"bit_xor", '#'}} {
		for _, t := range []string{"int2", "int4", "int8"} {
			out = append(out, aggDecl{sig: op.name + "(" + t + ") " + t, combine: combining((*bitwise).combine),
				make: fixed(func() Accumulator { return &bitwise{op: op.op} })})
		}
	}
	return out
}

// joined implements string_agg.
type joined struct {
	some bool
	buf  []byte
}

func (j *joined) Add(_ *Env, a []types.Datum) error {
	if a[0].IsNull() {
		return nil
	}
	if j.some && !a[1].IsNull() {
		j.buf = append(j.buf, a[1].Bytes()...)
	}
	j.some = true
	j.buf = append(j.buf, a[0].Bytes()...)
	return nil
}

func (j *joined) Result(*Env) (types.Datum, error) {
	if !j.some {
		return types.Null, nil
	}
	return types.Bytes(j.buf[:len(j.buf):len(j.buf)]), nil
}

// collected implements array_agg.
type collected struct {
	elem  types.Type
	elems []types.Datum
}

func (c *collected) Add(_ *Env, a []types.Datum) error {
	c.elems = append(c.elems, a[0].Clone())
	return nil
}

func (c *collected) Result(*Env) (types.Datum, error) {
	if c.elems == nil {
		return types.Null, nil
	}
	return types.NewArray(&types.Array{Elem: c.elem, Elems: c.elems[:len(c.elems):len(c.elems)]}), nil
}

// nested implements array_agg of arrays, and ARRAY(…) of a subquery of arrays.
type nested struct {
	elem  types.Type
	first *types.Array
	elems []types.Datum
	count int
}

func (c *nested) Add(_ *Env, a []types.Datum) error { return c.add(a[0]) }

func (c *nested) add(d types.Datum) error {
	if d.IsNull() {
		return pgerror.New(pgerror.NullValueNotAllowed, "cannot accumulate null arrays")
	}
	a := d.Array()
	switch {
	case len(a.Elems) == 0:
		return pgerror.New(pgerror.ArraySubscriptError, "cannot accumulate empty arrays")
	case c.first == nil:
		if err := types.CheckNDims(a.NDims() + 1); err != nil {
			return err
		}
		c.first = a.WithElems(c.elem, a.Elems).Clone().Array()
	case !slices.Equal(c.first.AllDims(), a.AllDims()):
		return pgerror.New(pgerror.ArraySubscriptError, "cannot accumulate arrays of different dimensionality")
	}
	if len(c.elems)+len(a.Elems) > types.MaxArrayElems {
		return types.ErrArraySize()
	}
	c.elems = append(c.elems, types.Row(a.Elems).Clone()...)
	c.count++
	return nil
}

func (c *nested) Result(*Env) (types.Datum, error) {
	if c.first == nil {
		return types.Null, nil
	}
	dims := append([]types.Dim{{Low: 1, Len: int32(c.count)}}, c.first.AllDims()...)
	return types.NewDimArray(c.elem, c.elems[:len(c.elems):len(c.elems)], dims), nil
}

// ArrayOfArrays returns the array of arrays that ARRAY(…) of a subquery makes.
func ArrayOfArrays(elem types.Type, arrays []types.Datum) (types.Datum, error) {
	c := &nested{elem: elem}
	for _, d := range arrays {
		if err := c.add(d); err != nil {
			return types.Null, err
		}
	}
	if c.first == nil {
		return types.NewArray(&types.Array{Elem: elem, Elems: []types.Datum{}}), nil
	}
	return c.Result(nil)
}

func collectAggs() []aggDecl {
	return []aggDecl{
		{sig: "string_agg(text,text) text", make: fixed(func() Accumulator { return new(joined) }), flags: aggOrdered},
		{sig: "string_agg(bytea,bytea) bytea", make: fixed(func() Accumulator { return new(joined) }), flags: aggOrdered},
		{sig: "array_agg(anynonarray) anyarray", flags: aggOrdered | aggKeepsNulls,
			make: func(o *Overload) func() Accumulator {
				return func() Accumulator { return &collected{elem: o.Args[0]} }
			}},
		{sig: "array_agg(anyarray) anyarray", flags: aggOrdered | aggKeepsNulls,
			make: func(o *Overload) func() Accumulator {
				return func() Accumulator { return &nested{elem: o.Args[0].Elem()} }
			}},
	}
}
