package types

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Goal: patterns match the paths that their definition says, and print as they are read.
//
// Method: random patterns of few labels are matched with random paths, and level by level as PostgreSQL does, which tries every number of labels.
func TestLqueryMatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	for range 20000 {
		var levels, labels []string
		for range 1 + r.IntN(4) {
			levels = append(levels, pick("a", "b", "!a", "a|b", "*", "a*", "A@", "!a|c", "b_a%")+pick("", "", "{1}", "{,2}", "{1,}", "{2,3}", "{0}"))
		}
		for range r.IntN(6) {
			labels = append(labels, pick("a", "b", "c", "ab", "a_b"))
		}
		pattern := strings.Join(levels, ".")
		d, err := registered[OIDLquery].Parse(pattern, -1, nil)
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		if again, err := registered[OIDLquery].Parse(d.Text(), -1, nil); err != nil || again.Text() != d.Text() {
			t.Fatalf("%s prints as %s, which is read as %s: %v", pattern, d.Text(), again.Text(), err)
		}
		q, err := NewLquery(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := q.Matches(labels, func(int) error { return nil })
		if want := matchesSlowly(q.levels, labels); err != nil || got != want {
			t.Fatalf("%v ~ %s: %v, want %v (%v)", labels, pattern, got, want, err)
		}
	}
}

func matchesSlowly(q lquery, labels []string) bool {
	if len(q) == 0 {
		return len(labels) == 0
	}
	for n := 0; n <= min(q[0].high, len(labels)); n++ {
		if n > 0 && !q[0].matches(labels[n-1]) {
			return false
		}
		if n >= q[0].low && matchesSlowly(q[1:], labels[n:]) {
			return true
		}
	}
	return false
}

// Goal: bad input fails and never panics; conditions print as they are read.
//
// Method: random texts of the characters that mean something are read as each of the types.
func TestPathInput(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const signs = "ab.*!|&@%{},1 ()_ä"
	all := []rune(signs)
	for range 50000 {
		text := make([]rune, r.IntN(9))
		for i := range text {
			text[i] = all[r.IntN(len(all))]
		}
		for _, id := range []OID{OIDLtree, OIDLquery, OIDLtxtquery} {
			d, err := registered[id].Parse(string(text), -1, nil)
			if err != nil {
				continue
			}
			if again, err := registered[id].Parse(d.Text(), -1, nil); err != nil || again.Text() != d.Text() {
				t.Fatalf("%s %q prints as %q, which is read as %q: %v", infos[id].Name, string(text), d.Text(), again.Text(), err)
			}
		}
	}
}
