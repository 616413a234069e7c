package types

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// Category is PostgreSQL's typcategory: the group of types within which implicit casts are preferred.
type Category byte

// The categories of the types percodb has.
const (
	CategoryArray     Category = 'A'
	CategoryBit       Category = 'V'
	CategoryBoolean   Category = 'B'
	CategoryRow       Category = 'C'
	CategoryRange     Category = 'R'
	CategoryDateTime  Category = 'D'
	CategoryEnum      Category = 'E'
	CategoryGeometric Category = 'G'
	CategoryNetwork   Category = 'I'
	CategoryNumeric   Category = 'N'
	CategoryPseudo    Category = 'P'
	CategoryString    Category = 'S'
	CategoryTimespan  Category = 'T'
	CategoryUser      Category = 'U'
	CategoryUnknown   Category = 'X'
	CategoryInternal  Category = 'Z' // "char"
)

// The pseudo-types of function declarations; no datum has one.
const (
	OIDTableAMHandler        OID = 269
	OIDIndexAMHandler        OID = 325
	OIDCstring               OID = 2275
	OIDAny                   OID = 2276
	OIDAnyArray              OID = 2277
	OIDLanguageHandler       OID = 2280
	OIDInternal              OID = 2281
	OIDAnyElement            OID = 2283
	OIDAnyNonArray           OID = 2776
	OIDAnyEnum               OID = 3500
	OIDAnyCompatible         OID = 5077
	OIDAnyCompatibleArray    OID = 5078
	OIDAnyCompatibleNonArray OID = 5079

	OIDAnyRange                OID = 3831
	OIDAnyMultirange           OID = 4537
	OIDAnyCompatibleRange      OID = 5080
	OIDAnyCompatibleMultirange OID = 4538
)

// The pseudo-types without modifier.
var (
	TAny                   = Type{OID: OIDAny, Mod: -1}
	TAnyArray              = Type{OID: OIDAnyArray, Mod: -1}
	TAnyElement            = Type{OID: OIDAnyElement, Mod: -1}
	TAnyNonArray           = Type{OID: OIDAnyNonArray, Mod: -1}
	TAnyEnum               = Type{OID: OIDAnyEnum, Mod: -1}
	TAnyCompatible         = Type{OID: OIDAnyCompatible, Mod: -1}
	TAnyCompatibleArray    = Type{OID: OIDAnyCompatibleArray, Mod: -1}
	TAnyCompatibleNonArray = Type{OID: OIDAnyCompatibleNonArray, Mod: -1}
)

// Info is a row of PostgreSQL's pg_type.
type Info struct {
	OID       OID
	Name      string // pg_type.typname
	SQLName   string // what format_type shows, without modifier
	Array     OID    // the type of its arrays, 0: none
	Elem      OID    // the element type when this is an array type, otherwise 0
	Len       int16  // typlen: bytes, -1 varlena, -2 C string
	Category  Category
	Preferred bool
	Kind      Kind
}

// scalarInfos lists every type that is not an array; infos adds their array types.
var scalarInfos = []Info{
	{OIDBool, "bool", "boolean", 1000, 0, 1, CategoryBoolean, true, KindBool},
	{OIDBytea, "bytea", "bytea", 1001, 0, -1, CategoryUser, false, KindBytes},
	{OIDChar, "char", `"char"`, 1002, 0, 1, CategoryInternal, false, KindBytes},
	{OIDName, "name", "name", 1003, 0, 64, CategoryString, false, KindBytes},
	{OIDInt8, "int8", "bigint", 1016, 0, 8, CategoryNumeric, false, KindInt},
	{OIDInt2, "int2", "smallint", 1005, 0, 2, CategoryNumeric, false, KindInt},
	{OIDInt4, "int4", "integer", 1007, 0, 4, CategoryNumeric, false, KindInt},
	{OIDText, "text", "text", 1009, 0, -1, CategoryString, true, KindBytes},
	{OIDOid, "oid", "oid", 1028, 0, 4, CategoryNumeric, true, KindInt},
	{OIDJSON, "json", "json", 199, 0, -1, CategoryUser, false, KindBytes},
	{OIDFloat4, "float4", "real", 1021, 0, 4, CategoryNumeric, false, KindFloat},
	{OIDFloat8, "float8", "double precision", 1022, 0, 8, CategoryNumeric, true, KindFloat},
	{OIDUnknown, "unknown", "unknown", 0, 0, -2, CategoryUnknown, false, KindBytes},
	{OIDACLItem, "aclitem", "aclitem", oidACLItems, 0, 12, CategoryUser, false, KindBytes},
	{OIDBPChar, "bpchar", "character", 1014, 0, -1, CategoryString, false, KindBytes},
	{OIDVarchar, "varchar", "character varying", 1015, 0, -1, CategoryString, false, KindBytes},
	{OIDDate, "date", "date", 1182, 0, 4, CategoryDateTime, false, KindInt},
	{OIDTime, "time", "time without time zone", 1183, 0, 8, CategoryDateTime, false, KindInt},
	{OIDTimestamp, "timestamp", "timestamp without time zone", 1115, 0, 8, CategoryDateTime, false, KindInt},
	{OIDTimestamptz, "timestamptz", "timestamp with time zone", 1185, 0, 8, CategoryDateTime, true, KindInt},
	{OIDInterval, "interval", "interval", 1187, 0, 16, CategoryTimespan, true, KindInterval},
	{OIDNumeric, "numeric", "numeric", 1231, 0, -1, CategoryNumeric, false, KindDecimal},
	{OIDRegclass, "regclass", "regclass", 2210, 0, 4, CategoryNumeric, false, KindInt},
	{OIDRegtype, "regtype", "regtype", 2211, 0, 4, CategoryNumeric, false, KindInt},
	{OIDRegnamespace, "regnamespace", "regnamespace", 4090, 0, 4, CategoryNumeric, false, KindInt},
	{OIDRegrole, "regrole", "regrole", 4097, 0, 4, CategoryNumeric, false, KindInt},
	{OIDRegproc, "regproc", "regproc", 1008, 0, 4, CategoryNumeric, false, KindInt},
	{OIDRegprocedure, "regprocedure", "regprocedure", 2207, 0, 4, CategoryNumeric, false, KindInt},
	{OIDRegoper, "regoper", "regoper", 2208, 0, 4, CategoryNumeric, false, KindInt},
	{OIDRegoperator, "regoperator", "regoperator", 2209, 0, 4, CategoryNumeric, false, KindInt},
	{OIDRecord, "record", "record", 2287, 0, -1, CategoryPseudo, false, KindRow},
	{OIDVoid, "void", "void", 0, 0, 4, CategoryPseudo, false, KindBytes},
	{OIDUUID, "uuid", "uuid", 2951, 0, 16, CategoryUser, false, KindBytes},
	{OIDJSONB, "jsonb", "jsonb", 3807, 0, -1, CategoryUser, false, KindBytes},
	{OIDJSONPath, "jsonpath", "jsonpath", 4073, 0, -1, CategoryUser, false, KindBytes},
	{OIDCstring, "cstring", "cstring", 1263, 0, -2, CategoryPseudo, false, KindBytes},
	{OIDTrigger, "trigger", "trigger", 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDEventTrigger, "event_trigger", "event_trigger", 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDTableAMHandler, "table_am_handler", "table_am_handler", 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDIndexAMHandler, "index_am_handler", "index_am_handler", 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDLanguageHandler, "language_handler", "language_handler", 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDInternal, "internal", "internal", 0, 0, 8, CategoryPseudo, false, KindNull},
	{OIDInt2vector, "int2vector", "int2vector", 1006, OIDInt2, -1, CategoryArray, false, KindArray},
	{OIDOidvector, "oidvector", "oidvector", 1013, OIDOid, -1, CategoryArray, false, KindArray},
	{OIDNodeTree, "pg_node_tree", "pg_node_tree", 0, 0, -1, CategoryInternal, false, KindBytes},
	{OIDAny, "any", `"any"`, 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDAnyArray, "anyarray", "anyarray", 0, 0, -1, CategoryPseudo, false, KindNull},
	{OIDAnyElement, "anyelement", "anyelement", 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDAnyNonArray, "anynonarray", "anynonarray", 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDAnyEnum, "anyenum", "anyenum", 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDAnyCompatible, "anycompatible", "anycompatible", 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDAnyCompatibleArray, "anycompatiblearray", "anycompatiblearray", 0, 0, -1, CategoryPseudo, false, KindNull},
	{OIDAnyCompatibleNonArray, "anycompatiblenonarray", "anycompatiblenonarray", 0, 0, 4, CategoryPseudo, false, KindNull},
	{OIDAnyRange, "anyrange", "anyrange", 0, 0, -1, CategoryPseudo, false, KindNull},
	{OIDAnyMultirange, "anymultirange", "anymultirange", 0, 0, -1, CategoryPseudo, false, KindNull},
	{OIDAnyCompatibleRange, "anycompatiblerange", "anycompatiblerange", 0, 0, -1, CategoryPseudo, false, KindNull},
	{OIDAnyCompatibleMultirange, "anycompatiblemultirange", "anycompatiblemultirange", 0, 0, -1, CategoryPseudo, false, KindNull},
}

// infos and names index the types; both are built once and only read.
var (
	infos = indexByOID()
	names = indexByName()
)

func indexByOID() map[OID]*Info {
	m := make(map[OID]*Info, 2*len(scalarInfos))
	for i := range scalarInfos {
		addInfo(m, &scalarInfos[i])
	}
	return m
}

// addInfo adds a type and its array type to m.
func addInfo(m map[OID]*Info, s *Info) {
	m[s.OID] = s
	if s.Array != 0 {
		m[s.Array] = &Info{
			OID: s.Array, Name: "_" + s.Name, SQLName: s.SQLName + "[]", Elem: s.OID,
			Len: -1, Category: CategoryArray, Kind: KindArray,
		}
	}
}

func indexByName() map[string]OID {
	m := map[string]OID{
		"integer": OIDInt4, "int": OIDInt4, "smallint": OIDInt2, "bigint": OIDInt8,
		"real": OIDFloat4, "double precision": OIDFloat8, "boolean": OIDBool,
		"decimal": OIDNumeric, "dec": OIDNumeric, "character": OIDBPChar,
		"character varying": OIDVarchar, "char varying": OIDVarchar, "nchar": OIDBPChar,
		"time without time zone":      OIDTime,
		"timestamp without time zone": OIDTimestamp,
		"timestamp with time zone":    OIDTimestamptz,
	}
	for oid, info := range indexByOID() {
		m[info.Name] = oid
	}
	return m
}

// Info returns the properties of t's type, or nil if percodb does not have it.
func (t Type) Info() *Info {
	if t.Def != nil {
		return t.Def.info(t.OID)
	}
	return infos[t.OID]
}

// Infos returns the types that are not arrays, including pseudo-types, in the order of pg_type. The slice must not be
// changed.
func Infos() []Info { return scalarInfos }

// Valid reports whether t is a type and not the zero Type.
func (t Type) Valid() bool { return t.OID != 0 }

// Base returns t without its modifier and its collation.
func (t Type) Base() Type { return Type{OID: t.OID, Mod: -1, Def: t.Def} }

// Category returns t's category; CategoryUser for a type percodb does not have.
func (t Type) Category() Category {
	if info := t.Info(); info != nil {
		return info.Category
	}
	return CategoryUser
}

// Preferred reports whether t is the preferred type of its category.
func (t Type) Preferred() bool {
	info := t.Info()
	return info != nil && info.Preferred
}

// KindOf returns the Kind of t's non-NULL datums; KindNull for pseudo-types without datums.
func (t Type) KindOf() Kind {
	switch t.OID {
	case OIDInt4, OIDInt8, OIDInt2, OIDTimestamp, OIDTimestamptz, OIDDate:
		return KindInt
	case OIDText, OIDVarchar, OIDBPChar:
		return KindBytes
	}
	if info := t.Info(); info != nil {
		return info.Kind
	}
	return KindNull
}

// IsArray reports whether t is an array type.
func (t Type) IsArray() bool { return t.Elem().Valid() }

// Elem returns the element type of an array type, with the array's modifier, or the zero Type.
func (t Type) Elem() Type {
	if info := t.Info(); info != nil && info.Elem != 0 {
		return Type{OID: info.Elem, Mod: t.Mod, Def: t.Def, Coll: t.Coll}
	}
	return Type{}
}

// ArrayOf returns the type of arrays of t, with t's modifier, or the zero Type when there is none.
func (t Type) ArrayOf() Type {
	if info := t.Info(); info != nil && info.Array != 0 {
		return Type{OID: info.Array, Mod: t.Mod, Def: t.Def, Coll: t.Coll}
	}
	return Type{}
}

// Ordered reports whether the values of a type have an order: ORDER BY may name them.
func (t Type) Ordered() bool {
	t = t.Underlying()
	if elem := t.Elem(); elem.Valid() {
		t = elem
	}
	if m := t.Methods(); m != nil && m.Unordered {
		return false
	}
	if rt := t.Ranges(); rt != nil {
		return rt.Sub.Ordered()
	}
	if t.IsComposite() {
		for i := range t.Def.Fields {
			if !t.Def.Fields[i].Type.Ordered() {
				return false
			}
		}
	}
	return t.HasEquality() && t.OID != OIDACLItem
}

// HasEquality reports whether the values of a type can be equal: GROUP BY and DISTINCT may name them.
func (t Type) HasEquality() bool {
	t = t.Underlying()
	if elem := t.Elem(); elem.Valid() {
		t = elem.Underlying()
	}
	if m := t.Methods(); m != nil {
		return !m.NoEquality
	}
	if rt := t.Ranges(); rt != nil {
		return rt.Sub.HasEquality()
	}
	if t.IsComposite() {
		for i := range t.Def.Fields {
			if !t.Def.Fields[i].Type.HasEquality() {
				return false
			}
		}
	}
	return t.OID != OIDJSON && t.OID != OIDJSONPath
}

// IsString reports whether t's datums are character strings.
func (t Type) IsString() bool {
	switch t.Underlying().OID {
	case OIDText, OIDVarchar, OIDBPChar, OIDName, OIDUnknown, OIDCstring, OIDCitext:
		return true
	}
	return false
}

// IsPolymorphic reports whether t is a pseudo-type that a call replaces by an actual type.
func (t Type) IsPolymorphic() bool {
	switch t.OID {
	case OIDAnyElement, OIDAnyArray, OIDAnyNonArray, OIDAnyEnum,
		OIDAnyCompatible, OIDAnyCompatibleArray, OIDAnyCompatibleNonArray,
		OIDAnyRange, OIDAnyMultirange, OIDAnyCompatibleRange, OIDAnyCompatibleMultirange:
		return true
	}
	return false
}

// String returns t as PostgreSQL's format_type(oid, typmod) does: "character varying(10)[]".
func (t Type) String() string {
	if t.OID == 0 {
		return "-"
	}
	info := t.Info()
	if info == nil {
		return "???"
	}
	if info.Elem != 0 && !t.IsVector() {
		return t.Elem().String() + "[]"
	}
	if t.Def != nil {
		return info.SQLName
	}
	if t.OID == OIDBPChar && t.Mod == -1 {
		return "bpchar"
	}
	if t.OID == OIDBit && t.Mod == -1 {
		return `"bit"` // The word alone is bit(1).
	}
	if t.Mod < 0 {
		return info.SQLName
	}
	return t.stringWithMod(info)
}

func (t Type) stringWithMod(info *Info) string {
	mod := int(t.Mod)
	switch t.OID {
	case OIDVarchar, OIDBPChar:
		if mod <= 4 {
			return info.SQLName
		}
		return info.SQLName + "(" + strconv.Itoa(mod-4) + ")"
	case OIDNumeric:
		if mod < 4 {
			return info.SQLName
		}
		p, s := NumericMod(t.Mod)
		return info.SQLName + "(" + strconv.Itoa(p) + "," + strconv.Itoa(s) + ")"
	case OIDTime:
		return "time(" + strconv.Itoa(mod) + ") without time zone"
	case OIDTimestamp:
		return "timestamp(" + strconv.Itoa(mod) + ") without time zone"
	case OIDTimestamptz:
		return "timestamp(" + strconv.Itoa(mod) + ") with time zone"
	case OIDInterval:
		return "interval" + intervalModString(t.Mod)
	}
	if m := t.Methods(); m != nil && m.ModOut != nil {
		return m.ModOut(t.Mod)
	}
	switch info.Category {
	case CategoryBoolean, CategoryNumeric:
		return info.SQLName
	}
	return info.SQLName + "(" + strconv.Itoa(mod) + ")"
}

// Lookup returns the type with a name (internal like "int4", or SQL's like "double precision"), the modifiers written
// after it, and the number of its array brackets. Modifiers of interval are (precision) or (field mask, precision),
// with PostgreSQL's masks and 65535 for no precision.
//
// Errors: 42704 no such type, 22023 a modifier out of range, 42601 a modifier that is not allowed.
func Lookup(name string, mods []int, arrayDims int) (Type, error) {
	if name == "float" {
		return lookupFloat(mods, arrayDims)
	}
	oid, ok := names[name]
	if !ok {
		if dims := trimBrackets(name); dims > 0 {
			return Lookup(name[:len(name)-2*dims], mods, arrayDims+dims)
		}
		if _, known := unsupportedTypes[name]; known {
			return Type{}, pgerror.Unsupported("type "+name, "Use one of boolean, smallint, integer, bigint, real, "+
				"double precision, numeric, text, varchar, char, bytea, date, time, timestamp, timestamptz, interval and uuid.")
		}
		return Type{}, pgerror.New(pgerror.UndefinedObject, "type \"%s\" does not exist", name)
	}
	t := Type{OID: oid, Mod: -1}
	if len(mods) > 0 {
		mod, err := typeMod(t, name, mods)
		if err != nil {
			return Type{}, err
		}
		t.Mod = mod
	}
	return withDims(t, name, arrayDims)
}

// withDims returns the array type of t; PostgreSQL has one array type for any number of dimensions.
func withDims(t Type, name string, dims int) (Type, error) {
	if dims == 0 || t.IsArray() && !t.IsVector() {
		return t, nil
	}
	a := t.ArrayOf()
	if !a.Valid() {
		return Type{}, pgerror.New(pgerror.UndefinedObject, "type \"%s[]\" does not exist", name)
	}
	return a, nil
}

func lookupFloat(mods []int, dims int) (Type, error) {
	t := TFloat8
	if len(mods) > 0 {
		switch p := mods[0]; {
		case len(mods) > 1:
			return Type{}, pgerror.New(pgerror.SyntaxError, "type modifier is not allowed for type \"float\"")
		case p < 1:
			return Type{}, pgerror.New(pgerror.InvalidParameterValue, "precision for type float must be at least 1 bit")
		case p <= 24:
			t = TFloat4
		case p > 53:
			return Type{}, pgerror.New(pgerror.InvalidParameterValue, "precision for type float must be less than 54 bits")
		}
	}
	return withDims(t, "float", dims)
}

func trimBrackets(name string) (dims int) {
	for n := len(name); n > 2 && name[n-2:n] == "[]"; n -= 2 {
		dims++
	}
	return dims
}

// unsupportedTypes are PostgreSQL's types that percodb does not have: an error reports them, and regtype has their numbers, with which clients
// compare those of columns.
var unsupportedTypes = map[string]OID{"xml": 142, "xml[]": 143}

// unsupportedType returns the number of such a type by its name as regtype reads it; 0: it is none.
func unsupportedType(s string) OID {
	return unsupportedTypes[strings.ToLower(withoutSystemSchema(strings.TrimSpace(s)))]
}

// unsupportedName returns the name of such a type; "": it is none.
func unsupportedName(id OID) string {
	for name, unsupported := range unsupportedTypes {
		if unsupported == id {
			return name
		}
	}
	return ""
}
