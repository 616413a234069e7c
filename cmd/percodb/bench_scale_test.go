package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/percodb/percodb/bench/scale"
)

// TestStepsFlags: bench scale runs transactions as bench tpce run does unless it is told otherwise, and its
// results say how.
func TestStepsFlags(t *testing.T) {
	for _, want := range []struct {
		args     []string
		pipeline bool
		text     string
	}{{nil, true, "true"}, {[]string{"--pipeline=false"}, false, "false"}} {
		var f stepsFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.add(flags)
		if err := flags.Parse(want.args); err != nil {
			t.Fatal(err)
		}
		if err := f.complete(flags); err != nil {
			t.Fatal(err)
		}
		if f.Run.Transactions.Pipeline != want.pipeline || f.Run.Settings["pipeline"] != want.text || f.Run.Settings["pace"] != "nominal:5" || f.Scale.Customers != 1000 {
			t.Errorf("%v: %+v", want.args, f.Run)
		}
	}
}

// TestParsePace: the paces that there are, and what is none.
func TestParsePace(t *testing.T) {
	for text, want := range map[string]struct {
		unpaced bool
		factor  float64
	}{"max": {true, 0}, "nominal": {false, 1}, "nominal:2.5": {false, 2.5}} {
		unpaced, factor, err := parsePace(text)
		if err != nil || unpaced != want.unpaced || factor != want.factor {
			t.Errorf("%s: %v, %v, %v", text, unpaced, factor, err)
		}
	}
	for _, text := range []string{"", "maximal", "max:2", "nominal:", "nominal:0", "nominal:-1", "nominal:NaN", "2"} {
		if _, _, err := parsePace(text); err == nil {
			t.Errorf("%q is a pace", text)
		}
	}
}

// TestBenchKVCommand runs the command over small stores: a table, and the same figures in a file.
func TestBenchKVCommand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv.json")
	var out, said bytes.Buffer
	cmd := benchKVCommand()
	cmd.SetArgs([]string{"--rows", "1000", "--turns", "1", "--turn", "1ms", "--writers", "2", "--dir", t.TempDir(), "--json", path})
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != 13 || !bytes.Contains(text, []byte(scale.KVSchema)) {
		t.Errorf("%d lines:\n%s\n%s", lines, out.Bytes(), text)
	}
}
