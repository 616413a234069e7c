package types

import (
	"time"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// DateStyle is the output half of PostgreSQL's DateStyle.
type DateStyle uint8

// The output styles of dates and times.
const (
	DateISO DateStyle = iota
	DateSQL
	DatePostgres
	DateGerman
)

// DateOrder is the input half of DateStyle: how 1/2/3 is read.
type DateOrder uint8

// The orders of day, month and year.
const (
	OrderMDY DateOrder = iota
	OrderDMY
	OrderYMD
)

// IntervalStyle is PostgreSQL's setting of that name.
type IntervalStyle uint8

// The output styles of intervals.
const (
	IntervalPostgres IntervalStyle = iota
	IntervalPostgresVerbose
	IntervalSQLStandard
	IntervalISO8601
)

// Names resolves the names of objects and roles in values.
type Names interface {
	// RelationName returns the name by which the search path finds the relation; false if there is none.
	RelationName(oid OID) (string, bool)
	// RelationOID resolves a possibly qualified and quoted name; 42P01 if there is none.
	RelationOID(name string) (OID, error)
	// SchemaName returns a schema's name; false if there is none.
	SchemaName(oid OID) (string, bool)
	// SchemaOID resolves a schema's name; 3F000 if there is none.
	SchemaOID(name string) (OID, error)
	// QuotedRole returns a role's name, in quotes if it needs them; false if there is none.
	QuotedRole(oid OID) (string, bool)
	// RoleOID resolves a role's possibly quoted name; 42704 if there is none.
	RoleOID(name string) (OID, error)
	// RoleName returns a role's name as it is; false if there is none.
	RoleName(oid OID) (string, bool)
	// RoleNamed finds a role by its name as it is; 42704 if there is none.
	RoleNamed(name string) (OID, error)
	// TypeName returns a user-defined type's name, in quotes where it needs them and qualified unless the search path finds it; false if
	// there is none.
	TypeName(oid OID) (string, bool)
	// TypeNamed resolves a possibly qualified and quoted name of a user-defined type; 42704 if there is none, 3F000 if its schema does
	// not exist.
	TypeNamed(name string) (Type, error)
	// TextSearchName returns the name of a configuration or a dictionary, as t is regconfig or regdictionary, in quotes where it needs them and
	// qualified unless the search path finds it; false if there is none.
	TextSearchName(t, oid OID) (string, bool)
	// TextSearchOID finds a configuration or a dictionary by such a name; 42704 if there is none.
	TextSearchOID(t OID, name string) (OID, error)
	// CollationName returns the name of a collation, in quotes where it needs them and qualified unless the search path finds it; false if
	// there is none.
	CollationName(oid OID) (string, bool)
	// CollationOID finds a collation by such a name; 42704 if there is none, 3F000 if its schema does not exist.
	CollationOID(name string) (OID, error)
	// RoutineName returns the name of a function or an operator as a value of type t prints it: regproc, regprocedure, regoper or
	// regoperator; false if there is none.
	RoutineName(t, oid OID) (string, bool)
	// RoutineOID finds a function or an operator by such a name; 42883 if there is none, 42725 if there are several.
	RoutineOID(t OID, name string) (OID, error)
}

// DomainChecker checks values against the constraints of domains.
type DomainChecker interface {
	// CheckDomain fails unless v, which may be NULL, satisfies the constraints of the domain and of those below it: 23502, 23514, and
	// the errors of evaluating them.
	CheckDomain(d *Defined, v Datum) error
}

// Format is the session settings on which the text forms of values depend. The zero Format is PostgreSQL's default with
// time zone UTC. It must not change while in use.
type Format struct {
	Location  *time.Location // nil: UTC
	DateStyle DateStyle
	DateOrder DateOrder
	Interval  IntervalStyle
	ByteaText bool  // bytea_output = escape
	FloatCut  int   // 1 - extra_float_digits when that is below 1; 0: shortest-exact
	Now       int64 // 'now' on input: µs since 2000-01-01 UTC, the transaction's start
	Names     Names // nil: regclass is read and printed as a number
	// Warn is called with the warnings of reading a value. nil: they are dropped.
	Warn func(*pgerror.Error)
	// Uncommitted reports whether a schema version is one that the transaction has made itself; nil: none is.
	Uncommitted func(version uint64) bool
	// Domains checks the values of domains that are read; nil: none can be.
	Domains DomainChecker
	// Poll is called from time to time while an array or a JSON text is read; an error ends the reading. nil: it is
	// not called.
	Poll func() error
}

// SetExtraFloatDigits sets FloatCut from PostgreSQL's extra_float_digits (-15 … 3).
func (f *Format) SetExtraFloatDigits(n int) { f.FloatCut = max(0, 1-n) }

// elementsPerPoll is the number of elements between two calls of Poll.
const elementsPerPoll = 4 << 10

// pollFunc returns Poll, nil if it is not to be called.
func (f *Format) pollFunc() func() error {
	if f == nil {
		return nil
	}
	return f.Poll
}

// poll is called for the nth element.
func (f *Format) poll(n int) error {
	if f == nil || f.Poll == nil || n%elementsPerPoll != 0 {
		return nil
	}
	return f.Poll()
}

func (f *Format) checkDomain(d *Defined, v Datum) error {
	if f == nil || f.Domains == nil {
		return pgerror.New(pgerror.FeatureNotSupported, "values of domain %s are not available here", d.scalar.SQLName)
	}
	return f.Domains.CheckDomain(d, v)
}

// Loc returns the time zone, UTC by default.
func (f *Format) Loc() *time.Location {
	if f == nil || f.Location == nil {
		return time.UTC
	}
	return f.Location
}

// defaultFormat replaces a nil *Format.
var defaultFormat = Format{}

// ParseText reads a value of type t from its text form, applying t's modifier as PostgreSQL's input
// functions do. The datum may alias s. A nil format is the default one.
//
// Errors: 22P02, 22003, 22007, 22008, 22001 and others of the type's input function.
func ParseText(t Type, s string, f *Format) (Datum, error) {
	if f == nil {
		f = &defaultFormat
	}
	switch t.OID {
	case OIDInt4:
		return parseInt(s, 32, "integer")
	case OIDInt8:
		return parseInt(s, 64, "bigint")
	case OIDInt2:
		return parseInt(s, 16, "smallint")
	case OIDText, OIDUnknown, OIDCstring:
		return Text(s), nil
	case OIDVarchar:
		return varcharInput(s, t.Mod)
	case OIDBPChar:
		return bpcharInput(s, t.Mod)
	case OIDName:
		return Text(TruncateName(s)), nil
	case OIDChar:
		return parseInternalChar(s), nil
	case OIDBool:
		return parseBool(s)
	case OIDFloat8:
		return parseFloat8(s)
	case OIDFloat4:
		return parseFloat4(s)
	case OIDNumeric:
		return parseNumeric(s, t.Mod)
	case OIDBytea:
		return parseBytea(s)
	case OIDUUID:
		return parseUUID(s)
	case OIDJSON:
		return parseJSON(s, f)
	case OIDJSONB:
		return parseJSONB(s, f)
	case OIDJSONPath:
		return parseJSONPath(s)
	case OIDOid:
		return parseOid(s)
	case OIDRegclass:
		return parseRegclass(s, f)
	case OIDRegtype:
		return parseRegtype(s, f)
	case OIDRegnamespace:
		return parseRegnamespace(s, f)
	case OIDRegrole:
		return parseReg(s, f, Names.RoleOID, pgerror.UndefinedObject, "role")
	case OIDRegproc, OIDRegprocedure, OIDRegoper, OIDRegoperator:
		return parseRoutine(t, s, f)
	case OIDACLItem:
		return parseACLItem(s, f)
	case OIDVoid:
		return Text(""), nil
	case OIDInt2vector, OIDOidvector:
		return parseVector(t, s)
	}
	return parseTimeText(t, s, f)
}

// parseTimeText is ParseText for dates, times and the remaining types.
func parseTimeText(t Type, s string, f *Format) (Datum, error) {
	switch t.OID {
	case OIDDate:
		return parseDate(s, f)
	case OIDTime:
		return parseTime(s, t.Mod, f)
	case OIDTimestamp:
		return parseTimestamp(s, t.Mod, f)
	case OIDTimestamptz:
		return parseTimestamptz(s, t.Mod, f)
	case OIDInterval:
		return parseInterval(s, t.Mod, f)
	case OIDRecord:
		return Null, pgerror.New(pgerror.FeatureNotSupported, "input of anonymous composite types is not implemented")
	}
	if elem := t.Elem(); elem.Valid() {
		return parseArray(elem, s, f)
	}
	if t.IsDomain() {
		v, err := ParseText(t.Def.base, s, f)
		return checked(t.Def, v, err, f)
	}
	if t.Def != nil {
		return parseDefined(t.Def, s, f)
	}
	if m := t.Methods(); m != nil {
		return m.Parse(s, t.Mod, f)
	}
	return Null, pgerror.New(pgerror.FeatureNotSupported, "cannot accept a value of type %s", t)
}

// AppendText appends the text form of d, which is not NULL, to dst. It allocates for intervals,
// arrays and records only, beyond what dst needs to grow. A nil format is the default one.
func AppendText(dst []byte, d Datum, t Type, f *Format) []byte {
	if f == nil {
		f = &defaultFormat
	}
	switch t.OID {
	case OIDInt4, OIDInt8, OIDInt2, OIDOid:
		return appendInt(dst, d.n)
	case OIDText, OIDVarchar, OIDBPChar, OIDName, OIDUnknown, OIDCstring, OIDVoid, OIDJSON, OIDJSONPath, OIDNodeTree:
		return append(dst, d.Bytes()...)
	case OIDChar:
		return appendInternalChar(dst, d.Bytes())
	case OIDBool:
		if d.Bool() {
			return append(dst, 't')
		}
		return append(dst, 'f')
	case OIDFloat8:
		return appendFloat(dst, d.Float(), 64, f.FloatCut)
	case OIDFloat4:
		return appendFloat(dst, d.Float(), 32, f.FloatCut)
	case OIDNumeric:
		return AppendNumeric(dst, d.Decimal())
	case OIDBytea:
		return appendBytea(dst, d.Bytes(), f.ByteaText)
	case OIDUUID:
		return appendUUID(dst, d.Bytes())
	case OIDJSONB:
		return jsonb.AppendText(dst, d.Bytes())
	case OIDDate:
		return appendDate(dst, d.n, f)
	case OIDTime:
		return appendTimeOfDay(dst, d.n)
	case OIDTimestamp:
		return appendTimestamp(dst, d.n, f)
	case OIDTimestamptz:
		return appendTimestamptz(dst, d.n, f)
	case OIDInterval:
		return appendInterval(dst, d.Interval(), f.Interval)
	case OIDRegclass:
		return appendRegclass(dst, d.n, f)
	case OIDRegtype:
		return appendRegtype(dst, d.n, f)
	case OIDRegnamespace:
		return appendRegnamespace(dst, d.n, f)
	case OIDRegrole:
		return appendReg(dst, d.n, f, Names.QuotedRole)
	case OIDRegproc, OIDRegprocedure, OIDRegoper, OIDRegoperator:
		return appendRoutine(dst, t, d.n, f)
	case OIDACLItem:
		return appendACLItem(dst, d, f)
	case OIDRecord:
		return appendRecord(dst, d.Record(), f)
	case OIDInt2vector, OIDOidvector:
		return appendVector(dst, d.Array())
	}
	if t.IsComposite() {
		return appendRecord(dst, d.Record(), f)
	}
	if t.IsDomain() {
		return AppendText(dst, d, t.Def.base, f)
	}
	if t.Def != nil && t.OID == t.Def.OID {
		return appendDefined(dst, t.Def, d, f)
	}
	if m := t.Methods(); m != nil {
		return m.Append(dst, d, f)
	}
	return appendArray(dst, d.Array(), t.Elem(), f)
}

// Text returns the text form of d, which is not NULL, as a string.
func (f *Format) Text(d Datum, t Type) string {
	if t.IsString() {
		return d.Text()
	}
	return string(AppendText(nil, d, t, f))
}
