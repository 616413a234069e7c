package cluster

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Goal: what an SQL process has claimed and locked is free as soon as it has ended, by SIGTERM or SIGKILL, and others that wait go
// on: consumers of an observer, observers with bodies, statements. Method: one process holds claims and locks in open transactions
// and in a body that sleeps; the TTL of its locks plays no part, since the tso process removes them, which it logs.
func TestTakeover(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			d := deploy(t, 2, 2, "--log-level", "info")
			first, second := d.sql[0], d.sql[1]
			other := second.connect()
			d.exec(other, "create table a (id int primary key, v int)", "create table rows (id int primary key, v int)", "insert into rows values (1, 0)",
				"create observer clients on a", "insert into a select i, 0 from generate_series(1, 3) i")
			claims, holds := first.connect(), first.connect()
			d.exec(claims, "begin", "select * from percodb.changes('clients', 10)")
			d.exec(holds, "begin", "update rows set v = v + 1")
			if got, err := d.value(other, "select count(*)::int from percodb.changes('clients', 10)"); got != "0" || err != nil {
				t.Fatalf("claimed twice: %s, %v", got, err)
			}

			waiting := second.connect()
			updated := make(chan error, 1)
			go func() {
				_, err := waiting.Exec(context.Background(), "update rows set v = v + 10", pgx.QueryExecModeSimpleProtocol)
				updated <- err
			}()
			for got := ""; got != "1"; time.Sleep(10 * time.Millisecond) { // between two looks
				var err error
				if got, err = d.value(other, "select count(*)::int from percodb.locks where cardinality(waiters) > 0"); err != nil {
					t.Fatal(err)
				}
			}
			ended := time.Now()
			first.end(signal)
			if got, err := d.value(other, "select count(*)::int from percodb.changes('clients', 10, wait => '1min')"); got != "3" || err != nil {
				t.Errorf("taken over: %s, %v", got, err)
			}
			t.Logf("the claims were free after %s", time.Since(ended))
			if err := <-updated; err != nil {
				t.Error(err)
			}
			t.Logf("the row was free after %s", time.Since(ended))
			if got, err := d.value(other, "select v from rows"); got != "10" || err != nil {
				t.Errorf("the row has %s, %v", got, err)
			}
			if signal == syscall.SIGKILL && !strings.Contains(d.tso.run.Output(), "locks of an SQL process that has ended were removed") {
				t.Error("nobody has removed the locks of the process that was killed")
			}
		})
	}
}
