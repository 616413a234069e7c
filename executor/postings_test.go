package executor

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/builtin"
)

// Goal: unions and intersections of postings, nested, have the keys that sets have. Method: random sets, read to the end, and with random seeks.
func TestPostings(t *testing.T) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 2))
	has := func(set []byte, k byte) bool { return slices.Contains(set, k) }
	list := func(set []byte) postings {
		p := &sortedPostings{}
		for k := range 40 {
			if has(set, byte(k)) {
				p.keys = append(p.keys, []byte{byte(k)})
			}
		}
		return p
	}
	for range 3000 {
		var sets [4][]byte
		for i := range sets {
			for k := range 40 {
				if rng.IntN(4) > i {
					sets[i] = append(sets[i], byte(k))
				}
			}
		}
		p := common([]postings{&unionPostings{all: []postings{list(sets[2]), list(sets[3])}}, list(sets[0]), common([]postings{list(sets[1]), list(sets[0])})})
		var want []byte
		for k := range 40 {
			if b := byte(k); (has(sets[2], b) || has(sets[3], b)) && has(sets[0], b) && has(sets[1], b) {
				want = append(want, b)
			}
		}
		var got []byte
		seeks := rng.IntN(2) == 0
		for {
			ok, err := false, error(nil)
			if seeks && rng.IntN(3) == 0 {
				target := byte(rng.IntN(45))
				if len(got) > 0 && target <= got[len(got)-1] {
					continue
				}
				want = slices.DeleteFunc(want, func(k byte) bool { return k < target && !has(got, k) })
				ok, err = p.seek(ctx, []byte{target})
			} else {
				ok, err = p.next(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			got = append(got, p.key()[0])
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("got %v, want %v of %v", got, want, sets)
		}
	}
}

// lateTxn passes some pairs of a walk's page at its end, as a shard does with those that are locked.
type lateTxn struct {
	*memTxn
	rng *rand.Rand
}

func (t *lateTxn) Walk(ctx context.Context, spans []kv.Span, w percolator.Walk) (int64, error) {
	pair, stop, left := w.Pair, w.Stop, 0
	var late [][]byte
	w.Pair = func(key, value []byte) error {
		if left++; t.rng.IntN(4) == 0 {
			late = append(late, bytes.Clone(key))
			return nil
		}
		return pair(key, value)
	}
	pass := func() error {
		for _, key := range late {
			if err := pair(key, nil); err != nil {
				return err
			}
		}
		left, late = 0, nil
		return nil
	}
	w.Stop = func() bool { return left >= w.PageRows && pass() == nil && stop() }
	n, err := t.memTxn.Walk(ctx, spans, w)
	return n, errors.Join(err, pass())
}

// Goal: the rows that have several terms are those that sets have, however frequent each term is, with locked entries, read to the end and with
// seeks; and a rare term does not read the list of a frequent one.
func TestCommonTerms(t *testing.T) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(3, 4))
	key := func(i int) []byte { return []byte{byte(i >> 8), byte(i)} }
	for round := range 300 {
		txn := &lateTxn{newMemTxn(), rng}
		n, terms := 1+rng.IntN(5000), 2+rng.IntN(3)
		c := &commonTerms{o: &invertedScan{}}
		c.o.ex = &execution{txn: txn}
		c.o.ex.bind(&Runtime{Txn: txn, Env: &builtin.Env{}})
		every := make([]int, terms)
		for i := range every {
			every[i] = []int{1, 2, 7, 100, 3000}[rng.IntN(5)]
			c.terms = append(c.terms, termList{prefix: []byte{'a' + byte(i)}})
		}
		var want []int
		for k := range n {
			common := true
			for i := range every {
				has := rng.IntN(every[i]) == 0
				if common = common && has; has {
					txn.data[string(append([]byte{'a' + byte(i)}, key(k)...))] = []byte{}
				}
			}
			if common {
				want = append(want, k)
			}
		}
		for at := 0; ; {
			ok, err := false, error(nil)
			if round%2 == 0 && rng.IntN(3) == 0 {
				target := rng.IntN(n + 10)
				for at > 0 && target <= want[at-1] {
					target = want[at-1] + 1
				}
				for at < len(want) && want[at] < target {
					at++
				}
				ok, err = c.seek(ctx, key(target))
			} else {
				ok, err = c.next(ctx)
			}
			switch {
			case err != nil:
				t.Fatal(err)
			case ok != (at < len(want)):
				t.Fatalf("a row is there: %v, with %d of %d found", ok, at, len(want))
			case ok && !bytes.Equal(c.key(), key(want[at])):
				t.Fatalf("got %x, want %x", c.key(), key(want[at]))
			}
			if at++; !ok {
				break
			}
		}
		if c.close(); c.o.ex.mem.used != 0 {
			t.Fatalf("%d bytes are not given back", c.o.ex.mem.used)
		}
	}

	txn := newMemTxn()
	for k := range 50000 {
		txn.data[string(append([]byte{'a'}, key(k)...))] = []byte{}
	}
	for k := range 30 {
		txn.data[string(append([]byte{'b'}, key(1600*k)...))] = []byte{}
	}
	c := &commonTerms{o: &invertedScan{}, terms: []termList{{prefix: []byte{'a'}}, {prefix: []byte{'b'}}}}
	c.o.ex = &execution{txn: txn}
	c.o.ex.bind(&Runtime{Txn: txn, Env: &builtin.Env{}})
	found := 0
	for ok, err := c.next(ctx); ok || err != nil; ok, err = c.next(ctx) {
		if found++; err != nil {
			t.Fatal(err)
		}
	}
	if found != 30 || txn.scanned > 1000 {
		t.Errorf("%d rows, %d entries read", found, txn.scanned)
	}
}
