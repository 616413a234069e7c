package types

import "testing"

// hotForms are values of the types that are formatted and parsed most often on the wire.
var hotForms = []struct {
	name string
	t    Type
	text string
}{
	{"int4", TInt4, "-12345"}, {"int8", TInt8, "9223372036854775807"}, {"text", TText, "hello"}, {"bpchar", TBPChar, "hello  "}, {"bool", TBool, "t"},
	{"float8", TFloat8, "3.14159"}, {"numeric", TNumeric, "12345.67"}, {"date", TDate, "2024-02-29"}, {"timestamp", TTimestamp, "2024-02-29 12:34:56.789"},
	{"timestamptz", TTimestamptz, "2024-02-29 12:34:56.789"}, {"uuid", TUUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, {"bytea", TBytea, "\\xdeadbeef"},
}

func TestFormsDoNotAllocate(t *testing.T) {
	// Goal: the wire protocol's hot path does not allocate. Method: count allocations.
	f := &Format{}
	dst := make([]byte, 0, 256)
	for _, h := range hotForms {
		d, err := ParseText(h.t, h.text, f)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { dst = AppendText(dst[:0], d, h.t, f) }); n > 0 {
			t.Errorf("AppendText of %s allocates %v times", h.name, n)
		}
		if n := testing.AllocsPerRun(100, func() { dst = AppendBinary(dst[:0], d, h.t) }); n > 0 {
			t.Errorf("AppendBinary of %s allocates %v times", h.name, n)
		}
		if n := testing.AllocsPerRun(100, func() { Compare(d, d, h.t); Hash(d, h.t) }); n > 0 {
			t.Errorf("Compare and Hash of %s allocate %v times", h.name, n)
		}
		if h.t == TNumeric || h.t == TUUID || h.t == TBytea {
			continue // these allocate a value
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = ParseText(h.t, h.text, f) }); n > 0 {
			t.Errorf("ParseText of %s allocates %v times", h.name, n)
		}
	}
}

func BenchmarkAppendText(b *testing.B) {
	f := &Format{}
	for _, h := range hotForms {
		d, _ := ParseText(h.t, h.text, f)
		b.Run(h.name, func(b *testing.B) {
			dst := make([]byte, 0, 256)
			for b.Loop() {
				dst = AppendText(dst[:0], d, h.t, f)
			}
		})
	}
}

func BenchmarkParseText(b *testing.B) {
	f := &Format{}
	for _, h := range hotForms {
		b.Run(h.name, func(b *testing.B) {
			for b.Loop() {
				_, _ = ParseText(h.t, h.text, f)
			}
		})
	}
}
