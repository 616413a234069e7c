package catalog

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/percolator"
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

// define makes def, and that of the types on which it depends.
func (d *TypeDescriptor) define(all *Types) {
	if d.def != nil {
		return
	}
	if below := all.byOID[d.Parent.OID]; below != nil {
		below.define(all)
	}
	if d.def != nil {
		return // A range type has defined its multirange type.
	}
	fields := slices.Clone(d.Fields)
	for i := range fields {
		if of := all.byOID[fields[i].Type.OID]; of != nil {
			of.define(all)
		}
		fields[i].Type = all.Complete(fields[i].Type)
	}
	d.def = types.NewDefined(&types.Defined{
		OID: types.OID(d.ID), Array: types.OID(d.ArrayID), Kind: d.Kind, Version: d.Version,
		Schema: d.Schema, Name: d.Name, ArrayName: d.ArrayName, Labels: d.Labels,
		Parent: all.Complete(d.Parent), Default: d.Default, NotNull: d.NotNull, Checks: d.Checks,
		Fields: fields,
	})
	if multi := all.byOID[types.OID(d.MultirangeID)]; d.Kind == types.RangeKind && multi != nil {
		multi.def = types.NewDefined(&types.Defined{
			OID: types.OID(multi.ID), Array: types.OID(multi.ArrayID), Kind: multi.Kind, Version: multi.Version,
			Schema: multi.Schema, Name: multi.Name, ArrayName: multi.ArrayName,
		})
		types.PairRanges(d.def, multi.def, all.Complete(d.Parent))
	}
}

// Types are the user-defined types and collations as of one schema version. Immutable; safe for concurrent use.
type Types struct {
	list   []*TypeDescriptor // by schema and name
	byOID  map[types.OID]*TypeDescriptor
	byName map[qualifiedName]types.Type
	stored []byte // the records that they were read from

	collations       []*CollationDescriptor // by OID
	storedCollations []byte
}

// NewTypes returns no types.
func NewTypes() *Types {
	return &Types{byOID: map[types.OID]*TypeDescriptor{}, byName: map[qualifiedName]types.Type{}}
}

// All lists the types by schema and name.
func (t *Types) All() []*TypeDescriptor { return t.list }

// ByOID returns the type with the OID, or whose array type has it; nil if there is none.
func (t *Types) ByOID(oid types.OID) *TypeDescriptor { return t.byOID[oid] }

// Named returns the type of a name in a schema, which may be an array type; the zero Type if there is none.
func (t *Types) Named(schema, name string) types.Type { return t.byName[qualifiedName{schema, name}] }

// Complete returns typ, which may have been stored or sent by a client, with its definition.
func (t *Types) Complete(typ types.Type) types.Type {
	if typ.Coll != nil {
		typ.Coll = t.collation(typ.Coll)
	}
	if d := t.byOID[typ.OID]; typ.OID >= types.FirstUserOID && d != nil {
		typ.Def = d.def
	}
	return typ
}

// complete returns a relation whose columns' types have their definitions: r itself if they are right already.
func (t *Types) complete(r *TableDescriptor) *TableDescriptor {
	changed := r
	for i := range r.Columns {
		typ := r.Columns[i].Type
		if typ.OID < types.FirstUserOID && typ.Coll == nil {
			continue
		}
		if want := t.Complete(typ); want != typ {
			if changed == r {
				changed = r.Clone()
			}
			changed.Columns[i].Type = want
		}
	}
	return t.completeIndexes(r, changed)
}

// sameDefinitions reports whether two schemas' types differ in nothing but owners and privileges.
func (t *Types) sameDefinitions(other *Types) bool {
	if len(t.list) != len(other.list) {
		return false
	}
	for _, d := range t.list {
		if o := other.byOID[types.OID(d.ID)]; o == nil || !d.sameDefinition(o) {
			return false
		}
	}
	return true
}

// FindType looks up a type of a user or an extension by name; schema "" searches the resolver's path. The zero Type: there is none.
func FindType(r Resolver, schema, name string) types.Type {
	all, extensions := r.Types(), r.Extensions()
	path := []string{schema}
	switch {
	case schema != "":
	case len(all.list) == 0 && len(extensions.list) == 1:
		return types.Type{}
	default:
		path = Path(r)
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

// loadTypes reads the user-defined types. They are those of last if nothing has changed.
func loadTypes(ctx context.Context, r percolator.Reader, last *schemaSnapshot) (*Types, error) {
	var stored []byte
	var ends []int
	err := scan(ctx, r, wordType, func(_, value []byte) error {
		stored = append(append(stored, value...), '\n')
		ends = append(ends, len(stored))
		return nil
	})
	if err != nil {
		return nil, err
	}
	all, start := NewTypes(), 0
	if err := all.loadCollations(ctx, r); err != nil {
		return nil, err
	}
	if last != nil && bytes.Equal(last.types.stored, stored) && bytes.Equal(last.types.storedCollations, all.storedCollations) {
		return last.types, nil
	}
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
	for _, d := range all.list {
		d.define(all)
		all.byName[qualifiedName{d.Schema, d.Name}], all.byName[qualifiedName{d.Schema, d.ArrayName}] = d.def.Type(), d.def.ArrayType()
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
	d := all.byOID[t.OID]
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
	return ch.txn.Put(idKey(wordType, d.ID), encode(d))
}

// DropType removes a type, which nothing may use any more.
func (ch *Change) DropType(ctx context.Context, d *TypeDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.typ(d.ID)
	return ch.txn.Delete(idKey(wordType, d.ID))
}

// Made reports whether the guarded transaction itself has given the schema a version.
func (g *Guard) Made(version uint64) bool {
	return g.change != nil && slices.Contains(g.change.versions, version)
}
