package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/test/history"
)

// round is a part of a run with its own tables.
type round struct {
	number     int
	deployment *deployment
	sum        *summary
	log        io.Writer
	rand       *rand.Rand
}

// workload is the work of some clients on their own tables.
type workload interface {
	// setup creates the tables.
	setup(ctx context.Context, q querier) error
	// clients is the number of concurrent clients; client runs one transaction at a time until ctx ends.
	clients() int
	client(ctx context.Context, c *client)
	// check reads the final contents of the tables and checks what was recorded.
	check(ctx context.Context, c *client) ([]history.Anomaly, error)
}

func workloads(number int, bulk *large, deliveries *atomic.Int64) []workload {
	suffix := fmt.Sprintf("_%d", number)
	return []workload{
		bulk,
		&bank{table: "bank" + suffix},
		&lists{table: "lists_rc" + suffix, level: readCommitted, sessions: 3},
		&lists{table: "lists_rr" + suffix, level: repeatableRead, sessions: 3},
		&lists{table: "lists_ser" + suffix, level: serializable, sessions: 3},
		&inserts{table: "inserts" + suffix},
		&counters{table: "counters" + suffix},
		&indexed{table: "indexed" + suffix},
		&references{table: "references" + suffix},
		&partitioned{table: "partitioned" + suffix},
		&triggered{table: "triggered" + suffix},
		&advised{table: "advised" + suffix},
		&temporaries{table: "temporaries" + suffix},
		&observed{table: "observed" + suffix, deliveries: deliveries},
	}
}

// largeEvery is how many rounds over Bigtable there are for each with large transactions, whose versions stay in the emulator's memory.
const largeEvery = 16

// name puts the name of a workload's table where a statement has @.
func name(table, statement string) string { return strings.ReplaceAll(statement, "@", table) }

// run runs one round and adds its findings to the summary.
func (r *round) run(ctx context.Context, lasts time.Duration) error {
	d := r.deployment
	w := &world{addrs: d.sql, dump: d.dump, unexpected: map[string]string{}}
	size := manyRows
	if d.table != nil {
		size = wideRows
	}
	bulk := newLarge("large", size, &r.sum.large)
	all := workloads(r.number, bulk, &r.sum.deliveries)
	switch {
	case r.sum.lists != nil:
		all = listWorkloads(r.number, r.sum.lists)
	case d.table != nil && r.number%largeEvery != 0:
		all = slices.DeleteFunc(all, func(w workload) bool { return w == workload(bulk) })
	}
	if err := d.heal(); err != nil {
		return err
	}
	if err := d.wait(ctx); err != nil {
		return err
	}
	if err := r.setup(ctx, w, all); err != nil {
		return err
	}
	if d.table != nil {
		d.table.disturb()
	}
	f := &faults{d: d, rand: rand.New(rand.NewPCG(r.rand.Uint64(), 1)), log: r.log, large: []*large{bulk}}
	r.load(ctx, w, all, f, lasts)
	r.sum.kills, r.sum.other, r.sum.coordinators = r.sum.kills+f.kills, r.sum.other+f.other, r.sum.coordinators+f.coordinators
	r.sum.transactions += int(w.committed.Load())
	fmt.Fprintf(r.log, "round %d: %d transactions, %d statements given up\n", r.number, w.committed.Load(), w.timeouts.Load())
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.heal(); err != nil {
		return err
	}
	if err := d.wait(ctx); err != nil {
		return err
	}
	ended := time.Now()
	if err := r.check(ctx, w, all); err != nil {
		return err
	}
	if d.table == nil { // A table keeps at least ten minutes of history.
		if err := r.awaitCollection(ctx, w, ended); err != nil {
			return err
		}
	}
	d.killProcesses()
	r.sum.wrong = append(r.sum.wrong, d.check(ctx)...)
	return nil
}

func (r *round) setup(ctx context.Context, w *world, all []workload) error {
	c := r.client(w, -1)
	defer c.close()
	for _, l := range all {
		if err := c.connect(ctx); err != nil {
			return err
		}
		err := l.setup(ctx, c.conn)
		if r.sum.lists != nil && err != nil && isExpected(state(err)) { // The processes may still agree on their coordinator.
			c.lostBy(err)
			if err = c.connect(ctx); err == nil {
				err = l.setup(ctx, c.conn)
			}
		}
		if err != nil {
			return fmt.Errorf("set up: %w", err)
		}
	}
	return nil
}

func (r *round) client(w *world, id int) *client {
	return &client{id: id, w: w, rand: rand.New(rand.NewPCG(r.rand.Uint64(), 2))}
}

// load runs the clients while it injects faults.
func (r *round) load(ctx context.Context, w *world, all []workload, f *faults, lasts time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var clients sync.WaitGroup
	id := 0
	for _, l := range all {
		for range l.clients() {
			c := r.client(w, id)
			id++
			clients.Go(func() {
				defer c.close()
				for ctx.Err() == nil {
					l.client(ctx, c)
				}
			})
		}
	}
	if r.sum.lists != nil {
		<-ctx.Done()
	} else {
		f.run(ctx)
	}
	// Running statements are awaited, so the processes must be able to answer them.
	if err := r.deployment.heal(); err != nil {
		fmt.Fprintf(r.log, "heal: %v\n", err)
	}
	clients.Wait()
}

// lostClasses are the anomalies in which something acknowledged is missing.
var lostClasses = []history.Class{history.LostAppend, history.LostInsert, history.LostIncrement, history.LostUpdate}

func (r *round) check(ctx context.Context, w *world, all []workload) error {
	c := r.client(w, -1)
	defer c.close()
	for _, l := range all {
		found, err := l.check(ctx, c)
		if err != nil {
			return fmt.Errorf("%T: %w", l, err)
		}
		for _, a := range found {
			f := finding{fmt.Sprintf("round %d, %s: %s", r.number, strings.TrimPrefix(fmt.Sprintf("%T", l), "*main."), a.Class), a.Story}
			if slices.ContainsFunc(lostClasses, a.Is) {
				r.sum.lost = append(r.sum.lost, f)
			} else {
				r.sum.wrong = append(r.sum.wrong, f)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.timeouts.Load(); n > 0 {
		r.sum.wrong = append(r.sum.wrong, finding{fmt.Sprintf("round %d: %d transactions hung", r.number, n),
			fmt.Sprintf("Their transactions were given up after %v; no fault lasts that long.\n%s", statementTimeout, w.slow)})
	}
	for where, story := range w.unexpected {
		r.sum.wrong = append(r.sum.wrong, finding{fmt.Sprintf("round %d: unexpected error (%s)", r.number, where), story})
	}
	return nil
}

// awaitCollection waits until garbage collection has completed a round whose safe point is beyond a time. Once all
// faults are over nothing may prevent that: no lock or pin of a dead process, no unavailable store.
func (r *round) awaitCollection(ctx context.Context, w *world, beyond time.Time) error {
	c := r.client(w, -1)
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	var stage string
	for {
		var passed bool
		err := c.connect(ctx)
		if err == nil {
			err = c.conn.QueryRow(ctx, `select current_setting('percodb.gc_stage'),
				coalesce(nullif(current_setting('percodb.safe_point'), 'none')::timestamptz > $1, false)`, beyond).Scan(&stage, &passed)
		}
		switch {
		case err == nil && passed && stage == "idle":
			return nil
		case err != nil && c.conn != nil:
			c.lostBy(err)
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return errors.Join(fmt.Errorf("garbage collection does not come to an end within %v of the last fault; it is at %q", recoverWithin, stage), err)
		}
	}
}
