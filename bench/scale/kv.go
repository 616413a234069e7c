package scale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/percodb/percodb/bench/micro"
	"github.com/percodb/percodb/bench/tpce/report"
)

// KVSchema names the form of a KVResult in JSON.
const KVSchema = "percodb.kv/1"

// KVOptions say how single rows are measured.
type KVOptions struct {
	// Dir is where the stores are made, in a new directory that is removed; the system's place for such if "".
	Dir string
	// Rows of 100 bytes in each of the two stores; a million if 0.
	Rows uint64
	// Turns is how many each way has; 16 if 0.
	Turns int
	// TurnFor is about how long a turn takes; 250 ms if 0.
	TurnFor time.Duration
	// Writers at once; 64 if 0.
	Writers int
	// Notice, if not nil, receives messages about the progress.
	Notice func(string)
}

// KVResult is what was measured. Its JSON is one object.
type KVResult struct {
	Schema  string     `json:"schema"`
	Started time.Time  `json:"started"`
	Rows    uint64     `json:"rows"`
	Turns   int        `json:"turns"`
	Ways    []KVFigure `json:"ways"`
}

// KVFigure is one way to do an operation. Figures are medians over the turns; ratios are medians of the
// turns' ratios to the bare store.
type KVFigure struct {
	Path      string  `json:"path"`      // "process" or "grpc"
	Operation string  `json:"operation"` // "read" or "write"
	Way       string  `json:"way"`       // "raw", or one of percodb's
	Clients   int     `json:"clients"`
	PerSecond float64 `json:"per_s"`
	// RateRatio is PerSecond by that of "raw".
	RateRatio float64 `json:"rate_ratio"`
	// CPUMicros is processor time per operation in µs, of client and server together.
	CPUMicros float64 `json:"cpu_us"`
	CPURatio  float64 `json:"cpu_ratio"`
}

func (o *KVOptions) fill() error {
	if o.Rows == 0 {
		o.Rows = micro.Rows
	}
	if o.Turns == 0 {
		o.Turns = 16
	}
	if o.TurnFor == 0 {
		o.TurnFor = 250 * time.Millisecond
	}
	if o.Writers == 0 {
		o.Writers = 64
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Turns < 1 || o.TurnFor < 0 || o.Writers < 1 {
		return fmt.Errorf("%d turns of %v with %d writers: use more than 0", o.Turns, o.TurnFor, o.Writers)
	}
	return nil
}

// KV measures reads and writes of single rows.
func KV(ctx context.Context, o KVOptions) (_ *KVResult, err error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	res := &KVResult{Schema: KVSchema, Started: time.Now(), Rows: o.Rows, Turns: o.Turns}
	dir, err := os.MkdirTemp(o.Dir, "percodb-bench-kv-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o.Notice(fmt.Sprintf("loading %d rows into a bare store and into percodb's", o.Rows))
	raw, err := micro.OpenRaw(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, raw.DB.Close()) }()
	shard, err := micro.OpenShard(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shard.Close()) }()
	if err := errors.Join(raw.Load(ctx, o.Rows), shard.Load(ctx, o.Rows)); err != nil {
		return nil, err
	}
	layers, stop, err := micro.Layers(ctx, raw, shard)
	if err != nil {
		return nil, err
	}
	defer stop()
	for i := range layers {
		l := &layers[i]
		for _, op := range []struct {
			name    string
			clients int
			ways    []micro.Way
		}{{"read", l.Clients, l.ReadWays(ctx, o.Rows)}, {"write", o.Writers, l.WriteWays(ctx, o.Rows)}} {
			o.Notice(fmt.Sprintf("%s: %s", l.Name, op.name))
			figures, err := o.measure(ctx, op.clients, op.ways)
			if err != nil {
				return nil, err
			}
			for _, f := range figures {
				f.Path, f.Operation, f.Clients = l.Name, op.name, op.clients
				res.Ways = append(res.Ways, f)
			}
		}
	}
	return res, nil
}

// measure has the ways take turns of about the same time as the first one needs.
func (o *KVOptions) measure(ctx context.Context, clients int, ways []micro.Way) ([]KVFigure, error) {
	for i := range ways {
		do := ways[i].Do
		ways[i].Do = func(r *rand.Rand) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(r)
		}
	}
	// How many operations fill a turn, from longer and longer tries.
	n := clients
	for {
		begin := time.Now()
		if err := micro.Many(clients, n, ways[0].Do); err != nil {
			return nil, err
		}
		if took := time.Since(begin); took > o.TurnFor/4 {
			n = max(clients, int(float64(n)*o.TurnFor.Seconds()/took.Seconds()))
			break
		}
		n *= 2
	}
	turns, err := micro.Turns(clients, n, o.Turns, ways...)
	if err != nil {
		return nil, err
	}
	figures := make([]KVFigure, len(ways))
	for w := range ways {
		figures[w] = figure(ways[w].Name, turns[0], turns[w])
	}
	return figures, nil
}

// figure makes medians of a way's turns, and of their ratios to the bare store's.
func figure(name string, raw, turns []micro.Turn) KVFigure {
	median := func(of func(raw, t micro.Turn) float64) float64 {
		v := make([]float64, len(turns))
		for i, t := range turns {
			v[i] = of(raw[i], t)
		}
		return micro.Median(v)
	}
	return KVFigure{
		Way:       name,
		PerSecond: median(func(_, t micro.Turn) float64 { return float64(t.Ops) / t.Wall.Seconds() }),
		RateRatio: median(func(raw, t micro.Turn) float64 { return raw.Wall.Seconds() / t.Wall.Seconds() }),
		CPUMicros: median(func(_, t micro.Turn) float64 { return float64(t.CPU.Microseconds()) / float64(t.Ops) }),
		CPURatio:  median(func(raw, t micro.Turn) float64 { return ratio(t.CPU.Seconds(), raw.CPU.Seconds()) }),
	}
}

// ratio returns a/b, 0 if b is.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Table returns the figures as a table.
func (r *KVResult) Table() report.Table {
	t := report.Table{Header: []string{"path", "operation", "way", "clients", "per second", "of raw", "CPU µs", "× raw"}}
	for _, f := range r.Ways {
		t.Rows = append(t.Rows, []string{f.Path, f.Operation, f.Way, fmt.Sprint(f.Clients), fmt.Sprintf("%.0f", f.PerSecond),
			fmt.Sprintf("%.2f", f.RateRatio), fmt.Sprintf("%.2f", f.CPUMicros), fmt.Sprintf("%.2f", f.CPURatio)})
	}
	return t
}
