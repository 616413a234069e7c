package executor

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
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
		p := intersect([]postings{&unionPostings{all: []postings{list(sets[2]), list(sets[3])}}, list(sets[0]), intersect([]postings{list(sets[1]), list(sets[0])})})
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
