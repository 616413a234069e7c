package sqllogic

import "time"

// kind says what a record does.
type kind uint8

const (
	kindStatementOK kind = iota
	kindStatementError
	kindStatementCount
	kindQuery
	kindHalt
	kindHashThreshold
	kindResultMode
)

// sortMode says how the values of a query are ordered before comparison.
type sortMode uint8

const (
	sortNone sortMode = iota
	sortRows
	sortValues
)

// condition is one skipif or onlyif line before a record.
type condition struct {
	only    bool // onlyif, else skipif
	dialect string
}

// record is one unit of a test file, as written.
type record struct {
	kind       kind
	line       int // where the record begins, its condition lines included
	headerLine int // where its statement, query or control line stands
	conditions []condition
	connection string // "" is the file's first connection

	sql     string
	bodyEnd int // the line after the last one of sql

	sqlState string // kindStatementError: the SQLSTATE required, or ""
	count    int64  // kindStatementCount: the rows required; kindHashThreshold: the threshold

	data string // statements: the lines after "----", which COPY … FROM STDIN is given

	types   string // kindQuery: one of I, R, T for each column, or "?"
	sort    sortMode
	label   string
	rowwise bool // the result mode in force here; for kindResultMode, the new mode

	// The expected result of a query: the hash of hashCount values when hash
	// is not empty, else these lines.
	hash      string
	hashCount int
	expected  []string

	// The lines of the expected result, for the rewriter: it replaces lines
	// resultFrom (after "----") up to, not including, resultTo. Both count from 1.
	// Without a "----" line both are 0.
	resultFrom, resultTo int
}

// runs reports whether the record is to be run on this dialect.
func (r *record) runs(dialect string) bool {
	for _, c := range r.conditions {
		if c.only != (c.dialect == dialect) {
			return false
		}
	}
	return true
}

// Failure is one record that did not do what its file says.
type Failure struct {
	File     string // as given on the command line or in the list
	Line     int    // where the record begins
	SQL      string
	Expected string
	Actual   string
}

// Summary is the outcome of a run.
type Summary struct {
	Files   int
	Passed  int
	Failed  int
	Skipped int // by skipif, onlyif or the exclude file
	Elapsed time.Duration
}
