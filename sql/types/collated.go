package types

import (
	"encoding/json"

	"github.com/percodb/percodb/sql/collation"
)

// UnmarshalJSON reads a stored type, whose collation is its number.
func (t *Type) UnmarshalJSON(b []byte) (err error) {
	type stored Type
	if err = json.Unmarshal(b, (*stored)(t)); err == nil {
		t.Coll, err = t.Coll.Known()
	}
	return err
}

// Collatable reports whether values of a type have a collation: texts, and arrays and domains of them.
func (t Type) Collatable() bool {
	switch t.OID {
	case OIDText, OIDVarchar, OIDBPChar, OIDName, OIDCitext:
		return true
	}
	if t = t.Underlying(); t.IsVector() {
		return false
	}
	if elem := t.Elem(); elem.Valid() {
		return elem.Collatable()
	}
	switch t.OID {
	case OIDText, OIDVarchar, OIDBPChar, OIDName, OIDCitext, OIDAnyArray:
		return true
	}
	return false
}

// Collation is the collation of a type: that of names is C; nil is the default.
func (t Type) Collation() *collation.Collation {
	if t.Underlying().OID == OIDName {
		return collation.C
	}
	return t.Coll
}

// Collated returns t with a collation.
func (t Type) Collated(c *collation.Collation) Type {
	t.Coll = c
	return t
}
