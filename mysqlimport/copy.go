package mysqlimport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/internal/loading"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/mysql"
)

// copyAll loads batches until there are no more.
func (i *importer) copyAll(ctx context.Context, batches <-chan *batch) error {
	conn, err := pgx.Connect(ctx, i.o.URL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for b := range batches {
		copied, err := i.copyBatch(ctx, conn, b)
		if err != nil {
			return err
		}
		i.release(b)
		i.loadedBatch(b, copied)
	}
	return nil
}

// copyBatch loads a batch in one transaction, again after a conflict. It returns false if the batch is already loaded:
// the commit of an interrupted run may have been in flight when this run read the list of loaded batches.
func (i *importer) copyBatch(ctx context.Context, conn *pgx.Conn, b *batch) (bool, error) {
	err := loading.InTransaction(ctx, conn, func(tx pgx.Tx) error { return i.copyRows(ctx, tx, b) })
	if loading.HasCode(err, "23505") {
		var there bool
		query := "SELECT EXISTS (SELECT 1 FROM percodb_import.batch WHERE job = $1 AND file = $2 AND start = $3)"
		if err := conn.QueryRow(ctx, query, i.state.job, b.file.index, b.start).Scan(&there); err != nil || there {
			return false, err
		}
	}
	if err != nil {
		return false, b.explain(err)
	}
	return true, nil
}

// copyRows inserts the batch's key, which blocks while another run loads the batch, and copies its rows.
func (i *importer) copyRows(ctx context.Context, tx pgx.Tx, b *batch) error {
	if _, err := tx.Exec(ctx, "INSERT INTO percodb_import.batch (job, file, start) VALUES ($1, $2, $3)", i.state.job, b.file.index, b.start); err != nil {
		return err
	}
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(b.data), b.statement())
	if err != nil {
		return err
	}
	if tag.RowsAffected() != b.rows {
		return fmt.Errorf("COPY %s: the server took %d rows of %d", b.table.label, tag.RowsAffected(), b.rows)
	}
	return nil
}

// statement is the batch's COPY.
func (b *batch) statement() string {
	var names []string
	for _, n := range b.columns {
		if col := b.table.Columns[n]; col.Kind != mysql.Skipped {
			names = append(names, ast.QuoteIdent(col.Name))
		}
	}
	return "COPY " + ast.QuoteIdent(b.table.Schema) + "." + ast.QuoteIdent(b.table.Name) + " (" + strings.Join(names, ", ") + ") FROM STDIN"
}

var copyLine = regexp.MustCompile(`COPY .*, line (\d+)`)

// explain adds the place in the dump to an error of COPY.
func (b *batch) explain(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	if class := pg.Code[:2]; class != "22" && class != "23" && class != "54" { // the error does not concern the row
		return fmt.Errorf("%s: %w", b.table.label, err)
	}
	line := b.lines[0]
	exact := false
	if m := copyLine.FindStringSubmatch(pg.Where); m != nil {
		if n, _ := strconv.Atoi(m[1]); 1 <= n && n <= len(b.lines) {
			line, exact = b.lines[n-1], true
		}
	}
	text := b.table.label + ": " + pg.Message + " (SQLSTATE " + pg.Code + ")"
	if pg.Detail != "" {
		text += "\n" + pg.Detail
	}
	if !exact {
		text += fmt.Sprintf("\nThe row is one of the %d rows from this line on.", b.rows)
	}
	return &PlaceError{File: b.file.path, Line: int(line), Text: text, Hint: hintOf(pg)}
}

// hintOf returns advice about a row that the server refuses.
func hintOf(pg *pgconn.PgError) string {
	switch pg.Code {
	case "23514":
		return "The value is outside of what the column's type allows in MySQL: correct it there and dump again, or leave the table out with --exclude."
	case "23505":
		return "The dump has two rows with one key, or the table was written to meanwhile: start again with --restart."
	case "22003":
		if strings.Contains(pg.Message, "bigint") {
			return "BIGINT UNSIGNED beyond 9223372036854775807 needs --bigint-unsigned=numeric."
		}
	case "22007", "22008", "22009":
		if strings.Contains(pg.Message, "time") { // a time or its zone
			return "A TIME beyond a day needs --time=interval. Other values: correct them in MySQL and dump again."
		}
	case "22021":
		return "The string is not of the dump's character set: dump with --default-character-set=utf8mb4, or, if it is binary, with --hex-blob."
	}
	if pg.Hint != "" {
		return pg.Hint
	}
	return "Correct the value in MySQL and dump again, or leave the table out with --exclude."
}
