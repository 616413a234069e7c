package types

import (
	"bytes"
	"cmp"
	"testing"
)

// Goal: values of citext compare, and hash, by their folded texts.
//
// Method: every pair of texts with letters of all lengths, whose folded form may be longer or shorter, is compared as the folded texts are.
func TestCitextFolds(t *testing.T) {
	letters := []string{"", "a", "A", "b", "z", "Z", "ä", "Ä", "İ", "i", "ß", "Ⱥ", "ⱥ", "K", "k", "Σ", "σ", "ς", "\x01", " "}
	var texts []string
	for _, x := range letters {
		for _, y := range letters {
			texts = append(texts, x+y)
		}
	}
	for _, x := range texts {
		for _, y := range texts {
			a, b := Text(x), Text(y)
			want := cmp.Compare(FoldLower(x), FoldLower(y))
			if got := Compare(a, b, TCitext); cmp.Compare(got, 0) != want {
				t.Fatalf("%q and %q: %d, want %d", x, y, got, want)
			}
			if Equal(a, b, TCitext) != (want == 0) || want == 0 && Hash(a, TCitext) != Hash(b, TCitext) {
				t.Fatalf("%q and %q: equality and hash disagree with the order", x, y)
			}
		}
		if !bytes.Equal(FoldedCitext(Text(x)), []byte(FoldLower(x))) {
			t.Fatalf("%q: FoldedCitext", x)
		}
	}
}
