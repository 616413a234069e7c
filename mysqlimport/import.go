// Package mysqlimport loads a dump of mysqldump, mydumper or Dumpling into a server.
//
//	files ─► readers: statements, rows, values ─► batches ─► connections: a transaction each, COPY and the batch's key
//	             │ CREATE TABLE
//	             └──► sql/mysql: percodb's tables
//
// Keys, the next values of AUTO_INCREMENT, comments and statistics follow the rows, then a report of what was mapped,
// how, and what was left out.
//
// Invariants:
//
//  1. Memory is bounded whatever the size of a statement or a line: rows are read one by one, a row is at most 256 MiB,
//     other statements 16 MiB.
//  2. A batch and its row in percodb_import.batch are committed together. Batches are cut by the dump's bytes alone, so a
//     later run of the same files cuts them alike, and leaves out those that are loaded.
//  3. A dump that is malformed or ends early is an error with its file and line; until an import has ended, the schema
//     percodb_import says so.
//  4. Tables that the import has not made are never changed.
package mysqlimport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/internal/loading"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/mysql"
)

// format is part of an import's name: batches of another version are cut differently.
const format = 1

// ZeroDates replaces dates such as 0000-00-00: the text of a date, or "" for NULL.
type ZeroDates string

// Options are the input and the target of an import.
type Options struct {
	Paths    []string
	URL      string
	Workers  int    // connections; 0: 4
	Schema   string // for all tables; "": the name of their database, or public for tables without one
	Exclude  []string
	Zero     ZeroDates
	Numeric  bool   // BIGINT UNSIGNED becomes numeric(20,0) rather than bigint
	Interval bool   // TIME becomes interval rather than time
	TimeZone string // of TIMESTAMP if the dump does not set one; "": UTC
	Restart  bool   // drops the tables of unfinished imports first
	Progress loading.Progress
	// Done, if any, is called once all is loaded, before the server forgets the import: who kills it earlier, and executes it again, is told then.
	Done func(*Report)
}

func (o *Options) zone() string {
	if o.TimeZone == "" {
		return "+00"
	}
	return zoneSuffix(o.TimeZone)
}

// table is a table of the dump.
type table struct {
	*mysql.DumpTable
	label string
	all   []int
	rows  int64
}

// ordinal returns the position of the column with a name, -1 if there is none.
func (t *table) ordinal(name string) int {
	return slices.IndexFunc(t.Columns, func(c mysql.DumpColumn) bool { return strings.EqualFold(c.Name, name) })
}

// importer is one run.
type importer struct {
	o     Options
	files []*dumpFile
	state *state
	conn  *pgx.Conn                           // for definitions
	give  func(context.Context, *batch) error // passes a batch to the connections
	make  func(context.Context, *table) error // makes a table

	buffers sync.Pool

	mu struct {
		sync.Mutex                   // guards what follows, conn and Progress
		tables     map[string]*table // by database and name as written, in lower case
		order      []*table
		charsets   map[string]string // of databases
		schemas    map[string]bool   // that exist
		report     Report
	}
}

// Run imports a dump, or what is missing of it. If Run fails, the report covers what was done until then.
func Run(ctx context.Context, o Options) (*Report, error) {
	began := time.Now()
	if o.Workers <= 0 {
		o.Workers = 4
	}
	if o.Progress == nil {
		o.Progress = loading.Discard{}
	}
	i := &importer{o: o}
	i.make = i.makeTable
	i.mu.tables, i.mu.charsets, i.mu.schemas = map[string]*table{}, map[string]string{}, map[string]bool{}
	i.buffers.New = func() any { return new([]byte) }
	var err error
	if i.files, err = findFiles(o.Paths); err != nil {
		return nil, err
	}
	if i.conn, err = pgx.Connect(ctx, o.URL); err != nil {
		return nil, err
	}
	defer i.conn.Close(context.WithoutCancel(ctx))
	if o.Restart {
		if err := restart(ctx, i.conn); err != nil {
			return nil, err
		}
	}
	job, err := i.name()
	if err != nil {
		return nil, err
	}
	if i.state, err = openState(ctx, i.conn, job, strings.Join(o.Paths, " ")); err != nil {
		return nil, err
	}
	report := &i.mu.report
	report.Resumed = i.state.resumed
	err = i.rows(ctx)
	report.Rows = time.Since(began)
	if err == nil {
		err = i.finish(ctx)
	}
	report.Total = time.Since(began)
	report.fill(i)
	if err == nil {
		report.Complete = true
		if o.Done != nil {
			o.Done(report)
		}
		err = i.state.close(ctx, i.conn)
	}
	return report, err
}

// name returns the import's name: a hash of the files and of the options that change what is loaded.
func (i *importer) name() (string, error) {
	h := xxhash.New()
	fmt.Fprintf(h, "%d\x00%s\x00%s\x00%s\x00%v\x00%v\x00%s\x00", format, i.o.Schema, strings.Join(i.o.Exclude, "\x00"), i.o.Zero, i.o.Numeric, i.o.Interval, i.o.TimeZone)
	for _, f := range i.files {
		if err := f.fingerprint(h); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%016x", h.Sum64()), nil
}

// rows reads the files and loads their rows.
func (i *importer) rows(ctx context.Context) error {
	var total int64
	for _, f := range i.files {
		total += f.size
	}
	i.o.Progress.Phase("bytes", total)
	i.mu.report.Bytes = total
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan *batch)
	i.give = func(ctx context.Context, b *batch) error {
		if b.skip {
			i.loadedBatch(b, false)
			return ctx.Err()
		}
		select {
		case batches <- b:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	group.Go(func() error {
		defer close(batches)
		return i.readAll(ctx)
	})
	for range i.o.Workers {
		group.Go(func() error { return i.copyAll(ctx, batches) })
	}
	return group.Wait()
}

// readAll reads the files in order, those that contain only rows concurrently.
func (i *importer) readAll(ctx context.Context) error {
	var later []*dumpFile
	for _, f := range i.files {
		if f.kind == fileRows {
			later = append(later, f)
			continue
		}
		if err := i.readFile(ctx, f); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(i.o.Workers)
	for _, f := range later {
		group.Go(func() error { return i.readFile(ctx, f) })
	}
	return group.Wait()
}

func (i *importer) readFile(ctx context.Context, f *dumpFile) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	in, done, err := f.open(func(n int) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.o.Progress.Add(int64(n))
	})
	if err != nil {
		return err
	}
	defer done()
	return i.read(ctx, f, in)
}

// buffer returns an empty buffer for a batch.
func (i *importer) buffer() []byte { return (*i.buffers.Get().(*[]byte))[:0] }

// maxKeptBuffer bounds the buffers that are reused.
const maxKeptBuffer = 16 << 20

func (i *importer) release(b *batch) {
	if cap(b.data) <= maxKeptBuffer {
		i.buffers.Put(&b.data)
	}
	b.data = nil
}

func (i *importer) loaded(f *dumpFile, start int64) bool {
	return i.state.done[batchKey{f.index, start}]
}

// loadedBatch counts a batch whose rows are in the server.
func (i *importer) loadedBatch(b *batch, now bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	b.table.rows += b.rows
	if now {
		i.mu.report.Loaded += b.rows
	}
	i.mu.report.addZeros(b.zeros)
}

func (i *importer) leave(l mysql.LeftOut) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.report.leave(l)
}

func (i *importer) setCharset(db, set string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if set != "" {
		i.mu.charsets[db] = set
	}
}

func tableKey(db, name string) string { return strings.ToLower(db) + "\x00" + strings.ToLower(name) }

// find returns the table of an INSERT, nil if the dump has not defined it.
func (i *importer) find(db, name string) (t *table, excluded bool) {
	if i.excluded(db, name) {
		return nil, true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.tables[tableKey(db, name)], false
}

// excluded reports whether --exclude names a table, by its name or by its database and name.
func (i *importer) excluded(db, name string) bool {
	return slices.ContainsFunc(i.o.Exclude, func(x string) bool {
		return strings.EqualFold(x, name) || strings.EqualFold(x, db+"."+name)
	})
}

// schemaOf returns the schema for the tables of a database.
func (i *importer) schemaOf(db string) string {
	switch {
	case i.o.Schema != "":
		return i.o.Schema
	case db != "":
		return strings.ToLower(db)
	}
	return "public"
}

// errExists is the error for a table that the import has not created.
var errExists = errors.New("exists already")

// createTable maps CREATE TABLE and creates the table, unless an earlier run has.
func (i *importer) createTable(ctx context.Context, db, text string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	m, err := mysql.ConvertDumpTable(text, mysql.DumpOptions{Schema: i.schemaOf(db), OneSchema: i.o.Schema != "", Charset: i.mu.charsets[db],
		Numeric: i.o.Numeric, Intervals: i.o.Interval, ZeroNull: i.o.Zero == ""})
	if err != nil {
		return err
	}
	if i.excluded(db, m.Name) {
		i.mu.report.leave(mysql.LeftOut{What: "the table " + m.Schema + "." + m.Name, Why: "--exclude names it"})
		return nil
	}
	t := &table{DumpTable: m, label: m.Schema + "." + m.Name}
	for n := range m.Columns {
		t.all = append(t.all, n)
	}
	for _, other := range i.mu.order {
		if other.label == t.label {
			return fmt.Errorf("the table %s comes twice: import the dumps one by one, or into other schemas with --schema", t.label)
		}
	}
	if err := i.make(ctx, t); err != nil {
		return err
	}
	i.mu.tables[tableKey(db, m.Name)] = t
	i.mu.order = append(i.mu.order, t)
	for _, l := range m.LeftOut {
		i.mu.report.leave(l)
	}
	return nil
}

// makeTable runs CREATE TABLE and records the table as the import's, in one transaction.
func (i *importer) makeTable(ctx context.Context, t *table) error {
	if i.state.made[t.label] {
		return nil
	}
	if !i.mu.schemas[t.Schema] {
		if _, err := i.conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+ast.QuoteIdent(t.Schema)); err != nil {
			return err
		}
		i.mu.schemas[t.Schema] = true
	}
	err := pgx.BeginFunc(ctx, i.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, t.Create); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO percodb_import.made (job, schema_name, table_name) VALUES ($1, $2, $3)", i.state.job, t.Schema, t.Name)
		return err
	})
	if loading.HasCode(err, "42P07") {
		var other bool
		query := "SELECT EXISTS (SELECT 1 FROM percodb_import.made WHERE schema_name = $1 AND table_name = $2)"
		if err := i.conn.QueryRow(ctx, query, t.Schema, t.Name).Scan(&other); err == nil && other {
			return fmt.Errorf("the table %s %w: an unfinished import of other files, or with other flags, has made it. Complete that one, or start again with --restart, which drops its tables", t.label, errExists)
		}
		return fmt.Errorf("the table %s %w: drop it, or import into another schema with --schema", t.label, errExists)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.label, err)
	}
	return nil
}

// finish creates the keys, sets the next values of AUTO_INCREMENT, and analyzes the tables.
func (i *importer) finish(ctx context.Context) error {
	type step struct {
		what      string
		statement string
		exists    []string // SQLSTATEs of a step that an earlier run has taken
	}
	var steps []step
	names := map[string]bool{}
	for _, t := range i.mu.order {
		for _, k := range t.Keys {
			full := t.Schema + "." + k.Name
			if names[full] {
				i.leave(mysql.LeftOut{What: "the key " + k.Name + " of " + t.label, Why: "another table has a key of this name", Statement: k.Statement})
				continue
			}
			names[full] = true
			steps = append(steps, step{"the key " + k.Name + " of " + t.label, k.Statement, []string{"42P07", "42710", "42P16"}})
		}
		if t.Identity != "" {
			column, from := ast.QuoteIdent(t.Identity), ast.QuoteIdent(t.Schema)+"."+ast.QuoteIdent(t.Name)
			steps = append(steps, step{"the next value of " + t.label + "." + t.Identity, fmt.Sprintf(
				"SELECT setval(pg_get_serial_sequence(%s, %s), greatest((SELECT max(%s) FROM %s), %d, 1), (SELECT max(%s) FROM %s) IS NOT NULL OR %d > 1)",
				ast.QuoteString(from), ast.QuoteString(t.Identity), column, from, max(t.Next, 1)-1, column, from, max(t.Next, 1)), nil})
		}
		for _, q := range t.Comments {
			steps = append(steps, step{"a comment of " + t.label, q, nil})
		}
		steps = append(steps, step{"statistics of " + t.label, "ANALYZE " + ast.QuoteIdent(t.Schema) + "." + ast.QuoteIdent(t.Name), nil})
	}
	i.o.Progress.Phase("keys", int64(len(steps)))
	for _, st := range steps {
		_, err := i.conn.Exec(ctx, st.statement)
		switch {
		case err == nil, len(st.exists) > 0 && loading.HasCode(err, st.exists...):
		case ctx.Err() != nil, i.conn.IsClosed():
			return err
		default:
			i.leave(mysql.LeftOut{What: st.what, Why: "the server refused it: " + err.Error(), Statement: st.statement})
			i.mu.report.Refused++
		}
		i.o.Progress.Add(1)
	}
	return nil
}
