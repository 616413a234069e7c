package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/percodb/percodb/bench/micro"
	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/run"
	"github.com/percodb/percodb/internal/process"
)

// built is the program, for tests that start processes.
var built struct {
	once        sync.Once
	dir, binary string
	err         error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// buildPercodb builds percodb once and returns where it is.
func buildPercodb(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "percodb-scale-test-"); built.err != nil {
			return
		}
		built.binary, built.err = process.Build(context.Background(), built.dir)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.binary
}

// empty fails the test if the measuring left something in its directory.
func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v was left, %v", left, err)
	}
}

// TestKV measures small stores for a short time: each layer has each way, the bare store is what the others
// are divided by, and nothing is left.
func TestKV(t *testing.T) {
	dir := t.TempDir()
	res, err := KV(t.Context(), KVOptions{Dir: dir, Rows: 12_345, Turns: 3, TurnFor: 5 * time.Millisecond, Writers: 8})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range res.Ways {
		names = append(names, f.Path+" "+f.Operation+" "+f.Way)
		if f.PerSecond <= 0 || f.RateRatio <= 0 || f.Way == "raw" && f.RateRatio != 1 {
			t.Errorf("%+v", f)
		}
	}
	want := "process read raw, process read kv, process read get, process read snapshot, process write raw, process write txn, " +
		"grpc read raw, grpc read kv, grpc read get, grpc read snapshot, grpc write raw, grpc write txn"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("measured %s", got)
	}
	if rows := res.Table().Rows; len(rows) != len(res.Ways) {
		t.Errorf("%d rows", len(rows))
	}
	empty(t, dir)
}

// TestKVStops: a canceled measurement ends with an error, soon, and leaves nothing.
func TestKVStops(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	o := KVOptions{Dir: dir, Rows: 100, Turns: 1_000_000, TurnFor: time.Millisecond, Notice: func(text string) {
		if strings.HasSuffix(text, "read") {
			cancel()
		}
	}}
	if _, err := KV(ctx, o); err == nil {
		t.Error("no error")
	}
	empty(t, dir)
	if _, err := KV(t.Context(), KVOptions{Dir: dir, Turns: -1}); err == nil {
		t.Error("-1 turns were taken")
	}
}

// TestFigure: medians over turns, and of the ratios within a turn, are those worked out by hand.
func TestFigure(t *testing.T) {
	turn := func(wall, cpu int) micro.Turn {
		return micro.Turn{Ops: 1000, Wall: time.Duration(wall) * time.Millisecond, CPU: time.Duration(cpu) * time.Millisecond}
	}
	raw := []micro.Turn{turn(100, 10), turn(200, 20), turn(100, 10)}
	got := figure("txn", raw, []micro.Turn{turn(200, 40), turn(300, 60), turn(500, 30)})
	want := KVFigure{Way: "txn", PerSecond: 1000 / 0.3, RateRatio: 0.5, CPUMicros: 40, CPURatio: 3}
	if got.Way != want.Way || math.Abs(got.PerSecond-want.PerSecond) > 1e-6 || got.RateRatio != want.RateRatio || got.CPUMicros != want.CPUMicros || got.CPURatio != want.CPURatio {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// TestTSO asks an oracle in a process of its own: timestamps come, the process's time is counted, and it is
// gone afterwards.
func TestTSO(t *testing.T) {
	dir := t.TempDir()
	res, err := TSO(t.Context(), TSOOptions{Binary: buildPercodb(t), Dir: dir, Callers: []int{1, 64}, Duration: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Figures) != 4 {
		t.Fatalf("%+v", res.Figures)
	}
	for _, f := range res.Figures {
		if f.PerSecond <= 0 || f.P99 < f.P50 || f.ClientMicros <= 0 || (f.Path == "grpc") != (f.ServerMicros > 0) {
			t.Errorf("%+v", f)
		}
	}
	page(t, res.Document(), "timestamps/s")
	empty(t, dir)
	for _, o := range []TSOOptions{{Callers: []int{0}}, {Callers: []int{4, 2}}, {Dir: dir, Binary: filepath.Join(dir, "nowhere"), Duration: time.Millisecond}} {
		if _, err := TSO(t.Context(), o); err == nil {
			t.Errorf("%+v was measured", o)
		}
	}
	empty(t, dir)
}

// page writes a document and looks for a text in it.
func page(t *testing.T, d report.Document, text string) {
	t.Helper()
	var out bytes.Buffer
	if err := report.WriteDocument(&out, d); err != nil || !strings.Contains(out.String(), text) {
		t.Errorf("%v, page of %d bytes", err, out.Len())
	}
}

// TestSteps runs the brokerage for seconds over one process and over two stores, twice: processor time is
// found for each role, the sum of the roles is the whole, and nothing is left.
func TestSteps(t *testing.T) {
	binary, dir := buildPercodb(t), t.TempDir()
	res, err := Steps(t.Context(), StepsOptions{
		Binary: binary, Dir: dir, Stores: []int{0, 2}, CacheMB: 64, Rounds: 2, Notice: func(text string) { t.Log(text) },
		Scale: gen.Scale{Customers: 1000, TradeDays: 1, MarketDays: 31, NewsBytes: 300, Seed: 1, ShortHistory: true},
		Run:   run.Options{Max: true, Duration: 2 * time.Second, Interval: time.Second, PricePeriod: 20 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range res.Steps {
		var sum float64
		for _, v := range s.ByRole {
			sum += v
		}
		want := map[int]int{0: 1, 2: 3}[s.Stores]
		if len(s.Results) != 2 || len(s.ByRole) != want || s.TxPerS <= 0 || s.CPUMillis <= 0 || sum < s.CPUMillis/2 || sum > s.CPUMillis*2 {
			t.Errorf("%s: %d rounds, %v tx/s, %v ms, by role %v", s.name(), len(s.Results), s.TxPerS, s.CPUMillis, s.ByRole)
		}
	}
	page(t, res.Document(), "CPU ms per transaction")
	if _, err := json.Marshal(res); err != nil {
		t.Error(err)
	}
	empty(t, dir)
}

// TestStepsEnd: options that cannot be are refused, and what was started is stopped when a step fails: the
// second process of a deployment, of which this program makes none ready, or a canceled context.
func TestStepsEnd(t *testing.T) {
	scale := gen.Scale{Customers: 1000, TradeDays: 5, MarketDays: 31, NewsBytes: 300, Seed: 1}
	for _, o := range []StepsOptions{{Stores: []int{2, 1}, Scale: scale}, {Stores: []int{-1}, Scale: scale}, {Stores: []int{1}}} {
		if _, err := Steps(t.Context(), o); err == nil {
			t.Errorf("%+v was measured", o)
		}
	}
	// A stand-in for percodb: the oracle becomes ready, a store ends at once.
	dir := t.TempDir()
	script := filepath.Join(dir, "stand-in")
	pid := filepath.Join(dir, "pid")
	text := fmt.Sprintf("#!/bin/sh\ncase $2 in --role=tso) echo $$ > %s; echo percodb tso is ready on 127.0.0.1:1; exec sleep 600;; esac\necho no >&2; exit 3\n", pid)
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	_, err := Steps(t.Context(), StepsOptions{Binary: script, Dir: data, Stores: []int{1}, Scale: scale})
	if err == nil || !strings.Contains(err.Error(), "kv1: the process ended while it started") {
		t.Error(err)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscan(string(b), &n); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, 0); err != syscall.ESRCH {
		t.Errorf("process %d: %v", n, err)
	}
	empty(t, data)
}
