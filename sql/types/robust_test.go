package types

import "testing"

// FuzzForms passes arbitrary bytes to every type's text and binary input. Goal: no panic, and every accepted value is
// equal, with an equal hash, after formatting and parsing. Method: native fuzzing; the
// seeds run with the tests.
func FuzzForms(f *testing.F) {
	for _, s := range []string{"", "1", "-1.5e10", "NaN", "2024-02-29 12:34:56.789+05:30", "J2451187.5", "1 year 2 mons -3 days", "P1Y2M3DT4H5M6.7S",
		"{1,2,NULL}", `{"a\"b",c}`, "[1:2]={1,2}", "\\xdeadbeef", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "infinity", "10:20 PM", "BC 1-1-1", "\x00\x01\x00\x00\x00\x00\x00\x01\x00\x05",
		"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x17\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x04\x00\x00\x00\x05"} {
		f.Add([]byte(s))
	}
	format := &Format{Now: testNow}
	f.Fuzz(func(t *testing.T, b []byte) {
		for oid, info := range infos {
			typ := Type{OID: oid, Mod: -1}
			if info.Kind == KindNull || oid == OIDRecord || oid == OIDVoid || typ.Elem().OID == OIDRecord || typ.Elem().OID == OIDVoid {
				continue
			}
			if ValidateText(b) == nil {
				if d, err := ParseText(typ, string(b), format); err == nil {
					checkRoundTrip(t, d, typ, format)
				}
			}
			if d, err := ParseBinary(typ, b, format); err == nil {
				checkRoundTrip(t, d, typ, format)
			}
		}
	})
}

func checkRoundTrip(t *testing.T, d Datum, typ Type, format *Format) {
	if d.Kind() != typ.KindOf() {
		t.Fatalf("%s has kind %d", typ, d.Kind())
	}
	text := string(AppendText(nil, d, typ, format))
	again, err := ParseText(typ, text, format)
	if err != nil {
		// Values that only the binary form can represent, like a "char" of one byte of several, or a bytea in text.
		t.Fatalf("%s: %q does not read back: %v", typ, text, err)
	}
	if !Equal(d, again, typ) || Hash(d, typ) != Hash(again, typ) {
		t.Fatalf("%s: %q reads back as %q", typ, text, AppendText(nil, again, typ, format))
	}
	again, err = ParseBinary(typ, AppendBinary(nil, d, typ), format)
	if err != nil || !Equal(d, again, typ) {
		t.Fatalf("%s: binary form of %q reads back with %v", typ, text, err)
	}
}
