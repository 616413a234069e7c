package mysqlimport

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/internal/loading"
	"github.com/percodb/percodb/sql/ast"
)

// The server stores the state of an unfinished import: the import, its tables, and the loaded batches. A batch and its
// row are committed together. An import that ends deletes its rows, and the schema if no other import is unfinished.
var stateTables = []string{
	"CREATE SCHEMA IF NOT EXISTS percodb_import",
	"CREATE TABLE IF NOT EXISTS percodb_import.job (id text PRIMARY KEY, paths text NOT NULL, started timestamptz NOT NULL DEFAULT now())",
	"CREATE TABLE IF NOT EXISTS percodb_import.made (job text, schema_name text, table_name text, PRIMARY KEY (job, schema_name, table_name))",
	"CREATE TABLE IF NOT EXISTS percodb_import.batch (job text, file int, start bigint, PRIMARY KEY (job, file, start))",
}

// batchKey is the primary key of a batch.
type batchKey struct {
	file  int
	start int64
}

// state is what earlier runs of this import have done.
type state struct {
	job     string
	resumed bool
	done    map[batchKey]bool
	made    map[string]bool // tables, by their labels
}

// openState reads the state of earlier runs, or creates it.
func openState(ctx context.Context, conn *pgx.Conn, job, paths string) (*state, error) {
	st := &state{job: job, done: map[batchKey]bool{}, made: map[string]bool{}}
	for _, q := range stateTables {
		if _, err := conn.Exec(ctx, q); err != nil && !loading.HasCode(err, "42P06", "42P07", "23505") { // created by another run at the same time
			return nil, err
		}
	}
	tag, err := conn.Exec(ctx, "INSERT INTO percodb_import.job (id, paths) VALUES ($1, $2) ON CONFLICT DO NOTHING", job, paths)
	if err != nil {
		return nil, err
	}
	st.resumed = tag.RowsAffected() == 0
	rows, err := conn.Query(ctx, "SELECT file, start FROM percodb_import.batch WHERE job = $1", job)
	if err != nil {
		return nil, err
	}
	var key batchKey
	if _, err := pgx.ForEachRow(rows, []any{&key.file, &key.start}, func() error { st.done[key] = true; return nil }); err != nil {
		return nil, err
	}
	rows, err = conn.Query(ctx, "SELECT schema_name, table_name FROM percodb_import.made WHERE job = $1", job)
	if err != nil {
		return nil, err
	}
	var schema, name string
	_, err = pgx.ForEachRow(rows, []any{&schema, &name}, func() error { st.made[schema+"."+name] = true; return nil })
	return st, err
}

// close deletes the state of the import in one transaction, since a batch without a row would be loaded again.
func (st *state) close(ctx context.Context, conn *pgx.Conn) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, q := range []string{
			"DELETE FROM percodb_import.made WHERE job = $1", "DELETE FROM percodb_import.batch WHERE job = $1", "DELETE FROM percodb_import.job WHERE id = $1",
		} {
			if _, err := tx.Exec(ctx, q, st.job); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return dropState(ctx, conn)
}

// dropState drops the schema if no import is unfinished.
func dropState(ctx context.Context, conn *pgx.Conn) error {
	var left bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM percodb_import.job)").Scan(&left); err != nil || left {
		return err
	}
	_, err := conn.Exec(ctx, "DROP SCHEMA percodb_import CASCADE")
	return err
}

// restart drops the tables of unfinished imports, and their state.
func restart(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "SELECT DISTINCT schema_name, table_name FROM percodb_import.made")
	if loading.HasCode(err, "42P01", "3F000") {
		return nil
	}
	var names []string
	if err == nil {
		var schema, name string
		_, err = pgx.ForEachRow(rows, []any{&schema, &name}, func() error {
			names = append(names, ast.QuoteIdent(schema)+"."+ast.QuoteIdent(name))
			return nil
		})
	}
	if loading.HasCode(err, "42P01", "3F000") {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := conn.Exec(ctx, "DROP TABLE IF EXISTS "+name); err != nil {
			return fmt.Errorf("dropping %s: %w", name, err)
		}
	}
	_, err = conn.Exec(ctx, "DROP SCHEMA percodb_import CASCADE")
	return err
}
