package copydb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/internal/loading"
	"github.com/percodb/percodb/sql/ast"
)

// serverKind is the kind of a server.
type serverKind int

const (
	postgres serverKind = iota
	percodb
)

// side is the source or the target.
type side struct {
	name string // "source" or "target"
	url  string
	kind serverKind
}

// SideError is an error of one of the two servers.
type SideError struct {
	Side string // "source" or "target"
	Err  error
}

func (e *SideError) Error() string { return e.Side + ": " + e.Err.Error() }
func (e *SideError) Unwrap() error { return e.Err }

func (s *side) wrap(err error) error {
	var has *SideError
	if err == nil || errors.As(err, &has) {
		return err
	}
	return &SideError{Side: s.name, Err: err}
}

// settings make both servers write values alike, and read what the other has written. Names have their schemas since the search
// path is empty.
var settings = []string{
	"SET search_path = ''", "SET datestyle = ISO", "SET intervalstyle = postgres", "SET extra_float_digits = 3", "SET bytea_output = hex", "SET timezone = 'UTC'",
	"SET client_encoding = 'UTF8'", "SET standard_conforming_strings = on", "SET check_function_bodies = off", "SET row_security = off",
	"SET statement_timeout = 0", "SET lock_timeout = 0", "SET idle_in_transaction_session_timeout = 0",
}

// connect opens a connection with the settings.
func (s *side) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(s.url)
	if err != nil {
		return nil, s.wrap(err)
	}
	config.RuntimeParams["application_name"] = "percodb copy"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, s.wrap(err)
	}
	for _, q := range settings {
		if _, err := conn.Exec(ctx, q); err != nil {
			conn.Close(ctx)
			return nil, s.wrap(err)
		}
	}
	var version string
	if err := conn.QueryRow(ctx, "SELECT version()").Scan(&version); err != nil {
		conn.Close(ctx)
		return nil, s.wrap(err)
	}
	s.kind = postgres
	if strings.Contains(version, "percodb") {
		s.kind = percodb
	}
	return conn, nil
}

// snapshot is a state of the source that several connections read.
type snapshot struct {
	id string // equal for snapshots of one state
	// begin are the statements that begin a transaction with the snapshot.
	begin []string
	held  *pgx.Conn // keeps it readable
}

// takeSnapshot begins the snapshot of a job: with percodb that of earlier runs, by its time.
func (s *side) takeSnapshot(ctx context.Context, earlier string) (*snapshot, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	snap := &snapshot{held: conn}
	if s.kind == percodb {
		err = snap.atTime(ctx, earlier)
	} else {
		err = snap.export(ctx)
	}
	if err != nil {
		conn.Close(ctx)
		return nil, s.wrap(err)
	}
	return snap, nil
}

// atTime reads percodb's past; at the present time unless an earlier run has chosen one that is still kept.
func (p *snapshot) atTime(ctx context.Context, earlier string) error {
	if earlier != "" {
		p.id, p.begin = earlier, []string{"BEGIN READ ONLY AS OF SYSTEM TIME " + ast.QuoteString(earlier)}
		err := p.hold(ctx)
		if err == nil {
			return nil
		}
		var pg *pgconn.PgError
		if !errors.As(err, &pg) {
			return err
		}
		if _, err := p.held.Exec(ctx, "ROLLBACK"); err != nil {
			return err
		}
	}
	if err := p.held.QueryRow(ctx, "SELECT clock_timestamp()::text").Scan(&p.id); err != nil {
		return err
	}
	p.begin = []string{"BEGIN READ ONLY AS OF SYSTEM TIME " + ast.QuoteString(p.id)}
	return p.hold(ctx)
}

// hold begins a transaction that reads, so that the server keeps the snapshot.
func (p *snapshot) hold(ctx context.Context) error {
	if err := p.enter(ctx, p.held); err != nil {
		return err
	}
	_, err := p.held.Exec(ctx, "SELECT FROM pg_catalog.pg_class LIMIT 1")
	return err
}

// export exports a snapshot of PostgreSQL.
func (p *snapshot) export(ctx context.Context) error {
	const begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	if _, err := p.held.Exec(ctx, begin); err != nil {
		return err
	}
	var exported string
	if err := p.held.QueryRow(ctx, "SELECT pg_export_snapshot(), pg_current_snapshot()::text").Scan(&exported, &p.id); err != nil {
		return err
	}
	p.begin = []string{begin, "SET TRANSACTION SNAPSHOT " + ast.QuoteString(exported)}
	return nil
}

// enter begins a transaction with the snapshot.
func (p *snapshot) enter(ctx context.Context, conn *pgx.Conn) error {
	for _, q := range p.begin {
		if _, err := conn.Exec(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// reader opens a connection with the snapshot.
func (s *side) reader(ctx context.Context, snap *snapshot) (*pgx.Conn, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := snap.enter(ctx, conn); err != nil {
		conn.Close(ctx)
		return nil, s.wrap(err)
	}
	return conn, nil
}

// checkReadable returns an error that names the tables that the source's user may not read.
func (s *side) checkReadable(ctx context.Context, tx querier, excluded []uint32) error {
	pairs, err := readPairs(ctx, tx, prepare(`SELECT {table}, current_user::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'm', 'S') AND {users} AND {kept} AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')) ORDER BY 1`), excluded)
	if err != nil {
		return s.wrap(err)
	}
	if len(pairs) == 0 {
		return nil
	}
	return s.wrap(fmt.Errorf("the user %s may not read %s: GRANT SELECT on them, use the URL of another user, or leave them out with --exclude", pairs[0][1], listNames(pairs)))
}

// checkWritable returns an error if the target's user may not create schemas, or objects are in the way.
func (s *side) checkWritable(ctx context.Context, conn *pgx.Conn) error {
	var may bool
	var user, database string
	if err := conn.QueryRow(ctx, "SELECT has_database_privilege(current_database(), 'CREATE'), current_user::text, current_database()::text").Scan(&may, &user, &database); err != nil {
		return s.wrap(err)
	}
	if !may {
		return s.wrap(fmt.Errorf("the user %s may not create schemas in the database %s: GRANT CREATE ON DATABASE %[2]s TO %[1]s", user, database))
	}
	return nil
}

// checkEmpty returns an error if the target has tables, types or functions of users.
func (s *side) checkEmpty(ctx context.Context, conn *pgx.Conn) error {
	pairs, err := readPairs(ctx, conn, prepare(`SELECT {table}, '' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f', 'c') AND {users} AND $1::oid[] IS NOT NULL AND `+own("pg_class", "c.oid")+` ORDER BY 1`), []uint32{})
	if err != nil {
		return s.wrap(err)
	}
	if len(pairs) > 0 {
		return s.wrap(fmt.Errorf("the database is not empty: it has %s. Copy into a new database, or drop them first", listNames(pairs)))
	}
	return nil
}

// namesShown bounds the names in a message.
const namesShown = 5

func listNames(pairs [][2]string) string {
	var names []string
	for _, p := range pairs[:min(namesShown, len(pairs))] {
		names = append(names, p[0])
	}
	text := strings.Join(names, ", ")
	if n := len(pairs) - namesShown; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// errRunning is the error for a second run of a copy.
var errRunning = errors.New("another percodb copy into this database is running")

// advisoryKey is the key of the lock that one run of percodb copy has at a time in the target.
const advisoryKey = 0x70636f7079 // "pcopy"

// lock takes the lock of the target; it ends with the connection.
func (s *side) lock(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SET lock_timeout = '10s'") // A run that was killed a moment ago still has it.
	if err == nil {
		_, err = conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(advisoryKey))
	}
	if loading.HasCode(err, "55P03") {
		err = errRunning
	}
	if err == nil {
		_, err = conn.Exec(ctx, "SET lock_timeout = 0")
	}
	return s.wrap(err)
}
