package collation

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"weak"
)

// definition is what never changes of a collation that a user has created, and all that types store of it: two collations with the same
// definition are one, though the schema may give it another name.
type definition struct {
	OID      uint32
	Provider Provider
	Locale   string
}

// defined are the collations of users that are in use.
var defined = struct {
	sync.Mutex
	m map[definition]weak.Pointer[Collation]
}{m: map[definition]weak.Pointer[Collation]{}}

// Defined returns the collation that a user has created with a number, a provider and a locale: always the same one.
func Defined(oid uint32, provider Provider, locale string) *Collation {
	d := definition{oid, provider, locale}
	defined.Lock()
	defer defined.Unlock()
	if c := defined.m[d].Value(); c != nil {
		return c
	}
	c := New(Collation{OID: oid, Provider: provider, Locale: locale, shown: new(atomic.Pointer[shownName])})
	defined.m[d] = weak.Make(c)
	runtime.AddCleanup(c, forget, d)
	return c
}

// forget removes a collation that nothing refers to any more.
func forget(d definition) {
	defined.Lock()
	defer defined.Unlock()
	if defined.m[d].Value() == nil {
		delete(defined.m, d)
	}
}

// MarshalJSON writes the number alone if every database has the collation: the rest is the schema's. Of those of users it writes what never
// changes.
func (c *Collation) MarshalJSON() ([]byte, error) {
	if byOID[c.OID] == nil && c.OID != 0 {
		return json.Marshal(definition{c.OID, c.Provider, c.Locale})
	}
	return strconv.AppendUint(nil, uint64(c.OID), 10), nil
}

// UnmarshalJSON is the inverse.
func (c *Collation) UnmarshalJSON(b []byte) error {
	var d definition
	if len(b) > 0 && b[0] == '{' {
		err := json.Unmarshal(b, &d)
		c.OID, c.Provider, c.Locale = d.OID, d.Provider, d.Locale
		return err
	}
	oid, err := strconv.ParseUint(string(b), 10, 32)
	c.OID = uint32(oid)
	return err
}

// Known returns the collation that has been stored.
func (c *Collation) Known() (*Collation, error) {
	switch {
	case c == nil || byOID[c.OID] != nil:
		return byOID[c.number()].Plain(), nil
	case c.Provider != 0:
		return Defined(c.OID, c.Provider, c.Locale), nil
	}
	return nil, fmt.Errorf("there is no collation %d", c.OID)
}

func (c *Collation) number() uint32 {
	if c == nil {
		return DefaultCollation.OID
	}
	return c.OID
}
