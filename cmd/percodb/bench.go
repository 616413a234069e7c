package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/percodb/percodb/bench/tpce/check"
	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/bench/tpce/schema"
	"github.com/percodb/percodb/internal/plural"
)

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Workloads for any PostgreSQL-wire server, and measurements of percodb's parts"}
	cmd.AddCommand(tpceCommand(), benchKVCommand(), benchTSOCommand(), benchScaleCommand(), benchObserversCommand(), benchCrawlCommand(), benchBigtableCommand())
	return cmd
}

func tpceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tpce",
		Short: "A brokerage modelled after TPC-E",
		Long: `A brokerage modelled after TPC-E: customers, accounts, securities and trades in 33 tables, with data of
percodb's own making. It is not TPC-E, and its results are not comparable with published ones.`,
	}
	cmd.AddCommand(tpceInitCommand(), tpceRunCommand(), tpceCleanupCommand(), tpceCheckCommand(), tpceMergeCommand(), tpceCompareCommand(), tpceDropCommand())
	return cmd
}

// urlFlag adds the flag with the servers' URLs.
func urlFlag(flags *pflag.FlagSet, urls *[]string) {
	flags.StringArrayVar(urls, "url", []string{"postgres://postgres@127.0.0.1:5433/percodb"}, "a server; given several times, connections go to one after the other")
}

// scaleFlags determine the amount of data: a profile, and changes to it.
type scaleFlags struct {
	profile string
	gen.Scale
}

func (f *scaleFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.profile, "profile", "dev", fmt.Sprintf("a scale with a name: %v; the flags below change it", gen.Profiles()))
	flags.Int64Var(&f.Customers, "customers", 0, "customers, a multiple of 1000")
	flags.Int64Var(&f.TradeDays, "trade-days", 0, "days of trades before the run, 57.6 trades a customer each")
	flags.Int64Var(&f.TradesPerCustomer, "trades-per-customer", 0, "trades of a customer before the run, in place of --trade-days")
	flags.Int64Var(&f.MarketDays, "market-days", 0, "days of daily_market")
	flags.Int64Var(&f.NewsBytes, "news-bytes", 0, "length of a news item")
	flags.Int64Var(&f.Seed, "seed", 1, "the data follow from this number and the scale")
	flags.BoolVar(&f.ShortHistory, "allow-short-history", false, "allow for less than 5 trade days")
}

// scale returns the profile with the requested changes.
func (f *scaleFlags) scale(flags *pflag.FlagSet) (gen.Scale, error) {
	s, err := gen.Profile(f.profile)
	if err != nil {
		return s, err
	}
	for name, field := range map[string][2]*int64{
		"customers": {&s.Customers, &f.Customers}, "trade-days": {&s.TradeDays, &f.TradeDays},
		"trades-per-customer": {&s.TradesPerCustomer, &f.TradesPerCustomer}, "market-days": {&s.MarketDays, &f.MarketDays},
		"news-bytes": {&s.NewsBytes, &f.NewsBytes}, "seed": {&s.Seed, &f.Seed},
	} {
		if flags.Changed(name) {
			*field[0] = *field[1]
		}
	}
	s.ShortHistory = f.ShortHistory
	return s, s.Validate()
}

func tpceInitCommand() *cobra.Command {
	var o load.Options
	var f scaleFlags
	cmd := &cobra.Command{
		Use:   "init --url URL [flags]",
		Short: "Make the tables and fill them",
		Long: `Make the tables and fill them, over several connections at once. An interrupted init is taken up by the
same command again.`,
		Example: `  percodb bench tpce init --url postgres://postgres@127.0.0.1:5433/percodb --profile tiny`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Scale, err = f.scale(cmd.Flags()); err != nil {
				return err
			}
			bar := newLoadBar()
			o.Progress = bar
			sum, err := load.Run(cmd.Context(), o)
			bar.end()
			if errors.Is(err, load.ErrLoaded) {
				fmt.Fprintln(cmd.OutOrStdout(), "The database is loaded already, with these settings. Nothing was done.")
				return nil
			}
			if err != nil {
				if cmd.Context().Err() != nil {
					return fmt.Errorf("interrupted: the same command continues where this one ended")
				}
				return err
			}
			printLoad(cmd.OutOrStdout(), o, sum)
			return nil
		},
	}
	urlFlag(cmd.Flags(), &o.URLs)
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.ForeignKeys, "foreign-keys", false, "make the 49 foreign keys too, if the server has them")
	cmd.Flags().BoolVar(&o.CheckerIndexes, "checker-indexes", false, "make an index besides, of accounts by broker: for queries by hand")
	cmd.Flags().IntVar(&o.Workers, "workers", 4, "connections that load at once")
	return cmd
}

// printLoad prints the rows of every table and the expected numbers.
func printLoad(out io.Writer, o load.Options, sum load.Summary) {
	var total int64
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "table\trows\texpected\tdiffers by\t")
	for t := range schema.Count {
		rows, rule := sum.Rows[t], o.Scale.Rule(t)
		total += rows
		switch {
		case rule.Tolerance < 0:
			fmt.Fprintf(w, "%s\t%d\t\t\t\n", t, rows)
		case rows == rule.Rows:
			fmt.Fprintf(w, "%s\t%d\t%d\t\t\n", t, rows, rule.Rows)
		default:
			fmt.Fprintf(w, "%s\t%d\t%d\t%+.1f %%\t\n", t, rows, rule.Rows, 100*float64(rows-rule.Rows)/float64(max(rule.Rows, 1)))
		}
	}
	w.Flush()
	if sum.Resumed {
		fmt.Fprintf(out, "An interrupted load was completed: %d of its rows were there already.\n", total-sum.Copied)
	}
	fmt.Fprintf(out, "%s in %v (%.0f rows/s), indexes in %v, %v in all\n", plural.Count(sum.Copied, "row"), sum.Copy.Round(time.Millisecond),
		float64(sum.Copied)/sum.Copy.Seconds(), sum.Index.Round(time.Millisecond), sum.Total.Round(time.Millisecond))
}

// loadBar draws a load's progress, with its rate and the time that is left, on a terminal.
type loadBar struct {
	out io.Writer // nil if standard error is no terminal
	bar *progressbar.ProgressBar
}

func newLoadBar() *loadBar {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return &loadBar{}
	}
	return &loadBar{out: os.Stderr}
}

// Phase implements loading.Progress.
func (b *loadBar) Phase(name string, total int64) {
	b.end()
	if b.out == nil {
		return
	}
	b.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(name),
		progressbar.OptionSetWidth(30), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(name), progressbar.OptionSetPredictTime(true), progressbar.OptionShowBytes(name == "bytes"),
		progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish())
}

// Add implements loading.Progress. The total is an estimate, which a bar must not run beyond.
func (b *loadBar) Add(n int64) {
	if b.bar == nil {
		return
	}
	if rest := b.bar.GetMax64() - b.bar.State().CurrentNum; n > rest {
		n = rest
	}
	_ = b.bar.Add64(n) // an error of the terminal does not end the load
}

// end takes the bar off the screen.
func (b *loadBar) end() {
	if b.bar != nil {
		_ = b.bar.Clear()
		b.bar = nil
	}
}

func tpceCheckCommand() *cobra.Command {
	var urls []string
	var o check.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check --url URL",
		Short: "Judge whether the tables agree with each other",
		Long: `Judge whether the tables agree with each other, and with what was loaded. Exit code 1 when they do not.
Changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			o.URL = urls[0]
			if !asJSON {
				o.Done = func(r check.Result) { printResult(out, r) }
			}
			report, err := check.Run(cmd.Context(), o)
			if len(report.Results) == 0 {
				return err
			}
			n := report.Violations()
			if asJSON {
				encoder := json.NewEncoder(out)
				encoder.SetIndent("", "  ")
				err = errors.Join(err, encoder.Encode(report))
			} else {
				fmt.Fprintf(out, "%s in %.1f s\n", plural.Count(n, "violation"), report.Seconds)
			}
			if err == nil && n > 0 {
				return &silentError{}
			}
			return err
		},
	}
	urlFlag(cmd.Flags(), &urls)
	cmd.Flags().StringSliceVar(&o.Only, "only", nil, "conditions to judge, as in --only C3,C9 (default all)")
	cmd.Flags().StringVar(&o.Journal, "journal", "", "directory with the journals of runs: judge by them what was lost")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as one JSON object")
	return cmd
}

// printResult prints a condition, and the first rows that break it.
func printResult(out io.Writer, r check.Result) {
	verdict := "ok"
	switch {
	case r.Error != "":
		verdict = "NOT JUDGED: " + r.Error
	case r.Violations > 0:
		verdict = fmt.Sprintf("%d VIOLATIONS", r.Violations)
	}
	if r.Note != "" {
		verdict += " (" + r.Note + ")"
	}
	fmt.Fprintf(out, "%-6s %6.1f s  %s: %s\n", r.ID, r.Seconds, r.Title, verdict)
	for _, row := range r.Sample {
		fields := make([]string, len(row))
		for i, v := range row {
			fields[i] = r.Columns[i] + "=" + v
		}
		fmt.Fprintf(out, "%18s%s\n", "", strings.Join(fields, " "))
	}
}

func tpceDropCommand() *cobra.Command {
	var urls []string
	cmd := &cobra.Command{
		Use:   "drop --url URL",
		Short: "Remove the tables",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := load.Drop(cmd.Context(), urls[0])
			if err != nil {
				return err
			}
			if !found {
				fmt.Fprintln(cmd.OutOrStdout(), "There is nothing to drop.")
				return nil
			}
			fmt.Fprintln(cmd.OutOrStdout(), "Dropped.")
			return nil
		},
	}
	urlFlag(cmd.Flags(), &urls)
	return cmd
}
