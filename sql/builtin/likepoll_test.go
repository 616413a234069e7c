package builtin

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/types"
)

// Goal: a cancel ends functions of long LIKE patterns and roots of long numbers during their work.
// Method: call each with a cancelled context.
func TestLongPatternsPoll(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	long := strings.Repeat("a", 4<<20)
	number, err := types.ParseText(types.TNumeric, strings.Repeat("7", 100_000), nil)
	if err != nil {
		t.Fatal(err)
	}
	match := func(pattern, text string) func(*Env) error {
		p, err := CompileLike(&Env{}, pattern, false, false)
		if err != nil {
			t.Fatal(err)
		}
		return func(env *Env) error { _, err := p.Match(env, text); return err }
	}
	compile := func(pattern string) func(*Env) error {
		return func(env *Env) error { _, err := CompileLike(env, pattern, false, false); return err }
	}
	for name, f := range map[string]func(*Env) error{
		"like_escape":       func(env *Env) error { _, err := escapeLike(env, long, "!", false); return err },
		"like_escape bytes": func(env *Env) error { _, err := escapeLike(env, long, "!", true); return err },
		"compile text":      compile(long),
		"compile escapes":   compile(strings.Repeat(`\a`, 1<<20)),
		"compile tokens":    compile(strings.Repeat("a_%", 1<<20)),
		"match tokens":      match(strings.Repeat("a_", 1<<20)+"%b", long),
		"match run":         match(strings.Repeat("_", 2<<20)+"%b%", long),
		"match literal":     match("%"+long[:1<<20]+"b%c", long),
		"sqrt":              func(env *Env) error { _, err := SqrtNumeric(env, number.Decimal()); return err },
	} {
		if err := f(&Env{Ctx: ctx}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want a cancel", name, err)
		}
	}
}

// Goal: compiled patterns count in the statement's memory.
func TestLikePatternsCount(t *testing.T) {
	account := memory.NewAccount(memory.NewPool("a test", 8<<20), 0)
	if _, err := CompileLike(&Env{Memory: &account}, strings.Repeat("a_%", 1<<20), false, false); err == nil {
		t.Error("three million tokens fit into 8 MB")
	}
}

// Goal: LIKE patterns match according to the definition. Method: compare with a recursive matcher, for random short
// patterns.
func TestLikeAgainstDefinition(t *testing.T) {
	var matches func(p, s string) (ok, bad bool)
	matches = func(p, s string) (bool, bool) {
		switch {
		case p == "":
			return s == "", false
		case p[0] == '%':
			for i := 0; i <= len(s); i++ {
				if ok, bad := matches(p[1:], s[i:]); ok || bad {
					return ok, bad
				}
			}
			return false, false
		case s == "":
			return false, false
		case p[0] == '_':
			return matches(p[1:], s[1:])
		case p == `\`:
			return false, true
		case p[0] == '\\':
			p = p[1:]
		}
		if p[0] != s[0] {
			return false, false
		}
		return matches(p[1:], s[1:])
	}
	r := rand.New(rand.NewPCG(3, 3))
	word := func(chars string, n int) string {
		b := make([]byte, r.IntN(n))
		for i := range b {
			b[i] = chars[r.IntN(len(chars))]
		}
		return string(b)
	}
	for range 100_000 {
		pattern, text := word(`ab%_\`, 8), word("ab%", 9)
		want, bad := matches(pattern, text)
		if bad {
			continue // The order in which the searches find the error is not defined.
		}
		p, err := CompileLike(&Env{}, pattern, false, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Match(&Env{}, text); got != want && err == nil || err != nil && want {
			t.Fatalf("%q LIKE %q: %v %v, want %v", text, pattern, got, err, want)
		}
	}
}

// Goal: roots of long integers are correct. Method: compare with math/big, also next to squares.
func TestWholeSqrt(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for i := range 300 {
		words := make([]big.Word, 1+r.IntN(100))
		for j := range words {
			words[j] = big.Word(r.Uint64())
		}
		n := new(big.Int).SetBits(words)
		if i%2 == 0 {
			n.Mul(n, n).Add(n, big.NewInt(int64(i%3-1)))
		}
		got, err := wholeSqrt(&Env{}, n)
		if want := new(big.Int).Sqrt(n); err != nil || got.Cmp(want) != 0 {
			t.Fatalf("root of %v: %v, %v, want %v", n, got, err, want)
		}
	}
	if d, err := SqrtNumeric(&Env{}, apd.New(2, 0)); err != nil || d.String() != "1.414213562373095" {
		t.Errorf("sqrt(2) = %v, %v", d, err)
	}
}
