package sqllogic

import (
	"fmt"
	"strconv"
	"strings"
)

// parser reads the records of one file. It works line by line over the whole
// text: test files are at most a few megabytes.
type parser struct {
	rest    string // what follows the current line
	line    int    // number of the current line, from 1; 0 before the first
	text    string // the current line, without its line end
	rowwise bool   // the result mode in force
}

// next moves to the next line and reports whether there is one.
func (p *parser) next() bool {
	if p.rest == "" {
		return false
	}
	p.line++
	text, rest, _ := strings.Cut(p.rest, "\n")
	p.text, p.rest = strings.TrimSuffix(text, "\r"), rest
	return true
}

// parse returns the records of a file's text, in order.
func parse(text string) ([]record, error) {
	p := parser{rest: text}
	var records []record
	for {
		r, ok, err := p.record()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line, err)
		}
		if !ok {
			return records, nil
		}
		records = append(records, r)
	}
}

// record reads one record: its condition lines, its header and its body. It
// reports false at the end of the file.
func (p *parser) record() (record, bool, error) {
	var r record
	for p.next() {
		words := strings.Fields(p.text)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if r.line == 0 {
			r.line = p.line
		}
		r.headerLine = p.line
		switch words[0] {
		case "skipif", "onlyif":
			if len(words) < 2 {
				return r, false, fmt.Errorf("%s needs the name of a dialect", words[0])
			}
			r.conditions = append(r.conditions, condition{only: words[0] == "onlyif", dialect: words[1]})
			continue
		case "connection":
			if len(words) != 2 {
				return r, false, fmt.Errorf("connection needs one name")
			}
			r.connection = words[1]
			continue
		}
		r.rowwise = p.rowwise
		return r, true, p.body(&r, words)
	}
	if r.line != 0 {
		return r, false, fmt.Errorf("a condition stands before the end of the file, not before a record")
	}
	return r, false, nil
}

// body reads what the header's first word asks for.
func (p *parser) body(r *record, words []string) error {
	switch words[0] {
	case "statement":
		return p.statement(r, words[1:])
	case "query":
		return p.query(r, words[1:])
	case "halt":
		r.kind = kindHalt
		return nil
	case "hash-threshold":
		r.kind = kindHashThreshold
		if len(words) != 2 {
			return fmt.Errorf("hash-threshold needs one number")
		}
		n, err := strconv.ParseUint(words[1], 10, 31)
		if err != nil {
			return fmt.Errorf("hash-threshold: %w", err)
		}
		r.count = int64(n)
		return nil
	case "control":
		return p.control(r, words[1:])
	}
	return fmt.Errorf("unknown record %q", words[0])
}

func (p *parser) control(r *record, words []string) error {
	r.kind = kindResultMode
	if len(words) == 2 && words[0] == "resultmode" {
		switch words[1] {
		case "rowwise", "valuewise":
			p.rowwise = words[1] == "rowwise"
			r.rowwise = p.rowwise
			return nil
		}
	}
	return fmt.Errorf("control knows only: resultmode rowwise, resultmode valuewise")
}

func (p *parser) statement(r *record, words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("statement needs ok, error or count")
	}
	switch words[0] {
	case "ok":
		r.kind = kindStatementOK
	case "error":
		r.kind = kindStatementError
		if len(words) > 1 {
			r.sqlState = words[1]
			if len(r.sqlState) != 5 {
				return fmt.Errorf("%q is not a SQLSTATE", r.sqlState)
			}
		}
	case "count":
		r.kind = kindStatementCount
		if len(words) != 2 {
			return fmt.Errorf("statement count needs one number")
		}
		n, err := strconv.ParseUint(words[1], 10, 63)
		if err != nil {
			return fmt.Errorf("statement count: %w", err)
		}
		r.count = int64(n)
	default:
		return fmt.Errorf("statement needs ok, error or count, not %q", words[0])
	}
	data, err := p.sql(r)
	if err != nil || !data {
		return err
	}
	var b strings.Builder
	for p.next() && p.text != "" {
		b.WriteString(p.text)
		b.WriteByte('\n')
	}
	r.data = b.String()
	if r.data == "" {
		return fmt.Errorf("a statement has data after ----, or no ----")
	}
	return nil
}

func (p *parser) query(r *record, words []string) error {
	r.kind = kindQuery
	if len(words) == 0 {
		return fmt.Errorf("query needs its column types")
	}
	r.types = words[0]
	if r.types != "?" && strings.Trim(r.types, "IRT") != "" {
		return fmt.Errorf("column types are I, R and T, not %q", r.types)
	}
	words = words[1:]
	if len(words) > 0 {
		switch words[0] {
		case "nosort":
			words = words[1:]
		case "rowsort":
			r.sort, words = sortRows, words[1:]
		case "valuesort":
			r.sort, words = sortValues, words[1:]
		}
	}
	if len(words) > 0 {
		r.label = words[0]
	}
	if r.rowwise && r.sort == sortValues {
		return fmt.Errorf("valuesort needs resultmode valuewise")
	}
	result, err := p.sql(r)
	if err != nil || !result {
		return err
	}
	p.expected(r)
	return nil
}

// sql reads the lines up to a blank one or to "----", and reports whether it
// was the latter.
func (p *parser) sql(r *record) (result bool, err error) {
	var b strings.Builder
	for p.next() {
		if p.text == "----" {
			result = true
			break
		}
		if strings.TrimSpace(p.text) == "" {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.text)
		r.bodyEnd = p.line + 1
	}
	r.sql = b.String()
	if r.sql == "" {
		return result, fmt.Errorf("the record has no SQL")
	}
	return result, nil
}

// expected reads the result of a query, up to a blank line.
func (p *parser) expected(r *record) {
	r.resultFrom = p.line + 1
	r.resultTo = r.resultFrom
	for p.next() && p.text != "" {
		r.expected = append(r.expected, p.text)
		r.resultTo = p.line + 1
	}
	if len(r.expected) != 1 {
		return
	}
	// "30 values hashing to <md5>"; anything else in this shape is a value.
	words := strings.Fields(r.expected[0])
	if len(words) != 5 || words[1] != "values" || words[2] != "hashing" || words[3] != "to" || len(words[4]) != 32 {
		return
	}
	if n, err := strconv.Atoi(words[0]); err == nil {
		r.hash, r.hashCount, r.expected = words[4], n, nil
	}
}
