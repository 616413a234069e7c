package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func at() time.Time { return time.UnixMicro(1_700_000_000_123_456).UTC() }

func first(run int64) Record {
	return Record{Kind: Run, TradeID: run, Qty: 7, Price: 4, Symbol: "db", At: at()}
}

func samples() []Record {
	return []Record{
		{Kind: Lease, TradeID: 1001, Qty: 10_000, At: at()},
		{Kind: Order, TradeID: 1001, At: at()},
		{Kind: Refused, TradeID: 1002, At: at(), Unknown: true},
		{Kind: Result, TradeID: 1001, Price: 25_37, At: at()},
		{Kind: Sent, Symbol: "AAABPRA", Price: 20_00, Qty: 375, At: at()},
		{Kind: Volume, Symbol: "AAABPRA", Price: 20_00, Qty: 375, At: at()},
		{Kind: Trigger, TradeID: 1003, Symbol: "AAAA", At: at()},
	}
}

// TestRoundTrip: appended records are read back, by file in the order of runs, and counted.
func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	var want [][]Record
	for _, run := range []int64{2, 1} {
		w, err := Create(dir, first(run))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(samples()...); err != nil {
			t.Fatal(err)
		}
		if c := w.Counts(); c != (Counts{Acknowledged: 4, Unknown: 1}) {
			t.Errorf("%+v", c)
		}
		if err := w.Close(at()); err != nil {
			t.Fatal(err)
		}
		want = append([][]Record{append(append([]Record{first(run)}, samples()...), Record{Kind: End, At: at()})}, want...)
	}
	files, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		if !f.Clean || !reflect.DeepEqual(f.Records, want[i]) {
			t.Errorf("%+v\nwant %+v", f, want[i])
		}
	}
	if len(files) != 2 {
		t.Errorf("%d files", len(files))
	}
}

// TestConcurrent: records of many goroutines are all written, and not interleaved.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, first(1))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range int64(8) {
		wg.Go(func() {
			for i := range int64(500) {
				if err := w.Append(Record{Kind: Order, TradeID: g*500 + i, At: at()}, Record{Kind: Result, TradeID: g*500 + i, At: at()}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(at()); err != nil {
		t.Fatal(err)
	}
	files, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]int{}
	for _, r := range files[0].Records[1 : len(files[0].Records)-1] {
		seen[r.TradeID]++
	}
	for id := range int64(4000) {
		if seen[id] != 2 {
			t.Fatalf("trade %d is there %d times", id, seen[id])
		}
	}
}

// TestCutOff: of a file truncated at any length, the complete records are read, and it is not Clean.
// Method: every length of a file.
func TestCutOff(t *testing.T) {
	dir := t.TempDir()
	w, err := Create(dir, first(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(samples()...); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(at()); err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "*"))
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if err := os.WriteFile(paths[0], data[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := readFile(paths[0])
		if lines := strings.Count(string(data[:n]), "\n"); err != nil || len(f.Records) != lines || f.Clean {
			t.Fatalf("%d bytes: %d records of %d, clean %v, %v", n, len(f.Records), lines, f.Clean, err)
		}
	}
}

// TestDamage: a line that was changed, or that is misplaced, is an error that names the line.
func TestDamage(t *testing.T) {
	line := func(r Record) string { return string(r.appendTo(nil)) }
	good := line(first(1)) + line(samples()[0])
	for name, text := range map[string]string{
		"line 2":             line(first(1)) + strings.Replace(line(samples()[0]), "1001", "1002", 1) + line(samples()[1]),
		"no record":          line(first(1)) + "\n",
		"RUN in the wrong":   good + line(first(2)),
		"ORDER in the wrong": line(samples()[1]),
		"ORDER after END":    good + line(Record{Kind: End, At: at()}) + line(samples()[1]),
		"unknown kind":       good + line(Record{Kind: "NONE", At: at()}),
	} {
		path := filepath.Join(t.TempDir(), "x"+suffix)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readFile(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("no journal is no error")
	}
}

// TestErrors: after a failed write nothing more is written; a nil Writer accepts everything.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Create(dir, samples()[0]); err == nil {
		t.Error("a journal without its first record")
	}
	w, err := Create(dir, first(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.file.Close(); err != nil {
		t.Fatal(err)
	}
	one := w.Append(samples()...)
	if two := w.Append(samples()...); one == nil || fmt.Sprint(one) != fmt.Sprint(two) {
		t.Errorf("%v, then %v", one, two)
	}
	if err := w.Close(at()); err == nil {
		t.Error("closed as if nothing had happened")
	}
	var none *Writer
	if err := none.Append(samples()...); err != nil || none.Close(at()) != nil || none.Counts() != (Counts{}) {
		t.Error("the nil Writer complains")
	}
}
