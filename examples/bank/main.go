// Command bank moves money between accounts from eight connections at once, and goes on doing so while
// the server is killed and started again. The total never changes.
//
//	go run ./examples/bank --url postgres://postgres@127.0.0.1:5433/percodb
//
// runs against a server of yours; kill it while it runs. With --percodb PATH the program starts the
// server itself, in a directory that it removes afterwards, and kills it (as kill -9 does) every now
// and then; with --cluster it starts an oracle, three stores and a SQL process, and kills any of them:
//
//	go build -o percodb ./cmd/percodb && go run ./examples/bank --percodb ./percodb --cluster
//
// What a client of any SQL database has to do is in transfer.go: run the transaction again when it
// lost to another (SQLSTATE 40001), and connect again when the connection is gone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/percodb/percodb/examples/deploy"
)

// options are the flags.
type options struct {
	url       string
	percodb   string
	cluster   bool
	accounts  int
	clients   int
	duration  time.Duration
	killEvery time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "postgres://postgres@127.0.0.1:5433/percodb", "server to connect to")
	flag.StringVar(&o.percodb, "percodb", "", "start this percodb binary, and kill it now and then")
	flag.BoolVar(&o.cluster, "cluster", false, "with --percodb: start it as a cluster of five processes")
	flag.IntVar(&o.accounts, "accounts", 20, "number of accounts")
	flag.IntVar(&o.clients, "clients", 8, "number of connections")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "how long to run")
	flag.DurationVar(&o.killEvery, "kill-every", 2*time.Second, "with --percodb: how often to kill it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bank:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.percodb != "" {
		d, err := deploy.Start(o.percodb, o.cluster)
		if err != nil {
			return err
		}
		defer d.Remove()
		o.url = d.URL()
		stop := d.KillEvery(o.killEvery)
		defer stop()
	}
	b := &bank{url: o.url, accounts: o.accounts}
	if err := b.open(ctx); err != nil {
		return fmt.Errorf("open the accounts: %w", err)
	}
	return b.work(ctx, o.clients, o.duration)
}

// work runs the clients and an auditor side by side, then audits once more.
func (b *bank) work(ctx context.Context, clients int, duration time.Duration) error {
	running, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	errs := make(chan error, clients+1)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			if err := b.transferUntil(running, uint64(i)); err != nil {
				errs <- err
				cancel()
			}
		})
	}
	wg.Go(func() {
		if err := b.auditUntil(running); err != nil {
			errs <- err
			cancel()
		}
	})
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	total, err := b.audit(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("done: %s; the total is %d, as it was\n", b.counters(), total)
	return nil
}
