package types

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Goal: the estimate of a text form's length is not too low, and that of a deeply nested record exceeds every limit.
// Method: random nested records and arrays of texts with quotes.
func TestTextBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	var value func(depth int) (Datum, Type)
	value = func(depth int) (Datum, Type) {
		switch {
		case depth == 0 || r.IntN(6) == 0:
			return Text(strings.Repeat([]string{`"`, `\`, "a", " ", ""}[r.IntN(5)], r.IntN(5))), TText
		case r.IntN(4) == 0:
			return NewArray(&Array{Elem: TText, Elems: []Datum{Text(`"\`), Null, Text("")}}), TText.ArrayOf()
		}
		record := &Record{}
		for range 1 + r.IntN(3) {
			d, of := value(depth - 1)
			record.Fields, record.Types = append(record.Fields, d), append(record.Types, of)
		}
		return NewRecord(record.Types, record.Fields), Type{OID: OIDRecord, Mod: -1}
	}
	for range 2000 {
		d, of := value(r.IntN(7))
		if text := AppendText(nil, d, of, nil); d.TextBytes() < len(text) && d.TextBytes() > 0 {
			t.Fatalf("%q has %d bytes, the estimate is %d", text, len(text), d.TextBytes())
		}
	}
	deep := Int(1)
	for range 500 {
		deep = NewRecord([]Type{{OID: OIDRecord, Mod: -1}}, Row{deep})
	}
	if n := deep.TextBytes(); n < 1<<40 {
		t.Errorf("a deep record: %d", n)
	}
}
