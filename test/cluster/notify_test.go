package cluster

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// received reads notifications until the connection ends, n have arrived and no more come, or too long a wait is over.
func received(c *pgx.Conn, n int) (payloads []string, err error) {
	for {
		wait := waitTimeout
		if len(payloads) >= n {
			wait = time.Second
		}
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		n, err := c.WaitForNotification(ctx)
		expired := ctx.Err() != nil
		cancel()
		if err != nil {
			if expired {
				err = nil
			}
			return payloads, err
		}
		payloads = append(payloads, n.Payload)
	}
}

// Goal: notifications pass between SQL processes, in the order of the sender's commits, and none of what was committed is left
// out: when the sender's process is killed, or the process through which they pass, listeners that may lack some are
// disconnected, and can begin anew.
func TestNotifications(t *testing.T) {
	d := deploy(t, 1, 2)
	near, far := d.sql[0], d.sql[1]
	setup := near.connect()
	d.exec(setup, "create table sent (id int primary key)")

	listener, sender := near.connect(), far.connect()
	d.exec(listener, "listen c")
	for i := range 50 {
		d.exec(sender, fmt.Sprintf("begin; insert into sent values (%d); notify c, '%d'; commit", i, i))
		n, err := listener.WaitForNotification(d.context())
		if err != nil || n.Payload != fmt.Sprint(i) {
			t.Fatalf("%v, %v at %d", n, err, i)
		}
		if got, err := d.value(listener, fmt.Sprintf("select count(*) from sent where id = %d", i)); err != nil || got != "1" {
			t.Fatalf("the row of a notification: %s, %v", got, err)
		}
	}
	d.exec(sender, "begin; notify c, 'not sent'; rollback", "notify c, 'last'")
	if n, err := listener.WaitForNotification(d.context()); err != nil || n.Payload != "last" {
		t.Fatal(n, err)
	}

	for round := range 3 {
		d.exec(setup, "truncate sent")
		listener, sender = near.connect(), far.connect()
		d.exec(listener, "listen c")
		go func() {
			for i := 0; ; i++ { // Until the process is killed.
				if _, err := sender.Exec(context.Background(), fmt.Sprintf("begin; insert into sent values (%d); notify c, '%d'; commit", i, i), pgx.QueryExecModeSimpleProtocol); err != nil {
					return
				}
			}
		}()
		for sent := 0; sent < 20; {
			if err := setup.QueryRow(d.context(), "select count(*) from sent").Scan(&sent); err != nil {
				t.Fatal(err)
			}
		}
		far.end(syscall.SIGKILL)
		rows, queryErr := setup.Query(d.context(), "select id::text from sent order by sent.id")
		if queryErr != nil {
			t.Fatal(queryErr)
		}
		committed, queryErr := pgx.CollectRows(rows, pgx.RowTo[string])
		if queryErr != nil {
			t.Fatal(queryErr)
		}
		payloads, err := received(listener, len(committed))
		t.Logf("round %d: %d committed, %d received, %v", round, len(committed), len(payloads), err)
		switch {
		case len(payloads) > len(committed) || !slices.Equal(payloads, committed[:len(payloads)]):
			t.Fatalf("%d notifications of %d commits", len(payloads), len(committed))
		case len(payloads) < len(committed) && code(err) != "57P02":
			t.Errorf("a listener that lacks %d notifications: %v", len(committed)-len(payloads), err)
		case err != nil && code(err) != "57P02":
			t.Errorf("the listener's connection: %v", err)
		}
		far.start()
	}

	listener = near.connect()
	d.exec(listener, "listen c")
	d.tso.end(syscall.SIGKILL)
	if _, err := listener.WaitForNotification(d.context()); code(err) != "57P02" {
		t.Errorf("without the tso process: %v", err)
	}
	d.tso.start()
	again := func() error {
		listener, sender = near.connect(), far.connect()
		defer listener.Close(context.Background())
		defer sender.Close(context.Background())
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, err := listener.Exec(ctx, "listen c"); err != nil {
			return err
		}
		if _, err := sender.Exec(ctx, "notify c, 'again'"); err != nil {
			return err
		}
		_, err := listener.WaitForNotification(ctx)
		return err
	}
	for deadline := time.Now().Add(waitTimeout); ; time.Sleep(100 * time.Millisecond) {
		err := again()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the restart of the tso process: %v", err)
		}
	}
}
