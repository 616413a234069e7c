package sql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/pgerror"
)

// pollContext counts calls of Err, and is cancelled at the given call.
type pollContext struct {
	context.Context
	polls, cancelAt int // cancelAt 0: never
}

func (c *pollContext) Err() error {
	if c.polls++; c.cancelAt > 0 && c.polls >= c.cancelAt {
		return context.Canceled
	}
	return nil
}

// lexAndParse passes a whole text through the Lexer and the parser.
func lexAndParse(text string, m *Meter) error {
	lexer := NewLexer()
	lexer.UseMeter(m)
	lexer.Reset(text)
	for {
		st, err := lexer.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := Parse(st, m); err != nil {
			return err
		}
	}
}

// longTexts are texts with the number of their tokens, and of the passes over those.
var longTexts = []struct {
	name   string
	text   string
	tokens int
	passes int // over tokens: the Lexer has six over those of statements with plans, the parser four
}{
	{"IN", "SELECT a FROM t WHERE a IN (1" + strings.Repeat(",2", 100_000) + ")", 200_000, 9},
	{"GROUP BY", "SELECT a FROM t WHERE a IN (1" + strings.Repeat(",'x'", 100_000) + ") GROUP BY a", 200_000, 9},
	{"VALUES", "INSERT INTO t VALUES (1)" + strings.Repeat(",($1)", 50_000), 200_000, 9},
	{"names", "SELECT a" + strings.Repeat(",a", 100_000) + " FROM t", 200_000, 8},
	{"no plan", "CREATE TABLE t (a int)" + strings.Repeat("; ANALYZE t", 50_000), 150_000, 0},
	{"minima", "SELECT -2147483648" + strings.Repeat(",-2147483648", 100_000), 300_000, 6},
}

// Goal: no pass over a long text goes on without asking whether it was cancelled. Method: polls are counted, which must be
// as many as the tokens of all passes require; a cancel at any of them ends the work there.
func TestMeterPolls(t *testing.T) {
	for _, c := range longTexts {
		ctx := &pollContext{}
		m := NewMeter(nil)
		m.Begin(ctx)
		if err := lexAndParse(c.text, m); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		all := ctx.polls
		if want := c.passes * c.tokens / (pollTokens + 1); all < want || all < len(c.text)/(pollBytes+100) {
			t.Errorf("%s: %d polls for %d tokens, want %d", c.name, all, c.tokens, want)
		}
		for at := 1; at <= all; at += 1 + all/10 {
			ctx := &pollContext{cancelAt: at}
			m.Begin(ctx)
			if err := lexAndParse(c.text, m); !errors.Is(err, context.Canceled) || ctx.polls != at {
				t.Errorf("%s: cancelled at poll %d: %v after %d polls", c.name, at, err, ctx.polls)
			}
		}
	}
}

// Goal: one long token is no exception. Method: as above, by bytes.
func TestMeterPollsWithinTokens(t *testing.T) {
	const n = 1 << 20
	for name, text := range map[string]string{
		"comment":      "SELECT 1 /*" + strings.Repeat("/**/", n/4) + "*/",
		"lines":        "SELECT 1" + strings.Repeat("\n-- x", n/4),
		"blanks":       "SELECT " + strings.Repeat(" ", n) + "1",
		"semicolons":   strings.Repeat(";", n),
		"quotes":       "SELECT '" + strings.Repeat("''", n/2) + "'",
		"escapes":      `SELECT E'` + strings.Repeat(`\n`, n/2) + `'`,
		"Unicode":      `SELECT U&'` + strings.Repeat(`\0041`, n/4) + `'`,
		"hexadecimals": `SELECT X'` + strings.Repeat(`41`, n/2) + `'`,
		"name":         `SELECT "` + strings.Repeat(`""`, n/2) + `"`,
	} {
		ctx := &pollContext{}
		m := NewMeter(nil)
		m.Begin(ctx)
		if err := lexAndParse(text, m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := n / (pollBytes + 1) / 2; ctx.polls < want {
			t.Errorf("%s: %d polls, want %d", name, ctx.polls, want)
		}
	}
}

// Goal: a long text draws the memory of its tokens, literals and tree before they are made, and gives back what is the
// Lexer's and the parser's. Method: what is drawn lies between bounds by the number of literals; with less than that the
// text is refused with the memory's error, and nothing is left over.
func TestMeterDraws(t *testing.T) {
	for _, c := range longTexts {
		pool := memory.NewPool("statements", 1<<30)
		account := memory.NewAccount(pool, 0)
		m := NewMeter(&account)
		lexer := NewLexer()
		lexer.UseMeter(m)
		lexer.Reset(c.text)
		st, err := lexer.Next()
		if err != nil {
			t.Fatal(err)
		}
		lexed := m.Drawn()
		if want := int64(len(st.Literals)) * 32; lexed != want && want > 32*pollTokens || lexed > want {
			t.Errorf("%s: lexed, %d bytes are drawn for %d literals", c.name, lexed, len(st.Literals))
		}
		if _, err := Parse(st, m); err != nil {
			t.Fatal(err)
		}
		tree := m.Drawn() - lexed
		if want := int64(c.tokens/2) * nodeBytes; st.Planned && tree < want || tree > 3*want {
			t.Errorf("%s: parsed, %d bytes are drawn, want %d to %d", c.name, tree, want, 3*want)
		}
		m.Release(0)
		if account.Used() != 0 {
			t.Errorf("%s: %d bytes are left over", c.name, account.Used())
		}
		account.Close()
		for limit := int64(100 << 10); limit < lexed+tree; limit *= 2 {
			account := memory.NewAccount(memory.NewPool("statements", limit), 0)
			m := NewMeter(&account)
			var exceeded *memory.ExceededError
			if err := lexAndParse(c.text, m); !errors.As(err, &exceeded) {
				t.Errorf("%s, %d bytes: %v", c.name, limit, err)
			}
			if m.Release(0); account.Used() != 0 {
				t.Errorf("%s, %d bytes: %d are left over", c.name, limit, account.Used())
			}
		}
	}
}

// Goal: long literals that are decoded draw memory.
func TestMeterDrawsLiterals(t *testing.T) {
	const n = 1 << 20
	for _, text := range []string{"E'" + strings.Repeat(`\n`, n/2) + "'", "'" + strings.Repeat("''", n/2) + "'", "X'" + strings.Repeat("41", n/2) + "'"} {
		account := memory.NewAccount(memory.NewPool("statements", n/2), 0)
		m := NewMeter(&account)
		var exceeded *memory.ExceededError
		if err := lexAndParse("SELECT "+text, m); !errors.As(err, &exceeded) {
			t.Errorf("%.10s…: %v", text, err)
		}
	}
}

// Goal: nested lists do not make space for each other's elements: it would be as much at each level.
func TestNestedListsTakeLittle(t *testing.T) {
	text := strings.Repeat("a IN (", 1000) + "1" + strings.Repeat(",2", 200_000) + strings.Repeat(")", 1000)
	if n := testing.AllocsPerRun(1, func() { parseBytes(t, "SELECT "+text) }); n > 1e6 {
		t.Errorf("%v allocations", n)
	}
	if bytes := parseBytes(t, "SELECT "+text); bytes > 200<<20 {
		t.Errorf("%d MB are allocated", bytes>>20)
	}
}

// Goal: a statement with a key that no cache would keep has none, but is one that has plans, and keeps its literals.
func TestLongStatementsHaveNoKey(t *testing.T) {
	for _, c := range []struct {
		text string
		key  bool
	}{
		{"SELECT $1 IN (1" + strings.Repeat(",2", 100_000) + ")", true},
		{"SELECT $1 IN (1" + strings.Repeat(",2", 1_000_000) + ")", false},
		{"SELECT '" + strings.Repeat("x", 4<<20) + "', $1", true},
		{"SELECT $1 ORDER BY '" + strings.Repeat("x", 4<<20) + "'", false},
	} {
		lexer := NewLexer()
		lexer.Reset(c.text)
		st, err := lexer.Next()
		if err != nil {
			t.Fatal(err)
		}
		if (st.Key != nil) != c.key || len(st.Key) > MaxKey+100 || !st.Planned || st.Params != 1 {
			t.Errorf("%.30s…: a key of %d bytes, planned %v, %d parameters", c.text, len(st.Key), st.Planned, st.Params)
		}
		kept := st.Clone()
		lexer.Reset("SELECT 1, 2, 3")
		if _, err := lexer.Next(); err != nil {
			t.Fatal(err)
		}
		for i, l := range kept.Literals {
			if i > 0 && l.Value != "2" {
				t.Fatalf("%.30s…: literal %d is %q", c.text, i, l.Value)
			}
		}
	}
}

// Goal: literals before a string that a parenthesis precedes are pinned however they nest, also without an opening one.
func TestPinnedModifiersNest(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT f(1) 'x', 2":                 "4'1' 4",
		"SELECT f(1, g(2) 'x', 3) 'y', 4":    "4'1' 4'2' s'x' 4'3' 4",
		"SELECT (((1)'x')'y')'z', 2":         "4'1' s'x' s'y' 4",
		"SELECT 1 )'x', (2)'y', 3":           "4'1' 4'2' 4",
		"SELECT (1, (2)'x', (3)'y', 4), 5":   "4 4'2' 4'3' 4 4",
		"SELECT ((1)'x', 2)'y', ((3), 4)":    "4'1' s'x' 4'2' 4 4",
		"SELECT ((1)'x' + (2)'y', 3) 'z', 4": "4'1' s'x' 4'2' s'y' 4'3' 4",
	} {
		lexer := NewLexer()
		lexer.Reset(text)
		st, err := lexer.Next()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, word := range strings.Fields(string(st.Key)) {
			switch {
			case strings.HasPrefix(word, "?s"):
			case strings.HasPrefix(word, "?"):
				got = append(got, word[1:])
			case strings.Contains(word, "'"):
				got = append(got, word)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s\n%s", text, strings.Join(got, " "), st.Key)
		}
	}
}

// Goal: the smallest integers are recognised wherever they are, each once.
func TestManyMinima(t *testing.T) {
	lexer := NewLexer()
	lexer.Reset("SELECT - -2147483648, 1-2147483648, -2147483648::int, (-9223372036854775808)" + strings.Repeat(",-2147483648", 20_000))
	st, err := lexer.Next()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range st.Literals[:5] {
		got = append(got, fmt.Sprint(l.Kind, l.Value))
	}
	want := fmt.Sprint([]string{"1-2147483648", "11", "22147483648", "22147483648", "2-9223372036854775808"})
	if fmt.Sprint(got) != want || len(st.Literals) != 20_005 || st.Literals[20_004].Value != "-2147483648" {
		t.Errorf("got %v, want %s; %d literals", got, want, len(st.Literals))
	}
}

// Goal: a Meter's error is the first one until Begin.
func TestMeterErrors(t *testing.T) {
	account := memory.NewAccount(memory.NewPool("statements", 100), 0)
	m := NewMeter(&account)
	if err := m.Grow(60); err != nil {
		t.Fatal(err)
	}
	first := m.Grow(60)
	if first == nil || m.Poll() != first || m.Grow(1) != first || m.Drawn() != 60 {
		t.Errorf("%v, then %v; %d drawn", first, m.Err(), m.Drawn())
	}
	m.Begin(context.Background())
	if err := m.Grow(40); err != nil || m.Take(60) != 40 || m.Drawn() != 60 || account.Used() != 100 {
		t.Errorf("%v, %d drawn, %d used", err, m.Drawn(), account.Used())
	}
	var none *Meter
	if none.Poll() != nil || none.Grow(1) != nil || none.Drawn() != 0 || none.Take(0) != 0 {
		t.Error("a nil Meter bounds something")
	}
	if err := m.explain(pgerror.New(pgerror.SyntaxError, "x")); codeOf(err) != pgerror.SyntaxError {
		t.Error(err)
	}
}

// parseBytes parses a text and returns how many bytes that has allocated.
func parseBytes(t *testing.T, text string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ParseTree(text); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
