package types

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// Methods is all that this package does for one type: a type that is not built into the switches of the package declares it in a
// file of its own and registers it there. Datums are of KindInt, ordered as numbers, or of KindBytes, in a representation whose
// bytes order as the values do, so that comparing, hashing, grouping, sorting and keys of indexes need nothing more. Ranges and
// multiranges, whose bounds may be of any type, are the exception, and citext.
type Methods struct {
	Info
	Aliases []string // names beside Info.Name
	// Extension is the name of the extension that the type is of: its name means it where the extension is installed. "": it is PostgreSQL's.
	Extension string
	// Parse reads the text form. It applies the modifier as an assignment would.
	Parse func(s string, mod int32, f *Format) (Datum, error)
	// Append appends the text form.
	Append func(dst []byte, d Datum, f *Format) []byte
	// Receive reads the binary form; nil: the type has none.
	Receive func(b []byte, mod int32, f *Format) (Datum, error)
	// Send appends the binary form; nil: the type has none.
	Send func(dst []byte, d Datum) []byte
	// ModIn encodes written modifiers, ModOut prints the type with one; nil: the type has no modifiers.
	ModIn  func(mods []int) (int32, error)
	ModOut func(mod int32) string
	// Limit applies a modifier; nil: it changes nothing.
	Limit func(d Datum, mod int32, explicit bool) (Datum, error)
	// Unordered types have no order; those without equality cannot be grouped either.
	Unordered, NoEquality bool
	// Borrows names the type whose operators compare the values, if that is another one.
	Borrows OID
	// MinMax: min and max are defined.
	MinMax bool
	// SessionInput: a text may read differently in different sessions. SessionOutput: a value may print differently.
	SessionInput, SessionOutput bool
}

// registered are the methods of the types that have a file of their own.
var registered = map[OID]*Methods{}

// register adds a type. It is called when the package is initialised.
func register(m *Methods) {
	registered[m.OID] = m
	addInfo(infos, &m.Info)
	if m.Extension != "" {
		extensionTypes[m.Name] = m.OID
		return
	}
	scalarInfos = append(scalarInfos, m.Info)
	for _, name := range append(m.Aliases, m.Name) {
		names[name] = m.OID
	}
	if m.Array != 0 {
		names["_"+m.Name] = m.Array
	}
}

// The OIDs of extensions' types and functions. PostgreSQL numbers them as what users create, from FirstUserOID on, as CREATE EXTENSION
// meets them; here they are fixed, in a range that a database's own objects do not reach.
const (
	FirstExtensionOID OID = 2_000_000_000
	LastExtensionOID  OID = 2_000_099_999
)

// extensionTypes are the types of extensions by name.
var extensionTypes = map[string]OID{}

// OfExtension returns the type with a name, or with arrays of it ("_hstore"), that an extension has; the zero Type if there is none.
func OfExtension(extension, name string) Type {
	name, isArray := strings.CutPrefix(name, "_")
	t := Type{OID: extensionTypes[name], Mod: -1}
	switch m := t.Methods(); {
	case m == nil || m.Extension != extension:
		return Type{}
	case isArray:
		return t.ArrayOf()
	}
	return t
}

// InExtensions returns the type with a name that any extension has; the zero Type if there is none.
func InExtensions(name string) Type {
	t := Type{OID: extensionTypes[name], Mod: -1}
	if t.OID == 0 {
		return Type{}
	}
	return t
}

// Methods returns the methods of a type that has a file of its own, nil for others.
func (t Type) Methods() *Methods { return registered[t.OID] }

// receive reads the binary form of a type with methods.
func (m *Methods) receive(b []byte, mod int32, f *Format) (Datum, error) {
	if m.Receive == nil {
		return Null, pgerror.New(pgerror.UndefinedFunction, "no binary input function available for type %s", m.SQLName)
	}
	if f == nil {
		f = &defaultFormat
	}
	return m.Receive(b, mod, f)
}

// errShortMessage is the error for a binary form that ends early.
func errShortMessage() error {
	return pgerror.New(pgerror.ProtocolViolation, "insufficient data left in message")
}

// receiveFixed returns a Receive for a binary form of n bytes that is the datum.
func receiveFixed(n int) func([]byte, int32, *Format) (Datum, error) {
	return func(b []byte, _ int32, _ *Format) (Datum, error) {
		if err := requireSize(b, n); err != nil {
			return Null, err
		}
		return Bytes(b), nil
	}
}

// requireSize checks the size of a binary form.
func requireSize(b []byte, n int) error {
	switch {
	case len(b) < n:
		return errShortMessage()
	case len(b) > n:
		return badBinary("incorrect binary data format")
	}
	return nil
}

// sendBytes is Send for a datum that is its binary form.
func sendBytes(dst []byte, d Datum) []byte { return append(dst, d.Bytes()...) }
