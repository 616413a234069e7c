package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/percodb/percodb/bench/tpce/check"
	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/run"
	"github.com/percodb/percodb/bench/tpce/txn"
	"github.com/percodb/percodb/internal/plural"
)

// runFlags are the flags of run that are not a field of its options.
type runFlags struct {
	run.Options
	pace, arrivals, mw, lookup, mfTxn, mix, instance string
	json, html, hist                                 string
	search, check, probe                             bool
}

func tpceRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run --url URL [flags]",
		Short: "Let customers and the market act on the database, and measure",
		Long: `Let customers and the market act on the database for --ramp and then --duration, and measure the latter.
Ctrl-C ends the run early, with a result. A server that goes away is waited for (--outage).`,
		Example: `  percodb bench tpce run --url postgres://postgres@127.0.0.1:5433/percodb
  percodb bench tpce run --ramp 10s --duration 1m --price-period 20s --pace max --check --journal ./journal`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.probe {
				return probeDialect(cmd.Context(), cmd.OutOrStdout(), f.URLs[0])
			}
			if err := f.complete(cmd.Flags()); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *runFlags) add(flags *pflag.FlagSet) {
	urlFlag(flags, &f.URLs)
	set := &f.Transactions
	flags.Int64Var(&f.ActiveCustomers, "active-customers", 0, "how many of the customers act, a multiple of 1000 (default all)")
	flags.Uint64Var(&f.Seed, "run-seed", 1, "what customers ask for follows from this number and the run's")
	flags.StringVar(&f.pace, "pace", "nominal", "nominal, nominal:FACTOR or max: customers come by the clock, or without a pause")
	flags.BoolVar(&f.search, "search", false, "run again and again, to find the fastest pace that is valid")
	flags.StringVar(&f.arrivals, "arrivals", "poisson", "poisson or uniform: at random, or evenly spaced")
	flags.IntVar(&f.Workers, "workers", 4*runtime.NumCPU(), "connections of customers")
	flags.IntVar(&f.MEEConns, "mee-conns", 16, "connections of the market")
	flags.IntVar(&set.MaxRetries, "max-retries", 50, "how often a transaction is repeated after conflicts")
	flags.DurationVar(&set.Outage, "outage", time.Minute, "how long to wait for a server that is away")
	flags.DurationVar(&f.Ramp, "ramp", 15*time.Minute, "time before the measured time")
	flags.DurationVar(&f.Duration, "duration", 30*time.Minute, "the measured time")
	flags.DurationVar(&f.Interval, "interval", 10*time.Second, "time from one line to the next")
	flags.StringVar((*string)(&set.Isolation), "isolation", string(txn.Snapshot), "snapshot, spec or serializable")
	flags.BoolVar(&set.ForUpdate, "for-update", false, "Trade-Result locks the account that it reads")
	flags.BoolVar(&set.Pipeline, "pipeline", true, "send statements that do not need each other's results together")
	flags.BoolVar(&set.MergeTaxUpdate, "merge-tax-update", false, "Trade-Result writes a trade's tax with the rest of its row")
	flags.StringVar(&f.mw, "mw", "join", "join or loop: Market-Watch asks once, or for every security")
	flags.StringVar(&f.lookup, "lookup", "batch", "batch or loop: Trade-Lookup asks for twenty trades at once, or for each")
	flags.StringVar(&f.mfTxn, "mf-txn", "ticker", "ticker or batch: a Market-Feed is twenty transactions, or one")
	flags.StringVar((*string)(&set.BrokerWrites), "broker-writes", string(txn.Inline), "inline, side-table or omit: how Trade-Result counts what brokers sold")
	flags.DurationVar(&f.AggregateEvery, "broker-agg-interval", 10*time.Second, "how often a side table is added to the brokers")
	flags.StringVar((*string)(&f.IDs), "trade-ids", string(run.Block), "block, scatter or sequence: leased in blocks, in blocks far apart, or the server's")
	flags.DurationVar(&f.PricePeriod, "price-period", 15*time.Minute, "time from one lowest price of a security to the next")
	flags.DurationVar(&f.MaintainEvery, "maintain-every", time.Minute, "time from one Data-Maintenance to the next")
	flags.StringVar(&f.mix, "mix", "spec", "spec, TR-only (nothing but orders), or weights: trade-order=101,trade-status=190")
	flags.StringVar(&f.Journal, "journal", "", "directory for what the server acknowledged, for check --journal")
	flags.StringVar(&f.json, "json", "", "file for the result as JSON, histograms included")
	flags.StringVar(&f.html, "html", "", "file for the result as a page")
	flags.StringVar(&f.hist, "hist", "", "file for the response times as an HdrHistogram log")
	flags.StringVar(&f.Label, "label", "", "name of the result in tables and pages")
	flags.StringSliceVar(&f.Usage.PIDs, "server-pids", nil, "server processes whose processor time counts, their descendants included: numbers, or @FILE with one")
	flags.StringSliceVar(&f.Usage.Cgroups, "server-cgroup", nil, "control groups of servers, in place of --server-pids")
	flags.StringSliceVar(&f.Usage.MetricsURLs, "server-metrics-url", nil, "Prometheus endpoints of servers, in place of --server-pids")
	flags.StringVar(&f.instance, "instance", "0/1", "I/N: this is process I, from 0, of N that share the load")
	flags.Int64Var(&f.PartitionPercent, "partition-percent", 50, "with --instance: share of the customers that are the process's own")
	flags.BoolVar(&f.SkipCleanup, "skip-cleanup", false, "leave open what an earlier run left open")
	flags.BoolVar(&f.check, "check", false, "check the database after the run, the journal with it")
	flags.BoolVar(&f.probe, "dialect-probe", false, "run every statement once, roll it back, and list those that the server rejects")
}

// choice returns whether a flag has the second of two values.
func choice(flag, value, first, second string) (bool, error) {
	if value != first && value != second {
		return false, fmt.Errorf("--%s %s: use %s or %s", flag, value, first, second)
	}
	return value == second, nil
}

// complete turns flags into options.
func (f *runFlags) complete(flags *pflag.FlagSet) error {
	set := &f.Transactions
	for _, c := range []struct {
		to                         *bool
		flag, value, first, second string
	}{
		{&f.Uniform, "arrivals", f.arrivals, "poisson", "uniform"},
		{&set.MarketWatchLoop, "mw", f.mw, "join", "loop"},
		{&set.LookupLoop, "lookup", f.lookup, "batch", "loop"},
		{&set.FeedBatch, "mf-txn", f.mfTxn, "ticker", "batch"},
	} {
		var err error
		if *c.to, err = choice(c.flag, c.value, c.first, c.second); err != nil {
			return err
		}
	}
	var err error
	if f.Max, f.Factor, err = parsePace(f.pace); err != nil {
		return err
	}
	if n, err := fmt.Sscanf(f.instance+" ", "%d/%d ", &f.Instance, &f.Instances); n != 2 || err != nil || f.Instances < 1 {
		return fmt.Errorf("--instance %s: use I/N, as in 0/4", f.instance)
	}
	if f.Weights, err = parseMix(f.mix); err != nil {
		return err
	}
	f.Settings = settingsOf(flags)
	return nil
}

// settingsOf returns every flag by name, for results.
func settingsOf(flags *pflag.FlagSet) map[string]string {
	settings := map[string]string{}
	flags.VisitAll(func(flag *pflag.Flag) {
		settings[flag.Name] = flag.Value.String()
	})
	delete(settings, "help")
	delete(settings, "url") // the result has them without their passwords
	return settings
}

// parseMix parses the weights of customers' transactions; none means those of the specification.
func parseMix(text string) ([mix.Kinds]int, error) {
	var weights [mix.Kinds]int
	switch text {
	case "spec":
		return weights, nil
	case "TR-only":
		weights[mix.TradeOrder] = 1
		return weights, nil
	}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		weight, err := strconv.Atoi(value)
		kind := mix.Kinds
		for k := range mix.Kinds {
			if mix.Of(mix.Kind(k)).Flag == name {
				kind = k
			}
		}
		if err != nil || weight < 0 || kind == mix.Kinds {
			return weights, fmt.Errorf("--mix %s: use spec, TR-only, or weights by name, as in trade-order=101,trade-status=190", text)
		}
		weights[kind] = weight
	}
	if weights == [mix.Kinds]int{} {
		return weights, fmt.Errorf("--mix %s: customers would ask for nothing", text)
	}
	return weights, nil
}

// run runs the benchmark, prints the result, and checks the database if requested.
func (f *runFlags) run(ctx context.Context, out, messages io.Writer) error {
	f.Notice = func(text string) { fmt.Fprintln(messages, text) }
	f.Live = func(p report.Point, elapsed time.Duration, nominal float64) {
		fmt.Fprintln(messages, p.Line(elapsed, nominal))
	}
	ending := context.AfterFunc(ctx, func() {
		fmt.Fprintln(messages, "percodb: ending the run; a second signal stops at once")
		stopAtSecondSignal()
	})
	defer ending()
	result, err := f.measured(ctx, messages)
	if result == nil {
		return err
	}
	// A run that was interrupted has a result, and a database to check, all the same.
	after := context.WithoutCancel(ctx)
	clean := true
	if f.check && err == nil {
		var found check.Report
		found, err = checked(after, f.URLs[0], f.Journal, out)
		if len(found.Results) > 0 {
			clean = found.Violations() == 0
			var marshaled error
			result.Checker, marshaled = json.Marshal(found)
			err = errors.Join(err, marshaled)
		}
	}
	err = errors.Join(err, result.WriteTable(out), f.write(result))
	if err == nil && !clean {
		return &silentError{}
	}
	return err
}

// measured returns the result of the run, or of the search.
func (f *runFlags) measured(ctx context.Context, messages io.Writer) (*report.Result, error) {
	if f.search {
		return run.Search(ctx, f.Options, func(factor float64, r *report.Result) {
			verdict := "valid"
			if !r.Valid {
				verdict = "not valid: " + strings.Join(r.Reasons, "; ")
			}
			fmt.Fprintf(messages, "pace %.3f times nominal: %.2f TR/s, %s\n", factor, r.MeasuredTR, verdict)
		})
	}
	return run.Run(ctx, f.Options)
}

// write writes the requested files.
func (f *runFlags) write(r *report.Result) error {
	var err error
	if f.json != "" {
		err = r.WriteFile(f.json)
	}
	if f.html != "" {
		err = errors.Join(err, report.WritePageFile(f.html, r))
	}
	if f.hist != "" {
		err = errors.Join(err, r.WriteHistogramFile(f.hist))
	}
	return err
}

// checked checks the database, and prints the findings.
func checked(ctx context.Context, url, journal string, out io.Writer) (check.Report, error) {
	found, err := check.Run(ctx, check.Options{URL: url, Journal: journal, Done: func(r check.Result) { printResult(out, r) }})
	if len(found.Results) > 0 {
		fmt.Fprintf(out, "%s in %.1f s\n\n", plural.Count(found.Violations(), "violation"), found.Seconds)
	}
	return found, err
}

// probeDialect lists the statements of the transactions that the server rejects.
func probeDialect(ctx context.Context, out io.Writer, url string) error {
	rejected, err := txn.Probe(ctx, url)
	if err != nil {
		return err
	}
	for _, r := range rejected {
		fmt.Fprintf(out, "%s: %v\n  %s\n", r.Name, r.Err, strings.Join(strings.Fields(r.SQL), " "))
	}
	fmt.Fprintf(out, "%s rejected\n", plural.Count(len(rejected), "statement"))
	if len(rejected) > 0 {
		return &silentError{}
	}
	return nil
}

func tpceCleanupCommand() *cobra.Command {
	var urls []string
	cmd := &cobra.Command{
		Use:   "cleanup --url URL",
		Short: "Cancel what earlier runs left open",
		Long: `Cancel the trades that earlier runs left pending or submitted, as run does before it begins. After a crash,
check the database first.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := run.CleanUp(cmd.Context(), urls[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d pending and %d submitted trades canceled.\n", done.Pending, done.Submitted)
			return nil
		},
	}
	urlFlag(cmd.Flags(), &urls)
	return cmd
}
