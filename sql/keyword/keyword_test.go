package keyword

import "testing"

// TestLookup: every word is found by its text, in alphabetical order, and nothing else is. A word out of
// order would make the search miss it.
func TestLookup(t *testing.T) {
	for w := None + 1; w < count; w++ {
		if got := Lookup([]byte(w.String())); got != w {
			t.Errorf("%q is found as %q", w, got)
		}
		if w.Category() < Unreserved || w.Category() > Reserved {
			t.Errorf("%q has category %d", w, w.Category())
		}
	}
	for _, no := range []string{"", "a", "selec", "selects", "zzz", "_", "1", "Select", "é"} {
		if got := Lookup([]byte(no)); got != None {
			t.Errorf("%q is found as %q", no, got)
		}
	}
}

// TestCategories: samples of each category, and of the words that may not be a bare label.
func TestCategories(t *testing.T) {
	for w, want := range map[Word]Category{
		Select: Reserved, Left: TypeFunc, Int: ColumnName, Abort: Unreserved, None: NotKeyword,
	} {
		if got := w.Category(); got != want {
			t.Errorf("%q has category %d, want %d", w, got, want)
		}
	}
	for w, want := range map[Word]bool{From: false, Year: false, Select: true, Abort: true, None: true} {
		if got := w.BareLabel(); got != want {
			t.Errorf("%q as a bare label: %v", w, got)
		}
	}
}
