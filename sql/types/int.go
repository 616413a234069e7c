package types

import (
	"math"
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// isSpace is C's isspace in the C locale.
func isSpace(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}

func trimSpace(s string) string {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// parseInt reads a decimal integer of the given bits, blanks around it allowed.
func parseInt(s string, bits uint, typeName string) (Datum, error) {
	digits := trimSpace(s)
	negative := false
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return Null, badSyntax(typeName, s)
	}
	limit := uint64(1)<<(bits-1) - 1
	if negative {
		limit++
	}
	var n uint64
	for i := 0; i < len(digits); i++ {
		c := digits[i] - '0'
		if c > 9 {
			return Null, badSyntax(typeName, s)
		}
		if n > limit/10 || n*10+uint64(c) > limit {
			return Null, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", s, typeName)
		}
		n = n*10 + uint64(c)
	}
	if negative {
		return Int(-int64(n)), nil
	}
	return Int(int64(n)), nil
}

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i]-'0' > 9 {
			return false
		}
	}
	return len(s) > 0
}

func badSyntax(typeName, s string) error {
	return pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", typeName, s)
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

// parseOid reads an unsigned 32-bit number; like strtoul it accepts a sign and wraps.
func parseOid(s string) (Datum, error) {
	digits := trimSpace(s)
	unsigned := strings.TrimLeft(digits, "+-")
	if !allDigits(unsigned) || len(digits)-len(unsigned) > 1 {
		return Null, badSyntax("oid", s)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxUint32 || n < math.MinInt32 {
		return Null, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type oid", s)
	}
	return Int(int64(uint32(n))), nil
}

func parseRegclass(s string, f *Format) (Datum, error) {
	return parseReg(s, f, Names.RelationOID, pgerror.UndefinedTable, "relation")
}

func appendRegclass(dst []byte, n int64, f *Format) []byte {
	return appendReg(dst, n, f, Names.RelationName)
}

func parseRegnamespace(s string, f *Format) (Datum, error) {
	return parseReg(s, f, Names.SchemaOID, pgerror.InvalidSchemaName, "schema")
}

func appendRegnamespace(dst []byte, n int64, f *Format) []byte {
	return appendReg(dst, n, f, Names.SchemaName)
}

// parseReg reads the name or number of an object of the given kind. Without names, code is the error for a name.
func parseReg(s string, f *Format, oidOf func(Names, string) (OID, error), code pgerror.Code, kind string) (Datum, error) {
	if allDigits(s) {
		return parseOid(s)
	}
	if s == "-" {
		return Int(0), nil
	}
	if f.Names == nil {
		return Null, pgerror.New(code, "%s \"%s\" does not exist", kind, s)
	}
	oid, err := oidOf(f.Names, s)
	return Int(int64(oid)), err
}

// appendReg appends the name of an object, or its number if the name is unknown.
func appendReg(dst []byte, n int64, f *Format, nameOf func(Names, OID) (string, bool)) []byte {
	if n == 0 {
		return append(dst, '-')
	}
	if f.Names != nil {
		if name, ok := nameOf(f.Names, OID(n)); ok {
			return append(dst, name...)
		}
	}
	return appendInt(dst, n)
}

func parseRegtype(s string, f *Format) (Datum, error) {
	if allDigits(s) {
		return parseOid(s)
	}
	if s == "-" {
		return Int(0), nil
	}
	if id := unsupportedType(s); id != 0 {
		return Int(int64(id)), nil
	}
	t, err := ParseTypeName(s, f.Names)
	return Int(int64(t.OID)), err
}

func appendRegtype(dst []byte, n int64, f *Format) []byte {
	if n == 0 {
		return append(dst, '-')
	}
	if info := infos[OID(n)]; info != nil {
		return append(dst, info.SQLName...)
	}
	if f.Names != nil {
		if name, ok := f.Names.TypeName(OID(n)); ok {
			return append(dst, name...)
		}
	}
	if name := unsupportedName(OID(n)); name != "" {
		return append(dst, name...)
	}
	return appendInt(dst, n)
}

// parseBool accepts any prefix of true, false, yes and no, and on, off, 1 and 0.
func parseBool(s string) (Datum, error) {
	v, ok := BoolValue(trimSpace(s))
	if !ok {
		return Null, badSyntax("boolean", s)
	}
	return Bool(v), nil
}

// BoolValue reads a boolean as PostgreSQL's parse_bool does for input and settings.
func BoolValue(s string) (v, ok bool) {
	if len(s) == 0 || len(s) > 5 {
		return false, false
	}
	prefix := func(word string, least int) bool {
		return len(s) >= least && len(s) <= len(word) && strings.EqualFold(s, word[:len(s)])
	}
	switch {
	case prefix("true", 1), prefix("yes", 1), s == "1", prefix("on", 2):
		return true, true
	case prefix("false", 1), prefix("no", 1), s == "0", prefix("off", 2):
		return false, true
	}
	return false, false
}

// parseRoutine reads a function or an operator.
func parseRoutine(t Type, s string, f *Format) (Datum, error) {
	switch {
	case allDigits(s):
		return parseOid(s)
	case s == "-" && (t.OID == OIDRegproc || t.OID == OIDRegprocedure):
		return Int(0), nil
	case f.Names == nil:
		return Null, pgerror.New(pgerror.UndefinedFunction, "function or operator \"%s\" does not exist", s)
	}
	oid, err := f.Names.RoutineOID(t.OID, s)
	return Int(int64(oid)), err
}

func appendRoutine(dst []byte, t Type, n int64, f *Format) []byte {
	if n == 0 && (t.OID == OIDRegproc || t.OID == OIDRegprocedure) {
		return append(dst, '-')
	}
	if f.Names != nil && n != 0 {
		if name, ok := f.Names.RoutineName(t.OID, OID(n)); ok {
			return append(dst, name...)
		}
	}
	return appendInt(dst, n)
}
