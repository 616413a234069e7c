package main

import (
	"github.com/spf13/cobra"

	"github.com/percodb/percodb/bench/crawl"
	"github.com/percodb/percodb/bench/observers"
)

func benchObserversCommand() *cobra.Command {
	var o observers.Options
	var f outputFlags
	cmd := &cobra.Command{
		Use:   "observers --url URL {--pid PID [--postgres-url URL --postgres-pid PID] | --writer-url URL}",
		Short: "Observers, beside triggers, a job table and NOTIFY on PostgreSQL",
		Long: `Measure observers of a server, and what PostgreSQL's users build in their place: a trigger that inserts into a job
table and calls NOTIFY, and workers that take jobs with FOR UPDATE SKIP LOCKED. The tables that are made in both databases are
observed, plain, copied, counters, last and jobs; existing ones of these names are dropped.
bench/observers.sh starts both servers and runs this command.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Notice = noticeTo(cmd.ErrOrStderr())
			res, err := observers.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return f.write(cmd.OutOrStdout(), res, res.Table(), nil)
		},
	}
	f.add(cmd.Flags(), false)
	flags := cmd.Flags()
	flags.StringVar(&o.URL, "url", "postgres://postgres@127.0.0.1:5433/percodb", "percodb")
	flags.StringVar(&o.PID, "pid", "", "its process, for its CPU time and memory")
	flags.StringVar(&o.PostgresURL, "postgres-url", "", "PostgreSQL (default: only percodb is measured)")
	flags.StringVar(&o.PostgresPID, "postgres-pid", "", "its postmaster: a process, or @ and the path of postmaster.pid")
	flags.StringVar(&o.WriterURL, "writer-url", "", "another SQL process of the cluster of --url: only the latency from changes there to a client of --url")
	flags.DurationVar(&o.Duration, "duration", 0, "time of each measurement that has no end of its own (default 5s)")
	flags.IntVar(&o.Rows, "rows", 0, "rows of each table (default 250000)")
	flags.IntVar(&o.Pending, "pending", 0, "pending changes with which the measurement of one change a transaction begins; of batches: five times as many (default 20000)")
	flags.IntVar(&o.Backlog, "backlog", 0, "changes of the backlog's measurement; less than 0: none (default 1000000)")
	flags.IntVar(&o.Rate, "rate", 0, "changes per second of paced writers (default 1000)")
	cmd.MarkFlagsOneRequired("pid", "writer-url")
	cmd.MarkFlagsMutuallyExclusive("pid", "writer-url")
	return cmd
}

func benchCrawlCommand() *cobra.Command {
	var o crawl.Options
	var f outputFlags
	cmd := &cobra.Command{
		Use:   "crawl --url URL",
		Short: "An index of crawled documents, by observers and by a batch job: the Percolator paper's figure 7",
		Long: `Crawl a share of a repository of documents anew per hour, with duplicates clustered and links inverted: by an observer,
and by a batch job over everything. Measured is the latency from crawl to visibility at each crawl rate. The tables repository, members,
clusters, inverted and shown are made; existing ones of these names are dropped.`,
		Example: `  percodb bench crawl --shares 100,1000,10000 --html crawl.html`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Notice = noticeTo(cmd.ErrOrStderr())
			res, err := crawl.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return f.write(cmd.OutOrStdout(), res, res.Table(), res.Document)
		},
	}
	f.add(cmd.Flags(), true)
	flags := cmd.Flags()
	flags.StringVar(&o.URL, "url", "postgres://postgres@127.0.0.1:5433/percodb", "percodb")
	flags.IntVar(&o.Documents, "documents", 0, "documents of the repository (default 20000)")
	flags.IntVar(&o.Links, "links", 0, "links of a document (default 10)")
	flags.Float64SliceVar(&o.Shares, "shares", nil, "crawl rates, ascending, in percent of the repository per hour (default 30,100,300,1000,3000,10000,30000)")
	flags.DurationVar(&o.Duration, "duration", 0, "time of each measurement (default 10s; the batch job runs at least three times)")
	return cmd
}
