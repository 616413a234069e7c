// Package load loads the TPC-E-like database into a server, or removes it.
//
//	gen.Parts ─► makers ─► batches ─► copiers: a transaction each, COPY by COPY, and the batch's name
//	             (workers)            (workers connections)
//
// The indexes follow, foreign keys if requested, statistics, and at last a summary in tpce_meta.
//
// Invariants:
//
//  1. A batch and its name in tpce_load are committed together, so an interrupted load can be resumed: batches are
//     generated again, and those whose names are in tpce_load are omitted.
//  2. tpce_meta has the state "loaded" only after everything else. Before, it has "loading" and the
//     settings; a load with other settings is refused until the rest of the old one is dropped.
//
// The package uses SQL that PostgreSQL and percodb have in common, whatever the server. It prints nothing: callers show
// Progress and Summary.
package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/schema"
	"github.com/percodb/percodb/internal/loading"
)

// Settings determine the contents of a load. They are stored in the database.
type Settings struct {
	Scale       gen.Scale `json:"scale"`
	ForeignKeys bool      `json:"foreign_keys"`
	Generator   int       `json:"generator_version"`
	// CheckerIndexes are additional: they serve checks of a database, and slow runs down.
	CheckerIndexes bool `json:"checker_indexes,omitempty"`
}

// Options configure a load.
type Options struct {
	URLs        []string // connections go to one after the other
	Scale       gen.Scale
	ForeignKeys bool
	// CheckerIndexes are those of schema.CheckerIndexes.
	CheckerIndexes bool
	Workers        int              // connections; 4 if 0
	Progress       loading.Progress // nil: no progress
}

// Summary is the result of a load.
type Summary struct {
	Rows    [schema.Count]int64 // of the whole database
	Copied  int64               // rows of this load; an earlier one has loaded the others
	Resumed bool
	Copy    time.Duration // the rows
	Index   time.Duration // indexes and foreign keys
	Total   time.Duration
}

// States of a database, as tpce_meta's key "state".
const (
	stateLoading  = "loading"
	stateLoaded   = "loaded"
	stateDropping = "dropping"
)

// undefinedTable is the SQLSTATE of a query of a table that does not exist.
const undefinedTable = "42P01"

// ErrLoaded: the database is already complete, with the same settings.
var ErrLoaded = errors.New("the database is loaded already")

// ErrDropping: dropping the database was interrupted, and must be completed first.
var ErrDropping = errors.New("the database was dropped in part; `percodb bench tpce drop` completes it")

// OtherError: the database contains a load, complete or not, with other settings.
type OtherError struct{ Found, Wanted Settings }

func (e *OtherError) Error() string {
	found, _ := json.Marshal(e.Found) // numbers and booleans always marshal
	wanted, _ := json.Marshal(e.Wanted)
	return fmt.Sprintf("the database has been loaded with other settings: %s, not %s; drop it first", found, wanted)
}

// Run loads the database, or what is missing of it. It returns ErrLoaded if nothing is, an *OtherError if the database
// has other settings, and errors of the server or ctx. The next Run continues an interrupted one.
func Run(ctx context.Context, o Options) (Summary, error) {
	began := time.Now()
	var sum Summary
	g, err := gen.New(o.Scale)
	if err != nil {
		return sum, err
	}
	if o.Workers <= 0 {
		o.Workers = 4
	}
	if o.Progress == nil {
		o.Progress = loading.Discard{}
	}
	conn, err := pgx.Connect(ctx, o.URLs[0])
	if err != nil {
		return sum, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	done, err := prepare(ctx, conn, Settings{Scale: o.Scale, ForeignKeys: o.ForeignKeys, CheckerIndexes: o.CheckerIndexes, Generator: gen.GeneratorVersion})
	if err != nil {
		return sum, err
	}
	sum.Resumed = len(done) > 0
	o.Progress.Phase("rows", o.Scale.Total())
	if err := copyAll(ctx, o, g, done, &sum); err != nil {
		return sum, err
	}
	sum.Copy = time.Since(began)
	if err := finish(ctx, conn, o); err != nil {
		return sum, err
	}
	sum.Index = time.Since(began) - sum.Copy
	err = record(ctx, conn, g, &sum)
	sum.Total = time.Since(began)
	return sum, err
}

// prepare creates the tables, or reads which batches an interrupted load has loaded.
func prepare(ctx context.Context, conn *pgx.Conn, s Settings) (map[string]bool, error) {
	meta, err := readMeta(ctx, conn)
	if err != nil {
		return nil, err
	}
	if meta != nil {
		if meta["state"] == stateDropping {
			return nil, ErrDropping
		}
		var found Settings
		if err := json.Unmarshal([]byte(meta["settings"]), &found); err != nil {
			return nil, fmt.Errorf("%s holds settings that are not of this program: %w", schema.MetaTable, err)
		}
		if found != s {
			return nil, &OtherError{Found: found, Wanted: s}
		}
		if meta["state"] == stateLoaded {
			return nil, ErrLoaded
		}
		return batchesDone(ctx, conn)
	}
	if err := createTables(ctx, conn, s); err != nil {
		return nil, err
	}
	return nil, nil
}

// createTables creates all tables. It first drops what an interrupted run has left: without the settings in tpce_meta,
// which come last, there are no rows yet.
func createTables(ctx context.Context, conn *pgx.Conn, s Settings) error {
	for _, own := range []string{schema.LoadTable, schema.MetaTable} {
		if _, err := conn.Exec(ctx, "DROP TABLE IF EXISTS "+own); err != nil {
			return err
		}
	}
	for t := schema.Count - 1; t >= 0; t-- {
		if err := dropIfEmpty(ctx, conn, t); err != nil {
			return err
		}
	}
	statements := schema.CreateOwn()
	for t := range schema.Count {
		statements = append(statements, t.Create())
	}
	for _, q := range statements {
		if _, err := conn.Exec(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	if s.ForeignKeys {
		if err := tryForeignKey(ctx, conn); err != nil {
			return err
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "INSERT INTO "+schema.MetaTable+" (k, v) VALUES ('state', $1), ('settings', $2)", stateLoading, string(text))
	return err
}

// tryForeignKey tests whether the server has foreign keys, before a long load rather than after it.
func tryForeignKey(ctx context.Context, conn *pgx.Conn) error {
	fk := schema.ForeignKeys()[0]
	if _, err := conn.Exec(ctx, fk.Create()); err != nil {
		return fmt.Errorf("the server takes no foreign keys, leave them out: %w", err)
	}
	_, err := conn.Exec(ctx, "ALTER TABLE "+fk.Table.String()+" DROP CONSTRAINT "+fk.Name())
	return err
}

// dropIfEmpty drops a table that has no rows. One with rows is foreign: names like customer are common.
func dropIfEmpty(ctx context.Context, conn *pgx.Conn, t schema.Table) error {
	rows, err := conn.Query(ctx, "SELECT 1 FROM "+t.String()+" LIMIT 1")
	if err == nil {
		found := rows.Next()
		rows.Close()
		if err = rows.Err(); err == nil && found {
			return fmt.Errorf("table %s exists and has rows that are not of this program; use a database of its own", t)
		}
	}
	if loading.HasCode(err, undefinedTable) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "DROP TABLE "+t.String())
	return err
}

// readMeta returns the contents of tpce_meta, or nil if it does not exist or is empty.
func readMeta(ctx context.Context, conn *pgx.Conn) (map[string]string, error) {
	rows, err := conn.Query(ctx, "SELECT k, v FROM "+schema.MetaTable)
	if err == nil {
		meta := map[string]string{}
		var k, v string
		_, err = pgx.ForEachRow(rows, []any{&k, &v}, func() error { meta[k] = v; return nil })
		if err == nil && len(meta) > 0 {
			return meta, nil
		}
	}
	if loading.HasCode(err, undefinedTable) {
		return nil, nil
	}
	return nil, err
}

func batchesDone(ctx context.Context, conn *pgx.Conn) (map[string]bool, error) {
	rows, err := conn.Query(ctx, "SELECT batch FROM "+schema.LoadTable)
	if err != nil {
		return nil, err
	}
	done := map[string]bool{}
	var name string
	_, err = pgx.ForEachRow(rows, []any{&name}, func() error { done[name] = true; return nil })
	return done, err
}

// finish creates indexes and foreign keys, and analyzes the tables.
func finish(ctx context.Context, conn *pgx.Conn, o Options) error {
	var steps []string
	for _, index := range schema.Indexes() {
		steps = append(steps, index.Create())
	}
	if o.CheckerIndexes {
		for _, index := range schema.CheckerIndexes() {
			steps = append(steps, index.Create())
		}
	}
	if o.ForeignKeys {
		keys, err := constraints(ctx, conn)
		if err != nil {
			return err
		}
		for _, fk := range schema.ForeignKeys() {
			if !keys[fk.Name()] {
				steps = append(steps, fk.Create())
			}
		}
	}
	steps = append(steps, "ANALYZE")
	o.Progress.Phase("indexes", int64(len(steps)))
	for _, q := range steps {
		if _, err := conn.Exec(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
		o.Progress.Add(1)
	}
	return nil
}

// constraints returns the names of the existing foreign keys.
func constraints(ctx context.Context, conn *pgx.Conn) (map[string]bool, error) {
	rows, err := conn.Query(ctx, `SELECT conname FROM pg_constraint
WHERE contype = 'f' AND connamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())`)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	var name string
	_, err = pgx.ForEachRow(rows, []any{&name}, func() error { names[name] = true; return nil })
	return names, err
}

// record writes what was loaded, which marks the load as complete.
func record(ctx context.Context, conn *pgx.Conn, g *gen.Generator, sum *Summary) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		put := func(k, v string) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+schema.MetaTable+" (k, v) VALUES ($1, $2)", k, v)
			return err
		}
		for t, n := range sum.Rows {
			if err := put("rows."+schema.Table(t).String(), fmt.Sprint(n)); err != nil {
				return err
			}
		}
		if err := put("max_loaded_trade_id", fmt.Sprint(g.MaxTradeID())); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM "+schema.LoadTable); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE "+schema.MetaTable+" SET v = $1 WHERE k = 'state'", stateLoaded)
		return err
	})
}

// Drop removes the database, complete or not. It returns false if there was nothing to remove.
func Drop(ctx context.Context, url string) (bool, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	meta, err := readMeta(ctx, conn)
	if err != nil || meta == nil {
		return false, err
	}
	if _, err := conn.Exec(ctx, "UPDATE "+schema.MetaTable+" SET v = $1 WHERE k = 'state'", stateDropping); err != nil {
		return false, err
	}
	for _, q := range schema.Drop() {
		if _, err := conn.Exec(ctx, q); err != nil {
			return false, fmt.Errorf("%s: %w", q, err)
		}
	}
	return true, nil
}

// Keys of tpce_meta that runs add, and that are of use beyond them.
const (
	KeyRuns         = "runs"          // how many runs there were
	KeyIdentity     = "identity"      // of the database: random, made by the first run
	KeyBrokerWrites = "broker_writes" // how runs have counted what brokers sold
)

// Loaded is a database whose load is complete.
type Loaded struct {
	Settings   Settings
	Rows       [schema.Count]int64
	MaxTradeID int64 // trades of the run have higher ids
	// What runs have left, as the keys above: 0 and "" before the first.
	Runs                   int64
	Identity, BrokerWrites string
}

// Read returns what was loaded, in the transaction or connection given.
func Read(ctx context.Context, conn *pgx.Conn) (Loaded, error) {
	var l Loaded
	meta, err := readMeta(ctx, conn)
	switch {
	case err != nil:
		return l, err
	case meta == nil:
		return l, errors.New("there is no TPC-E-like database here; `percodb bench tpce init` makes one")
	case meta["state"] == stateDropping:
		return l, ErrDropping
	case meta["state"] != stateLoaded:
		return l, errors.New("the load was interrupted; `percodb bench tpce init` with the same flags completes it")
	}
	if err := json.Unmarshal([]byte(meta["settings"]), &l.Settings); err != nil {
		return l, fmt.Errorf("settings in %s: %w", schema.MetaTable, err)
	}
	if l.Settings.Generator != gen.GeneratorVersion {
		return l, fmt.Errorf("the database is of generator %d, this program's is %d; drop it and load it again", l.Settings.Generator, gen.GeneratorVersion)
	}
	if _, err := fmt.Sscan(meta["max_loaded_trade_id"], &l.MaxTradeID); err != nil {
		return l, fmt.Errorf("max_loaded_trade_id in %s: %w", schema.MetaTable, err)
	}
	for t := range l.Rows {
		if _, err := fmt.Sscan(meta["rows."+schema.Table(t).String()], &l.Rows[t]); err != nil {
			return l, fmt.Errorf("rows of %s in %s: %w", schema.Table(t), schema.MetaTable, err)
		}
	}
	l.Identity, l.BrokerWrites = meta[KeyIdentity], meta[KeyBrokerWrites]
	if runs := meta[KeyRuns]; runs != "" {
		if _, err := fmt.Sscan(runs, &l.Runs); err != nil {
			return l, fmt.Errorf("%s in %s: %w", KeyRuns, schema.MetaTable, err)
		}
	}
	return l, nil
}
