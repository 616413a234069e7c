package fuzzsql

import "github.com/percodb/percodb/sql/types"

// Types of users have OIDs that no statement names: these stand for them in the tables of types. Those of their arrays follow at a distance.
const (
	oidMood types.OID = 4_000_000_001 + iota
	oidPair
)

// userArrays is the distance from a type's OID to that of its arrays.
const userArrays = 1000

// userTypes are an enum and a composite type, beside scalars.
var userTypes = []*typ{
	{oid: oidMood, sql: "mood", stored: []string{"sad", "ok", "happy"}},
	{oid: oidPair, sql: "pair", stored: []string{"(1,a)", "(2,)", "(,b)", `(1,"x y")`}},
}

// definitions are made before the tables, which may use them: domains, types, and functions in both languages.
var definitions = []string{
	"CREATE DOMAIN whole AS int4",
	"CREATE DOMAIN short AS text CHECK (length(VALUE) < 1000)",
	"CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
	"CREATE TYPE pair AS (n int4, t text)",
	"CREATE FUNCTION f_sum(a int4, b int4 DEFAULT 7) RETURNS int4 LANGUAGE sql IMMUTABLE AS 'SELECT a + f_sum.b'",
	"CREATE FUNCTION f_pick(p pair) RETURNS text LANGUAGE sql STABLE AS 'SELECT coalesce(p.t, p.n::text)'",
	"CREATE FUNCTION f_pair(int4, text) RETURNS pair LANGUAGE sql IMMUTABLE AS 'SELECT ROW($1, $2)::pair'",
	"CREATE FUNCTION f_mood(m mood) RETURNS int4 LANGUAGE sql STRICT AS 'SELECT array_position(enum_range(NULL::mood), m)'",
	"CREATE FUNCTION f_rows(int4) RETURNS SETOF int4 LANGUAGE sql AS 'SELECT x FROM generate_series(1, least($1, 4)) x'",
	"CREATE FUNCTION f_part(n int4) RETURNS int4 LANGUAGE plpgsql AS $$BEGIN RETURN 100 / n; EXCEPTION WHEN division_by_zero THEN RETURN -1; END$$",
	"CREATE FUNCTION f_loop(n int4, t text) RETURNS text LANGUAGE plpgsql STABLE AS " +
		"$$DECLARE r text := ''; BEGIN FOR i IN 1 .. least(n, 3) LOOP r := r || i || t; END LOOP; RETURN r; END$$",
	"CREATE FUNCTION f_each(n int4) RETURNS SETOF int4 LANGUAGE plpgsql AS $$BEGIN FOR i IN 1 .. least(n, 3) LOOP RETURN NEXT i * i; END LOOP; END$$",
}

// undefinitions remove them.
var undefinitions = []string{
	"DROP FUNCTION IF EXISTS f_sum, f_pick, f_pair, f_mood, f_rows, f_part, f_loop, f_each", "DROP TYPE IF EXISTS mood, pair", "DROP DOMAIN IF EXISTS whole, short",
}

// userCalls are calls of the functions, and other expressions over the types, by the type of their result.
var userCalls = []form{
	{types.OIDInt4, []any{"f_sum(", types.OIDInt4, ")"}},
	{types.OIDInt4, []any{"f_sum(b => ", types.OIDInt4, ", a => ", types.OIDInt4, ")"}},
	{types.OIDText, []any{"f_pick(", oidPair, ")"}},
	{types.OIDText, []any{"f_pick(ROW(", types.OIDInt4, ", ", types.OIDText, "))"}},
	{oidPair, []any{"f_pair(", types.OIDInt4, ", ", types.OIDText, ")"}},
	{types.OIDInt4, []any{"f_mood(", oidMood, ")"}},
	{types.OIDInt4, []any{"f_part(", types.OIDInt4, ")"}},
	{types.OIDText, []any{"f_loop(", types.OIDInt4, ", ", types.OIDText, ")"}},
	{types.OIDInt4, []any{"(", oidPair, ").n"}},
	{types.OIDText, []any{"(f_pair(", types.OIDInt4, ", ", types.OIDText, ")).t"}},
	{types.OIDText, []any{"(", oidMood, ")::text"}},
	{oidMood, []any{"enum_first(", oidMood, ")"}},
	{oidMood, []any{"GREATEST(", oidMood, ", ", oidMood, ")"}},
	{types.OIDBool, []any{"(", oidMood, " BETWEEN ", oidMood, " AND ", oidMood, ")"}},
	{types.OIDBool, []any{"(", oidPair, " = ", oidPair, ")"}},
	{types.OIDBool, []any{"(", oidPair, " IS NOT NULL)"}},
	{types.OIDBool, []any{"(ROW(", types.OIDInt4, ", ", types.OIDText, ") < ", oidPair, ")"}},
	{types.OIDJSONB, []any{"to_jsonb(", oidPair, ")"}},
}

// exprUserCall makes an expression over types and functions of users.
func exprUserCall(g *gen, t *typ, s *scope, depth int) *tree {
	return g.composed(userCalls, t, s, depth)
}

// reference makes a foreign key of a table to an earlier one with a key: a column of small numbers, mostly of rows that there are.
func (g *gen) reference(to *table) (c column, declared string) {
	var stored []string
	for i := range min(to.rows, 6) {
		stored = append(stored, string(rune('1'+i)))
	}
	if len(stored) == 0 {
		return column{}, ""
	}
	c = column{name: "ref", typ: byOID[types.OIDInt4], stored: stored}
	actions := pick(g, []string{"", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON UPDATE CASCADE ON DELETE CASCADE", " DEFERRABLE"})
	return c, "ref int4 REFERENCES " + to.name + " (id)" + actions
}

// isUserType reports whether an OID stands for a type of a user.
func isUserType(oid types.OID) bool { return oid >= oidMood }
