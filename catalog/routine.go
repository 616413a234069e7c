package catalog

import (
	"bytes"
	"cmp"
	"context"
	"hash/fnv"
	"slices"

	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// RoutineDescriptor is a function, a procedure or an aggregate that a user has defined, as of one schema change. Immutable once published.
type RoutineDescriptor struct {
	ID      uint64 // the OID
	Version uint64 // the schema version that last changed it
	Kind    builtin.RoutineKind
	Schema  string
	Name    string
	Owned
	Params []builtin.RoutineParam `json:",omitempty"`
	// Ret is the type of the result: record for several OUT parameters, void for a procedure without any.
	Ret      types.Type
	Set      bool   `json:",omitempty"` // it returns a set
	Language string // lower case
	// Body is the text between the quotes of AS. Of a body in SQL's standard form it is that, with the names qualified as of creation.
	Body string
	// Standard: Body is RETURN … or BEGIN ATOMIC … END.
	Standard        bool               `json:",omitempty"`
	Volatility      builtin.Volatility `json:",omitempty"`
	Strict          bool               `json:",omitempty"`
	Leakproof       bool               `json:",omitempty"`
	SecurityDefiner bool               `json:",omitempty"`
	// Parallel is as in pg_proc.proparallel: s, r or u.
	Parallel byte
	Cost     float64
	Rows     float64 `json:",omitempty"` // of a set, the estimated number
	// Config are the settings in force while it runs: "name=value", as in pg_proc.proconfig.
	Config    []string             `json:",omitempty"`
	Aggregate *AggregateDescriptor `json:",omitempty"`
	Comment   string               `json:",omitempty"`

	routine *builtin.Routine
}

// AggregateDescriptor is what an aggregate has in addition to other routines: the functions that compute it.
type AggregateDescriptor struct {
	// The functions are named by their OIDs, 0 for none.
	Transition  types.OID
	Final       types.OID  `json:",omitempty"`
	Combine     types.OID  `json:",omitempty"`
	State       types.Type // the type of the state
	Initial     *string    `json:",omitempty"` // its text, nil for NULL
	FinalExtra  bool       `json:",omitempty"`
	FinalModify byte       // r, s or w as in pg_aggregate.aggfinalmodify
	SortOp      types.OID  `json:",omitempty"`
	Space       int32      `json:",omitempty"`
}

// Routine returns the routine as binding and execution see it. The descriptor must be one of a Resolver.
func (d *RoutineDescriptor) Routine() *builtin.Routine { return d.routine }

// OID returns the routine's number.
func (d *RoutineDescriptor) OID() types.OID { return types.OID(d.ID) }

// Clone returns a copy that may be changed.
func (d *RoutineDescriptor) Clone() *RoutineDescriptor {
	c := *d
	c.Params, c.Config = slices.Clone(d.Params), slices.Clone(d.Config)
	if d.Aggregate != nil {
		a := *d.Aggregate
		c.Aggregate = &a
	}
	c.routine = nil
	return &c
}

// InputTypes returns the types of the arguments that calls have.
func (d *RoutineDescriptor) InputTypes() []types.Type {
	return (&builtin.Routine{Params: d.Params}).InputTypes()
}

// EffectiveACL returns the routine's privileges, those by default included.
func (d *RoutineDescriptor) EffectiveACL() acl.List { return d.ACL.Or(acl.Function, d.OwnerOID()) }

// Routine returns which of the privileges the role has on a routine.
func (a *Access) Routine(d *RoutineDescriptor, want acl.Privileges) acl.Privileges {
	return a.has(d.EffectiveACL(), d.OwnerOID(), want, false)
}

// complete returns the descriptor with the definitions of its types; d itself if it has them.
func (d *RoutineDescriptor) complete(all *Types) *RoutineDescriptor {
	params, ret := slices.Clone(d.Params), all.Complete(d.Ret)
	for i := range params {
		params[i].Type = all.Complete(params[i].Type)
	}
	state := types.Type{}
	if d.Aggregate != nil {
		state = all.Complete(d.Aggregate.State)
	}
	if d.routine != nil && ret == d.Ret && slices.Equal(params, d.Params) && (d.Aggregate == nil || state == d.Aggregate.State) {
		return d
	}
	c := d.Clone()
	c.Params, c.Ret = params, ret
	if c.Aggregate != nil {
		c.Aggregate.State = state
	}
	c.routine = builtin.NewRoutine(builtin.Routine{
		OID: types.OID(c.ID), Version: c.Version, Kind: c.Kind, Schema: c.Schema, Name: c.Name, Params: c.Params, Ret: c.Ret, Set: c.Set,
		Language: c.Language, Volatility: c.Volatility, Strict: c.Strict, Leakproof: c.Leakproof, Parallel: c.Parallel,
		Cost: c.Cost, Rows: c.Rows,
	})
	return c
}

// sameDefinition reports whether two versions of a routine differ in nothing but owner and privileges.
func (d *RoutineDescriptor) sameDefinition(other *RoutineDescriptor) bool {
	if d.Version == other.Version {
		return true
	}
	other = other.Clone()
	other.Version, other.Owned = d.Version, d.Owned
	return bytes.Equal(encode(d), encode(other))
}

// hasPrivilegesOf reports whether two versions of a routine have the same owner and privileges.
func (d *RoutineDescriptor) hasPrivilegesOf(other *RoutineDescriptor) bool {
	return bytes.Equal(encode(&d.Owned), encode(&other.Owned))
}

// Routines are the routines that users have defined, as of one schema version. Immutable; safe for concurrent use.
type Routines struct {
	list    []*RoutineDescriptor // by OID
	byOID   map[types.OID]*RoutineDescriptor
	byName  map[string][]*RoutineDescriptor
	stored  []byte // the records that they were read from
	version uint64 // a hash of stored, 0 for none
}

// NewRoutines returns no routines.
func NewRoutines() *Routines { return &Routines{} }

// All lists the routines by OID.
func (r *Routines) All() []*RoutineDescriptor { return r.list }

// ByOID returns the routine with an OID, nil if there is none.
func (r *Routines) ByOID(oid types.OID) *RoutineDescriptor { return r.byOID[oid] }

// Named lists the routines with a name in all schemas, by OID. The slice must not be changed.
func (r *Routines) Named(name string) []*RoutineDescriptor { return r.byName[name] }

// Find returns the routine with a name and argument types in a schema, nil if there is none.
func (r *Routines) Find(schema, name string, args []types.Type) *RoutineDescriptor {
	for _, d := range r.byName[name] {
		if d.Schema == schema && slices.EqualFunc(d.InputTypes(), args, func(a, b types.Type) bool { return a.OID == b.OID }) {
			return d
		}
	}
	return nil
}

// Version identifies the set of routines: it changes when one is created, changed or dropped. 0: there are none.
func (r *Routines) Version() uint64 { return r.version }

// loadRoutines reads the routines. They are those of last if no record and no type of theirs has changed.
func loadRoutines(ctx context.Context, r rowReader, of space, all *Types, last *schemaSnapshot) (*Routines, error) {
	var stored []byte
	var ends []int
	err := scanSpan(ctx, r, of.span(wordRoutine), func(_, value []byte) error {
		stored = append(append(stored, value...), '\n')
		ends = append(ends, len(stored))
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &Routines{stored: stored}
	if len(stored) > 0 {
		hash := fnv.New64a()
		_, _ = hash.Write(stored)
		out.version = hash.Sum64()
	}
	if last != nil && bytes.Equal(last.routines.stored, stored) {
		if len(stored) == 0 {
			return last.routines, nil
		}
		changed := false
		for _, d := range last.routines.list {
			c := d.complete(all)
			changed = changed || c != d
			out.list = append(out.list, c)
		}
		if !changed {
			return last.routines, nil
		}
	} else {
		start := 0
		for _, end := range ends {
			d := new(RoutineDescriptor)
			if err := decode(wordSpan(wordRoutine).Start, stored[start:end], d); err != nil {
				return nil, err
			}
			start = end
			out.list = append(out.list, d.complete(all))
		}
	}
	out.index()
	return out, nil
}

func (r *Routines) index() {
	slices.SortFunc(r.list, func(a, b *RoutineDescriptor) int { return cmp.Compare(a.ID, b.ID) })
	r.byOID, r.byName = make(map[types.OID]*RoutineDescriptor, len(r.list)), make(map[string][]*RoutineDescriptor, len(r.list))
	for _, d := range r.list {
		r.byOID[d.OID()] = d
		r.byName[d.Name] = append(r.byName[d.Name], d)
	}
}

// keptIn reports whether other has all routines of r, which differ in nothing but owners and privileges.
func (r *Routines) keptIn(other *Routines) bool {
	for _, d := range r.list {
		if o := other.byOID[d.OID()]; o == nil || !d.sameDefinition(o) {
			return false
		}
	}
	return true
}

// PutRoutine adds a routine, or replaces the one with its ID, and sets its Version.
func (ch *Change) PutRoutine(ctx context.Context, d *RoutineDescriptor) (err error) {
	if d.Version, err = ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.routine(d.ID)
	return ch.txn.Put(ch.space().idKey(wordRoutine, d.ID), encode(d))
}

// DropRoutine removes a routine, which nothing may use any more.
func (ch *Change) DropRoutine(ctx context.Context, d *RoutineDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.routine(d.ID)
	return ch.txn.Delete(ch.space().idKey(wordRoutine, d.ID))
}
