package copyformat

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/percodb/percodb/sql/pgerror"
)

// FuzzRoundTrip: any two fields, printed as a row of any text format, are read back as they were; a
// field of nil bytes stays NULL. The \r before a line's end is data only where it is escaped or quoted.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("a"), []byte(`\N`), false)
	f.Add([]byte("tab\tline\nreturn\r"), []byte(`"quoted, \"`), true)
	f.Add([]byte(`\.`), []byte(""), false)
	f.Fuzz(func(t *testing.T, a, b []byte, null bool) {
		fields := [][]byte{a, b}
		if null {
			fields[1] = nil
		}
		for _, format := range []Format{Text, CSV} {
			o := DefaultOptions(format)
			var line []byte
			for i, field := range fields {
				if i > 0 {
					line = append(line, o.Delimiter)
				}
				switch {
				case field == nil:
					line = append(line, o.Null...)
				case format == CSV:
					line = AppendCSVField(line, field, &o, false, false)
				default:
					line = AppendTextField(line, field, o.Delimiter)
				}
			}
			r := NewReader(bytes.NewReader(append(line, '\n')), o, 2, nil)
			got, err := r.Next()
			if err != nil {
				t.Fatalf("format %d, line %q: %v", format, line, err)
			}
			for i := range fields {
				if (got[i] == nil) != (fields[i] == nil) || !bytes.Equal(got[i], fields[i]) {
					t.Fatalf("format %d, line %q: field %d is %q, want %q", format, line, i, got[i], fields[i])
				}
			}
			if _, err := r.Next(); err != io.EOF {
				t.Fatalf("format %d: after the row: %v", format, err)
			}
		}
	})
}

// FuzzReader: any bytes in any format end with io.EOF or a *pgerror.Error, and rows have the columns
// asked for.
func FuzzReader(f *testing.F) {
	f.Add([]byte("a\tb\\x4\\101\n\\.\n"), uint8(0))
	f.Add([]byte("a,\"b\"\"\n\",c\n"), uint8(1))
	f.Add(append(AppendBinaryHeader(nil), 0, 2, 0, 0, 0, 1, 'x', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, format uint8) {
		r := NewReader(bytes.NewReader(data), DefaultOptions(Format(format%3)), 2, nil)
		for {
			fields, err := r.Next()
			var pg *pgerror.Error
			if err == io.EOF || errors.As(err, &pg) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(fields) > 2 || len(fields) < 2 && format%3 == 2 {
				t.Fatalf("%d fields", len(fields))
			}
		}
	})
}

// Goal: a first field without bytes is a value, not NULL, in the formats that tell them apart.
func TestEmptyFirstField(t *testing.T) {
	binary := append(AppendBinaryHeader(nil), 0, 2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff)
	for format, data := range map[Format][]byte{Text: []byte("\t\\N\n"), CSV: []byte("\"\",\n"), Binary: binary} {
		fields, err := NewReader(bytes.NewReader(data), DefaultOptions(format), 2, nil).Next()
		if err != nil || fields[0] == nil || fields[1] != nil {
			t.Errorf("format %d: %q, %v; want an empty field and NULL", format, fields, err)
		}
	}
}
