package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/percodb/percodb/bench/scale"
	"github.com/percodb/percodb/bench/tpce/report"
)

// outputFlags are the files for the figures, in addition to standard output.
type outputFlags struct{ json, html string }

func (f *outputFlags) add(flags *pflag.FlagSet, page bool) {
	flags.StringVar(&f.json, "json", "", "file for the figures as JSON")
	if page {
		flags.StringVar(&f.html, "html", "", "file for the figures and their charts as a page")
	}
}

// write prints the table, and writes the requested files.
func (f *outputFlags) write(out io.Writer, result any, table report.Table, page func() report.Document) error {
	if err := table.WriteText(out); err != nil {
		return err
	}
	if f.json != "" {
		text, err := json.MarshalIndent(result, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.json, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if f.html != "" {
		return report.WriteDocumentFile(f.html, page())
	}
	return nil
}

// parsePace reads a pace: without a pause, or how many times the nominal one.
func parsePace(text string) (unpaced bool, factor float64, err error) {
	bad := fmt.Errorf("--pace %s: use nominal, nominal:FACTOR or max", text)
	pace, times, given := strings.Cut(text, ":")
	switch {
	case pace == "max" && !given:
		return true, 0, nil
	case pace == "nominal" && !given:
		return false, 1, nil
	case pace != "nominal":
		return false, 0, bad
	}
	if factor, err = strconv.ParseFloat(times, 64); err != nil || !(factor > 0) {
		return false, 0, bad
	}
	return false, factor, nil
}

// noticeTo prints progress messages to standard error.
func noticeTo(err io.Writer) func(string) {
	return func(text string) { fmt.Fprintln(err, text) }
}

func benchKVCommand() *cobra.Command {
	var o scale.KVOptions
	var f outputFlags
	cmd := &cobra.Command{
		Use:   "kv",
		Short: "Reads and writes of single rows: percodb's layers against a bare store",
		Long: `Measure reads and durable writes of single rows of 100 bytes, in turns: a bare Pebble (raw), the store (kv), and
transactions above it (get reads the latest value, snapshot reads as of a timestamp, txn writes), in this process and over
gRPC on loopback. It is the Percolator paper's figure 8, which has reads at 0.94 of the bare store's rate, and writes
at 0.23. Processor time is that of clients and servers together. Takes about a minute.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tuneRuntime(4 << 30)
			o.Notice = noticeTo(cmd.ErrOrStderr())
			res, err := scale.KV(cmd.Context(), o)
			if err != nil {
				return err
			}
			return f.write(cmd.OutOrStdout(), res, res.Table(), nil)
		},
	}
	f.add(cmd.Flags(), false)
	cmd.Flags().Uint64Var(&o.Rows, "rows", 0, "rows of each store (default 1000000)")
	cmd.Flags().IntVar(&o.Turns, "turns", 0, "turns of each way (default 16)")
	cmd.Flags().DurationVar(&o.TurnFor, "turn", 0, "about how long a turn takes (default 250ms)")
	cmd.Flags().IntVar(&o.Writers, "writers", 0, "writers at once (default 64)")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "directory on the disk to measure; what is made there is removed")
	return cmd
}

func benchTSOCommand() *cobra.Command {
	var o scale.TSOOptions
	var f outputFlags
	cmd := &cobra.Command{
		Use:   "tso",
		Short: "Timestamps per second, and what one costs",
		Long: `Measure how many timestamps callers get from an oracle in this process, and over gRPC from a process of its own,
which is started for it, or which runs already (--join). A caller asks for one timestamp at a time; those of callers who
wait together travel together.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tuneRuntime(4 << 30)
			var err error
			if o.Binary, err = os.Executable(); err != nil {
				return err
			}
			o.Notice = noticeTo(cmd.ErrOrStderr())
			res, err := scale.TSO(cmd.Context(), o)
			if err != nil {
				return err
			}
			return f.write(cmd.OutOrStdout(), res, res.Table(), res.Document)
		},
	}
	f.add(cmd.Flags(), true)
	flags := cmd.Flags()
	flags.IntSliceVar(&o.Callers, "callers", nil, "callers at once, over gRPC (default 1,4,16,64,256,1024)")
	flags.DurationVar(&o.Duration, "duration", 0, "time of each measurement (default 2s)")
	flags.StringVar(&o.Join, "join", "", "HOST:PORT of a tso process that runs already")
	flags.StringSliceVar(&o.Usage.PIDs, "server-pids", nil, "with --join: its process, for its processor time")
	flags.StringSliceVar(&o.Usage.MetricsURLs, "server-metrics-url", nil, "with --join: its Prometheus endpoint, in place of --server-pids")
	flags.StringVar(&o.Dir, "dir", "", "directory on the disk to measure; what is made there is removed")
	return cmd
}

// stepsFlags are the flags of bench scale.
type stepsFlags struct {
	scale.StepsOptions
	data scaleFlags
	pace string
}

func (f *stepsFlags) add(flags *pflag.FlagSet) {
	f.data.add(flags)
	f.data.profile, flags.Lookup("profile").DefValue = "tiny", "tiny" // it is loaded into each deployment
	flags.IntSliceVar(&f.Stores, "stores", nil, "how many stores each deployment has; 0 is one process that does everything (default 0,1,2,4)")
	flags.IntVar(&f.SQLs, "sqls", 0, "SQL processes of each (default 1)")
	flags.IntVar(&f.CacheMB, "cache-mb", 0, "block cache of each store in MiB (default 256, so that several find room; a server's own default is larger)")
	flags.IntVar(&f.Rounds, "rounds", 0, "how often each is measured, in turns (default 1)")
	flags.StringVar(&f.pace, "pace", "nominal:5", "nominal, nominal:FACTOR or max: customers come by the clock, or without a pause")
	flags.BoolVar(&f.Run.Transactions.Pipeline, "pipeline", true, "send statements that do not need each other's results together")
	flags.IntVar(&f.Run.Workers, "workers", 0, "connections of customers (default 4 for each processor)")
	flags.DurationVar(&f.Run.Ramp, "ramp", 10*time.Second, "time before the measured time")
	flags.DurationVar(&f.Run.Duration, "duration", time.Minute, "the measured time")
	flags.DurationVar(&f.Run.PricePeriod, "price-period", 60*time.Second, "time from one lowest price of a security to the next")
	flags.StringVar(&f.Dir, "dir", "", "directory on the disk to measure; what is made there is removed")
	flags.BoolVar(&f.Keep, "keep", false, "keep data and logs")
}

// complete turns flags into options.
func (f *stepsFlags) complete(flags *pflag.FlagSet) error {
	var err error
	if f.Scale, err = f.data.scale(flags); err != nil {
		return err
	}
	if f.Run.Max, f.Run.Factor, err = parsePace(f.pace); err != nil {
		return err
	}
	f.Run.Settings = settingsOf(flags)
	return nil
}

func benchScaleCommand() *cobra.Command {
	var s stepsFlags
	var f outputFlags
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "The brokerage over more and more store processes: processor time per transaction",
		Long: `Start percodb from this program as one process, and as an oracle, SQL processes and 1, 2, 4 … stores, all on this
machine; load the brokerage of bench tpce into each, run it, and measure the processor time per transaction. It is the
shape of the Percolator paper's figure 9: what should stay flat is the processor time per transaction. All deployments
get the same load, by the clock (--pace), because the busier a server is, the more of its work transactions share.`,
		Example: `  percodb bench scale --stores 0,1,2,4 --duration 1m --html scale.html`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := s.complete(cmd.Flags())
			if err != nil {
				return err
			}
			if s.Binary, err = os.Executable(); err != nil {
				return err
			}
			bar, notice := newLoadBar(), noticeTo(cmd.ErrOrStderr())
			defer bar.end()
			s.Progress = bar
			s.Notice = func(text string) {
				bar.end()
				notice(text)
			}
			s.Run.Notice = s.Notice
			res, err := scale.Steps(cmd.Context(), s.StepsOptions)
			if err != nil {
				if cmd.Context().Err() != nil {
					return errors.New("interrupted: there are no figures")
				}
				return err
			}
			return f.write(cmd.OutOrStdout(), res, res.Table(), res.Document)
		},
	}
	f.add(cmd.Flags(), true)
	s.add(cmd.Flags())
	return cmd
}
