package rowenc

import (
	"errors"
	"math/rand"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Goal: I4: whatever lies on the disk, decoding neither panics nor fails with another code than
// XX001. Method: fuzz key and value against a table with every type, all indexes.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewSource(7))
	table := randomTable(r)
	for range 20 {
		row := randomRow(r, table)
		for _, ix := range append([]catalog.IndexDescriptor{table.Primary}, table.Indexes...) {
			key, _, err := AppendKey(nil, table, &ix, row)
			if err != nil {
				f.Fatal(err)
			}
			value, err := AppendRow(nil, table, row)
			if ix.ID != table.Primary.ID {
				value, err = AppendEntry(nil, table, &ix, row)
			}
			if err != nil {
				f.Fatal(err)
			}
			f.Add(key, value)
		}
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		for _, ix := range append([]catalog.IndexDescriptor{table.Primary}, table.Indexes...) {
			var ordinals []int
			for i := range table.Columns {
				if Covers(table, &ix, []int{i}) {
					ordinals = append(ordinals, i)
				}
			}
			var d Decoder
			if err := d.Init(table, &ix, ordinals); err != nil {
				t.Fatal(err)
			}
			// The key is tried as it is, and as the columns of a key of the right index.
			row := make(types.Row, len(ordinals))
			requireCorrupt(t, d.Decode(key, value, row))
			requireCorrupt(t, d.Decode(append(AppendIndexPrefix(nil, table.ID, ix.ID), key...), value, row))
			_, err := KeyColumns(table, &ix, key)
			requireCorrupt(t, err)
			if ix.ID != table.Primary.ID {
				_, err = AppendRowKey(nil, table, &ix, key, value)
				requireCorrupt(t, err)
			}
		}
		_, err := DecodeDatum(value)
		requireCorrupt(t, err)
	})
}

// Goal: integers of any size order as their keys and come back. Method: fuzz pairs.
func FuzzOrderedInt(f *testing.F) {
	f.Add(int64(0), int64(-1))
	f.Add(int64(207), int64(208))
	f.Fuzz(func(t *testing.T, a, b int64) {
		ka, kb := appendOrderedInt(nil, a), appendOrderedInt(nil, b)
		if (a < b) != (string(ka) < string(kb)) {
			t.Fatalf("%d and %d: %x and %x", a, b, ka, kb)
		}
		if v, rest, err := decodeOrderedInt(ka, 0); err != nil || v != a || len(rest) != 0 {
			t.Fatalf("%d came back as %d (%x, %v)", a, v, rest, err)
		}
	})
}

func requireCorrupt(t *testing.T, err error) {
	t.Helper()
	var pg *pgerror.Error
	if err != nil && (!errors.As(err, &pg) || pg.Code != pgerror.DataCorrupted) {
		t.Fatalf("not a corruption error: %v", err)
	}
}
