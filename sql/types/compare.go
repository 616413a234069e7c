package types

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types/jsonb"
	"github.com/percodb/percodb/sql/types/tsearch"
)

// Compare orders two non-NULL datums of type t: negative, zero or positive, as PostgreSQL's btree
// operator class of t does (text in the C collation). Neither may be NULL, but array elements and
// record fields may: they come last.
func Compare(a, b Datum, t Type) int {
	switch a.kind {
	case KindInt, KindBool:
		return cmp.Compare(a.n, b.n)
	case KindBytes:
		t = t.Underlying()
		if t.OID == OIDBPChar {
			return t.Coll.Compare(TrimBPChar(a.Bytes()), TrimBPChar(b.Bytes()))
		}
		if t.OID == OIDJSONB {
			return jsonb.Compare(a.Bytes(), b.Bytes())
		}
		if t.OID == OIDCitext {
			return compareCitext(a, b, t.Coll)
		}
		if t.OID == OIDTSQuery {
			return bytes.Compare(tsearch.QueryOrder(a.Bytes()), tsearch.QueryOrder(b.Bytes()))
		}
		if t.Coll != nil {
			return t.Coll.Compare(a.Bytes(), b.Bytes())
		}
		return bytes.Compare(a.Bytes(), b.Bytes())
	case KindFloat:
		return CompareFloat(a.Float(), b.Float())
	case KindDecimal:
		return CompareNumeric(a.Decimal(), b.Decimal())
	case KindInterval:
		return CompareInterval(a.Interval(), b.Interval())
	case KindArray:
		return compareArrays(a.Array(), b.Array(), t.Underlying())
	case KindRow:
		return compareRecords(a.Record(), b.Record())
	case KindRange:
		return compareRanges(a.Range(), b.Range(), t.Underlying())
	}
	return 0
}

// bytewise reports whether equal values of a type that is represented by bytes are equal bytes.
func (t Type) bytewise() bool {
	return t.OID != OIDBPChar && t.OID != OIDJSONB && t.OID != OIDCitext && t.OID != OIDTSQuery
}

// Equal reports whether two non-NULL datums of type t are equal.
func Equal(a, b Datum, t Type) bool {
	switch a.kind {
	case KindInt, KindBool:
		return a.n == b.n
	case KindBytes:
		t = t.Underlying()
		if t.bytewise() {
			return a.n == b.n && bytes.Equal(a.Bytes(), b.Bytes())
		}
	}
	return Compare(a, b, t) == 0
}

// CompareFloat orders floats with NaN last and equal to itself.
func CompareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	aNaN, bNaN := math.IsNaN(a), math.IsNaN(b)
	switch {
	case aNaN && bNaN:
		return 0
	case aNaN:
		return 1
	}
	return -1
}

// intervalSpan is an interval's length as days and the microseconds left over, a month being 30
// days. It is what intervals are compared by.
func intervalSpan(iv Interval) (days, micros int64) {
	days = int64(iv.Months)*30 + int64(iv.Days) + iv.Micros/MicrosPerDay
	micros = iv.Micros % MicrosPerDay
	if micros < 0 {
		micros += MicrosPerDay
		days--
	}
	return days, micros
}

// CompareInterval orders intervals by length, a month being 30 days of 24 hours.
func CompareInterval(a, b Interval) int {
	aDays, aMicros := intervalSpan(a)
	bDays, bMicros := intervalSpan(b)
	if c := cmp.Compare(aDays, bDays); c != 0 {
		return c
	}
	return cmp.Compare(aMicros, bMicros)
}

// compareNullable orders datums that may be NULL, NULLs last.
func compareNullable(a, b Datum, t Type) int {
	switch {
	case a.IsNull() && b.IsNull():
		return 0
	case a.IsNull():
		return 1
	case b.IsNull():
		return -1
	case a.kind != b.kind: // of records whose fields are of different types
		return cmp.Compare(a.kind, b.kind)
	}
	return Compare(a, b, t)
}

// compareArrays orders arrays of type t; the zero Type is the type that they have, and may state their collation.
func compareArrays(a, b *Array, t Type) int {
	elem := t.Elem()
	if !elem.Valid() {
		if elem = a.Elem; a.Elem.OID != b.Elem.OID {
			return cmp.Compare(a.Elem.OID, b.Elem.OID)
		}
		elem.Coll = t.Coll
	}
	for i := 0; i < len(a.Elems) && i < len(b.Elems); i++ {
		if c := compareNullable(a.Elems[i], b.Elems[i], elem); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(len(a.Elems), len(b.Elems)); c != 0 || a.Dims == nil && b.Dims == nil {
		return c
	}
	return compareDims(a.AllDims(), b.AllDims())
}

// compareDims orders the dimensions of arrays with the same elements: by their number, then the lengths, then the lower bounds.
func compareDims(a, b []Dim) int {
	c := cmp.Compare(len(a), len(b))
	for i := 0; c == 0 && i < len(a); i++ {
		c = cmp.Compare(a[i].Len, b[i].Len)
	}
	for i := 0; c == 0 && i < len(a); i++ {
		c = cmp.Compare(a[i].Low, b[i].Low)
	}
	return c
}

// compareRecords orders records. Fields of different types are ordered by their types, whose values have nothing in common:
// CheckSimilar finds them.
func compareRecords(a, b *Record) int {
	for i := 0; i < len(a.Fields) && i < len(b.Fields); i++ {
		if c := compareTypes(a.Types[i], b.Types[i]); c != 0 {
			return c
		}
		if c := compareNullable(a.Fields[i], b.Fields[i], a.Types[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a.Fields), len(b.Fields))
}

// compareTypes orders types; those of fields of stored records are not known, and equal every type.
func compareTypes(a, b Type) int {
	if !a.Valid() || !b.Valid() {
		return 0
	}
	return cmp.Compare(a.OID, b.OID)
}

// CheckSimilar returns 42804 if the comparison of two records, or of arrays of them, meets columns of different types or of
// different number before one that decides. equality says that they are compared for equality, not for order.
func CheckSimilar(a, b Datum, equality bool) error {
	if a.kind != b.kind {
		return nil
	}
	switch a.kind {
	case KindRow:
		return checkSimilarRecords(a.Record(), b.Record(), equality)
	case KindArray:
		x, y := a.Array(), b.Array()
		if x.Elem.KindOf() != KindRow {
			return nil
		}
		for i := 0; i < len(x.Elems) && i < len(y.Elems); i++ {
			if err := CheckSimilar(x.Elems[i], y.Elems[i], equality); err != nil || compareNullable(x.Elems[i], y.Elems[i], x.Elem) != 0 {
				return err
			}
		}
	}
	return nil
}

func checkSimilarRecords(a, b *Record, equality bool) error {
	for i := 0; i < len(a.Fields) && i < len(b.Fields); i++ {
		t, u := a.Types[i], b.Types[i]
		if compareTypes(t, u) != 0 {
			return pgerror.New(pgerror.DatatypeMismatch, "cannot compare dissimilar column types %s and %s at record column %d", t, u, i+1)
		}
		if !t.HasEquality() && equality {
			return pgerror.New(pgerror.UndefinedFunction, "could not identify an equality operator for type %s", t)
		}
		if !t.HasEquality() {
			return pgerror.New(pgerror.UndefinedFunction, "could not identify a comparison function for type %s", t)
		}
		if err := CheckSimilar(a.Fields[i], b.Fields[i], equality); err != nil {
			return err
		}
		if compareNullable(a.Fields[i], b.Fields[i], t) != 0 {
			return nil
		}
	}
	if len(a.Fields) != len(b.Fields) {
		return pgerror.New(pgerror.DatatypeMismatch, "cannot compare record types with different numbers of columns")
	}
	return nil
}

// hashNull is the hash of NULL, so that grouping may hash rows with NULLs.
const hashNull = 0x9e3779b97f4a7c15

// Hash hashes a datum of type t: equal datums hash equally, also across smallint, integer, bigint
// and oid. Hashes are not stable over releases.
func Hash(d Datum, t Type) uint64 {
	switch d.kind {
	case KindInt, KindBool:
		return mix(uint64(d.n))
	case KindBytes:
		t = t.Underlying()
		if t.OID == OIDBPChar {
			return xxhash.Sum64(TrimBPChar(d.Bytes()))
		}
		if t.OID == OIDJSONB {
			return jsonb.Hash(d.Bytes())
		}
		if t.OID == OIDCitext {
			return hashCitext(d)
		}
		if t.OID == OIDTSQuery {
			return xxhash.Sum64(tsearch.QueryOrder(d.Bytes()))
		}
		return xxhash.Sum64(d.Bytes())
	case KindFloat:
		return hashFloat(d.Float())
	case KindDecimal:
		return hashNumeric(d.Decimal())
	case KindInterval:
		days, micros := intervalSpan(d.Interval())
		return mix(mix(uint64(days)) ^ uint64(micros))
	case KindArray:
		a := d.Array()
		elem := t.Underlying().Elem()
		if !elem.Valid() {
			elem = a.Elem
		}
		return hashRow(a.Elems, func(int) Type { return elem })
	case KindRow:
		r := d.Record()
		return hashRow(r.Fields, func(i int) Type { return r.Types[i] })
	case KindRange:
		return hashRange(d.Range(), t.Underlying())
	}
	return hashNull
}

// mix is a finaliser that spreads every bit of x over the word.
func mix(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	return x
}

func hashFloat(v float64) uint64 {
	switch {
	case v == 0:
		v = 0 // both zeros
	case math.IsNaN(v):
		v = math.NaN()
	}
	return mix(math.Float64bits(v))
}

func hashRow(ds []Datum, typeOf func(int) Type) uint64 {
	h := uint64(len(ds))
	for i, d := range ds {
		h = mix(h*31 + Hash(d, typeOf(i)))
	}
	return h
}

// hashNumeric hashes the digits without trailing zeros, which the display scale may add.
func hashNumeric(d *apd.Decimal) uint64 {
	if d.Form != apd.Finite {
		return mix(uint64(numericRank(d)) + 0x5bd1e995)
	}
	exponent := int64(d.Exponent)
	if d.Coeff.IsUint64() {
		n := d.Coeff.Uint64()
		if n == 0 {
			return mix(0)
		}
		for n%10 == 0 {
			n /= 10
			exponent++
		}
		return mixNumeric(mix(n), exponent, d.Negative)
	}
	var reduced apd.Decimal
	reduced.Reduce(d)
	if reduced.Coeff.IsUint64() {
		return mixNumeric(mix(reduced.Coeff.Uint64()), int64(reduced.Exponent), d.Negative)
	}
	var word [8]byte
	h := uint64(0)
	digits := reduced.Coeff.Bytes()
	for len(digits) > 0 {
		n := copy(word[:], digits)
		clear(word[n:])
		h = mix(h ^ binary.LittleEndian.Uint64(word[:]))
		digits = digits[n:]
	}
	return mixNumeric(h, int64(reduced.Exponent), d.Negative)
}

func mixNumeric(h uint64, exponent int64, negative bool) uint64 {
	if negative {
		h = ^h
	}
	return mix(h + uint64(exponent)*hashNull)
}
