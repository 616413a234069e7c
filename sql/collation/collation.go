// Package collation orders text as PostgreSQL's collations do: by its bytes, or by the rules of a language.
//
// A *Collation stands in a types.Type. nil is the database's default collation, which orders by bytes. The collation of an expression also
// states how it was derived (SQL's coercibility): implicitly from a column, explicitly by COLLATE, or not at all, if it depends on two
// columns of different collations. Merge combines those of an operator's arguments.
//
// The rules of languages are those of golang.org/x/text/collate (CLDR 23), PostgreSQL's those of ICU: docs/collations.md lists differences.
// All collations are deterministic: equal texts are equal bytes, and texts that the rules do not tell apart are ordered by their bytes.
package collation

import (
	"bytes"
	"sync/atomic"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/percodb/percodb/sql/keyword"
)

// Provider is PostgreSQL's collprovider.
type Provider byte

// The providers.
const (
	Default Provider = 'd' // the database's
	Libc    Provider = 'c' // of them only those that order by bytes
	ICU     Provider = 'i'
)

// Collation is a collation as the schema has it, or a derivation of one. Those that users have created have neither a name nor a schema
// here: the catalog knows them by their OIDs. Immutable; safe for concurrent use. Two that are equal by
// pointer are the same collation with the same derivation.
type Collation struct {
	OID          uint32
	Schema, Name string
	Provider     Provider
	Locale       string // of libc, the name of the rules for upper and lower case: C, POSIX or C.utf8; of ICU as CheckLocale reads it
	Comment      string

	rules    *rules // nil: by bytes
	state    state
	plain    *Collation // without derivation
	explicit *Collation // derived explicitly
	between  [2]*Collation
	shown    *atomic.Pointer[shownName] // of one that a user has created
	pos      int
}

// state is how the collation of an expression was derived.
type state uint8

const (
	implicit state = iota
	explicit
	conflict // between two implicit ones
	none     // a column of a subquery without collation
)

// New completes a collation.
func New(c Collation) *Collation {
	c.state = implicit
	if c.Provider == ICU {
		c.rules = rulesOf(c.Locale)
	}
	e := c
	e.state = explicit
	c.explicit = &e
	p := &c
	p.plain, e.plain = p, p
	e.explicit = &e
	return p
}

// None is the collation of a column that a subquery derives from several.
var None = &Collation{state: none}

// Plain returns c without its derivation: nil if it is the default, None if it could not be derived.
func (c *Collation) Plain() *Collation {
	switch {
	case c == nil || c.plain == nil && c.state == implicit:
		return c
	case c.Provider == Default:
		return nil
	case c.plain == nil:
		return None
	}
	return c.plain
}

// Explicit returns c as COLLATE derives it; of the default collation it is that of DefaultCollation.
func (c *Collation) Explicit() *Collation {
	if c == nil {
		c = DefaultCollation
	}
	return c.explicit
}

// IsExplicit reports whether COLLATE derived c.
func (c *Collation) IsExplicit() bool { return c != nil && c.state == explicit }

// String returns the name without its schema, for messages.
func (c *Collation) String() string {
	if c == nil {
		return DefaultCollation.Name
	}
	if c.shown != nil {
		if s := c.shown.Load(); s != nil {
			return s.name
		}
	}
	return c.Name
}

// Written returns the name as statements write it, of one that a user has created with its schema.
func (c *Collation) Written() string {
	schema, name := SystemSchema, c.String()
	if c != nil && c.shown != nil {
		if s := c.shown.Load(); s != nil {
			schema = s.schema
		}
	}
	if schema == SystemSchema {
		return keyword.QuoteIdent(name)
	}
	return keyword.QuoteIdent(schema) + "." + keyword.QuoteIdent(name)
}

// shownName is how a collation that a user has created is called.
type shownName struct{ schema, name string }

// Show sets how a collation that a user has created is called: as in the schema that was read last.
func (c *Collation) Show(schema, name string) {
	if now := c.shown.Load(); now == nil || *now != (shownName{schema, name}) {
		c.shown.Store(&shownName{schema, name})
	}
}

// Undetermined reports that comparisons under c fail.
func (c *Collation) Undetermined() bool { return c != nil && c.state >= conflict }

// Between returns the two implicit collations that c conflicts in, and where the second comes from; ok is false if c is no conflict.
func (c *Collation) Between() (a, b *Collation, pos int, ok bool) {
	if c == nil || c.state != conflict {
		return nil, nil, 0, false
	}
	return c.between[0], c.between[1], c.pos, true
}

// LibcLocale reports whether a locale of libc is one of those that order by bytes.
func LibcLocale(locale string) bool {
	switch locale {
	case "C", "POSIX", "C.utf8", "C.UTF-8":
		return true
	}
	return false
}

// OfUTF8 reports whether the collation is for texts in UTF-8 alone, as pg_collation.collencoding states it.
func (c *Collation) OfUTF8() bool { return c.Name == "ucs_basic" || c.Provider == Libc && c.unicode() }

// unicode reports whether libc's rules for upper and lower case are those of Unicode.
func (c *Collation) unicode() bool { return c.Locale == "C.utf8" || c.Locale == "C.UTF-8" }

// IsDefault reports whether c is the database's default.
func (c *Collation) IsDefault() bool { return c == nil || c.Provider == Default }

// ByBytes reports whether c orders text by its bytes.
func (c *Collation) ByBytes() bool { return c == nil || c.rules == nil }

// ASCII reports whether only the letters of ASCII have cases: in the collations C and POSIX.
func (c *Collation) ASCII() bool { return c != nil && c.Provider == Libc && !c.unicode() }

// SameOrder reports whether a and b order all texts alike.
func SameOrder(a, b *Collation) bool {
	return a == b || a.ByBytes() && b.ByBytes() || !a.ByBytes() && !b.ByBytes() && a.rules == b.rules
}

// Merge returns the collation of an operation over a value of collation a and one of b, which is at pos; nil, false if both are explicit
// and differ.
func Merge(a, b *Collation, pos int) (*Collation, bool) {
	sa, sb := a.strength(), b.strength()
	switch {
	case a == b || sb == none:
		return a, true
	case sa == none:
		return b, true
	case sa == explicit && sb == explicit:
		return a, a.OID == b.OID
	case sa == explicit || sb != explicit && sa == conflict:
		return a, true
	case sb == explicit || sb == conflict:
		return b, true
	case a.IsDefault():
		return b, true
	case b.IsDefault() || a.OID == b.OID:
		return a, true
	}
	return &Collation{state: conflict, between: [2]*Collation{a, b}, pos: pos}, true
}

func (c *Collation) strength() state {
	if c == nil {
		return implicit
	}
	return c.state
}

// Compare orders two texts.
func (c *Collation) Compare(a, b []byte) int {
	if c.ByBytes() || bytes.Equal(a, b) {
		return bytes.Compare(a, b)
	}
	if n := c.rules.compare(a, b); n != 0 {
		return n
	}
	return bytes.Compare(a, b)
}

// AppendKey appends a key of s whose bytes order as the rules do. Texts that they do not tell apart have equal keys. c must not order
// by bytes.
func (c *Collation) AppendKey(dst, s []byte) []byte { return c.rules.appendKey(dst, s) }

// Language is that of the rules for upper and lower case.
func (c *Collation) Language() language.Tag {
	if c.ByBytes() {
		return language.Und
	}
	return c.rules.language()
}

// Upper, Lower and Title convert s by the rules of the language.
func (c *Collation) Upper(s string) string { return cases.Upper(c.Language()).String(s) }

// Lower is the inverse of Upper.
func (c *Collation) Lower(s string) string { return cases.Lower(c.Language()).String(s) }

// Title converts the first letter of each word to upper case, and the others to lower case.
func (c *Collation) Title(s string) string { return cases.Title(c.Language()).String(s) }

// Version is that of the rules in this program: keys of indexes that were made with another may be in another order.
func (c *Collation) Version() string {
	if c.ByBytes() {
		return ""
	}
	return c.rules.version()
}
