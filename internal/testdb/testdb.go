// Package testdb gives tests of clients a place in a server that the environment names.
package testdb

import (
	"context"
	"net/url"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// variable is the environment variable with the URL of a database, PostgreSQL's or percodb's.
const variable = "PERCODB_TEST_PG_DSN"

// Schema makes sure that there is a schema of that name, and returns the database's URL with it alone in the
// search path. Packages are tested at the same time, so each has its own name. Without a database the test
// is skipped.
func Schema(ctx context.Context, t testing.TB, name string) string {
	t.Helper()
	dsn := os.Getenv(variable)
	if dsn == "" {
		t.Skip(variable + " is not set: it is the URL of a database, in which this test makes the schema " + name)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+name); err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	return u.String()
}
