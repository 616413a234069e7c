package sql

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// TestLexerDoesNotAllocate: a simple query on the hot path costs no allocation once the Lexer is warm.
func TestLexerDoesNotAllocate(t *testing.T) {
	lexer := NewLexer()
	for _, text := range []string{pointSelect, typicalSelect, "INSERT INTO t VALUES (1, 'x', 2.5), ($1, $2, $3)"} {
		n := testing.AllocsPerRun(100, func() {
			lexer.Reset(text)
			if _, err := lexer.Next(); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

// TestBytesThatAreNoText: what is not UTF-8 or holds a NUL is refused before anything else, and stays so.
func TestBytesThatAreNoText(t *testing.T) {
	lexer := NewLexer()
	for text, message := range map[string]string{
		"select 1; select '\xff'": `invalid byte sequence for encoding "UTF8": 0xff`,
		"select '\xe2\x28\xa1'":   `invalid byte sequence for encoding "UTF8": 0xe2 0x28 0xa1`,
		"select '\xc0'":           `invalid byte sequence for encoding "UTF8": 0xc0 0x27`,
		"select '\x00'":           `invalid byte sequence for encoding "UTF8": 0x00`,
	} {
		lexer.Reset(text)
		for range 2 {
			_, err := lexer.Next()
			if e, ok := err.(*pgerror.Error); !ok || e.Code != pgerror.CharacterNotInRepertoire || e.Message != message {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

// TestKeysDecideTrees: two statements with one key have trees that are equal but for the values of
// slotted literals, and their slots agree with Statement.Literals. The method: literals of the seeds are
// changed at random; whenever the key stays, the trees are compared.
func TestKeysDecideTrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	values := []string{"1", "2", "3", "10", "2147483648", "1.5", "'a'", "'b'", "9223372036854775808", "B'1'"}
	same, compared := 0, 0
	for _, seed := range seedStatements(t) {
		for range 50 {
			toks := lexTexts(seed)
			for i, tok := range toks {
				if c := tok[0]; (c == '\'' || '0' <= c && c <= '9') && rng.IntN(3) > 0 {
					toks[i] = values[rng.IntN(len(values))]
				}
			}
			one, other := seed, strings.Join(toks, " ")
			a, keyA := slottedTree(t, one)
			b, keyB := slottedTree(t, other)
			compared++
			if keyA == "" || keyA != keyB {
				continue
			}
			same++
			if diff := cmp.Diff(a, b, sameButSlotted); diff != "" {
				t.Errorf("%s\n%s\nhave one key\n%s\nand different trees:\n%s", one, other, keyA, diff)
			}
		}
	}
	if same < compared/20 {
		t.Errorf("only %d of %d pairs had one key: the test compares too little", same, compared)
	}
}

// sameButSlotted compares trees as a plan cache does: a slotted literal equals any of its slot and kind.
var sameButSlotted = cmp.Options{
	cmp.Comparer(func(a, b ast.Pos) bool { return true }),
	cmp.Comparer(func(a, b *ast.Literal) bool {
		return a.Kind == b.Kind && a.Slot == b.Slot && (a.Slot >= 0 || a.Value == b.Value)
	}),
}

// slottedTree parses a statement, if it is valid, and checks its literals against its slots.
func slottedTree(t *testing.T, text string) (ast.Statement, string) {
	lexer := NewLexer()
	lexer.Reset(text)
	st, err := lexer.Next()
	if err != nil {
		return nil, ""
	}
	node, err := Parse(st, nil)
	if err != nil {
		return nil, ""
	}
	checkSlots(t, text, node, st.Literals)
	return node, string(st.Key)
}

// checkSlots compares the tree's slotted literals with those the Lexer found.
func checkSlots(t *testing.T, text string, node ast.Statement, literals []Literal) {
	var walk cmp.Option = cmp.Comparer(func(a, b *ast.Literal) bool {
		if a.Slot >= len(literals) || a.Slot >= 0 && (literals[a.Slot].Kind != a.Kind || literals[a.Slot].Value != a.Value) {
			t.Errorf("%s: literal %q has slot %d of %v", text, a.Value, a.Slot, literals)
		}
		return true
	})
	cmp.Equal(node, node, walk)
}

// TestFingerprint: expressions are the same for a plan when their slots agree, whatever their values.
func TestFingerprint(t *testing.T) {
	items := func(text string) []ast.SelectItem {
		node, err := parseAll(text)
		if err != nil {
			t.Fatal(err)
		}
		return node[0].(*ast.Query).Body.(*ast.Select).Columns
	}
	cols := items("select a + 1, A+ 1, a + 2, (a) + 1 from t group by b")
	for i, want := range []bool{true, true, false, true} {
		if got := ast.Fingerprint(cols[i].Expr) == ast.Fingerprint(cols[0].Expr); got != want {
			t.Errorf("column %d equals the first: %v", i+1, got)
		}
	}
	cols = items("select a + 1, a + 1 from t")
	if ast.Fingerprint(cols[0].Expr) == ast.Fingerprint(cols[1].Expr) {
		t.Error("literals of different slots are taken for equal: their values may differ in the next execution")
	}
}

// TestNesting: text nested beyond the limit is refused as too complex, long chains are not.
func TestNesting(t *testing.T) {
	const deep = 10_000
	for name, text := range map[string]string{
		"parentheses":  "select " + strings.Repeat("(", deep) + "1" + strings.Repeat(")", deep),
		"open":         "select " + strings.Repeat("(", deep),
		"subqueries":   strings.Repeat("select (", deep) + "select 1" + strings.Repeat(")", deep),
		"from":         strings.Repeat("select * from (", deep) + "select 1" + strings.Repeat(") x", deep),
		"query parens": strings.Repeat("(", deep) + "select 1" + strings.Repeat(")", deep),
		"unions":       strings.Repeat("(select 1 union ", deep) + "select 1" + strings.Repeat(")", deep),
		"joins":        "select * from " + strings.Repeat("(", deep) + "a join b on true" + strings.Repeat(")", deep),
		"not":          "select " + strings.Repeat("not ", deep) + "true",
		"minus":        "select " + strings.Repeat("- ", deep) + "1",
		"case":         "select " + strings.Repeat("case when ", deep) + "a" + strings.Repeat(" then 1 end", deep),
		"arrays":       "select array" + strings.Repeat("[", deep) + "1" + strings.Repeat("]", deep),
		"calls":        "select " + strings.Repeat("f(", deep) + strings.Repeat(")", deep),
		"with":         strings.Repeat("with a as (", deep) + "select 1" + strings.Repeat(") select 1", deep),
		"chain":        "select 1" + strings.Repeat(" + 1", 200_000),
	} {
		_, err := ParseStatement(text)
		if code := codeOf(err); code != pgerror.StatementTooComplex && code != pgerror.SyntaxError {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"and":     "select a" + strings.Repeat(" and b", 20_000),
		"in":      "select a in (1" + strings.Repeat(", 2", 100_000) + ")",
		"values":  "insert into t values (-1)" + strings.Repeat(", (-2)", 100_000),
		"unions":  "select 1" + strings.Repeat(" union all select 2", 2000),
		"from":    "select 1 from a" + strings.Repeat(", b", 2000),
		"nesting": "select " + strings.Repeat("(", 500) + "1" + strings.Repeat(")", 500),
	} {
		node, err := ParseStatement(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if _, err := ParseStatement(node.String()); err != nil {
			t.Errorf("%s, printed: %v", name, err)
		}
	}
}

// TestParseConcurrently: Parse may be called from many goroutines, each with a Statement of its own.
func TestParseConcurrently(t *testing.T) {
	seeds := seedStatements(t)
	want := make([]string, len(seeds))
	for i, seed := range seeds {
		if node, err := ParseStatement(seed); err == nil {
			want[i] = node.String()
		}
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range seeds {
				i = (i + g*37) % len(seeds)
				node, err := ParseStatement(seeds[i])
				if err == nil && node.String() != want[i] {
					t.Errorf("%s: %s", seeds[i], node)
				}
			}
		})
	}
	wg.Wait()
}
