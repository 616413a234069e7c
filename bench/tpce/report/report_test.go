package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// The tests give recorders samples at simulated times, and compare the results with the samples.

var rewrite = flag.Bool("rewrite", false, "write what the golden files should be")

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sqlError is an error with a SQLSTATE, like those of pgx.
type sqlError string

func (e sqlError) Error() string    { return "ERROR (" + string(e) + ")" }
func (e sqlError) SQLState() string { return string(e) }

// draw returns the samples of a run with a ramp of 20 s and a measured time of 60 s: the mix at 100 transactions/s,
// with response times multiplied by factor.
func draw(seed uint64, factor float64) []mix.Sample {
	r := rand.New(rand.NewPCG(seed, 7))
	var samples []mix.Sample
	for n := range 8000 {
		k, pick := mix.Kind(0), r.IntN(10000)
		for pick >= mix.Of(k).Share {
			pick -= mix.Of(k).Share
			k++
		}
		at := begin.Add(time.Duration(n) * 10 * time.Millisecond)
		wait := time.Duration(r.ExpFloat64() * factor * float64(time.Millisecond))
		took := time.Duration((2 + float64(k) + r.ExpFloat64()*8) * factor * float64(time.Millisecond))
		s := mix.Sample{Kind: k, Scheduled: at, Started: at.Add(wait), Finished: at.Add(wait + took), RoundTrips: 2 + int(k)}
		switch n % 400 {
		case 1, 2, 3:
			s.Aborts = []string{"40001"}
		case 4:
			s.Aborts = []string{"40001", ""}
		}
		switch {
		case k == mix.TradeOrder && n%100 == 0:
			s.Outcome = mix.RolledBack
		case n == 7001:
			s.Outcome, s.Err = mix.Failed, fmt.Errorf("frame 2: %w", sqlError("22003"))
		case n == 7002:
			s.Outcome, s.Err = mix.Failed, errors.New("no such customer")
		case n == 7003:
			s.Outcome = mix.Unknown
		case n == 7004:
			s.Outcome = mix.AlreadyDone
		}
		samples = append(samples, s)
	}
	samples = append(samples, mix.Sample{Kind: mix.DataMaintenance, Scheduled: begin.Add(30 * time.Second), Started: begin.Add(30 * time.Second), Finished: begin.Add(30*time.Second + 40*time.Millisecond)})
	return samples
}

// play passes samples to a recorder like a run does, with a tick every 5 s.
func play(samples []mix.Sample) *Recorder {
	r := New(begin)
	next := begin.Add(5 * time.Second)
	tick := func() {
		g := Gauges{Measuring: next.After(begin.Add(20 * time.Second)), Pending: 120, MEEQueue: 3, CoresServer: 1.5, CoresDriver: 0.4}
		r.Tick(next, g)
		next = next.Add(5 * time.Second)
	}
	for _, s := range samples {
		for s.Scheduled.Sub(next) >= 0 {
			tick()
		}
		if s.Finished.Sub(begin) >= 20*time.Second && r.window.start.IsZero() {
			r.StartMeasuring(begin.Add(20 * time.Second))
		}
		r.Record(s)
	}
	tick()
	r.StopMeasuring(begin.Add(80 * time.Second))
	return r
}

// sampleResult returns the result of such a run.
func sampleResult(label string, seed uint64, factor float64) *Result {
	res := &Result{
		Label: label, Started: begin, Paced: true, Nominal: 10, Flags: []string{"trade-days=5", "foreign keys off"},
		Server:   Server{Version: "PostgreSQL 15.14 on x86_64", URLs: []string{"postgres://127.0.0.1:6103/postgres"}},
		Scale:    Scale{Customers: 5000, ActiveCustomers: 5000, TradeDays: 5, Seed: 1, GeneratorVersion: 1},
		Settings: map[string]string{"isolation": "snapshot", "pace": "nominal"},
		Interval: Interval{RampS: 20},
		MEE:      &MEE{Pending: 120, Triggers: 80, MF: 60, QueueMax: 9},
		CPU:      &CPU{ServerS: 90 * factor, DriverS: 24, PerNode: []NodeCPU{{"kv 1", 50 * factor}, {"kv 2", 40 * factor}}},
		Journal:  &Journal{Acked: 1800, Unknown: 1},
	}
	play(draw(seed, factor)).Fill(res)
	res.Reasons = append(res.MixOff(), res.LimitsBroken()...)
	res.Valid = len(res.Reasons) == 0
	return res
}

// TestFinalTable compares the table with testdata/table.txt; -rewrite writes it.
func TestFinalTable(t *testing.T) {
	var b bytes.Buffer
	if err := sampleResult("made up", 1, 1).WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "table.txt")
	if *rewrite {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error(diff)
	}
}

// TestCounts compares the result with counts of a simple loop over the samples.
func TestCounts(t *testing.T) {
	res := sampleResult("", 1, 1)
	from, to := begin.Add(20*time.Second), begin.Add(80*time.Second)
	var all, results, aborts, worst int64
	for _, s := range draw(1, 1) {
		if s.Finished.Before(from) || s.Finished.After(to) {
			continue
		}
		aborts += int64(len(s.Aborts))
		if s.Outcome > mix.RolledBack || int(s.Kind) >= mix.InMix {
			continue
		}
		all++
		if s.Kind == mix.TradeResult {
			results++
			if !s.Scheduled.Before(from) {
				worst = max(worst, s.Finished.Sub(s.Scheduled).Microseconds())
			}
		}
	}
	if res.Transactions() != all || res.Of(mix.TradeResult).Count != results || res.aborts() != aborts {
		t.Errorf("%d transactions, %d Trade-Results, %d aborts; the samples have %d, %d, %d", res.Transactions(), res.Of(mix.TradeResult).Count, res.aborts(), all, results, aborts)
	}
	if got := res.Of(mix.TradeResult).LatencyMS.Max; math.Abs(got*1000/float64(worst)-1) > 0.001 {
		t.Errorf("longest Trade-Result %v ms, the samples have %d µs", got, worst)
	}
	if math.Abs(res.MeasuredTR-float64(results)/60) > 1e-9 || math.Abs(res.Ratio-res.MeasuredTR/10) > 1e-9 {
		t.Errorf("%v Trade-Results/s, ratio %v", res.MeasuredTR, res.Ratio)
	}
	var failed, unknown, replayed int64
	errs := map[string]int64{}
	for _, y := range res.Types {
		failed, unknown, replayed = failed+y.Failed, unknown+y.Unknown, replayed+y.AlreadyDone
		for text, n := range y.Errors {
			errs[text] += n
		}
	}
	if failed != 2 || unknown != 1 || replayed != 1 || errs["22003"] != 1 || errs["no such customer"] != 1 {
		t.Errorf("failed %d, unknown %d, already done %d, errors %v", failed, unknown, replayed, errs)
	}
}

// TestSeries: the points cover ramp and measured time, and their rates multiplied by their seconds are the counts.
func TestSeries(t *testing.T) {
	res := sampleResult("", 1, 1)
	if len(res.Series) != 16 || res.Series[0].T != -15 || res.Series[15].T != 60 {
		t.Fatalf("%d points, %v to %v", len(res.Series), res.Series[0].T, res.Series[len(res.Series)-1].T)
	}
	var sum float64
	for i, p := range res.Series {
		sum += p.Tx * 5
		if p.Measuring != (p.T > 0) {
			t.Errorf("point %d at %v: measuring %v", i, p.T, p.Measuring)
		}
	}
	var all float64
	for _, s := range draw(1, 1) {
		if int(s.Kind) < mix.InMix && s.Outcome <= mix.RolledBack {
			all++
		}
	}
	if math.Abs(sum-all) > 1e-6 {
		t.Errorf("the points have %v transactions, the samples %v", sum, all)
	}
	line := res.Series[9].Line(50*time.Second, 10)
	if ok, _ := regexp.MatchString(`^\[tpce 00:00:50 run\] TR/s \d+\.\d \(nominal 10\.0, \d+%\) tx/s \d+ \| p90 ms TO [\d.]+ TR [\d.]+ MW [\d.]+ CP [\d.]+ TS [\d.]+ \| aborts/s \d+\.\d \(TR \d\.\d\) \| pending 120 mee-q 3 late 0\.0% \| cores srv 1\.5 drv 0\.4 \| err 0$`, line); !ok {
		t.Error(line)
	}
}

// TestWindow: a transaction that spans the beginning of the measured time counts, but its response time does not; one
// that ends after the measured time does not count.
func TestWindow(t *testing.T) {
	r := New(begin)
	at := func(from, to int) {
		s := mix.Sample{Kind: mix.TradeResult, Scheduled: begin.Add(time.Duration(from) * time.Second), Finished: begin.Add(time.Duration(to) * time.Second)}
		s.Started = s.Scheduled
		r.Record(s)
	}
	at(1, 2)
	r.StartMeasuring(begin.Add(10 * time.Second))
	at(3, 9)
	at(8, 12)
	at(12, 13)
	r.StopMeasuring(begin.Add(20 * time.Second))
	at(19, 20)
	at(19, 21)
	// A lost answer: the transaction lasts until a retry detects that it has committed.
	r.Record(mix.Sample{Kind: mix.TradeOrder, Outcome: mix.AlreadyDone, Scheduled: begin.Add(12 * time.Second), Started: begin.Add(13 * time.Second), Finished: begin.Add(17 * time.Second)})
	res := &Result{}
	r.Fill(res)
	y := res.Of(mix.TradeResult)
	h, err := decode(y.Histogram)
	if err != nil {
		t.Fatal(err)
	}
	if y.Count != 3 || h.TotalCount() != 2 || math.Abs(y.LatencyMS.Max-1000) > 1 {
		t.Errorf("count %d, times %d, longest %v", y.Count, h.TotalCount(), y.LatencyMS.Max)
	}
	if y := res.Of(mix.TradeOrder); y.Count != 0 || y.AlreadyDone != 1 || math.Abs(y.LatencyMS.P90-5000) > 10 || math.Abs(y.ServiceMS.P90-4000) > 10 || y.Pass {
		t.Errorf("found done: %+v", y)
	}
}

// TestRoundTrip: a result is unchanged after writing and reading, and other files are rejected.
func TestRoundTrip(t *testing.T) {
	want := sampleResult("made up", 1, 1)
	want.Checker = json.RawMessage(`{"violations":0}`)
	path := filepath.Join(t.TempDir(), "run.json")
	if err := want.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, got.Checker); err != nil {
		t.Fatal(err)
	}
	got.Checker = compact.Bytes()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{
		``, `[]`, `{}`, `{"schema":"percodb.kv/1"}`, `{"schema":"percodb.tpce/1","types":{"trade-order":null}}`,
		`{"schema":"percodb.tpce/1","types":{"trade-order":{"hist_base64":"?"}}}`,
		`{"schema":"percodb.tpce/1","types":{"trade-order":{"hist_base64":"HISTFAAAAC14nJNpmSzMwMBAAAAA"}}}`,
		`{"schema":"percodb.tpce/1","types":{"trade-order":{"hist_base64":"AAAA"}}}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(path); err == nil {
			t.Errorf("read %s", text)
		}
	}
}

// TestHistogramFile: a reader of HdrHistogram logs finds the response times of each kind that has samples.
func TestHistogramFile(t *testing.T) {
	res := sampleResult("made up", 1, 1)
	path := filepath.Join(t.TempDir(), "run.hlog")
	if err := res.WriteHistogramFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reader := hdrhistogram.NewHistogramLogReader(f)
	found := map[string]*hdrhistogram.Histogram{}
	for {
		h, err := reader.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		found[h.Tag()] = h
	}
	if len(found) != 2*(mix.InMix+1) {
		t.Errorf("%d histograms", len(found))
	}
	for k := range mix.Kind(mix.InMix) {
		h := found[mix.Of(k).Flag]
		if h == nil || millis(h.ValueAtQuantile(90)) != res.Of(k).LatencyMS.P90 || found[mix.Of(k).Flag+"-service"] == nil {
			t.Errorf("%s: %+v", k, h)
		}
	}
}

// TestMerge: the merged result of two drivers equals that of one recorder with the samples of both.
func TestMerge(t *testing.T) {
	samples := draw(1, 1)
	var parts [2][]mix.Sample
	for i, s := range samples {
		parts[i%2] = append(parts[i%2], s)
	}
	fill := func(samples []mix.Sample, nominal float64) *Result {
		res := &Result{Started: begin, Paced: true, Nominal: nominal, Interval: Interval{RampS: 20}, Settings: map[string]string{"instance": fmt.Sprint(nominal)},
			CPU: &CPU{ServerS: 12, DriverS: nominal}}
		play(samples).Fill(res)
		return res
	}
	whole := fill(samples, 10)
	got, err := Merge(fill(parts[0], 4), fill(parts[1], 6))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole.Types, got.Types); diff != "" {
		t.Error(diff)
	}
	if got.Nominal != 10 || got.MeasuredTR != whole.MeasuredTR || got.Merged != 2 || got.Settings["instance"] != "4 | 6" {
		t.Errorf("nominal %v, measured %v not %v, merged %d, settings %v", got.Nominal, got.MeasuredTR, whole.MeasuredTR, got.Merged, got.Settings)
	}
	if got.CPU.ServerS != 12 || got.CPU.DriverS != 10 || got.CPU.PerTRS != whole.CPU.PerTRS {
		t.Errorf("CPU %+v", got.CPU)
	}
	for i := range whole.Series {
		if math.Abs(whole.Series[i].Tx-got.Series[i].Tx) > 1e-9 || whole.Series[i].T != got.Series[i].T {
			t.Errorf("point %d: %+v, not %+v", i, got.Series[i], whole.Series[i])
		}
	}
	if !got.Valid {
		t.Errorf("not valid because %v", got.Reasons)
	}

	late := fill(parts[1], 6)
	late.Started = late.Started.Add(30 * time.Second)
	if got, err = Merge(fill(parts[0], 4), late); err != nil || got.Valid || !strings.Contains(strings.Join(got.Reasons, ";"), "overlap by 50 %") {
		t.Errorf("drivers that ran one after the other: %v, %v", got, err)
	}
	other := fill(parts[1], 6)
	other.Scale.Customers = 1000
	if _, err := Merge(whole, other); err == nil {
		t.Error("results of two databases merged")
	}
	if _, err := Merge(); err == nil {
		t.Error("nothing merged")
	}
}

// TestMixWithin: a drawn mix is within the bounds, the same mix with one kind doubled is not, and few samples may
// deviate by more than 2 percent.
func TestMixWithin(t *testing.T) {
	var counts [mix.InMix]int64
	for k := range counts {
		counts[k] = int64(mix.Of(mix.Kind(k)).Share) * 100
	}
	if off := MixWithin(counts); off != nil {
		t.Error(off)
	}
	counts[mix.TradeUpdate] = counts[mix.TradeUpdate] * 103 / 100
	if off := MixWithin(counts); len(off) != 1 || !strings.Contains(off[0], "Trade-Update") {
		t.Error(off)
	}
	for k := range counts {
		counts[k] /= 1000
	}
	if off := MixWithin(counts); off != nil {
		t.Error(off)
	}
	if off := MixWithin([mix.InMix]int64{}); len(off) != 1 {
		t.Error(off)
	}
}

// TestLimits: a ninetieth percentile that exceeds its limit is reported.
func TestLimits(t *testing.T) {
	res := sampleResult("slow", 1, 100)
	off := strings.Join(res.LimitsBroken(), "\n")
	if !strings.Contains(off, "Trade-Status") || res.Of(mix.TradeStatus).Pass || strings.Contains(off, "Data-Maintenance") {
		t.Error(off)
	}
	if off := sampleResult("quick", 1, 1).LimitsBroken(); off != nil {
		t.Error(off)
	}
}

// TestConcurrent: samples from many goroutines all count. Run with -race.
func TestConcurrent(t *testing.T) {
	r := New(begin)
	r.StartMeasuring(begin)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 1000 {
				r.Record(mix.Sample{Kind: mix.Kind((g + n) % mix.Kinds), Scheduled: begin, Started: begin, Finished: begin.Add(time.Millisecond)})
				if n%300 == 0 && g == 0 {
					r.Tick(begin.Add(time.Duration(n+1)*time.Millisecond), Gauges{})
				}
			}
		})
	}
	wg.Wait()
	r.StopMeasuring(begin.Add(time.Second))
	res := &Result{}
	r.Fill(res)
	var n int64
	for _, y := range res.Types {
		n += y.Count
	}
	if n != 8000 {
		t.Errorf("%d samples of 8000", n)
	}
}
