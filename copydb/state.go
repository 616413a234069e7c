package copydb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/internal/loading"
)

// The target has the state of an unfinished copy: the job, the statements of the schema that have been executed, and the chunks of rows.
// A statement or a chunk and its row are committed together. A copy that ends drops the schema.
var stateTables = []string{
	"CREATE SCHEMA IF NOT EXISTS percodb_copy",
	"CREATE TABLE IF NOT EXISTS percodb_copy.job (id text PRIMARY KEY, source text NOT NULL, snapshot text NOT NULL, started timestamptz NOT NULL DEFAULT now())",
	"CREATE TABLE IF NOT EXISTS percodb_copy.step (object text PRIMARY KEY, refused text)",
	"CREATE TABLE IF NOT EXISTS percodb_copy.planned (table_name text PRIMARY KEY)",
	`CREATE TABLE IF NOT EXISTS percodb_copy.chunk (table_name text, n int, lower text[], upper text[], snapshot text, loaded bigint, checksum bigint,
		PRIMARY KEY (table_name, n))`,
}

// state is what earlier runs have done.
type state struct {
	resumed  bool
	snapshot string // of the last run
	done     map[string]bool
	refused  []Refusal
	planned  map[string]bool
	chunks   map[string][]*chunk
}

// openState reads the state of earlier runs, or creates it.
func openState(ctx context.Context, conn *pgx.Conn, target *side, job, source string) (*state, error) {
	st := &state{done: map[string]bool{}, planned: map[string]bool{}, chunks: map[string][]*chunk{}}
	var id, other string
	err := conn.QueryRow(ctx, "SELECT id, source, snapshot FROM percodb_copy.job").Scan(&id, &other, &st.snapshot)
	switch {
	case err == pgx.ErrNoRows || loading.HasCode(err, "42P01", "3F000"):
		if err := target.checkEmpty(ctx, conn); err != nil {
			return nil, err
		}
		return st, st.create(ctx, conn, job, source)
	case err != nil:
		return nil, err
	case id != job:
		return nil, fmt.Errorf("the database has an unfinished copy of %s: complete it by its own command, or drop what it has made with --restart", other)
	}
	st.resumed = true
	return st, st.read(ctx, conn)
}

func (st *state) create(ctx context.Context, conn *pgx.Conn, job, source string) error {
	for _, q := range stateTables {
		if _, err := conn.Exec(ctx, q); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, "INSERT INTO percodb_copy.job (id, source, snapshot) VALUES ($1, $2, '')", job, source)
	return err
}

func (st *state) read(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "SELECT object, refused FROM percodb_copy.step")
	if err != nil {
		return err
	}
	var object string
	var refused *string
	if _, err = pgx.ForEachRow(rows, []any{&object, &refused}, func() error {
		st.done[object] = true
		if refused != nil {
			st.refused = append(st.refused, Refusal{Object: object, Reason: *refused})
		}
		return nil
	}); err != nil {
		return err
	}
	if rows, err = conn.Query(ctx, "SELECT table_name FROM percodb_copy.planned"); err != nil {
		return err
	}
	var table string
	if _, err = pgx.ForEachRow(rows, []any{&table}, func() error { st.planned[table] = true; return nil }); err != nil {
		return err
	}
	if rows, err = conn.Query(ctx, "SELECT table_name, n, lower, upper, snapshot, loaded, checksum FROM percodb_copy.chunk ORDER BY table_name, n"); err != nil {
		return err
	}
	var c chunk
	_, err = pgx.ForEachRow(rows, []any{&table, &c.n, &c.lower, &c.upper, &c.snapshot, &c.loaded, &c.checksum}, func() error {
		read := c
		st.chunks[table] = append(st.chunks[table], &read)
		c = chunk{}
		return nil
	})
	return err
}

// useSnapshot notes the snapshot of this run.
func (st *state) useSnapshot(ctx context.Context, conn *pgx.Conn, id string) error {
	_, err := conn.Exec(ctx, "UPDATE percodb_copy.job SET snapshot = $1", id)
	return err
}

// savePlan stores the chunks of a table.
func (st *state) savePlan(ctx context.Context, conn *pgx.Conn, table string, chunks []*chunk) error {
	err := loading.InTransaction(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO percodb_copy.planned (table_name) VALUES ($1)", table); err != nil {
			return err
		}
		for _, c := range chunks {
			if _, err := tx.Exec(ctx, "INSERT INTO percodb_copy.chunk (table_name, n, lower, upper) VALUES ($1, $2, $3, $4)", table, c.n, c.lower, c.upper); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		st.planned[table], st.chunks[table] = true, chunks
	}
	return err
}

// closeState drops the state when all is done.
func closeState(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "DROP SCHEMA percodb_copy CASCADE")
	return err
}

// dropQueries return the statements that empty a database. The schema public stays, with its owner and its comment.
var dropQueries = []string{
	`SELECT 'the extension ' || extname, 'DROP EXTENSION IF EXISTS ' || quote_ident(extname) || ' CASCADE' FROM pg_extension
		WHERE extname NOT IN ('plpgsql', 'percodb') AND $1::oid[] IS NOT NULL`,
	`SELECT 'the schema ' || n.nspname, 'DROP SCHEMA IF EXISTS ' || quote_ident(n.nspname) || ' CASCADE' FROM pg_namespace n
		WHERE n.nspname <> 'public' AND {users} AND $1::oid[] IS NOT NULL`,
	`SELECT {table}, 'DROP ' || CASE c.relkind WHEN 'v' THEN 'VIEW ' WHEN 'm' THEN 'MATERIALIZED VIEW ' WHEN 'S' THEN 'SEQUENCE ' WHEN 'c' THEN 'TYPE ' ELSE 'TABLE ' END || 'IF EXISTS ' || {table} || ' CASCADE'
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'c') AND {users} AND $1::oid[] IS NOT NULL ORDER BY c.relkind = 'S'`,
	`SELECT p.proname::text, 'DROP ROUTINE IF EXISTS ' || quote_ident(n.nspname) || '.' || quote_ident(p.proname) || '(' || pg_get_function_identity_arguments(p.oid) || ') CASCADE'
		FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {users} AND $1::oid[] IS NOT NULL`,
	`SELECT t.typname::text, 'DROP TYPE IF EXISTS ' || quote_ident(n.nspname) || '.' || quote_ident(t.typname) || ' CASCADE'
		FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype IN ('e', 'd', 'r') AND {users} AND $1::oid[] IS NOT NULL`,
	`SELECT o.collname::text, 'DROP COLLATION IF EXISTS ' || quote_ident(n.nspname) || '.' || quote_ident(o.collname) || ' CASCADE'
		FROM pg_collation o JOIN pg_namespace n ON n.oid = o.collnamespace WHERE {users} AND $1::oid[] IS NOT NULL`,
	`SELECT f.cfgname::text, 'DROP TEXT SEARCH CONFIGURATION IF EXISTS ' || quote_ident(n.nspname) || '.' || quote_ident(f.cfgname) || ' CASCADE'
		FROM pg_ts_config f JOIN pg_namespace n ON n.oid = f.cfgnamespace WHERE {users} AND $1::oid[] IS NOT NULL`,
	`SELECT d.dictname::text, 'DROP TEXT SEARCH DICTIONARY IF EXISTS ' || quote_ident(n.nspname) || '.' || quote_ident(d.dictname) || ' CASCADE'
		FROM pg_ts_dict d JOIN pg_namespace n ON n.oid = d.dictnamespace WHERE {users} AND $1::oid[] IS NOT NULL`,
}

// restart drops what an unfinished copy has made. The target was empty when it began, so all that users have is its.
func restart(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'percodb_copy')").Scan(&there); err != nil || !there {
		return err
	}
	for _, query := range dropQueries {
		pairs, err := readPairs(ctx, conn, prepare(query), []uint32{})
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if _, err := conn.Exec(ctx, p[1]); err != nil {
				return fmt.Errorf("drop %s: %w", p[0], err)
			}
		}
	}
	return closeState(ctx, conn)
}
