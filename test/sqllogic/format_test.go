package sqllogic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Goal: values have the classic format for every column letter, and exact mode keeps what it would drop. Method: a
// table of values.
func TestValueForms(t *testing.T) {
	const text, integer = 25, 23
	for _, c := range []struct {
		value  string // "\x00" stands for NULL
		letter byte
		oid    uint32
		exact  bool
		want   string
	}{
		{"42", 'I', integer, false, "42"},
		{"-42", 'I', integer, false, "-42"},
		{"12.75", 'I', 1700, false, "12"},
		{"12.75", 'I', 1700, true, "12.75"},
		{"-0.75", 'I', 1700, false, "0"},
		{"hello", 'I', text, false, "0"},
		{"-", 'I', text, false, "0"},
		{"", 'I', text, false, "0"},
		{"t", 'I', boolOID, false, "1"},
		{"f", 'I', boolOID, true, "0"},
		{"t", 'I', text, false, "0"},
		{"1", 'R', integer, false, "1.000"},
		{"2.6666666666666667", 'R', 1700, false, "2.667"},
		{"-0.0004", 'R', 701, false, "-0.000"},
		{"1e3", 'R', 701, false, "1000.000"},
		{"NaN", 'R', 701, false, "NaN"},
		{"Infinity", 'R', 701, false, "Infinity"},
		{"", 'T', text, false, "(empty)"},
		{"", 'T', text, true, "(empty)"},
		{"a b~", 'T', text, false, "a b~"},
		{"tab\there\n", 'T', text, false, "tab@here@"},
		{"ä", 'T', text, false, "@@"},
		{"ä\t😀\x7f\xff", 'T', text, true, "ä@😀@@"},
		{"\x00", 'I', integer, false, "NULL"},
		{"\x00", 'R', integer, false, "NULL"},
		{"\x00", 'T', text, true, "NULL"},
	} {
		var r result
		r.reset(1)
		value := []byte(c.value)
		if c.value == "\x00" {
			value = nil
		}
		r.add(value, c.letter, c.oid, c.exact)
		if got := string(r.value(0)); got != c.want {
			t.Errorf("%q as %c (type %d, exact %v) is %q, want %q", c.value, c.letter, c.oid, c.exact, got, c.want)
		}
	}
}

// Goal: the three sort modes order values as SQLite's program does, and the hash is over the sorted values. Method: one
// result, its lines in each mode; md5sum has computed the hash.
func TestArrange(t *testing.T) {
	var r result
	r.reset(2)
	for _, v := range []string{"b", "2", "a", "10", "a", "1", "", "9"} {
		r.add([]byte(v), 'T', 25, false)
	}
	for _, c := range []struct {
		mode sortMode
		want string
	}{
		{sortNone, "b 2 a 10 a 1 (empty) 9"},
		{sortRows, "(empty) 9 a 1 a 10 b 2"},
		{sortValues, "(empty) 1 10 2 9 a a b"},
	} {
		r.arrange(c.mode)
		if got := strings.Join(r.lines(false), " "); got != c.want {
			t.Errorf("mode %d: %s, want %s", c.mode, got, c.want)
		}
	}
	r.arrange(sortRows)
	if diff := cmp.Diff([]string{"(empty) | 9", "a | 1", "a | 10", "b | 2"}, r.lines(true)); diff != "" {
		t.Errorf("rows by line (-want +got):\n%s", diff)
	}
	if got := fmt.Sprintf("%x", r.sum()); got != "2ab8ebfef466e6ad39e0d222a1fe75bf" {
		t.Errorf("hash is %s", got)
	}
}

func TestMatches(t *testing.T) {
	var r result
	r.reset(2)
	for _, v := range []string{"1", "x", "2", "y"} {
		r.add([]byte(v), 'T', 25, false)
	}
	r.arrange(sortNone)
	digest := r.sum()
	hash := fmt.Sprintf("%x", digest)
	for _, c := range []struct {
		rec  record
		want bool
	}{
		{record{expected: []string{"1", "x", "2", "y"}}, true},
		{record{expected: []string{"1", "x", "2"}}, false},
		{record{expected: []string{"1", "x", "2", "z"}}, false},
		{record{}, false},
		{record{rowwise: true, expected: []string{"1 | x", "2 | y"}}, true},
		{record{rowwise: true, expected: []string{"1 | x", "2 | z"}}, false},
		{record{rowwise: true, expected: []string{"1", "x", "2", "y"}}, false},
		{record{hash: hash, hashCount: 4}, true},
		{record{hash: hash, hashCount: 3}, false},
		{record{hash: strings.Repeat("0", 32), hashCount: 4}, false},
	} {
		if got := r.matches(&c.rec, digest); got != c.want {
			t.Errorf("%+v matches: %v", c.rec, got)
		}
	}
}

// Goal: the objects that files create are found, so that they can be dropped, and no others. Method: statements in
// various spellings.
func TestCreatedObject(t *testing.T) {
	for sql, want := range map[string]object{
		"CREATE TABLE t(a int)":                        {"TABLE", "t"},
		"create table if not exists S.\"Odd (\" (x)":   {"TABLE", `S."Odd ("`},
		"CREATE UNLOGGED TABLE u AS SELECT 1":          {"TABLE", "u"},
		"  CREATE\n  TABLE\tnl\n(a int)":               {"TABLE", "nl"},
		"CREATE OR REPLACE VIEW v AS SELECT 1":         {"VIEW", "v"},
		"CREATE VIEW v2(p) AS SELECT 1":                {"VIEW", "v2"},
		"CREATE MATERIALIZED VIEW m AS SELECT 1":       {"MATERIALIZED VIEW", "m"},
		"CREATE SEQUENCE s":                            {"SEQUENCE", "s"},
		"ALTER TABLE t RENAME TO other":                {"TABLE", "other"},
		"ALTER TABLE IF EXISTS ONLY t RENAME TO o2":    {"TABLE", "o2"},
		"ALTER TABLE t RENAME COLUMN a TO b":           {},
		"ALTER TABLE t ADD COLUMN c int":               {},
		"CREATE TEMP TABLE t(a int)":                   {},
		"CREATE INDEX i ON t(a)":                       {},
		"CREATE TABLESPACE x":                          {},
		"CREATE TABLE \"unterminated":                  {},
		"SELECT 1":                                     {},
		"-- CREATE TABLE t\nINSERT INTO t SELECT 1":    {},
		"CREATE TABLE ünï(a int)":                      {"TABLE", "ünï"},
		"CREATE VIEW \"with \"\"quotes\"\"\" AS TABLE": {"VIEW", `"with ""quotes"""`},
	} {
		got, ok := createdObject(sql)
		if got != want || ok != (want != object{}) {
			t.Errorf("%q: %+v, %v", sql, got, ok)
		}
	}
}
