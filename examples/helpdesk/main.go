// Command helpdesk is the skeleton of an application on percodb or PostgreSQL: migrations by goose, and a store of tickets.
//
//	helpdesk migrate        applies the migrations that the database does not have
//	helpdesk status         lists them
//	helpdesk down           takes the last one back
//	helpdesk demo           opens and closes some tickets, and prints a report
//
// --url names the database.
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

func main() {
	url := flag.String("url", "postgres://postgres@127.0.0.1:5433/percodb", "the database")
	flag.Parse()
	if err := run(context.Background(), *url, flag.Arg(0), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "helpdesk:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, command string, out io.Writer) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if command == "demo" {
		return demo(ctx, &Store{Pool: pool}, out)
	}
	return migrate(ctx, pool, command, out)
}

// migrate runs goose. It keeps the version of the schema in the table goose_db_version.
func migrate(ctx context.Context, pool *pgxpool.Pool, command string, out io.Writer) error {
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return err
	}
	switch command {
	case "migrate":
		results, err := provider.Up(ctx)
		for _, r := range results {
			fmt.Fprintln(out, r)
		}
		return err
	case "down":
		result, err := provider.Down(ctx)
		if err == nil {
			fmt.Fprintln(out, result)
		}
		return err
	case "status":
		all, err := provider.Status(ctx)
		for _, s := range all {
			fmt.Fprintf(out, "%-8s %s\n", s.State, s.Source.Path)
		}
		return err
	}
	return fmt.Errorf("no command %q: migrate, status, down or demo", command)
}

// demo uses the store as an application would.
func demo(ctx context.Context, s *Store, out io.Writer) error {
	now := time.Now()
	if err := s.PrepareMonths(ctx, now, 2); err != nil {
		return err
	}
	account, err := s.Account(ctx, "Ada@example.com", "Ada")
	if err != nil {
		return err
	}
	for i, subject := range []string{"cannot log in", "invoice is wrong", "printer on fire"} {
		id, err := s.Open(ctx, account, subject, map[string]any{"channel": []string{"mail", "phone"}[i%2], "urgent": i == 2})
		if err != nil {
			return err
		}
		if i == 2 {
			continue
		}
		if err := s.SetStatus(ctx, id, Waiting); err != nil {
			return err
		}
		if err := s.SetStatus(ctx, id, Closed); err != nil {
			return err
		}
	}
	urgent, err := s.Find(ctx, map[string]any{"urgent": true})
	if err != nil {
		return err
	}
	for _, t := range urgent {
		fmt.Fprintf(out, "urgent: %s (%s)\n", t.Subject, t.Status)
	}
	counts, err := s.Report(ctx, now)
	for _, c := range counts {
		fmt.Fprintf(out, "%s: %d events\n", c.Kind, c.Events)
	}
	return err
}
