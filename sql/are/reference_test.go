package are

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// patternMaker writes random patterns.
type patternMaker struct {
	rng    *rand.Rand
	groups int
	b      strings.Builder
}

func (g *patternMaker) pick(list ...string) { g.b.WriteString(list[g.rng.IntN(len(list))]) }

func (g *patternMaker) atom(depth int) {
	if depth <= 0 || g.rng.IntN(3) > 0 {
		g.pick("a", "b", "c", "a", "b", ".", "[ab]", "[^a]", "[a-c]", `\w`, `\W`, `\d`, " ", "é", "[[:alpha:]]", "[^b]", "A", "1", `\n`, "x")
		return
	}
	switch g.rng.IntN(6) {
	case 0, 1:
		g.groups++
		g.b.WriteByte('(')
	default:
		g.pick("(?:", "(", "(")
		if strings.HasSuffix(g.b.String(), "(") {
			g.groups++
		}
	}
	g.alternatives(depth - 1)
	g.b.WriteByte(')')
}

func (g *patternMaker) alternatives(depth int) {
	for n := 1 + g.rng.IntN(3)/2; n > 0; n-- {
		for range g.rng.IntN(4) {
			switch g.rng.IntN(14) {
			case 0:
				g.pick("^", "$", `\m`, `\M`, `\y`, `\Y`, `\A`, `\Z`)
				continue
			case 1:
				if g.groups > 0 {
					fmt.Fprintf(&g.b, `\%d`, 1+g.rng.IntN(g.groups))
				}
				continue
			case 2:
				if depth > 0 {
					before := g.groups
					g.pick("(?=", "(?!", "(?<=", "(?<!")
					g.groups = -100
					g.alternatives(0)
					g.groups = before
					g.b.WriteByte(')')
				}
				continue
			}
			g.atom(depth)
			if g.rng.IntN(2) == 0 {
				g.pick("*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2}?", "{1,2}?", "{0,2}", "{1,}", "{2,}?", "{1}?", "{0}", "{1,1}?", "{1,1}", "*", "*?")
			}
		}
		if n > 1 {
			g.b.WriteByte('|')
		}
	}
}

// positions describes a match as regexp_instr does: where each group begins and ends, counted in characters from 1.
func positions(text string, m []int) string {
	var b strings.Builder
	for i := 0; i < len(m); i += 2 {
		if m[i] < 0 {
			b.WriteString("0,0 ")
			continue
		}
		fmt.Fprintf(&b, "%d,%d ", utf8.RuneCountInString(text[:m[i]])+1, utf8.RuneCountInString(text[:m[i+1]])+1)
	}
	return b.String()
}

// Goal: matches, groups and errors are PostgreSQL's. Method: random patterns, texts and options, with the server that
// PERCODB_TEST_PG_DSN names as the reference.
func TestReference(t *testing.T) {
	dsn := os.Getenv("PERCODB_TEST_PG_DSN")
	if dsn == "" {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	// A few nests of empty matches with repeated back references differ in which empty captures are set.
	const rounds, tolerated = 20000, 10
	bad := 0
	for range rounds {
		g := &patternMaker{rng: rng}
		g.alternatives(3)
		pattern := g.b.String()
		var text strings.Builder
		for range rng.IntN(12) {
			text.WriteString([]string{"a", "b", "c", "a", "b", "A", " ", "é", "\n", "1", "x"}[rng.IntN(11)])
		}
		options := []string{"", "", "", "i", "n", "x", "p", "w"}[rng.IntN(8)]
		if want, got := reference(ctx, t, conn, pattern, text.String(), options), find(t, pattern, text.String(), options); want != got {
			t.Logf("pattern %q text %q options %q:\nwant %s\ngot  %s", pattern, text.String(), options, want, got)
			if bad++; bad > tolerated {
				t.Fatal("too many differences")
			}
		}
	}
}

func reference(ctx context.Context, t *testing.T, conn *pgconn.PgConn, pattern, text, options string) string {
	groups := 0
	if re, err := Compile(pattern, 0); err == nil {
		groups = re.Groups()
	}
	r := conn.ExecParams(ctx, `SELECT regexp_like($1, $2, $3), array_to_string(array(SELECT regexp_instr($1, $2, 1, 1, 0, $3, k) || ',' || regexp_instr($1, $2, 1, 1, 1, $3, k)
		FROM generate_series(0, $4::int) k), ' ') || ' '`, [][]byte{[]byte(text), []byte(pattern), []byte(options), fmt.Append(nil, groups)}, nil, nil, nil).Read()
	if r.Err != nil {
		return strings.TrimPrefix(r.Err.(*pgconn.PgError).Message, "invalid regular expression: ")
	}
	if string(r.Rows[0][0]) == "f" {
		return "no match"
	}
	return strings.TrimSpace(strings.ReplaceAll(string(r.Rows[0][1])+" ", "0,0 ", ""))
}

func find(t *testing.T, pattern, text, options string) string {
	var flags Flags
	for i := range len(options) {
		flags.Set(options[i])
	}
	re, err := Compile(pattern, flags)
	if err != nil {
		return err.Error()
	}
	m, err := re.Find(text, 0, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	matched, err := re.Matches(text, nil)
	if err != nil || matched != (m != nil) {
		t.Errorf("pattern %q text %q options %q: Matches is %v", pattern, text, options, matched)
	}
	if m == nil {
		return "no match"
	}
	return strings.TrimSpace(strings.ReplaceAll(positions(text, m), "0,0 ", ""))
}
