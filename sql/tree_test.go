package sql

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// seedStatements are one or more statements of every kind of PostgreSQL's that the package knows.
func seedStatements(t testing.TB) []string { return statementsOf(t, "testdata/seeds.sql") }

// ownStatements are seedStatements with those of the kinds that PostgreSQL does not have.
func ownStatements(t testing.TB) []string {
	return append(seedStatements(t), statementsOf(t, "testdata/observers.sql")...)
}

func statementsOf(t testing.TB, file string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// TestSeedsRoundTrip: every form of every statement is accepted, and its tree prints as SQL that parses
// to an equal tree.
func TestSeedsRoundTrip(t *testing.T) {
	for _, seed := range ownStatements(t) {
		node, err := ParseTree(seed)
		if err != nil {
			t.Errorf("%s\nis refused: %v", seed, err)
			continue
		}
		checkRoundTrip(t, seed, node)
	}
}

// TestMutantsRoundTrip: what is accepted prints as SQL that parses to an equal tree, also when no one
// would write it. The method: seeds with up to four tokens changed. PERCODB_TEST_MUTANTS is the number for each seed
// (default 20).
func TestMutantsRoundTrip(t *testing.T) {
	seeds := ownStatements(t)
	pool := tokenPool(seeds)
	rng := rand.New(rand.NewPCG(3, 4))
	accepted, total := 0, 0
	for _, seed := range seeds {
		for range mutantsPerSeed(t) {
			text := seed
			for range 1 + rng.IntN(4) {
				text = mutate(rng, text, pool)
			}
			total++
			if node, err := ParseTree(text); err == nil {
				accepted++
				checkRoundTrip(t, text, node)
			}
		}
	}
	if accepted*50 < total {
		t.Errorf("only %d of %d mutants were accepted: the test sees too few trees", accepted, total)
	}
}
