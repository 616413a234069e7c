package ddl

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
)

// Goal: a scan that is read ahead yields each row once and in order, and ends with the error of who takes the rows, or with
// a cancel, wherever that comes; it never ends early without an error. Method: as many rows as several batches have and
// some more; the taker fails, or cancels, at each of some rows.
func TestReadAhead(t *testing.T) {
	ctx := context.Background()
	s := newServer(t, catalog.Options{})
	for _, n := range []int{0, 1, aheadRows, 3*aheadRows + 7, 2 * aheadBatches * aheadRows} {
		txn, err := s.db.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		prefix := fmt.Sprintf("\x02rows%d/", n)
		for i := range n {
			if err := txn.Put(fmt.Appendf(nil, "%s%06d", prefix, i), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := txn.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		failed := errors.New("taker")
		for _, at := range []int{-1, 0, 1, aheadRows - 1, aheadRows, n / 2, n - 1} {
			for _, cancels := range []bool{false, true} {
				reader, err := s.db.Begin(ctx)
				if err != nil {
					t.Fatal(err)
				}
				inner, cancel := context.WithCancel(ctx)
				it := reader.Scan(inner, kv.Span{Start: []byte(prefix), End: []byte(prefix + "a")}, percolator.ScanOptions{})
				seen := 0
				err = readAhead(inner, it, func(key, value []byte) error {
					if string(key) != fmt.Sprintf("%s%06d", prefix, seen) || string(value) != fmt.Sprint(seen) {
						t.Errorf("row %d is %q %q", seen, key, value)
					}
					seen++
					switch {
					case seen-1 != at:
					case cancels:
						cancel()
					default:
						return failed
					}
					return nil
				})
				hit := at >= 0 && at < n
				switch {
				case !hit && (err != nil || seen != n), hit && !cancels && (err != failed || seen != at+1),
					hit && cancels && !errors.Is(err, context.Canceled):
					t.Errorf("%d rows, at %d cancel %v: %d rows seen, %v", n, at, cancels, seen, err)
				}
				it.Close()
				cancel()
				_ = reader.Rollback(ctx)
			}
		}
	}
}

// longRows is an iterator over rows with long values.
type longRows struct {
	value []byte
	left  int
	read  atomic.Int64 // bytes of values so far
}

func (l *longRows) Next(context.Context) bool {
	l.left--
	l.read.Add(int64(len(l.value)))
	return l.left >= 0
}

func (l *longRows) Key() []byte   { return []byte("row") }
func (l *longRows) Value() []byte { return l.value }
func (l *longRows) Err() error    { return nil }
func (l *longRows) Close()        {}

// Goal: what is read ahead is bounded by bytes too. Method: rows of 64 KiB; at each that is taken, how many were read.
func TestReadAheadOfLongRows(t *testing.T) {
	const n, length = 2000, 64 << 10
	it := &longRows{value: make([]byte, length), left: n}
	taken := int64(0)
	err := readAhead(t.Context(), it, func(_, value []byte) error {
		if ahead := it.read.Load() - taken; ahead > (aheadBatches+1)*(aheadBytes+length) {
			return fmt.Errorf("%d bytes are read ahead", ahead)
		}
		taken += int64(len(value))
		return nil
	})
	if err != nil || taken != n*length {
		t.Errorf("%d bytes taken: %v", taken, err)
	}
}
