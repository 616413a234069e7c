package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Goal: the total stays while the server is killed (kill -9) and restarted under eight clients. Method:
// the program itself, against a percodb built from this tree, for a few seconds.
func TestTotalSurvivesKills(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds")
	}
	binary := filepath.Join(t.TempDir(), "percodb")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/percodb")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := run(ctx, options{percodb: binary, accounts: 20, clients: 8, duration: 5 * time.Second, killEvery: time.Second})
	if err != nil {
		t.Fatal(err)
	}
}
