package types

import (
	"bytes"
	"testing"
)

// Goal: what clients send as hstore, in text or binary form, is refused or kept: its text and its binary form give the same value, and it
// orders as itself.
func FuzzHstore(f *testing.F) {
	f.Add("a=>1, b=>NULL", []byte{0, 0, 0, 1, 0, 0, 0, 1, 'a', 0xff, 0xff, 0xff, 0xff})
	f.Add(`"a\"b"=>"c\\d",é=>ü`, []byte{0, 0, 0, 2, 0, 0, 0, 1, 'b', 0, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, text string, binary []byte) {
		hstore := Type{OID: OIDHstore, Mod: -1}
		check := func(d Datum) {
			again, err := ParseText(hstore, string(AppendText(nil, d, hstore, nil)), nil)
			if err != nil || !bytes.Equal(again.Bytes(), d.Bytes()) {
				t.Errorf("%x: by its text %x, %v", d.Bytes(), again.Bytes(), err)
			}
			again, err = ParseBinary(hstore, AppendBinary(nil, d, hstore), nil)
			if err != nil || !bytes.Equal(again.Bytes(), d.Bytes()) {
				t.Errorf("%x: by its binary form %x, %v", d.Bytes(), again.Bytes(), err)
			}
		}
		if !bytes.Contains([]byte(text), []byte{0}) && bytes.Equal([]byte(text), bytes.ToValidUTF8([]byte(text), nil)) {
			if d, err := ParseText(hstore, text, nil); err == nil {
				check(d)
			}
		}
		if d, err := ParseBinary(hstore, binary, nil); err == nil {
			check(d)
		}
	})
}
