package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/percodb/percodb/bench/micro"
	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/usage"
	"github.com/percodb/percodb/tso"
)

// TSOSchema names the form of a TSOResult in JSON.
const TSOSchema = "percodb.tso/1"

// TSOOptions say how the oracle is measured.
type TSOOptions struct {
	// Binary is percodb, which is started as an oracle; not used with Join.
	Binary string
	// Join is HOST:PORT of a tso process that runs already; Usage may say where its processor time is found.
	Join  string
	Usage usage.Options
	// Dir is where its data are made, in a new directory that is removed; the system's place for such if "".
	Dir string
	// Callers at once, over gRPC; 1, 4, 16, 64, 256 and 1024 if none.
	Callers []int
	// Duration of each measurement; 2 s if 0.
	Duration time.Duration
	// Notice, if not nil, receives messages about the progress.
	Notice func(string)
}

// TSOResult is what was measured. Its JSON is one object.
type TSOResult struct {
	Schema  string      `json:"schema"`
	Started time.Time   `json:"started"`
	Figures []TSOFigure `json:"figures"`
}

// TSOFigure is one measurement.
type TSOFigure struct {
	Path      string  `json:"path"` // "process" or "grpc"
	Callers   int     `json:"callers"`
	PerSecond float64 `json:"per_s"`
	// P50 and P99 are how long a caller waits, in µs.
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	// ClientMicros and ServerMicros are processor time per timestamp in µs; the server's is 0 if it is not
	// known, or in this process.
	ClientMicros float64 `json:"client_cpu_us"`
	ServerMicros float64 `json:"server_cpu_us"`
}

func (o *TSOOptions) fill() error {
	if len(o.Callers) == 0 {
		o.Callers = []int{1, 4, 16, 64, 256, 1024}
	}
	for i, n := range o.Callers {
		if n < 1 || i > 0 && n <= o.Callers[i-1] {
			return fmt.Errorf("callers %v: use ascending numbers above 0", o.Callers)
		}
	}
	if o.Duration == 0 {
		o.Duration = 2 * time.Second
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	return nil
}

// TSO measures how many timestamps the oracle hands out, and what they cost.
func TSO(ctx context.Context, o TSOOptions) (_ *TSOResult, err error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	res := &TSOResult{Schema: TSOSchema, Started: time.Now()}
	dir, err := os.MkdirTemp(o.Dir, "percodb-bench-tso-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.Notice("in this process")
	here, err := inProcess(ctx, dir, o.Duration)
	if err != nil {
		return nil, err
	}
	res.Figures = append(res.Figures, here...)
	addr := o.Join
	if addr == "" {
		d, err := deployOracle(ctx, o.Binary, dir)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, d.stop()) }()
		addr, o.Usage = d.processes[0].addr, usage.Options{PIDs: d.pids()[:1]}
	}
	oracle, hangUp, err := micro.DialOracle(addr)
	if err != nil {
		return nil, err
	}
	defer hangUp()
	meter, err := usage.Open(ctx, o.Usage)
	if err != nil {
		return nil, err
	}
	defer meter.Close()
	for _, callers := range o.Callers {
		o.Notice(fmt.Sprintf("over gRPC, %d callers", callers))
		if _, err := timestamps(ctx, oracle, meter, callers, o.Duration/10); err != nil { // warm up
			return nil, err
		}
		f, err := timestamps(ctx, oracle, meter, callers, o.Duration)
		if err != nil {
			return nil, err
		}
		f.Path = "grpc"
		res.Figures = append(res.Figures, f)
	}
	return res, nil
}

// inProcess measures an oracle whose callers are in its process, as in one percodb that does everything.
func inProcess(ctx context.Context, dir string, d time.Duration) (_ []TSOFigure, err error) {
	shard, err := micro.OpenShard(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shard.Close()) }()
	meter, err := usage.Open(ctx, usage.Options{})
	if err != nil {
		return nil, err
	}
	defer meter.Close()
	var figures []TSOFigure
	for _, callers := range []int{1, 8} {
		f, err := timestamps(ctx, shard.Oracle, meter, callers, d)
		if err != nil {
			return nil, err
		}
		f.Path = "process"
		figures = append(figures, f)
	}
	return figures, nil
}

// timedEvery is how many calls there are to one that is timed: where a call takes less time than reading
// the clock, timing each would measure the clock.
const timedEvery = 64

// timestamps has callers ask for timestamps for about d.
func timestamps(ctx context.Context, oracle tso.Oracle, meter *usage.Meter, callers int, d time.Duration) (TSOFigure, error) {
	before, err := meter.Read(ctx)
	if err != nil {
		return TSOFigure{}, err
	}
	begin := time.Now()
	end := begin.Add(d)
	type tally struct {
		calls int64
		times *hdrhistogram.Histogram
		err   error
	}
	tallies := make([]tally, callers)
	var wg sync.WaitGroup
	for i := range tallies {
		t := &tallies[i]
		t.times = hdrhistogram.New(1, int64(time.Minute), 2) // ns
		wg.Go(func() {
			for t.err == nil {
				at := time.Now()
				if at.After(end) {
					return
				}
				for n := range timedEvery {
					if _, t.err = oracle.Now(ctx); t.err != nil {
						return
					}
					t.calls++
					if n == 0 {
						_ = t.times.RecordValue(min(int64(time.Since(at)), int64(time.Minute)))
					}
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	after, err := meter.Read(ctx)
	if err != nil {
		return TSOFigure{}, err
	}
	used := after.Since(before)
	var calls int64
	times := hdrhistogram.New(1, int64(time.Minute), 2)
	for i := range tallies {
		if tallies[i].err != nil {
			return TSOFigure{}, tallies[i].err
		}
		calls += tallies[i].calls
		times.Merge(tallies[i].times)
	}
	n := float64(calls)
	return TSOFigure{
		Callers: callers, PerSecond: n / took.Seconds(), P50: float64(times.ValueAtQuantile(50)) / 1e3, P99: float64(times.ValueAtQuantile(99)) / 1e3,
		ClientMicros: ratio(used.Driver*1e6, n), ServerMicros: ratio(used.Server()*1e6, n),
	}, nil
}

// Table returns the figures as a table.
func (r *TSOResult) Table() report.Table {
	t := report.Table{Header: []string{"path", "callers", "timestamps/s", "p50 µs", "p99 µs", "client CPU µs", "server CPU µs"}}
	for _, f := range r.Figures {
		server := "–"
		if f.ServerMicros > 0 {
			server = fmt.Sprintf("%.2f", f.ServerMicros)
		}
		t.Rows = append(t.Rows, []string{f.Path, fmt.Sprint(f.Callers), fmt.Sprintf("%.0f", f.PerSecond), fmt.Sprintf("%.2f", f.P50), fmt.Sprintf("%.2f", f.P99),
			fmt.Sprintf("%.3f", f.ClientMicros), server})
	}
	return t
}

// Document returns a page with the figures and their charts.
func (r *TSOResult) Document() report.Document {
	chart := func(title, label string, names []string, of ...func(TSOFigure) float64) report.Chart {
		c := report.Chart{Title: title, Axis: report.Log, XLabel: "callers at once", YLabel: label, LogY: true}
		for i, f := range of {
			l := report.Line{Name: names[i], Color: i, X: []float64{}, Y: []float64{}}
			for _, figure := range r.Figures {
				if v := f(figure); figure.Path == "grpc" && v > 0 {
					l.X, l.Y = append(l.X, float64(figure.Callers)), append(l.Y, v)
					c.Steps = appendNew(c.Steps, float64(figure.Callers))
				}
			}
			c.Lines = append(c.Lines, l)
		}
		return c
	}
	return report.Document{
		Title: "The oracle's timestamps", Subtitle: "Callers and oracle share one machine.",
		Sections: []report.Section{{Title: "Timestamps", Text: "The charts show those over gRPC.", Tables: []report.Table{r.Table()}, Charts: []report.Chart{
			chart("Rate", "timestamps/s", []string{"timestamps/s"}, func(f TSOFigure) float64 { return f.PerSecond }),
			chart("How long a caller waits", "microseconds", []string{"p50", "p99"}, func(f TSOFigure) float64 { return f.P50 }, func(f TSOFigure) float64 { return f.P99 }),
			chart("Processor time", "µs per timestamp", []string{"client", "server"}, func(f TSOFigure) float64 { return f.ClientMicros }, func(f TSOFigure) float64 { return f.ServerMicros }),
		}}},
	}
}

// appendNew appends v unless it is there.
func appendNew(list []float64, v float64) []float64 {
	for _, x := range list {
		if x == v {
			return list
		}
	}
	return append(list, v)
}
