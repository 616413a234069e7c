package catalog

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
)

// preloaded is a reader that has read some spans at once, and answers scans of each from memory. A schema is read by several scans; over
// a remote table each would be a request.
type preloaded struct {
	percolator.Reader
	spans []kv.Span
	rows  []kv.KeyValue // ascending
}

// preloadPage is the first page of a preload: most schemas fit in.
const preloadPage = 1024

// preload reads spans, which are disjoint.
func preload(ctx context.Context, r percolator.Reader, spans ...kv.Span) (*preloaded, error) {
	slices.SortFunc(spans, func(a, b kv.Span) int { return bytes.Compare(a.Start, b.Start) })
	p := &preloaded{Reader: r, spans: spans}
	it := r.ScanSpans(ctx, spans, percolator.ScanOptions{PageHint: preloadPage})
	defer it.Close()
	for it.Next(ctx) {
		p.rows = append(p.rows, kv.KeyValue{Key: bytes.Clone(it.Key()), Value: bytes.Clone(it.Value())})
	}
	return p, it.Err()
}

// Scan implements percolator.Reader.
func (p *preloaded) Scan(ctx context.Context, span kv.Span, opts percolator.ScanOptions) percolator.Iterator {
	if opts != (percolator.ScanOptions{}) || !slices.ContainsFunc(p.spans, func(s kv.Span) bool {
		return bytes.Equal(s.Start, span.Start) && bytes.Equal(s.End, span.End)
	}) {
		return p.Reader.Scan(ctx, span, opts)
	}
	at := func(key []byte) int {
		i, _ := slices.BinarySearchFunc(p.rows, key, func(row kv.KeyValue, key []byte) int { return bytes.Compare(row.Key, key) })
		return i
	}
	return &preloadedRows{rows: p.rows[at(span.Start):at(span.End)], i: -1}
}

// preloadedRows is an iterator over rows in memory.
type preloadedRows struct {
	rows []kv.KeyValue
	i    int
}

func (it *preloadedRows) Next(context.Context) bool {
	it.i++
	return it.i < len(it.rows)
}

func (it *preloadedRows) Key() []byte   { return it.rows[it.i].Key }
func (it *preloadedRows) Value() []byte { return it.rows[it.i].Value }
func (it *preloadedRows) Err() error    { return nil }
func (it *preloadedRows) Close()        {}
