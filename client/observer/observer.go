// Package observer consumes the changes of an observer without a body (CREATE OBSERVER … without AS) in an application that uses
// pgx. Each change is handled in one transaction with the application's own writes:
//
//	err := observer.Run(ctx, pool, "orders_changed", func(ctx context.Context, tx pgx.Tx, changes []observer.Change) error {
//		for _, c := range changes {
//			// read and write in tx
//		}
//		return nil
//	}, observer.Options{})
//
// When the transaction commits, its changes are acknowledged; if it does not, or the process dies, others get them. At most one
// transaction commits for each change. Any number of processes may run the same observer.
//
// Several changes of a row may be delivered as one, the last. An effect outside of the database may be repeated, when the
// transaction fails after it: Change.ID is the same each time that a version of a row is delivered.
package observer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Pool begins transactions: a *pgxpool.Pool, or a *pgx.Conn if Options.Concurrency is 1.
type Pool interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// Change is a changed row.
type Change struct {
	// Table is the observed table's name with its schema; Key the values of its primary key, in the key's order.
	Table string
	Key   []any
	// CommitTS is the commit timestamp of the newest change. It grows from version to version of a row.
	CommitTS int64
	// Deleted: there is no such row any more.
	Deleted bool
	// Row has the row's columns by name, as of the transaction's snapshot. Of a deleted row it has those of the primary key; the
	// others are nil.
	Row map[string]any
}

// ID identifies the version of the row that is delivered, for effects outside of the database.
func (c *Change) ID() string {
	var b strings.Builder
	b.WriteString(c.Table)
	for _, v := range c.Key {
		switch v := v.(type) {
		case string:
			fmt.Fprintf(&b, "/%q", v) // it may contain slashes
		case time.Time:
			b.WriteString("/" + v.UTC().Format(time.RFC3339Nano)) // whatever the client's time zone is
		default:
			fmt.Fprintf(&b, "/%v", v)
		}
	}
	fmt.Fprintf(&b, "@%d", c.CommitTS)
	return b.String()
}

// Handler handles changes in a transaction, which Run commits. It may be called again for the same changes after an error, its own or
// that of the commit.
type Handler func(ctx context.Context, tx pgx.Tx, changes []Change) error

// Options of Run. The zero value means the defaults named here.
type Options struct {
	// Batch is the largest number of changes in a transaction: 100.
	Batch int
	// Concurrency is the number of transactions at a time: 1.
	Concurrency int
	// Wait is how long a statement waits for changes: 5 s. Behind a pooler it keeps a server connection for as long.
	Wait time.Duration
	// Tx are the options of the transactions.
	Tx pgx.TxOptions
	// MaxAttempts is how often the handler is tried for a change that fails: 16. Changes that fail together are tried one by one.
	// After that GiveUp is called in its own transaction, whose commit acknowledges the change; without GiveUp, Run goes on trying.
	MaxAttempts int
	GiveUp      func(ctx context.Context, tx pgx.Tx, change Change, cause error) error
	// DrainTimeout is how long a handler may go on when ctx has ended: 10 s.
	DrainTimeout time.Duration
	// Done, if set, is called after each transaction, by several goroutines: for metrics and logs.
	Done func(Result)
}

// Result is what became of a transaction.
type Result struct {
	Changes  int
	Duration time.Duration // from the arrival of the changes to the answer of the commit
	// Err is why it did not commit. Conflict: because of another transaction.
	Err      error
	Conflict bool
}

func (o Options) withDefaults() Options {
	orDefault(&o.Batch, 100)
	orDefault(&o.Concurrency, 1)
	orDefault(&o.Wait, 5*time.Second)
	orDefault(&o.MaxAttempts, 16)
	orDefault(&o.DrainTimeout, 10*time.Second)
	return o
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Between attempts.
const (
	pauseMin = 5 * time.Millisecond
	pauseMax = 5 * time.Second
)

// Run handles changes until ctx ends, and returns nil then: after the handlers that run have returned, and their transactions have
// been committed, or after Options.DrainTimeout. It goes on after errors of handlers and lost connections. It returns an error only
// if the observer cannot be consumed: there is none of that name, or it has a body.
func Run(ctx context.Context, pool Pool, name string, handle Handler, opts Options) error {
	opts = opts.withDefaults()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Handlers outlive ctx by the drain's time.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(opts.DrainTimeout, stop) })
	var wg sync.WaitGroup
	failures := &failures{young: map[string]int{}}
	for range opts.Concurrency {
		wg.Go(func() {
			c := consumer{pool: pool, name: name, handle: handle, opts: opts, work: work, batch: opts.Batch, failures: failures}
			if err := c.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	var final *finalError
	if errors.As(context.Cause(ctx), &final) {
		return final.error
	}
	return nil
}

// finalError is an error that Run returns.
type finalError struct{ error }

// consumer handles changes, one transaction after the other.
type consumer struct {
	pool   Pool
	name   string
	handle Handler
	opts   Options
	work   context.Context // of handlers and commits
	batch  int             // 1 after a failure
	failed int             // attempts, one after the other
	alone  int             // transactions of one change to come

	failures *failures

	table string
	key   []string // columns
}

// run handles changes until ctx ends. Its error is a *finalError.
func (c *consumer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		changes, began, err := c.transact(ctx)
		n := len(changes)
		if ctx.Err() != nil && n == 0 {
			return nil
		}
		if isFinal(err) {
			return &finalError{err}
		}
		conflict := isConflict(err)
		if c.opts.Done != nil && (n > 0 || err != nil) {
			c.opts.Done(Result{Changes: n, Duration: time.Since(began), Err: err, Conflict: conflict})
		}
		switch {
		case err == nil:
			c.failed = 0
			c.failures.forget(changes)
			if c.alone > 0 {
				c.alone--
			} else {
				c.batch = c.opts.Batch
			}
			continue
		case !conflict && n > 1:
			c.batch, c.alone = 1, n
		case !conflict && n == 1:
			c.failures.add(changes[0].ID())
		}
		c.failed++
		c.pause(ctx)
	}
	return nil
}

// pause waits after a failure.
func (c *consumer) pause(ctx context.Context) {
	d := min(pauseMin<<min(c.failed, 20), pauseMax)
	timer := time.NewTimer(d/2 + rand.N(d/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// transact claims changes and handles them in one transaction. began is when they arrived.
func (c *consumer) transact(ctx context.Context) (changes []Change, began time.Time, err error) {
	began = time.Now()
	if c.key == nil {
		if err := c.describe(ctx); err != nil {
			return nil, began, err
		}
	}
	tx, err := c.pool.BeginTx(ctx, c.opts.Tx)
	if err != nil {
		return nil, began, err
	}
	defer func() { _ = tx.Rollback(c.work) }() // It does nothing after Commit.
	changes, err = c.claim(ctx, tx)
	switch began = time.Now(); {
	case err != nil:
		return nil, began, err
	case len(changes) == 0: // changes for which WHEN does not hold are acknowledged
		return nil, began, tx.Commit(c.work)
	}
	if err := c.call(tx, changes); err != nil {
		return changes, began, err
	}
	return changes, began, tx.Commit(c.work)
}

// call calls the handler, or GiveUp for a change that has failed too often.
func (c *consumer) call(tx pgx.Tx, changes []Change) error {
	if len(changes) == 1 && c.opts.GiveUp != nil {
		if n := c.failures.of(changes[0].ID()); n >= c.opts.MaxAttempts {
			return c.opts.GiveUp(c.work, tx, changes[0], fmt.Errorf("the change has failed %d times", n))
		}
	}
	return c.handle(c.work, tx, changes)
}

// claim returns changes, which the commit of tx acknowledges.
func (c *consumer) claim(ctx context.Context, tx pgx.Tx) ([]Change, error) {
	rows, err := tx.Query(ctx, "SELECT * FROM percodb.changes("+literal(c.name)+", max => $1, wait => $2)", int64(c.batch), c.opts.Wait)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, c.scan)
}

// scan makes a change of a row.
func (c *consumer) scan(row pgx.CollectableRow) (Change, error) {
	values, err := row.Values()
	if err != nil {
		return Change{}, err
	}
	ch := Change{Table: c.table, Row: make(map[string]any, len(values))}
	for i, f := range row.FieldDescriptions() {
		switch {
		case i == 0:
			ch.CommitTS, _ = values[i].(int64)
		case i == 1:
			ch.Deleted, _ = values[i].(bool)
		default:
			ch.Row[f.Name] = values[i]
		}
	}
	for _, name := range c.key {
		ch.Key = append(ch.Key, ch.Row[name])
	}
	return ch, nil
}

// describe finds the observed table and its key.
func (c *consumer) describe(ctx context.Context) error {
	tx, err := c.pool.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	schema, name := splitName(c.name)
	var table string
	err = tx.QueryRow(ctx, `SELECT schema_name::text, table_name::text FROM percodb.observers
		WHERE name::text = $1 AND ($2 = '' AND schema_name::text = ANY (current_schemas(false)::text[]) OR schema_name::text = $2)
		LIMIT 1`, name, schema).Scan(&schema, &table)
	if errors.Is(err, pgx.ErrNoRows) {
		return &pgconn.PgError{Code: "42704", Message: fmt.Sprintf("observer %q does not exist", c.name)}
	}
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `SELECT k.column_name::text FROM information_schema.key_column_usage k
		JOIN information_schema.table_constraints t USING (constraint_schema, constraint_name, table_name)
		WHERE t.constraint_type = 'PRIMARY KEY' AND k.table_schema = $1 AND k.table_name = $2 ORDER BY k.ordinal_position`, schema, table)
	if err != nil {
		return err
	}
	key, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil {
		c.table, c.key = schema+"."+table, key
	}
	return err
}

// namePart is a part of a dotted name, in quotes or not.
var namePart = regexp.MustCompile(`"(?:[^"]|"")+"|[^". ]+`)

// splitName returns the parts of an observer's name as the server reads them, without quotes. The server checks its syntax.
func splitName(text string) (schema, name string) {
	for _, part := range namePart.FindAllString(text, -1) {
		schema = name
		if name = strings.ToLower(part); part[0] == '"' {
			name = strings.ReplaceAll(part[1:len(part)-1], `""`, `"`)
		}
	}
	return schema, name
}

// literal quotes a string.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// isConflict reports whether a transaction has failed because of another one.
func isConflict(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// isFinal reports whether an error says that the observer cannot be consumed.
func isFinal(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "42704" || pg.Code == "42809") // there is none, or it has a body
}
