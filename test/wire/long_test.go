package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Goal: chains of set operations run up to the maximum length, and beyond it end with an error. Method: every operation
// with 5,000 overlapping branches; one with more branches than are allowed.
func TestLongChainsOfSetOperations(t *testing.T) {
	conn, ctx := connect(t, ""), testContext(t)
	branches := 5000
	if testing.Short() {
		branches = 500 // the race detector is slow with deep stacks
	}
	chain := func(op string, n int) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf("SELECT %d AS x", i/2)
		}
		return strings.Join(parts, " "+op+" ")
	}
	for _, c := range []struct {
		text                string
		count, distinct     int
		smallest, expectsum int
	}{
		{chain("UNION ALL", branches), branches, branches / 2, 0, 2 * sumTo(branches/2-1)},
		{chain("UNION", branches), branches / 2, branches / 2, 0, sumTo(branches/2 - 1)},
		{chain("UNION ALL", branches) + " UNION SELECT 7", branches / 2, branches / 2, 0, sumTo(branches/2 - 1)},
		{chain("UNION", branches) + " UNION ALL SELECT 7", branches/2 + 1, branches / 2, 0, sumTo(branches/2-1) + 7},
		{"SELECT 1000000 AS x EXCEPT " + chain("EXCEPT", branches), 1, 1, 1000000, 1000000},
		{"SELECT 0 AS x EXCEPT ALL " + chain("EXCEPT ALL", branches) + " UNION ALL SELECT 5", 1, 1, 5, 5},
	} {
		var count, distinct, smallest, sum int
		err := conn.QueryRow(ctx, "SELECT count(*), count(DISTINCT x), min(x), sum(x) FROM ("+c.text+") chain", pgx.QueryExecModeSimpleProtocol).
			Scan(&count, &distinct, &smallest, &sum)
		if err != nil {
			t.Errorf("%.60s…: %v", c.text, err)
		} else if count != c.count || distinct != c.distinct || smallest != c.smallest || sum != c.expectsum {
			t.Errorf("%.60s…: got %d rows, %d distinct, from %d, sum %d", c.text, count, distinct, smallest, sum)
		}
	}
	var e *pgconn.PgError
	if _, err := conn.Exec(ctx, chain("UNION ALL", 20_002), pgx.QueryExecModeSimpleProtocol); !errors.As(err, &e) || e.Code != "54001" {
		t.Errorf("too long a chain: got %v", err)
	}
}

func sumTo(n int) int { return n * (n + 1) / 2 }
