package catalog

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// OperatorDescriptor is an operator that a user has defined, as of one schema change. Immutable once published.
type OperatorDescriptor struct {
	ID     uint64 // the OID
	Schema string
	Name   string
	Owned
	Left  types.Type `json:",omitzero"` // the zero Type: it is a prefix operator
	Right types.Type
	// Ret and Function, an OID, are what evaluates it. Function is 0 of a shell: an operator that another one has named and that is to be defined.
	Ret      types.Type `json:",omitzero"`
	Function types.OID  `json:",omitempty"`
	// The OIDs of operators and functions, 0 for none.
	Commutator types.OID `json:",omitempty"`
	Negator    types.OID `json:",omitempty"`
	Restrict   types.OID `json:",omitempty"`
	Join       types.OID `json:",omitempty"`
	Merges     bool      `json:",omitempty"`
	Hashes     bool      `json:",omitempty"`
	Comment    string    `json:",omitempty"`

	operator *builtin.Operator
}

// Operator returns the operator as binding sees it, nil for a shell. The descriptor must be one of a Resolver.
func (d *OperatorDescriptor) Operator() *builtin.Operator { return d.operator }

// OID returns the operator's number.
func (d *OperatorDescriptor) OID() types.OID { return types.OID(d.ID) }

// Shell reports whether the operator is only named by others.
func (d *OperatorDescriptor) Shell() bool { return d.Function == 0 }

// Clone returns a copy that may be changed.
func (d *OperatorDescriptor) Clone() *OperatorDescriptor {
	c := *d
	c.operator = nil
	return &c
}

// complete sets what is computed.
func (d *OperatorDescriptor) complete(all *Types, routines *Routines) {
	d.Left, d.Right, d.Ret = all.Complete(d.Left), all.Complete(d.Right), all.Complete(d.Ret)
	if d.Shell() {
		return
	}
	o := builtin.Operator{OID: d.OID(), Schema: d.Schema, Name: d.Name, Left: d.Left, Right: d.Right, Ret: d.Ret}
	if r := routines.ByOID(d.Function); r != nil {
		o.Routine = r.Routine()
	} else if o.System = builtin.OverloadByOID(d.Function); o.System == nil {
		return // A function of an extension that this version does not have.
	}
	d.operator = builtin.NewOperator(o)
}

// CastDescriptor is a cast that a user has defined, as of one schema change. Immutable once published.
type CastDescriptor struct {
	ID       uint64 // the OID
	From, To types.Type
	Context  builtin.CastContext
	// Method is as in pg_cast.castmethod: f by Function, an OID, i through the text form, b the value is the same.
	Method   byte
	Function types.OID `json:",omitempty"`
	Comment  string    `json:",omitempty"`
}

// OID returns the cast's number.
func (d *CastDescriptor) OID() types.OID { return types.OID(d.ID) }

// cast returns the cast as binding sees it; nil if its function is unknown.
func (d *CastDescriptor) cast(routines *Routines) *builtin.UserCast {
	u := &builtin.UserCast{OID: d.OID(), From: d.From, To: d.To, Context: d.Context, Method: d.Method}
	if d.Method != 'f' {
		return u
	}
	if r := routines.ByOID(d.Function); r != nil {
		u.Routine = r.Routine()
	} else if u.System = builtin.OverloadByOID(d.Function); u.System == nil {
		return nil
	}
	return u
}

// Operations are the operators, casts, operator classes and families that users have defined, as of one schema version. Immutable; safe for
// concurrent use.
type Operations struct {
	operators []*OperatorDescriptor // each list by OID
	casts     []*CastDescriptor
	families  []*OpFamilyDescriptor
	classes   []*OpClassDescriptor
	byName    map[string][]*OperatorDescriptor
	usable    *builtin.Casts
	stored    []byte // the records that they were read from
	types     *Types // that they were made with
	routines  *Routines
}

// Operators lists the operators by OID.
func (o *Operations) Operators() []*OperatorDescriptor { return o.operators }

// Named lists the operators with a symbol in all schemas, shells among them. The slice must not be changed.
func (o *Operations) Named(symbol string) []*OperatorDescriptor { return o.byName[symbol] }

// Operator returns the operator with an OID, nil if there is none.
func (o *Operations) Operator(oid types.OID) *OperatorDescriptor {
	return byID(o.operators, oid, func(d *OperatorDescriptor) uint64 { return d.ID })
}

// FindOperator returns the operator of a schema with a symbol and operands, nil if there is none. left is the zero Type for a prefix operator.
func (o *Operations) FindOperator(schema, symbol string, left, right types.Type) *OperatorDescriptor {
	for _, d := range o.byName[symbol] {
		if d.Schema == schema && d.Left.OID == left.OID && d.Right.OID == right.OID {
			return d
		}
	}
	return nil
}

// AllCasts lists the casts by OID.
func (o *Operations) AllCasts() []*CastDescriptor { return o.casts }

// Cast returns the cast with an OID, nil if there is none.
func (o *Operations) Cast(oid types.OID) *CastDescriptor {
	return byID(o.casts, oid, func(d *CastDescriptor) uint64 { return d.ID })
}

// FindCast returns the cast between two types, nil if there is none.
func (o *Operations) FindCast(from, to types.Type) *CastDescriptor {
	for _, d := range o.casts {
		if d.From.OID == from.OID && d.To.OID == to.OID {
			return d
		}
	}
	return nil
}

// Casts returns the casts as binding sees them; nil if there are none.
func (o *Operations) Casts() *builtin.Casts { return o.usable }

// Same reports whether two versions of the schema have the same operators, casts, classes and families.
func (o *Operations) Same(other *Operations) bool {
	return o == other || o != nil && other != nil && bytes.Equal(o.stored, other.stored)
}

// byID finds the object with an OID in a list by OID; nil if there is none.
func byID[T any](list []*T, oid types.OID, id func(*T) uint64) *T {
	i, ok := slices.BinarySearchFunc(list, uint64(oid), func(d *T, want uint64) int { return cmp.Compare(id(d), want) })
	if !ok {
		return nil
	}
	return list[i]
}

// loadOperations reads the operators, casts, classes and families. They are those of last if no record, no type and no routine has changed.
func loadOperations(ctx context.Context, r rowReader, of space, all *Types, routines *Routines, last *schemaSnapshot) (*Operations, error) {
	o := &Operations{byName: map[string][]*OperatorDescriptor{}, types: all, routines: routines}
	if err := loadWord(ctx, r, of, wordOperator, &o.operators, &o.stored); err != nil {
		return nil, err
	}
	if err := loadWord(ctx, r, of, wordCast, &o.casts, &o.stored); err != nil {
		return nil, err
	}
	if err := loadWord(ctx, r, of, wordOpFamily, &o.families, &o.stored); err != nil {
		return nil, err
	}
	if err := loadWord(ctx, r, of, wordOpClass, &o.classes, &o.stored); err != nil {
		return nil, err
	}
	if last != nil && last.operations.Same(o) && (len(o.stored) == 0 || last.operations.types == all && last.operations.routines == routines) {
		return last.operations, nil
	}
	for _, d := range o.operators {
		d.complete(all, routines)
		o.byName[d.Name] = append(o.byName[d.Name], d)
	}
	var usable []*builtin.UserCast
	for _, d := range o.casts {
		d.From, d.To = all.Complete(d.From), all.Complete(d.To)
		if u := d.cast(routines); u != nil {
			usable = append(usable, u)
		}
	}
	o.usable = builtin.NewCasts(usable)
	for _, d := range o.classes {
		d.Type = all.Complete(d.Type)
	}
	return o, nil
}

// loadWord reads all records under a word, and appends them to stored.
func loadWord[T any](ctx context.Context, r rowReader, of space, word string, list *[]*T, stored *[]byte) error {
	return scanSpan(ctx, r, of.span(word), func(key, value []byte) error {
		d := new(T)
		if err := decode(key, value, d); err != nil {
			return err
		}
		*list = append(*list, d)
		*stored = append(append(*stored, value...), '\n')
		return nil
	})
}

// put writes the record of an operator, a cast, a class or a family.
func (ch *Change) putOperation(ctx context.Context, word string, id uint64, d any) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.operations = true
	return ch.txn.Put(ch.space().idKey(word, id), encode(d))
}

func (ch *Change) dropOperation(ctx context.Context, word string, id uint64) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.operations = true
	return ch.txn.Delete(ch.space().idKey(word, id))
}

// PutOperator adds an operator, or replaces the one with its ID.
func (ch *Change) PutOperator(ctx context.Context, d *OperatorDescriptor) error {
	return ch.putOperation(ctx, wordOperator, d.ID, d)
}

// DropOperator removes an operator, which nothing may use any more.
func (ch *Change) DropOperator(ctx context.Context, d *OperatorDescriptor) error {
	return ch.dropOperation(ctx, wordOperator, d.ID)
}

// PutCast adds a cast, or replaces the one with its ID.
func (ch *Change) PutCast(ctx context.Context, d *CastDescriptor) error {
	return ch.putOperation(ctx, wordCast, d.ID, d)
}

// DropCast removes a cast, which nothing may use any more.
func (ch *Change) DropCast(ctx context.Context, d *CastDescriptor) error {
	return ch.dropOperation(ctx, wordCast, d.ID)
}

// owned calls f with the owner of each operator, class and family.
func (o *Operations) owned(f func(*Owned)) {
	for _, d := range o.operators {
		f(&d.Owned)
	}
	for _, d := range o.families {
		f(&d.Owned)
	}
	for _, d := range o.classes {
		f(&d.Owned)
	}
}

// UserOperators returns the operators of users that a symbol may mean: those of a schema, "" for the search path of r.
func UserOperators(r Resolver, schema, symbol string) []builtin.UserOperator {
	named := r.Operations().Named(symbol)
	if len(named) == 0 {
		return nil
	}
	path := []string{schema}
	if schema == "" {
		if path = Path(r); Stored(r) {
			return nil // What is stored names such operators with their schemas.
		}
	}
	var found []builtin.UserOperator
	system := slices.Index(path, SystemSchema)
	for i, s := range path {
		for _, d := range named {
			if d.Schema == s && d.operator != nil {
				found = append(found, builtin.UserOperator{Operator: d.operator, Place: i, System: system})
			}
		}
	}
	return found
}
