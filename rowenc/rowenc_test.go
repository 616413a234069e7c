package rowenc

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/types"
)

// german orders text by the rules of a language.
var german = collation.ByName("de-x-icu")

// keyTypes are the types that may be indexed, one of each class and each peculiarity.
var keyTypes = []types.Type{
	types.TInt8, types.TBool, types.TFloat8, types.TText, types.TBytea, types.TBPChar, types.TUUID,
	types.TNumeric, types.TInterval, types.TTimestamp, types.TJSONB,
	types.TInt8.ArrayOf(), types.TText.ArrayOf(), types.TNumeric.ArrayOf(), types.TJSONB.ArrayOf(), types.TBPChar.ArrayOf(),
	types.TCitext, types.TCitext.ArrayOf(),
}

// collatedTypes are those whose keys are ordered by rules.
var collatedTypes = []types.Type{types.TText.Collated(german), types.TBPChar.Collated(german), types.TText.Collated(german).ArrayOf(),
	types.TCitext.Collated(german)}

// randomDatum makes a datum of type t out of few and out of wide values, so that equal, neighbouring
// and extreme ones all meet.
func randomDatum(r *rand.Rand, t types.Type) types.Datum {
	if elem := t.Elem(); elem.Valid() {
		return randomArray(r, elem)
	}
	switch t.OID {
	case types.OIDInt8, types.OIDTimestamp:
		edges := []int64{math.MinInt64, math.MaxInt64, 0, -1, -16, -17, 207, 208, 255, 256, -256, -257, 65535, 65536, -65537}
		if r.Intn(2) == 0 {
			return types.Int(edges[r.Intn(len(edges))] + int64(r.Intn(3)-1))
		}
		return types.Int(int64(r.Uint64()) >> r.Intn(64))
	case types.OIDBool:
		return types.Bool(r.Intn(2) == 0)
	case types.OIDFloat8:
		edges := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, math.MaxFloat64, math.SmallestNonzeroFloat64}
		if r.Intn(2) == 0 {
			return types.Float(edges[r.Intn(len(edges))])
		}
		return types.Float(r.NormFloat64() * math.Pow(10, float64(r.Intn(40)-20)))
	case types.OIDText, types.OIDBytea:
		return types.Bytes(randomBytes(r, "\x00\x01\x02\xff a"))
	case types.OIDBPChar:
		return types.Bytes(randomBytes(r, " ab"))
	case types.OIDCitext:
		letters := []rune("aAbÄä \u0130\u023A\u2C65")
		s := ""
		for range r.Intn(4) {
			s += string(letters[r.Intn(len(letters))])
		}
		return types.Text(s)
	case types.OIDUUID:
		b := make([]byte, 16)
		b[r.Intn(16)] = byte(r.Intn(4) * 85)
		return types.Bytes(b)
	case types.OIDNumeric:
		return types.Decimal(randomDecimal(r))
	case types.OIDJSONB:
		return randomJSONB(r)
	case types.OIDInterval:
		return types.NewInterval(types.Interval{
			Months: int32(r.Intn(7) - 3), Days: int32(r.Intn(121) - 60),
			Micros: int64(r.Intn(9)-4) * microsPerDay / 4,
		})
	}
	panic("no such type")
}

// randomArray makes a small array of up to three dimensions.
func randomArray(r *rand.Rand, elem types.Type) types.Datum {
	n := 1
	dims := make([]types.Dim, r.Intn(4))
	for i := range dims {
		dims[i] = types.Dim{Low: int32(r.Intn(3)), Len: int32(1 + r.Intn(2))}
		n *= int(dims[i].Len)
	}
	elems := make([]types.Datum, n*min(len(dims), 1))
	for i := range elems {
		if r.Intn(4) > 0 {
			elems[i] = randomDatum(r, elem)
		}
	}
	return types.NewDimArray(elem, elems, dims)
}

// randomJSONB makes a jsonb of few members, so that equal and neighbouring ones meet.
func randomJSONB(r *rand.Rand) types.Datum {
	d, err := types.ParseText(types.TJSONB, randomJSON(r, 3), nil)
	if err != nil {
		panic(err)
	}
	return d
}

func randomJSON(r *rand.Rand, depth int) string {
	scalars := []string{"null", "true", "false", "0", "1", "1.0", "-1", "-1.50", "20", "1e20", `""`, `"\u0001"`, `"a"`, `"ab"`, `"a\u0002"`, `"b"`}
	if depth == 0 || r.Intn(3) == 0 {
		return scalars[r.Intn(len(scalars))]
	}
	var members []string
	object := r.Intn(2) == 0
	for range r.Intn(4) {
		member := randomJSON(r, depth-1)
		if object {
			member = []string{`""`, `"a"`, `"b"`, `"aa"`, `"\u0001"`}[r.Intn(5)] + ":" + member
		}
		members = append(members, member)
	}
	if object {
		return "{" + strings.Join(members, ",") + "}"
	}
	return "[" + strings.Join(members, ",") + "]"
}

func randomBytes(r *rand.Rand, alphabet string) []byte {
	b := make([]byte, r.Intn(5))
	for i := range b {
		b[i] = alphabet[r.Intn(len(alphabet))]
	}
	return b
}

func randomDecimal(r *rand.Rand) *apd.Decimal {
	d := new(apd.Decimal)
	switch r.Intn(12) {
	case 0:
		d.Form = apd.NaN
	case 1:
		d.Form, d.Negative = apd.Infinite, r.Intn(2) == 0
	case 2:
		d.Coeff.SetString(strings.Repeat("9", 1+r.Intn(60)), 10)
		d.Exponent = -int32(r.Intn(50))
		d.Negative = r.Intn(2) == 0
	default:
		d.Coeff.SetInt64(r.Int63() >> r.Intn(64))
		d.Exponent = -int32(r.Intn(6))
		d.Negative = d.Coeff.Sign() != 0 && r.Intn(2) == 0
	}
	return d
}

func compareArrays(elem types.Type, a, b *types.Array) int {
	for i := 0; i < len(a.Elems) && i < len(b.Elems); i++ {
		x, y := a.Elems[i], b.Elems[i]
		c := compareInts(int64(boolInt(x.IsNull())), int64(boolInt(y.IsNull())))
		if c == 0 && !x.IsNull() {
			c = compareDatums(elem, x, y)
		}
		if c != 0 {
			return c
		}
	}
	if c := compareInts(int64(len(a.Elems)), int64(len(b.Elems))); c != 0 {
		return c
	}
	if c := compareInts(int64(a.NDims()), int64(b.NDims())); c != 0 {
		return c
	}
	for i := range a.NDims() {
		if c := compareInts(int64(a.Dim(i).Len), int64(b.Dim(i).Len)); c != 0 {
			return c
		}
	}
	for i := range a.NDims() {
		if c := compareInts(int64(a.Dim(i).Low), int64(b.Dim(i).Low)); c != 0 {
			return c
		}
	}
	return 0
}

// compareDatums is PostgreSQL's ordering, written without regard to speed or to the encoding.
func compareDatums(t types.Type, a, b types.Datum) int {
	if t.Coll != nil {
		return types.Compare(a, b, t)
	}
	if t.IsArray() {
		return compareArrays(t.Elem(), a.Array(), b.Array())
	}
	switch t.OID {
	case types.OIDBool:
		return compareInts(a.Int(), b.Int())
	case types.OIDJSONB:
		return types.Compare(a, b, t)
	case types.OIDInt8, types.OIDTimestamp:
		return compareInts(a.Int(), b.Int())
	case types.OIDFloat8:
		x, y := a.Float(), b.Float()
		switch {
		case x != x || y != y:
			return compareInts(int64(boolInt(x != x)), int64(boolInt(y != y)))
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	case types.OIDText, types.OIDBytea, types.OIDUUID:
		return bytes.Compare(a.Bytes(), b.Bytes())
	case types.OIDBPChar:
		return strings.Compare(strings.TrimRight(a.Text(), " "), strings.TrimRight(b.Text(), " "))
	case types.OIDCitext:
		return strings.Compare(types.FoldLower(a.Text()), types.FoldLower(b.Text()))
	case types.OIDNumeric:
		return compareDecimals(a.Decimal(), b.Decimal())
	case types.OIDInterval:
		return intervalLength(a.Interval()).Cmp(intervalLength(b.Interval()))
	}
	panic("no such type")
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compareInts(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func compareDecimals(a, b *apd.Decimal) int {
	rank := func(d *apd.Decimal) int64 {
		switch {
		case d.Form == apd.NaN:
			return 2
		case d.Form == apd.Infinite && d.Negative:
			return -1
		case d.Form == apd.Infinite:
			return 1
		}
		return 0
	}
	if c := compareInts(rank(a), rank(b)); c != 0 || rank(a) != 0 {
		return c
	}
	rat := func(d *apd.Decimal) *big.Rat {
		r, ok := new(big.Rat).SetString(d.String())
		if !ok {
			panic(d.String())
		}
		return r
	}
	return rat(a).Cmp(rat(b))
}

func intervalLength(iv types.Interval) *big.Int {
	days := big.NewInt(int64(iv.Months)*30 + int64(iv.Days))
	return days.Mul(days, big.NewInt(microsPerDay)).Add(days, big.NewInt(iv.Micros))
}

// exact reports whether two datums are the same in every respect, scale and blanks included.
func exact(a, b types.Datum) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	switch a.Kind() {
	case types.KindNull:
		return true
	case types.KindFloat:
		x, y := a.Float(), b.Float()
		return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y
	case types.KindBytes:
		return bytes.Equal(a.Bytes(), b.Bytes())
	case types.KindDecimal:
		x, y := a.Decimal(), b.Decimal()
		return x.Form == y.Form && x.Negative == y.Negative && x.Exponent == y.Exponent && x.Coeff.Cmp(&y.Coeff) == 0
	case types.KindInterval:
		return a.Interval() == b.Interval()
	case types.KindArray:
		x, y := a.Array(), b.Array()
		if x.Elem != y.Elem || len(x.Elems) != len(y.Elems) {
			return false
		}
		for i := range x.Elems {
			if !exact(x.Elems[i], y.Elems[i]) {
				return false
			}
		}
		return true
	}
	return a.Int() == b.Int()
}

// Goal: I1, I2 for one column: byte order is value order in every direction and NULL placement, and
// no encoding is a prefix of a different one. Method: random pairs against a plain comparison.
func TestOrderedColumnsOrderAsValues(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, typ := range slices.Concat(keyTypes, collatedTypes) {
		for range 6000 {
			a, b := randomDatum(r, typ), randomDatum(r, typ)
			if r.Intn(20) == 0 {
				a = types.Null
			}
			desc, nullsFirst := r.Intn(2) == 0, r.Intn(2) == 0
			ka, err := appendOrdered(nil, typ, a, desc, nullsFirst)
			if err != nil {
				t.Fatal(err)
			}
			kb, err := appendOrdered(nil, typ, b, desc, nullsFirst)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			switch {
			case a.IsNull() && nullsFirst:
				want = -1
			case a.IsNull():
				want = 1
			case desc:
				want = compareDatums(typ, b, a)
			default:
				want = compareDatums(typ, a, b)
			}
			if got := bytes.Compare(ka, kb); got != want {
				t.Fatalf("type %d desc %v: %+v and %+v encode as %x and %x: order %d, want %d", typ.OID, desc, a, b, ka, kb, got, want)
			}
			if want != 0 && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
				t.Fatalf("type %d: %x and %x: one is a prefix of the other", typ.OID, ka, kb)
			}
		}
	}
}

// Goal: I3 for one column: what the key gives back is the datum itself unless lossy says otherwise,
// and equal to it always; skipping ends where decoding ends. Method: random datums.
func TestOrderedColumnsRoundTrip(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for _, typ := range slices.Concat(keyTypes, collatedTypes) {
		for range 4000 {
			d := randomDatum(r, typ)
			desc := r.Intn(2) == 0
			key, err := appendOrdered(nil, typ, d, desc, false)
			if err != nil {
				t.Fatal(err)
			}
			key = append(key, "tail"...)
			got, rest, err := decodeOrdered(key, typ, classOf(typ), desc)
			if err != nil || string(rest) != "tail" {
				t.Fatalf("type %d: %+v: rest %q, err %v", typ.OID, d, rest, err)
			}
			if lossy(typ, d) == exact(got, d) {
				t.Fatalf("type %d: %+v comes back as %+v, lossy = %v", typ.OID, d, got, lossy(typ, d))
			}
			if compareDatums(typ, got, d) != 0 {
				t.Fatalf("type %d: %+v comes back unequal: %+v", typ.OID, d, got)
			}
			if rest, err := skipOrdered(key, classOf(typ), desc); err != nil || string(rest) != "tail" {
				t.Fatalf("type %d: skip leaves %q, err %v", typ.OID, rest, err)
			}
		}
	}
}

// Goal: datums alone come back exactly. Method: random ones of all kinds, arrays too.
func TestDatumRoundTrip(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for range 5000 {
		typ := keyTypes[r.Intn(len(keyTypes))]
		d := randomDatum(r, typ)
		if r.Intn(5) == 0 && !typ.IsArray() {
			a := &types.Array{Elem: typ}
			for range r.Intn(4) {
				a.Elems = append(a.Elems, randomDatum(r, typ), types.Null)
			}
			d = types.NewArray(a)
		}
		b, err := EncodeDatum(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeDatum(b)
		if err != nil || !exact(got, d) {
			t.Fatalf("%+v came back as %+v, err %v", d, got, err)
		}
		rest, err := skipPayload(append(b[1:], "tail"...), payload(b[0]))
		if err != nil || string(rest) != "tail" {
			t.Fatalf("%+v: skip leaves %q, err %v", d, rest, err)
		}
	}
}

// randomTable makes a table with all key types as columns and random indexes over them.
func randomTable(r *rand.Rand) *catalog.TableDescriptor {
	t := &catalog.TableDescriptor{ID: uint64(16384 + r.Intn(100000)), Kind: catalog.KindTable, Name: "t"}
	id := uint32(0)
	for _, typ := range keyTypes {
		id += uint32(1 + r.Intn(2)*r.Intn(40))
		t.Columns = append(t.Columns, catalog.ColumnDescriptor{ID: id, Name: "c", Type: typ})
	}
	index := func(id uint32, unique bool) catalog.IndexDescriptor {
		ix := catalog.IndexDescriptor{ID: id, Unique: unique}
		for _, i := range r.Perm(len(t.Columns))[:1+r.Intn(4)] {
			ix.Columns = append(ix.Columns, catalog.IndexColumn{ColumnID: t.Columns[i].ID, Desc: r.Intn(2) == 0, NullsFirst: r.Intn(2) == 0})
		}
		return ix
	}
	t.Primary = index(1, true)
	for i := range 4 {
		ix := index(uint32(2+i), i%2 == 0)
		for range r.Intn(3) {
			ix.Include = append(ix.Include, t.Columns[r.Intn(len(t.Columns))].ID)
		}
		t.Indexes = append(t.Indexes, ix)
	}
	return t
}

func randomRow(r *rand.Rand, t *catalog.TableDescriptor) types.Row {
	row := make(types.Row, len(t.Columns))
	for i := range t.Columns {
		if r.Intn(4) != 0 || inKey(&t.Primary, t.Columns[i].ID) {
			row[i] = randomDatum(r, t.Columns[i].Type)
		}
	}
	return row
}

// Goal: rows and entries of random tables give back exactly the columns asked for, entries point at
// their row, and no key is a prefix of another of its index. Method: random tables, rows, choices.
func TestRowsAndEntriesRoundTrip(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	for range 300 {
		table := randomTable(r)
		keys := map[uint32][][]byte{}
		for range 8 {
			row := randomRow(r, table)
			rowKey, hasNull, err := AppendKey(nil, table, &table.Primary, row)
			if err != nil || hasNull {
				t.Fatal(hasNull, err)
			}
			value, err := AppendRow(nil, table, row)
			if err != nil {
				t.Fatal(err)
			}
			keys[1] = append(keys[1], rowKey)
			checkDecode(t, r, table, &table.Primary, rowKey, value, row)
			for i := range table.Indexes {
				ix := &table.Indexes[i]
				key, _, err := AppendKey(nil, table, ix, row)
				if err != nil {
					t.Fatal(err)
				}
				value, err := AppendEntry(nil, table, ix, row)
				if err != nil {
					t.Fatal(err)
				}
				keys[ix.ID] = append(keys[ix.ID], key)
				checkDecode(t, r, table, ix, key, value, row)
				if got, err := AppendRowKey(nil, table, ix, key, value); err != nil || !bytes.Equal(got, rowKey) {
					t.Fatalf("entry points at %x, not %x (%v)", got, rowKey, err)
				}
			}
		}
		for id, ks := range keys {
			for i, a := range ks {
				start, end := IndexSpan(table.ID, id)
				if bytes.Compare(a, start) < 0 || bytes.Compare(a, end) >= 0 {
					t.Fatalf("key %x outside of its index", a)
				}
				for j, b := range ks {
					if i != j && !bytes.Equal(a, b) && bytes.HasPrefix(a, b) {
						t.Fatalf("%x is a prefix of %x", b, a)
					}
				}
			}
		}
	}
}

func checkDecode(t *testing.T, r *rand.Rand, table *catalog.TableDescriptor, ix *catalog.IndexDescriptor, key, value []byte, row types.Row) {
	t.Helper()
	var ordinals []int
	for _, i := range r.Perm(len(table.Columns)) {
		if r.Intn(3) != 0 && Covers(table, ix, []int{i}) {
			ordinals = append(ordinals, i)
		}
	}
	var d Decoder
	if err := d.Init(table, ix, ordinals); err != nil {
		t.Fatal(err)
	}
	out := make(types.Row, len(ordinals))
	for i := range out {
		out[i] = types.Int(99) // what an earlier row left
	}
	if err := d.Decode(key, value, out); err != nil {
		t.Fatal(err)
	}
	for i, ord := range ordinals {
		if !exact(out[i], row[ord]) {
			t.Fatalf("index %d column %d: got %+v, want %+v", ix.ID, ord, out[i], row[ord])
		}
	}
}

// Goal: a column added with a default reads as its default in old rows, and as NULL where NULL was
// written since; one that joined the primary key reads from the key. Method: two descriptors.
func TestMissingColumns(t *testing.T) {
	table := &catalog.TableDescriptor{ID: 16384, Primary: catalog.IndexDescriptor{ID: 1, Columns: []catalog.IndexColumn{{ColumnID: 1}}}}
	table.Columns = []catalog.ColumnDescriptor{{ID: 1, Type: types.TInt4}}
	key, _, _ := AppendKey(nil, table, &table.Primary, types.Row{types.Int(7)})
	old, err := AppendRow(nil, table, types.Row{types.Int(7)})
	if err != nil {
		t.Fatal(err)
	}
	missing, _ := EncodeDatum(types.Text("dflt"))
	altered := *table
	altered.Columns = append(altered.Columns[:1:1], catalog.ColumnDescriptor{ID: 2, Type: types.TText, Missing: missing})
	written, err := AppendRow(nil, &altered, types.Row{types.Int(7), types.Null})
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	if err := d.Init(&altered, &altered.Primary, []int{1, 0}); err != nil {
		t.Fatal(err)
	}
	row := make(types.Row, 2)
	if err := d.Decode(key, old, row); err != nil || row[0].Text() != "dflt" || row[1].Int() != 7 {
		t.Fatalf("old row: %+v %v", row, err)
	}
	if err := d.Decode(key, written, row); err != nil || !row[0].IsNull() {
		t.Fatalf("new row: %+v %v", row, err)
	}
	rekeyed := altered
	rekeyed.Primary = catalog.IndexDescriptor{ID: 2, Columns: []catalog.IndexColumn{{ColumnID: 2}}}
	full := types.Row{types.Int(7), types.Text("other")}
	key, _, _ = AppendKey(nil, &rekeyed, &rekeyed.Primary, full)
	value, _ := AppendRow(nil, &rekeyed, full)
	if err := d.Init(&rekeyed, &rekeyed.Primary, []int{0, 1}); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(key, value, row); err != nil || row[1].Text() != "other" {
		t.Fatalf("re-keyed row: %+v %v", row, err)
	}
}

// Goal: Span selects exactly the keys whose column lies within the bounds, NULLs aside. Method: random
// bounds against a filter over values.
func TestSpanSelectsWhatBoundsSay(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	for range 3000 {
		typ := keyTypes[r.Intn(len(keyTypes))]
		table := &catalog.TableDescriptor{ID: 20000, Columns: []catalog.ColumnDescriptor{{ID: 1, Type: types.TInt4}, {ID: 2, Type: typ}}}
		table.Primary = catalog.IndexDescriptor{ID: 1, Columns: []catalog.IndexColumn{{ColumnID: 1}}}
		ix := catalog.IndexDescriptor{ID: 2, Columns: []catalog.IndexColumn{{ColumnID: 1}, {ColumnID: 2, Desc: r.Intn(2) == 0, NullsFirst: r.Intn(2) == 0}}}
		low := Bound{Value: randomDatum(r, typ), Set: r.Intn(3) != 0, Inclusive: r.Intn(2) == 0}
		high := Bound{Value: randomDatum(r, typ), Set: r.Intn(3) != 0, Inclusive: r.Intn(2) == 0}
		start, end, empty, err := Span(table, &ix, []types.Datum{types.Int(5)}, low, high)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			row := types.Row{types.Int(int64(4 + r.Intn(3))), randomDatum(r, typ)}
			if r.Intn(5) == 0 {
				row[1] = types.Null
			}
			key, _, err := AppendKey(nil, table, &ix, row)
			if err != nil {
				t.Fatal(err)
			}
			got := !empty && bytes.Compare(key, start) >= 0 && bytes.Compare(key, end) < 0
			want := row[0].Int() == 5 && within(typ, row[1], low, high)
			if got != want {
				t.Fatalf("%+v in %+v..%+v of %+v: %v, want %v", row, low, high, ix, got, want)
			}
		}
	}
}

func within(typ types.Type, d types.Datum, low, high Bound) bool {
	if d.IsNull() {
		return !low.Set && !high.Set
	}
	if low.Set {
		if c := compareDatums(typ, d, low.Value); c < 0 || c == 0 && !low.Inclusive {
			return false
		}
	}
	if high.Set {
		if c := compareDatums(typ, d, high.Value); c > 0 || c == 0 && !high.Inclusive {
			return false
		}
	}
	return true
}

// Goal: keys take apart into what they were made of, long primary keys in unique entries included.
func TestSplitKeyAndKeyColumns(t *testing.T) {
	table := &catalog.TableDescriptor{ID: 70000, Columns: []catalog.ColumnDescriptor{{ID: 1, Type: types.TText}, {ID: 2, Type: types.TNumeric}}}
	table.Primary = catalog.IndexDescriptor{ID: 300, Unique: true, Columns: []catalog.IndexColumn{{ColumnID: 1}}}
	ix := &catalog.IndexDescriptor{ID: 4, Unique: true, Columns: []catalog.IndexColumn{{ColumnID: 2, Desc: true}}}
	row := types.Row{types.Text(strings.Repeat("long", 100)), types.Decimal(apd.New(1200, -2))}
	key, _, err := AppendKey(nil, table, ix, row)
	if err != nil {
		t.Fatal(err)
	}
	tableID, indexID, _, err := SplitKey(key)
	if err != nil || tableID != 70000 || indexID != 4 {
		t.Fatal(tableID, indexID, err)
	}
	cols, err := KeyColumns(table, ix, key)
	if err != nil || len(cols) != 1 || cols[0].Decimal().String() != "12" {
		t.Fatal(cols, err)
	}
	value, err := AppendEntry(nil, table, ix, row)
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := AppendKey(nil, table, &table.Primary, row)
	got, err := AppendRowKey(nil, table, ix, key, value)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

// Goal: the point read path allocates nothing. Method: AllocsPerRun over encode and decode.
func TestPointReadAllocatesNothing(t *testing.T) {
	table := &catalog.TableDescriptor{ID: 16390, Columns: []catalog.ColumnDescriptor{
		{ID: 1, Type: types.TInt4}, {ID: 2, Type: types.TInt4}, {ID: 3, Type: types.TInt4}, {ID: 4, Type: types.TBPChar}}}
	table.Primary = catalog.IndexDescriptor{ID: 1, Unique: true, Columns: []catalog.IndexColumn{{ColumnID: 1}}}
	row := types.Row{types.Int(500000), types.Int(5), types.Int(-12345), types.Text(strings.Repeat(" ", 84))}
	value, err := AppendRow(nil, table, row)
	if err != nil {
		t.Fatal(err)
	}
	buf, out := make([]byte, 0, 64), make(types.Row, 2)
	var d Decoder
	ordinals := []int{0, 2}
	allocs := testing.AllocsPerRun(200, func() {
		if err := d.Init(table, &table.Primary, ordinals); err != nil {
			t.Fatal(err)
		}
		key, _, err := AppendKey(buf, table, &table.Primary, row)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(key, value, out); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 || out[0].Int() != 500000 || out[1].Int() != -12345 {
		t.Fatalf("%v allocations, row %+v", allocs, out)
	}
}

func BenchmarkDecodeRow(b *testing.B) {
	r := rand.New(rand.NewSource(6))
	table := randomTable(r)
	row := randomRow(r, table)
	key, _, _ := AppendKey(nil, table, &table.Primary, row)
	value, _ := AppendRow(nil, table, row)
	var d Decoder
	if err := d.Init(table, &table.Primary, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}); err != nil {
		b.Fatal(err)
	}
	out := make(types.Row, 10)
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Decode(key, value, out); err != nil {
			b.Fatal(err)
		}
	}
}

// Goal: a key's index prefix is what IndexSpan begins with, of ids of every length.
func TestIndexPrefixLen(t *testing.T) {
	for _, table := range []uint64{1, 0xF7, 0xF8, 300, 70_000, 1 << 40} {
		for _, index := range []uint32{1, 0xF7, 0xF8, 1 << 30} {
			start, _ := IndexSpan(table, index)
			key := append(bytes.Clone(start), 0x01, 0xFF, 0x02)
			if n := IndexPrefixLen(key); n != len(start) {
				t.Errorf("table %d, index %d: %d, want %d", table, index, n, len(start))
			}
		}
	}
	for key, want := range map[string]int{"": 0, "\x01abc": 1, "\x02": 1, "\x02\xFF": 1} {
		if n := IndexPrefixLen([]byte(key)); n != want {
			t.Errorf("%q: %d, want %d", key, n, want)
		}
	}
}

// Integers of varying length, between short strings and NULLs, as a scan decodes them.
func BenchmarkDecodeIntegers(b *testing.B) {
	table := &catalog.TableDescriptor{ID: 7, Version: 1, Kind: catalog.KindTable}
	for i, typ := range []types.Type{types.TInt8, types.TInt4, types.TInt4, types.TInt4, types.TText, types.TText, types.TInt8} {
		table.Columns = append(table.Columns, catalog.ColumnDescriptor{ID: uint32(i + 1), Name: string(rune('a' + i)), Type: typ})
	}
	table.Primary = catalog.IndexDescriptor{ID: 1, Columns: []catalog.IndexColumn{{ColumnID: 1}}, Unique: true}
	r := rand.New(rand.NewSource(6))
	var values [1 << 14][]byte
	var key, arena []byte
	for i := range values {
		row := types.Row{types.Int(int64(i)), types.Int(r.Int63n(50_000)), types.Int(r.Int63n(10_007)), types.Int(r.Int63n(100)), types.Bytes([]byte("paid")),
			types.Bytes([]byte("code4711")), types.Int(757_382_400_000_000 + r.Int63n(1<<40))}
		if i%50 == 0 {
			row[3] = types.Null
		}
		key, _, _ = AppendKey(nil, table, &table.Primary, row)
		from := len(arena)
		arena, _ = AppendRow(arena, table, row)
		values[i] = arena[from:]
	}
	for _, ordinals := range [][]int{{2}, {1, 2, 3, 6}} {
		b.Run(fmt.Sprint(len(ordinals)), func(b *testing.B) {
			var d Decoder
			if err := d.Init(table, &table.Primary, ordinals); err != nil {
				b.Fatal(err)
			}
			out := make(types.Row, len(ordinals))
			for i := 0; b.Loop(); i++ {
				if err := d.Decode(key, values[i%len(values)], out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
