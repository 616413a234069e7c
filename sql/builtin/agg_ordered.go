package builtin

import (
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// OrderedSet reports whether the aggregate is one WITHIN GROUP.
func (a *Aggregate) OrderedSet() bool { return IsOrderedSet(a.Name) }

// OrderedSet is the accumulator of an aggregate WITHIN GROUP. Begin comes once, after all rows of the group are known: with the direct
// arguments, and the number of rows, which then arrive by Add in order. A hypothetical-set aggregate is not given the rows, but how each
// compares with the hypothetical one, and whether it equals the row before.
type OrderedSet interface {
	Accumulator
	Begin(direct []types.Datum, rows int64) error
}

// orderedAggs are the declarations of ordered-set aggregates: their direct arguments, then the aggregated one.
func orderedAggs() []aggDecl {
	discrete := func(o *Overload) func() Accumulator {
		return func() Accumulator { return &percentiles{pick: pickDiscrete, result: o.Ret} }
	}
	continuous := func(lerp lerpFunc) func(*Overload) func() Accumulator {
		return func(o *Overload) func() Accumulator {
			return func() Accumulator { return &percentiles{pick: pickContinuous, lerp: lerp, result: o.Ret} }
		}
	}
	return []aggDecl{
		{sig: "percentile_cont(float8,float8) float8", make: continuous(lerpFloat)},
		{sig: "percentile_cont(float8,interval) interval", make: continuous(lerpInterval)},
		{sig: "percentile_cont(float8[],float8) float8[]", make: continuous(lerpFloat)},
		{sig: "percentile_cont(float8[],interval) interval[]", make: continuous(lerpInterval)},
		{sig: "percentile_disc(float8,anyelement) anyelement", make: discrete},
		{sig: "percentile_disc(float8[],anyelement) anyarray", make: discrete},
		{sig: "mode(anyelement) anyelement", make: func(o *Overload) func() Accumulator {
			return func() Accumulator { return &mode{t: o.Args[0]} }
		}},
	}
}

// orderedSets are the ordered-set aggregates that take their rows in order, by name.
var orderedSets = sync.OnceValue(func() map[string][]aggOverload { return declareAggregates(orderedAggs()) })

// hypothetical are the hypothetical-set aggregates: the type of each, and its accumulator.
var hypothetical = map[string]struct {
	ret types.Type
	of  func(h *hypotheticalRow) types.Datum
}{
	"rank":       {types.TInt8, func(h *hypotheticalRow) types.Datum { return types.Int(h.before + 1) }},
	"dense_rank": {types.TInt8, func(h *hypotheticalRow) types.Datum { return types.Int(h.distinct + 1) }},
	"percent_rank": {types.TFloat8, func(h *hypotheticalRow) types.Datum {
		if h.rows == 0 {
			return types.Float(0)
		}
		return types.Float(float64(h.before) / float64(h.rows))
	}},
	"cume_dist": {types.TFloat8, func(h *hypotheticalRow) types.Datum {
		return types.Float(float64(h.upTo+1) / float64(h.rows+1))
	}},
}

// IsOrderedSet reports whether an aggregate WITHIN GROUP has the name.
func IsOrderedSet(name string) bool {
	_, found := hypothetical[name]
	return found || orderedSets()[name] != nil
}

// IsHypotheticalSet reports whether a hypothetical-set aggregate has the name.
func IsHypotheticalSet(name string) bool {
	_, found := hypothetical[name]
	return found
}

// ResolveOrderedSet finds the overload of an ordered-set aggregate for its direct arguments and those it orders by. The Args of a
// hypothetical-set aggregate are the direct ones alone: each is compared with what is ordered by at its place, whose type ordered has.
//
// Errors: as ResolveAggregate.
func ResolveOrderedSet(name string, direct, ordered []types.Type) (*Aggregate, error) {
	args := slices.Concat(direct, ordered)
	if h, found := hypothetical[name]; found {
		if len(direct) != len(ordered) {
			return nil, ErrNoFunction(name, args).WithHint(
				"To use the hypothetical-set aggregate " + name + ", the number of hypothetical direct arguments (here " + strconv.Itoa(len(direct)) +
					") must match the number of ordering columns (here " + strconv.Itoa(len(ordered)) + ").")
		}
		return &Aggregate{Name: name, Args: direct, Ret: h.ret, Direct: len(direct), Hypothetical: true,
			NewAccumulator: func() Accumulator { return &hypotheticalRow{of: h.of} },
			declared:       hypotheticalOverload(name, h.ret)}, nil
	}
	agg, err := SystemFunc(name).resolveAggregate(orderedSets()[name], args)
	if err != nil {
		return nil, err
	}
	if want := len(agg.Args) - 1; len(direct) != want {
		return nil, ErrNoFunction(name, args).WithHint(
			"There is an ordered-set aggregate " + name + ", but it requires " + strconv.Itoa(want) + " direct arguments, not " + strconv.Itoa(len(direct)) + ".")
	}
	agg.Direct, agg.NullsIgnored = len(direct), true
	return agg, nil
}

// hypotheticalOverload is the declaration of a hypothetical-set aggregate.
func hypotheticalOverload(name string, ret types.Type) *Overload {
	return parseSignature(name + "(variadic any) " + ret.Info().Name)
}

// lerpFunc returns the value at a proportion between two.
type lerpFunc func(low, high types.Datum, at float64) (types.Datum, error)

func lerpFloat(low, high types.Datum, at float64) (types.Datum, error) {
	return types.Float(low.Float() + at*(high.Float()-low.Float())), nil
}

func lerpInterval(low, high types.Datum, at float64) (types.Datum, error) {
	diff, err := subInterval(high.Interval(), low.Interval())
	if err == nil {
		if diff, err = MulInterval(diff, at); err == nil {
			diff, err = AddInterval(low.Interval(), diff)
		}
	}
	return types.NewInterval(diff), err
}

// place is where the value of a percentile lies among the rows: at first, or between first and second.
type place struct {
	first, second int64
	between       float64
	null          bool // the percentile is NULL
	low, high     types.Datum
}

func pickDiscrete(p float64, rows int64) place {
	at := max(int64(math.Ceil(p*float64(rows)))-1, 0)
	return place{first: at, second: at}
}

func pickContinuous(p float64, rows int64) place {
	at := p * float64(rows-1)
	return place{first: int64(math.Floor(at)), second: int64(math.Ceil(at)), between: at - math.Floor(at)}
}

// percentiles implements percentile_cont and percentile_disc.
type percentiles struct {
	pick   func(p float64, rows int64) place
	lerp   lerpFunc
	result types.Type

	array  *types.Array // the percentiles wanted; nil: one
	places []place
	order  []int // of places, by the rows that they need
	next   int
	row    int64
	none   bool
}

func (s *percentiles) Begin(direct []types.Datum, rows int64) error {
	d := direct[0]
	if d.IsNull() || rows == 0 {
		s.none = true
		return nil
	}
	fractions := []types.Datum{d}
	if d.Kind() == types.KindArray {
		s.array = d.Array()
		fractions = s.array.Elems
	}
	for i, f := range fractions {
		if f.IsNull() {
			s.places = append(s.places, place{null: true})
			continue
		}
		p := f.Float()
		if p < 0 || p > 1 || math.IsNaN(p) {
			return pgerror.New(pgerror.NumericValueOutOfRange, "percentile value %s is not between 0 and 1", strconv.FormatFloat(p, 'g', 6, 64))
		}
		s.places = append(s.places, s.pick(p, rows))
		s.order = append(s.order, i)
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return int(s.places[a].first - s.places[b].first) })
	return nil
}

func (s *percentiles) Add(_ *Env, args []types.Datum) error {
	for i := s.next; i < len(s.order); i++ {
		p := &s.places[s.order[i]]
		if p.first > s.row {
			break
		}
		if p.first == s.row {
			p.low = args[0].Clone()
		}
		if p.second == s.row {
			p.high = args[0].Clone()
		}
		if i == s.next && p.second <= s.row {
			s.next++
		}
	}
	s.row++
	return nil
}

func (s *percentiles) Result(*Env) (types.Datum, error) {
	if s.none {
		return types.Null, nil
	}
	values := make([]types.Datum, len(s.places))
	for i := range s.places {
		p := &s.places[i]
		switch {
		case p.null:
			values[i] = types.Null
		case p.first == p.second:
			values[i] = p.low
		default:
			var err error
			if values[i], err = s.lerp(p.low, p.high, p.between); err != nil {
				return types.Null, err
			}
		}
	}
	if s.array == nil {
		return values[0], nil
	}
	out := *s.array
	out.Elem, out.Elems = s.result.Elem(), values // The dimensions stay.
	return types.NewArray(&out), nil
}

// mode implements mode: of the most frequent values the first.
type mode struct {
	t          types.Type
	last, best types.Datum
	n, most    int64
}

func (m *mode) Begin([]types.Datum, int64) error { return nil }

func (m *mode) Add(_ *Env, args []types.Datum) error {
	if m.n == 0 || types.Compare(m.last, args[0], m.t) != 0 {
		m.last, m.n = args[0].Clone(), 0
	}
	if m.n++; m.n > m.most {
		m.best, m.most = m.last, m.n
	}
	return nil
}

func (m *mode) Result(*Env) (types.Datum, error) {
	if m.most == 0 {
		return types.Null, nil
	}
	return m.best, nil
}

// hypotheticalRow counts the rows before the hypothetical one.
type hypotheticalRow struct {
	of                           func(*hypotheticalRow) types.Datum
	rows, before, upTo, distinct int64
}

func (h *hypotheticalRow) Begin(_ []types.Datum, rows int64) error {
	h.rows = rows
	return nil
}

// Add takes how a row compares with the hypothetical one, and whether it equals the row before.
func (h *hypotheticalRow) Add(_ *Env, args []types.Datum) error {
	if c := args[0].Int(); c <= 0 {
		h.upTo++
		if c < 0 {
			h.before++
			if !args[1].Bool() {
				h.distinct++
			}
		}
	}
	return nil
}

func (h *hypotheticalRow) Result(*Env) (types.Datum, error) { return h.of(h), nil }
