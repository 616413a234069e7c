package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/percodb/percodb/internal/plural"
	"github.com/percodb/percodb/mysqlimport"
)

func importCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "import", Short: "Load the dumps of other databases"}
	cmd.AddCommand(importMySQLCommand())
	return cmd
}

func importMySQLCommand() *cobra.Command {
	var o mysqlimport.Options
	var zero, asType, unsigned string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "mysql PATH… --url URL [flags]",
		Short: "Load a dump of mysqldump, mydumper or TiDB's Dumpling",
		Long: `Load a dump of mysqldump, mydumper or TiDB's Dumpling, of MySQL, MariaDB or TiDB.

A PATH is a file or a directory of files, plain, gzip or zstd. The tables are made, in the schema of their
database's name, and filled over several connections at once; keys are made after the rows. An interrupted
import is taken up by the same command again. At the end comes a table of what was mapped and how, and of what was
left out, with the statements to run later. docs/mysql.md has the mapping.`,
		Example: `  mysqldump --databases shop --single-transaction | gzip > shop.sql.gz
  percodb import mysql shop.sql.gz --url postgres://postgres@127.0.0.1:5433/percodb`,
		Args: arguments(1, math.MaxInt, "the PATH of the dump"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			o.Paths = paths
			var err error
			if o.Zero, err = zeroDates(zero); err != nil {
				return err
			}
			switch asType {
			case "time", "interval":
				o.Interval = asType == "interval"
			default:
				return fmt.Errorf("--time is time or interval, not %q", asType)
			}
			switch unsigned {
			case "bigint", "numeric":
				o.Numeric = unsigned == "numeric"
			default:
				return fmt.Errorf("--bigint-unsigned is bigint or numeric, not %q", unsigned)
			}
			bar := newLoadBar()
			o.Progress = bar
			o.Done = func(r *mysqlimport.Report) {
				bar.end()
				printImport(cmd, r, verbose)
			}
			report, err := mysqlimport.Run(cmd.Context(), o)
			if err != nil {
				bar.end()
				return importError(cmd.Context().Err() != nil, report, err)
			}
			if report.Refused > 0 {
				return fmt.Errorf("all rows are imported, but the server refused %s after them, which the list above shows", plural.Count(report.Refused, "statement"))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.URL, "url", "postgres://postgres@127.0.0.1:5433/percodb", "the server to load into")
	flags.IntVar(&o.Workers, "workers", 4, "connections that load at once")
	flags.StringVar(&o.Schema, "schema", "", "the schema for all tables (default: their database's name, public for a dump that names none)")
	flags.StringSliceVar(&o.Exclude, "exclude", nil, "tables to leave out: NAME or DATABASE.NAME")
	flags.StringVar(&zero, "zero-dates", "null", "what zero dates become: null, or a date such as 0001-01-01 or -infinity")
	flags.StringVar(&asType, "time", "time", "what MySQL's TIME becomes: time, or interval, which holds more than a day")
	flags.StringVar(&unsigned, "bigint-unsigned", "bigint", "what BIGINT UNSIGNED becomes: bigint, or numeric for values beyond 9223372036854775807")
	flags.StringVar(&o.TimeZone, "time-zone", "UTC", "the time zone of TIMESTAMP values, where the dump does not say it")
	flags.BoolVar(&o.Restart, "restart", false, "drop the tables of imports that were not completed, and begin anew")
	flags.BoolVarP(&verbose, "verbose", "v", false, "print the mapping of every column")
	return cmd
}

// zeroDates reads --zero-dates.
func zeroDates(text string) (mysqlimport.ZeroDates, error) {
	switch text {
	case "null":
		return "", nil
	case "infinity", "-infinity":
		return mysqlimport.ZeroDates(text), nil
	}
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return "", fmt.Errorf("--zero-dates is null, -infinity or a date like 0001-01-01, not %q", text)
	}
	return mysqlimport.ZeroDates(text), nil
}

func printImport(cmd *cobra.Command, r *mysqlimport.Report, verbose bool) {
	out := cmd.OutOrStdout()
	r.Print(out, verbose)
	if r.Resumed {
		fmt.Fprintln(out, "\nAn interrupted import was completed.")
	}
	fmt.Fprintf(out, "\n%s loaded in %v", plural.Count(r.Loaded, "row"), r.Rows.Round(time.Millisecond))
	if !r.Resumed {
		fmt.Fprintf(out, " from %.1f MB (%.1f MB/s)", float64(r.Bytes)/1e6, float64(r.Bytes)/1e6/r.Rows.Seconds())
	}
	fmt.Fprintf(out, ", keys and statistics in %v, %v in all\n", (r.Total - r.Rows).Round(time.Millisecond), r.Total.Round(time.Millisecond))
}

// importFailure is the error of an import, with its progress and how to resume it in a second line.
type importFailure struct {
	err   error
	state string
}

func (e *importFailure) Error() string { return e.err.Error() + "\n" + e.state }
func (e *importFailure) Unwrap() error { return e.err }

// importError describes the progress of an import, and how to resume it.
func importError(interrupted bool, r *mysqlimport.Report, err error) error {
	if r == nil {
		return err
	}
	if r.Complete {
		return &importFailure{err: err, state: "The import is complete, but its state is left: DROP SCHEMA percodb_import CASCADE removes it."}
	}
	var rows int64
	for _, t := range r.Tables {
		rows += t.Rows
	}
	state := fmt.Sprintf("The import is not complete: %s of %s imported.", plural.Count(rows, "row"), plural.Count(len(r.Tables), "table"))
	var pg *pgconn.PgError
	var place *mysqlimport.PlaceError
	switch {
	case interrupted:
		return &importFailure{err: errors.New("interrupted"), state: state + " The same command continues where this one ended."}
	case !errors.As(err, &place) && !errors.As(err, &pg):
		return &importFailure{err: err, state: state + " The same command continues where this one ended."}
	case len(r.Tables) == 0: // the dump, or a wrong file, stopped it before its first table
		return &importFailure{err: err, state: "This command has imported nothing."}
	}
	return &importFailure{err: err, state: state + " The same command continues; with a new dump or other flags, --restart drops these tables and starts again."}
}
