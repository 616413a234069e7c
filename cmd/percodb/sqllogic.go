package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/test/sqllogic"
)

// sqllogicCommand runs sqllogictest files against any PostgreSQL-wire server.
func sqllogicCommand() *cobra.Command {
	var o sqllogic.Options
	cmd := &cobra.Command{
		Use:   "sqllogic --url URL [flags] [PATH…]",
		Short: "Run sqllogictest files against a PostgreSQL-wire server",
		Long: `Run sqllogictest files against any server that speaks the PostgreSQL protocol.

A PATH is a test file, plain or gzip, or a directory of .slt and .test files.
The last line of the output is "N passed, N failed"; the exit code is 1 when a
record failed. Everything the files create is dropped again, before and after:
use a database of their own.`,
		Example: `  percodb sqllogic --url postgres://postgres@127.0.0.1:5433/percodb test/sqllogic/testdata`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			o.Paths = paths
			o.Out = cmd.OutOrStdout()
			if term.IsTerminal(int(os.Stderr.Fd())) {
				o.Progress = os.Stderr
			}
			summary, err := sqllogic.Run(cmd.Context(), o)
			if err != nil && summary == (sqllogic.Summary{}) {
				return err
			}
			fmt.Fprintf(o.Out, "%s, %d skipped, %v\n", plural.Count(summary.Files, "file"), summary.Skipped, summary.Elapsed.Round(time.Millisecond))
			if err != nil {
				fmt.Fprintf(o.Out, "the run ended early: %v\n", err)
			}
			fmt.Fprintf(o.Out, "%d passed, %d failed\n", summary.Passed, summary.Failed)
			if err != nil || summary.Failed > 0 {
				return &silentError{}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.URL, "url", "postgres://postgres@127.0.0.1:5433/percodb", "the server to test")
	flags.StringVar(&o.URL, "dsn", "postgres://postgres@127.0.0.1:5433/percodb", "the earlier name of --url")
	_ = flags.MarkHidden("dsn") // The flag exists.
	flags.StringVar(&o.Dialect, "dialect", "postgresql", "the name that skipif and onlyif lines are compared with; connections of mysql are set to MySQL's dialect")
	flags.StringVar(&o.List, "list", "", "a file that names test files, one a line")
	flags.StringVar(&o.Root, "root", "", "the directory the names of --list are relative to (default the list's own)")
	flags.StringVar(&o.Exclude, "exclude", "", "a file of lines FILE:LINE, records to skip")
	flags.IntVar(&o.MaxFailures, "max-failures", 0, "end the run after this many failures (0 is no limit)")
	flags.DurationVar(&o.RecordTimeout, "record-timeout", time.Minute, "how long one record may take")
	flags.BoolVar(&o.Extended, "extended", false, "use the extended protocol in place of simple queries")
	flags.BoolVarP(&o.Verbose, "verbose", "v", false, "report each file with its counts and its time")
	flags.BoolVar(&o.Rewrite, "rewrite", false, "write the server's results into the files, in place of comparing them")
	return cmd
}
