package executor

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// DeferredKeys are the checks of deferrable foreign keys, unique and exclusion constraints that wait for the end of a transaction or for SET CONSTRAINTS … IMMEDIATE. An entry
// names a row or a key, which is looked at when the check runs: what has been rolled back to a savepoint does no harm. One goroutine's.
type DeferredKeys struct {
	memory *memory.Account
	modes  ConstraintModes
	keys   map[uint32]*deferredKey // by OID of the constraint
	held   int64
}

// ConstraintModes are what SET CONSTRAINTS has set in a transaction. The zero value: nothing.
type ConstraintModes struct {
	all   *bool // deferred
	byOID map[uint32]bool
}

// deferredKey is the part of one constraint.
type deferredKey struct {
	child    uint64              // id of its table
	children map[string]struct{} // the keys of rows that reference something, or that unique and exclusion constraints concern
	parents  map[string]types.Row
}

// NewDeferredKeys makes an empty set, whose memory is accounted to a.
func NewDeferredKeys(a *memory.Account) *DeferredKeys { return &DeferredKeys{memory: a} }

// Modes returns the present modes, for SetModes after a rollback to a savepoint.
func (d *DeferredKeys) Modes() ConstraintModes {
	return ConstraintModes{all: d.modes.all, byOID: maps.Clone(d.modes.byOID)}
}

// SetModes restores modes.
func (d *DeferredKeys) SetModes(m ConstraintModes) {
	d.modes = ConstraintModes{all: m.all, byOID: maps.Clone(m.byOID)}
}

// SetAll is SET CONSTRAINTS ALL.
func (d *DeferredKeys) SetAll(deferred bool) { d.modes = ConstraintModes{all: &deferred} }

// Set is SET CONSTRAINTS of one constraint, which is deferrable.
func (d *DeferredKeys) Set(oid uint32, deferred bool) {
	if d.modes.byOID == nil {
		d.modes.byOID = map[uint32]bool{}
	}
	d.modes.byOID[oid] = deferred
}

// defersLate is defers for the constraint of an index.
func (d *DeferredKeys) defersLate(ix *catalog.IndexDescriptor) bool {
	return ix.Deferrable && d.defers(ix.OID, ix.Deferred)
}

// defers reports whether the checks of a deferrable constraint are deferred at present.
func (d *DeferredKeys) defers(oid uint32, initially bool) bool {
	if d == nil {
		return false
	}
	if set, found := d.modes.byOID[oid]; found {
		return set
	}
	if d.modes.all != nil {
		return *d.modes.all
	}
	return initially
}

// of returns the part of a constraint of t.
func (d *DeferredKeys) of(t *catalog.TableDescriptor, oid uint32) *deferredKey {
	if d.keys == nil {
		d.keys = map[uint32]*deferredKey{}
	}
	e := d.keys[oid]
	if e == nil {
		e = &deferredKey{child: t.ID, children: map[string]struct{}{}, parents: map[string]types.Row{}}
		d.keys[oid] = e
	}
	return e
}

func (d *DeferredKeys) book(n int64) error {
	if err := d.memory.Grow(n); err != nil {
		return err
	}
	d.held += n
	return nil
}

// deferredEntryBytes is the memory of an entry apart from its key.
const deferredEntryBytes = 96

// addChild defers the check of what a row of the child references.
func (d *DeferredKeys) addChild(k *planner.ForeignKey, row types.Row) error {
	key, _, err := rowenc.AppendKey(nil, k.Child, &k.Child.Primary, row)
	if err != nil {
		return err
	}
	return d.addRow(k.Child, k.OID, key)
}

// addRow defers the check of a row of t, by its key, under a constraint.
func (d *DeferredKeys) addRow(t *catalog.TableDescriptor, oid uint32, key []byte) error {
	e := d.of(t, oid)
	if _, found := e.children[string(key)]; found {
		return nil
	}
	e.children[string(key)] = struct{}{}
	return d.book(deferredEntryBytes + int64(len(key)))
}

// addParent defers the check that no row references a key: the values of the referenced columns, in the order of the constraint.
func (d *DeferredKeys) addParent(k *planner.ForeignKey, values types.Row) error {
	key, err := rowenc.AppendKeyPrefix(nil, k.Parent, k.Index, indexOrder(k, values)...)
	if err != nil {
		return err
	}
	e := d.of(k.Child, k.OID)
	if _, found := e.parents[string(key)]; found {
		return nil
	}
	e.parents[string(key)] = values.Clone()
	return d.book(deferredEntryBytes + 3*int64(len(key)))
}

// indexOrder returns values of a parent's referenced columns in the order of its index.
func indexOrder(k *planner.ForeignKey, values types.Row) types.Row {
	out := make(types.Row, len(k.Index.Columns))
	for i, c := range k.Index.Columns {
		out[i] = values[slices.Index(k.ParentColumns, c.ColumnID)]
	}
	return out
}

// Empty reports whether nothing is deferred.
func (d *DeferredKeys) Empty() bool { return len(d.keys) == 0 }

// Reset forgets everything.
func (d *DeferredKeys) Reset() {
	if d.held > 0 {
		d.memory.Shrink(d.held)
	}
	d.modes, d.keys, d.held = ConstraintModes{}, nil, 0
}

// Check runs the checks of the constraints that are not deferred at present; with all, of all of them. Those that have passed are forgotten
// unless keep is set, which a transaction with savepoints needs: a rollback may undo what made them pass.
func (d *DeferredKeys) Check(ctx context.Context, rt *Runtime, all, keep bool) error {
	if d.Empty() {
		return nil
	}
	ex := &execution{}
	ex.bind(rt)
	defer ex.unbind()
	ex.ev.Ctx = ctx
	for _, oid := range slices.Sorted(maps.Keys(d.keys)) {
		e := d.keys[oid]
		child, err := rt.Resolver.RelationByID(ctx, e.child)
		if err != nil {
			return err
		}
		check, deferred, err := e.bind(ctx, child, oid, rt)
		if err != nil {
			return err
		}
		if check == nil { // It has been dropped.
			delete(d.keys, oid)
			continue
		}
		if !all && d.defers(oid, deferred) {
			continue
		}
		if err := check(ctx, &keyChecks{ex: ex, resume: true}); err != nil {
			return err
		}
		if !keep {
			delete(d.keys, oid)
		}
	}
	return nil
}

// bind returns what checks the constraint with an OID, of child, and whether it is deferred initially; nil if there is none any more.
func (e *deferredKey) bind(ctx context.Context, child *catalog.TableDescriptor, oid uint32, rt *Runtime) (check func(context.Context, *keyChecks) error, deferred bool, err error) {
	if child == nil {
		return nil, false, nil
	}
	if ix := child.IndexByOID(oid); ix != nil && ix.CheckedLate() {
		key, err := planner.BindLateKey(ctx, child, ix, rt.Resolver, rt.Env)
		return func(ctx context.Context, k *keyChecks) error { return k.checkLate(ctx, key, e.rows()) }, ix.Deferred, err
	}
	at := slices.IndexFunc(child.ForeignKeys, func(k catalog.ForeignKeyDescriptor) bool { return k.OID == oid })
	if at < 0 {
		return nil, false, nil
	}
	key, err := planner.BindForeignKey(ctx, &child.ForeignKeys[at], child, rt.Resolver, rt.Env)
	return func(ctx context.Context, k *keyChecks) error { return e.check(ctx, k, key) }, child.ForeignKeys[at].Deferred, err
}

// rows lists the keys of rows.
func (e *deferredKey) rows() [][]byte {
	rows := make([][]byte, 0, len(e.children))
	for row := range e.children {
		rows = append(rows, []byte(row))
	}
	slices.SortFunc(rows, bytes.Compare)
	return rows
}

// check runs the checks of one foreign key.
func (e *deferredKey) check(ctx context.Context, k *keyChecks, key *planner.ForeignKey) error {
	lost := rowBuffer{mem: &k.ex.mem}
	defer lost.release()
	for _, parent := range slices.Sorted(maps.Keys(e.parents)) {
		if err := lost.add(e.parents[parent]); err != nil {
			return err
		}
	}
	if err := k.actOn(ctx, key, &lost, catalog.KeyNoAction, false); err != nil {
		return err
	}
	rows := e.rows()
	ordinals := make([]int, len(key.Child.Columns))
	for i := range ordinals {
		ordinals[i] = i
	}
	var decoder rowenc.Decoder
	if err := decoder.Init(key.Child, &key.Child.Primary, ordinals); err != nil {
		return err
	}
	q := &keyQueue{checks: k, outgoing: []outgoingKeys{{ForeignKey: key, values: rowBuffer{mem: &k.ex.mem}, seen: map[string]struct{}{}}}}
	o := &q.outgoing[0]
	defer o.reset()
	row := make(types.Row, len(ordinals))
	for group := range slices.Chunk(rows, eagerGroup) {
		var values [][]byte
		err := k.ex.txn.AsideNow(ctx, func(r percolator.Reader) (err error) {
			values, err = r.BatchGet(ctx, group)
			return err
		})
		if err != nil {
			return err
		}
		for i, value := range values {
			if value == nil {
				continue // The transaction has deleted it, or moved it to another key, which is listed too.
			}
			if err := decoder.Decode(group[i], value, row); err != nil {
				return err
			}
			if err := q.reference(ctx, o, row); err != nil {
				return err
			}
		}
		if err := k.verify(ctx, o, true); err != nil {
			return err
		}
	}
	return nil
}
