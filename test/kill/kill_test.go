package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/internal/process"
	"github.com/percodb/percodb/test/history"
)

// Goal: no acknowledged transaction is lost and no read is wrong while processes are killed. Method: a short run of the
// command, in one process, as a cluster, and over Bigtable's emulator.
func TestShortRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	binary, err := process.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]options{
		"one process": {duration: 5 * time.Second},
		"cluster":     {duration: 9 * time.Second, cluster: true},
		"Bigtable":    {duration: 9 * time.Second, bigtable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for ; ; o.duration *= 2 { // for a slow machine
				var faults strings.Builder
				o.binary, o.round, o.seed, o.log = binary, o.duration, 1, &faults
				sum, err := run(t.Context(), o)
				if err != nil {
					t.Fatalf("%v\n%s", err, faults.String())
				}
				var told strings.Builder
				sum.print(&told)
				t.Log(told.String())
				if !sum.clean() {
					t.Fatalf("after\n%s", faults.String())
				}
				if sum.kills > 0 && sum.transactions >= 100 && (o.bigtable || sum.deliveries.Load() >= 20) { // no observers over Bigtable
					return
				}
				if o.duration > time.Minute {
					t.Fatal("too little has happened")
				}
			}
		})
	}
}

// Goal: what the sessions of several processes over one table observe is possible at their isolation levels, whatever the network between the processes
// and the table does. Method: a short run of lists alone, with requests that are refused, lost, late, repeated and delayed.
func TestLists(t *testing.T) {
	if testing.Short() {
		t.Skip("builds percodb")
	}
	binary, err := process.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, processes := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d_processes", processes), func(t *testing.T) {
			for lasts := 3 * time.Second; ; lasts *= 2 { // for a slow machine
				sum, err := run(t.Context(), options{duration: lasts, round: lasts, bigtable: true, lists: true, sql: processes, seed: 1, binary: binary, log: io.Discard})
				if err != nil {
					t.Fatal(err)
				}
				var told strings.Builder
				sum.print(&told)
				t.Log(told.String())
				if !sum.clean() {
					t.FailNow()
				}
				f := sum.requests
				enough := min(f.refused.Load(), f.lost.Load(), f.late.Load(), f.repeated.Load(), f.delayed.Load()) > 0
				for i := range sum.lists {
					enough = enough && sum.lists[i][history.Committed].Load() >= 20
				}
				if enough {
					break
				}
				if lasts > time.Minute {
					t.Fatal("too little has happened")
				}
			}
		})
	}
}

// Goal: a proxy forwards, delays without losing anything, cuts, and forwards again. Method: an echo server.
func TestProxy(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // It ends with the connection, however that ends.
			}()
		}
	}()
	p, err := newProxy(echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", p.addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	// exchange sends a byte and reads it again.
	exchange := func(c net.Conn, timeout time.Duration) error {
		if _, err := c.Write([]byte{7}); err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
	c := dial()
	if err := exchange(c, time.Minute); err != nil {
		t.Fatal(err)
	}
	p.freeze()
	if err := exchange(c, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("frozen: %v", err)
	}
	p.heal()
	if err := exchange(c, time.Minute); err != nil {
		t.Fatalf("healed: %v", err)
	}
	p.cut()
	if err := exchange(c, time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		// The delayed byte has arrived before; a cut ends the connection at once.
		if err = exchange(c, time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("cut: %v", err)
		}
	}
	if err := exchange(dial(), time.Minute); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("cut: a new connection: %v", err)
	}
	p.heal()
	if err := exchange(dial(), time.Minute); err != nil {
		t.Fatalf("healed again: %v", err)
	}
}

// Goal: errors are classified as I2 and I3 say: which prove that a transaction has not committed, and which a client
// may receive. Method: SQLSTATEs of each kind.
func TestErrors(t *testing.T) {
	for code, want := range map[string]struct{ vague, expected bool }{
		"40001": {false, true}, "40P01": {false, true}, "55P03": {false, true}, "23505": {false, true},
		"72000": {false, true}, "40003": {true, true}, "08006": {true, true}, "08007": {true, true}, "57P01": {true, true}, "57P03": {true, true},
		"57014": {true, false}, "XX000": {true, false}, "XX001": {true, false}, "42P01": {false, false}, "22003": {false, false},
		"23503": {false, true}, "54000": {false, false},
	} {
		if isVague(code) != want.vague || isExpected(code) != want.expected {
			t.Errorf("%s: vague %v, expected %v", code, isVague(code), isExpected(code))
		}
	}
	if state(context.Canceled) != "" || state(&pgconn.PgError{Code: "40001"}) != "40001" {
		t.Error("state")
	}
}
