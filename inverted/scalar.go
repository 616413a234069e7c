package inverted

import (
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// scalarClasses are the operator classes of the extension btree_gin: the only term of a value is itself.
var scalarClasses = map[types.OID]Class{
	types.OIDInt2: "int2_ops", types.OIDInt4: "int4_ops", types.OIDInt8: "int8_ops", types.OIDFloat4: "float4_ops", types.OIDFloat8: "float8_ops",
	types.OIDNumeric: "numeric_ops", types.OIDMoney: "money_ops", types.OIDOid: "oid_ops", types.OIDTimestamp: "timestamp_ops",
	types.OIDTimestamptz: "timestamptz_ops", types.OIDTime: "time_ops", types.OIDTimetz: "timetz_ops", types.OIDDate: "date_ops",
	types.OIDInterval: "interval_ops", types.OIDMacaddr: "macaddr_ops", types.OIDMacaddr8: "macaddr8_ops", types.OIDInet: "inet_ops",
	types.OIDCidr: "cidr_ops", types.OIDText: "text_ops", types.OIDVarchar: "varchar_ops", types.OIDChar: "char_ops", types.OIDBytea: "bytea_ops",
	types.OIDBit: "bit_ops", types.OIDVarbit: "varbit_ops", types.OIDUUID: "uuid_ops", types.OIDName: "name_ops", types.OIDBool: "bool_ops",
	types.OIDBPChar: "bpchar_ops",
}

// enumClass is that of all enums.
const enumClass Class = "enum_ops"

// scalarTypes are the types of scalarClasses.
var scalarTypes = func() map[Class]types.OID {
	m := map[Class]types.OID{}
	for id, c := range scalarClasses {
		m[c] = id
	}
	return m
}()

// IsScalar reports whether the class is one of the extension btree_gin.
func (c Class) IsScalar() bool { return c == enumClass || scalarTypes[c] != 0 }

// scalarClass returns the class of values that are their own terms, "" for values of other types.
func scalarClass(t types.Type) Class {
	if t.IsEnum() {
		return enumClass
	}
	return scalarClasses[t.OID]
}

// acceptsScalar reports whether values of type t may be of a scalar class: varchar and text are stored alike.
func (c Class) acceptsScalar(t types.Type) bool {
	return scalarClass(t) == c || scalarTypes[c] == types.OIDText && t.OID == types.OIDVarchar
}

// scalarValueTerm is the term of a scalar. Collations do not decide whether values are equal.
func scalarValueTerm(d types.Datum, t types.Type) ([]byte, error) {
	t = t.Underlying()
	t.Coll = nil
	return rowenc.AppendValue(nil, t, d)
}

// servesScalar reports whether a value of a scalar class can be found by a value of type arg that it is equal to.
func (c Class) servesScalar(arg types.Type) bool {
	if c == enumClass {
		return arg.IsEnum()
	}
	of := scalarTypes[c]
	return arg.OID == of || isInteger(of) && isInteger(arg.OID) || isText(of) && isText(arg.OID)
}

func isInteger(id types.OID) bool {
	return id == types.OIDInt2 || id == types.OIDInt4 || id == types.OIDInt8
}

func isText(id types.OID) bool { return id == types.OIDText || id == types.OIDVarchar }
