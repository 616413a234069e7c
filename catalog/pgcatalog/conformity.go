package pgcatalog

import (
	"github.com/percodb/percodb/sql/types"
)

// What information_schema says of the SQL standard. sql_features is empty: the features of the standard have not been assessed.

// implementationRows says what the standard leaves to the implementation.
func implementationRows(s *scan) error {
	for _, v := range []struct {
		id, name string
		integer  types.Datum
		text     types.Datum
		comment  string
	}{
		{"10003", "CATALOG NAME", types.Null, text("Y"), ""},
		{"10004", "COLLATING SEQUENCE", types.Null, text("C"), "by bytes"},
		{"23", "CURSOR COMMIT BEHAVIOR", num(1), types.Null, "close cursors and retain prepared statements"},
		{"2", "DATA SOURCE NAME", types.Null, text(""), ""},
		{"17", "DBMS NAME", types.Null, text("percodb"), ""},
		{"26", "DEFAULT TRANSACTION ISOLATION", num(2), types.Null, "READ COMMITTED; a session may choose another one"},
		{"28", "IDENTIFIER CASE", num(3), types.Null, "in mixed case, which matters"},
		{"85", "NULL COLLATION", num(0), types.Null, "NULL is higher than all values"},
		{"13", "SERVER NAME", types.Null, text(""), ""},
		{"94", "SPECIAL CHARACTERS", types.Null, text(""), "all characters that are not ASCII are allowed"},
		{"46", "TRANSACTION CAPABLE", num(2), types.Null, "both DML and DDL"},
	} {
		err := s.emit(col{"implementation_info_id", text(v.id)}, col{"implementation_info_name", text(v.name)}, col{"integer_value", v.integer},
			col{"character_value", v.text}, col{"comments", optional(v.comment)})
		if err != nil {
			return err
		}
	}
	return nil
}

// partRows lists the parts of the standard: none is implemented as a whole.
func partRows(s *scan) error {
	for _, p := range [][2]string{
		{"1", "Framework (SQL/Framework)"}, {"2", "Foundation (SQL/Foundation)"}, {"3", "Call-Level Interface (SQL/CLI)"},
		{"4", "Persistent Stored Modules (SQL/PSM)"}, {"9", "Management of External Data (SQL/MED)"}, {"10", "Object Language Bindings (SQL/OLB)"},
		{"11", "Information and Definition Schema (SQL/Schemata)"}, {"13", "Routines and Types Using the Java Programming Language (SQL/JRT)"},
		{"14", "XML-Related Specifications (SQL/XML)"}, {"15", "Multi-Dimensional Arrays (SQL/MDA)"},
	} {
		if err := s.emit(col{"feature_id", text(p[0])}, col{"feature_name", text(p[1])}, col{"is_supported", yesNo(false)}); err != nil {
			return err
		}
	}
	return nil
}

// sizingRows lists limits: 0 is none that is known, NULL that there is no such thing.
func sizingRows(s *scan) error {
	const maxNameBytes = 63
	for _, v := range []struct {
		id    int
		name  string
		value int // -1: NULL
	}{
		{97, "MAXIMUM COLUMNS IN GROUP BY", 0}, {99, "MAXIMUM COLUMNS IN ORDER BY", 0}, {100, "MAXIMUM COLUMNS IN SELECT", 1664},
		{101, "MAXIMUM COLUMNS IN TABLE", 1600}, {1, "MAXIMUM CONCURRENT ACTIVITIES", 0}, {0, "MAXIMUM DRIVER CONNECTIONS", -1},
		{20000, "MAXIMUM STATEMENT OCTETS", 0}, {20001, "MAXIMUM STATEMENT OCTETS DATA", 0}, {20002, "MAXIMUM STATEMENT OCTETS SCHEMA", 0},
		{106, "MAXIMUM TABLES IN SELECT", 0}, {25000, "MAXIMUM CURRENT DEFAULT TRANSFORM GROUP LENGTH", -1},
		{25001, "MAXIMUM CURRENT TRANSFORM GROUP LENGTH", -1}, {25002, "MAXIMUM CURRENT PATH LENGTH", 0}, {25003, "MAXIMUM CURRENT ROLE LENGTH", -1},
		{34, "MAXIMUM CATALOG NAME LENGTH", maxNameBytes}, {30, "MAXIMUM COLUMN NAME LENGTH", maxNameBytes}, {31, "MAXIMUM CURSOR NAME LENGTH", maxNameBytes},
		{10005, "MAXIMUM IDENTIFIER LENGTH", maxNameBytes}, {32, "MAXIMUM SCHEMA NAME LENGTH", maxNameBytes}, {35, "MAXIMUM TABLE NAME LENGTH", maxNameBytes},
		{107, "MAXIMUM USER NAME LENGTH", maxNameBytes}, {25004, "MAXIMUM SESSION USER LENGTH", maxNameBytes},
		{25005, "MAXIMUM SYSTEM USER LENGTH", maxNameBytes},
	} {
		cols := []col{{"sizing_id", num(v.id)}, {"sizing_name", text(v.name)}}
		if v.value >= 0 {
			cols = append(cols, col{"supported_value", num(v.value)})
		}
		if v.value == maxNameBytes {
			cols = append(cols, col{"comments", text("in bytes")})
		}
		if err := s.emit(cols...); err != nil {
			return err
		}
	}
	return nil
}
