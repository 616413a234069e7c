package catalog

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/types"
)

// TypeDescriptor is a user-defined type as of one schema change. Immutable once published.
type TypeDescriptor struct {
	ID      uint64 // the OID of the type
	ArrayID uint64 // the OID of its array type
	Version uint64 // the schema version that last changed it
	Kind    types.DefinedKind
	Schema  string
	Name    string
	// ArrayName is the name of its array type, which is in the same schema.
	ArrayName string
	Owned
	Labels []types.EnumLabel `json:",omitempty"` // of an enum, in order
	// Parent is what a domain is declared over, the type of a range type's bounds, and a multirange type's range type.
	Parent types.Type `json:",omitzero"`
	// Of a domain: the text of its default, its own constraints.
	Default string              `json:",omitempty"`
	NotNull bool                `json:",omitempty"`
	Checks  []types.DomainCheck `json:",omitempty"` // by name
	// Of a composite type: its attributes by ID, the next ID, and its number in pg_class.
	Fields     []types.Field `json:",omitempty"`
	NextField  uint32        `json:",omitempty"`
	RelationID uint64        `json:",omitempty"`
	// Of a range type: its multirange type, and the name of the function for the difference of two bounds, which is not used.
	MultirangeID uint64 `json:",omitempty"`
	Difference   string `json:",omitempty"`
	Comment      string `json:",omitempty"`
	// Relation is the relation whose row type it is. Such a descriptor is computed, not stored; it has no privileges of its own.
	Relation *TableDescriptor `json:"-"`

	def *types.Defined
}

// Type returns the type as the schema has it. The descriptor must be one of a Resolver.
func (d *TypeDescriptor) Type() types.Type { return d.def.Type() }

// Defined returns what values of the type need of it. The descriptor must be one of a Resolver.
func (d *TypeDescriptor) Defined() *types.Defined { return d.def }

// Clone returns a copy that may be changed.
func (d *TypeDescriptor) Clone() *TypeDescriptor {
	c := *d
	c.Labels = slices.Clone(d.Labels)
	c.Checks = slices.Clone(d.Checks)
	c.Fields = slices.Clone(d.Fields)
	return &c
}

// EffectiveACL returns the type's privileges, those by default included.
func (d *TypeDescriptor) EffectiveACL() acl.List { return d.ACL.Or(acl.Type, d.OwnerOID()) }

// sameDefinition reports whether two versions of a type differ in nothing but owner and privileges.
func (d *TypeDescriptor) sameDefinition(other *TypeDescriptor) bool {
	if d.Version == other.Version {
		return true
	}
	other = other.Clone()
	other.Version, other.Owned = d.Version, d.Owned
	return bytes.Equal(encode(d), encode(other))
}

// hasPrivilegesOf reports whether two versions of a type have the same owner and privileges.
func (d *TypeDescriptor) hasPrivilegesOf(other *TypeDescriptor) bool {
	return bytes.Equal(encode(&d.Owned), encode(&other.Owned))
}

// Types are the types of a schema that are not PostgreSQL's own, as of one version: those that users have defined, and the row types of
// the relations. Immutable; safe for concurrent use.
type Types struct {
	*definedTypes
	rows *rowTypes // nil: none
}

// definedTypes are those that users have defined. Immutable once they are linked (linker).
type definedTypes struct {
	list   []*TypeDescriptor // by schema and name
	byOID  map[types.OID]*TypeDescriptor
	byName map[qualifiedName]types.Type
	stored []byte // the records that they were read from
	// over are the relations whose row types are within them.
	over []uint64
}

// NewTypes returns no types.
func NewTypes() *Types {
	return &Types{definedTypes: &definedTypes{byOID: map[types.OID]*TypeDescriptor{}, byName: map[qualifiedName]types.Type{}}}
}

// All lists the types that users have defined by schema and name. Row types are not among them.
func (t *Types) All() []*TypeDescriptor { return t.list }

// ByOID returns the type with the OID, or whose array type has it; nil if there is none. That of a row type has a Relation.
func (t *Types) ByOID(oid types.OID) *TypeDescriptor {
	if d := t.byOID[oid]; d != nil {
		return d
	}
	return t.rows.byOID(oid)
}

// Named returns the type of a name in a schema, which may be an array type; the zero Type if there is none.
func (t *Types) Named(schema, name string) types.Type {
	if typ := t.byName[qualifiedName{schema, name}]; typ.Valid() {
		return typ
	}
	return t.rows.named(t.definedTypes, schema, name)
}

// Complete returns typ, which may have been stored or sent by a client, with its definition.
func (t *Types) Complete(typ types.Type) types.Type {
	if typ.OID < types.FirstUserOID {
		return typ
	}
	if d := t.ByOID(typ.OID); d != nil {
		typ.Def = d.def
	}
	return typ
}

// keptIn reports whether other has all types of t, which differ in nothing but owners and privileges.
func (t *Types) keptIn(other *Types) bool {
	for _, d := range t.list {
		if o := other.byOID[types.OID(d.ID)]; o == nil || !d.sameDefinition(o) {
			return false
		}
	}
	return true
}

// FindType looks up a type of a user or an extension, or a row type, by name; schema "" searches the resolver's path. The zero Type: there
// is none.
func FindType(r Resolver, schema, name string) types.Type {
	all, extensions := r.Types(), r.Extensions()
	path := []string{schema}
	if schema == "" {
		if path = Path(r); !slices.Contains(path, TemporarySchema) {
			if t := all.Named(TemporarySchema, name); t.Valid() {
				return t
			}
		}
	}
	for _, schema := range path {
		if t := all.Named(schema, name); t.Valid() {
			return t
		}
		if t := extensions.typeNamed(schema, name); t.Valid() {
			return t
		}
	}
	return types.Type{}
}

// readTypes reads the user-defined types, which the linker completes. They are those of last if no record has changed.
func readTypes(ctx context.Context, r rowReader, of space, last *schemaSnapshot) (*definedTypes, error) {
	var stored []byte
	var ends []int
	err := scanSpan(ctx, r, of.span(wordType), func(_, value []byte) error {
		stored = append(append(stored, value...), '\n')
		ends = append(ends, len(stored))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if last != nil && bytes.Equal(last.types.stored, stored) {
		return last.types.definedTypes, nil
	}
	return decodeTypes(stored, ends)
}

// again returns the types of the same records, without definitions.
func (t *definedTypes) again() (*definedTypes, error) {
	var ends []int
	for i, c := range t.stored {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	return decodeTypes(t.stored, ends)
}

func decodeTypes(stored []byte, ends []int) (*definedTypes, error) {
	all, start := NewTypes().definedTypes, 0
	all.stored = stored
	for _, end := range ends {
		d := new(TypeDescriptor)
		if err := decode(wordSpan(wordType).Start, stored[start:end], d); err != nil {
			return nil, err
		}
		start = end
		all.list = append(all.list, d)
		all.byOID[types.OID(d.ID)], all.byOID[types.OID(d.ArrayID)] = d, d
	}
	slices.SortFunc(all.list, func(a, b *TypeDescriptor) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// TypeACL returns the privileges on one of the types, which may be PostgreSQL's, those by default included, and its owner. Those on an array
// type are its elements'.
func (g *Grants) TypeACL(all *Types, t types.Type) (list acl.List, owner uint32) {
	if elem := t.Elem(); elem.Valid() {
		t = elem
	}
	if t.OID < types.FirstUserOID {
		return g.EffectiveObjectACL(acl.Type, t.Info().Name), BootstrapSuperuser
	}
	d := all.ByOID(t.OID)
	if d == nil {
		return nil, BootstrapSuperuser // It has been dropped.
	}
	return d.EffectiveACL(), d.OwnerOID()
}

// Type returns which of the privileges the role has on one of the types.
func (a *Access) Type(all *Types, t types.Type, want acl.Privileges) acl.Privileges {
	list, owner := a.Grants.TypeACL(all, t)
	return a.has(list, owner, want, false)
}

// AddedNow is the EnumLabel.Added of a label that PutType is about to add.
const AddedNow = math.MaxUint64

// PutType adds a type, or replaces the one with its ID, and sets its Version.
func (ch *Change) PutType(ctx context.Context, d *TypeDescriptor) (err error) {
	if d.Version, err = ch.bump(ctx); err != nil {
		return err
	}
	for i := range d.Labels {
		if d.Labels[i].Added == AddedNow {
			d.Labels[i].Added = d.Version
		}
	}
	ch.wrote.typ(d.ID)
	return ch.txn.Put(ch.space().idKey(wordType, d.ID), encode(d))
}

// DropType removes a type, which nothing may use any more.
func (ch *Change) DropType(ctx context.Context, d *TypeDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.typ(d.ID)
	return ch.txn.Delete(ch.space().idKey(wordType, d.ID))
}

// Made reports whether the guarded transaction itself has given the schema a version.
func (g *Guard) Made(version uint64) bool {
	return g.change != nil && slices.Contains(g.change.versions, version)
}
