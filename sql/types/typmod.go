package types

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

const (
	maxCharLength  = 10485760
	maxNumericPrec = 1000
	maxNumScale    = 1000
	maxTimePrec    = 6
)

// The bits of an interval's field mask and the value of its absent precision.
const (
	intervalMaskMonth     = 1 << 1
	intervalMaskYear      = 1 << 2
	intervalMaskDay       = 1 << 3
	intervalMaskHour      = 1 << 10
	intervalMaskMinute    = 1 << 11
	intervalMaskSecond    = 1 << 12
	intervalFullRange     = 0x7FFF
	intervalFullPrecision = 0xFFFF
)

// typeMod encodes written modifiers as PostgreSQL's typmod.
func typeMod(t Type, name string, mods []int) (int32, error) {
	switch t.OID {
	case OIDVarchar, OIDBPChar:
		return charMod(t, mods)
	case OIDNumeric:
		return numericTypeMod(mods)
	case OIDTime, OIDTimestamp, OIDTimestamptz:
		return timeMod(t, mods)
	case OIDInterval:
		return intervalMod(mods)
	}
	if m := t.Methods(); m != nil && m.ModIn != nil {
		return m.ModIn(mods)
	}
	return 0, pgerror.New(pgerror.SyntaxError, "type modifier is not allowed for type \"%s\"", name)
}

func charMod(t Type, mods []int) (int32, error) {
	name := "varchar"
	if t.OID == OIDBPChar {
		name = "char"
	}
	switch {
	case len(mods) != 1:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid type modifier")
	case mods[0] < 1:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "length for type %s must be at least 1", name)
	case mods[0] > maxCharLength:
		return 0, pgerror.New(pgerror.InvalidParameterValue, "length for type %s cannot exceed %d", name, maxCharLength)
	}
	return int32(mods[0] + 4), nil
}

func numericTypeMod(mods []int) (int32, error) {
	if len(mods) > 2 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid NUMERIC type modifier")
	}
	p, s := mods[0], 0
	if len(mods) == 2 {
		s = mods[1]
	}
	if p < 1 || p > maxNumericPrec {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "NUMERIC precision %d must be between 1 and %d", p, maxNumericPrec)
	}
	if s < -maxNumScale || s > maxNumScale {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "NUMERIC scale %d must be between %d and %d", s, -maxNumScale, maxNumScale)
	}
	return MakeNumericMod(p, s), nil
}

// MakeNumericMod encodes numeric(precision, scale).
func MakeNumericMod(precision, scale int) int32 {
	return int32(precision<<16|scale&0x7ff) + 4
}

// NumericMod decodes a numeric's modifier.
func NumericMod(mod int32) (precision, scale int) {
	m := int(mod) - 4
	return m >> 16 & 0xffff, (m&0x7ff ^ 1024) - 1024
}

func timeMod(t Type, mods []int) (int32, error) {
	if len(mods) != 1 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid type modifier")
	}
	if mods[0] < 0 {
		name, zone := "TIMESTAMP", ""
		if t.OID == OIDTime {
			name = "TIME"
		}
		if t.OID == OIDTimestamptz {
			zone = " WITH TIME ZONE"
		}
		return 0, pgerror.New(pgerror.InvalidParameterValue, "%s(%d)%s precision must not be negative", name, mods[0], zone)
	}
	return int32(min(mods[0], maxTimePrec)), nil
}

// IntervalType returns interval with written modifiers: a mask of fields, perhaps followed by the precision of seconds.
func IntervalType(mods []int) (Type, error) {
	t := TInterval
	if len(mods) == 0 {
		return t, nil
	}
	mod, err := intervalMod(mods)
	t.Mod = mod
	return t, err
}

// intervalMod packs a mask of fields, perhaps followed by the precision of seconds.
func intervalMod(mods []int) (int32, error) {
	mask, prec := mods[0], intervalFullPrecision
	if len(mods) == 2 {
		prec = mods[1]
	}
	if len(mods) > 2 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid INTERVAL type modifier")
	}
	if _, ok := intervalFields[mask]; !ok {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "invalid INTERVAL type modifier")
	}
	if prec < 0 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "INTERVAL(%d) precision must not be negative", prec)
	}
	if prec != intervalFullPrecision {
		prec = min(prec, maxTimePrec)
	}
	if mask == intervalFullRange && prec == intervalFullPrecision {
		return -1, nil
	}
	return int32(mask<<16 | prec), nil
}

// intervalFields names the field masks that a type may have.
var intervalFields = map[int]string{
	intervalFullRange:                     "",
	intervalMaskYear:                      " year",
	intervalMaskMonth:                     " month",
	intervalMaskDay:                       " day",
	intervalMaskHour:                      " hour",
	intervalMaskMinute:                    " minute",
	intervalMaskSecond:                    " second",
	intervalMaskYear | intervalMaskMonth:  " year to month",
	intervalMaskDay | intervalMaskHour:    " day to hour",
	intervalMaskHour | intervalMaskMinute: " hour to minute",
	intervalMaskDay | intervalMaskHour | intervalMaskMinute:                      " day to minute",
	intervalMaskDay | intervalMaskHour | intervalMaskMinute | intervalMaskSecond: " day to second",
	intervalMaskHour | intervalMaskMinute | intervalMaskSecond:                   " hour to second",
	intervalMaskMinute | intervalMaskSecond:                                      " minute to second",
}

func intervalModString(mod int32) string {
	s := intervalFields[int(mod>>16)&0x7FFF]
	if p := int(mod) & 0xFFFF; p != intervalFullPrecision {
		s += "(" + strconv.Itoa(p) + ")"
	}
	return s
}

// ParseTypeName reads a type in SQL's notation, as regtype's input does: "numeric(10,2)[]", "timestamp(3) with time
// zone", "pg_catalog.int4". names has the user-defined types; nil: there are none.
func ParseTypeName(s string, names Names) (Type, error) {
	bad := func() error {
		return pgerror.New(pgerror.UndefinedObject, "type \"%s\" does not exist", strings.TrimSpace(s))
	}
	local := withoutSystemSchema(strings.TrimSpace(s))
	words, mods, dims, ok := splitTypeName(local)
	if !ok || len(words) == 0 {
		return Type{}, bad()
	}
	name := strings.Join(words, " ")
	if strings.HasPrefix(local, `"`) {
		t, err := Lookup(name, mods, dims)
		if err != nil && names != nil {
			return definedTypeName(s, names)
		}
		return t, err
	}
	switch name {
	case "char", "character", "nchar":
		name = "bpchar"
		if mods == nil {
			mods = []int{1}
		}
	case "bit":
		if mods == nil {
			mods = []int{1}
		}
	case "interval":
		if len(mods) == 1 { // interval(3) is written with the precision alone.
			mods = []int{intervalFullRange, mods[0]}
		}
	}
	t, err := Lookup(name, mods, dims)
	if e, isPG := err.(*pgerror.Error); isPG && e.Code == pgerror.UndefinedObject {
		if names != nil {
			return definedTypeName(s, names)
		}
		return Type{}, bad()
	}
	return t, err
}

// withoutSystemSchema returns a type's name without the schema pg_catalog, quoted or not.
func withoutSystemSchema(s string) string {
	schema, name, ok := strings.Cut(s, ".")
	if ok && (strings.EqualFold(schema, "pg_catalog") || schema == `"pg_catalog"`) {
		return name
	}
	return s
}

// definedTypeName reads the name of a user-defined type, with brackets if it is the type's arrays.
func definedTypeName(s string, names Names) (Type, error) {
	s = strings.TrimSpace(s)
	dims := trimBrackets(s)
	t, err := names.TypeNamed(s[:len(s)-2*dims])
	if err != nil || dims == 0 || t.IsArray() {
		return t, err
	}
	return t.ArrayOf(), nil
}

// splitTypeName splits a type into its lower-cased words, the numbers in its parentheses (which may be between words)
// and the number of its brackets.
func splitTypeName(s string) (words []string, mods []int, dims int, ok bool) {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == ' ' || c == '\t' || c == '\n':
			i++
		case c == '"':
			end := strings.IndexByte(s[i+1:], '"')
			if end < 0 {
				return nil, nil, 0, false
			}
			words = append(words, s[i+1:i+1+end])
			i += end + 2
		case c == '(':
			end := strings.IndexByte(s[i:], ')')
			if end < 0 || mods != nil {
				return nil, nil, 0, false
			}
			for _, part := range strings.Split(s[i+1:i+end], ",") {
				n, err := strconv.Atoi(strings.TrimSpace(part))
				if err != nil {
					return nil, nil, 0, false
				}
				mods = append(mods, n)
			}
			i += end + 1
		case c == '[':
			end := strings.IndexByte(s[i:], ']')
			if end < 0 {
				return nil, nil, 0, false
			}
			dims++
			i += end + 1
		default:
			end := strings.IndexAny(s[i:], " \t\n\"([")
			if end < 0 {
				end = len(s) - i
			}
			words = append(words, strings.ToLower(s[i:i+end]))
			i += end
		}
	}
	return words, mods, dims, true
}
