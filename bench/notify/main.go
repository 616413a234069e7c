// Command notify measures LISTEN and NOTIFY on a server that speaks PostgreSQL's protocol, for bench/notify.sh: the time from
// NOTIFY to one listener, and notifying transactions per second beside idle listeners. It prints one line of name=value.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

func main() {
	url := flag.String("url", "", "the server")
	listenURL := flag.String("listen-url", "", "where the listener of the latency connects (default: --url)")
	idle := flag.Int("idle", 0, "number of idle listeners, each of a channel of its own")
	senders := flag.Int("senders", 4, "number of sessions that notify")
	write := flag.Bool("write", false, "each transaction also updates a row")
	duration := flag.Duration("duration", 5*time.Second, "length of each of the two measurements")
	flag.Parse()
	if *listenURL == "" {
		*listenURL = *url
	}
	if err := run(context.Background(), bench{*url, *listenURL, *idle, *senders, *write, *duration}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type bench struct {
	url, listenURL string
	idle, senders  int
	write          bool
	duration       time.Duration
}

func run(ctx context.Context, b bench) error {
	setup, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return err
	}
	defer setup.Close(ctx)
	for _, s := range []string{"drop table if exists notify_bench", "create table notify_bench (id int primary key, n int)",
		"insert into notify_bench select i, 0 from generate_series(1, 1000) i"} {
		if _, err := setup.Exec(ctx, s); err != nil {
			return err
		}
	}
	idle := make([]*pgx.Conn, b.idle)
	for i := range idle {
		if idle[i], err = pgx.Connect(ctx, b.url); err != nil {
			return fmt.Errorf("idle listener %d: %w", i, err)
		}
		defer idle[i].Close(ctx)
		if _, err := idle[i].Exec(ctx, fmt.Sprintf("listen idle_%d", i)); err != nil {
			return err
		}
	}
	p50, p99, err := b.latency(ctx)
	if err != nil {
		return err
	}
	rate, err := b.rate(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("p50_us=%d p99_us=%d tps=%.0f\n", p50.Microseconds(), p99.Microseconds(), rate)
	return nil
}

// statement is one transaction that notifies.
func (b bench) statement(id int, channel, payload string) string {
	notify := fmt.Sprintf("notify %s, '%s'", channel, payload)
	if !b.write {
		return notify
	}
	return fmt.Sprintf("update notify_bench set n = n + 1 where id = %d; %s", id, notify)
}

// latency measures the time from when the sender sends NOTIFY until the listener has it, one at a time.
func (b bench) latency(ctx context.Context) (p50, p99 time.Duration, err error) {
	listener, err := pgx.Connect(ctx, b.listenURL)
	if err != nil {
		return 0, 0, err
	}
	defer listener.Close(ctx)
	if _, err := listener.Exec(ctx, "listen latency"); err != nil {
		return 0, 0, err
	}
	sender, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return 0, 0, err
	}
	defer sender.Close(ctx)
	var took []time.Duration
	for end := time.Now().Add(b.duration); time.Now().Before(end); {
		sent := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := sender.Exec(ctx, b.statement(1, "latency", strconv.Itoa(len(took))), pgx.QueryExecModeSimpleProtocol)
			sent <- err
		}()
		n, err := listener.WaitForNotification(ctx)
		if err != nil {
			return 0, 0, err
		}
		took = append(took, time.Since(began))
		if n.Payload != strconv.Itoa(len(took)-1) {
			return 0, 0, fmt.Errorf("notification %s arrived in the place of %d", n.Payload, len(took)-1)
		}
		if err := <-sent; err != nil {
			return 0, 0, err
		}
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], nil
}

// lastPayload ends rate.
const lastPayload = "the last one"

// rate measures transactions per second of several sessions. One client listens to their channel.
func (b bench) rate(ctx context.Context) (float64, error) {
	listener, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return 0, err
	}
	defer listener.Close(ctx)
	if _, err := listener.Exec(ctx, "listen rate"); err != nil {
		return 0, err
	}
	conns := make([]*pgx.Conn, b.senders)
	for i := range conns {
		if conns[i], err = pgx.Connect(ctx, b.url); err != nil {
			return 0, err
		}
		defer conns[i].Close(ctx)
	}
	var wg sync.WaitGroup
	counts, errs := make([]int, b.senders), make([]error, b.senders+1)
	began := time.Now()
	end := began.Add(b.duration)
	for i, conn := range conns {
		wg.Go(func() {
			for time.Now().Before(end) && errs[i] == nil {
				_, errs[i] = conn.Exec(ctx, b.statement(i+2, "rate", fmt.Sprint(i, counts[i])), pgx.QueryExecModeSimpleProtocol)
				counts[i]++
			}
		})
	}
	received := make(chan int, 1)
	go func() {
		for n := 0; ; n++ {
			m, err := listener.WaitForNotification(ctx)
			if err != nil {
				errs[b.senders] = err
			}
			if err != nil || m.Payload == lastPayload {
				received <- n
				return
			}
		}
	}()
	wg.Wait()
	took := time.Since(began)
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if _, err := conns[0].Exec(ctx, "notify rate, '"+lastPayload+"'"); err != nil {
		return 0, err
	}
	if n := <-received; n != sum && errs[b.senders] == nil {
		return 0, fmt.Errorf("%d of %d notifications arrived", n, sum)
	}
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(sum) / took.Seconds(), nil
}
