package check

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/rowenc"
)

// place is the keys of one index of a relation, or of a relation with all its indexes (index 0).
type place struct {
	table uint64
	index uint32
}

func (p place) span() kv.Span {
	if p.index == 0 {
		start, end := rowenc.TableSpan(p.table)
		return kv.Span{Start: start, End: end}
	}
	start, end := rowenc.IndexSpan(p.table, p.index)
	return kv.Span{Start: start, End: end}
}

// Leftovers reports keys of tables that belong to no relation of any database: something has ended without removing what it wrote. Not
// reported are those of a table's indexes below its NextIndexID: a process that dies while it fills an index leaves them. They are not read, and go with
// the table. schemas are those of all databases, at the snapshot of txn.
func Leftovers(ctx context.Context, schemas []catalog.Resolver, txn percolator.Reader, report func(Finding) error) error {
	var known []place
	given := make(map[uint64]uint32) // the first number of an index that no change has been given, of tables
	for _, s := range schemas {
		all, err := s.Relations(ctx)
		if err != nil {
			return err
		}
		for _, t := range all {
			if t.Kind == catalog.KindTable {
				known = append(known, places(t)...)
				given[t.ID] = t.NextIndexID
			}
		}
	}
	temporary, err := catalog.TemporaryIDs(ctx, txn)
	if err != nil {
		return err
	}
	for _, id := range temporary {
		known = append(known, place{id, 0})
	}
	dropped, err := catalog.Dropped(ctx, txn)
	if err != nil {
		return err
	}
	for i := range dropped {
		if dropped[i].Table != 0 {
			known = append(known, place{dropped[i].Table, dropped[i].Index})
		}
	}
	return between(ctx, known, txn, func(table uint64, index uint32, key []byte) error {
		if index < given[table] {
			return nil
		}
		return report(Finding{Relation: fmt.Sprintf("relation %d", table), Key: key, Problem: fmt.Sprintf("keys of index %d belong to nothing", index)})
	})
}

// places are the keys of a table.
func places(t *catalog.TableDescriptor) []place {
	var all []place
	for _, ix := range allIndexes(t) {
		all = append(all, place{t.ID, ix.ID})
	}
	for i := range t.Builds {
		all = append(all, place{t.ID, t.Builds[i].Index.ID})
	}
	for i := range t.Observers {
		all = append(all, place{t.ID, t.Observers[i].AckIndex})
	}
	return all
}

// between reports the keys that lie between those of known places, the first of each index.
func between(ctx context.Context, known []place, txn percolator.Reader, report func(table uint64, index uint32, key []byte) error) error {
	slices.SortFunc(known, func(a, b place) int {
		return cmp.Or(bytes.Compare(a.span().Start, b.span().Start), cmp.Compare(a.index, b.index))
	})
	at := []byte{rowenc.TableSpace}
	last := kv.Span{Start: []byte{rowenc.TableSpace + 1}}
	for i := 0; i <= len(known); i++ {
		next := last
		if i < len(known) {
			next = known[i].span()
		}
		for bytes.Compare(at, next.Start) < 0 {
			key, err := firstKey(ctx, kv.Span{Start: at, End: next.Start}, txn)
			if err != nil {
				return err
			}
			if key == nil {
				break
			}
			table, index, _, err := rowenc.SplitKey(key)
			if err != nil {
				table = rowenc.TableOfKey(key)
			}
			if err := report(table, index, key); err != nil {
				return err
			}
			at = rowenc.PrefixEnd(key[:rowenc.IndexPrefixLen(key)])
		}
		if bytes.Compare(at, next.End) < 0 {
			at = next.End
		}
	}
	return nil
}

// firstKey returns the first key of a span; nil if it has none.
func firstKey(ctx context.Context, span kv.Span, txn percolator.Reader) ([]byte, error) {
	it := txn.Scan(ctx, span, percolator.ScanOptions{PageHint: 1, KeysOnly: true})
	defer it.Close()
	if it.Next(ctx) {
		return slices.Clone(it.Key()), nil
	}
	return nil, it.Err()
}
