package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/percodb/percodb/internal/process"
)

// options are the flags.
type options struct {
	duration time.Duration
	round    time.Duration
	cluster  bool
	tls      bool // between the processes of the cluster
	bigtable bool // over Bigtable's emulator
	lists    bool // with bigtable: only list-append histories, and faults of the network alone
	sql      int  // with bigtable: the number of SQL processes; 0: tableProcesses
	seed     uint64
	binary   string // "": built from the sources
	keep     bool
	log      io.Writer // events, in lines
}

func main() {
	var o options
	verbose := flag.Bool("v", false, "tell of every fault")
	flag.DurationVar(&o.duration, "duration", 30*time.Second, "how long to run")
	flag.DurationVar(&o.round, "round", 20*time.Second, "how long a round is")
	flag.BoolVar(&o.cluster, "cluster", false, "an oracle, three stores and two SQL processes instead of one process")
	flag.BoolVar(&o.tls, "tls", false, "with -cluster: the processes speak TLS with each other")
	flag.BoolVar(&o.bigtable, "bigtable", false, "SQL processes over Bigtable's emulator, with a proxy between them that loses, delays and repeats requests")
	flag.BoolVar(&o.lists, "lists", false, "with -bigtable: only histories of lists at the three isolation levels; no process is killed")
	flag.IntVar(&o.sql, "sql", tableProcesses, "with -bigtable: the number of SQL processes")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64()%1_000_000, "what clients and faults choose by")
	flag.StringVar(&o.binary, "percodb", "", "the percodb binary (default: built from the sources here)")
	flag.BoolVar(&o.keep, "keep", false, "keep data and logs even if nothing was found")
	flag.Parse()
	o.log = io.Discard
	if *verbose {
		o.log = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Printf("seed %d\n", o.seed)
	sum, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kill:", err)
		os.Exit(1)
	}
	sum.print(os.Stdout)
	if !sum.clean() {
		os.Exit(1)
	}
}

// summary is the result of a run.
type summary struct {
	seed         uint64
	kills, other int          // processes killed; paused and cut off
	coordinators int          // of the killed processes over Bigtable
	transactions int          // acknowledged
	deliveries   atomic.Int64 // changes that observers handled
	large        phases
	lists        *[len(listLevels)]outcomes // of a run of lists alone, by level; nil: it is not one
	lost, wrong  []finding
	requests     *requestFaults // over Bigtable
	kept         string         // the path of data and logs, if they were kept
}

// finding is a violation.
type finding struct{ what, story string }

func (s *summary) clean() bool { return len(s.lost)+len(s.wrong) == 0 }

func (s *summary) print(w io.Writer) {
	for _, f := range append(s.lost, s.wrong...) {
		fmt.Fprintf(w, "%s\n%s\n", f.what, f.story)
	}
	if s.requests != nil {
		fmt.Fprintln(w, s.requests)
	}
	if s.kept != "" {
		fmt.Fprintf(w, "seed %d; data and logs are in %s\n", s.seed, s.kept)
	}
	if s.other > 0 {
		fmt.Fprintf(w, "%d pauses and partitions\n", s.other)
	}
	if s.lists != nil {
		for i, level := range listLevels {
			fmt.Fprintf(w, "%s: %s\n", level, &s.lists[i])
		}
	} else {
		fmt.Fprintf(w, "observers handled %d changes\n", s.deliveries.Load())
		fmt.Fprintln(w, s.large.String())
	}
	if s.coordinators > 0 {
		fmt.Fprintf(w, "%d kills met the coordinator\n", s.coordinators)
	}
	fmt.Fprintf(w, "%d kills, %d transactions, %d lost, %d wrong\n", s.kills, s.transactions, len(s.lost), len(s.wrong))
}

// run runs rounds until the time is over or there is a finding.
func run(ctx context.Context, o options) (sum *summary, err error) {
	dir, err := os.MkdirTemp("", "percodb-kill-")
	if err != nil {
		return nil, err
	}
	sum = &summary{seed: o.seed}
	if o.lists {
		sum.lists = new([len(listLevels)]outcomes)
	}
	defer func() {
		if o.keep || err != nil || !sum.clean() {
			sum.kept = dir
			if err != nil {
				err = fmt.Errorf("%w (data and logs are in %s)", err, dir)
			}
			return
		}
		_ = os.RemoveAll(dir)
	}()
	if o.binary == "" {
		if o.binary, err = process.Build(ctx, dir); err != nil {
			return sum, err
		}
	}
	d, err := deploy(o.binary, dir, o)
	if err != nil {
		return sum, err
	}
	defer d.killAll()
	if d.table != nil {
		sum.requests = &d.table.faults
	}
	bar := newBar(o.duration)
	defer bar.stop()
	begin := time.Now()
	for n := 0; ctx.Err() == nil && sum.clean(); n++ {
		left := o.duration - time.Since(begin)
		if left < time.Second && n > 0 {
			break
		}
		r := &round{number: n, deployment: d, sum: sum, log: o.log, rand: rand.New(rand.NewPCG(o.seed, uint64(n)))}
		if err := r.run(ctx, min(o.round, left)); err != nil {
			return sum, fmt.Errorf("round %d: %w", n, err)
		}
		bar.describe(sum)
	}
	return sum, nil
}

// bar shows the elapsed part of the time on a terminal.
type bar struct {
	bar  *progressbar.ProgressBar
	done chan struct{}
}

func newBar(total time.Duration) *bar {
	b := &bar{done: make(chan struct{})}
	if info, err := os.Stderr.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return b
	}
	b.bar = progressbar.NewOptions64(int64(total/time.Second), progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription("round 0"))
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_ = b.bar.Add(1)
			case <-b.done:
				return
			}
		}
	}()
	return b
}

func (b *bar) describe(sum *summary) {
	if b.bar != nil {
		b.bar.Describe(fmt.Sprintf("%d kills, %d transactions", sum.kills, sum.transactions))
	}
}

func (b *bar) stop() {
	close(b.done)
	if b.bar != nil {
		_ = b.bar.Clear()
	}
}
