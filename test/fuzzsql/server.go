package fuzzsql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/sql/types"
)

const (
	// statementTimeout is for statements, in both servers: what takes longer is not compared.
	statementTimeout = 2 * time.Second
	// mostRows are the rows of a result that is compared.
	mostRows = 20_000
	// answerTimeout bounds an exchange: a server that takes longer hangs.
	answerTimeout = 25 * time.Second
)

// outcome is what a statement has answered.
type outcome struct {
	columns []resultColumn
	rows    [][]string // values with their NULLs as null
	raw     [][]string // of binary results: the bytes
	format  types.Format
	tag     string
	err     *pgconn.PgError
	lost    string // why there is no answer: a hang, a closed connection
	cut     bool   // it had more than mostRows rows
}

type resultColumn struct {
	name string
	oid  types.OID
	mod  int32
}

// null stands for NULL in outcomes; no text has a zero byte.
const null = "\x00"

// conn is a connection with tables in a schema of its own.
type conn struct {
	undeallocated bool // a prepared statement is left over
	dsn           string
	schema        string
	style         style
	pg            *pgconn.PgConn
}

// connect opens or opens again.
func (c *conn) connect(ctx context.Context) error {
	u, err := url.Parse(c.dsn)
	if err != nil {
		return err
	}
	q := u.Query()
	q.Set("search_path", c.schema)
	q.Set("timezone", "UTC")
	q.Set("statement_timeout", fmt.Sprint(statementTimeout.Milliseconds()))
	q.Set("client_min_messages", "error")
	u.RawQuery = q.Encode()
	if c.pg, err = pgconn.Connect(ctx, u.String()); err != nil {
		return err
	}
	return c.restyle(ctx, c.style)
}

// restyle sets what values' texts depend on.
func (c *conn) restyle(ctx context.Context, s style) error {
	c.style = s
	for _, set := range s.sets {
		if _, err := c.pg.Exec(ctx, set).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
	}
	return nil
}

// must runs a statement that has to succeed.
func (c *conn) must(ctx context.Context, text string) error {
	o := c.simple(ctx, text)
	if o.lost != "" {
		return fmt.Errorf("%s: %s", text, o.lost)
	}
	if o.err != nil {
		return fmt.Errorf("%s: %w", text, o.err)
	}
	return nil
}

// with runs an exchange within answerTimeout and makes sure that the connection lives afterwards.
func (c *conn) with(ctx context.Context, run func(ctx context.Context) *outcome) *outcome {
	if c.pg == nil || c.pg.IsClosed() {
		if err := c.connect(ctx); err != nil {
			return &outcome{lost: "no connection: " + err.Error()}
		}
	}
	limited, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	o := run(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		o = &outcome{lost: fmt.Sprintf("no answer within %v", answerTimeout)}
	}
	return o
}

func (c *conn) outcome() *outcome { return &outcome{format: c.style.format} }

// fail sets the outcome's error.
func (o *outcome) fail(err error) *outcome {
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
	case errors.As(err, &pgErr):
		o.err, o.rows, o.raw = pgErr, nil, nil
	default:
		o.lost = err.Error()
	}
	return o
}

// simple runs a statement in the simple protocol.
func (c *conn) simple(ctx context.Context, text string) *outcome {
	return c.with(ctx, func(ctx context.Context) *outcome {
		o := c.outcome()
		results := c.pg.Exec(ctx, text)
		for results.NextResult() {
			o.read(results.ResultReader())
		}
		return o.fail(results.Close())
	})
}

// extended runs a statement in the extended protocol, with text or binary results.
func (c *conn) extended(ctx context.Context, text string, values []literal, binary bool) *outcome {
	params := make([][]byte, len(values))
	for i, v := range values {
		params[i] = []byte(v.value)
	}
	return c.with(ctx, func(ctx context.Context) *outcome {
		o := c.outcome()
		return o.fail(o.read(c.pg.ExecParams(ctx, text, params, nil, nil, formats(binary))))
	})
}

func formats(binary bool) []int16 {
	if binary {
		return []int16{1}
	}
	return nil
}

// prepared prepares a statement and runs it so often; the last outcome counts, and an earlier one that
// differs from it.
func (c *conn) prepared(ctx context.Context, text string, times int) *outcome {
	return c.with(ctx, func(ctx context.Context) *outcome {
		o := c.outcome()
		if c.undeallocated {
			if _, err := c.pg.Exec(ctx, "DEALLOCATE ALL").ReadAll(); err != nil {
				return o.fail(err)
			}
			c.undeallocated = false
		}
		if _, err := c.pg.Prepare(ctx, "fuzz", text, nil); err != nil {
			c.undeallocated = true // The time may have been up after it was made.
			return o.fail(err)
		}
		var first *outcome
		for i := range times {
			o = c.outcome()
			o.fail(o.read(c.pg.ExecPrepared(ctx, "fuzz", nil, nil, formats(false))))
			if i == 0 {
				first = o
			} else if o.lost == "" && compare(first, o, comparison{}) != "" || o.cut {
				break
			}
		}
		if c.pg.IsClosed() {
			return o
		}
		c.undeallocated = c.pg.Exec(ctx, "DEALLOCATE fuzz").Close() != nil // The time was up, or the block has failed.
		return o
	})
}

// read takes a result in.
func (o *outcome) read(r *pgconn.ResultReader) error {
	o.columns, o.rows, o.raw = nil, nil, nil
	binary := false
	for _, f := range r.FieldDescriptions() {
		o.columns = append(o.columns, resultColumn{f.Name, types.OID(f.DataTypeOID), f.TypeModifier})
		binary = binary || f.Format == 1
	}
	for r.NextRow() {
		if o.cut = len(o.rows) == mostRows; o.cut {
			continue
		}
		row := make([]string, len(r.Values()))
		raw := make([]string, len(row))
		for i, v := range r.Values() {
			switch {
			case v == nil:
				row[i], raw[i] = null, null
			case binary:
				row[i], raw[i] = o.decoded(i, v), string(v)
			default:
				row[i] = string(v)
			}
		}
		o.rows = append(o.rows, row)
		if binary {
			o.raw = append(o.raw, raw)
		}
	}
	tag, err := r.Close()
	o.tag = tag.String()
	return err
}

// undecoded begins what stands for a binary value of a user's type, whose form is not known here. It is like any text.
const undecoded = "undecoded: "

// decoded is the text of a binary value.
func (o *outcome) decoded(column int, v []byte) string {
	t := types.Type{OID: o.columns[column].oid, Mod: -1}
	if t.OID >= types.FirstUserOID || t.OID == types.OIDRecord {
		return undecoded + fmt.Sprintf("%x", v)
	}
	d, err := types.ParseBinary(t, bytes.Clone(v), &o.format)
	if err != nil {
		return fmt.Sprintf("undecodable %x: %v", v, err)
	}
	return o.format.Text(d, t)
}
