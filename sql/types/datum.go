package types

import (
	"math"
	"unsafe"

	"github.com/cockroachdb/apd/v3"
)

// Kind says how a Datum's bits are to be read. It is about representation; the SQL type is Type.
type Kind uint8

// The representations of a datum.
const (
	KindNull     Kind = iota
	KindBool          // boolean
	KindInt           // smallint … bigint, oid; date (days since 2000-01-01); time, timestamp, timestamptz (µs since midnight / 2000-01-01 UTC)
	KindFloat         // real, double precision
	KindBytes         // text, varchar, char, name, bytea, uuid (16 bytes)
	KindDecimal       // numeric
	KindInterval      // interval
	KindArray         // arrays
	KindRow           // anonymous records
)

// Datum is one SQL value: 24 bytes, no interface, so that a row is one flat slice. Bytes may alias
// the page they were read from; Clone what outlives it. The zero Datum is NULL.
type Datum struct {
	kind Kind
	n    int64 // bool, int, float bits; length of bytes
	p    unsafe.Pointer
}

// Row is a tuple of datums.
type Row []Datum

// Interval keeps months, days and microseconds apart, as PostgreSQL does.
type Interval struct {
	Months, Days int32
	Micros       int64
}

// Array is a one-dimensional array with lower bound 1; Elem is the element type.
type Array struct {
	Elem  Type
	Elems []Datum
}

// Null is SQL's NULL.
var Null = Datum{}

// Bool makes a boolean.
func Bool(b bool) Datum {
	if b {
		return Datum{kind: KindBool, n: 1}
	}
	return Datum{kind: KindBool}
}

// Int makes a datum of any integer-represented type.
func Int(v int64) Datum { return Datum{kind: KindInt, n: v} }

// Float makes a real or double precision.
func Float(v float64) Datum { return Datum{kind: KindFloat, n: int64(math.Float64bits(v))} }

// Bytes makes a datum that aliases b.
func Bytes(b []byte) Datum {
	return Datum{kind: KindBytes, n: int64(len(b)), p: unsafe.Pointer(unsafe.SliceData(b))}
}

// Text makes a datum that aliases s.
func Text(s string) Datum {
	return Datum{kind: KindBytes, n: int64(len(s)), p: unsafe.Pointer(unsafe.StringData(s))}
}

// Decimal makes a numeric; d must not change afterwards.
func Decimal(d *apd.Decimal) Datum { return Datum{kind: KindDecimal, p: unsafe.Pointer(d)} }

// NewInterval makes an interval.
func NewInterval(iv Interval) Datum { return Datum{kind: KindInterval, p: unsafe.Pointer(&iv)} }

// NewArray makes an array; a must not change afterwards.
func NewArray(a *Array) Datum { return Datum{kind: KindArray, p: unsafe.Pointer(a)} }

// NewRecord makes an anonymous record; r must not change afterwards.
func NewRecord(r Row) Datum {
	return Datum{kind: KindRow, n: int64(len(r)), p: unsafe.Pointer(unsafe.SliceData(r))}
}

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

// Record returns a KindRow's fields, which must not be changed.
func (d Datum) Record() Row { return unsafe.Slice((*Datum)(d.p), int(d.n)) }
