package types

import (
	"math"
	"slices"

	"github.com/percodb/percodb/sql/pgerror"
)

// Range is a value of a range type. Lower and Upper are NULL where it has no bound; both are if it is empty. A value of a multirange
// type is an array of its ranges: in order, none of them empty, no two of them overlapping or adjacent.
type Range struct {
	Sub                Type // of the bounds, without modifier
	Lower, Upper       Datum
	LowerInc, UpperInc bool
	Empty              bool
}

// RangeTypes are a range type, its multirange type and the type of the bounds.
type RangeTypes struct {
	Range, Multi, Sub Type
	// next returns the value after one of a discrete type; nil: the type is continuous.
	next func(Datum) (Datum, error)
}

// The built-in range and multirange types.
const (
	OIDInt4Range      OID = 3904
	OIDNumRange       OID = 3906
	OIDTsRange        OID = 3908
	OIDTstzRange      OID = 3910
	OIDDateRange      OID = 3912
	OIDInt8Range      OID = 3926
	OIDInt4Multirange OID = 4451
	OIDNumMultirange  OID = 4532
	OIDTsMultirange   OID = 4533
	OIDTstzMultirange OID = 4534
	OIDDateMultirange OID = 4535
	OIDInt8Multirange OID = 4536
)

// builtinRanges are the range types of PostgreSQL itself, by the OIDs of the ranges and of the multiranges.
var builtinRanges = map[OID]*RangeTypes{}

// builtinRangeList lists them in the order of their OIDs.
var builtinRangeList []*RangeTypes

func init() {
	for _, x := range []struct {
		name, multiName               string
		oid, array, multi, multiArray OID
		sub                           Type
		next                          func(Datum) (Datum, error)
	}{
		{"int4range", "int4multirange", OIDInt4Range, 3905, OIDInt4Multirange, 6150, TInt4, nextInt4},
		{"numrange", "nummultirange", OIDNumRange, 3907, OIDNumMultirange, 6151, TNumeric, nil},
		{"tsrange", "tsmultirange", OIDTsRange, 3909, OIDTsMultirange, 6152, TTimestamp, nil},
		{"tstzrange", "tstzmultirange", OIDTstzRange, 3911, OIDTstzMultirange, 6153, TTimestamptz, nil},
		{"daterange", "datemultirange", OIDDateRange, 3913, OIDDateMultirange, 6155, TDate, nextDate},
		{"int8range", "int8multirange", OIDInt8Range, 3927, OIDInt8Multirange, 6157, TInt8, nextInt8},
	} {
		times := x.sub.Category() == CategoryDateTime
		rt := &RangeTypes{Range: Type{OID: x.oid, Mod: -1}, Multi: Type{OID: x.multi, Mod: -1}, Sub: x.sub, next: x.next}
		builtinRanges[x.oid], builtinRanges[x.multi] = rt, rt
		builtinRangeList = append(builtinRangeList, rt)
		register(&Methods{
			Info:         Info{x.oid, x.name, x.name, x.array, 0, -1, CategoryRange, false, KindRange},
			SessionInput: times, SessionOutput: times,
			Parse:   func(s string, _ int32, f *Format) (Datum, error) { return rt.parse(s, f) },
			Append:  func(dst []byte, d Datum, f *Format) []byte { return rt.append(dst, d.Range(), f) },
			Receive: func(b []byte, _ int32, f *Format) (Datum, error) { return rt.receive(b, f) },
			Send:    func(dst []byte, d Datum) []byte { return rt.send(dst, d.Range()) },
		})
		register(&Methods{
			Info:         Info{x.multi, x.multiName, x.multiName, x.multiArray, 0, -1, CategoryRange, false, KindArray},
			SessionInput: times, SessionOutput: times,
			Parse:   func(s string, _ int32, f *Format) (Datum, error) { return rt.parseMulti(s, f) },
			Append:  func(dst []byte, d Datum, f *Format) []byte { return rt.appendMulti(dst, d, f) },
			Receive: func(b []byte, _ int32, f *Format) (Datum, error) { return rt.receiveMulti(b, f) },
			Send:    func(dst []byte, d Datum) []byte { return rt.sendMulti(dst, d) },
		})
	}
	slices.SortFunc(builtinRangeList, func(a, b *RangeTypes) int { return int(a.Range.OID) - int(b.Range.OID) })
}

// BuiltinRanges lists PostgreSQL's own range types. The slice must not be changed.
func BuiltinRanges() []*RangeTypes { return builtinRangeList }

// Ranges returns the range and multirange type of which t, which is no domain, is one; nil if it is neither.
func (t Type) Ranges() *RangeTypes {
	if t.Def == nil {
		return builtinRanges[t.OID]
	}
	if t.OID == t.Def.OID {
		return t.Def.ranges
	}
	return nil
}

// IsRange reports whether t, which is no domain, is a range type.
func (t Type) IsRange() bool {
	rt := t.Ranges()
	return rt != nil && rt.Range.OID == t.OID
}

// IsMultirange reports whether t, which is no domain, is a multirange type.
func (t Type) IsMultirange() bool {
	rt := t.Ranges()
	return rt != nil && rt.Multi.OID == t.OID
}

func nextInt4(d Datum) (Datum, error) {
	if d.n == math.MaxInt32 {
		return Null, pgerror.New(pgerror.NumericValueOutOfRange, "integer out of range")
	}
	return Int(d.n + 1), nil
}

func nextInt8(d Datum) (Datum, error) {
	if d.n == math.MaxInt64 {
		return Null, pgerror.New(pgerror.NumericValueOutOfRange, "bigint out of range")
	}
	return Int(d.n + 1), nil
}

// nextDate returns infinities as they are.
func nextDate(d Datum) (Datum, error) {
	if !DateFinite(d.n) {
		return d, nil
	}
	if !ValidDate(d.n + 1) {
		return Null, pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range")
	}
	return Int(d.n + 1), nil
}

// Range returns a KindRange's value, which must not be changed.
func (d Datum) Range() *Range { return (*Range)(d.p) }

// EmptyRange returns the empty range.
func (rt *RangeTypes) EmptyRange() Datum { return NewRange(&Range{Sub: rt.Sub, Empty: true}) }

// Make returns the range of two bounds, NULL for none, in its canonical form.
//
// Errors: 22000 if the lower bound is greater than the upper one, 22003 and 22008 if the canonical form has no bound of the type.
func (rt *RangeTypes) Make(lower, upper Datum, lowerInc, upperInc bool) (Datum, error) {
	r := &Range{Sub: rt.Sub, Lower: lower, Upper: upper, LowerInc: lowerInc && !lower.IsNull(), UpperInc: upperInc && !upper.IsNull()}
	empty, err := r.hasNothing()
	if err != nil {
		return Null, err
	}
	if !empty && rt.next != nil {
		if err := rt.canonicalize(r); err != nil {
			return Null, err
		}
		if empty, err = r.hasNothing(); err != nil {
			return Null, err
		}
	}
	if empty {
		return rt.EmptyRange(), nil
	}
	return NewRange(r), nil
}

// hasNothing reports whether no value is between the bounds.
func (r *Range) hasNothing() (bool, error) {
	if r.Lower.IsNull() || r.Upper.IsNull() {
		return false, nil
	}
	c := Compare(r.Lower, r.Upper, r.Sub)
	if c > 0 {
		return false, pgerror.New(pgerror.DataException, "range lower bound must be less than or equal to range upper bound")
	}
	return c == 0 && !(r.LowerInc && r.UpperInc), nil
}

// canonicalize gives a range of a discrete type an inclusive lower and an exclusive upper bound.
func (rt *RangeTypes) canonicalize(r *Range) (err error) {
	finite := func(d Datum) bool { return rt.Sub.OID != OIDDate || DateFinite(d.n) }
	if !r.Lower.IsNull() && !r.LowerInc && finite(r.Lower) {
		if r.Lower, err = rt.next(r.Lower); err != nil {
			return err
		}
		r.LowerInc = true
	}
	if !r.Upper.IsNull() && r.UpperInc && finite(r.Upper) {
		if r.Upper, err = rt.next(r.Upper); err != nil {
			return err
		}
		r.UpperInc = false
	}
	return nil
}

// Bound is an end of a range that is not empty.
type Bound struct {
	Value            Datum // NULL: the range has no such bound
	Inclusive, Lower bool
}

// Low returns the lower bound.
func (r *Range) Low() Bound { return Bound{r.Lower, r.LowerInc, true} }

// High returns the upper bound.
func (r *Range) High() Bound { return Bound{r.Upper, r.UpperInc, false} }

// FromBounds is Make for bounds.
func (rt *RangeTypes) FromBounds(lower, upper Bound) (Datum, error) {
	return rt.Make(lower.Value, upper.Value, lower.Inclusive, upper.Inclusive)
}

// CompareBounds orders bounds of ranges by where the values begin, or end: a lower bound that is exclusive is after an inclusive one of
// the same value, an upper one before it.
func (rt *RangeTypes) CompareBounds(a, b Bound) int { return compareBounds(a, b, rt.Sub) }

func compareBounds(a, b Bound, sub Type) int {
	switch {
	case a.Value.IsNull() && b.Value.IsNull():
		if a.Lower == b.Lower {
			return 0
		}
		return outward(a)
	case a.Value.IsNull():
		return outward(a)
	case b.Value.IsNull():
		return -outward(b)
	}
	if c := Compare(a.Value, b.Value, sub); c != 0 {
		return c
	}
	switch {
	case !a.Inclusive && !b.Inclusive && a.Lower == b.Lower:
		return 0
	case !a.Inclusive:
		return -outward(a)
	case !b.Inclusive:
		return outward(b)
	}
	return 0
}

// outward is the direction from a bound out of its range.
func outward(b Bound) int {
	if b.Lower {
		return -1
	}
	return 1
}

// compareRanges orders ranges by their lower and then their upper bounds, the empty one first.
func compareRanges(a, b *Range, t Type) int {
	switch {
	case a.Empty && b.Empty:
		return 0
	case a.Empty:
		return -1
	case b.Empty:
		return 1
	}
	sub := a.Sub
	if rt := t.Ranges(); rt != nil {
		sub = rt.Sub
	}
	if c := compareBounds(a.Low(), b.Low(), sub); c != 0 {
		return c
	}
	return compareBounds(a.High(), b.High(), sub)
}

// hashRange hashes what compareRanges compares.
func hashRange(r *Range, t Type) uint64 {
	sub := r.Sub
	if rt := t.Ranges(); rt != nil {
		sub = rt.Sub
	}
	h := mix(uint64(r.flags()))
	for _, d := range []Datum{r.Lower, r.Upper} {
		if !d.IsNull() {
			h = mix(h*31 + Hash(d, sub))
		}
	}
	return h
}

// Adjacent reports whether nothing is between the upper and the lower bound of two ranges, nor in both.
func (rt *RangeTypes) Adjacent(upper, lower Bound) bool {
	if upper.Value.IsNull() || lower.Value.IsNull() {
		return false
	}
	switch c := Compare(upper.Value, lower.Value, rt.Sub); {
	case c > 0:
		return false
	case c == 0:
		return upper.Inclusive != lower.Inclusive
	case rt.next == nil:
		return false
	}
	between, err := rt.Make(upper.Value, lower.Value, !upper.Inclusive, !lower.Inclusive)
	return err == nil && between.Range().Empty
}

// Multirange returns the multirange of ranges in any order. ranges is changed. poll, unless it is nil, is called from time to time.
func (rt *RangeTypes) Multirange(ranges []Datum, poll func(steps int) error) (Datum, error) {
	ranges = slices.DeleteFunc(ranges, func(d Datum) bool { return d.Range().Empty })
	if poll != nil {
		if err := poll(len(ranges)); err != nil {
			return Null, err
		}
	}
	if !slices.IsSortedFunc(ranges, rt.order) {
		slices.SortStableFunc(ranges, rt.order)
	}
	kept := ranges[:0]
	for i, d := range ranges {
		if i == 0 {
			kept = append(kept, d)
			continue
		}
		last, r := kept[len(kept)-1].Range(), d.Range()
		if rt.CompareBounds(last.High(), r.Low()) < 0 && !rt.Adjacent(last.High(), r.Low()) {
			kept = append(kept, d)
			continue
		}
		low, high := last.Low(), r.High()
		if rt.CompareBounds(low, r.Low()) == 0 { // Of equal bounds the second counts.
			low = r.Low()
		}
		if rt.CompareBounds(last.High(), high) > 0 {
			high = last.High()
		}
		joined, err := rt.FromBounds(low, high)
		if err != nil {
			return Null, err
		}
		kept[len(kept)-1] = joined
	}
	return rt.multi(kept), nil
}

func (rt *RangeTypes) order(a, b Datum) int { return compareRanges(a.Range(), b.Range(), rt.Range) }

// multi returns a multirange of ranges in its form.
func (rt *RangeTypes) multi(ranges []Datum) Datum {
	if ranges == nil {
		ranges = []Datum{}
	}
	return NewArray(&Array{Elem: rt.Range, Elems: ranges})
}

// conform is Conform for a range or multirange.
func (rt *RangeTypes) conform(v Datum) Datum {
	if v.kind == KindRange {
		r := *v.Range()
		r.Sub, r.Lower, r.Upper = rt.Sub, Conform(r.Lower, rt.Sub), Conform(r.Upper, rt.Sub)
		return NewRange(&r)
	}
	ranges := make([]Datum, len(v.Array().Elems))
	for i, e := range v.Array().Elems {
		ranges[i] = rt.conform(e)
	}
	return rt.multi(ranges)
}
