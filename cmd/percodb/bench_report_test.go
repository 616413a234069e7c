package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/report"
)

// writeRun writes the result of a run of n Trade-Results in ten seconds, and returns the file's name.
func writeRun(t *testing.T, dir, name string, n int) string {
	t.Helper()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := report.New(begin)
	r.StartMeasuring(begin)
	for i := range n {
		at := begin.Add(time.Duration(i) * 10 * time.Second / time.Duration(n))
		r.Record(mix.Sample{Kind: mix.TradeResult, Scheduled: at, Started: at, Finished: at.Add(time.Millisecond)})
	}
	end := begin.Add(10 * time.Second)
	r.Tick(end, report.Gauges{Measuring: true})
	r.StopMeasuring(end)
	res := &report.Result{Started: begin, Settings: map[string]string{"instance": name}}
	r.Fill(res)
	path := filepath.Join(dir, name+".json")
	if err := res.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMergeAndCompare runs the commands over files of two drivers: the sum has the Trade-Results of both, its
// file can be compared with another, and both write pages.
func TestMergeAndCompare(t *testing.T) {
	dir := t.TempDir()
	a, b := writeRun(t, dir, "a", 100), writeRun(t, dir, "b", 200)
	sum, page := filepath.Join(dir, "sum.json"), filepath.Join(dir, "page.html")
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := tpceCommand()
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		err := cmd.Execute()
		return out.String(), err
	}
	out, err := run("merge", a, b, "--json", sum, "--html", page, "--label", "both")
	if err != nil || !strings.Contains(out, "measured 30.00 TR/s over 10 s") {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte("both")) {
		t.Errorf("the page of the sum: %v", err)
	}
	out, err = run("compare", a, sum, "--html", page, "--label", "one")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(out), " "), "Trade-Results per second 10.0 30.0 3.00") {
		t.Errorf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(page); err != nil || !bytes.Contains(text, []byte("second ÷ first")) {
		t.Errorf("the page of two: %v", err)
	}
	for _, args := range [][]string{
		{"merge"}, {"merge", filepath.Join(dir, "nowhere")}, {"merge", page}, {"compare", a, b, sum}, {"compare", a, "--label", "x", "--label", "y"},
		{"compare", a, "--html", filepath.Join(dir, "no", "where")},
	} {
		if out, err := run(args...); err == nil {
			t.Errorf("%v did not fail:\n%s", args, out)
		}
	}
}
