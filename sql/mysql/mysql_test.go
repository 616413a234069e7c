package mysql_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/mysql"
	"github.com/percodb/percodb/sql/pgerror"
)

// TestTables compares what MySQL texts become with testdata: the statements' trees as SQL, the notices, or the error.
func TestTables(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "fuzz") || strings.Contains(path, "dump") {
			return
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			statements, err := mysql.Parse(d.Input)
			if err != nil {
				e := asError(t, err)
				if e.Code == pgerror.FeatureNotSupported && e.Hint == "" {
					t.Errorf("%s: no hint", d.Input)
				}
				return strings.TrimSpace(string(e.Code)+": "+e.Message+"\n"+e.Hint) + "\n"
			}
			sameTree(t, d.Input)
			var b strings.Builder
			for i := range statements {
				roundTrip(t, &statements[i])
				b.WriteString(statements[i].Tree.String() + "\n")
				if table, ok := statements[i].Tree.(*ast.CreateTable); ok {
					for _, ix := range table.Indexes {
						b.WriteString("with " + ix.String() + "\n")
					}
				}
				for _, n := range statements[i].Notices {
					b.WriteString("notice: " + n + "\n")
				}
			}
			return b.String()
		})
	})
}

func asError(t *testing.T, err error) *pgerror.Error {
	t.Helper()
	var e *pgerror.Error
	if !errors.As(err, &e) {
		t.Fatalf("not a *pgerror.Error: %v", err)
	}
	return e
}

// roundTrip checks that a tree's text parses to an equal tree in PostgreSQL's dialect.
func roundTrip(t *testing.T, st *mysql.Statement) {
	t.Helper()
	if ins, ok := st.Tree.(*ast.Insert); ok && ins.OnConflict != nil && ins.OnConflict.AnyKey {
		return
	}
	if q, ok := st.Tree.(*ast.Query); ok {
		ast.InspectQuery(q, ast.Visitor{Expr: func(x ast.Expr) {
			if lit, ok := x.(*ast.Literal); ok && lit.Slot != -1 {
				t.Errorf("%s: the literal %s has the slot %d", st.Text, lit, lit.Slot)
			}
		}})
	}
	if table, ok := st.Tree.(*ast.CreateTable); ok && len(table.Indexes) > 0 {
		for _, ix := range table.Indexes {
			roundTrip(t, &mysql.Statement{Tree: ix, Text: st.Text})
		}
		return
	}
	text := st.Tree.String()
	again, err := sql.ParseTree(text)
	if err != nil {
		t.Errorf("%s\nbecame %s\nwhich does not parse: %v", st.Text, text, err)
		return
	}
	if diff := cmp.Diff(st.Tree, again, equalTrees); diff != "" {
		t.Errorf("%s\nbecame %s\nwhich parses to another tree (-mysql +postgresql):\n%s", st.Text, text, diff)
	}
}

// equalTrees compares trees but for positions, slots, and texts kept beside them.
var equalTrees = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b ast.Pos) bool { return true }),
	cmpopts.IgnoreFields(ast.Literal{}, "Slot"),
	cmpopts.IgnoreFields(ast.SelectItem{}, "Aliased"),
}

// TestStatements checks what a statement knows about its text.
func TestStatements(t *testing.T) {
	text := " SELECT ? ;; INSERT INTO t VALUES (?, ?) ; ALTER TABLE t ADD COLUMN b INT, ADD KEY (b)"
	statements, err := mysql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	type known struct {
		Text         string
		Offset, Part int
		Params       int
	}
	var got []known
	for _, st := range statements {
		got = append(got, known{st.Text, st.Offset, st.Part, st.Params})
	}
	want := []known{
		{"SELECT ?", 1, 0, 1},
		{"INSERT INTO t VALUES (?, ?)", 13, 0, 2},
		{"ALTER TABLE t ADD COLUMN b INT, ADD KEY (b)", 43, 0, 0},
		{"ALTER TABLE t ADD COLUMN b INT, ADD KEY (b)", 43, 1, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPositions checks that errors point into the client's text.
func TestPositions(t *testing.T) {
	for text, want := range map[string]int{
		"SELECT 'ä', a REGEXP b":      13,
		"SELECT 1;\nSELECT FROM":      18,
		"SELECT ä + LAST_INSERT_ID()": 12,
	} {
		_, err := mysql.Parse(text)
		if e := asError(t, err); e.Position != want {
			t.Errorf("%q: position %d, want %d", text, e.Position, want)
		}
	}
}

// TestNesting checks that deep texts are refused before anything recurses over them, and long ones are not.
func TestNesting(t *testing.T) {
	const n = 1_000_000
	for name, text := range map[string]string{
		"parentheses": "SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n),
		"chain":       "SELECT 1" + strings.Repeat("+1", n),
		"prefix":      "SELECT " + strings.Repeat("- ", n) + "1",
		"not":         "SELECT " + strings.Repeat("NOT ", n) + "1",
		"union":       "SELECT 1" + strings.Repeat(" UNION SELECT 1", n/10),
		"comment":     "SELECT /*! 1 */ 1" + strings.Repeat("/*!+*/1", n/10),
	} {
		_, err := mysql.Parse(text)
		if err == nil || asError(t, err).Code != pgerror.StatementTooComplex {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := mysql.Parse("INSERT INTO t VALUES (1, 'a')" + strings.Repeat(", (2, 'b')", 30_000)); err != nil {
		t.Errorf("many rows: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the corpus's directory
		}
		for _, c := range strings.Split(string(b), "parse\n") {
			text, _, _ := strings.Cut(c, "\n----")
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		statements, err := mysql.Parse(text)
		if err != nil {
			if e := asError(t, err); e.Code == pgerror.InternalError {
				t.Fatal(err)
			}
			return
		}
		for i := range statements {
			roundTrip(t, &statements[i])
		}
		sameTree(t, text)
	})
}
