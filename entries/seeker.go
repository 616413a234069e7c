package entries

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// Seeker looks for rows that conflict with a row under a constraint that is checked late. One goroutine's.
//
// Rows that may conflict are equal in the leading columns of the constraint's index (IndexDescriptor.SharedColumns). Under a unique constraint
// they are all there is. Under EXCLUDE with = and, behind them, && of one range, the rows of a valid table do not overlap, so that one that does
// is next to the row in the order of the index. Under others all rows with the shared columns are compared, one by one.
type Seeker struct {
	key     *planner.LateKey
	ev      *expr.Context
	make    *Maker // nil: a row is all that the index holds
	decoder rowenc.Decoder
	row     types.Row
	pair    types.Row // the elements of the row that has begun, then those of another
	at      []byte    // the key of its entry
	shared  int       // length of the key's part that conflicting rows share
	keys    [][]byte  // scratch
}

// seekGroup is the number of rows that are read together.
const seekGroup = 256

// NewSeeker returns a Seeker that evaluates expressions with ev.
func NewSeeker(key *planner.LateKey, ev *expr.Context) (*Seeker, error) {
	t := key.Table
	s := &Seeker{key: key, ev: ev, make: NewMaker(t, key.Indexed, ev), row: make(types.Row, len(t.Columns)), pair: make(types.Row, 2*len(key.Elements))}
	ordinals := make([]int, len(t.Columns))
	for i := range ordinals {
		ordinals[i] = i
	}
	return s, s.decoder.Init(t, &t.Primary, ordinals)
}

// Decode reads a stored row into row.
func (s *Seeker) Decode(key, value []byte, row types.Row) error {
	return s.decoder.Decode(key, value, row)
}

// held returns what the index holds of a row, false for nothing.
func (s *Seeker) held(row types.Row) (types.Row, bool, error) {
	if s.make == nil {
		return row, true, nil
	}
	s.make.Begin(row)
	return s.make.Entry(s.key.At)
}

// Begin takes the next row, whose values must stay until it is done with. false: the constraint does not concern the row.
func (s *Seeker) Begin(row types.Row) (bool, error) {
	held, ok, err := s.held(row)
	if !ok || err != nil {
		return false, err
	}
	t, ix := s.key.Table, s.key.Index
	null := false
	for i, ord := range s.key.Elements {
		s.pair[i] = held[ord]
		null = null || held[ord].IsNull()
	}
	if null && !ix.NullsNotDistinct {
		return false, nil
	}
	shared := make(types.Row, ix.SharedColumns())
	for i := range shared {
		shared[i] = held[t.Ordinal(ix.Columns[i].ColumnID)]
	}
	if s.at, err = rowenc.AppendKeyPrefix(s.at[:0], t, ix, shared...); err != nil {
		return false, err
	}
	s.shared = len(s.at)
	if s.at, _, err = rowenc.AppendKey(s.at[:0], t, ix, held); err != nil {
		return false, err
	}
	return true, nil
}

// Shared returns the start of the keys of all rows that may conflict with the row that has begun.
func (s *Seeker) Shared() []byte { return s.at[:s.shared] }

// Values returns the elements of the row that has begun, Found those of the row that Find has returned last.
func (s *Seeker) Values() types.Row { return s.pair[:len(s.key.Elements)] }

// Found is described with Values.
func (s *Seeker) Found() types.Row { return s.pair[len(s.key.Elements):] }

// Find returns the key of a row that conflicts with the one that has begun, nil if there is none. own is the row's own key, which is passed over.
func (s *Seeker) Find(ctx context.Context, r percolator.Reader, own []byte) ([]byte, error) {
	if s.ordered() {
		return s.neighbours(ctx, r, own)
	}
	it := r.Scan(ctx, kv.Span{Start: s.Shared(), End: rowenc.PrefixEnd(s.Shared())}, percolator.ScanOptions{})
	defer it.Close()
	s.keys = s.keys[:0]
	for it.Next(ctx) {
		row, err := s.rowOf(it)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(row, own) {
			continue
		}
		if s.keys = append(s.keys, row); len(s.keys) < seekGroup && s.key.Conflict != nil {
			continue
		}
		if found, err := s.among(ctx, r); found != nil || err != nil {
			return found, err
		}
	}
	if it.Err() != nil {
		return nil, it.Err()
	}
	return s.among(ctx, r)
}

// ordered reports whether conflicting rows are neighbours in the index: its last key is a range, and the constraint has no other elements.
func (s *Seeker) ordered() bool {
	n := len(s.key.Index.Columns)
	return s.key.Conflict != nil && n == len(s.key.Elements) && n > s.key.Index.SharedColumns()
}

// neighbours is Find by the entries next to the row's own place.
func (s *Seeker) neighbours(ctx context.Context, r percolator.Reader, own []byte) ([]byte, error) {
	for _, reverse := range []bool{true, false} {
		span := kv.Span{Start: s.at, End: rowenc.PrefixEnd(s.Shared())}
		if reverse {
			span = kv.Span{Start: s.Shared(), End: s.at}
		}
		found, err := s.first(ctx, r, span, reverse, own)
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// first returns the row of the first entry in a span that is not own, if it conflicts.
func (s *Seeker) first(ctx context.Context, r percolator.Reader, span kv.Span, reverse bool, own []byte) ([]byte, error) {
	it := r.Scan(ctx, span, percolator.ScanOptions{Reverse: reverse, PageHint: 2})
	defer it.Close()
	for it.Next(ctx) {
		row, err := s.rowOf(it)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(row, own) {
			s.keys = append(s.keys[:0], row)
			return s.among(ctx, r)
		}
	}
	return nil, it.Err()
}

// rowOf returns the key of the row of an entry.
func (s *Seeker) rowOf(it percolator.Iterator) ([]byte, error) {
	return rowenc.AppendRowKey(nil, s.key.Table, s.key.Index, it.Key(), it.Value())
}

// among returns the first of the rows under s.keys that conflicts, and clears s.keys.
func (s *Seeker) among(ctx context.Context, r percolator.Reader) ([]byte, error) {
	keys := s.keys
	s.keys = s.keys[:0]
	if len(keys) == 0 || s.key.Conflict == nil {
		if len(keys) > 0 {
			copy(s.Found(), s.Values())
			return keys[0], nil
		}
		return nil, nil
	}
	slices.SortFunc(keys, bytes.Compare)
	values, err := r.BatchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, value := range values {
		if value == nil {
			continue
		}
		if err := s.decoder.Decode(keys[i], value, s.row); err != nil {
			return nil, err
		}
		conflicts, err := s.conflicts(s.row)
		if conflicts || err != nil {
			return keys[i], err
		}
	}
	return nil, nil
}

// Describe prints the elements of a constraint as messages do: their names, and their values in a row.
func Describe(key *planner.LateKey, values types.Row, format *types.Format) (names, texts string) {
	var n, v []string
	for i, ord := range key.Elements {
		c := key.Table.ColumnAt(ord)
		n = append(n, c.Name)
		if values[i].IsNull() {
			v = append(v, "null")
		} else {
			v = append(v, string(types.AppendText(nil, values[i], c.Type, format)))
		}
	}
	return strings.Join(n, ", "), strings.Join(v, ", ")
}

// conflicts reports whether a row conflicts with the one that has begun.
func (s *Seeker) conflicts(row types.Row) (bool, error) {
	held, ok, err := s.held(row)
	if !ok || err != nil {
		return false, err
	}
	for i, ord := range s.key.Elements {
		s.Found()[i] = held[ord]
	}
	for _, c := range s.key.Conflict {
		d, err := c.Eval(s.ev, s.pair)
		if err != nil || d.IsNull() || !d.Bool() {
			return false, err
		}
	}
	return true, nil
}
