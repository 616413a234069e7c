package txn

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// frame is a list of statements that do not need each other's results.
type frame struct {
	s     *Session
	steps []step
}

// step is one statement, and the receiver of its result. One of read and done is set.
type step struct {
	sql    string
	args   []any
	read   func(rows pgx.Rows) error
	done   func(tag pgconn.CommandTag) error
	commit bool
}

func (f *frame) reset() { f.steps = f.steps[:0] }

// begin begins the transaction, read-write or read-only.
func (f *frame) begin(statement string) { f.exec(statement) }

// commit ends the transaction.
func (f *frame) commit() {
	f.steps = append(f.steps, step{sql: "COMMIT", commit: true, done: func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return fmt.Errorf("the server answered COMMIT with %s", tag)
		}
		return nil
	}})
}

// exec adds a statement that changes any number of rows.
func (f *frame) exec(sql string, args ...any) {
	f.steps = append(f.steps, step{sql: sql, args: args, done: anyTag})
}

func anyTag(pgconn.CommandTag) error { return nil }

// change adds a statement that must change exactly one row.
func (f *frame) change(sql string, args ...any) {
	f.steps = append(f.steps, step{sql: sql, args: args, done: func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != 1 {
			return unexpected("%s %v: %d rows in place of one", brief(sql), args, tag.RowsAffected())
		}
		return nil
	}})
}

// count adds a statement, and adds the rows it changes to n.
func (f *frame) count(n *int64, sql string, args ...any) {
	f.steps = append(f.steps, step{sql: sql, args: args, done: func(tag pgconn.CommandTag) error {
		*n += tag.RowsAffected()
		return nil
	}})
}

// one adds a query of exactly one row.
func (f *frame) one(sql string, args []any, into ...any) {
	f.each(sql, args, into, nil)
	read := f.steps[len(f.steps)-1].read
	f.steps[len(f.steps)-1].read = func(rows pgx.Rows) error {
		if err := read(rows); err != nil {
			return err
		}
		if n := rows.CommandTag().RowsAffected(); n != 1 {
			return unexpected("%s %v: %d rows in place of one", brief(sql), args, n)
		}
		return nil
	}
}

// maybe adds a query of at most one row, and reports whether there was one.
func (f *frame) maybe(found *bool, sql string, args []any, into ...any) {
	*found = false
	f.each(sql, args, into, func() { *found = true })
}

// each adds a query, and calls row, if not nil, for each row in into.
func (f *frame) each(sql string, args, into []any, row func()) {
	f.steps = append(f.steps, step{sql: sql, args: args, read: func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, func() error {
			if row != nil {
				row()
			}
			return nil
		})
		return err
	}})
}

// skim adds a query whose rows are received and counted, but not decoded.
func (f *frame) skim(n *int, sql string, args ...any) {
	*n = 0
	f.steps = append(f.steps, step{sql: sql, args: args, read: func(rows pgx.Rows) error {
		for rows.Next() {
			*n++
		}
		rows.Close()
		return rows.Err()
	}})
}

// send runs the statements, in a pipeline or one by one, and empties the frame. The first error ends it.
func (f *frame) send(ctx context.Context) error {
	steps := f.steps
	f.steps = f.steps[:0]
	if len(steps) == 0 {
		return nil
	}
	if f.s.set.Pipeline && len(steps) > 1 {
		return f.s.pipeline(ctx, steps)
	}
	for i := range steps {
		if err := f.s.oneByOne(ctx, &steps[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) oneByOne(ctx context.Context, step *step) error {
	s.trips++
	if step.commit {
		s.committing = true
	}
	if step.read != nil {
		rows, err := s.conn.Query(ctx, step.sql, step.args...)
		if err == nil {
			err = step.read(rows)
		}
		return explain(step, err)
	}
	tag, err := s.conn.Exec(ctx, step.sql, step.args...)
	if err == nil {
		err = step.done(tag)
	}
	return explain(step, err)
}

func (s *Session) pipeline(ctx context.Context, steps []step) error {
	s.trips++
	batch := &pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, 0, len(steps))}
	for i := range steps {
		batch.Queue(steps[i].sql, steps[i].args...)
		if steps[i].commit {
			s.committing = true
		}
	}
	results := s.conn.SendBatch(ctx, batch)
	var first error
	for i := range steps {
		if first = takeResult(results, &steps[i]); first != nil {
			break // the server has not executed the following ones
		}
	}
	if err := results.Close(); first == nil {
		first = err
	}
	return first
}

func takeResult(results pgx.BatchResults, step *step) error {
	if step.read != nil {
		rows, err := results.Query()
		if err == nil {
			err = step.read(rows)
		}
		return explain(step, err)
	}
	tag, err := results.Exec()
	if err == nil {
		err = step.done(tag)
	}
	return explain(step, err)
}

// explain adds the failed statement to an error.
func explain(step *step, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", brief(step.sql), err)
}

// brief returns the beginning of a statement, on one line.
func brief(sql string) string {
	const most = 70
	line := strings.Join(strings.Fields(sql), " ")
	if len(line) > most {
		return line[:most] + "…"
	}
	return line
}

// unexpectedError: the server's answer contradicts the data and the transactions.
type unexpectedError struct{ what string }

func (e *unexpectedError) Error() string { return e.what }

func unexpected(format string, args ...any) error {
	return &unexpectedError{what: fmt.Sprintf(format, args...)}
}
