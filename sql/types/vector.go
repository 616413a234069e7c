package types

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// The vectors of the system tables, int2vector and oidvector, are arrays of one dimension that begins with 0 and has no NULLs. Their text form
// is the numbers, separated by blanks. They order as arrays do; PostgreSQL puts the shorter oidvector first.

// IsVector reports whether t is int2vector or oidvector.
func (t Type) IsVector() bool { return t.OID == OIDInt2vector || t.OID == OIDOidvector }

// Vector returns a datum of an int2vector or oidvector.
func Vector(t Type, numbers []Datum) Datum {
	return NewDimArray(t.Elem(), numbers, []Dim{{0, int32(len(numbers))}})
}

func parseVector(t Type, s string) (Datum, error) {
	bits, unsigned := 16, t.OID == OIDOidvector
	if unsigned {
		bits = 64
	}
	elems := []Datum{}
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r < 128 && isSpace(byte(r)) }) {
		if unsigned {
			d, err := parseOid(word)
			if err != nil {
				return Null, err
			}
			elems = append(elems, d)
			continue
		}
		n, err := strconv.ParseInt(word, 10, bits)
		if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
			return Null, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type smallint", word)
		}
		if err != nil {
			return Null, badSyntax("smallint", word)
		}
		elems = append(elems, Int(n))
	}
	return Vector(t, elems), nil
}

func appendVector(dst []byte, a *Array) []byte {
	for i, d := range a.Elems {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendInt(dst, d.n)
	}
	return dst
}

// checkVector refuses an array that is no vector.
func checkVector(t Type, a *Array) error {
	bad := a.NDims() > 1 || a.NDims() == 1 && a.Dim(0).Low != 0
	for _, d := range a.Elems {
		bad = bad || d.IsNull()
	}
	if bad {
		return pgerror.New(pgerror.InvalidBinaryRepresentation, "invalid %s data", t.Info().Name)
	}
	return nil
}
