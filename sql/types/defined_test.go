package types

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// Goal: whatever labels are added where, positions order as the labels do, none is used twice, and those there already stay. Method:
// labels at random places, at the ends, and always between the same neighbours.
func TestEnumPosition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, place := range map[string]func(n int) int{
		"random": func(n int) int { return rng.IntN(n + 1) },
		"last":   func(n int) int { return n },
		"first":  func(int) int { return 0 },
		"second": func(n int) int { return min(n, 1) },
		"before": func(n int) int { return max(n-1, 0) },
		"middle": func(n int) int { return n / 2 },
	} {
		var all [][]byte
		for range 1000 {
			i := place(len(all))
			var before, after []byte
			if i > 0 {
				before = all[i-1]
			}
			if i < len(all) {
				after = all[i]
			}
			all = slices.Insert(all, i, EnumPosition(before, after))
		}
		for i := 1; i < len(all); i++ {
			if bytes.Compare(all[i-1], all[i]) >= 0 {
				t.Fatalf("%s: position %d is %x, the next one %x", name, i-1, all[i-1], all[i])
			}
		}
	}
	var last []byte
	for range smallPositions {
		if last = EnumPosition(last, nil); len(last) != 1 {
			t.Fatalf("one of the first labels takes %d bytes", len(last))
		}
	}
}
