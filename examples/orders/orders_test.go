package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/process"
)

// Goal: the leaderboard equals a recomputation after processes were killed (kill -9) and restarted under orders and consumers. Method: the program
// itself, against a percodb built from this tree, for a few seconds, as one process and as five.
func TestLeaderboardSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds")
	}
	binary, err := process.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []bool{false, true} {
		t.Run(fmt.Sprintf("cluster=%v", cluster), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			err := run(ctx, options{percodb: binary, cluster: cluster, customers: 50, clients: 4, consumers: 2,
				duration: 5 * time.Second, killEvery: time.Second})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
