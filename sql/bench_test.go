package sql

import "testing"

// The goal: what a statement costs before planning. Lexing is on the path of every simple query, parsing
// on that of every statement whose plan is not cached.

const (
	pointSelect   = "SELECT abalance FROM pgbench_accounts WHERE aid = 4711;"
	typicalSelect = `SELECT CASE WHEN c>(SELECT avg(c) FROM t1) THEN a*2 ELSE b*10 END, a+b*2+c*3, abs(b-c)
  FROM t1 WHERE (e>c OR e<d) AND d>e AND a>b OR EXISTS(SELECT 1 FROM t1 AS x WHERE x.b<t1.b) ORDER BY 1,2`
	tenWayJoin = `SELECT a.id, b.name, c.total FROM a JOIN b ON b.a = a.id JOIN c ON c.b = b.id LEFT JOIN d ON d.c = c.id
  JOIN e ON e.d = d.id JOIN f ON f.e = e.id LEFT JOIN g ON g.f = f.id AND g.kind = 'x' JOIN h USING (id) JOIN i ON i.h = h.id
  JOIN j ON j.i = i.id WHERE a.id = 4711 AND b.name LIKE 'x%' ORDER BY c.total DESC LIMIT 10`
)

func BenchmarkLexPointSelect(b *testing.B) { benchLex(b, pointSelect) }

func BenchmarkLexTypicalSelect(b *testing.B) { benchLex(b, typicalSelect) }

func benchLex(b *testing.B, text string) {
	lexer := NewLexer()
	b.ReportAllocs()
	for b.Loop() {
		lexer.Reset(text)
		if _, err := lexer.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParsePointSelect(b *testing.B) { benchParse(b, pointSelect) }

func BenchmarkParseTypicalSelect(b *testing.B) { benchParse(b, typicalSelect) }

func BenchmarkParseTenWayJoin(b *testing.B) { benchParse(b, tenWayJoin) }

func BenchmarkParseInsert(b *testing.B) {
	benchParse(b, "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 2, 3, 4, CURRENT_TIMESTAMP)")
}

// TestParseAllocations bounds what parsing allocates, in the statements of the benchmarks.
func TestParseAllocations(t *testing.T) {
	for _, c := range []struct {
		text   string
		budget float64
	}{{pointSelect, 10}, {typicalSelect, 73}, {tenWayJoin, 71}} {
		lexer := NewLexer()
		lexer.Reset(c.text)
		st, err := lexer.Next()
		if err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(100, func() {
			if _, err := Parse(st, nil); err != nil {
				t.Fatal(err)
			}
		})
		if n > c.budget {
			t.Errorf("%v allocations for %s, want at most %v", n, c.text, c.budget)
		}
	}
}

func benchParse(b *testing.B, text string) {
	lexer := NewLexer()
	lexer.Reset(text)
	st, err := lexer.Next()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(st, nil); err != nil {
			b.Fatal(err)
		}
	}
}
