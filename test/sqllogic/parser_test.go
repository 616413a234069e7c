package sqllogic

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Goal: a test file is parsed as specified, with line numbers, on which exclude files and the rewriter depend. Method:
// one text with every construct, compared with the expected records.
func TestParse(t *testing.T) {
	text := "# a comment\r\n" +
		"\n" +
		"statement ok\n" + // 3
		"CREATE TABLE t(a int,\n" +
		"  b text)\n" +
		"\n" +
		"skipif mysql # not compatible\n" + // 7
		"onlyif postgresql\n" +
		"statement error 23505\n" +
		"INSERT INTO t\n" +
		"\n" +
		"hash-threshold 8\n" + // 12
		"\n" +
		"query IT rowsort label-1\r\n" + // 14
		"SELECT a, b FROM t\r\n" +
		"----\r\n" +
		"1\r\n" +
		"x y\r\n" +
		"\r\n" +
		"query I valuesort label-2\n" + // 20
		"SELECT a FROM t\n" +
		"----\n" +
		"30 values hashing to 3c13dee48d9356ae19af2515e05e6b54\n" +
		"\n" +
		"query T\n" + // 25
		"SELECT b FROM t WHERE false\n" +
		"----\n" +
		"\n" +
		"control resultmode rowwise\n" + // 29
		"\n" +
		"connection other\n" + // 31
		"statement count 2\n" +
		"DELETE FROM t\n" +
		"\n" +
		"query II nosort\n" + // 35
		"SELECT 1, 2\n" +
		"\n" +
		"onlyif oracle\n" + // 38
		"halt\n" +
		"\n" +
		"query ?\n" + // 41
		"SELECT 1\n" +
		"----\n" +
		"1\n" +
		"\n" +
		"statement count 2\n" + // 46
		"COPY t FROM STDIN\n" +
		"----\n" +
		"1\tx\n" +
		"2\t\\N\n"
	got, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []record{
		{kind: kindStatementOK, line: 3, headerLine: 3, sql: "CREATE TABLE t(a int,\n  b text)", bodyEnd: 6},
		{
			kind: kindStatementError, line: 7, headerLine: 9, sqlState: "23505", sql: "INSERT INTO t", bodyEnd: 11,
			conditions: []condition{{false, "mysql"}, {true, "postgresql"}},
		},
		{kind: kindHashThreshold, line: 12, headerLine: 12, count: 8},
		{
			kind: kindQuery, line: 14, headerLine: 14, types: "IT", sort: sortRows, label: "label-1",
			sql: "SELECT a, b FROM t", bodyEnd: 16, expected: []string{"1", "x y"}, resultFrom: 17, resultTo: 19,
		},
		{
			kind: kindQuery, line: 20, headerLine: 20, types: "I", sort: sortValues, label: "label-2",
			sql: "SELECT a FROM t", bodyEnd: 22, hash: "3c13dee48d9356ae19af2515e05e6b54", hashCount: 30, resultFrom: 23, resultTo: 24,
		},
		{kind: kindQuery, line: 25, headerLine: 25, types: "T", sql: "SELECT b FROM t WHERE false", bodyEnd: 27, resultFrom: 28, resultTo: 28},
		{kind: kindResultMode, line: 29, headerLine: 29, rowwise: true},
		{kind: kindStatementCount, line: 31, headerLine: 32, connection: "other", count: 2, sql: "DELETE FROM t", bodyEnd: 34, rowwise: true},
		{kind: kindQuery, line: 35, headerLine: 35, types: "II", sql: "SELECT 1, 2", bodyEnd: 37, rowwise: true},
		{kind: kindHalt, line: 38, headerLine: 39, conditions: []condition{{true, "oracle"}}, rowwise: true},
		{
			kind: kindQuery, line: 41, headerLine: 41, types: "?", sql: "SELECT 1", bodyEnd: 43,
			expected: []string{"1"}, resultFrom: 44, resultTo: 45, rowwise: true,
		},
		{
			kind: kindStatementCount, line: 46, headerLine: 46, count: 2, sql: "COPY t FROM STDIN", bodyEnd: 48,
			data: "1\tx\n2\t\\N\n", rowwise: true,
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(record{}, condition{})); diff != "" {
		t.Errorf("records differ (-want +got):\n%s", diff)
	}
}

// Goal: a mistake in a test file is an error with its line, never a record that always passes. Method: one mistake
// each.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"frobnicate\n",
		"statement\nSELECT 1\n",
		"statement maybe\nSELECT 1\n",
		"statement ok\n\nSELECT 1\n",
		"statement ok\nSELECT 1\n----\n\n1\n",
		"statement error 2350\nSELECT 1\n",
		"statement count\nSELECT 1\n",
		"statement count -1\nSELECT 1\n",
		"query\nSELECT 1\n",
		"query X\nSELECT 1\n",
		"query I\n----\n1\n",
		"control resultmode rowwise\n\nquery I valuesort\nSELECT 1\n",
		"control resultmode sideways\n",
		"hash-threshold many\n",
		"skipif\nstatement ok\nSELECT 1\n",
		"connection a b\nstatement ok\nSELECT 1\n",
		"onlyif postgresql\n",
	} {
		if records, err := parse(text); err == nil {
			t.Errorf("%q is accepted, as %+v", text, records)
		}
	}
}

func TestConditions(t *testing.T) {
	r := record{conditions: []condition{{only: false, dialect: "mysql"}, {only: true, dialect: "postgresql"}}}
	for dialect, want := range map[string]bool{"postgresql": true, "mysql": false, "sqlite": false} {
		if got := r.runs(dialect); got != want {
			t.Errorf("runs(%s) = %v", dialect, got)
		}
	}
}

// Goal: no file, however damaged, makes the parser panic or hang.
func FuzzParse(f *testing.F) {
	f.Add("statement ok\nSELECT 1\n\nquery I rowsort x\nSELECT 1\n----\n1\n")
	f.Add("onlyif a\nskipif b\nconnection c\nquery T\nS\n----\n3 values hashing to 00000000000000000000000000000000\n")
	f.Fuzz(func(t *testing.T, text string) {
		records, err := parse(text)
		if err != nil {
			return
		}
		createdObjects(records, "postgresql")
	})
}
