// Command crawl keeps a search index over crawled documents with observers, as the Percolator paper's indexer does: an inverted index
// of words, and clusters of documents with the same content, each with one representative. README.md describes it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/percodb/percodb/examples/deploy"
)

// options are the flags.
type options struct {
	url       string
	percodb   string
	cluster   bool
	documents int
	crawlers  int
	duration  time.Duration
	killEvery time.Duration
	check     bool
	search    string
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "postgres://postgres@127.0.0.1:5433/percodb", "server to connect to")
	flag.StringVar(&o.percodb, "percodb", "", "start this percodb binary, and kill it now and then")
	flag.BoolVar(&o.cluster, "cluster", false, "with --percodb: start it as a cluster of five processes")
	flag.IntVar(&o.documents, "documents", 500, "number of documents")
	flag.IntVar(&o.crawlers, "crawlers", 4, "number of connections that crawl")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "how long to crawl")
	flag.DurationVar(&o.killEvery, "kill-every", 2*time.Second, "with --percodb: how often to kill it")
	flag.BoolVar(&o.check, "check", false, "only compare the index of an earlier run with a recomputation")
	flag.StringVar(&o.search, "search", "", "only print the documents that contain this word")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "crawl:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	var d *deploy.Deployment
	if o.percodb != "" {
		var err error
		if d, err = deploy.Start(o.percodb, o.cluster); err != nil {
			return err
		}
		defer d.Remove()
		o.url = d.URL()
	}
	pool, err := pgxpool.New(ctx, o.url)
	if err != nil {
		return err
	}
	defer pool.Close()
	switch {
	case o.check:
		return check(ctx, pool)
	case o.search != "":
		return search(ctx, pool, o.search)
	}
	if err := create(ctx, pool); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	if d != nil {
		defer d.KillEvery(o.killEvery)()
	}
	if err := crawlAll(ctx, pool, o); err != nil {
		return err
	}
	return check(ctx, pool)
}

// crawlAll crawls documents over several connections for the duration of the run.
func crawlAll(ctx context.Context, pool *pgxpool.Pool, o options) error {
	running, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	var crawled atomic.Int64
	errs := make([]error, o.crawlers)
	var wg sync.WaitGroup
	for i := range o.crawlers {
		wg.Go(func() {
			w := newWeb(uint64(i), o.documents)
			for running.Err() == nil {
				if err := w.crawl(running, pool); err != nil && running.Err() == nil {
					errs[i] = err
					cancel()
				}
				crawled.Add(1)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return err
	}
	fmt.Printf("crawled %d documents\n", crawled.Load())
	return nil
}

// search prints the documents that contain a word, one of each cluster.
func search(ctx context.Context, pool *pgxpool.Pool, word string) error {
	rows, err := pool.Query(ctx, `SELECT c.representative, c.size FROM postings p JOIN members m ON m.url = p.url
		JOIN clusters c ON c.hash = m.hash AND c.representative = p.url WHERE p.word = $1 ORDER BY c.size DESC, 1 LIMIT 20`, word)
	if err != nil {
		return err
	}
	var url string
	var size int
	_, err = pgx.ForEachRow(rows, []any{&url, &size}, func() error {
		fmt.Printf("%s (%d with the same content)\n", url, size)
		return nil
	})
	return err
}
