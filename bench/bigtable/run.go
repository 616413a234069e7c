// Package bigtable measures percodb on Bigtable's emulator: requests of statements and transactions, the paper's figure 8, the processor time of
// one to four SQL processes, and an outage of one of them.
//
// The emulator is a process of its own on this machine. Counts and ratios say something about Google's service, rates do not.
package bigtable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/internal/process"
)

// Options configure a run.
type Options struct {
	Binary  string        // of percodb
	Ops     int           // operations of each count; 0: 50
	TurnFor time.Duration // of each turn of figure 8 and of each number of processes; 0: 5 s
	Parts   []string      // of Parts; none: all
	Notice  func(string)
}

func (o *Options) fill() {
	if o.Ops <= 0 {
		o.Ops = 50
	}
	if o.TurnFor <= 0 {
		o.TurnFor = 5 * time.Second
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
}

// Result are the figures of a run.
type Result struct {
	Requests  []Requests  `json:"requests"`
	Figure8   []Ratio     `json:"figure_8"`
	Processes []Processes `json:"processes"`
	Rest      []Rest      `json:"rest"`
	Outages   []Outage    `json:"outages,omitempty"`
}

// The parts of a run.
const (
	PartRequests  = "requests"
	PartBrokerage = "brokerage"
	PartFigure8   = "figure8"
	PartProcesses = "processes"
	PartOutage    = "outage"
)

// Parts are all parts, in their order.
var Parts = []string{PartRequests, PartBrokerage, PartFigure8, PartProcesses, PartOutage}

// Run measures.
func Run(ctx context.Context, o Options) (*Result, error) {
	o.fill()
	res := &Result{}
	for _, part := range []struct {
		name string
		do   func(context.Context, *deployment) error
		sqls int
	}{
		{PartRequests, func(ctx context.Context, d *deployment) (err error) {
			res.Requests, err = o.requests(ctx, d)
			return err
		}, 2},
		{PartBrokerage, func(ctx context.Context, d *deployment) error {
			all, err := o.brokerage(ctx, d)
			res.Requests = append(res.Requests, all...)
			return err
		}, 2},
		{PartFigure8, func(ctx context.Context, d *deployment) (err error) { res.Figure8, err = o.figure8(ctx, d); return err }, 0},
		{PartProcesses, func(ctx context.Context, d *deployment) (err error) {
			res.Processes, res.Rest, err = o.processes(ctx, d)
			return err
		}, 5},
		{PartOutage, func(ctx context.Context, d *deployment) (err error) {
			res.Outages, err = o.outages(ctx, d)
			return err
		}, 4},
	} {
		if len(o.Parts) > 0 && !slices.Contains(o.Parts, part.name) {
			continue
		}
		o.Notice(part.name)
		d, err := deploy(ctx, o.Binary, part.sqls)
		if err == nil {
			err = part.do(ctx, d)
		}
		if d != nil {
			err = errors.Join(err, d.stop())
		}
		if err != nil {
			return res, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return res, nil
}

// deployment is an emulator with SQL processes over it. The first one is the coordinator.
type deployment struct {
	emulator *process.Process
	addr     string
	sqls     []*sqlProcess
}

// sqlProcess is a SQL process.
type sqlProcess struct {
	*process.Process
	addr, admin string
}

const startTimeout = time.Minute

func deploy(ctx context.Context, binary string, sqls int) (*deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	d := &deployment{}
	var err error
	if d.emulator, err = process.Start(binary, nil, "bigtable-emulator", "--listen", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if d.addr, err = d.emulator.AwaitReady(ctx); err != nil {
		return d, err
	}
	for range sqls {
		s := &sqlProcess{}
		if s.admin, err = process.FreeAddr(); err != nil {
			return d, err
		}
		s.Process, err = process.Start(binary, nil, "start", "--engine", "bigtable", "--project", "p", "--instance", "i", "--emulator", d.addr,
			"--listen", "127.0.0.1:0", "--admin-listen", s.admin)
		if err != nil {
			return d, err
		}
		d.sqls = append(d.sqls, s)
		if s.addr, err = s.AwaitReady(ctx); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (d *deployment) stop() (err error) {
	for _, s := range d.sqls {
		if !s.HasExited() {
			err = errors.Join(err, s.End(syscall.SIGTERM))
		}
	}
	d.emulator.Kill() // It has nothing to save.
	return err
}

func (s *sqlProcess) url() string { return "postgres://postgres@" + s.addr + "/percodb" }

func (s *sqlProcess) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, s.url())
}

// counters returns the counters of a process whose names begin with percodb_bigtable_, by name and labels.
func (s *sqlProcess) counters(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	found := map[string]float64{}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		var v float64
		if _, err := fmt.Sscan(value, &v); err == nil && strings.HasPrefix(name, "percodb_bigtable_") {
			found[name] = v
		}
	}
	return found, lines.Err()
}

func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%.80s: %w", sql, err)
		}
	}
	return nil
}

// Tables returns the figures as tables, of the parts that were measured.
func (r *Result) Tables() (tables []report.Table) {
	if len(r.Requests) > 0 {
		t := report.Table{Title: "requests to Bigtable", Header: []string{"what", "ReadRows", "CheckAndMutateRow", "MutateRow(s)", "rows read", "conditions that failed", "rows ahead", "hits"}}
		for _, q := range r.Requests {
			t.Rows = append(t.Rows, []string{q.What, fmt.Sprintf("%.2f", q.Reads), fmt.Sprintf("%.2f", q.Conditional), fmt.Sprintf("%.2f", q.Unconditional),
				fmt.Sprintf("%.2f", q.Rows), fmt.Sprintf("%.2f", q.Failed), fmt.Sprintf("%.2f", q.Ahead), fmt.Sprintf("%.2f", q.Hits)})
		}
		tables = append(tables, t)
	}
	if len(r.Figure8) > 0 {
		t := report.Table{Title: "figure 8 of the paper", Header: []string{"operation", "raw/s", "percodb/s", "ratio", "paper"}}
		for _, f := range r.Figure8 {
			t.Rows = append(t.Rows, []string{f.Operation, fmt.Sprintf("%.0f", f.Raw), fmt.Sprintf("%.0f", f.Percodb), fmt.Sprintf("%.2f", f.Percodb/f.Raw), fmt.Sprintf("%.2f", f.Paper)})
		}
		tables = append(tables, t)
	}
	if len(r.Processes) > 0 {
		t := report.Table{Title: "SQL processes over one emulator", Header: []string{"processes", "transactions", "CPU of percodb, µs a transaction", "least", "most", "sleeps of threads a transaction"}}
		for _, p := range r.Processes {
			t.Rows = append(t.Rows, []string{fmt.Sprint(p.Number), fmt.Sprint(p.Transactions), fmt.Sprintf("%.0f", p.CPUMicros), fmt.Sprintf("%.0f", p.Least), fmt.Sprintf("%.0f", p.Most), fmt.Sprintf("%.1f", p.Switches)})
		}
		tables = append(tables, t)
		t = report.Table{Title: "processes at rest", Header: []string{"process", "CPU, ms/s", "requests/s", "rows read/s"}}
		for _, q := range r.Rest {
			t.Rows = append(t.Rows, []string{q.What, fmt.Sprintf("%.1f", q.CPUMillis), fmt.Sprintf("%.1f", q.Requests), fmt.Sprintf("%.1f", q.Rows)})
		}
		tables = append(tables, t)
	}
	if len(r.Outages) > 0 {
		t := report.Table{Title: "kill -9 of a SQL process that holds locks", Header: []string{"killed", "its lock was taken after", "statements of the others meanwhile", "their longest"}}
		for _, o := range r.Outages {
			t.Rows = append(t.Rows, []string{o.Killed, o.Released.Round(time.Millisecond).String(), fmt.Sprint(o.Others), o.Longest.Round(time.Millisecond).String()})
		}
		tables = append(tables, t)
	}
	return tables
}
