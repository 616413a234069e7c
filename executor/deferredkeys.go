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
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Deferred are the checks of deferrable foreign keys, unique and exclusion constraints, and the executions of deferrable constraint triggers, that
// wait for the end of a transaction or for SET CONSTRAINTS … IMMEDIATE. An entry of a constraint names a row or a key, which is looked at when the
// check runs: what has been rolled back to a savepoint does no harm. Executions of triggers are rolled back (Mark). One goroutine's.
type Deferred struct {
	memory *memory.Account
	modes  constraintModes
	keys   map[uint32]*deferredKey // by OID of the constraint
	calls  []deferredCall
	rounds uint64 // of executions
	held   int64
	// refuses: a security-restricted operation is being executed. What it defers would be executed with the privileges of another role.
	refuses bool
}

// constraintModes are what SET CONSTRAINTS has set in a transaction. The zero value: nothing.
type constraintModes struct {
	all   *bool           // deferred
	byOID map[uint32]bool // by OID of the constraint or the trigger
}

// DeferredMark is a state to which RollbackTo returns. The zero value is that of the beginning.
type DeferredMark struct {
	modes  constraintModes
	calls  int
	rounds uint64
}

// deferredKey is the part of one constraint.
type deferredKey struct {
	child    uint64              // id of its table
	children map[string]struct{} // the keys of rows that reference something, or that unique and exclusion constraints concern
	parents  map[string]types.Row
}

// NewDeferred makes an empty set, whose memory is accounted to a.
func NewDeferred(a *memory.Account) *Deferred { return &Deferred{memory: a} }

// Mark returns the present state, for RollbackTo.
func (d *Deferred) Mark() DeferredMark {
	return DeferredMark{modes: d.modes.clone(), calls: len(d.calls), rounds: d.rounds}
}

// RollbackTo follows a rollback to a savepoint: what SET CONSTRAINTS has set since is forgotten, and so are the triggers that are deferred since;
// those that have been executed since are deferred again.
func (d *Deferred) RollbackTo(m DeferredMark) {
	d.modes = m.modes.clone()
	d.calls = d.calls[:min(m.calls, len(d.calls))]
	for i := range d.calls {
		if d.calls[i].round > m.rounds {
			d.calls[i].round = 0
		}
	}
}

func (m constraintModes) clone() constraintModes {
	return constraintModes{all: m.all, byOID: maps.Clone(m.byOID)}
}

// SetAll is SET CONSTRAINTS ALL.
func (d *Deferred) SetAll(deferred bool) { d.modes = constraintModes{all: &deferred} }

// Set is SET CONSTRAINTS of one constraint, which is deferrable.
func (d *Deferred) Set(oid uint32, deferred bool) {
	if d.modes.byOID == nil {
		d.modes.byOID = map[uint32]bool{}
	}
	d.modes.byOID[oid] = deferred
}

// defersLate is defers for the constraint of an index.
func (d *Deferred) defersLate(ix *catalog.IndexDescriptor) bool {
	return ix.Deferrable && d.defers(ix.OID, ix.Deferred)
}

// defers reports whether the checks of a deferrable constraint are deferred at present.
func (d *Deferred) defers(oid uint32, initially bool) bool {
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
func (d *Deferred) of(t *catalog.TableDescriptor, oid uint32) *deferredKey {
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

// Refuse has d refuse, or take again, what would be deferred, and returns whether it refused before.
func (d *Deferred) Refuse(refuse bool) (before bool) {
	before, d.refuses = d.refuses, refuse
	return before
}

// mayDefer fails while d refuses. It precedes every change: what a function has tried before is no reason to permit it.
func (d *Deferred) mayDefer() error {
	if d.refuses {
		return pgerror.New(pgerror.InsufficientPrivilege, "cannot fire deferred trigger within security-restricted operation")
	}
	return nil
}

func (d *Deferred) book(n int64) error {
	if err := d.memory.Grow(n); err != nil {
		return err
	}
	d.held += n
	return nil
}

// deferredEntryBytes is the memory of an entry apart from its key.
const deferredEntryBytes = 96

// addChild defers the check of what a row of the child references.
func (d *Deferred) addChild(k *planner.ForeignKey, row types.Row) error {
	key, _, err := rowenc.AppendKey(nil, k.Child, &k.Child.Primary, row)
	if err != nil {
		return err
	}
	return d.addRow(k.Child, k.OID, key)
}

// addRow defers the check of a row of t, by its key, under a constraint.
func (d *Deferred) addRow(t *catalog.TableDescriptor, oid uint32, key []byte) error {
	if err := d.mayDefer(); err != nil {
		return err
	}
	e := d.of(t, oid)
	if _, found := e.children[string(key)]; found {
		return nil
	}
	e.children[string(key)] = struct{}{}
	return d.book(deferredEntryBytes + int64(len(key)))
}

// addParent defers the check that no row references a key: the values of the referenced columns, in the order of the constraint.
func (d *Deferred) addParent(ev *expr.Context, k *planner.ForeignKey, values types.Row) error {
	if err := d.mayDefer(); err != nil {
		return err
	}
	key, err := k.AppendParentKey(nil, ev, indexOrder(k, values))
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
func (d *Deferred) Empty() bool { return len(d.keys) == 0 && len(d.calls) == 0 }

// Reset forgets everything.
func (d *Deferred) Reset() {
	if d.held > 0 {
		d.memory.Shrink(d.held)
	}
	d.modes, d.keys, d.held = constraintModes{}, nil, 0
	clear(d.calls)
	d.calls, d.rounds = d.calls[:0], 0
}

// Check executes the triggers and runs the checks of the constraints that are not deferred at present; with all, all of them. Those that have
// passed are forgotten unless keep is set, which a transaction with savepoints needs: a rollback may undo what made them pass.
func (d *Deferred) Check(ctx context.Context, rt *Runtime, all, keep bool) error {
	if err := d.runCalls(ctx, rt, all, keep); err != nil || len(d.keys) == 0 {
		return err
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
	if err := k.actOn(ctx, key, nil, &lost, catalog.KeyNoAction, false); err != nil {
		return err
	}
	rows := e.rows()
	ordinals := allOrdinals(key.Child)
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
