package rowenc

import (
	"bytes"
	"cmp"
	"math/rand"
	"testing"

	"github.com/percodb/percodb/sql/types"
)

// randomRange makes a range of few different bounds.
func randomRange(r *rand.Rand, rt *types.RangeTypes) types.Datum {
	for {
		var bounds [2]types.Datum
		for i := range bounds {
			if r.Intn(5) == 0 {
				continue
			}
			if rt.Sub.OID == types.OIDNumeric {
				bounds[i] = types.Decimal(randomDecimal(r))
			} else {
				bounds[i] = types.Int(int64(r.Intn(600) - 300))
			}
		}
		if d, err := rt.Make(bounds[0], bounds[1], r.Intn(2) == 0, r.Intn(2) == 0); err == nil {
			return d
		}
	}
}

func randomMultirange(t *testing.T, r *rand.Rand, rt *types.RangeTypes) types.Datum {
	ranges := make([]types.Datum, r.Intn(4))
	for i := range ranges {
		ranges[i] = randomRange(r, rt)
	}
	d, err := rt.Multirange(ranges, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Goal: keys of ranges and multiranges order as the values do, in both directions, none is a prefix of another, and skipping and
// decoding end where the key does; the text, binary and stored forms come back exactly. Method: random values with few bounds.
func TestRanges(t *testing.T) {
	r := rand.New(rand.NewSource(11))
	for _, rt := range types.BuiltinRanges() {
		for _, typ := range []types.Type{rt.Range, rt.Multi} {
			random := func() types.Datum {
				if typ.IsRange() {
					return randomRange(r, rt)
				}
				return randomMultirange(t, r, rt)
			}
			for range 3000 {
				a, b := random(), random()
				checkKeyOrder(t, typ, a, b, r.Intn(2) == 0)
				checkForms(t, typ, a)
			}
		}
	}
}

func checkKeyOrder(t *testing.T, typ types.Type, a, b types.Datum, desc bool) {
	t.Helper()
	text := func(d types.Datum) string { return string(types.AppendText(nil, d, typ, nil)) }
	ka, errA := appendOrdered(nil, typ, a, desc, false)
	kb, errB := appendOrdered(nil, typ, b, desc, false)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	want := cmp.Compare(types.Compare(a, b, typ), 0)
	if (want == 0) != types.Equal(a, b, typ) || want == 0 && types.Hash(a, typ) != types.Hash(b, typ) {
		t.Fatalf("%s and %s: equality or hash", text(a), text(b))
	}
	if desc {
		want = -want
	}
	if got := bytes.Compare(ka, kb); got != want {
		t.Fatalf("%s and %s encode as %x and %x: order %d, want %d", text(a), text(b), ka, kb, got, want)
	}
	if want != 0 && (bytes.HasPrefix(ka, kb) || bytes.HasPrefix(kb, ka)) {
		t.Fatalf("%x and %x: one is a prefix of the other", ka, kb)
	}
	key := append(ka, "tail"...)
	if rest, err := skipOrdered(key, classOf(typ), desc); err != nil || string(rest) != "tail" {
		t.Fatalf("skip leaves %q, %v", rest, err)
	}
	got, rest, err := decodeOrdered(key, typ, classOf(typ), desc)
	if err != nil || string(rest) != "tail" || types.Compare(got, a, typ) != 0 || lossy(typ, a) != (text(got) != text(a)) {
		t.Fatalf("%s comes back as %s, rest %q, %v", text(a), text(got), rest, err)
	}
}

func checkForms(t *testing.T, typ types.Type, d types.Datum) {
	t.Helper()
	text := string(types.AppendText(nil, d, typ, nil))
	stored, err := EncodeDatum(d)
	if err != nil {
		t.Fatal(err)
	}
	for name, decode := range map[string]func() (types.Datum, error){
		"stored": func() (types.Datum, error) { return DecodeDatum(stored) },
		"text":   func() (types.Datum, error) { return types.ParseText(typ, text, nil) },
		"binary": func() (types.Datum, error) { return types.ParseBinary(typ, types.AppendBinary(nil, d, typ), nil) },
		"clone":  func() (types.Datum, error) { return d.Clone(), nil },
	} {
		got, err := decode()
		if err != nil || string(types.AppendText(nil, got, typ, nil)) != text || types.Compare(got, d, typ) != 0 {
			t.Fatalf("%s form of %s %s: %v", name, typ, text, err)
		}
	}
}
