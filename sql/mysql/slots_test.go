package mysql_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/mysql"
	"github.com/percodb/percodb/sql/pgerror"
)

// read returns the first statement of a text as sessions read it.
func read(t *testing.T, text string) *sql.Statement {
	t.Helper()
	var l mysql.Lexer
	l.Reset(text)
	st, _, err := l.Next()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return st
}

// TestSlots: texts that differ in literals have one plan, except where a literal decides what the statement is.
func TestSlots(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"SELECT a FROM t WHERE id = 1", "SELECT a  FROM `t` WHERE id = 22", true},
		{"SELECT a FROM t WHERE s = 'x' AND n < 1.5", "SELECT a FROM t WHERE s = \"it's\" AND n < 2.5", true},
		{"SELECT a FROM t WHERE id IN (1, 2)", "SELECT a FROM t WHERE id IN (3, 4)", true},
		{"UPDATE t SET a = 1 WHERE id = 2", "UPDATE t SET a = 3 WHERE id = 4", true},
		{"DELETE FROM t WHERE id = 2", "DELETE FROM t WHERE id = 4", true},
		{"INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (2, 'y')", true},
		{"SELECT a FROM t WHERE id = 1", "SELECT a FROM t WHERE id = 1.0", false},
		{"SELECT a FROM t WHERE id = 1", "SELECT a FROM t WHERE id = 3000000000", false},
		{"SELECT a, b FROM t ORDER BY 1", "SELECT a, b FROM t ORDER BY 2", false},
		{"SELECT a FROM t LIMIT 1", "SELECT a FROM t LIMIT 2", false},
		{"SELECT LEFT(a, 1) x FROM t GROUP BY LEFT(a, 1)", "SELECT LEFT(a, 1) x FROM t GROUP BY LEFT(a, 2)", false},
		{"SELECT 1", "SELECT 2", false}, // the name of the column
		{"INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1", "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2", false},
	} {
		a, b := read(t, c.a), read(t, c.b)
		if len(a.Key) == 0 || len(b.Key) == 0 {
			t.Errorf("%s: no key", c.a)
		}
		if (string(a.Key) == string(b.Key)) != c.same {
			t.Errorf("%s\n%s\none key: %v", c.a, c.b, !c.same)
		}
		sameTree(t, c.a)
		sameTree(t, c.b)
	}
	if st := read(t, "SELECT é FROM t WHERE a = 'x' AND b = 5 AND c = 'x'"); len(st.Literals) != 3 || st.Literals[0].Pos != 27 || st.Literals[1].Pos != 39 || st.Literals[2].Pos != 49 {
		t.Errorf("literals %+v", st.Literals)
	}
}

// sameTree checks that the tree with slots is the converted one, with its positions.
func sameTree(t *testing.T, text string) {
	t.Helper()
	statements, err := mysql.Parse(text)
	if err != nil {
		return
	}
	var l mysql.Lexer
	l.Reset(text)
	for i := range statements {
		st, _, err := l.Next()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		tree, err := sql.Parse(st, nil)
		if err != nil && asError(t, err).Code == pgerror.FeatureNotSupported {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(statements[i].Tree, tree, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(ast.Literal{}, "Slot")); diff != "" {
			t.Errorf("%s: the tree with slots differs (-converted +with slots):\n%s", text, diff)
		}
	}
}
