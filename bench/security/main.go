// Command security opens many idle connections, for bench/security.sh. It prints a line when all are open, and closes them
// when its standard input ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func main() {
	url := flag.String("url", "", "the server")
	n := flag.Int("connections", 10_000, "number of connections")
	flag.Parse()
	if err := run(context.Background(), *url, *n); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// workers is the number of connections that are opened at once.
const workers = 8

func run(ctx context.Context, url string, n int) error {
	conns, errs, next := make([]*pgconn.PgConn, n), make(chan error, workers), make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				var err error
				if conns[i], err = pgconn.Connect(ctx, url); err != nil {
					select {
					case errs <- fmt.Errorf("connection %d: %w", i, err):
					default:
					}
					return
				}
			}
		})
	}
	var failed error
	begun := time.Now()
	for i := range conns {
		select {
		case next <- i:
			continue
		case failed = <-errs:
		}
		break
	}
	close(next)
	wg.Wait()
	select {
	case failed = <-errs:
	default:
	}
	if failed == nil {
		fmt.Printf("%d connections in %.1f s\n", n, time.Since(begun).Seconds())
		_, failed = io.Copy(io.Discard, os.Stdin)
	}
	for _, conn := range conns {
		if conn != nil {
			_ = conn.Close(ctx) // the process ends
		}
	}
	return failed
}
