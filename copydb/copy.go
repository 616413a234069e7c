// Package copydb copies a database from one server to another, each of them percodb or PostgreSQL.
//
//	source: catalogs ─► statements of the schema ──────────────► target: before the rows, and after them
//	        a snapshot ─► chunks of tables: COPY TO ─► digest ─► COPY FROM, and the chunk's row of the state: one transaction
//	                                                   └── compared with the digest of the target's rows at the end
//
// One writer of statements serves both kinds of servers: it reads PostgreSQL's catalogs, and has the server print expressions, views,
// functions, indexes, constraints and triggers.
//
// Invariants:
//
//  1. A statement of the schema or a chunk of rows, and its row in the schema percodb_copy of the target, are committed together. A
//     run that was killed is taken up by the next one, which makes nothing twice.
//  2. All rows are those of one snapshot of the source. A percodb source has that of the first run by its time; of another, rows
//     that earlier runs have copied are compared with the new snapshot, and copied again if the table has changed.
//  3. What the target refuses is found before the first row is copied: on the empty tables, in a transaction that is rolled back.
//  4. The target is empty at the beginning. A copy never changes what others have made.
//  5. Memory is bounded: rows pass in the source's pieces.
package copydb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/percodb/percodb/internal/loading"
)

// Options are the servers and the extent of a copy.
type Options struct {
	From, To  string   // URLs of databases
	Workers   int      // connections to each server; 0: 4
	ChunkRows int      // rows of a transaction; 0: 20,000
	Exclude   []string // tables, views and sequences: NAME or SCHEMA.NAME
	// SkipRefused leaves out what the target refuses, tables apart.
	SkipRefused bool
	// Restart drops what an unfinished copy has made, and begins anew.
	Restart  bool
	Progress loading.Progress
	// Done, if any, is called once the target has all, before it forgets the copy: who kills the copy earlier, and executes it again, is told then.
	Done func(*Report)
}

const (
	defaultWorkers   = 4
	defaultChunkRows = 20_000
)

// Refusal is an object that the target has refused, or that no copy can make.
type Refusal struct {
	Object, Reason string
}

// TableReport is what was copied of a table.
type TableReport struct {
	Name     string
	Rows     int64
	Checksum uint64
}

// Report is what a copy has done.
type Report struct {
	Begun    bool // the target has the state of the copy, from which it can be continued
	Resumed  bool
	Complete bool // the target has all
	Tables   []TableReport
	Objects  int
	LeftOut  []Refusal
	Copied   int64 // rows of this run
	Again    int   // tables that had changed since an earlier run
	Total    time.Duration
}

// copier is one run.
type copier struct {
	o        Options
	from, to *side
	conn     *pgx.Conn // to the target, for statements; it has the lock
	snapshot *snapshot
	state    *state
	excluded []uint32
	report   Report
	mu       sync.Mutex // guards Progress and report
}

// Run copies a database, or what is missing of it. If it fails, the report covers what was done until then.
func Run(ctx context.Context, o Options) (*Report, error) {
	begun := time.Now()
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	if o.ChunkRows <= 0 {
		o.ChunkRows = defaultChunkRows
	}
	if o.Progress == nil {
		o.Progress = loading.Discard{}
	}
	c := &copier{o: o, from: &side{name: "source", url: o.From}, to: &side{name: "target", url: o.To}}
	err := c.run(ctx)
	c.report.Total = time.Since(begun)
	if err == nil {
		c.report.Complete = true
		if o.Done != nil {
			o.Done(&c.report)
		}
		err = c.to.wrap(closeState(ctx, c.conn))
	}
	c.close(context.WithoutCancel(ctx), err)
	return &c.report, err
}

func (c *copier) run(ctx context.Context) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	held := c.snapshot.held
	var err error
	if c.excluded, err = c.findExcluded(ctx, held); err != nil {
		return c.from.wrap(err)
	}
	if err := c.from.checkReadable(ctx, held, c.excluded); err != nil {
		return err
	}
	schema, err := readSchema(ctx, held, c.from.kind, c.excluded)
	if err != nil {
		return c.from.wrap(err)
	}
	if err := c.leaveUnsupported(ctx, held); err != nil {
		return err
	}
	tables, err := readTables(ctx, held, c.excluded)
	if err != nil {
		return c.from.wrap(err)
	}
	if err := c.makeBefore(ctx, schema); err != nil {
		return err
	}
	if err := c.copyRows(ctx, tables); err != nil {
		return err
	}
	if err := c.makeAfter(ctx, schema, tables); err != nil {
		return err
	}
	if err := c.compare(ctx, tables); err != nil {
		return err
	}
	c.report.Objects = len(schema.before) + len(schema.after)
	return nil
}

// close closes the connections. A copy that has failed before the first row leaves nothing in the target.
func (c *copier) close(ctx context.Context, err error) {
	if c.snapshot != nil {
		c.snapshot.held.Close(ctx)
	}
	if err != nil && c.state != nil && !c.state.resumed && len(c.state.planned) == 0 {
		_ = restart(ctx, c.conn) // What is left is an unfinished copy, which --restart drops.
	}
	if c.conn != nil {
		c.conn.Close(ctx)
	}
}

// open connects to both servers, reads the state, and takes the snapshot.
func (c *copier) open(ctx context.Context) error {
	same, err := sameDatabase(c.o.From, c.o.To)
	if err != nil {
		return err
	}
	if same {
		return errors.New("the source and the target are the same database")
	}
	if c.conn, err = c.to.connect(ctx); err != nil {
		return err
	}
	if err := c.to.lock(ctx, c.conn); err != nil {
		return err
	}
	if err := c.to.checkWritable(ctx, c.conn); err != nil {
		return err
	}
	if c.o.Restart {
		if err := restart(ctx, c.conn); err != nil {
			return c.to.wrap(err)
		}
	}
	job, source, err := c.job()
	if err != nil {
		return err
	}
	// The source first: a copy whose source cannot be reached leaves nothing in the target.
	probe, err := c.from.connect(ctx)
	if err != nil {
		return err
	}
	probe.Close(ctx)
	if c.state, err = openState(ctx, c.conn, c.to, job, source); err != nil {
		return c.to.wrap(err)
	}
	c.report.Begun, c.report.Resumed = true, c.state.resumed
	if c.snapshot, err = c.from.takeSnapshot(ctx, c.state.snapshot); err != nil {
		return err
	}
	return c.to.wrap(c.state.useSnapshot(ctx, c.conn, c.snapshot.id))
}

// job returns the name of the copy, a hash of the source and of the options that change what is copied, and of the source.
func (c *copier) job() (id, source string, err error) {
	config, err := pgx.ParseConfig(c.o.From)
	if err != nil {
		return "", "", c.from.wrap(err)
	}
	source = net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) + "/" + config.Database
	h := xxhash.Sum64String(source + "\x00" + strings.Join(c.o.Exclude, "\x00"))
	return fmt.Sprintf("%016x", h), source, nil
}

func sameDatabase(from, to string) (bool, error) {
	a, err := pgx.ParseConfig(from)
	if err != nil {
		return false, &SideError{Side: "source", Err: err}
	}
	b, err := pgx.ParseConfig(to)
	if err != nil {
		return false, &SideError{Side: "target", Err: err}
	}
	return a.Host == b.Host && a.Port == b.Port && a.Database == b.Database, nil
}

// findExcluded returns the relations that --exclude names; each name must be that of one.
func (c *copier) findExcluded(ctx context.Context, tx querier) ([]uint32, error) {
	found := []uint32{}
	for _, name := range c.o.Exclude {
		rows, err := tx.Query(ctx, prepare(`SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND {users} AND $1 IN (c.relname::text, n.nspname || '.' || c.relname)`), name)
		if err != nil {
			return nil, err
		}
		oids, err := pgx.CollectRows(rows, pgx.RowTo[uint32])
		if err != nil {
			return nil, err
		}
		if len(oids) == 0 {
			return nil, fmt.Errorf("--exclude %s: there is no such table, view or sequence", name)
		}
		found = append(found, oids...)
	}
	return found, nil
}

// leaveUnsupported notes the objects that no copy makes. They end it unless they are to be left out.
func (c *copier) leaveUnsupported(ctx context.Context, tx querier) error {
	pairs, err := readUnsupported(ctx, tx, c.excluded)
	if err != nil {
		return c.from.wrap(err)
	}
	var refused []Refusal
	for _, p := range pairs {
		refused = append(refused, Refusal{Object: p[0], Reason: "percodb copy does not copy such objects: " + p[1]})
	}
	return c.leave(refused)
}

// RefusedError is the error of a copy that ends since the target refuses a part of the schema.
type RefusedError struct{ Refused []Refusal }

func (e *RefusedError) Error() string {
	lines := []string{"a part of the schema cannot be copied:"}
	for _, r := range e.Refused {
		lines = append(lines, "  "+r.Object+": "+r.Reason)
	}
	return strings.Join(append(lines, "Change it in the source, leave out tables with --exclude, or leave out all of these with --skip-refused."), "\n")
}

// leave leaves objects out, or returns the error that says so.
func (c *copier) leave(refused []Refusal) error {
	if len(refused) > 0 && !c.o.SkipRefused {
		return &RefusedError{refused}
	}
	c.report.LeftOut = append(c.report.LeftOut, refused...)
	return nil
}

// copyRows copies the rows of all tables.
func (c *copier) copyRows(ctx context.Context, tables []*table) error {
	if err := c.planTables(ctx, tables); err != nil {
		return err
	}
	if err := c.recheck(ctx, tables); err != nil {
		return err
	}
	var work []task
	total := int64(0)
	for _, t := range tables {
		for _, part := range c.state.chunks[t.name] {
			if part.snapshot == nil {
				work = append(work, task{t, part})
				total += int64(c.o.ChunkRows)
			}
		}
	}
	c.o.Progress.Phase("rows", total)
	return c.parallel(ctx, work, true, func(ctx context.Context, from, to *pgx.Conn, w task) error {
		if err := c.copyChunk(ctx, from, to, w.table, w.part); err != nil {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.report.Copied += *w.part.loaded
		return nil
	})
}

// task is a chunk of a table.
type task struct {
	table *table
	part  *chunk
}

// parallel works on chunks over several pairs of connections, the source's with the snapshot; without source only the target's.
func (c *copier) parallel(ctx context.Context, work []task, source bool, do func(ctx context.Context, from, to *pgx.Conn, w task) error) error {
	group, ctx := errgroup.WithContext(ctx)
	queue := make(chan task)
	group.Go(func() error {
		defer close(queue)
		for _, w := range work {
			select {
			case queue <- w:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(c.o.Workers, len(work)) {
		group.Go(func() error {
			closing := context.WithoutCancel(ctx)
			to, err := c.to.connect(ctx)
			if err != nil {
				return err
			}
			defer to.Close(closing)
			var from *pgx.Conn
			if source {
				if from, err = c.from.reader(ctx, c.snapshot); err != nil {
					return err
				}
				defer from.Close(closing)
			}
			for w := range queue {
				if err := do(ctx, from, to, w); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// planTables divides the tables that no earlier run has divided.
func (c *copier) planTables(ctx context.Context, tables []*table) error {
	c.o.Progress.Phase("tables", int64(len(tables)))
	for _, t := range tables {
		if !c.state.planned[t.name] {
			chunks, err := t.plan(ctx, c.snapshot.held, c.o.ChunkRows)
			if err != nil {
				return c.from.wrap(fmt.Errorf("%s: %w", t.name, err))
			}
			if err := c.state.savePlan(ctx, c.conn, t.name, chunks); err != nil {
				return c.to.wrap(err)
			}
		}
		c.add(1)
	}
	return nil
}

// recheck compares the rows that earlier runs have copied of other snapshots with this one's, and empties the tables that have changed.
func (c *copier) recheck(ctx context.Context, tables []*table) error {
	var work []task
	for _, t := range tables {
		for _, part := range c.state.chunks[t.name] {
			if part.snapshot != nil && *part.snapshot != c.snapshot.id {
				work = append(work, task{t, part})
			}
		}
	}
	changed := map[*table]bool{}
	c.o.Progress.Phase("rows compared", int64(len(work)*c.o.ChunkRows))
	err := c.parallel(ctx, work, true, func(ctx context.Context, from, to *pgx.Conn, w task) error {
		now, err := readDigest(ctx, from, w.table, w.part, c.counter())
		if err != nil {
			return c.from.wrap(fmt.Errorf("%s: %w", w.table.name, err))
		}
		if now.rows != *w.part.loaded || now.sum != *w.part.checksum {
			c.mu.Lock()
			defer c.mu.Unlock()
			changed[w.table] = true
			return nil
		}
		_, err = to.Exec(ctx, "UPDATE percodb_copy.chunk SET snapshot = $3 WHERE table_name = $1 AND n = $2", w.table.name, w.part.n, c.snapshot.id)
		w.part.snapshot = &c.snapshot.id
		return c.to.wrap(err)
	})
	if err != nil {
		return err
	}
	for t := range changed {
		if err := c.empty(ctx, t); err != nil {
			return c.to.wrap(fmt.Errorf("%s: %w", t.name, err))
		}
	}
	c.report.Again = len(changed)
	return nil
}

// empty removes the rows of a table from the target, to copy them again.
func (c *copier) empty(ctx context.Context, t *table) error {
	err := loading.InTransaction(ctx, c.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "TRUNCATE "+t.name); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE percodb_copy.chunk SET snapshot = NULL, loaded = NULL, checksum = NULL WHERE table_name = $1", t.name)
		return err
	})
	if err == nil {
		for _, part := range c.state.chunks[t.name] {
			part.snapshot, part.loaded, part.checksum = nil, nil, nil
		}
	}
	return err
}

func (c *copier) add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.o.Progress.Add(n)
}

// counter counts the lines that are written to it as steps of the progress.
func (c *copier) counter() io.Writer { return &lineCounter{c: c} }

type lineCounter struct {
	c *copier
}

// Write implements io.Writer.
func (l *lineCounter) Write(p []byte) (int, error) {
	if n := strings.Count(string(p), "\n"); n > 0 {
		l.c.add(int64(n))
	}
	return len(p), nil
}
