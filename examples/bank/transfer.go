package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// balance is what each account begins with.
const balance = 1000

// outageLimit is how long a server may be unavailable.
const outageLimit = 60 * time.Second

// bank is the table accounts on a server.
type bank struct {
	url      string
	accounts int

	transfers, retries, reconnects, audits atomic.Int64
}

func (b *bank) counters() string {
	return fmt.Sprintf("%d transfers, %d run again after a conflict, %d connections lost, %d audits",
		b.transfers.Load(), b.retries.Load(), b.reconnects.Load(), b.audits.Load())
}

// open makes the accounts.
func (b *bank) open(ctx context.Context) error {
	c := &client{bank: b}
	defer c.close()
	err := c.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range []string{
			"DROP TABLE IF EXISTS accounts",
			"CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0))",
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.inTransaction(ctx, func(tx pgx.Tx) error {
		// The connection may be lost after a commit: what is there already stays.
		_, err := tx.Exec(ctx, "INSERT INTO accounts SELECT i, $1 FROM generate_series(1, $2::int) AS i ON CONFLICT DO NOTHING", balance, b.accounts)
		return err
	})
}

// transferUntil is one client's life.
func (b *bank) transferUntil(ctx context.Context, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0))
	c := &client{bank: b}
	defer c.close()
	for {
		from, to, amount := 1+r.IntN(b.accounts), 1+r.IntN(b.accounts), 1+r.IntN(100)
		if from == to {
			continue
		}
		err := c.inTransaction(ctx, func(tx pgx.Tx) error { return transfer(ctx, tx, from, to, amount) })
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("transfer: %w", err)
		}
		b.transfers.Add(1)
	}
}

// transfer moves money if there is enough.
func transfer(ctx context.Context, tx pgx.Tx, from, to, amount int) error {
	var have int
	if err := tx.QueryRow(ctx, "SELECT balance FROM accounts WHERE id = $1", from).Scan(&have); err != nil {
		return err
	}
	if have < amount {
		return nil
	}
	if _, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance - $1 WHERE id = $2", amount, from); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance + $1 WHERE id = $2", amount, to)
	return err
}

// auditUntil adds the balances up, again and again.
func (b *bank) auditUntil(ctx context.Context) error {
	report := time.NewTicker(time.Second)
	defer report.Stop()
	for {
		total, err := b.audit(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("audit: %w", err)
		}
		b.audits.Add(1)
		select {
		case <-report.C:
			fmt.Printf("%s; the total is %d\n", b.counters(), total)
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}

// audit fails if the total is not what it was.
func (b *bank) audit(ctx context.Context) (total int, err error) {
	c := &client{bank: b}
	defer c.close()
	err = c.inTransaction(ctx, func(tx pgx.Tx) error {
		var accounts int
		if err := tx.QueryRow(ctx, "SELECT count(*), coalesce(sum(balance), 0) FROM accounts").Scan(&accounts, &total); err != nil {
			return err
		}
		if accounts != b.accounts || total != b.accounts*balance {
			return fmt.Errorf("%d accounts with a total of %d, want %d with %d", accounts, total, b.accounts, b.accounts*balance)
		}
		return nil
	})
	return total, err
}

// client is a connection that is made again when it is lost.
type client struct {
	bank *bank
	conn *pgx.Conn
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close(context.Background())
		c.conn = nil
	}
}

// inTransaction runs body in a transaction until it commits, or fails permanently. If the connection is lost during
// COMMIT the outcome is unknown. This client then runs the transaction again, because a second transfer does no
// harm; a client that pays a bill must first determine the outcome.
func (c *client) inTransaction(ctx context.Context, body func(pgx.Tx) error) error {
	for {
		err := c.do(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, body)
		})
		if !isConflict(err) {
			return err
		}
		c.bank.retries.Add(1)
		time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
	}
}

// do runs f on a connection, and again on another as often as it is lost.
func (c *client) do(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	deadline := time.Now().Add(outageLimit)
	for {
		err := c.connect(ctx)
		if err == nil {
			if err = f(ctx, c.conn); !isLost(c.conn, err) {
				return err
			}
			if ctx.Err() == nil {
				c.bank.reconnects.Add(1)
			}
			deadline = time.Now().Add(outageLimit)
		}
		c.close()
		if ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *client) connect(ctx context.Context) (err error) {
	if c.conn == nil {
		c.conn, err = pgx.Connect(ctx, c.bank.url)
	}
	return err
}

// isConflict says that the transaction lost to another one and may be run again.
func isConflict(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "40001" || pgErr.Code == "40P01")
}

// isLost says that the connection is of no more use, or the server about to go: the classes 08 and
// 57P, and any error that did not come from the server.
func isLost(conn *pgx.Conn, err error) bool {
	if err == nil {
		return false
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code[:2] == "08" || pgErr.Code[:3] == "57P" || pgErr.Code == "40003"
	}
	return conn.IsClosed()
}
