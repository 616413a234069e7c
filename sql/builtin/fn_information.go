package builtin

import (
	"math"
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The functions of information_schema, which PostgreSQL's own views and drivers call.

// InformationSchema is the source of the functions of information_schema.
const InformationSchema Sources = 1 << 31

// informationSchema declares these functions as those of an extension are, which is always installed in its schema and on which nothing depends.
var informationSchema = &Extension{
	Name: "information_schema", Schema: "information_schema", source: InformationSchema, functions: informationFuncs, sets: informationSets,
}

// NoLimit is a property that a type does not have.
const NoLimit = math.MinInt32

// TypeLimits are the properties of a type with its modifier that information_schema shows; NoLimit and "" for those that it does not have.
type TypeLimits struct {
	CharMaxLength, CharOctetLength int
	Precision, Radix, Scale        int // of numbers
	DatetimePrecision              int
	IntervalType                   string // the fields of an interval, with their precision
}

// LimitsOf returns the limits of a type, which is no domain's.
func LimitsOf(t types.Type) TypeLimits {
	l := TypeLimits{NoLimit, NoLimit, NoLimit, NoLimit, NoLimit, NoLimit, ""}
	number := func(bits, radix, scale int) { l.Precision, l.Radix, l.Scale = bits, radix, scale }
	const unlimited = 1 << 30 // octets
	switch t.OID {
	case types.OIDInt2:
		number(16, 2, 0)
	case types.OIDInt4:
		number(32, 2, 0)
	case types.OIDInt8:
		number(64, 2, 0)
	case types.OIDFloat4:
		number(24, 2, NoLimit)
	case types.OIDFloat8:
		number(53, 2, NoLimit)
	case types.OIDNumeric:
		if number(NoLimit, 10, NoLimit); t.Mod != -1 {
			// The modifier is (precision << 16 | scale) + 4, the scale in 11 bits with a sign.
			mod := t.Mod - 4
			number(int(mod>>16&0xFFFF), 10, int(mod&0x7FF^1024)-1024)
		}
	case types.OIDVarchar, types.OIDBPChar:
		if l.CharOctetLength = unlimited; t.Mod != -1 {
			l.CharMaxLength = int(t.Mod) - 4
			l.CharOctetLength = 4 * l.CharMaxLength
		}
	case types.OIDText:
		if l.CharOctetLength = unlimited; t.Mod != -1 {
			l.CharOctetLength = NoLimit
		}
	case types.OIDBit, types.OIDVarbit:
		if t.Mod != -1 {
			l.CharMaxLength = int(t.Mod)
		}
	case types.OIDDate:
		l.DatetimePrecision = 0
	case types.OIDTime, types.OIDTimetz, types.OIDTimestamp, types.OIDTimestamptz:
		if l.DatetimePrecision = int(t.Mod); t.Mod < 0 {
			l.DatetimePrecision = 6
		}
	case types.OIDInterval:
		if l.DatetimePrecision = int(t.Mod & 0xFFFF); t.Mod < 0 || l.DatetimePrecision == 0xFFFF {
			l.DatetimePrecision = 6
		}
		if _, fields, limited := strings.Cut(t.String(), " "); limited {
			l.IntervalType = strings.ToUpper(fields)
		}
	}
	return l
}

func informationFuncs() []decl {
	of := func(name string, limit func(*TypeLimits) int) decl {
		return decl{sig: name + "(oid,int4) int4", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			l := LimitsOf(types.Type{OID: oidArg(a[0]), Mod: int32(a[1].Int())})
			n := limit(&l)
			if n == NoLimit {
				return types.Null, nil
			}
			if n < math.MinInt32 || n > math.MaxInt32 {
				return types.Null, errInt4Range()
			}
			return types.Int(int64(n)), nil
		}}
	}
	return []decl{
		of("_pg_char_max_length", func(l *TypeLimits) int { return l.CharMaxLength }),
		of("_pg_char_octet_length", func(l *TypeLimits) int { return l.CharOctetLength }),
		of("_pg_numeric_precision", func(l *TypeLimits) int { return l.Precision }),
		of("_pg_numeric_precision_radix", func(l *TypeLimits) int { return l.Radix }),
		of("_pg_numeric_scale", func(l *TypeLimits) int { return l.Scale }),
		of("_pg_datetime_precision", func(l *TypeLimits) int { return l.DatetimePrecision }),
		{sig: "_pg_interval_type(oid,int4) text", fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
			l := LimitsOf(types.Type{OID: oidArg(a[0]), Mod: int32(a[1].Int())})
			if l.IntervalType == "" {
				return types.Null, nil
			}
			return types.Text(l.IntervalType), nil
		}},
		trueType("_pg_truetypid(record,record) oid", attributeTypid, typeBasetype),
		trueType("_pg_truetypmod(record,record) int4", attributeTypmod, typeTypmod),
		{sig: "_pg_index_position(oid,int2) int4", flags: stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			if env.Catalog == nil {
				return types.Null, nil
			}
			if i := slices.Index(env.Catalog.IndexKey(oidArg(a[0])), a[1].Int()); i >= 0 {
				return types.Int(int64(i + 1)), nil
			}
			return types.Null, nil
		}},
	}
}

// The places of columns in rows of pg_attribute and pg_type.
const (
	attributeTypid, attributeTypmod       = 2, 8
	typeTyptype, typeBasetype, typeTypmod = 6, 25, 26
)

// trueType declares a function of a row of pg_attribute and one of pg_type: a column of the first, or of the second if the type is a domain.
func trueType(sig string, ofAttribute, ofDomain int) decl {
	return decl{sig: sig, fn: func(_ *Env, a []types.Datum) (types.Datum, error) {
		attribute, typ := a[0].Record().Fields, a[1].Record().Fields
		switch {
		case len(attribute) <= ofAttribute || len(typ) <= ofDomain:
			return types.Null, pgerror.New(pgerror.DatatypeMismatch, "the arguments must be rows of pg_attribute and pg_type")
		case typ[typeTyptype].IsNull() || typ[typeTyptype].Text() != "d":
			return attribute[ofAttribute], nil
		}
		return typ[ofDomain], nil
	}}
}

func informationSets() []setDecl {
	return []setDecl{{
		sig: "_pg_expandarray(anyarray) record", estimate: 100, open: openExpandArray,
		columnsFor: func(o *Overload) []SetColumn { return []SetColumn{{"x", elementOf(o.Args[0])}, {"n", types.TInt4}} },
	}}
}

// elementOf returns the type of the elements of an array or a vector.
func elementOf(t types.Type) types.Type {
	if elem := t.Underlying().Elem(); elem.Valid() {
		return elem
	}
	return types.Type{OID: t.Underlying().Info().Elem, Mod: -1}
}

// openExpandArray yields the elements of an array with their places, from 1 on.
func openExpandArray(o *Overload) openFunc {
	elem := elementOf(o.Args[0])
	return func(_ *Env, a []types.Datum) (SetRows, error) {
		array := a[0].Array()
		rows := &expandedArray{types: []types.Type{elem, types.TInt4}}
		switch array.NDims() {
		case 0:
		case 1:
			rows.rest = array.Elems
		default: // With one subscript, the elements of an array with several dimensions are NULL.
			rows.rest = make([]types.Datum, array.Dim(0).Len)
		}
		return rows, nil
	}
}

type expandedArray struct {
	types []types.Type
	rest  []types.Datum
	n     int64
}

func (s *expandedArray) Next(*Env) (types.Datum, bool, error) {
	if len(s.rest) == 0 {
		return types.Null, false, nil
	}
	x := s.rest[0]
	s.rest = s.rest[1:]
	s.n++
	return types.NewRecord(s.types, types.Row{x, types.Int(s.n)}), true, nil
}
