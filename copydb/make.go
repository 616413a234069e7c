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

// makeBefore makes the objects that come before the rows. Definitions name others that come later, functions tables and tables
// functions: statements that fail are executed again as long as others succeed.
func (c *copier) makeBefore(ctx context.Context, schema *definitions) error {
	pending := c.pending(schema.before)
	fresh := len(pending) > 0 || len(c.state.planned) == 0
	c.o.Progress.Phase("objects", int64(len(pending)))
	var refused []Refusal
	for {
		var failed []statement
		refused = nil
		for _, st := range pending {
			err := c.make(ctx, st)
			if refusal, is := refusalOf(st, err); is {
				failed, refused = append(failed, st), append(refused, refusal)
				continue
			}
			if err != nil {
				return c.to.wrap(err)
			}
			c.add(1)
		}
		if len(failed) == 0 || len(failed) == len(pending) {
			break
		}
		pending = failed
	}
	for _, r := range refused {
		if strings.HasPrefix(r.Object, "the table ") || strings.HasPrefix(r.Object, "the partition ") {
			return &RefusedError{refused}
		}
	}
	if fresh {
		more, err := c.rehearse(ctx, schema.after, refused)
		if err != nil {
			return c.to.wrap(err)
		}
		if !c.o.SkipRefused && len(refused)+len(more) > 0 {
			return &RefusedError{append(refused, more...)}
		}
	}
	return c.noteRefused(ctx, refused)
}

// pending returns the statements that no earlier run has executed or left out.
func (c *copier) pending(all []statement) []statement {
	var pending []statement
	for _, st := range all {
		if !c.state.done[st.object] {
			pending = append(pending, st)
		}
	}
	return pending
}

// make executes a statement and notes it, in one transaction.
func (c *copier) make(ctx context.Context, st statement) error {
	err := loading.InTransaction(ctx, c.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO percodb_copy.step (object) VALUES ($1)", st.object); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, st.sql)
		return err
	})
	if err == nil {
		c.state.done[st.object] = true
	}
	return err
}

// refusalOf tells the refusal of a statement by the server from other errors.
func refusalOf(st statement, err error) (Refusal, bool) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return Refusal{}, false
	}
	switch pg.Code[:2] {
	case "08", "40", "53", "57", "58", "XX": // the server's state, not the statement
		return Refusal{}, false
	}
	reason := pg.Message
	if pg.Detail != "" {
		reason += " (" + pg.Detail + ")"
	}
	if pg.Hint != "" {
		reason += ". " + strings.TrimSuffix(pg.Hint, ".")
	}
	return Refusal{Object: st.object, Reason: fmt.Sprintf("%s (SQLSTATE %s)", reason, pg.Code)}, true
}

// noteRefused leaves objects out, in later runs too.
func (c *copier) noteRefused(ctx context.Context, refused []Refusal) error {
	for _, r := range refused {
		if _, err := c.conn.Exec(ctx, "INSERT INTO percodb_copy.step (object, refused) VALUES ($1, $2)", r.Object, r.Reason); err != nil {
			return c.to.wrap(err)
		}
		c.state.done[r.Object] = true
		c.state.refused = append(c.state.refused, r)
	}
	return nil
}

// rehearse executes the statements that come after the rows, on the empty tables, and takes all back. It returns what the target refuses.
func (c *copier) rehearse(ctx context.Context, statements []statement, before []Refusal) (refused []Refusal, err error) {
	tx, err := c.conn.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if rollback := tx.Rollback(ctx); err == nil {
			err = rollback
		}
	}()
	c.o.Progress.Phase("objects tried", int64(len(statements)))
	for _, st := range statements {
		// A savepoint alone.
		err := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
			_, err := inner.Exec(ctx, st.sql)
			return err
		})
		if refusal, is := refusalOf(st, err); is {
			refused = append(refused, refusal)
		} else if err != nil {
			return nil, err
		}
		c.add(1)
	}
	return refused, nil
}

// makeAfter makes what comes after the rows: the values of sequences, indexes, constraints, triggers, comments, statistics.
func (c *copier) makeAfter(ctx context.Context, schema *definitions, tables []*table) error {
	values, err := c.sequenceValues(ctx)
	if err != nil {
		return err
	}
	all := append(values, schema.after...)
	for _, t := range tables {
		all = append(all, statement{"the statistics of " + t.name, "ANALYZE " + t.name})
	}
	pending := c.pending(all)
	c.o.Progress.Phase("indexes", int64(len(pending)))
	for _, st := range pending {
		var err error
		if strings.HasPrefix(st.sql, "ANALYZE ") {
			_, err = c.conn.Exec(ctx, st.sql)
		} else {
			err = c.make(ctx, st)
		}
		if refusal, is := refusalOf(st, err); is {
			if err := c.noteRefused(ctx, []Refusal{refusal}); err != nil {
				return err
			}
		} else if err != nil {
			return c.to.wrap(err)
		}
		c.add(1)
	}
	c.report.LeftOut = append(c.report.LeftOut, c.state.refused...)
	return nil
}

// sequenceValues returns statements that set the sequences to where those of the source are now. They belong to no snapshot.
func (c *copier) sequenceValues(ctx context.Context) ([]statement, error) {
	conn, err := c.from.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	names, err := readPairs(ctx, conn, prepare(`SELECT {table}, '' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind = 'S' AND {users} AND {kept} AND `+own("pg_class", "c.oid")+` ORDER BY 1`), c.excluded)
	if err != nil {
		return nil, c.from.wrap(err)
	}
	var statements []statement
	for _, p := range names {
		var last int64
		var called bool
		if err := conn.QueryRow(ctx, "SELECT last_value, is_called FROM "+p[0]).Scan(&last, &called); err != nil {
			return nil, c.from.wrap(fmt.Errorf("%s: %w", p[0], err))
		}
		statements = append(statements, statement{"the value of " + p[0], fmt.Sprintf("SELECT setval(%s, %d, %t)", ast.QuoteString(p[0]), last, called)})
	}
	return statements, nil
}

// DifferenceError is the error of tables whose rows differ at the end.
type DifferenceError struct{ Tables []string }

func (e *DifferenceError) Error() string {
	return "the rows of the target are not those of the source:\n  " + strings.Join(e.Tables, "\n  ") +
		"\nSomeone has written to the target meanwhile, or the servers print values differently. --restart copies anew."
}

// compare compares the rows in the target with those that were read from the source, by their numbers and checksums.
func (c *copier) compare(ctx context.Context, tables []*table) error {
	type sums struct{ rows, sum int64 }
	found := map[*table]*sums{}
	var work []task
	total := int64(0)
	for _, t := range tables {
		found[t] = &sums{}
		parts := c.state.chunks[t.name]
		if t.collated() { // The target may order them otherwise.
			parts = []*chunk{{}}
		}
		for _, part := range parts {
			work = append(work, task{t, part})
		}
		total += t.rows(c.state)
	}
	c.o.Progress.Phase("rows compared", total)
	err := c.parallel(ctx, work, false, func(ctx context.Context, _, to *pgx.Conn, w task) error {
		d, err := readDigest(ctx, to, w.table, w.part, c.counter())
		if err != nil {
			return c.to.wrap(fmt.Errorf("%s: %w", w.table.name, err))
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		found[w.table].rows += d.rows
		found[w.table].sum += d.sum
		return nil
	})
	if err != nil {
		return err
	}
	var different []string
	for _, t := range tables {
		want := sums{rows: t.rows(c.state)}
		for _, part := range c.state.chunks[t.name] {
			want.sum += *part.checksum
		}
		if got := *found[t]; got != want {
			different = append(different, fmt.Sprintf("%s: %d rows with the checksum %016x, in the source %d with %016x", t.name, got.rows, uint64(got.sum), want.rows, uint64(want.sum)))
		}
		c.report.Tables = append(c.report.Tables, TableReport{Name: t.name, Rows: want.rows, Checksum: uint64(want.sum)})
	}
	if len(different) > 0 {
		return &DifferenceError{different}
	}
	return nil
}

// collated reports whether the order of the primary key depends on a collation.
func (t *table) collated() bool {
	for _, k := range t.key {
		if k.collated {
			return true
		}
	}
	return false
}

// rows is the number of rows that were copied.
func (t *table) rows(st *state) (n int64) {
	for _, part := range st.chunks[t.name] {
		n += *part.loaded
	}
	return n
}
