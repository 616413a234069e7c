package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/percodb/percodb/client/observer"
	"github.com/percodb/percodb/examples/deploy"
)

var schema = []string{
	`DROP TABLE IF EXISTS orders, counted, leaderboard`,
	`CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount int NOT NULL, state text NOT NULL)`,
	// What each order contributes to the leaderboard: changes are collapsed, so the row before a change is not delivered.
	`CREATE TABLE counted (id int PRIMARY KEY, customer int NOT NULL, amount int NOT NULL)`,
	`CREATE TABLE leaderboard (customer int PRIMARY KEY, total bigint NOT NULL, orders int NOT NULL)`,
	`CREATE OBSERVER orders_changed ON orders`,
}

// create makes empty tables and the observer.
func create(ctx context.Context, pool *pgxpool.Pool) error {
	for _, sql := range schema {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%.40s…: %w", sql, err)
		}
	}
	return nil
}

// score is a customer's part of the leaderboard, or a change of it.
type score struct {
	total  int64
	orders int
}

// project brings the leaderboard up to date with changed orders: it subtracts what they have contributed, and adds what they
// contribute now.
func project(ctx context.Context, tx pgx.Tx, changes []observer.Change) error {
	ids := make([]int32, len(changes))
	for i, c := range changes {
		ids[i] = c.Key[0].(int32)
	}
	scores := map[int32]score{}
	add := func(customer, amount int32, sign int) {
		s := scores[customer]
		s.total += int64(sign) * int64(amount)
		s.orders += sign
		scores[customer] = s
	}
	rows, err := tx.Query(ctx, `SELECT customer, amount FROM counted WHERE id = ANY ($1)`, ids)
	if err != nil {
		return err
	}
	var customer, amount int32
	if _, err := pgx.ForEachRow(rows, []any{&customer, &amount}, func() error {
		add(customer, amount, -1)
		return nil
	}); err != nil {
		return err
	}
	var batch pgx.Batch
	batch.Queue(`DELETE FROM counted WHERE id = ANY ($1)`, ids)
	for i, c := range changes {
		if c.Deleted || c.Row["state"] != "paid" {
			continue
		}
		customer, amount := c.Row["customer"].(int32), c.Row["amount"].(int32)
		add(customer, amount, 1)
		batch.Queue(`INSERT INTO counted VALUES ($1, $2, $3)`, ids[i], customer, amount)
	}
	for _, customer := range slices.Sorted(maps.Keys(scores)) { // in one order, so that transactions do not deadlock
		if s := scores[customer]; s != (score{}) {
			batch.Queue(`INSERT INTO leaderboard VALUES ($1, $2, $3) ON CONFLICT (customer)
				DO UPDATE SET total = leaderboard.total + excluded.total, orders = leaderboard.orders + excluded.orders`, customer, s.total, s.orders)
		}
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// check waits until the changes before it are handled, and compares the leaderboard with one computed from the orders.
func check(ctx context.Context, pool *pgxpool.Pool) error {
	err := deploy.Again(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		_, err := pool.Exec(ctx, "WAIT FOR OBSERVER orders_changed")
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the observer: %w", err)
	}
	const derived = `SELECT customer, total, orders FROM leaderboard WHERE orders <> 0 OR total <> 0`
	const computed = `SELECT customer, sum(amount)::bigint, count(*)::int FROM orders WHERE state = 'paid' GROUP BY customer`
	var rows, differences int
	err = deploy.Again(ctx, func(ctx context.Context) error {
		return pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM (`+derived+`) d),
			(SELECT count(*) FROM (`+derived+` EXCEPT `+computed+`) w) + (SELECT count(*) FROM (`+computed+` EXCEPT `+derived+`) m)`).
			Scan(&rows, &differences)
	})
	if err != nil {
		return err
	}
	fmt.Printf("leaderboard: %d customers, %d differences from a recomputation\n", rows, differences)
	if differences > 0 {
		return fmt.Errorf("the leaderboard differs from a recomputation")
	}
	return printFirst(ctx, pool)
}

// printFirst prints the first customers of the leaderboard.
func printFirst(ctx context.Context, pool *pgxpool.Pool) error {
	return deploy.Again(ctx, func(ctx context.Context) error {
		rows, err := pool.Query(ctx, `SELECT customer, total, orders FROM leaderboard ORDER BY total DESC LIMIT 3`)
		if err != nil {
			return err
		}
		var customer, orders int
		var total int64
		_, err = pgx.ForEachRow(rows, []any{&customer, &total, &orders}, func() error {
			fmt.Printf("  customer %d: %d in %d orders\n", customer, total, orders)
			return nil
		})
		return err
	})
}
