package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// References is what foreign keys and late constraints require of a statement that writes a table: those that the table has, and foreign keys of
// which it is the parent.
type References struct {
	Table    *catalog.TableDescriptor
	Outgoing []*ForeignKey  // by OID
	Incoming []*IncomingKey // by OID
	Late     []*LateKey
	// Checks, Generated, Observed, Indexed and Bound are those of the table, for the rows that actions write. Of the tables that only the statement itself writes they
	// are not set.
	Checks    []Check
	Generated []GeneratedColumn
	Observed  *Observed
	Indexed   *IndexExprs
	Bound     *PartitionCheck
	acting    bool // Checks and Observed are set
}

// ForeignKey is a foreign key, bound to its tables.
type ForeignKey struct {
	*catalog.ForeignKeyDescriptor
	Child, Parent *catalog.TableDescriptor
	// Declared is the foreign key as it was declared: of Child, or of a partitioned table above it.
	Declared catalog.Reference
	// Rules are those of the child, if an action may write it, and Triggers those of its triggers that an action executes.
	Rules    *References
	Triggers *Triggers
	// ChildOrdinals and ParentOrdinals are the columns of both tables, in the order of the constraint.
	ChildOrdinals, ParentOrdinals []int
	// Index is the parent's unique index. Key are its columns' values, in its order, over a full row of the child.
	Index  *catalog.IndexDescriptor
	Key    []expr.Scalar
	leaves *keyLeaves // of a partitioned parent
	// ChildIndex is an index of the child that has the foreign key's columns in front, nil for none. ChildKey are the positions, in the order
	// of the constraint, of the values of its leading columns.
	ChildIndex *catalog.IndexDescriptor
	ChildKey   []int
	// Values are the child's columns after ON UPDATE CASCADE, in the order of the constraint, over the parent's new values, in the same order.
	Values []expr.Scalar
	// Defaults are those of the child's columns, in the order of the constraint, for SET DEFAULT.
	Defaults []expr.Scalar
	// Moves are the partitions of Declared.Table, where actions that change rows may move them; nil: they do not.
	Moves *Parts
}

// ParentKey appends the key of the parent's unique index that a row of the child references. null is the number of the foreign key's columns
// that are NULL: with one or more there is no key.
func (k *ForeignKey) ParentKey(dst []byte, ev *expr.Context, row types.Row) (key []byte, null int, err error) {
	for _, ord := range k.ChildOrdinals {
		if row[ord].IsNull() {
			null++
		}
	}
	if null > 0 {
		return dst, null, nil
	}
	var space [4]types.Datum
	values := types.Row(space[:0])
	for _, e := range k.Key {
		d, err := e.Eval(ev, row)
		if err != nil {
			return nil, 0, err
		}
		values = append(values, d)
	}
	key, err = k.AppendParentKey(dst, ev, values)
	return key, 0, err
}

// SameKey reports whether two rows of the child have equal values in the foreign key's columns.
func (k *ForeignKey) SameKey(a, b types.Row) bool { return equalIn(k.Child, k.ChildOrdinals, a, b) }

func equalIn(t *catalog.TableDescriptor, ordinals []int, a, b types.Row) bool {
	for _, ord := range ordinals {
		x, y := a[ord], b[ord]
		if x.IsNull() != y.IsNull() || !x.IsNull() && !types.Equal(x, y, t.Columns[ord].Type) {
			return false
		}
	}
	return true
}

// Acts reports whether the foreign key has an action that writes the child.
func (k *ForeignKey) Acts() bool {
	return k.OnDelete >= catalog.KeyCascade || k.OnUpdate >= catalog.KeyCascade
}

// actionEvents are what the actions do to rows of the child.
func (k *ForeignKey) actionEvents() (events catalog.TriggerEvents) {
	if k.OnDelete == catalog.KeyCascade {
		events |= catalog.TriggerDelete
	}
	if k.OnDelete > catalog.KeyCascade || k.OnUpdate >= catalog.KeyCascade {
		events |= catalog.TriggerUpdate
	}
	if k.Moves != nil {
		events |= catalog.TriggerDelete
	}
	return events
}

// BindForeignKey binds a foreign key to its tables: the parent key of a row of child can be computed.
func BindForeignKey(ctx context.Context, d *catalog.ForeignKeyDescriptor, child *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) (*ForeignKey, error) {
	p := &physical{b: &binder{ctx: ctx, r: r, env: env, noSlots: true}}
	k, err := p.foreignKey(d, child)
	if err == nil {
		err = p.err
	}
	return k, err
}

// foreignKey binds a foreign key, once, without what its actions need.
func (p *physical) foreignKey(d *catalog.ForeignKeyDescriptor, child *catalog.TableDescriptor) (*ForeignKey, error) {
	if have := p.foreignKeys[d.OID]; have != nil {
		return have, nil
	}
	k, err := p.newForeignKey(d, child)
	if err != nil {
		return nil, err
	}
	if p.foreignKeys == nil {
		p.foreignKeys = map[uint32]*ForeignKey{}
	}
	p.foreignKeys[d.OID] = k
	return k, nil
}

func (p *physical) newForeignKey(d *catalog.ForeignKeyDescriptor, child *catalog.TableDescriptor) (*ForeignKey, error) {
	parent := child
	if d.Parent != child.ID {
		var err error
		if parent, err = p.b.r.RelationByID(p.b.ctx, d.Parent); err != nil {
			return nil, err
		}
	}
	if parent == nil {
		return nil, pgerror.New(pgerror.InternalError, "table %d, which constraint %q references, does not exist", d.Parent, d.Name)
	}
	p.b.use(parent)
	k := &ForeignKey{ForeignKeyDescriptor: d, Child: child, Parent: parent, Index: parent.IndexByOID(d.ParentIndex)}
	if k.Index == nil {
		return nil, pgerror.New(pgerror.InternalError, "index %d, which constraint %q needs, does not exist", d.ParentIndex, d.Name)
	}
	for i := range d.Columns {
		k.ChildOrdinals = append(k.ChildOrdinals, child.Ordinal(d.Columns[i]))
		k.ParentOrdinals = append(k.ParentOrdinals, parent.Ordinal(d.ParentColumns[i]))
	}
	scan := p.b.newScan(child, child.Name, nil)
	for i := range k.Index.Columns {
		at := slices.Index(d.ParentColumns, k.Index.Columns[i].ColumnID)
		x, err := p.b.referenced(scan, k.ChildOrdinals[at], parent.Columns[k.ParentOrdinals[at]].Type)
		if err != nil {
			return nil, err
		}
		k.Key = append(k.Key, p.compile(x, scan.cols))
	}
	k.findChildIndex()
	var err error
	if k.Declared, err = catalog.DeclaredKey(p.b.ctx, p.b.r, child, d); err != nil {
		return nil, err
	}
	k.leaves = p.keyLeaves(parent, k.Index)
	return k, nil
}

// referenced returns a column of a child as a value of the type of the parent's column.
func (b *binder) referenced(scan *scanRel, ord int, parent types.Type) (expr.Scalar, error) {
	typ := scan.table.Columns[ord].Type
	var x expr.Scalar = b.column(scan.cols[ord], 0)
	if sameEncoding(typ, parent) {
		return x, nil
	}
	want := parent.Underlying()
	want.Mod = -1
	return b.coerce(x, want, castImplicit, 0)
}

// sameEncoding reports whether equal values of two types have equal keys.
func sameEncoding(a, b types.Type) bool {
	a, b = a.Underlying(), b.Underlying()
	return a.OID == b.OID || integer(a) && integer(b) || text(a) && text(b)
}

func integer(t types.Type) bool {
	return t.OID == types.OIDInt2 || t.OID == types.OIDInt4 || t.OID == types.OIDInt8
}

func text(t types.Type) bool { return t.OID == types.OIDText || t.OID == types.OIDVarchar }

// CanReference reports whether a column of type child can reference one of type parent.
func CanReference(child, parent types.Type) bool {
	if sameEncoding(child, parent) {
		return true
	}
	_, ok := builtin.FindCast(child.Underlying(), parent.Underlying(), castImplicit)
	return ok
}

// findChildIndex finds the index by which the rows that reference a key are found: the one with the fewest columns.
func (k *ForeignKey) findChildIndex() {
	for i, ord := range k.ChildOrdinals {
		if !sameEncoding(k.Child.Columns[ord].Type, k.Parent.Columns[k.ParentOrdinals[i]].Type) {
			return
		}
	}
	for i := -1; i < len(k.Child.Indexes); i++ {
		ix := &k.Child.Primary
		if i >= 0 {
			ix = &k.Child.Indexes[i]
		}
		if ix.State != catalog.IndexPublic || ix.Where != nil || k.ChildIndex != nil && len(k.ChildIndex.Columns) <= len(ix.Columns) {
			continue
		}
		if places := k.placesIn(ix); places != nil {
			k.ChildIndex, k.ChildKey = ix, places
		}
	}
}

// placesIn returns the positions in the constraint of the leading columns of ix, nil if these are not all of the constraint's.
func (k *ForeignKey) placesIn(ix *catalog.IndexDescriptor) []int {
	n := len(k.Columns)
	if len(ix.Columns) < n {
		return nil
	}
	places := make([]int, 0, n)
	for _, c := range ix.Columns[:n] {
		at := slices.Index(k.Columns, c.ColumnID)
		if at < 0 || slices.Contains(places, at) {
			return nil
		}
		places = append(places, at)
	}
	return places
}

// references makes what the foreign keys of a statement's table require of it: changed are the columns that it may update, of a table that
// it also inserts into or deletes from if inserts or deletes is set. nil: nothing.
func (p *physical) references(t *catalog.TableDescriptor, changed []int, inserts, deletes bool) *References {
	if p.err != nil || len(t.ForeignKeys) == 0 && len(t.Referencing) == 0 && !t.IsPartition() && !t.HasLateKeys() {
		return nil
	}
	all := p.allReferences(t)
	if p.err != nil {
		return nil
	}
	touched := func(ordinals []int) bool {
		return slices.ContainsFunc(ordinals, func(ord int) bool { return slices.Contains(changed, ord) })
	}
	used := &References{Table: t}
	for _, k := range all.Outgoing {
		if inserts || touched(k.ChildOrdinals) || k.Deferrable && touched(keyOrdinals(t)) { // A deferred check names the row by its key.
			used.Outgoing = append(used.Outgoing, k)
			p.dependOnParent(k)
		}
	}
	for _, k := range all.Incoming {
		if deletes || touched(k.Ordinals) {
			used.Incoming = append(used.Incoming, k)
			p.act(k.ForeignKey)
		}
	}
	for _, k := range all.Late {
		if inserts || touched(k.reads) || touchesKey(t, changed) {
			used.Late = append(used.Late, k)
		}
	}
	if len(used.Outgoing)+len(used.Incoming)+len(used.Late) == 0 {
		return nil
	}
	return used
}

// touchesKey reports whether the primary key under which the rows of t lie has one of the columns.
func touchesKey(t *catalog.TableDescriptor, ordinals []int) bool {
	return slices.ContainsFunc(ordinals, func(ord int) bool { return inIndex(&t.Primary, t.Columns[ord].ID) })
}

// allReferences binds all foreign keys of a table and to it, once.
func (p *physical) allReferences(t *catalog.TableDescriptor) *References {
	if have := p.keys[t.ID]; have != nil {
		return have
	}
	if p.keys == nil {
		p.keys = map[uint64]*References{}
	}
	all := &References{Table: t}
	p.keys[t.ID] = all
	all.Late = p.lateKeys(t)
	for i := range t.ForeignKeys {
		k, err := p.foreignKey(&t.ForeignKeys[i], t)
		if err != nil {
			p.fail(err)
			return all
		}
		if !p.keyOff(t, k) {
			all.Outgoing = append(all.Outgoing, k)
		}
	}
	all.Incoming = slices.DeleteFunc(p.incoming(t), func(k *IncomingKey) bool { return p.keyOff(t, k.ForeignKey) })
	return all
}

// keyOff reports whether a foreign key is disabled for the rows of t.
func (p *physical) keyOff(t *catalog.TableDescriptor, k *ForeignKey) bool {
	off, err := catalog.KeyOff(p.b.ctx, p.b.r, t, k.Declared.Key.OID)
	if err != nil {
		p.fail(err)
	}
	return off
}

// act completes a foreign key whose parent's keys are deleted or changed, for its actions, which write the child.
func (p *physical) act(k *ForeignKey) {
	p.dependOn(k.Child)
	if !k.Acts() || k.Rules != nil || p.err != nil {
		return
	}
	p.bindActions(k)
	rules := p.allReferences(k.Child)
	k.Rules = rules
	k.Moves = p.actionMoves(k)
	k.Triggers = p.triggers(k.Child, k.actionEvents(), k.ChildOrdinals)
	if rules.acting || p.err != nil {
		return
	}
	rules.acting = true
	scan := p.b.newScan(k.Child, k.Child.Name, nil)
	rules.Checks, rules.Indexed = p.checks(k.Child, scan), p.indexExprs(k.Child, scan)
	rules.Generated, rules.Bound = p.generated(k.Child, scan), p.partitionCheck(scan)
	all := make([]int, len(k.Child.Columns))
	for i := range all {
		all[i] = i
	}
	rules.Observed = observed(k.Child, all)
	for _, out := range rules.Outgoing {
		p.dependOnParent(out)
	}
	for _, in := range rules.Incoming {
		p.act(in.ForeignKey)
	}
}

// bindActions binds the values that the actions of a foreign key give to the child's columns.
func (p *physical) bindActions(k *ForeignKey) {
	parent := p.b.newScan(k.Parent, k.Parent.Name, nil)
	var cols []int
	for _, ord := range k.ParentOrdinals {
		cols = append(cols, parent.cols[ord])
	}
	for i, ord := range k.ChildOrdinals {
		to := &k.Child.Columns[ord]
		x, err := p.b.coerce(p.b.column(cols[i], 0), to.Type, castAssignment, 0)
		if err != nil {
			p.fail(err)
			return
		}
		k.Values = append(k.Values, p.compile(x, cols))
		declared := k.Declared.Table
		d, err := p.b.defaultOf(declared, declared.Ordinal(k.Declared.Key.Columns[i]))
		if err != nil {
			p.fail(err)
			return
		}
		k.Defaults = append(k.Defaults, p.compile(d, nil))
	}
}

// dependOn lists a table among those whose schema must be the same when the statement commits.
func (p *physical) dependOn(t *catalog.TableDescriptor) {
	if !slices.Contains(p.depends, t) {
		p.depends = append(p.depends, t)
	}
}

// dependOnParent lists the tables in which a foreign key looks for what a row references.
func (p *physical) dependOnParent(k *ForeignKey) {
	p.dependOn(k.Parent)
	if k.leaves == nil {
		return
	}
	k.leaves.routes.each(func(r *Routes) { p.dependOn(r.Table) })
	for _, l := range k.leaves.leaves {
		p.dependOn(l.table)
	}
}

// guarded reports whether foreign keys reference the table's primary key, itself or as a part of that of a partitioned table.
func (p *physical) guarded(t *catalog.TableDescriptor) bool {
	if !t.HasPrimaryKey() || !t.Referenced() && !t.IsPartition() {
		return false
	}
	all, err := catalog.ReferencesToRows(p.b.ctx, p.b.r, t)
	if err != nil {
		p.fail(err)
		return false
	}
	for _, ref := range all {
		top, err := p.b.r.RelationByID(p.b.ctx, ref.Key.Parent)
		if err != nil {
			p.fail(err)
			return false
		}
		if p.partOfIndex(t, top, top.IndexByOID(ref.Key.ParentIndex)) == &t.Primary {
			return true
		}
	}
	return false
}
