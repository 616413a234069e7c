package fuzzsql

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/sql/types"
)

func TestMinimise(t *testing.T) {
	// Goal: a failing tree shrinks to the parts that make it fail. Method: fail on texts.
	num := func(parts ...any) *tree { return seq(parts...).as("expr:int4", "0") }
	make := func() *tree {
		inner := num("abs(", num("1 / ", num("7"), ""), ")")
		q := seq("SELECT ", listOf(", ", 1, num("5"), num("2 + ", inner), num("x")), opt(" FROM t"), opt(" WHERE ", num("bad")), " ORDER BY 1")
		return listOf(";\n", 1, optional(leaf("BEGIN")), q, &tree{text: "ROLLBACK", keep: true})
	}
	for _, c := range []struct{ keep, want string }{
		{"1 / ", "SELECT 1 / 0 ORDER BY 1;\nROLLBACK"},
		{"bad", "SELECT 0 WHERE bad ORDER BY 1;\nROLLBACK"},
		{"x", "SELECT x ORDER BY 1;\nROLLBACK"},
		{"BEGIN", "BEGIN;\nROLLBACK"},
		{"FROM t", "SELECT 0 FROM t ORDER BY 1;\nROLLBACK"},
	} {
		tr := make()
		m := &minimiser{tries: 1000, deadline: time.Now().Add(time.Minute), fails: func() bool { return strings.Contains(tr.String(), c.keep) }}
		m.shrink(tr)
		if got := tr.String(); got != c.want {
			t.Errorf("keeping %q: %q, want %q", c.keep, got, c.want)
		}
	}
}

func TestSeedDeterminesStatements(t *testing.T) {
	statements := func(seed uint64) string {
		g := newGen(seed)
		g.world = g.newWorld()
		var b strings.Builder
		for range 200 {
			b.WriteString(g.unit().stmts.String())
		}
		return b.String()
	}
	if a, b := statements(7), statements(7); a != b {
		t.Error("two runs of one seed differ")
	}
	if statements(7) == statements(8) {
		t.Error("two seeds make the same statements")
	}
}

func TestParameters(t *testing.T) {
	one := byOID[types.OIDInt4].constant("1")
	text, values := seq("SELECT ", one, ", ", byOID[types.OIDText].constant("1"), " GROUP BY ", one.clone()).withParameters()
	if text != "SELECT $1::int4, $2::text GROUP BY $1::int4" || len(values) != 2 {
		t.Errorf("%s with %v", text, values)
	}
}

func TestCompare(t *testing.T) {
	table := func(oid types.OID, rows ...string) *outcome {
		o := &outcome{columns: []resultColumn{{"k1", oid, -1}}, tag: "SELECT"}
		for _, r := range rows {
			o.rows = append(o.rows, []string{r})
		}
		return o
	}
	fails := func(code, message string, position int32) *outcome {
		return &outcome{err: &pgconn.PgError{Code: code, Message: message, Position: position}}
	}
	strict := comparison{ordered: true, position: true, tag: true}
	for _, c := range []struct {
		got, want *outcome
		c         comparison
		kind      string
	}{
		{table(23, "1", "2"), table(23, "2", "1"), comparison{}, ""},
		{table(23, "1", "2"), table(23, "2", "1"), strict, "order"},
		{table(23, "1"), table(23, null), strict, "rows:"},
		{table(23, "1"), table(23, "1", "1"), strict, "rows:"},
		{table(23, "1"), table(20, "1"), strict, "type"},
		{table(600, "(1,2)"), table(600, "(1,2.0000000000000004)"), strict, ""},
		{table(600, "(1,2)"), table(600, "(1,2.1)"), strict, "rows:"},
		{table(20001, undecoded+"00", undecoded+"ff"), table(20001, "(1)", "(0)"), strict, ""},
		{table(20001, undecoded+"00"), table(20001, null), strict, "rows:"},
		{table(701, "0.1"), table(701, "0.10000000000000002"), strict, ""},
		{table(701, "0.1"), table(701, "0.1000000001"), strict, "rows:"},
		{table(701, "0"), table(701, "-0"), strict, "rows:"},
		{table(1700, "1.0"), table(1700, "1.00"), strict, "rows:"},
		{table(23), fails("22012", "division by zero", 0), strict, "success"},
		{fails("22012", "division by zero", 0), table(23), strict, "error"},
		{fails("22012", "division by zero", 0), fails("22003", "division by zero", 0), strict, "code"},
		{fails("22012", "a", 0), fails("22012", "b", 0), strict, "message"},
		{fails("22012", "a", 3), fails("22012", "a", 4), strict, "position"},
		{fails("22012", "a", 3), fails("22012", "a", 4), comparison{}, ""},
		{&outcome{lost: "EOF"}, table(23), strict, "lost:"},
	} {
		text := compare(c.got, c.want, c.c)
		if kind, _, _ := strings.Cut(text, " "); kind != c.kind {
			t.Errorf("%v, %v: %q, want %q", c.got, c.want, text, c.kind)
		}
	}
}
