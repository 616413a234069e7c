package sqllogic

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// target is a server that our own files are run against.
type target struct {
	name     string
	start    func(t *testing.T) (dsn string) // starts the server for the length of the test
	extended bool                            // run the files over the extended protocol
}

// targets returns the servers to test: PostgreSQL, the judge, when
// PERCODB_TEST_PG_DSN names one.
func targets() []target {
	var all []target
	if dsn := os.Getenv("PERCODB_TEST_PG_DSN"); dsn != "" {
		start := func(*testing.T) string { return dsn }
		all = append(all,
			target{name: "postgresql", start: start},
			target{name: "postgresql-extended", start: start, extended: true})
	}
	return all
}

// Goal: percodb's SQL behaves as our files say, in every setting that could
// change it, and PostgreSQL agrees with the files. Method: each file of
// testdata on each target, as a test of its own.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.slt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	all := targets()
	if len(all) == 0 {
		t.Skip("no server to test; PERCODB_TEST_PG_DSN may name a PostgreSQL 15")
	}
	for _, target := range all {
		t.Run(target.name, func(t *testing.T) {
			dsn := target.start(t)
			for _, file := range files {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".slt"), func(t *testing.T) {
					var out bytes.Buffer
					summary, err := Run(context.Background(), Options{
						DSN: dsn, Paths: []string{file}, Out: &out, Extended: target.extended,
					})
					if err != nil {
						t.Fatalf("%s%v", out.String(), err)
					}
					if summary.Failed > 0 {
						t.Errorf("%d of %d records failed\n%s", summary.Failed, summary.Failed+summary.Passed, out.String())
					}
				})
			}
		})
	}
}
