package pgcatalog

import (
	"errors"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// The rows of pg_depend: what of users' objects depends on what. pg_dump orders objects by them.

const (
	classPgAttrdef = 2604
	classPgTrigger = 2620
)

// The kinds of dependencies, as deptype.
const (
	dependsNormal   = 'n' // DROP of the other needs CASCADE
	dependsAuto     = 'a' // the object is dropped with the other
	dependsInternal = 'i' // the object is a part of the other
	// dependsPartition is the kind of a partition's index that is a part of the index of the table above.
	dependsPartition = 'P'
	// dependsPartitionTable is the kind of such an index and its table.
	dependsPartitionTable = 'S'
)

// object is an object as system tables identify it; sub is the number of a column.
type object struct {
	class int
	id    uint32
	sub   uint32
}

func relationObject(t *catalog.TableDescriptor, column uint32) object {
	return object{classPgClass, t.OID(), column}
}

// dependency is a row of pg_depend.
type dependency struct {
	of, on object
	kind   byte
}

// depend emits a dependency, once.
func (s *scan) depend(on map[dependency]bool, a, b object, kind byte) error {
	if on[dependency{a, b, kind}] || a == b || b.id == 0 {
		return nil
	}
	on[dependency{a, b, kind}] = true
	return s.emit(col{"classid", num(a.class)}, col{"objid", oid(a.id)}, col{"objsubid", num(a.sub)}, col{"refclassid", num(b.class)},
		col{"refobjid", oid(b.id)}, col{"refobjsubid", num(b.sub)}, col{"deptype", letter(kind)})
}

func dependRows(s *scan) error {
	if err := s.ownDependRows(); err != nil {
		return err
	}
	if err := s.extensionDependRows(); err != nil {
		return err
	}
	d := &dependencies{scan: s, seen: map[dependency]bool{}}
	for _, each := range []func() error{d.types, d.routines, d.textSearch, d.collations, d.operations} {
		if err := each(); err != nil {
			return err
		}
	}
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind == catalog.KindVirtual {
			return nil
		}
		return d.relation(t)
	})
}

// dependencies emits the rows.
type dependencies struct {
	*scan
	seen map[dependency]bool
}

func (d *dependencies) on(a, b object, kind byte) error { return d.depend(d.seen, a, b, kind) }

// all emits what a depends on.
func (d *dependencies) all(a object, kind byte, bs ...object) error {
	for _, b := range bs {
		if err := d.on(a, b, kind); err != nil {
			return err
		}
	}
	return nil
}

func (d *dependencies) schema(name string) object {
	id := schemaOID(d.Resolver, name)
	if name == catalog.SystemSchema {
		id = 0
	}
	return object{class: classPgNamespace, id: id}
}

// typeObject is a type of a user or an extension; its id is 0 for PostgreSQL's own.
func typeObject(t types.Type) object {
	if t.OID < types.FirstUserOID {
		return object{}
	}
	return object{class: classPgType, id: uint32(t.OID)}
}

// uses are the objects that a text names.
func (d *dependencies) uses(view *catalog.TableDescriptor, e catalog.StoredExpr) ([]object, error) {
	if d.view == nil || view == nil && e.Text == "" && e.Routine == nil {
		return nil, nil
	}
	all, err := d.view.Uses(d.ctx, d.Resolver, view, e)
	if pg := (*pgerror.Error)(nil); view != nil && errors.As(err, &pg) {
		return readBy(view), nil // What it reads is known without its columns.
	}
	if err != nil {
		return nil, err
	}
	classes := map[catalog.UsedKind]int{catalog.UsedRelation: classPgClass, catalog.UsedRoutine: classPgProc, catalog.UsedType: classPgType,
		catalog.UsedConfiguration: classPgTSConfig, catalog.UsedDictionary: classPgTSDict, catalog.UsedCollation: classPgCollation,
		catalog.UsedOperator: classPgOperator, catalog.UsedCast: classPgCast}
	var out []object
	for _, u := range all {
		part := func(other catalog.ObjectUse) bool {
			return other.Kind == u.Kind && other.ID == u.ID && other.Column != 0
		}
		if u.Column == 0 && slices.ContainsFunc(all, part) {
			continue // It depends on the columns only.
		}
		if u.ID >= uint32(types.FirstUserOID) {
			out = append(out, object{classes[u.Kind], u.ID, u.Column})
		}
	}
	return out, nil
}

// readBy are the relations that a view reads.
func readBy(view *catalog.TableDescriptor) []object {
	var out []object
	for _, id := range view.DependsOn {
		out = append(out, object{class: classPgClass, id: uint32(id)})
	}
	return out
}

// text emits what the text of an object of a table depends on: the table's own columns with the object, other objects normally.
func (d *dependencies) text(a object, t *catalog.TableDescriptor, e catalog.StoredExpr) error {
	bs, err := d.uses(nil, e)
	if err != nil {
		return err
	}
	for _, b := range bs {
		kind := byte(dependsNormal)
		if t != nil && b.class == classPgClass && b.id == t.OID() {
			kind = dependsAuto
		}
		if err := d.on(a, b, kind); err != nil {
			return err
		}
	}
	return nil
}

func (d *dependencies) relation(t *catalog.TableDescriptor) error {
	self := relationObject(t, 0)
	if err := d.on(self, d.schema(t.Schema), dependsNormal); err != nil {
		return err
	}
	switch {
	case t.Kind == catalog.KindSequence:
		return d.sequence(t)
	default:
		row, array := t.RowType()
		if err := d.on(object{class: classPgType, id: uint32(row)}, self, dependsInternal); err != nil {
			return err
		}
		if err := d.on(object{class: classPgType, id: uint32(array)}, object{class: classPgType, id: uint32(row)}, dependsInternal); err != nil {
			return err
		}
	}
	if t.ViewQuery != "" {
		bs, err := d.uses(t, catalog.StoredExpr{})
		if err != nil {
			return err
		}
		rule := object{class: classPgRewrite, id: ruleOID(t)}
		if err := d.on(rule, self, dependsInternal); err != nil {
			return err
		}
		if err := d.all(rule, dependsNormal, append(bs, self)...); err != nil {
			return err
		}
	}
	if err := d.partitionKey(t); err != nil {
		return err
	}
	if err := d.on(self, object{class: classPgType, id: uint32(t.OfType)}, dependsNormal); err != nil {
		return err
	}
	if t.IsPartition() {
		if err := d.on(self, object{classPgClass, uint32(t.PartitionOf.Parent), 0}, dependsAuto); err != nil {
			return err
		}
	}
	for _, each := range []func(*catalog.TableDescriptor) error{d.columns, d.indexes, d.constraints, d.triggers, d.policies} {
		if err := each(t); err != nil {
			return err
		}
	}
	return nil
}

// partitionKey emits what the key of a partitioned table depends on: its columns cannot be dropped.
func (d *dependencies) partitionKey(t *catalog.TableDescriptor) error {
	if !t.IsPartitioned() {
		return nil
	}
	for _, k := range t.Partitioning.Keys {
		c := t.ColumnByID(k.ColumnID)
		if c.Expr == nil {
			if err := d.on(relationObject(t, k.ColumnID), relationObject(t, 0), dependsInternal); err != nil {
				return err
			}
			continue
		}
		bs, err := d.uses(nil, catalog.StoredExpr{Text: c.Expr.SQL, Table: t})
		if err != nil {
			return err
		}
		for _, b := range bs {
			if b.class == classPgClass && b.id == t.OID() {
				err = d.on(b, relationObject(t, 0), dependsInternal)
			} else {
				err = d.on(relationObject(t, 0), b, dependsNormal)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// sequence emits the column that owns a sequence.
func (d *dependencies) sequence(t *catalog.TableDescriptor) error {
	if t.Sequence.OwnerTable == 0 {
		return nil
	}
	owner, err := d.RelationByID(d.ctx, t.Sequence.OwnerTable)
	if err != nil || owner == nil {
		return err
	}
	kind := byte(dependsAuto)
	if ord := owner.Ordinal(t.Sequence.OwnerColumn); ord >= 0 && owner.Columns[ord].Identity != "" {
		kind = dependsInternal
	}
	return d.on(relationObject(t, 0), relationObject(owner, t.Sequence.OwnerColumn), kind)
}

func (d *dependencies) columns(t *catalog.TableDescriptor) error {
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Hidden {
			continue
		}
		column := relationObject(t, c.ID)
		if err := d.on(column, typeObject(c.Type), dependsNormal); err != nil {
			return err
		}
		if id := collationOf(c.Type); id >= int64(types.FirstUserOID) {
			if err := d.on(column, object{class: classPgCollation, id: uint32(id)}, dependsNormal); err != nil {
				return err
			}
		}
		if c.Default == "" && c.Generated == "" {
			continue
		}
		value := object{class: classPgAttrdef, id: attrdefOID(t, c)}
		of := byte(dependsAuto)
		if c.Generated != "" {
			of = dependsInternal
		}
		if err := d.on(value, column, of); err != nil {
			return err
		}
		e := catalog.StoredExpr{Text: d.printer().storedDefault(c), Type: c.Type}
		if c.Generated != "" {
			e.Table = t
		}
		if err := d.text(value, t, e); err != nil {
			return err
		}
	}
	return nil
}

func (d *dependencies) indexes(t *catalog.TableDescriptor) error {
	for _, ix := range visibleIndexes(t) {
		self := object{class: classPgClass, id: ix.OID}
		if ix.Parent != 0 {
			if err := d.on(self, object{class: classPgClass, id: ix.Parent}, dependsPartition); err != nil {
				return err
			}
			if err := d.on(self, relationObject(t, 0), dependsPartitionTable); err != nil {
				return err
			}
		}
		if ix.Constraint {
			if err := d.on(self, object{class: classPgConstraint, id: ix.OID}, dependsInternal); err != nil {
				return err
			}
			continue
		}
		plain := false
		for _, id := range indexColumnIDs(ix) {
			c := t.ColumnByID(id)
			if plain = plain || c.Expr == nil; c.Expr == nil {
				if err := d.on(self, relationObject(t, id), dependsAuto); err != nil {
					return err
				}
			} else if err := d.text(self, t, catalog.StoredExpr{Text: c.Expr.SQL, Table: t}); err != nil {
				return err
			}
		}
		if !plain {
			if err := d.on(self, relationObject(t, 0), dependsAuto); err != nil {
				return err
			}
		}
		if ix.Where != nil {
			if err := d.text(self, t, catalog.StoredExpr{Text: ix.Where.SQL, Table: t, Type: types.TBool}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *dependencies) constraints(t *catalog.TableDescriptor) error {
	all, err := constraints(d.ctx, d.Resolver, t)
	if err != nil {
		return err
	}
	for _, c := range all {
		self := object{class: classPgConstraint, id: c.oid}
		switch {
		case c.index != nil:
			for _, id := range indexColumnIDs(c.index) {
				if t.ColumnByID(id).Expr != nil {
					id = 0
				}
				if err := d.on(self, relationObject(t, id), dependsAuto); err != nil {
					return err
				}
			}
		case c.check != nil:
			if err := d.check(t, c.check, self); err != nil {
				return err
			}
		case c.key != nil:
			if err := d.foreignKey(t, c.key, self); err != nil {
				return err
			}
		}
	}
	return nil
}

// check emits what a check constraint depends on: the columns that it names twice, for the constraint and for its expression; the table if there
// are none.
func (d *dependencies) check(t *catalog.TableDescriptor, c *catalog.CheckDescriptor, self object) error {
	bs, err := d.uses(nil, catalog.StoredExpr{Text: c.Expr, Table: t, Type: types.TBool})
	if err != nil {
		return err
	}
	named := false
	for _, b := range bs {
		if b.class == classPgClass && b.id == t.OID() {
			named = true
			if err := d.on(self, b, dependsAuto); err != nil {
				return err
			}
		}
	}
	if !named {
		if err := d.on(self, relationObject(t, 0), dependsAuto); err != nil {
			return err
		}
	}
	return d.all(self, dependsNormal, bs...)
}

func (d *dependencies) foreignKey(t *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor, self object) error {
	for _, id := range k.Columns {
		if err := d.on(self, relationObject(t, id), dependsAuto); err != nil {
			return err
		}
	}
	for _, id := range k.ParentColumns {
		if err := d.on(self, object{classPgClass, uint32(k.Parent), id}, dependsNormal); err != nil {
			return err
		}
	}
	return d.on(self, object{class: classPgClass, id: k.ParentIndex}, dependsNormal)
}

func (d *dependencies) triggers(t *catalog.TableDescriptor) error {
	for i := range t.Triggers {
		g := &t.Triggers[i]
		self := object{class: classPgTrigger, id: g.OID}
		if err := d.on(self, relationObject(t, 0), dependsAuto); err != nil {
			return err
		}
		if err := d.on(self, object{class: classPgProc, id: uint32(g.Function)}, dependsNormal); err != nil {
			return err
		}
		for _, id := range g.Columns {
			if err := d.on(self, relationObject(t, id), dependsNormal); err != nil {
				return err
			}
		}
		if err := d.text(self, nil, catalog.StoredExpr{Text: g.When, Table: t, Trigger: true, Type: types.TBool}); err != nil {
			return err
		}
	}
	return nil
}

func (d *dependencies) policies(t *catalog.TableDescriptor) error {
	for i := range t.Policies {
		p := &t.Policies[i]
		self := object{class: classPgPolicy, id: p.OID}
		if err := d.on(self, relationObject(t, 0), dependsAuto); err != nil {
			return err
		}
		for _, condition := range []string{p.Using, p.Check} {
			bs, err := d.uses(nil, catalog.StoredExpr{Text: condition, Table: t, Type: types.TBool})
			if err != nil {
				return err
			}
			if err := d.all(self, dependsNormal, bs...); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *dependencies) types() error {
	for _, t := range d.Types().All() {
		if t.Relation != nil {
			continue
		}
		self := object{class: classPgType, id: uint32(t.ID)}
		if err := d.on(object{class: classPgType, id: uint32(t.ArrayID)}, self, dependsInternal); err != nil {
			return err
		}
		if t.Kind == types.Composite {
			if err := d.composite(t, self); err != nil {
				return err
			}
			continue
		}
		if err := d.on(self, d.schema(t.Schema), dependsNormal); err != nil {
			return err
		}
		of := []types.Type{t.Parent}
		if rt := t.Type().Ranges(); rt != nil {
			of = append(of, rt.Sub)
		}
		for _, part := range of {
			if err := d.on(self, typeObject(part), dependsNormal); err != nil {
				return err
			}
		}
		if err := d.text(self, nil, catalog.StoredExpr{Text: t.Default, Type: t.Parent}); err != nil {
			return err
		}
		for i := range t.Checks {
			check := object{class: classPgConstraint, id: uint32(t.Checks[i].OID)}
			if err := d.on(check, self, dependsAuto); err != nil {
				return err
			}
			if err := d.text(check, nil, catalog.StoredExpr{Text: t.Checks[i].Expr, Value: d.Types().Complete(t.Parent), Type: types.TBool}); err != nil {
				return err
			}
		}
	}
	return nil
}

// composite emits what a composite type, which is a relation as well, and its attributes depend on.
func (d *dependencies) composite(t *catalog.TypeDescriptor, self object) error {
	relation := object{class: classPgClass, id: uint32(t.RelationID)}
	if err := d.on(relation, self, dependsInternal); err != nil {
		return err
	}
	if err := d.on(self, d.schema(t.Schema), dependsNormal); err != nil {
		return err
	}
	for _, f := range t.Fields {
		if err := d.on(object{classPgClass, relation.id, f.ID}, typeObject(f.Type), dependsNormal); err != nil {
			return err
		}
	}
	return nil
}

func (d *dependencies) routines() error {
	for _, r := range d.Routines().All() {
		self := object{class: classPgProc, id: uint32(r.ID)}
		if err := d.on(self, d.schema(r.Schema), dependsNormal); err != nil {
			return err
		}
		for _, p := range r.Routine().Params {
			if err := d.on(self, typeObject(p.Type), dependsNormal); err != nil {
				return err
			}
			if err := d.text(self, nil, catalog.StoredExpr{Text: p.Default, Type: p.Type}); err != nil {
				return err
			}
		}
		if r.Standard {
			if err := d.text(self, nil, catalog.StoredExpr{Routine: r}); err != nil {
				return err
			}
		}
		if err := d.on(self, typeObject(r.Routine().Ret), dependsNormal); err != nil {
			return err
		}
	}
	return nil
}

func (d *dependencies) textSearch() error {
	for _, t := range d.TextSearch().All() {
		class := classPgTSConfig
		if t.Type == types.OIDRegdictionary {
			class = classPgTSDict
		}
		self := object{class: class, id: uint32(t.ID)}
		if err := d.on(self, d.schema(t.Schema), dependsNormal); err != nil {
			return err
		}
		for _, m := range t.Mappings {
			for _, id := range m.Dictionaries {
				if id < uint32(types.FirstUserOID) {
					continue
				}
				if err := d.on(self, object{class: classPgTSDict, id: id}, dependsNormal); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (d *dependencies) collations() error {
	for _, c := range d.Collations().All() {
		if err := d.on(object{class: classPgCollation, id: uint32(c.ID)}, d.schema(c.Schema), dependsNormal); err != nil {
			return err
		}
	}
	return nil
}
