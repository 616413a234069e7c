package types

import "github.com/percodb/percodb/sql/collation"

// Type is an SQL type in PostgreSQL's numbering: its OID and type modifier (-1: none). Comparable within one schema version: see Same.
type Type struct {
	OID OID
	Mod int32
	// Def is what the schema says of a user-defined type and of its array type; nil for PostgreSQL's own types. What is stored of a
	// type is its OID: the catalog adds Def when it reads the schema.
	Def *Defined `json:"-"`
	// Coll is the collation of text, and of what contains text; nil: the database's default. Of it, too, the OID is stored.
	Coll *collation.Collation `json:",omitempty"`
}

// Same reports whether t and other are the same type with the same modifier, maybe as of different versions of the schema.
func (t Type) Same(other Type) bool { return t.OID == other.OID && t.Mod == other.Mod }

// OID is PostgreSQL's number of a type.
type OID uint32

// FirstUserOID is where PostgreSQL starts to number what users create.
const FirstUserOID OID = 16384

// The OIDs of the types percodb has, as in PostgreSQL's pg_type.
const (
	OIDBool         OID = 16
	OIDBytea        OID = 17
	OIDChar         OID = 18 // "char"
	OIDName         OID = 19
	OIDInt8         OID = 20
	OIDInt2         OID = 21
	OIDInt4         OID = 23
	OIDText         OID = 25
	OIDOid          OID = 26
	OIDJSON         OID = 114
	OIDFloat4       OID = 700
	OIDFloat8       OID = 701
	OIDUnknown      OID = 705
	OIDACLItem      OID = 1033
	OIDBPChar       OID = 1042
	OIDVarchar      OID = 1043
	OIDDate         OID = 1082
	OIDTime         OID = 1083
	OIDTimestamp    OID = 1114
	OIDTimestamptz  OID = 1184
	OIDInterval     OID = 1186
	OIDNumeric      OID = 1700
	OIDRegclass     OID = 2205
	OIDRegtype      OID = 2206
	OIDInt2vector   OID = 22
	OIDOidvector    OID = 30
	OIDNodeTree     OID = 194 // expressions in the system tables, as texts
	OIDRegproc      OID = 24
	OIDRegprocedure OID = 2202
	OIDRegoper      OID = 2203
	OIDRegoperator  OID = 2204
	OIDRegnamespace OID = 4089
	OIDRegrole      OID = 4096
	OIDRecord       OID = 2249
	OIDVoid         OID = 2278
	OIDTrigger      OID = 2279
	OIDEventTrigger OID = 3838
	OIDUUID         OID = 2950
	OIDJSONB        OID = 3802
	OIDJSONPath     OID = 4072
)

// The types without modifier.
var (
	TBool         = Type{OID: OIDBool, Mod: -1}
	TBytea        = Type{OID: OIDBytea, Mod: -1}
	TChar         = Type{OID: OIDChar, Mod: -1}
	TName         = Type{OID: OIDName, Mod: -1}
	TInt8         = Type{OID: OIDInt8, Mod: -1}
	TInt2         = Type{OID: OIDInt2, Mod: -1}
	TInt4         = Type{OID: OIDInt4, Mod: -1}
	TText         = Type{OID: OIDText, Mod: -1}
	TOid          = Type{OID: OIDOid, Mod: -1}
	TFloat4       = Type{OID: OIDFloat4, Mod: -1}
	TFloat8       = Type{OID: OIDFloat8, Mod: -1}
	TUnknown      = Type{OID: OIDUnknown, Mod: -1}
	TACLItem      = Type{OID: OIDACLItem, Mod: -1}
	TBPChar       = Type{OID: OIDBPChar, Mod: -1}
	TVarchar      = Type{OID: OIDVarchar, Mod: -1}
	TDate         = Type{OID: OIDDate, Mod: -1}
	TTime         = Type{OID: OIDTime, Mod: -1}
	TTimestamp    = Type{OID: OIDTimestamp, Mod: -1}
	TTimestamptz  = Type{OID: OIDTimestamptz, Mod: -1}
	TInterval     = Type{OID: OIDInterval, Mod: -1}
	TNumeric      = Type{OID: OIDNumeric, Mod: -1}
	TInt2vector   = Type{OID: OIDInt2vector, Mod: -1}
	TOidvector    = Type{OID: OIDOidvector, Mod: -1}
	TRegproc      = Type{OID: OIDRegproc, Mod: -1}
	TRegprocedure = Type{OID: OIDRegprocedure, Mod: -1}
	TRegoper      = Type{OID: OIDRegoper, Mod: -1}
	TRegoperator  = Type{OID: OIDRegoperator, Mod: -1}
	TRegclass     = Type{OID: OIDRegclass, Mod: -1}
	TRegtype      = Type{OID: OIDRegtype, Mod: -1}
	TRegnamespace = Type{OID: OIDRegnamespace, Mod: -1}
	TRecord       = Type{OID: OIDRecord, Mod: -1}
	TVoid         = Type{OID: OIDVoid, Mod: -1}
	TUUID         = Type{OID: OIDUUID, Mod: -1}
	TJSON         = Type{OID: OIDJSON, Mod: -1}
	TJSONB        = Type{OID: OIDJSONB, Mod: -1}
	TJSONPath     = Type{OID: OIDJSONPath, Mod: -1}
)
