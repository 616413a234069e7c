package types

// Type is an SQL type in PostgreSQL's numbering: its OID and type modifier (-1: none). Comparable.
type Type struct {
	OID OID
	Mod int32
}

// OID is PostgreSQL's number of a type.
type OID uint32

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
	OIDFloat4       OID = 700
	OIDFloat8       OID = 701
	OIDUnknown      OID = 705
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
	OIDRegnamespace OID = 4089
	OIDRegrole      OID = 4096
	OIDRecord       OID = 2249
	OIDVoid         OID = 2278
	OIDUUID         OID = 2950
)

// The types without modifier.
var (
	TBool         = Type{OIDBool, -1}
	TBytea        = Type{OIDBytea, -1}
	TChar         = Type{OIDChar, -1}
	TName         = Type{OIDName, -1}
	TInt8         = Type{OIDInt8, -1}
	TInt2         = Type{OIDInt2, -1}
	TInt4         = Type{OIDInt4, -1}
	TText         = Type{OIDText, -1}
	TOid          = Type{OIDOid, -1}
	TFloat4       = Type{OIDFloat4, -1}
	TFloat8       = Type{OIDFloat8, -1}
	TUnknown      = Type{OIDUnknown, -1}
	TBPChar       = Type{OIDBPChar, -1}
	TVarchar      = Type{OIDVarchar, -1}
	TDate         = Type{OIDDate, -1}
	TTime         = Type{OIDTime, -1}
	TTimestamp    = Type{OIDTimestamp, -1}
	TTimestamptz  = Type{OIDTimestamptz, -1}
	TInterval     = Type{OIDInterval, -1}
	TNumeric      = Type{OIDNumeric, -1}
	TRegclass     = Type{OIDRegclass, -1}
	TRegtype      = Type{OIDRegtype, -1}
	TRegnamespace = Type{OIDRegnamespace, -1}
	TRecord       = Type{OIDRecord, -1}
	TVoid         = Type{OIDVoid, -1}
	TUUID         = Type{OIDUUID, -1}
)
