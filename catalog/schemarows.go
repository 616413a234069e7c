package catalog

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
)

// rowReader reads some of the schema's rows.
type rowReader interface {
	Get(ctx context.Context, key []byte) ([]byte, error)
	Scan(ctx context.Context, span kv.Span, opts percolator.ScanOptions) percolator.Iterator
}

// schemaRows are the rows from which the schema of a database is made. They are read by one scan, since over a remote table each request
// counts, and kept, so that the schema with a transaction's changes is made of them and of its writes, without a request. Immutable.
type schemaRows struct {
	rows []kv.KeyValue // ascending
}

// schemaPage is the first page of such a scan: most schemas fit in.
const schemaPage = 1024

var versionSpan = keySpan(keyVersion)

// keySpan is the span of one key.
func keySpan(key []byte) kv.Span { return kv.Span{Start: key, End: append(bytes.Clone(key), 0)} }

// schemaSpans returns the spans of the rows of a schema but for its version, ascending and disjoint.
func schemaSpans(of space) []kv.Span {
	spans := []kv.Span{wordSpan(wordDatabase), wordSpan(wordRole), keySpan(spaceOf(FirstDatabase).grantsKey())}
	if of != spaceOf(FirstDatabase) {
		spans = append(spans, keySpan(of.grantsKey()))
	}
	for _, word := range []string{wordSchema, wordRelation, wordType, wordExtension, wordRoutine, wordText, wordCollation,
		wordOperator, wordCast, wordOpFamily, wordOpClass} {
		spans = append(spans, of.span(word))
	}
	slices.SortFunc(spans, func(a, b kv.Span) int { return bytes.Compare(a.Start, b.Start) })
	return spans
}

// readSchemaRows reads the rows in spans. Those that last has as well, which may be nil, share its memory.
func readSchemaRows(ctx context.Context, r percolator.Reader, spans []kv.Span, last *schemaRows) (*schemaRows, error) {
	all := &schemaRows{}
	var known []kv.KeyValue
	if last != nil {
		known = last.rows
	}
	it := r.ScanSpans(ctx, spans, percolator.ScanOptions{PageHint: schemaPage})
	defer it.Close()
	for it.Next(ctx) {
		for len(known) > 0 && bytes.Compare(known[0].Key, it.Key()) < 0 {
			known = known[1:]
		}
		if len(known) > 0 && bytes.Equal(known[0].Key, it.Key()) && bytes.Equal(known[0].Value, it.Value()) {
			all.rows = append(all.rows, known[0])
			continue
		}
		all.rows = append(all.rows, kv.KeyValue{Key: bytes.Clone(it.Key()), Value: bytes.Clone(it.Value())})
	}
	return all, it.Err()
}

// with returns the rows with what txn has written in spans, and whether it has written any.
func (s *schemaRows) with(txn *percolator.Txn, spans []kv.Span) (_ *schemaRows, wrote bool, err error) {
	all, kept := &schemaRows{}, s.rows
	err = txn.OwnWrites(spans, func(key, value []byte) error {
		i, found := placeOf(kept, key)
		if !wrote {
			all.rows = make([]kv.KeyValue, 0, len(s.rows)+1)
		}
		wrote = true
		all.rows = append(all.rows, kept[:i]...)
		if kept = kept[i:]; found {
			kept = kept[1:]
		}
		if value != nil {
			all.rows = append(all.rows, kv.KeyValue{Key: bytes.Clone(key), Value: bytes.Clone(value)})
		}
		return nil
	})
	if err != nil || !wrote {
		return s, false, err
	}
	all.rows = append(all.rows, kept...)
	return all, true, nil
}

// placeOf returns the place of the first row at or above key.
func placeOf(rows []kv.KeyValue, key []byte) (i int, found bool) {
	return slices.BinarySearchFunc(rows, key, func(row kv.KeyValue, key []byte) int { return bytes.Compare(row.Key, key) })
}

// Get implements rowReader.
func (s *schemaRows) Get(_ context.Context, key []byte) ([]byte, error) {
	if i, found := placeOf(s.rows, key); found {
		return s.rows[i].Value, nil
	}
	return nil, nil
}

// Scan implements rowReader.
func (s *schemaRows) Scan(_ context.Context, span kv.Span, _ percolator.ScanOptions) percolator.Iterator {
	from, _ := placeOf(s.rows, span.Start)
	to, _ := placeOf(s.rows, span.End)
	return &rowIterator{rows: s.rows[from:to], i: -1}
}

// rowIterator is an iterator over rows in memory.
type rowIterator struct {
	rows []kv.KeyValue
	i    int
}

func (it *rowIterator) Next(context.Context) bool {
	it.i++
	return it.i < len(it.rows)
}

func (it *rowIterator) Key() []byte   { return it.rows[it.i].Key }
func (it *rowIterator) Value() []byte { return it.rows[it.i].Value }
func (it *rowIterator) Err() error    { return nil }
func (it *rowIterator) Close()        {}
