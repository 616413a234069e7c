package collation

import (
	_ "embed"
	"strings"
)

// SystemSchema contains the collations of every database.
const SystemSchema = "pg_catalog"

// The collations that order by bytes, with PostgreSQL's OIDs.
var (
	DefaultCollation = New(Collation{OID: 100, Schema: SystemSchema, Name: "default", Provider: Default, Comment: "database's default collation"})
	C                = New(Collation{OID: 950, Schema: SystemSchema, Name: "C", Provider: Libc, Locale: "C", Comment: "standard C collation"})
	POSIX            = New(Collation{OID: 951, Schema: SystemSchema, Name: "POSIX", Provider: Libc, Locale: "POSIX", Comment: "standard POSIX collation"})
)

// firstICU is the OID of und-x-icu; the others follow.
const firstICU = 12342

// names lists the locales for which PostgreSQL's initdb makes collations, and their descriptions.
//
//go:embed names.txt
var names string

var (
	builtin = makeBuiltin()
	byOID   = indexByOID()
	byName  = indexByName()
)

func makeBuiltin() []*Collation {
	out := []*Collation{DefaultCollation, C, POSIX,
		New(Collation{OID: 12340, Schema: SystemSchema, Name: "ucs_basic", Provider: Libc, Locale: "C"}),
		New(Collation{OID: 12341, Schema: SystemSchema, Name: "C.utf8", Provider: Libc, Locale: "C.utf8"}),
	}
	oid := uint32(firstICU)
	for line := range strings.Lines(names) {
		locale, comment, _ := strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, New(Collation{OID: oid, Schema: SystemSchema, Name: locale + "-x-icu", Provider: ICU, Locale: locale, Comment: comment}))
		oid++
	}
	return out
}

func indexByOID() map[uint32]*Collation {
	m := make(map[uint32]*Collation, len(builtin))
	for _, c := range builtin {
		m[c.OID] = c
	}
	return m
}

func indexByName() map[string]*Collation {
	m := make(map[string]*Collation, len(builtin))
	for _, c := range builtin {
		m[c.Name] = c
	}
	m["C.UTF-8"] = m["C.utf8"]
	return m
}

// Builtin lists the collations that every database has.
func Builtin() []*Collation { return builtin }

// ByOID returns a collation that every database has, nil if there is none of that number.
func ByOID(oid uint32) *Collation { return byOID[oid] }

// ByName returns a collation that every database has, nil if there is none of that name.
func ByName(name string) *Collation { return byName[name] }
