package types

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types/jsonb"
	"github.com/percodb/percodb/sql/types/jsonpath"
)

// jsonbVersion begins the binary form of a jsonb or jsonpath, its text form follows.
const jsonbVersion = 1

// JSONB returns a jsonb datum.
func JSONB(v jsonb.Value) Datum { return Bytes(v) }

// JSONB returns the value of a jsonb datum.
func (d Datum) JSONB() jsonb.Value { return d.Bytes() }

func parseJSON(s string, f *Format) (Datum, error) {
	if err := jsonb.Validate(s, f.pollFunc()); err != nil {
		return Null, err
	}
	return Text(s), nil
}

func parseJSONB(s string, f *Format) (Datum, error) {
	v, err := jsonb.Parse(s, f.pollFunc())
	if err != nil {
		return Null, err
	}
	return JSONB(v), nil
}

// parseJSONPath reads a path; the datum is its text form.
func parseJSONPath(s string) (Datum, error) {
	p, err := jsonpath.Parse(s)
	if err != nil {
		return Null, err
	}
	return Text(p.String()), nil
}

// parseJSONBinary reads the binary form of json, which is its text, of jsonb or jsonpath.
func parseJSONBinary(t Type, b []byte, f *Format) (Datum, error) {
	if t.OID != OIDJSON {
		if len(b) == 0 {
			return Null, pgerror.New(pgerror.ProtocolViolation, "no data left in message")
		}
		if b[0] != jsonbVersion {
			return Null, badBinary("unsupported %s version number %d", t, b[0])
		}
		b = b[1:]
	}
	if err := ValidateText(b); err != nil {
		return Null, err
	}
	return ParseText(t, Bytes(b).Text(), f)
}
