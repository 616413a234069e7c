package main

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var mutantsFor = flag.Duration("mutants", 0, "how long TestMutantsAreFound runs each mutant at most; 0: not at all")

// mutant is a defect: in a file of the sources one text replaces another, which occurs there once.
type mutant struct {
	name, file, from, to string
	found                []string // the workload whose check finds it, or what percodb check says
}

var mutants = []mutant{
	{"children do not lock their parents", "executor/keychecks.go",
		"k.lockGuards(ctx, o.ForeignKey, keys, true)", "k.lockGuards(ctx, o.ForeignKey, nil, true)", []string{"references", "foreign key"}},
	{"parents go without a look for children", "executor/keyactions.go",
		"if err := f.find(ctx, r, 1); err != nil || len(f.found) == 0 {", "if err := f.find(ctx, r, 1); err != nil || len(f.found) < 2 {", []string{"references", "foreign key"}},
	{"triggers after deleted rows do not fire", "executor/firetriggers.go",
		"if which&1 == 0 {\n\t\t\t\tcontinue", "if which&1 == 0 || event == catalog.TriggerDelete {\n\t\t\t\tcontinue", []string{"triggered", "partitioned"}},
	{"triggers do not see the new rows of a statement", "executor/firetriggers.go",
		"if err := g.note(event, new, true); err != nil {\n\t\t\treturn err\n\t\t}\n", "", []string{"triggered"}},
	{"rows do not move to other partitions", "executor/parts.go",
		"err != nil || !stays {", "err != nil || !stays && l == nil {", []string{"partition"}},
	{"rows that move to other partitions stay, too", "executor/parts.go",
		"if err := l.writer.moveOut(ctx, l.old, l.row, p.table); err != nil {\n\t\treturn err\n\t}\n", "", []string{"partition"}},
	{"deferred checks are not made", "session/constraints.go",
		"if t.deferred.Empty() || t.txn == nil {", "if all || t.txn == nil {", []string{"triggered", "references", "foreign key", "conflicts"}},
	{"exclusive advisory locks are shared", "advisory/advisory.go",
		"percolator.HoldOptions{Shared: r.Shared,", "percolator.HoldOptions{Shared: true,", []string{"advised"}},
	{"rows of temporary tables are left", "catalog/temporary.go",
		"c.dropSpan(ctx, txn, DroppedSpan{Table: id})", "error(nil)", []string{"belong to nothing"}},
}

// build compiles percodb with the defect.
func (m *mutant) build(t *testing.T, dir string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.from); n != 1 {
		t.Fatalf("%s has %d times %q", m.file, n, m.from)
	}
	changed, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "percodb")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, m.file): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{changed: []byte(strings.Replace(string(source), m.from, m.to, 1)), overlay: replaced} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", binary, "github.com/percodb/percodb/cmd/percodb").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// Goal: the workloads find the defects that they are made for. Method: percodb is built with one defect at a time, and a run of one process must find it.
func TestMutantsAreFound(t *testing.T) {
	if *mutantsFor == 0 {
		t.Skip("builds percodb for each defect; -mutants 2m")
	}
	for i := range mutants {
		m := &mutants[i]
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			binary := m.build(t, t.TempDir())
			begun := time.Now()
			sum, err := run(t.Context(), options{duration: *mutantsFor, round: 8 * time.Second, seed: uint64(i), binary: binary, log: io.Discard})
			if sum.kept != "" {
				_ = os.RemoveAll(sum.kept)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range append(sum.lost, sum.wrong...) {
				for _, by := range m.found {
					if strings.Contains(f.what+f.story, by) {
						t.Logf("found after %v: %s %s", time.Since(begun).Round(time.Second), f.what, firstLineOf(f.story))
						return
					}
				}
			}
			t.Errorf("not found in %v: %d other findings %v", *mutantsFor, len(sum.lost)+len(sum.wrong), append(sum.lost, sum.wrong...))
		})
	}
}

func firstLineOf(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
