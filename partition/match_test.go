package partition

import (
	"math/rand/v2"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

func encoded(t *testing.T, d types.Datum) []byte {
	t.Helper()
	b, err := rowenc.EncodeDatum(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tableOf returns a table partitioned by so many columns of type bigint.
func tableOf(s catalog.PartitionStrategy, keys int) *catalog.TableDescriptor {
	d := &catalog.TableDescriptor{Partitioning: &catalog.Partitioning{Strategy: s}}
	for i := range keys {
		d.Columns = append(d.Columns, catalog.ColumnDescriptor{ID: uint32(i + 1), Type: types.TInt8})
		d.Partitioning.Keys = append(d.Partitioning.Keys, catalog.IndexColumn{ColumnID: uint32(i + 1)})
	}
	return d
}

// bounds makes partitions for the values 0 to 19 of the first column, with a gap, and by chance a default one.
func bounds(t *testing.T, r *rand.Rand, d *catalog.TableDescriptor) []catalog.PartitionBound {
	var out []catalog.PartitionBound
	value := func(n int) catalog.RangeLimit { return catalog.RangeLimit{Value: encoded(t, types.Int(int64(n)))} }
	switch d.Partitioning.Strategy {
	case catalog.PartitionByHash:
		for i := range 4 {
			out = append(out, catalog.PartitionBound{Modulus: 4, Remainder: uint64(i)})
		}
		return out
	case catalog.PartitionByList:
		for i := range 4 {
			b := catalog.PartitionBound{In: [][]byte{encoded(t, types.Int(int64(i))), encoded(t, types.Int(int64(i+10)))}}
			if i == 2 {
				b.In = append(b.In, encoded(t, types.Null))
			}
			out = append(out, b)
		}
	default:
		for i := range 4 {
			b := catalog.PartitionBound{From: []catalog.RangeLimit{value(5 * i)}, To: []catalog.RangeLimit{value(5*i + 4)}}
			if len(d.Columns) == 2 {
				b.From, b.To = append(b.From, value(r.IntN(5))), append(b.To, catalog.RangeLimit{Infinite: int8(2*r.IntN(2) - 1)})
			}
			out = append(out, b)
		}
	}
	if r.IntN(2) == 0 {
		out = append(out, catalog.PartitionBound{Default: true})
	}
	return out
}

// passes reports whether a value passes a test.
func passes(t *Test, d types.Datum) bool {
	if d.IsNull() {
		return !t.Equal && t.Low == nil && t.High == nil && !t.NotNull
	}
	found := !t.Equal
	for _, v := range t.Values {
		found = found || v.Int() == d.Int()
	}
	return found && !t.Null && t.admits(d, types.TInt8)
}

// Goal: no partition is left out that has a row which passes. Method: random bounds and tests; the partition of every key that passes must be marked.
func TestMatchKeepsPartitionsOfRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		strategy := []catalog.PartitionStrategy{catalog.PartitionByRange, catalog.PartitionByList, catalog.PartitionByHash}[r.IntN(3)]
		keys := 1 + r.IntN(2)
		if strategy == catalog.PartitionByList {
			keys = 1
		}
		d := tableOf(strategy, keys)
		b, err := New(d, bounds(t, r, d))
		if err != nil {
			t.Fatal(err)
		}
		tests := make([]Test, keys)
		for i := range tests {
			number := func() types.Datum { return types.Int(int64(r.IntN(24) - 2)) }
			switch r.IntN(6) {
			case 0:
				tests[i] = Test{Equal: true, Values: []types.Datum{number(), number()}}
			case 1:
				tests[i] = Test{Low: &Limit{number(), r.IntN(2) == 0}}
			case 2:
				tests[i] = Test{High: &Limit{number(), r.IntN(2) == 0}, Low: &Limit{number(), true}}
			case 3:
				tests[i] = Test{Null: true}
			case 4:
				tests[i] = Test{Equal: true, Values: []types.Datum{number()}}
			}
		}
		marked := make([]bool, b.n)
		b.Match(tests, marked)
		for n := range 25 * 25 {
			key := []types.Datum{types.Int(int64(n%25 - 2)), types.Int(int64(n/25 - 2))}[:keys]
			for i := range key {
				if key[i].Int() == 22 {
					key[i] = types.Null
				}
			}
			ok := true
			for i := range key {
				ok = ok && passes(&tests[i], key[i])
			}
			if at := b.Find(key); ok && at >= 0 && !marked[at] {
				t.Fatalf("%s of %d columns: key %v passes %+v, its partition %d is not marked", strategy, keys, key, tests, at)
			}
		}
	}
}

// Goal: rows are in the hash partitions in which PostgreSQL has them. Method: satisfies_hash_partition's remainders modulo 1000 from PostgreSQL 15.
func TestHashIsPostgreSQLs(t *testing.T) {
	for _, c := range hashCases {
		h := hashRow([]func(types.Datum) uint64{hasher(c.typ)}, []types.Datum{c.value})
		if got := h % 1000; got != c.remainder {
			t.Errorf("%s %v: %d, PostgreSQL has %d", c.typ.String(), c.value, got, c.remainder)
		}
	}
}

var hashCases = []struct {
	typ       types.Type
	value     types.Datum
	remainder uint64
}{
	{types.TInt4, types.Int(0), 768},
	{types.TInt4, types.Int(1), 40},
	{types.TInt4, types.Int(-1), 869},
	{types.TInt4, types.Int(2147483647), 119},
	{types.TInt4, types.Int(123456), 150},
	{types.TInt8, types.Int(0), 768},
	{types.TInt8, types.Int(1), 40},
	{types.TInt8, types.Int(-1), 869},
	{types.TInt8, types.Int(123456789012345), 30},
	{types.TInt8, types.Int(-123456789012345), 77},
	{types.TInt2, types.Int(7), 927},
	{types.TInt2, types.Int(-7), 362},
	{types.TText, types.Text(""), 806},
	{types.TText, types.Text("a"), 342},
	{types.TText, types.Text("hello"), 524},
	{types.TText, types.Text("hello world!"), 876},
	{types.TText, types.Text("a longer text with more than twelve bytes"), 32},
	{types.TFloat8, types.Float(0), 928},
	{types.TFloat8, types.Float(1.5), 585},
	{types.TFloat8, types.Float(-2.25), 509},
	{types.TFloat8, types.Float(1e300), 410},
	{types.TBool, types.Bool(true), 40},
	{types.TBool, types.Bool(false), 768},
}
