package catalog

import (
	"context"
	"slices"

	"github.com/percodb/percodb/sql/types"
)

// OpFamilyDescriptor is an operator family that a user has defined, or what users have added to one of PostgreSQL's own, which has that one's OID,
// as of one schema change. Immutable once published.
type OpFamilyDescriptor struct {
	ID     uint64 // the OID
	Method string
	Schema string
	Name   string
	Owned
	Operators []FamilyOperator `json:",omitempty"`
	Functions []FamilyFunction `json:",omitempty"`
	Comment   string           `json:",omitempty"`
}

// FamilyOperator is a member of an operator family: a row of pg_amop.
type FamilyOperator struct {
	OID         uint32
	Left, Right types.OID
	Strategy    int
	Operator    types.OID
	// SortFamily is the family by which FOR ORDER BY orders, 0: FOR SEARCH.
	SortFamily types.OID `json:",omitempty"`
	// Class is the operator class to which it belongs; 0: to the family alone.
	Class uint32 `json:",omitempty"`
}

// FamilyFunction is a support function of an operator family: a row of pg_amproc.
type FamilyFunction struct {
	OID         uint32
	Left, Right types.OID
	Number      int
	Function    types.OID
	Class       uint32 `json:",omitempty"` // as of FamilyOperator
}

// OpClassDescriptor is an operator class that a user has defined, as of one schema change. Its members are those of its family that name it.
// Immutable once published.
type OpClassDescriptor struct {
	ID     uint64 // the OID
	Method string
	Schema string
	Name   string
	Owned
	Family  types.OID // which may be one of PostgreSQL's own
	Type    types.Type
	Default bool       `json:",omitempty"`
	Key     types.Type `json:",omitzero"` // STORAGE, the zero Type: that of the values
	Comment string     `json:",omitempty"`
}

// OID returns the family's number.
func (d *OpFamilyDescriptor) OID() types.OID { return types.OID(d.ID) }

// Added reports whether the descriptor contains what users have added to a family of PostgreSQL.
func (d *OpFamilyDescriptor) Added() bool { return d.OID() < types.FirstUserOID }

// Clone returns a copy that may be changed.
func (d *OpFamilyDescriptor) Clone() *OpFamilyDescriptor {
	c := *d
	c.Operators, c.Functions = slices.Clone(d.Operators), slices.Clone(d.Functions)
	return &c
}

// OID returns the class's number.
func (d *OpClassDescriptor) OID() types.OID { return types.OID(d.ID) }

// Clone returns a copy that may be changed.
func (d *OpClassDescriptor) Clone() *OpClassDescriptor {
	c := *d
	return &c
}

// Families lists the operator families by OID.
func (o *Operations) Families() []*OpFamilyDescriptor { return o.families }

// Family returns the operator family with an OID, nil if there is none.
func (o *Operations) Family(oid types.OID) *OpFamilyDescriptor {
	return byID(o.families, oid, func(d *OpFamilyDescriptor) uint64 { return d.ID })
}

// FindFamily returns the operator family of a schema with a method and a name, nil if there is none.
func (o *Operations) FindFamily(schema, method, name string) *OpFamilyDescriptor {
	for _, d := range o.families {
		if d.Schema == schema && d.Method == method && d.Name == name && !d.Added() {
			return d
		}
	}
	return nil
}

// Classes lists the operator classes by OID.
func (o *Operations) Classes() []*OpClassDescriptor { return o.classes }

// Class returns the operator class with an OID, nil if there is none.
func (o *Operations) Class(oid types.OID) *OpClassDescriptor {
	return byID(o.classes, oid, func(d *OpClassDescriptor) uint64 { return d.ID })
}

// FindClass returns the operator class of a schema with a method and a name, nil if there is none.
func (o *Operations) FindClass(schema, method, name string) *OpClassDescriptor {
	for _, d := range o.classes {
		if d.Schema == schema && d.Method == method && d.Name == name {
			return d
		}
	}
	return nil
}

// HashFunction returns the function that hashes values of a hash class with a seed, 0 if the class has none.
func (o *Operations) HashFunction(class types.OID) types.OID { return o.classFunction(class, 2) }

// CompareFunction returns the function that compares values of a btree class, 0 if the class has none.
func (o *Operations) CompareFunction(class types.OID) types.OID { return o.classFunction(class, 1) }

func (o *Operations) classFunction(class types.OID, number int) types.OID {
	d := o.Class(class)
	if d == nil {
		return 0
	}
	f := o.Family(d.Family)
	if f == nil {
		return 0
	}
	for _, m := range f.Functions {
		if m.Number == number && m.Left == d.Type.OID && m.Right == d.Type.OID {
			return m.Function
		}
	}
	return 0
}

// PutOpFamily adds an operator family, or replaces the one with its ID.
func (ch *Change) PutOpFamily(ctx context.Context, d *OpFamilyDescriptor) error {
	return ch.putOperation(ctx, wordOpFamily, d.ID, d)
}

// DropOpFamily removes an operator family, which nothing may use any more.
func (ch *Change) DropOpFamily(ctx context.Context, d *OpFamilyDescriptor) error {
	return ch.dropOperation(ctx, wordOpFamily, d.ID)
}

// PutOpClass adds an operator class, or replaces the one with its ID.
func (ch *Change) PutOpClass(ctx context.Context, d *OpClassDescriptor) error {
	return ch.putOperation(ctx, wordOpClass, d.ID, d)
}

// DropOpClass removes an operator class, which nothing may use any more.
func (ch *Change) DropOpClass(ctx context.Context, d *OpClassDescriptor) error {
	return ch.dropOperation(ctx, wordOpClass, d.ID)
}
