package types

import (
	"encoding/binary"

	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/pgerror"
)

// OIDRegcollation is the type of names of collations.
const OIDRegcollation OID = 4191

// TRegcollation is the type of names of collations.
var TRegcollation = Type{OID: OIDRegcollation, Mod: -1}

func init() {
	registerObjectName(Info{OIDRegcollation, "regcollation", "regcollation", 4192, 0, 4, CategoryNumeric, false, KindInt},
		func(s string, f *Format) (OID, error) {
			if f != nil && f.Names != nil {
				return f.Names.CollationOID(s)
			}
			if c := collation.ByName(s); c != nil {
				return OID(c.OID), nil
			}
			return 0, pgerror.New(pgerror.UndefinedObject, "collation \"%s\" for encoding \"UTF8\" does not exist", s)
		},
		func(oid OID, f *Format) (string, bool) {
			if f != nil && f.Names != nil {
				return f.Names.CollationName(oid)
			}
			if c := collation.ByOID(uint32(oid)); c != nil {
				return c.Name, true
			}
			return "", false
		})
}

// registerObjectName registers a type whose values are OIDs of objects, and whose text form is their names: a number reads as itself, and
// "-" as 0. A value that names no object prints as a number.
func registerObjectName(info Info, read func(s string, f *Format) (OID, error), write func(oid OID, f *Format) (string, bool)) {
	register(&Methods{
		Info: info, Borrows: OIDOid, SessionInput: true, SessionOutput: true,
		Parse: func(s string, _ int32, f *Format) (Datum, error) {
			switch {
			case allDigits(s):
				return parseOid(s)
			case s == "-":
				return Int(0), nil
			}
			n, err := read(s, f)
			return Int(int64(n)), err
		},
		Append: func(dst []byte, d Datum, f *Format) []byte {
			if d.n == 0 {
				return append(dst, '-')
			}
			if name, ok := write(OID(d.n), f); ok {
				return append(dst, name...)
			}
			return appendInt(dst, d.n)
		},
		Receive: func(b []byte, _ int32, _ *Format) (Datum, error) {
			if err := requireSize(b, 4); err != nil {
				return Null, err
			}
			return Int(int64(binary.BigEndian.Uint32(b))), nil
		},
		Send: func(dst []byte, d Datum) []byte { return binary.BigEndian.AppendUint32(dst, uint32(d.n)) },
	})
}
