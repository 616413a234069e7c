package main

import "testing"

// Goal: a derived table that is not the recomputation is reported, whatever differs. Method: a row too few, too many, and another.
func TestDifference(t *testing.T) {
	rows := map[string]string{"1": "a", "2": "b"}
	for name, c := range map[string]struct {
		have map[string]string
		want string
	}{
		"equal":   {map[string]string{"1": "a", "2": "b"}, ""},
		"missing": {map[string]string{"1": "a"}, "2 (b) is missing\n"},
		"another": {map[string]string{"1": "a", "2": "c"}, "2 is c, should be b\n"},
		"surplus": {map[string]string{"1": "a", "2": "b", "3": ""}, "3 () should not be there\n"},
	} {
		if got := difference(rows, c.have); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
