package types

import (
	"math"
	"unsafe"

	"github.com/cockroachdb/apd/v3"
)

// Kind is the representation of a Datum's bits; the SQL type is Type.
type Kind uint8

// The representations of a datum.
const (
	KindNull     Kind = iota
	KindBool          // boolean
	KindInt           // smallint … bigint, oid; date (days since 2000-01-01); time, timestamp, timestamptz (µs since midnight / 2000-01-01 UTC)
	KindFloat         // real, double precision
	KindBytes         // text, varchar, char, name, bytea, uuid (16 bytes), aclitem (12 bytes), json (its text), jsonb (jsonb.Value)
	KindDecimal       // numeric
	KindInterval      // interval
	KindArray         // arrays
	KindRow           // records
	KindRange         // ranges; multiranges are arrays of them
)

// Datum is one SQL value: 24 bytes and not an interface, so that a row is one slice without pointers per value. Bytes
// may alias the page that they were read from; Clone what must remain valid longer. The zero Datum is NULL.
type Datum struct {
	kind Kind
	n    int64 // bool, int, float bits; length of bytes
	p    unsafe.Pointer
}

// Row is a tuple of datums.
type Row []Datum

// Interval stores months, days and microseconds separately, as PostgreSQL does.
type Interval struct {
	Months, Days int32
	Micros       int64
}

// Null is SQL's NULL.
var Null = Datum{}

// Bool returns a boolean datum.
func Bool(b bool) Datum {
	if b {
		return Datum{kind: KindBool, n: 1}
	}
	return Datum{kind: KindBool}
}

// Int returns a datum of any type that is represented by an integer.
func Int(v int64) Datum { return Datum{kind: KindInt, n: v} }

// Float returns a real or double precision datum.
func Float(v float64) Datum { return Datum{kind: KindFloat, n: int64(math.Float64bits(v))} }

// Bytes returns a datum that aliases b.
func Bytes(b []byte) Datum {
	return Datum{kind: KindBytes, n: int64(len(b)), p: unsafe.Pointer(unsafe.SliceData(b))}
}

// Text returns a datum that aliases s, the same as Bytes.
func Text(s string) Datum {
	return Datum{kind: KindBytes, n: int64(len(s)), p: unsafe.Pointer(unsafe.StringData(s))}
}

// Decimal returns a numeric datum; d must not change afterwards.
func Decimal(d *apd.Decimal) Datum { return Datum{kind: KindDecimal, p: unsafe.Pointer(d)} }

// NewInterval returns an interval datum.
func NewInterval(iv Interval) Datum { return Datum{kind: KindInterval, p: unsafe.Pointer(&iv)} }

// NewArray returns an array datum; a must not change afterwards.
func NewArray(a *Array) Datum { return Datum{kind: KindArray, p: unsafe.Pointer(a)} }

// Record is an anonymous record: its fields, and their types for printing and comparison.
type Record struct {
	Types  []Type
	Names  []string // nil: f1, f2, …
	Fields Row
	// IDs identify the fields of a value of a composite type; nil: 1, 2, …
	IDs []uint32
}

// NewRecord returns an anonymous record; types and fields have the same length and must not change afterwards.
func NewRecord(types []Type, fields Row) Datum {
	return Datum{kind: KindRow, p: unsafe.Pointer(&Record{Types: types, Fields: fields})}
}

// NewNamedRecord is NewRecord with the names of the fields.
func NewNamedRecord(types []Type, names []string, fields Row) Datum {
	return Datum{kind: KindRow, p: unsafe.Pointer(&Record{Types: types, Names: names, Fields: fields})}
}

// NewStoredRecord returns a record as it was stored, whose type Conform gives it.
func NewStoredRecord(ids []uint32, fields Row) Datum {
	return Datum{kind: KindRow, p: unsafe.Pointer(&Record{Types: make([]Type, len(fields)), Fields: fields, IDs: ids})}
}

// NewRange returns a range datum; r must be canonical and must not change afterwards.
func NewRange(r *Range) Datum { return Datum{kind: KindRange, p: unsafe.Pointer(r)} }

// Kind returns the representation; KindNull for NULL.
func (d Datum) Kind() Kind { return d.kind }

// IsNull reports whether d is NULL.
func (d Datum) IsNull() bool { return d.kind == KindNull }

// Bool returns a KindBool's value.
func (d Datum) Bool() bool { return d.n != 0 }

// Int returns a KindInt's value.
func (d Datum) Int() int64 { return d.n }

// Float returns a KindFloat's value.
func (d Datum) Float() float64 { return math.Float64frombits(uint64(d.n)) }

// Bytes returns a KindBytes' value, which must not be changed.
func (d Datum) Bytes() []byte { return unsafe.Slice((*byte)(d.p), int(d.n)) }

// Text returns a KindBytes' value as a string that aliases it.
func (d Datum) Text() string { return unsafe.String((*byte)(d.p), int(d.n)) }

// Decimal returns a KindDecimal's value, which must not be changed.
func (d Datum) Decimal() *apd.Decimal { return (*apd.Decimal)(d.p) }

// Interval returns a KindInterval's value.
func (d Datum) Interval() Interval { return *(*Interval)(d.p) }

// Array returns a KindArray's value, which must not be changed.
func (d Datum) Array() *Array { return (*Array)(d.p) }

// Record returns a KindRow's value, which must not be changed.
func (d Datum) Record() *Record { return (*Record)(d.p) }

// Clone returns a datum that shares no bytes with what d may alias. Numerics, intervals, arrays and records are
// immutable and on the heap, so they are shared; byte elements of an array and byte fields of a record are cloned.
func (d Datum) Clone() Datum {
	switch d.kind {
	case KindBytes:
		return Bytes(append(make([]byte, 0, d.n), d.Bytes()...))
	case KindArray:
		a := d.Array()
		return a.WithElems(a.Elem, Row(a.Elems).Clone())
	case KindRow:
		r := *d.Record()
		r.Fields = r.Fields.Clone()
		return Datum{kind: KindRow, p: unsafe.Pointer(&r)}
	case KindRange:
		r := *d.Range()
		r.Lower, r.Upper = r.Lower.Clone(), r.Upper.Clone()
		return NewRange(&r)
	}
	return d
}

// Clone returns a row whose datums share no bytes with what r's may alias: one allocation for the
// datums and one for all their bytes.
func (r Row) Clone() Row {
	out := make(Row, len(r))
	r.CloneInto(out)
	return out
}

// CloneInto clones r into dst, which has r's length, with one allocation for all bytes.
func (r Row) CloneInto(dst Row) {
	total := 0
	for i := range r {
		if r[i].kind == KindBytes {
			total += int(r[i].n)
		}
	}
	var buf []byte
	if total > 0 {
		buf = make([]byte, 0, total)
	}
	for i := range r {
		switch r[i].kind {
		case KindBytes:
			start := len(buf)
			buf = append(buf, r[i].Bytes()...)
			dst[i] = Bytes(buf[start:len(buf):len(buf)])
		case KindArray, KindRow, KindRange:
			dst[i] = r[i].Clone()
		default:
			dst[i] = r[i]
		}
	}
}

// DatumBytes is the size of a datum without the memory that it points to.
const DatumBytes = int64(unsafe.Sizeof(Datum{}))

// LargeBytes is the minimum size of a large value.
const LargeBytes = 8 << 10

// Large reports whether d may have LargeBytes or more: it is text or bytes of that size, or an array, a record or a range of such values.
func (d Datum) Large() bool {
	if d.kind == KindRange {
		return d.Range().Lower.Large() || d.Range().Upper.Large()
	}
	return d.n >= LargeBytes && d.kind == KindBytes || d.kind == KindArray || d.kind == KindRow
}

// ShallowSize is Size without the memory that an array's elements or a record's fields point to.
func (d Datum) ShallowSize() int {
	const base = int(unsafe.Sizeof(Datum{}))
	switch d.kind {
	case KindBytes:
		return base + int(d.n)
	case KindArray:
		return base * (1 + len(d.Array().Elems))
	case KindRow:
		return base * (1 + len(d.Record().Fields))
	case KindRange:
		return base + int(unsafe.Sizeof(Range{}))
	}
	return base
}

// Size estimates the bytes of memory of d, including those that it points to.
func (d Datum) Size() int {
	const base = int(unsafe.Sizeof(Datum{}))
	switch d.kind {
	case KindBytes:
		return base + int(d.n)
	case KindDecimal:
		return base + int(d.Decimal().Size())
	case KindInterval:
		return base + int(unsafe.Sizeof(Interval{}))
	case KindArray:
		return base + int(unsafe.Sizeof(Array{})) + d.Array().elemsSize()
	case KindRow:
		return base + int(unsafe.Sizeof(Record{})) + d.Record().Fields.Size()
	case KindRange:
		return base + int(unsafe.Sizeof(Range{})) + d.Range().Lower.Size() + d.Range().Upper.Size()
	}
	return base
}

// Size estimates the bytes of memory of r.
func (r Row) Size() int {
	n := 0
	for i := range r {
		n += r[i].Size()
	}
	return n
}
