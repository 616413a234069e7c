package sql

import (
	"os"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/pgerror"
)

// seedStatements are one or more statements of every kind the package knows.
func seedStatements(t testing.TB) []string {
	data, err := os.ReadFile("testdata/seeds.sql")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// TestSeedsRoundTrip: every form of every statement is accepted, and its tree prints as SQL that parses
// to an equal tree.
func TestSeedsRoundTrip(t *testing.T) {
	for _, seed := range seedStatements(t) {
		node, err := ParseStatement(seed)
		if codeOf(err) == pgerror.FeatureNotSupported {
			continue
		}
		if err != nil {
			t.Errorf("%s\nis refused: %v", seed, err)
			continue
		}
		checkRoundTrip(t, seed, node)
	}
}
