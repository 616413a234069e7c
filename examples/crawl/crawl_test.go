package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Goal: the index equals a recomputation after processes were killed (kill -9) and restarted under the crawlers. Method: the program
// itself, against a percodb built from this tree, for a few seconds, as one process and as five.
func TestIndexSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds")
	}
	binary := filepath.Join(t.TempDir(), "percodb")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/percodb")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, cluster := range []bool{false, true} {
		t.Run(fmt.Sprintf("cluster=%v", cluster), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			err := run(ctx, options{percodb: binary, cluster: cluster, documents: 200, crawlers: 4,
				duration: 5 * time.Second, killEvery: time.Second})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
