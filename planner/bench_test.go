package planner

import (
	"context"
	"testing"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/builtin"
)

// benchSchema is like the tables of sqllogictest's index files, and pgbench's.
const benchSchema = `
table tab rows=1000: pk int4 pk, col0 int4, col1 float8, col2 text, col3 int4, col4 float8, col5 text
index tab_0 on tab: col0
index tab_1 on tab: col1
index tab_3 on tab: col3
table accounts rows=1000000: aid int4 pk, bid int4, abalance int4, filler char(84)
table t1 rows=100: a int4 pk, b int4, c int4, d int4, e int4
table t2 rows=100: a int4 pk, b int4, c int4, d int4, e int4
table t3 rows=100: a int4 pk, b int4, c int4, d int4, e int4
`

// BenchmarkBuild measures planning alone: the statement is parsed once.
func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"point", "SELECT abalance FROM accounts WHERE aid = 17"},
		{"update", "UPDATE accounts SET abalance = abalance + 5 WHERE aid = 17"},
		{"insert", "INSERT INTO tab VALUES (1, 2, 3.5, 'a', 4, 5.5, 'b')"},
		{"range", "SELECT pk FROM tab WHERE (col0 > 4508 AND col3 <= 12) OR col4 BETWEEN 1.5 AND 3 ORDER BY 1 DESC"},
		{"aggregate", "SELECT col3, count(*), sum(col0) FROM tab WHERE col0 > 3 GROUP BY col3 ORDER BY 2 DESC LIMIT 5"},
		{"join3", "SELECT t1.b, t2.c, t3.d FROM t1, t2, t3 WHERE t1.a = t2.b AND t2.a = t3.b AND t1.c = 5"},
	} {
		b.Run("statement="+c.name, func(b *testing.B) {
			m := newMemCatalog()
			if err := m.define(benchSchema); err != nil {
				b.Fatal(err)
			}
			lexer := sql.NewLexer()
			lexer.Reset(c.text)
			st, err := lexer.Next()
			if err != nil {
				b.Fatal(err)
			}
			tree, err := sql.Parse(st, nil)
			if err != nil {
				b.Fatal(err)
			}
			env := &builtin.Env{}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Build(context.Background(), tree, m, env, Options{Literals: st.Literals}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
