package tsearch

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// FuzzVector checks that a vector keeps its value in text, binary and encoded form.
func FuzzVector(f *testing.F) {
	for _, s := range []string{"", "a b:1,2A", `'a''b':3 c\ d`, "a:1x", "'", "a:99999999999999999999", ":a", "é:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if bytes.IndexByte([]byte(s), 0) >= 0 {
			return
		}
		v, err := ParseVector(s)
		if err != nil {
			return
		}
		encoded := v.Encode()
		if again := DecodeVector(encoded).Encode(); !bytes.Equal(again, encoded) {
			t.Fatalf("encoded form of %q", s)
		}
		w, err := ParseVector(string(v.AppendText(nil)))
		if err != nil || !bytes.Equal(w.Encode(), encoded) {
			t.Fatalf("text form of %q: %v", s, err)
		}
	})
}

// FuzzQuery does the same for queries, and evaluates them.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"", "a & !b | c:*A", "(a <-> b) <2> c", `'a''b' & c\ d`, "a <", "!!!a", "((a))", "a <16384> b"} {
		f.Add(s)
	}
	document, _ := ParseVector("a:1,3 b:2 c:4A d")
	f.Fuzz(func(t *testing.T, s string) {
		if bytes.IndexByte([]byte(s), 0) >= 0 {
			return
		}
		_, _ = ParseWeb(s, func(text string, weights uint8, prefix bool) (*Node, error) {
			return NewWord(text, weights, prefix), nil
		})
		q, err := ParseQuery(s)
		if err != nil {
			return
		}
		encoded := q.Encode()
		if again := DecodeQuery(encoded).Encode(); !bytes.Equal(again, encoded) {
			t.Fatalf("encoded form of %q", s)
		}
		order := QueryOrder(encoded)
		if plain, ok := QueryOfOrder(order); !ok || !bytes.Equal(QueryOrder(plain), order) || HasFlags(plain) {
			t.Fatalf("order of %q: %x, %v", s, order, ok)
		}
		r, err := ParseQuery(string(q.AppendText(nil)))
		if err != nil || !bytes.Equal(r.Encode(), encoded) {
			t.Fatalf("text form of %q: %q, %v", s, q.AppendText(nil), err)
		}
		document.Matches(q)
		document.Rank(DefaultWeights, q, 63)
		q.Rewrite(q, r)
	})
}

// FuzzReceive checks that a binary form is refused, or read as a value with the same binary form.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01a\x00\x00\x01\x00\x01"))
	f.Add([]byte("\x00\x00\x00\x02\x02\x01\x01\x00\x00a\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := ReceiveVector(b); err == nil {
			if w, err := ReceiveVector(v.Send(nil)); err != nil || !bytes.Equal(w.Encode(), v.Encode()) {
				t.Fatalf("vector %x: %v", b, err)
			}
		}
		if q, err := ReceiveQuery(b); err == nil {
			if r, err := ReceiveQuery(q.Send(nil)); err != nil || !bytes.Equal(r.Encode(), q.Encode()) {
				t.Fatalf("query %x: %v", b, err)
			}
		}
	})
}

func TestOrder(t *testing.T) {
	for _, c := range []struct{ less, more string }{{"a", "b"}, {"b", "aa"}, {"aa", "a b"}, {"a:2", "a:1"}, {"a:1A", "a:1"}} {
		v, _ := ParseVector(c.less)
		w, _ := ParseVector(c.more)
		if bytes.Compare(v.Encode(), w.Encode()) >= 0 {
			t.Errorf("%s is not before %s", c.less, c.more)
		}
	}
}

// Goal: the bytes that queries are compared by order as their trees, and contain all of a query but weights and prefix marks. Method: all
// pairs of random queries.
func TestQueryOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var random func(depth int) *Node
	random = func(depth int) *Node {
		if depth == 0 || rng.IntN(3) == 0 {
			return NewWord([]string{"a", "b", "ab", "xyz"}[rng.IntN(4)], uint8(rng.IntN(3)), rng.IntN(4) == 0)
		}
		switch op := []Op{Not, And, Or, Phrase, Phrase}[rng.IntN(5)]; op {
		case Not:
			return Join(Not, 0, nil, random(depth-1))
		case Phrase:
			return Join(Phrase, 1+rng.IntN(3), random(depth-1), random(depth-1))
		default:
			return Join(op, 0, random(depth-1), random(depth-1))
		}
	}
	var queries []*Query
	for range 300 {
		queries = append(queries, &Query{random(3)})
	}
	for _, q := range queries {
		encoded := q.Encode()
		plain, ok := QueryOfOrder(QueryOrder(encoded))
		if !ok || len(plain) != len(encoded) || DecodeQuery(plain).Root.compare(q.Root) != 0 {
			t.Fatalf("%s: the query of its order is %x, %v", q.AppendText(nil), plain, ok)
		}
		for _, r := range queries {
			other := r.Encode()
			if !bytes.Equal(encoded[:queryHeader], other[:queryHeader]) {
				continue // They differ in size.
			}
			if got, want := bytes.Compare(QueryOrder(encoded), QueryOrder(other)), q.Root.compare(r.Root); got != want {
				t.Fatalf("%s and %s: %d, want %d", q.AppendText(nil), r.AppendText(nil), got, want)
			}
		}
	}
}
