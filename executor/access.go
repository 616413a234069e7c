package executor

import (
	"bytes"
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// access produces rows of the requested columns from the entries of one index; if the index does not contain them all,
// it reads the table's rows.
type access struct {
	ex      *execution
	table   *catalog.TableDescriptor
	index   *catalog.IndexDescriptor
	fetch   bool
	decoder rowenc.Decoder // of the index, or with fetch of the table's rows
	out     types.Row
}

// init prepares a. It must not be copied afterwards.
func (a *access) init(ex *execution, p *planner.Access) error {
	a.ex, a.table, a.index, a.fetch = ex, p.Table, p.Index, p.Fetch
	a.out = make(types.Row, len(p.Ordinals))
	from := p.Index
	if p.Fetch {
		from = &p.Table.Primary
	}
	return a.decoder.Init(p.Table, from, p.Ordinals)
}

// decode fills and returns the output row.
func (a *access) decode(key, value []byte) (types.Row, error) {
	return a.out, a.decoder.Decode(key, value, a.out)
}

// dangling is the error of an entry whose row is missing.
func (a *access) dangling(rowKey []byte) error {
	return pgerror.New(pgerror.DataCorrupted, "index %q of table %q points at a missing row", a.index.Name, a.table.Name).
		WithDetail("Row key %x.", rowKey).WithHint("Run percodb check.")
}

// getMany looks up whole keys of a unique index. rowKeys[i] and values[i] are the arguments of decode for keys[i];
// values[i] is nil if there is no row.
func (a *access) getMany(ctx context.Context, keys [][]byte) (rowKeys, values [][]byte, err error) {
	values, err = a.ex.txn.BatchGet(ctx, keys)
	if err != nil || !a.fetch {
		return keys, values, err
	}
	rowKeys = make([][]byte, len(keys))
	wanted := make([][]byte, 0, len(keys))
	for i, v := range values {
		if v == nil {
			continue
		}
		if rowKeys[i], err = rowenc.AppendRowKey(nil, a.table, a.index, keys[i], v); err != nil {
			return nil, nil, err
		}
		wanted = append(wanted, rowKeys[i])
	}
	rows, err := a.ex.txn.BatchGet(ctx, wanted)
	if err != nil {
		return nil, nil, err
	}
	for i, n := 0, 0; i < len(keys); i++ {
		if rowKeys[i] == nil {
			continue
		}
		if rows[n] == nil {
			return nil, nil, a.dangling(rowKeys[i])
		}
		values[i] = rows[n]
		n++
	}
	return rowKeys, values, nil
}

// spanReader yields the rows of spans of an index, in index order or its reverse. With fetch it
// gathers entries in growing groups and reads their rows together.
type spanReader struct {
	access
	reverse bool
	expect  int // rows expected to be pulled, 0 for unknown
	// keysOnly: no column is requested, as by count(*), so values are not transferred.
	keysOnly bool

	spans []kv.Span // to be read, in key order
	it    percolator.Iterator

	group  int
	keys   [][]byte // fetch: row keys of the group
	values [][]byte
	at     int
	buf    []byte // buffer of keys
	ended  bool
}

func (r *spanReader) init(ex *execution, p *planner.Access) error {
	r.keysOnly = len(p.Ordinals) == 0 && !p.Fetch
	return r.access.init(ex, p)
}

// start begins reading spans, which are in key order and disjoint, and are kept.
func (r *spanReader) start(spans []kv.Span) {
	r.stop()
	r.spans = spans
	r.group = r.ex.firstGroup()
	if r.expect > 0 {
		r.group = min(r.expect, r.ex.maxGroup)
	}
	r.keys, r.values, r.at, r.ended = r.keys[:0], nil, 0, false
}

// stop ends reading.
func (r *spanReader) stop() {
	if r.it != nil {
		r.it.Close()
		r.it = nil
	}
	r.spans = nil
}

// next returns the next row, or nil at the end.
func (r *spanReader) next(ctx context.Context) (types.Row, error) {
	if r.fetch {
		return r.nextFetched(ctx)
	}
	ok, err := r.advance(ctx)
	if !ok || err != nil {
		return nil, err
	}
	if r.keysOnly {
		return r.out, nil
	}
	return r.decode(r.it.Key(), r.it.Value())
}

// advance moves to the next pair of the spans.
func (r *spanReader) advance(ctx context.Context) (bool, error) {
	if r.it == nil {
		if len(r.spans) == 0 {
			return false, nil
		}
		r.it = r.scan(ctx, r.spans, r.expect)
	}
	if r.it.Next(ctx) {
		return true, nil
	}
	err := r.it.Err()
	r.stop()
	return false, err
}

// scan opens an iterator over spans, of which about hint rows will be read, 0 for unknown.
func (r *spanReader) scan(ctx context.Context, spans []kv.Span, hint int) percolator.Iterator {
	if r.ex.rt.PageHint > 0 {
		hint = r.ex.rt.PageHint
	}
	opts := percolator.ScanOptions{Reverse: r.reverse, PageHint: hint, KeysOnly: r.keysOnly, ReadAhead: r.expect == 0}
	if len(spans) == 1 {
		return r.ex.txn.Scan(ctx, spans[0], opts)
	}
	return r.ex.txn.ScanSpans(ctx, spans, opts)
}

func (r *spanReader) nextFetched(ctx context.Context) (types.Row, error) {
	for r.at == len(r.keys) {
		if r.ended {
			return nil, nil
		}
		if err := r.fetchGroup(ctx); err != nil {
			return nil, err
		}
	}
	key, value := r.keys[r.at], r.values[r.at]
	r.at++
	if value == nil {
		return nil, r.dangling(key)
	}
	return r.decode(key, value)
}

// fetchGroup reads the next group of entries and their rows.
func (r *spanReader) fetchGroup(ctx context.Context) error {
	r.keys, r.at, r.buf = r.keys[:0], 0, r.buf[:0]
	for len(r.keys) < r.group {
		ok, err := r.advance(ctx)
		if err != nil {
			return err
		}
		if !ok {
			r.ended = true
			break
		}
		from := len(r.buf)
		if r.buf, err = rowenc.AppendRowKey(r.buf, r.table, r.index, r.it.Key(), r.it.Value()); err != nil {
			return err
		}
		r.keys = append(r.keys, r.buf[from:len(r.buf):len(r.buf)])
	}
	r.group = r.ex.nextGroup(r.group)
	if len(r.keys) == 0 {
		return nil
	}
	var err error
	r.values, err = r.ex.txn.BatchGet(ctx, r.keys)
	return err
}

// wholeIndex is the span of all of an index.
func (a *access) wholeIndex() []kv.Span {
	start, end := rowenc.IndexSpan(a.table.ID, a.index.ID)
	return []kv.Span{{Start: start, End: end}}
}

// orderSpans sorts spans by key and merges those that overlap: parameters may make spans equal or nested that the
// planner took for disjoint, and no row may be returned twice.
func orderSpans(ctx context.Context, spans []kv.Span) ([]kv.Span, error) {
	err := sortPolled(ctx, spans, func(a, b kv.Span) int { return bytes.Compare(a.Start, b.Start) })
	if err != nil {
		return nil, err
	}
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 {
			last := &out[n-1]
			if len(last.End) == 0 {
				continue
			}
			if bytes.Compare(s.Start, last.End) < 0 {
				if len(s.End) == 0 || bytes.Compare(s.End, last.End) > 0 {
					last.End = s.End
				}
				continue
			}
		}
		out = append(out, s)
	}
	return out, nil
}
