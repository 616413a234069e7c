package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Status is a value of the enum ticket_status.
type Status string

// The statuses of tickets.
const (
	Open    Status = "open"
	Waiting Status = "waiting"
	Closed  Status = "closed"
)

// Ticket is a row of tickets.
type Ticket struct {
	ID                   int64
	Subject              string
	Status               Status
	Details              map[string]any
	CreatedAt, UpdatedAt time.Time
}

// Store is the application's access to its tables. Safe for concurrent use.
type Store struct{ Pool *pgxpool.Pool }

// PrepareMonths makes the partitions of events for the month of a time and those that follow.
func (s *Store) PrepareMonths(ctx context.Context, from time.Time, months int) error {
	for i := range months {
		month := time.Date(from.Year(), from.Month()+time.Month(i), 1, 0, 0, 0, 0, time.UTC)
		if _, err := s.Pool.Exec(ctx, "SELECT create_events_month($1)", month); err != nil {
			return err
		}
	}
	return nil
}

// Account returns the id of the account with an e-mail address, which it makes if there is none.
func (s *Store) Account(ctx context.Context, email, name string) (id int64, err error) {
	const upsert = `INSERT INTO accounts (email, name) VALUES ($1, $2)
		ON CONFLICT (lower(email)) DO UPDATE SET name = excluded.name RETURNING id`
	return id, s.Pool.QueryRow(ctx, upsert, email, name).Scan(&id)
}

// Open makes a ticket, and the event that it was opened, in one transaction.
func (s *Store) Open(ctx context.Context, account int64, subject string, details map[string]any) (id int64, err error) {
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		const insert = "INSERT INTO tickets (account_id, subject, details) VALUES ($1, $2, $3) RETURNING id"
		if err := tx.QueryRow(ctx, insert, account, subject, details).Scan(&id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO events (ticket_id, kind) VALUES ($1, 'opened')", id)
		return err
	})
	return id, err
}

// SetStatus changes a ticket's status. Triggers set updated_at and record the event.
func (s *Store) SetStatus(ctx context.Context, id int64, status Status) error {
	_, err := s.Pool.Exec(ctx, "UPDATE tickets SET status = $2 WHERE id = $1", id, status)
	return err
}

// Find lists the tickets whose details contain the given ones, by the GIN index.
func (s *Store) Find(ctx context.Context, details map[string]any) ([]Ticket, error) {
	const find = "SELECT id, subject, status, details, created_at, updated_at FROM tickets WHERE details @> $1 ORDER BY id"
	rows, err := s.Pool.Query(ctx, find, details)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Ticket])
}

// KindCount is how many events of a kind there were.
type KindCount struct {
	Kind   string
	Events int64
}

// Report counts the events of the month of a time: of the partitions only that month's is read.
func (s *Store) Report(ctx context.Context, in time.Time) ([]KindCount, error) {
	from := time.Date(in.Year(), in.Month(), 1, 0, 0, 0, 0, time.UTC)
	rows, err := s.Pool.Query(ctx, "SELECT kind, count(*) FROM events WHERE at >= $1 AND at < $2 GROUP BY kind ORDER BY kind", from, from.AddDate(0, 1, 0))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[KindCount])
}
