package rowenc

import (
	"bytes"
	"cmp"
	"math/rand"
	"testing"

	"github.com/percodb/percodb/sql/types"
)

// compositeOf makes a composite type with fields of the given types.
func compositeOf(oid types.OID, fields ...types.Type) types.Type {
	d := &types.Defined{OID: oid, Array: oid + 1, Kind: types.Composite, Schema: "public", Name: "c", ArrayName: "_c"}
	for i, t := range fields {
		d.Fields = append(d.Fields, types.Field{ID: uint32(i + 1), Name: string(rune('a' + i)), Type: t})
	}
	return types.NewDefined(d).Type()
}

func randomRecord(r *rand.Rand, t types.Type) types.Datum {
	fields := make(types.Row, len(t.Def.Fields))
	for i := range fields {
		switch ft := t.Def.Fields[i].Type; {
		case r.Intn(4) == 0:
		case ft.IsComposite():
			fields[i] = randomRecord(r, ft)
		default:
			fields[i] = randomDatum(r, ft)
		}
	}
	return t.Def.Row(fields)
}

// rowTypes are a composite type, one that has it as an attribute, and the latter with another attribute added.
func rowTypes() (inner, outer, longer types.Type) {
	inner = compositeOf(20000, types.TInt8, types.TBPChar, types.TNumeric)
	outer = compositeOf(20010, types.TBytea, inner, types.TFloat8)
	longer = compositeOf(20010, types.TBytea, inner, types.TFloat8, types.TBool)
	return inner, outer, longer
}

// Goal: keys of records order as the records do, in both directions, none is a prefix of another, and skipping and decoding end where the
// key does. Method: random records with NULLs.
func TestKeysOfRecords(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	inner, outer, _ := rowTypes()
	for _, typ := range []types.Type{inner, outer} {
		for range 20000 {
			a, b := randomRecord(r, typ), randomRecord(r, typ)
			desc := r.Intn(2) == 0
			ka, errA := appendOrdered(nil, typ, a, desc, false)
			kb, errB := appendOrdered(nil, typ, b, desc, false)
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			want := cmp.Compare(types.Compare(a, b, typ), 0)
			if desc {
				want = -want
			}
			if got := bytes.Compare(ka, kb); got != want {
				t.Fatalf("%s and %s encode as %x and %x: order %d, want %d",
					types.AppendText(nil, a, typ, nil), types.AppendText(nil, b, typ, nil), ka, kb, got, want)
			}
			if want != 0 && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
				t.Fatalf("%x and %x: one is a prefix of the other", ka, kb)
			}
			key := append(ka, "tail"...)
			if rest, err := skipOrdered(key, classOf(typ), desc); err != nil || string(rest) != "tail" {
				t.Fatalf("skip leaves %q, %v", rest, err)
			}
			got, rest, err := decodeOrdered(key, typ, classOf(typ), desc)
			if err != nil || string(rest) != "tail" || types.Compare(got, a, typ) != 0 {
				t.Fatalf("%s comes back as %s, rest %q, %v", types.AppendText(nil, a, typ, nil), types.AppendText(nil, got, typ, nil), rest, err)
			}
		}
	}
}

// Goal: a record comes back as it was stored, also under the type with an attribute added, which does not change its key.
func TestStoredRecords(t *testing.T) {
	r := rand.New(rand.NewSource(8))
	_, outer, longer := rowTypes()
	for range 5000 {
		d := randomRecord(r, outer)
		b, err := EncodeDatum(d)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := DecodeDatum(b)
		if err != nil {
			t.Fatal(err)
		}
		text := string(types.AppendText(nil, d, outer, nil))
		if got := string(types.AppendText(nil, types.Conform(stored, outer), outer, nil)); got != text {
			t.Fatalf("%s comes back as %s", text, got)
		}
		more := types.Conform(stored, longer)
		if got := string(types.AppendText(nil, more, longer, nil)); got != text[:len(text)-1]+",)" {
			t.Fatalf("%s with an attribute added is %s", text, got)
		}
		before, errA := appendOrdered(nil, outer, d, false, false)
		after, errB := appendOrdered(nil, longer, more, false, false)
		if errA != nil || errB != nil || !bytes.Equal(before, after) {
			t.Fatalf("%s: key %x became %x; %v, %v", text, before, after, errA, errB)
		}
		parsed, err := types.ParseText(outer, text, nil)
		if err != nil || string(types.AppendText(nil, parsed, outer, nil)) != text {
			t.Fatalf("text form of %s: %v", text, err)
		}
		parsed, err = types.ParseBinary(outer, types.AppendBinary(nil, d, outer), nil)
		if err != nil || string(types.AppendText(nil, parsed, outer, nil)) != text {
			t.Fatalf("binary form of %s: %v", text, err)
		}
	}
}
