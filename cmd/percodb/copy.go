package main

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/percodb/percodb/copydb"
	"github.com/percodb/percodb/internal/plural"
)

func copyCommand() *cobra.Command {
	var o copydb.Options
	cmd := &cobra.Command{
		Use:   "copy --from URL --to URL [flags]",
		Short: "Copy a database between two servers, each percodb or PostgreSQL",
		Long: `Copy a database between two servers, each percodb or PostgreSQL: the schema, the values of
sequences, and the rows of one snapshot, over several connections at once. The target must be an empty database.
What the target refuses is found before the first row is copied. Indexes, keys and triggers are made after the
rows; at the end the rows of both servers are compared by their numbers and checksums.

An interrupted copy is taken up by the same command again. Roles, owners and privileges are not copied:
pg_dumpall --roles-only prints the first, and GRANT gives the others.`,
		Example: `  percodb copy --from postgres://postgres@127.0.0.1:5432/shop --to postgres://postgres@127.0.0.1:5433/shop`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.From == "" || o.To == "" {
				return &usageError{err: errors.New("--from and --to are both needed")}
			}
			bar := newLoadBar()
			o.Progress = bar
			o.Done = func(r *copydb.Report) {
				bar.end()
				printCopy(cmd, r)
			}
			report, err := copydb.Run(cmd.Context(), o)
			if err != nil {
				bar.end()
				return copyError(cmd.Context().Err() != nil, report, err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.From, "from", "", "URL of the database to copy")
	flags.StringVar(&o.To, "to", "", "URL of the empty database to copy into")
	flags.IntVar(&o.Workers, "workers", 0, "connections to each server (default 4)")
	flags.IntVar(&o.ChunkRows, "chunk-rows", 0, "rows that are copied in one transaction (default 20000)")
	flags.StringSliceVar(&o.Exclude, "exclude", nil, "tables, views and sequences to leave out: NAME or SCHEMA.NAME")
	flags.BoolVar(&o.SkipRefused, "skip-refused", false, "leave out what the target refuses, and list it at the end")
	flags.BoolVar(&o.Restart, "restart", false, "drop what a copy that was not completed has made in the target, and begin anew")
	return cmd
}

func printCopy(cmd *cobra.Command, r *copydb.Report) {
	out := cmd.OutOrStdout()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "table\trows\tchecksum")
	for _, t := range r.Tables {
		fmt.Fprintf(w, "%s\t%d\t%016x\n", t.Name, t.Rows, t.Checksum)
	}
	_ = w.Flush() // an error of standard output has no reader
	if len(r.LeftOut) > 0 {
		fmt.Fprintln(out, "\nLeft out:")
		for _, l := range r.LeftOut {
			fmt.Fprintf(out, "  %s: %s\n", l.Object, l.Reason)
		}
	}
	if r.Resumed {
		fmt.Fprintln(out, "\nAn interrupted copy was completed.")
	}
	if r.Again > 0 {
		fmt.Fprintf(out, "%s had changed in the source since, and %s copied again.\n", plural.Count(r.Again, "table"), map[bool]string{true: "was", false: "were"}[r.Again == 1])
	}
	fmt.Fprintf(out, "\n%s copied in %v; the rows of all %s are the same on both servers\n",
		plural.Count(r.Copied, "row"), r.Total.Round(time.Millisecond), plural.Count(len(r.Tables), "table"))
}

// copyError says how a copy that has begun, and failed, is resumed.
func copyError(interrupted bool, r *copydb.Report, err error) error {
	if r.Complete {
		return fmt.Errorf("%w\nThe copy is complete, but its state is left: DROP SCHEMA percodb_copy CASCADE in the target removes it", err)
	}
	if interrupted {
		err = errors.New("interrupted")
	}
	var side *copydb.SideError
	if r.Begun && (interrupted || errors.As(err, &side)) {
		return fmt.Errorf("%w\nThe copy is not complete: the same command continues where this one ended", err)
	}
	return err
}
