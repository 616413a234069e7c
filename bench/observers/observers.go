package observers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/usage"
)

// Options say what is measured.
type Options struct {
	// URL and PID are percodb's; PID is a process or @FILE, as of usage.Options.
	URL, PID string
	// PostgresURL and PostgresPID are those of PostgreSQL; without the URL only percodb is measured.
	PostgresURL, PostgresPID string
	// WriterURL is another SQL process of percodb's cluster. If it is set, only the latency from changes there to their handling by a
	// client of URL is measured.
	WriterURL string
	// Duration of each measurement that has no end of its own; 5 s if 0.
	Duration time.Duration
	// Rows of each table; 250,000 if 0.
	Rows int
	// Pending is the number of changes that throughput with one change a transaction begins with; 20,000 if 0. Into counters it is five
	// times as many.
	Pending int
	// Backlog is the number of changes of Backlog; a million if 0. Less than 0: not measured.
	Backlog int
	// Rate is the number of changes per second of paced writers; 1,000 if 0.
	Rate int
	// Notice, if not nil, receives messages about the progress.
	Notice func(string)
}

// Result is what was measured. Its JSON is one object.
type Result struct {
	Started time.Time `json:"started"`
	Figures []Figure  `json:"figures"`
}

// Figure is a measured number on each server; 0 if it was not measured there.
type Figure struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	Postgres float64 `json:"postgres"`
	Percodb  float64 `json:"percodb"`
}

func (o *Options) fill() error {
	for _, f := range []struct {
		field *int
		value int
	}{{&o.Rows, 250_000}, {&o.Pending, 20_000}, {&o.Backlog, 1_000_000}, {&o.Rate, 1000}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if o.Duration == 0 {
		o.Duration = 5 * time.Second
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Rows < 2*batchPending*o.Pending || o.Pending < 1 || o.Rate < 1 || o.Duration < 0 {
		return fmt.Errorf("%d rows, %d pending, %d changes/s for %v: use at least ten rows for each pending change, and more than 0", o.Rows, o.Pending, o.Rate, o.Duration)
	}
	return nil
}

// Run measures everything.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	res := &Result{Started: time.Now()}
	if o.WriterURL != "" {
		return res, across(ctx, o, func(name, unit string, v float64) {
			res.put(name, unit, func(f *Figure) { f.Percodb = v })
		})
	}
	measure := func(kind handler, url, pid string, set func(*Figure, float64)) error {
		s, err := open(ctx, o, kind, url, pid)
		if err != nil {
			return err
		}
		defer s.close()
		return s.measureAll(ctx, func(name, unit string, v float64) {
			res.put(name, unit, func(f *Figure) { set(f, v) })
		})
	}
	if o.PostgresURL != "" {
		if err := measure(&postgres{}, o.PostgresURL, o.PostgresPID, func(f *Figure, v float64) { f.Postgres = v }); err != nil {
			return nil, fmt.Errorf("PostgreSQL: %w", err)
		}
	}
	return res, measure(&percodb{}, o.URL, o.PID, func(f *Figure, v float64) { f.Percodb = v })
}

// put sets one server's number of a figure, which is added if it is new.
func (r *Result) put(name, unit string, set func(*Figure)) {
	for i := range r.Figures {
		if r.Figures[i].Name == name {
			set(&r.Figures[i])
			return
		}
	}
	f := Figure{Name: name, Unit: unit}
	set(&f)
	r.Figures = append(r.Figures, f)
}

// single is what an observer does without options.
var single = work{batch: 1, workers: 8}

// measureAll measures one server.
func (s *server) measureAll(ctx context.Context, put func(name, unit string, v float64)) error {
	for _, measure := range []func() error{
		func() error { return s.latency(ctx, put) },
		func() error { return s.throughput(ctx, put, single) },
		func() error { return s.throughput(ctx, put, work{batch: 100, workers: 1, counters: true}) },
		func() error { return s.throughput(ctx, put, work{batch: 100, workers: 2, counters: true}) },
		func() error { return s.writer(ctx, put) },
		func() error { return s.handler.alone(ctx, s, put) },
	} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// latency measures the time from a change to the commit of its handling.
func (s *server) latency(ctx context.Context, put func(name, unit string, v float64)) error {
	s.o.Notice(s.handler.name() + ": latency")
	w := single
	if err := s.create(ctx, w); err != nil {
		return err
	}
	stop, err := s.handler.start(ctx, s, w)
	if err != nil {
		return err
	}
	_, err = s.write(ctx, s.o.Rate, s.o.Duration, 1, s.o.Rows)
	if err := errors.Join(err, s.handler.wait(ctx, s)); err != nil {
		return errors.Join(err, stop())
	}
	p50, p99, err := s.handler.latencies(ctx, s)
	put(fmt.Sprintf("latency at %d changes/s, p50", s.o.Rate), "ms", p50)
	put(fmt.Sprintf("latency at %d changes/s, p99", s.o.Rate), "ms", p99)
	return errors.Join(err, s.verify(ctx, w), stop())
}

// batchPending is how many times more changes are pending when they are handled in batches, so that both measurements take seconds.
const batchPending = 5

// throughput measures how fast pending changes are handled while writers make others.
func (s *server) throughput(ctx context.Context, put func(name, unit string, v float64), w work) error {
	s.o.Notice(fmt.Sprintf("%s: throughput, %s", s.handler.name(), w))
	if err := s.create(ctx, w); err != nil {
		return err
	}
	pending := s.o.Pending
	if w.counters {
		pending *= batchPending
	}
	if _, err := s.pool.Exec(ctx, "UPDATE observed SET v = v + 1 WHERE id <= $1", pending); err != nil {
		return err
	}
	writing, end := context.WithCancel(ctx)
	defer end()
	type written struct {
		n   int
		err error
	}
	done := make(chan written, 1)
	go func() {
		n, err := s.write(writing, s.o.Rate, time.Hour, pending+1, s.o.Rows)
		done <- written{n, err}
	}()
	begin := time.Now()
	stop, err := s.handler.start(ctx, s, w)
	if err != nil {
		return err
	}
	err = s.handler.wait(ctx, s)
	end()
	took, wrote := time.Since(begin), <-done
	put(fmt.Sprintf("changes handled, %s, %d changes/s beside", w, s.o.Rate), "/s", float64(pending+wrote.n)/took.Seconds())
	if err := errors.Join(err, wrote.err, s.handler.wait(ctx, s)); err != nil {
		return errors.Join(err, stop())
	}
	return errors.Join(s.verify(ctx, w), stop())
}

// writerTurns is how often each of the two tables is updated by turns. The first turn does not count.
const writerTurns = 11

// writer measures the server's CPU time of an UPDATE of an observed and of an unobserved table, while nothing handles the changes.
func (s *server) writer(ctx context.Context, put func(name, unit string, v float64)) error {
	s.o.Notice(s.handler.name() + ": CPU time of UPDATE")
	if err := s.create(ctx, single); err != nil {
		return err
	}
	meter, err := usage.Open(ctx, usage.Options{PIDs: []string{s.pid}})
	if err != nil {
		return err
	}
	defer meter.Close()
	var micros [2][]float64
	var quotients []float64
	for turn := range writerTurns {
		for i, table := range []string{"plain", "observed"} {
			before, err := meter.Read(ctx)
			if err != nil {
				return err
			}
			n, err := s.update(ctx, table, s.o.Duration/writerTurns)
			if err != nil {
				return err
			}
			after, err := meter.Read(ctx)
			if err != nil {
				return err
			}
			micros[i] = append(micros[i], after.Since(before).Server()*1e6/float64(n))
		}
		if turn == 0 {
			micros = [2][]float64{}
			continue
		}
		last := len(micros[0]) - 1
		quotients = append(quotients, micros[1][last]/micros[0][last])
	}
	put("CPU of UPDATE, unobserved", "µs", median(micros[0]))
	put("CPU of UPDATE, observed", "µs", median(micros[1]))
	put("CPU of UPDATE, observed ÷ unobserved", "", median(quotients))
	return nil
}

// Table returns the figures as a table.
func (r *Result) Table() report.Table {
	t := report.Table{Header: []string{"", "PostgreSQL", "percodb", "percodb ÷ PostgreSQL"}}
	for _, f := range r.Figures {
		row := []string{f.Name, "–", "–", ""}
		if f.Postgres != 0 {
			row[1] = format(f.Postgres, f.Unit)
		}
		if f.Percodb != 0 {
			row[2] = format(f.Percodb, f.Unit)
		}
		if f.Postgres != 0 && f.Percodb != 0 {
			row[3] = fmt.Sprintf("%.2f", f.Percodb/f.Postgres)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func format(v float64, unit string) string {
	text := fmt.Sprintf("%.2f", v)
	if v >= 100 {
		text = fmt.Sprintf("%.0f", v)
	}
	if unit == "" || unit[0] == '/' {
		return text + unit
	}
	return text + " " + unit
}
