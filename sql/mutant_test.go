package sql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/sql/pgerror"
)

// TestMutants: statements that differ from valid ones by one token are refused exactly when PostgreSQL
// refuses them as syntax. The seeds are judged too. Set PERCODB_TEST_PG_DSN to a PostgreSQL 15 and
// PERCODB_TEST_MUTANTS to the number of mutants for each seed (default 20).
func TestMutants(t *testing.T) {
	dsn := os.Getenv("PERCODB_TEST_PG_DSN")
	if dsn == "" {
		t.Skip("set PERCODB_TEST_PG_DSN to a PostgreSQL 15 to run this test")
	}
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	perSeed := mutantsPerSeed(t)
	seeds := seedStatements(t)
	rng := rand.New(rand.NewPCG(1, uint64(perSeed)))
	pool := tokenPool(seeds)
	var total, lenient, strict, both, otherwise int
	for _, seed := range seeds {
		for i := -1; i < perSeed; i++ {
			text := seed
			if i >= 0 {
				text = mutate(rng, seed, pool)
			}
			want, theirs := judge(ctx, t, conn, text)
			got, ours := outcomeOf(text)
			total++
			switch {
			case want == refusedSyntax && got == refusedSyntax:
				both++
				if ours.Error() != theirs.Error() {
					otherwise++
					t.Logf("other words: %s\n  %v\n  %v", text, ours, theirs)
				}
			case want == got || got == refusedOtherwise:
				continue
			case want == refusedSyntax:
				lenient++
				t.Logf("too lenient: %s\n  %v", text, theirs)
			case got == refusedSyntax:
				strict++
				t.Logf("too strict: %s\n  %v\n  %v", text, ours, theirs)
			}
		}
	}
	t.Logf("%d statements, %d accepted that PostgreSQL refuses, %d refused that it accepts", total, lenient, strict)
	t.Logf("%d refused by both, %d of them in other words or at another position", both, otherwise)
	if otherwise*20 > both {
		t.Errorf("more than 5 %% of the errors differ from PostgreSQL's")
	}
	// What remains are words that PostgreSQL's scanner joins with the next one, and the like.
	if lenient*1000 > total || strict*1000 > total {
		t.Errorf("the parsers differ for more than 0.1 %% of the statements")
	}
}

// mutantsPerSeed is how many mutants of each seed a test makes.
func mutantsPerSeed(t *testing.T) int {
	n := 20
	if s := os.Getenv("PERCODB_TEST_MUTANTS"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

type outcome int

const (
	acceptedSyntax   outcome = iota
	refusedSyntax            // by the scanner or the grammar
	refusedOtherwise         // for what it means, or as unsupported: grammar errors behind it do not show
)

// judge asks PostgreSQL. Only the errors of its scanner and grammar count: the analysis behind them uses
// the same SQLSTATE for what the planner finds here.
func judge(ctx context.Context, t *testing.T, conn *pgconn.PgConn, text string) (outcome, error) {
	_, err := conn.Prepare(ctx, "", text, nil)
	var pg *pgconn.PgError
	if err != nil && !errors.As(err, &pg) {
		t.Fatalf("PostgreSQL is gone after %q: %v", text, err)
	}
	if pg == nil || pg.Code != "42601" {
		return acceptedSyntax, err
	}
	if inWords(pg.Message) {
		return refusedSyntax, fmt.Errorf("%s at %d", pg.Message, pg.Position)
	}
	return acceptedSyntax, err
}

// inWords reports whether a message is one of the scanner's or the grammar's.
func inWords(message string) bool {
	return strings.Contains(message, "at or near") || strings.Contains(message, "at end of input")
}

func outcomeOf(text string) (outcome, error) {
	_, err := parseAll(text)
	var e *pgerror.Error
	switch {
	case errors.As(err, &e) && e.Code == pgerror.SyntaxError && inWords(e.Message):
		return refusedSyntax, fmt.Errorf("%s at %d", e.Message, e.Position)
	case err != nil:
		return refusedOtherwise, err
	}
	return acceptedSyntax, nil
}

// lexTexts cuts a statement into the texts of its tokens.
func lexTexts(text string) []string {
	s := scanner{text: text}
	var list []string
	for {
		var tok token
		if s.next(&tok) != nil || tok.kind == tokEOF {
			return list
		}
		list = append(list, text[tok.start:tok.end])
	}
}

func tokenPool(seeds []string) []string {
	var pool []string
	for _, seed := range seeds {
		pool = append(pool, lexTexts(seed)...)
	}
	return pool
}

// mutate deletes, doubles, swaps, replaces or inserts one token.
func mutate(rng *rand.Rand, seed string, pool []string) string {
	toks := lexTexts(seed)
	if len(toks) == 0 {
		return seed
	}
	at := rng.IntN(len(toks))
	other := pool[rng.IntN(len(pool))]
	out := append([]string(nil), toks[:at]...)
	switch rng.IntN(5) {
	case 0:
	case 1:
		out = append(out, toks[at], toks[at])
	case 2:
		if at+1 < len(toks) {
			out = append(out, toks[at+1], toks[at])
			at++
		}
	case 3:
		out = append(out, other)
	default:
		out = append(out, other, toks[at])
	}
	return strings.Join(append(out, toks[at+1:]...), " ")
}
