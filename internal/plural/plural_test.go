package plural

import "testing"

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 ranges": Count(0, "range"), "1 range": Count(1, "range"), "2 ranges": Count(int64(2), "range"),
		"1 index entry": Count(1, "index entry"), "3 index entries": Count(uint64(3), "index entry"),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
