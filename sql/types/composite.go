package types

import (
	"encoding/binary"
	"strings"
	"unsafe"

	"github.com/percodb/percodb/sql/pgerror"
)

// IsComposite reports whether t is a composite type with named attributes; record is none.
func (t Type) IsComposite() bool {
	return t.Def != nil && t.Def.Kind == Composite && t.OID == t.Def.OID
}

// IsRow reports whether the values of t are records: of a composite type, a domain over one, or anonymous ones.
func (t Type) IsRow() bool {
	t = t.Underlying()
	return t.OID == OIDRecord || t.IsComposite()
}

// HasRow reports whether values of t are records of a composite type, or arrays or ranges of them.
func (t Type) HasRow() bool {
	t = t.Underlying()
	if elem := t.Elem(); elem.Valid() {
		return elem.HasRow()
	}
	if rt := t.Ranges(); rt != nil {
		return rt.Sub.HasRow()
	}
	return t.IsComposite()
}

// FieldNamed returns the place of a composite type's attribute, -1 if there is none.
func (d *Defined) FieldNamed(name string) int {
	for i := range d.Fields {
		if d.Fields[i].Name == name {
			return i
		}
	}
	return -1
}

// Row returns a value of a composite type, of as many fields as the type has. fields must not change afterwards.
func (d *Defined) Row(fields Row) Datum {
	return Datum{kind: KindRow, p: unsafe.Pointer(&Record{Types: d.types, Names: d.names, Fields: fields, IDs: d.ids})}
}

// Conform returns a value that was stored as one of type t, as the schema has it now: attributes that were added since are NULL, and
// those that were dropped are gone.
func Conform(v Datum, t Type) Datum {
	if v.IsNull() {
		return v
	}
	t = t.Underlying()
	if elem := t.Elem(); elem.Valid() {
		a := *v.Array()
		a.Elem = elem
		a.Elems = make([]Datum, len(a.Elems))
		for i, e := range v.Array().Elems {
			a.Elems[i] = Conform(e, elem)
		}
		return NewArray(&a)
	}
	if rt := t.Ranges(); rt != nil {
		return rt.conform(v)
	}
	if !t.IsComposite() {
		return v
	}
	r := v.Record()
	fields := make(Row, len(t.Def.Fields))
	for i := range fields {
		f := &t.Def.Fields[i]
		if at := r.place(f.ID); at >= 0 {
			fields[i] = r.Fields[at]
			if f.Type.HasRow() {
				fields[i] = Conform(fields[i], f.Type)
			}
		}
	}
	return t.Def.Row(fields)
}

// ID returns what identifies the ith field.
func (r *Record) ID(i int) uint32 {
	if r.IDs == nil {
		return uint32(i + 1)
	}
	return r.IDs[i]
}

// place returns the place of a field, -1 if there is none.
func (r *Record) place(id uint32) int {
	if i := int(id) - 1; i < len(r.Fields) && r.ID(i) == id {
		return i
	}
	for i := range r.Fields {
		if r.ID(i) == id {
			return i
		}
	}
	return -1
}

// recordReader reads the text form of a record.
type recordReader struct {
	whole, rest string
}

func (r *recordReader) malformed(detail string) error {
	return pgerror.New(pgerror.InvalidTextRepresentation, "malformed record literal: \"%s\"", r.whole).WithDetail("%s", detail)
}

// parseRecord reads the text form of a value of a composite type.
func parseRecord(d *Defined, s string, f *Format) (Datum, error) {
	r := &recordReader{whole: s, rest: strings.TrimLeft(s, " \t\n\r\v\f")}
	if !strings.HasPrefix(r.rest, "(") {
		return Null, r.malformed("Missing left parenthesis.")
	}
	r.rest = r.rest[1:]
	fields := make(Row, len(d.Fields))
	for i := range d.Fields {
		if i > 0 {
			if !strings.HasPrefix(r.rest, ",") {
				return Null, r.malformed("Too few columns.")
			}
			r.rest = r.rest[1:]
		}
		if strings.HasPrefix(r.rest, ",") || strings.HasPrefix(r.rest, ")") {
			if err := CheckNull(d.Fields[i].Type, f); err != nil {
				return Null, err
			}
			continue
		}
		text, err := r.field()
		if err != nil {
			return Null, err
		}
		if fields[i], err = ParseText(d.Fields[i].Type, text, f); err != nil {
			return Null, err
		}
		if err := f.poll(i + 1); err != nil {
			return Null, err
		}
	}
	if !strings.HasPrefix(r.rest, ")") {
		return Null, r.malformed("Too many columns.")
	}
	if strings.Trim(r.rest[1:], " \t\n\r\v\f") != "" {
		return Null, r.malformed("Junk after right parenthesis.")
	}
	return d.Row(fields), nil
}

// field reads one field, with quotes and backslashes resolved.
func (r *recordReader) field() (string, error) {
	var b []byte
	inQuotes := false
	for i := 0; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == '\\':
			if i++; i == len(r.rest) {
				return "", r.malformed("Unexpected end of input.")
			}
			b = append(b, r.rest[i])
		case c == '"' && inQuotes && i+1 < len(r.rest) && r.rest[i+1] == '"':
			b = append(b, c)
			i++
		case c == '"':
			inQuotes = !inQuotes
		case (c == ',' || c == ')') && !inQuotes:
			r.rest = r.rest[i:]
			return string(b), nil
		default:
			b = append(b, c)
		}
	}
	return "", r.malformed("Unexpected end of input.")
}

// parseRecordBinary reads the binary form of a value of a composite type.
func parseRecordBinary(d *Defined, b []byte, f *Format) (Datum, error) {
	short := func() error { return pgerror.New(pgerror.ProtocolViolation, "insufficient data left in message") }
	if len(b) < 4 {
		return Null, short()
	}
	if n := int32(binary.BigEndian.Uint32(b)); int(n) != len(d.Fields) {
		return Null, pgerror.New(pgerror.DatatypeMismatch, "wrong number of columns: %d, expected %d", n, len(d.Fields))
	}
	b = b[4:]
	fields := make(Row, len(d.Fields))
	for i := range d.Fields {
		t := d.Fields[i].Type
		if len(b) < 8 {
			return Null, short()
		}
		oid, size := OID(binary.BigEndian.Uint32(b)), int(int32(binary.BigEndian.Uint32(b[4:])))
		b = b[8:]
		if oid != t.OID {
			return Null, pgerror.New(pgerror.DatatypeMismatch, "binary data has type %d (%s) instead of expected %d (%s) in record column %d",
				oid, Type{OID: oid, Mod: -1}, t.OID, t.Base(), i+1)
		}
		if size == -1 {
			if err := CheckNull(t, f); err != nil {
				return Null, err
			}
			continue
		}
		if size < 0 || size > len(b) {
			return Null, short()
		}
		var err error
		if fields[i], err = ParseBinary(t, b[:size:size], f); err != nil {
			return Null, err
		}
		b = b[size:]
	}
	if len(b) > 0 {
		return Null, badBinary("incorrect binary data format")
	}
	return d.Row(fields), nil
}
