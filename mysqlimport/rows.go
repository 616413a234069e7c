package mysqlimport

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/mysql"
)

// batchBytes is how much of a dump is loaded in one transaction. Only the dump's bytes determine where batches end, so
// that a later run cuts them alike. Tests set a smaller value.
var batchBytes int64 = 2 << 20

// batch is a part of one table's rows, converted to COPY's text format.
type batch struct {
	table   *table
	file    *dumpFile
	start   int64 // offset of the first row in the dump, part of the batch's key
	columns []int // ordinals in table.Columns of the dump's values
	in      rules
	skip    bool // an earlier run has loaded it

	data  []byte
	rows  int64
	lines []int32 // of each row
	zeros map[string]int64
}

// insert handles INSERT or REPLACE after its first word.
func (r *reader) insert(ctx context.Context) error {
	t, columns, err := r.insertHead()
	if err != nil {
		return err
	}
	if t == nil { // excluded, or the placeholder of a view
		return r.passOver()
	}
	for {
		if err := r.s.skipBlanks(); err != nil {
			return err
		}
		if r.cur == nil || r.cur.table != t || !slices.Equal(r.cur.columns, columns) || r.cur.in != r.in {
			if err := r.flush(ctx); err != nil {
				return err
			}
			r.begin(t, columns)
		}
		if err := r.row(); err != nil {
			return err
		}
		if r.s.offset()-r.cur.start >= batchBytes {
			if err := r.flush(ctx); err != nil {
				return err
			}
		}
		more, err := r.afterRow()
		if err != nil || !more {
			return err
		}
	}
}

// insertHead reads up to VALUES.
func (r *reader) insertHead() (*table, []int, error) {
	s := r.s
	for {
		if err := s.skipBlanks(); err != nil {
			return nil, nil, err
		}
		if ch := s.peek(); ch == '`' || ch == '"' {
			break
		}
		w := strings.ToUpper(s.word())
		if w == "INTO" {
			break
		}
		if w == "IGNORE" || w == "LOW_PRIORITY" || w == "DELAYED" || w == "HIGH_PRIORITY" {
			continue
		}
		return nil, nil, s.unexpected("INTO and a table's name")
	}
	line := s.line()
	name, err := s.name()
	if err != nil {
		return nil, nil, err
	}
	db := r.db
	if err := s.skipBlanks(); err != nil {
		return nil, nil, err
	}
	if s.peek() == '.' {
		s.pos++
		db = name
		if name, err = s.name(); err != nil {
			return nil, nil, err
		}
	}
	t, excluded := r.imp.find(db, name)
	if excluded {
		return nil, nil, nil
	}
	if t == nil {
		return nil, nil, &PlaceError{File: s.file, Line: line, Text: "rows of " + name + " come without its CREATE TABLE before them",
			Hint: "Dump with the tables' definitions (mysqldump without --no-create-info), or name the file that has them first."}
	}
	columns, err := r.columnList(t)
	if err != nil {
		return nil, nil, err
	}
	if w := strings.ToUpper(s.word()); w != "VALUES" && w != "VALUE" {
		return nil, nil, s.unexpected("VALUES")
	}
	return t, columns, nil
}

// columnList reads the columns that INSERT names, or returns all.
func (r *reader) columnList(t *table) ([]int, error) {
	s := r.s
	if err := s.skipBlanks(); err != nil {
		return nil, err
	}
	if s.peek() != '(' {
		return t.all, nil
	}
	s.pos++
	var columns []int
	for {
		name, err := s.name()
		if err != nil {
			return nil, err
		}
		i := t.ordinal(name)
		if i < 0 {
			return nil, s.fail("Dump again: the rows and the definition do not belong together.", "the table %s has no column %s", t.label, name)
		}
		columns = append(columns, i)
		if err := s.skipBlanks(); err != nil {
			return nil, err
		}
		switch s.peek() {
		case ',':
			s.pos++
		case ')':
			s.pos++
			return columns, s.skipBlanks()
		default:
			return nil, s.unexpected("a comma or the end of the list of columns")
		}
	}
}

// afterRow reads the separator of rows, and reports whether another row follows.
func (r *reader) afterRow() (bool, error) {
	s := r.s
	if err := s.skipBlanks(); err != nil {
		return false, err
	}
	if s.atDelimiter() {
		s.pos += len(s.delimiter)
		return false, nil
	}
	if s.peek() == ',' {
		s.pos++
		return true, nil
	}
	return false, s.unexpected("another row or the end of INSERT")
}

// passOver skips INSERT's rows.
func (r *reader) passOver() error {
	s := r.s
	for {
		if err := s.skipBlanks(); err != nil {
			return err
		}
		switch {
		case s.atEnd():
			return s.truncated("a statement")
		case s.atDelimiter():
			s.pos += len(s.delimiter)
			return nil
		case s.peek() == '\'' || s.peek() == '"' || s.peek() == '`':
			r.lit.text = r.lit.text[:0]
			if err := s.readString(&r.lit, s.peek(), false); err != nil {
				return err
			}
		default:
			s.pos++
		}
	}
}

// begin starts a batch at the next row.
func (r *reader) begin(t *table, columns []int) {
	start := r.s.offset()
	r.cur = &batch{table: t, file: r.file, start: start, columns: columns, in: r.in, skip: r.imp.loaded(r.file, start)}
	if !r.cur.skip {
		r.cur.data = r.imp.buffer()
	}
}

// row reads one row in parentheses, and appends it to the batch.
func (r *reader) row() error {
	s, b := r.s, r.cur
	line := s.line()
	if s.peek() != '(' {
		return s.unexpected("a row")
	}
	s.pos++
	begin, first := len(b.data), true
	for i := 0; ; i++ {
		if i == len(b.columns) {
			return s.fail("Dump again: the rows and the definition do not belong together.", "a row of %s has more than %d values", b.table.label, len(b.columns))
		}
		col := &b.table.Columns[b.columns[i]]
		keep := !b.skip && col.Kind != mysql.Skipped
		if err := s.readLiteral(&r.lit, keep); err != nil {
			return err
		}
		if keep {
			if !first {
				b.data = append(b.data, '\t')
			}
			first = false
			var err error
			if b.data, err = r.convert.append(b.data, b.table, col, &r.lit, b.in); err != nil {
				return &PlaceError{File: s.file, Line: line, Text: "column " + col.Name + " of " + b.table.label + ": " + err.Error()}
			}
			if len(b.data)-begin > maxRow {
				return s.fail("Leave the table out with --exclude.", "a row is longer than %d MiB", maxRow>>20)
			}
		}
		if err := s.skipBlanks(); err != nil {
			return err
		}
		ch := s.peek()
		if ch != ',' && ch != ')' {
			return s.unexpected("a comma or the end of the row")
		}
		s.pos++
		if ch == ')' {
			if i+1 != len(b.columns) {
				return s.fail("Dump again: the rows and the definition do not belong together.", "a row of %s has %d values in place of %d", b.table.label, i+1, len(b.columns))
			}
			break
		}
	}
	b.rows++
	if !b.skip {
		b.data = append(b.data, '\n')
		b.lines = append(b.lines, int32(line))
	}
	return nil
}

// flush passes the batch to the connections.
func (r *reader) flush(ctx context.Context) error {
	b := r.cur
	if b == nil {
		return nil
	}
	r.cur = nil
	b.zeros, r.convert.zeros = r.convert.zeros, nil
	return r.imp.give(ctx, b)
}
