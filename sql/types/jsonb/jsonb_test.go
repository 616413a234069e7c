package jsonb

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/pgerror"
)

// randomText makes a JSON text with values that meet: few keys, numbers of several scales, escapes, nesting.
func randomText(r *rand.Rand, depth int) string {
	scalars := []string{"null", "true", "false", "0", "-0.0", "1", "1.0", "1.50", "-2.5", "10", "1e3", "12e-4", "123456789012345678901234567890.5",
		`""`, `"a"`, `"b\n"`, `"\u00e4\ud83d\ude00"`, `"\\\"\/"`, `"aa"`, strings.Repeat("9", 300)}
	if depth == 0 || r.Intn(3) == 0 {
		return scalars[r.Intn(len(scalars))]
	}
	n := r.Intn(5)
	if depth == 1 && r.Intn(30) == 0 {
		n = 300 // wide tables
	}
	parts := make([]string, n)
	object := r.Intn(2) == 0
	for i := range parts {
		parts[i] = randomText(r, depth-1)
		if object {
			key := []string{`""`, `"a"`, `"b"`, `"aa"`, `"\t"`, `"ab"`}[r.Intn(6)]
			if n > 10 {
				key = fmt.Sprintf("%q", fmt.Sprint("key", r.Intn(400)))
			}
			parts[i] = key + " :" + parts[i]
		}
	}
	if object {
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "[ " + strings.Join(parts, ",") + "]"
}

func mustParse(t *testing.T, text string) Value {
	t.Helper()
	v, err := Parse(text, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Goal: invariant 1. Method: random texts; what is printed reads as the same bytes, and is valid json.
func TestPrintedReadsBack(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 3000 {
		v := mustParse(t, randomText(r, 4))
		text := string(AppendText(nil, v))
		if err := Validate(text, nil); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again := mustParse(t, text); !bytes.Equal(again, v) {
			t.Fatalf("%s reads as %s", text, AppendText(nil, again))
		}
		pretty := string(AppendPretty(nil, v))
		if again := mustParse(t, pretty); !bytes.Equal(again, v) {
			t.Fatalf("%s reads as %s", pretty, AppendText(nil, again))
		}
		if TextBytes(len(v)) < len(text) && !strings.Contains(text, `\u`) {
			t.Fatalf("%s: %d bytes of text, estimated %d", text, len(text), TextBytes(len(v)))
		}
	}
}

// Goal: invariant 2: Compare is a total order, and equal values hash equally. Method: random triples.
func TestCompareIsAnOrder(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for range 3000 {
		a, b, c := mustParse(t, randomText(r, 2)), mustParse(t, randomText(r, 2)), mustParse(t, randomText(r, 2))
		if Compare(a, b) != -Compare(b, a) || Compare(a, a) != 0 {
			t.Fatalf("%s and %s compare as %d and %d", AppendText(nil, a), AppendText(nil, b), Compare(a, b), Compare(b, a))
		}
		if Compare(a, b) <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
			t.Fatalf("not transitive: %s, %s, %s", AppendText(nil, a), AppendText(nil, b), AppendText(nil, c))
		}
		if Compare(a, b) == 0 && Hash(a) != Hash(b) {
			t.Fatalf("%s and %s are equal, their hashes are not", AppendText(nil, a), AppendText(nil, b))
		}
	}
	one, same := mustParse(t, `{"a":[1,-0.50]}`), mustParse(t, `{"a":[1.00,-5e-1]}`)
	if Compare(one, same) != 0 || Hash(one) != Hash(same) {
		t.Error("scales of numbers make a difference")
	}
}

// Goal: PostgreSQL's order. Method: a list in its order, each pair.
func TestOrder(t *testing.T) {
	list := []string{"[]", "null", `""`, `"a"`, `"aa"`, `"b"`, "-10", "-1.5", "-1", "0", "0.001", "0.01", "2", "10", "10.01", "false", "true",
		"[null]", `["a"]`, "[1]", "[true]", "[[]]", "[[null]]", "[{}]", "[1, 1]", "[1, 2]", "{}", `{"a": null}`, `{"a": 1}`, `{"b": 0}`, `{"a": 1, "b": 1}`}
	for i := range list {
		for j := range list {
			got := Compare(mustParse(t, list[i]), mustParse(t, list[j]))
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s and %s compare as %d", list[i], list[j], got)
			}
		}
	}
}

// Goal: Find returns each member and no other. Method: objects with many keys.
func TestFind(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 10, 100, 300, 70000} {
		var b Builder
		b.BeginObject()
		for i := range n {
			if err := b.Key(fmt.Sprint("k", i*7%(7*n+1))); err != nil {
				t.Fatal(err)
			}
			b.Number(fmt.Sprint(i))
		}
		if err := b.End(); err != nil {
			t.Fatal(err)
		}
		v := b.Finish()
		if v.Len() != n {
			t.Fatalf("%d members of %d", v.Len(), n)
		}
		for i := range n {
			if m, ok := v.Find(fmt.Sprint("k", i*7%(7*n+1))); !ok || string(m.Text()) != fmt.Sprint(i) {
				t.Fatalf("member %d of %d: %q %v", i, n, m, ok)
			}
		}
		for _, key := range []string{"", "k", "l0", "k-1", "k99999999"} {
			if _, ok := v.Find(key); ok {
				t.Fatalf("%q found among %d", key, n)
			}
		}
	}
}

// Goal: of equal keys the last member stays, also in large objects.
func TestLastOfEqualKeysStays(t *testing.T) {
	if got := string(AppendText(nil, mustParse(t, `{"b":1,"a":2,"b":3,"a":4,"b":5}`))); got != `{"a": 4, "b": 5}` {
		t.Error(got)
	}
}

// Goal: nesting is bounded, for texts and for values that are put together. Method: one level too many.
func TestDepth(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	v := mustParse(t, deep(MaxDepth))
	if got := string(AppendText(nil, v)); got != deep(MaxDepth) {
		t.Errorf("%d bytes of text", len(got))
	}
	requireCode := func(what string, err error) {
		var e *pgerror.Error
		if !errors.As(err, &e) || e.Code != pgerror.StatementTooComplex {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := Parse(deep(MaxDepth+1), nil)
	requireCode("parse", err)
	requireCode("validate", Validate(deep(MaxDepth+1), nil))
	var b Builder
	b.BeginArray()
	b.Value(v)
	requireCode("build", b.End())
}

// Goal: invariant 4. Method: fuzz, from values and their prefixes.
func FuzzDamaged(f *testing.F) {
	r := rand.New(rand.NewSource(3))
	for range 50 {
		v, err := Parse(randomText(r, 3), nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(v), []byte(v[:len(v)/2]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		v, w := Value(a), Value(b)
		if len(a) == 0 {
			v = NullValue
		}
		if len(b) == 0 {
			w = NullValue
		}
		text := AppendText(nil, v)
		_ = AppendPretty(nil, v)
		if Compare(v, w) != -Compare(w, v) || Compare(v, v) != 0 {
			t.Errorf("%x and %x compare as %d and %d", v, w, Compare(v, w), Compare(w, v))
		}
		Hash(v)
		v.HasString("a")
		v.Find("a")
		v.At(-1)
		if _, err := Contains(v, w, func(int) error { return nil }); err != nil {
			t.Error(err)
		}
		var build Builder
		build.BeginArray()
		build.Value(v)
		if build.End() == nil {
			build.Finish()
		}
		_ = text
	})
}

// Goal: the reader accepts what it should and never panics; what it accepts prints and reads back. Method: fuzz.
func FuzzParse(f *testing.F) {
	r := rand.New(rand.NewSource(4))
	for range 50 {
		f.Add(randomText(r, 3))
	}
	for _, s := range []string{`"\ud83d"`, `{"a" 1}`, `[1,]`, `"\u00`, "1e", "-", "\"\x01\"", "nul", "{\"a\":\n1 2}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Parse(text, nil)
		if err != nil {
			var e *pgerror.Error
			if !errors.As(err, &e) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if err := Validate(text, nil); err != nil {
			t.Fatalf("%q is jsonb, but no json: %v", text, err)
		}
		if again, err := Parse(string(AppendText(nil, v)), nil); err != nil || !bytes.Equal(again, v) {
			t.Fatalf("%q prints as %s: %v", text, AppendText(nil, v), err)
		}
	})
}
