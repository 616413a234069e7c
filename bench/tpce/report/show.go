package report

import (
	"io"
	"time"
)

// Line returns the point as the line of a running benchmark: elapsed is the time since its start, nominal
// the Trade-Results per second it should reach, 0 for as many as it can.
func (p *Point) Line(elapsed time.Duration, nominal float64) string { return "" }

// WriteTable writes the result as the table that ends a run.
func (r *Result) WriteTable(w io.Writer) error { return nil }

// WritePage writes one HTML page that shows a result, or two against each other.
func WritePage(w io.Writer, results ...*Result) error { return nil }

// WritePageFile writes that page to a file.
func WritePageFile(path string, results ...*Result) error { return nil }

// Merge returns the result of drivers that ran at the same time against the same database.
func Merge(results ...*Result) (*Result, error) { return nil, nil }
