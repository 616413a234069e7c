package observer

import "testing"

// Goal: the attempts of a change are counted however many others have failed before, in bounded memory.
func TestFailuresAreBounded(t *testing.T) {
	f := &failures{young: map[string]int{}}
	for i := range int64(5 * maxFailures) {
		c := Change{Table: "public.a", Key: []any{i}, CommitTS: i}
		f.add(c.ID())
		f.add(c.ID())
		if n := f.of(c.ID()); n != 2 {
			t.Fatalf("change %d has failed %d times, want 2", i, n)
		}
		if i%2 == 0 {
			f.forget([]Change{c})
			if n := f.of(c.ID()); n != 0 {
				t.Fatalf("change %d was handled, and has failed %d times", i, n)
			}
		}
	}
	if n := len(f.young) + len(f.old); n > 2*maxFailures {
		t.Errorf("%d changes are counted", n)
	}
}
