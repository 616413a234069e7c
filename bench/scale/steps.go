package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/percodb/percodb/bench/micro"
	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/run"
	"github.com/percodb/percodb/internal/loading"
)

// StepsSchema names the form of a StepsResult in JSON.
const StepsSchema = "percodb.scale/1"

// StepsOptions say which deployments are measured, and how.
type StepsOptions struct {
	// Binary is percodb.
	Binary string
	// Dir is where data and logs are made, in a new directory that is removed unless Keep; the system's place
	// for such if "".
	Dir  string
	Keep bool
	// Stores are how many store processes each deployment has; 0 is one process that does everything.
	// 0, 1, 2 and 4 if none.
	Stores []int
	// SQLs is how many SQL processes each has; 1 if 0.
	SQLs int
	// CacheMB is the block cache of a store, in MiB; 256 if 0.
	CacheMB int
	// Scale is what is loaded into each.
	Scale gen.Scale
	// Rounds is how often each is measured; 1 if 0. The deployments take turns.
	Rounds int
	// Run says how. Its URLs and Usage are not used.
	Run run.Options
	// Notice receives messages about the progress, Progress the progress of loading; either may be nil.
	Notice   func(string)
	Progress loading.Progress
}

// StepsResult is what was measured. Its JSON is one object.
type StepsResult struct {
	Schema  string    `json:"schema"`
	Started time.Time `json:"started"`
	Scale   gen.Scale `json:"scale"`
	Rounds  int       `json:"rounds"`
	Steps   []Step    `json:"steps"`
}

// Step is one deployment. Figures are medians over the rounds.
type Step struct {
	Stores int `json:"stores"` // 0: one process does everything
	SQLs   int `json:"sqls"`
	// TxPerS and TRPerS are transactions of the mix and Trade-Results per second.
	TxPerS float64 `json:"tx_per_s"`
	TRPerS float64 `json:"tr_per_s"`
	// TRP90 is the ninetieth percentile of Trade-Result's response time in ms.
	TRP90 float64 `json:"tr_p90_ms"`
	// AbortsPerTx are attempts that were retried.
	AbortsPerTx float64 `json:"aborts_per_tx"`
	// CPUMillis is processor time of all servers per transaction in ms, ByRole that of each role.
	CPUMillis float64            `json:"cpu_ms_per_tx"`
	ByRole    map[string]float64 `json:"cpu_ms_per_tx_by_role"`
	// Cores are in use by all servers, DriverCores by this process.
	Cores       float64 `json:"cores"`
	DriverCores float64 `json:"driver_cores"`
	// Results are those of the rounds.
	Results []*report.Result `json:"results"`

	roles []map[string]float64 // ByRole of each round
}

func (o *StepsOptions) fill() error {
	if len(o.Stores) == 0 {
		o.Stores = []int{0, 1, 2, 4}
	}
	o.SQLs, o.CacheMB, o.Rounds = max(o.SQLs, 1), max(o.CacheMB, 0), max(o.Rounds, 1)
	if o.CacheMB == 0 {
		o.CacheMB = 256
	}
	for i, n := range o.Stores {
		if n < 0 || n > 64 || i > 0 && n <= o.Stores[i-1] {
			return fmt.Errorf("stores %v: use ascending numbers, up to 64", o.Stores)
		}
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	return o.Scale.Validate()
}

// name names a deployment for people.
func (s *Step) name() string {
	switch s.Stores {
	case 0:
		return "one process"
	case 1:
		return "1 store"
	}
	return fmt.Sprintf("%d stores", s.Stores)
}

// Steps measures the brokerage over deployments of more and more store processes.
func Steps(ctx context.Context, o StepsOptions) (_ *StepsResult, err error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "percodb-bench-scale-")
	if err != nil {
		return nil, err
	}
	if o.Keep {
		o.Notice("data and logs are in " + dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	res := &StepsResult{Schema: StepsSchema, Started: time.Now(), Scale: o.Scale, Rounds: o.Rounds}
	for _, n := range o.Stores {
		s := Step{Stores: n, SQLs: o.SQLs}
		if n == 0 {
			s.SQLs = 0
		}
		res.Steps = append(res.Steps, s)
	}
	for round := range o.Rounds {
		for i := range res.Steps {
			s := &res.Steps[i]
			if err := o.round(ctx, filepath.Join(dir, fmt.Sprintf("stores-%d", s.Stores)), round, s); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name(), err)
			}
		}
	}
	for i := range res.Steps {
		res.Steps[i].summarize()
	}
	return res, nil
}

// round starts a deployment, loads it if it is new, runs and stops it.
func (o *StepsOptions) round(ctx context.Context, dir string, round int, s *Step) (err error) {
	d, err := deploy(ctx, o.Binary, dir, s.Stores, o.SQLs, o.CacheMB)
	if err != nil {
		return err
	}
	defer func() {
		if stopped := d.stop(); stopped != nil && ctx.Err() == nil { // Ctrl-C has reached them, too
			err = errors.Join(err, stopped)
		}
	}()
	if round == 0 {
		o.Notice(fmt.Sprintf("%s: loading %d customers", s.name(), o.Scale.Customers))
		if _, err := load.Run(ctx, load.Options{URLs: d.urls, Scale: o.Scale, Progress: o.Progress}); err != nil {
			return err
		}
	}
	o.Notice(fmt.Sprintf("%s: round %d of %d", s.name(), round+1, o.Rounds))
	opts := o.Run
	opts.URLs, opts.Usage.PIDs, opts.Seed = d.urls, d.pids(), o.Run.Seed+uint64(round)
	opts.Label = "percodb, " + s.name()
	r, err := run.Run(ctx, opts)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.CPU == nil || len(r.CPU.PerNode) != len(d.processes) {
		return errors.New("the run has no processor time of each process")
	}
	if r.Transactions() == 0 {
		return errors.New("no transaction finished")
	}
	roles := map[string]float64{}
	for i, p := range d.processes {
		roles[p.role] += 1000 * r.CPU.PerNode[i].Seconds / float64(r.Transactions())
	}
	s.Results, s.roles = append(s.Results, r), append(s.roles, roles)
	return nil
}

// summarize makes medians of the rounds.
func (s *Step) summarize() {
	median := func(of func(i int, r *report.Result) float64) float64 {
		v := make([]float64, len(s.Results))
		for i, r := range s.Results {
			v[i] = of(i, r)
		}
		return micro.Median(v)
	}
	s.TxPerS = median(func(_ int, r *report.Result) float64 { return ratio(float64(r.Transactions()), r.Interval.MeasureS) })
	s.TRPerS = median(func(_ int, r *report.Result) float64 { return r.MeasuredTR })
	s.TRP90 = median(func(_ int, r *report.Result) float64 { return r.Of(mix.TradeResult).LatencyMS.P90 })
	s.AbortsPerTx = median(func(_ int, r *report.Result) float64 {
		var n int64
		for _, t := range r.Types {
			for _, aborts := range t.Aborts {
				n += aborts
			}
		}
		return ratio(float64(n), float64(r.Transactions()))
	})
	s.CPUMillis = median(func(_ int, r *report.Result) float64 { return 1000 * r.CPU.PerTxS })
	s.Cores = median(func(_ int, r *report.Result) float64 { return r.CPU.CoresServer })
	s.DriverCores = median(func(_ int, r *report.Result) float64 { return r.CPU.CoresDriver })
	s.ByRole = map[string]float64{}
	for role := range s.roles[0] {
		s.ByRole[role] = median(func(i int, _ *report.Result) float64 { return s.roles[i][role] })
	}
}

// roles are in the order in which tables have them.
var roles = []string{"all", "sql", "kv", "tso"}

// Table returns the figures as a table.
func (r *StepsResult) Table() report.Table {
	t := report.Table{Header: []string{"stores", "tx/s", "TR/s", "TR p90 ms", "aborts/tx", "server cores", "driver cores", "CPU ms/tx", "of that sql", "kv", "tso", "× one process", "× 1 store"}}
	cell := func(v float64, known bool) string {
		if !known {
			return "–"
		}
		return fmt.Sprintf("%.2f", v)
	}
	against := func(stores int) float64 {
		if i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.Stores == stores }); i >= 0 {
			return r.Steps[i].CPUMillis
		}
		return 0
	}
	whole, one := against(0), against(1)
	for i := range r.Steps {
		s := &r.Steps[i]
		row := []string{s.name(), fmt.Sprintf("%.1f", s.TxPerS), fmt.Sprintf("%.2f", s.TRPerS), fmt.Sprintf("%.1f", s.TRP90), fmt.Sprintf("%.4f", s.AbortsPerTx),
			cell(s.Cores, true), cell(s.DriverCores, true), cell(s.CPUMillis, true)}
		for _, role := range roles[1:] {
			v, ok := s.ByRole[role]
			row = append(row, cell(v, ok))
		}
		t.Rows = append(t.Rows, append(row, cell(ratio(s.CPUMillis, whole), whole > 0), cell(ratio(s.CPUMillis, one), one > 0 && s.Stores > 0)))
	}
	return t
}

// Document returns a page with the figures and their charts.
func (r *StepsResult) Document() report.Document {
	var steps []float64
	for _, s := range r.Steps {
		steps = append(steps, float64(s.Stores))
	}
	line := func(name string, color int, of func(s *Step) (float64, bool)) report.Line {
		l := report.Line{Name: name, Color: color, X: []float64{}, Y: []float64{}}
		for i := range r.Steps {
			if v, ok := of(&r.Steps[i]); ok {
				l.X, l.Y = append(l.X, float64(r.Steps[i].Stores)), append(l.Y, v)
			}
		}
		return l
	}
	chart := func(title, label string, lines ...report.Line) report.Chart {
		return report.Chart{Title: title, Axis: report.Linear, XLabel: "store processes (0: one process does everything)", YLabel: label, Steps: steps, Lines: lines}
	}
	cpu := []report.Line{line("all servers", 0, func(s *Step) (float64, bool) { return s.CPUMillis, true })}
	for i, role := range roles[1:] {
		cpu = append(cpu, line(role, i+1, func(s *Step) (float64, bool) {
			v, ok := s.ByRole[role]
			return v, ok
		}))
	}
	always := func(of func(s *Step) float64) func(s *Step) (float64, bool) {
		return func(s *Step) (float64, bool) { return of(s), true }
	}
	return report.Document{
		Title:    "Processor time per transaction over more and more stores",
		Subtitle: "The brokerage modelled after TPC-E; all processes share one machine with the driver. What should stay flat is the processor time.",
		Sections: []report.Section{{Title: "Deployments", Tables: []report.Table{r.Table()}, Charts: []report.Chart{
			chart("Processor time per transaction", "CPU ms per transaction", cpu...),
			chart("Rate", "transactions/s", line("transactions/s", 0, always(func(s *Step) float64 { return s.TxPerS }))),
			chart("Processors", "cores in use", line("servers", 0, always(func(s *Step) float64 { return s.Cores })), line("driver", 1, always(func(s *Step) float64 { return s.DriverCores }))),
			chart("Response time of Trade-Result", "p90, milliseconds", line("p90", 0, always(func(s *Step) float64 { return s.TRP90 }))),
		}}},
	}
}
