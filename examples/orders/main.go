// Command orders keeps a leaderboard of customers by the orders they have paid, with an observer that the application consumes itself,
// in batches, through package client/observer. README.md describes it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/percodb/percodb/client/observer"
	"github.com/percodb/percodb/examples/deploy"
)

// options are the flags.
type options struct {
	url       string
	percodb   string
	cluster   bool
	customers int
	clients   int
	consumers int
	duration  time.Duration
	killEvery time.Duration
	check     bool
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "postgres://postgres@127.0.0.1:5433/percodb", "server to connect to")
	flag.StringVar(&o.percodb, "percodb", "", "start this percodb binary, and kill it now and then")
	flag.BoolVar(&o.cluster, "cluster", false, "with --percodb: start it as a cluster of five processes")
	flag.IntVar(&o.customers, "customers", 100, "number of customers")
	flag.IntVar(&o.clients, "clients", 4, "number of connections that order")
	flag.IntVar(&o.consumers, "consumers", 2, "number of transactions that keep the leaderboard at a time")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "how long to order")
	flag.DurationVar(&o.killEvery, "kill-every", 2*time.Second, "with --percodb: how often to kill it")
	flag.BoolVar(&o.check, "check", false, "only handle what an earlier run has left, and compare the leaderboard with a recomputation")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
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
	config, err := pgxpool.ParseConfig(o.url)
	if err != nil {
		return err
	}
	config.MaxConns = int32(o.clients + o.consumers + 2)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if !o.check {
		if err := create(ctx, pool); err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
	}
	if d != nil {
		defer d.KillEvery(o.killEvery)()
	}
	return work(ctx, pool, o)
}

// work runs customers and the leaderboard's consumers side by side, then checks.
func work(ctx context.Context, pool *pgxpool.Pool, o options) error {
	consuming, stop := context.WithCancel(ctx)
	defer stop()
	var transactions, changes, conflicts, failures atomic.Int64
	var consumed error
	var wg sync.WaitGroup
	wg.Go(func() {
		consumed = observer.Run(consuming, pool, "orders_changed", project, observer.Options{
			Batch: 100, Concurrency: o.consumers, Wait: time.Second,
			Done: func(r observer.Result) {
				switch {
				case r.Err == nil:
					transactions.Add(1)
					changes.Add(int64(r.Changes))
				case r.Conflict:
					conflicts.Add(1)
				default:
					failures.Add(1)
				}
			},
		})
	})
	var err error
	if !o.check {
		err = orderAll(ctx, pool, o)
	}
	if err == nil {
		err = check(ctx, pool)
	}
	stop()
	wg.Wait()
	fmt.Printf("the leaderboard was kept by %d transactions with %d changes; %d conflicts and %d failures were tried again\n",
		transactions.Load(), changes.Load(), conflicts.Load(), failures.Load())
	return errors.Join(err, consumed)
}

// orderAll makes, pays, changes and removes orders for the duration of the run.
func orderAll(ctx context.Context, pool *pgxpool.Pool, o options) error {
	running, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	var statements atomic.Int64
	errs := make([]error, o.clients)
	var wg sync.WaitGroup
	for i := range o.clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 0))
			for running.Err() == nil {
				if err := order(running, pool, r, o.customers); err != nil && running.Err() == nil {
					errs[i] = err
					cancel()
				}
				statements.Add(1)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return err
	}
	fmt.Printf("%d changes of orders\n", statements.Load())
	return nil
}

// order changes one of the orders of a customer.
func order(ctx context.Context, pool *pgxpool.Pool, r *rand.Rand, customers int) error {
	id, customer, amount := r.IntN(20*customers), r.IntN(customers), 1+r.IntN(500)
	var sql string
	args := []any{id}
	switch r.IntN(10) {
	case 0:
		sql = `DELETE FROM orders WHERE id = $1`
	case 1, 2, 3, 4:
		sql = `UPDATE orders SET state = CASE state WHEN 'open' THEN 'paid' ELSE 'open' END WHERE id = $1`
	default:
		sql = `INSERT INTO orders VALUES ($1, $2, $3, 'open')
			ON CONFLICT (id) DO UPDATE SET customer = excluded.customer, amount = excluded.amount`
		args = append(args, customer, amount)
	}
	return deploy.Again(ctx, func(ctx context.Context) error {
		_, err := pool.Exec(ctx, sql, args...)
		return err
	})
}
