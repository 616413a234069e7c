package copydb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/internal/loading"
	"github.com/percodb/percodb/sql/ast"
)

// table is a table with rows of its own: a partition, or one that is not partitioned.
type table struct {
	name    string   // quoted, with its schema
	columns []string // quoted, without generated ones
	key     []keyColumn
}

// keyColumn is a column of a primary key.
type keyColumn struct {
	name, typ string // quoted
	collated  bool
}

// chunk is a part of a table: the rows whose primary keys are at or above lower and below upper. A nil bound is none.
type chunk struct {
	n            int
	lower, upper []string
	snapshot     *string // the rows are those of this snapshot; nil: they are not in the target yet
	loaded       *int64
	checksum     *int64
}

// readTables returns the tables with rows, the largest first.
func readTables(ctx context.Context, tx querier, excluded []uint32) ([]*table, error) {
	rows, err := tx.Query(ctx, prepare(`SELECT {table}, ARRAY(SELECT quote_ident(a.attname) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum),
		k.names, k.types, k.collated
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN (
			SELECT i.indrelid, array_agg(quote_ident(a.attname) ORDER BY u.place) AS names, array_agg(format_type(a.atttypid, a.atttypmod) ORDER BY u.place) AS types, array_agg(a.attcollation <> 0 ORDER BY u.place) AS collated
			FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY u(attnum, place) JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.attnum
			WHERE i.indisprimary AND u.place <= i.indnkeyatts GROUP BY i.indrelid) k ON k.indrelid = c.oid
		WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND {users} AND {kept} AND `+own("pg_class", "c.oid")+` ORDER BY c.reltuples DESC, c.oid`), excluded)
	if err != nil {
		return nil, err
	}
	var tables []*table
	var name string
	var columns, names, types []string
	var collated []bool
	_, err = pgx.ForEachRow(rows, []any{&name, &columns, &names, &types, &collated}, func() error {
		t := &table{name: name, columns: columns}
		for i := range names {
			t.key = append(t.key, keyColumn{names[i], types[i], collated[i]})
		}
		tables = append(tables, t)
		columns, names, types, collated = nil, nil, nil, nil
		return nil
	})
	return tables, err
}

// keyNames are the columns of the primary key.
func (t *table) keyNames() string {
	var names []string
	for _, k := range t.key {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}

// plan divides a table into chunks of about size rows by its primary key; without one it is a chunk of its own.
func (t *table) plan(ctx context.Context, conn querier, size int) ([]*chunk, error) {
	chunks := []*chunk{{n: 0}}
	if len(t.key) == 0 {
		return chunks, nil
	}
	var texts []string
	for _, k := range t.key {
		texts = append(texts, k.name+"::text")
	}
	rows, err := conn.Query(ctx, fmt.Sprintf("SELECT ARRAY[%s] FROM (SELECT %s, row_number() OVER (ORDER BY %[2]s) AS percodb_copy_place FROM ONLY %s) numbered WHERE percodb_copy_place %% %d = 0 ORDER BY percodb_copy_place",
		strings.Join(texts, ", "), t.keyNames(), t.name, size))
	if err != nil {
		return nil, err
	}
	var bound []string
	_, err = pgx.ForEachRow(rows, []any{&bound}, func() error {
		chunks[len(chunks)-1].upper = bound
		chunks = append(chunks, &chunk{n: len(chunks), lower: bound})
		bound = nil
		return nil
	})
	return chunks, err
}

// condition selects the rows of a chunk. The comparison of the first column is for servers that read no range by the comparison of rows.
func (t *table) condition(c *chunk) string {
	var all []string
	compare := func(op, first string, bound []string) {
		if bound == nil {
			return
		}
		var values []string
		for i, k := range t.key {
			values = append(values, ast.QuoteString(bound[i])+"::"+k.typ)
		}
		if len(t.key) > 1 {
			all = append(all, t.key[0].name+" "+first+" "+values[0])
		}
		all = append(all, "("+t.keyNames()+") "+op+" ("+strings.Join(values, ", ")+")")
	}
	compare(">=", ">=", c.lower)
	compare("<", "<=", c.upper)
	if len(all) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(all, " AND ")
}

// out is the COPY that reads a chunk.
func (t *table) out(c *chunk) string {
	order := ""
	if len(t.key) > 0 {
		order = " ORDER BY " + t.keyNames()
	}
	return "COPY (SELECT " + strings.Join(t.columns, ", ") + " FROM ONLY " + t.name + t.condition(c) + order + ") TO STDOUT"
}

func (t *table) in() string {
	if len(t.columns) == 0 {
		return "COPY " + t.name + " FROM STDIN"
	}
	return "COPY " + t.name + " (" + strings.Join(t.columns, ", ") + ") FROM STDIN"
}

// digest counts the lines that are written to it, and sums their hashes: it does not depend on the order of rows.
type digest struct {
	rows int64
	sum  int64
	hash *xxhash.Digest
}

func newDigest() *digest { return &digest{hash: xxhash.New()} }

// Write implements io.Writer.
func (d *digest) Write(p []byte) (int, error) {
	n := len(p)
	for {
		end := bytes.IndexByte(p, '\n') // Those within values are escaped.
		if end < 0 {
			_, _ = d.hash.Write(p)
			return n, nil
		}
		_, _ = d.hash.Write(p[:end])
		d.sum += int64(d.hash.Sum64())
		d.rows++
		d.hash.Reset()
		p = p[end+1:]
	}
}

// retried are the SQLSTATEs of the target after which the source is read again, or goes on with another chunk.
var retried = []string{"40001", "40P01", "23505"}

// errCopiedBefore says that an earlier run, or an attempt whose answer was lost, has copied the chunk.
var errCopiedBefore = errors.New("the chunk is copied")

// copyChunk copies a chunk and notes it, in one transaction of the target.
func (c *copier) copyChunk(ctx context.Context, from, to *pgx.Conn, t *table, part *chunk) error {
	var read *digest
	err := loading.InTransaction(ctx, to, func(tx pgx.Tx) error {
		read = newDigest()
		if err := c.pipe(ctx, from, tx.Conn(), t, part, read); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, "UPDATE percodb_copy.chunk SET snapshot = $3, loaded = $4, checksum = $5 WHERE table_name = $1 AND n = $2 AND snapshot IS NULL",
			t.name, part.n, c.snapshot.id, read.rows, read.sum)
		if err == nil && tag.RowsAffected() == 0 {
			err = errCopiedBefore
		}
		return c.to.wrap(err)
	})
	if loading.HasCode(err, "23505") {
		// A commit of a killed run may have been on its way when this one read the state.
		var copied bool
		query := "SELECT snapshot IS NOT NULL FROM percodb_copy.chunk WHERE table_name = $1 AND n = $2"
		if to.QueryRow(ctx, query, t.name, part.n).Scan(&copied) == nil && copied {
			err = errCopiedBefore
		}
	}
	if errors.Is(err, errCopiedBefore) {
		return c.reread(ctx, to, t, part)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, c.to.wrap(err))
	}
	part.snapshot, part.loaded, part.checksum = &c.snapshot.id, &read.rows, &read.sum
	return nil
}

// reread reads the state of a chunk that another run has copied.
func (c *copier) reread(ctx context.Context, to *pgx.Conn, t *table, part *chunk) error {
	err := to.QueryRow(ctx, "SELECT snapshot, loaded, checksum FROM percodb_copy.chunk WHERE table_name = $1 AND n = $2", t.name, part.n).Scan(&part.snapshot, &part.loaded, &part.checksum)
	return c.to.wrap(err)
}

// pipe passes the rows of a chunk from the source to the target, and to the digest.
func (c *copier) pipe(ctx context.Context, from, to *pgx.Conn, t *table, part *chunk, read *digest) error {
	reader, writer := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		_, err := from.PgConn().CopyTo(ctx, io.MultiWriter(writer, read, c.counter()), t.out(part))
		if errors.Is(err, io.ErrClosedPipe) {
			err = nil // The target has ended the copy, and says why.
		}
		writer.CloseWithError(err) // nil: the end of the rows
		sent <- c.from.wrap(err)
	}()
	tag, err := to.PgConn().CopyFrom(ctx, reader, t.in())
	if loading.HasCode(err, retried...) {
		_, _ = io.Copy(io.Discard, reader) // The source's connection is needed for the next attempt.
	}
	_ = reader.Close() // The source must not wait for a target that has ended the copy.
	if sourceErr := <-sent; sourceErr != nil {
		return sourceErr
	}
	if err != nil {
		return c.to.wrap(err)
	}
	if tag.RowsAffected() != read.rows {
		return c.to.wrap(fmt.Errorf("it took %d rows of %d", tag.RowsAffected(), read.rows))
	}
	return nil
}

// readDigest reads the rows of a chunk without copying them.
func readDigest(ctx context.Context, conn *pgx.Conn, t *table, part *chunk, also io.Writer) (*digest, error) {
	d := newDigest()
	_, err := conn.PgConn().CopyTo(ctx, io.MultiWriter(d, also), t.out(part))
	return d, err
}
