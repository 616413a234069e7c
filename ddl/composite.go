package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// createComposite is CREATE TYPE … AS (…).
func (r *run) createComposite(ctx context.Context, n *ast.CreateType) error {
	name := pathName(n.Pos, n.Name)
	schema, err := r.permanentSchema(ctx, name)
	if err != nil {
		return err
	}
	if taken, err := r.nameTaken(ctx, schema, name.Name); err != nil || taken {
		return errorOr(err, relationExists(name.Name))
	}
	d, err := r.newType(ctx, name, types.Composite)
	if err != nil {
		return err
	}
	if d.RelationID, err = r.ch.NewID(ctx); err != nil {
		return err
	}
	d.NextField = 1
	for i := range n.Attributes {
		if err := r.addAttribute(d, &n.Attributes[i], n.Position()); err != nil {
			return err
		}
	}
	return r.addType(ctx, d)
}

// addAttribute adds an attribute to a composite type that is about to be stored.
func (r *run) addAttribute(d *catalog.TypeDescriptor, a *ast.ColumnTypeDef, pos int) error {
	if fieldNamed(d, a.Name) >= 0 {
		return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" specified more than once", a.Name)
	}
	t, err := r.attributeType(d, a, pos)
	if err != nil {
		return err
	}
	if d.NextField > maxColumns {
		return pgerror.New(pgerror.TooManyColumns, "tables can have at most %d columns", maxColumns)
	}
	d.Fields = append(d.Fields, types.Field{ID: d.NextField, Name: a.Name, Type: t})
	d.NextField++
	return nil
}

func (r *run) attributeType(d *catalog.TypeDescriptor, a *ast.ColumnTypeDef, pos int) (types.Type, error) {
	t, err := planner.ResolveType(&a.Type, r.r)
	if err != nil {
		return t, err
	}
	if err := requireStorable(a.Name, t, a.Type.Position()); err != nil {
		return t, err
	}
	if holdsType(t, types.OID(d.ID)) {
		return t, pgerror.New(pgerror.InvalidTableDefinition, "composite type %s cannot be made a member of itself", d.Name)
	}
	if err := requireLasting(d.Schema, t); err != nil {
		return t, err
	}
	if t, err = planner.CollateType(t, a.Collation, r.r, pos); err != nil {
		return t, err
	}
	return t, r.mayUseType(t)
}

func fieldNamed(d *catalog.TypeDescriptor, name string) int {
	return slices.IndexFunc(d.Fields, func(f types.Field) bool { return f.Name == name })
}

// holdsType reports whether t is a type, or has values of it within its values.
func holdsType(t types.Type, oid types.OID) bool {
	for t.IsDomain() {
		if t.OID == oid {
			return true
		}
		t = t.Def.Parent
	}
	if elem := t.Elem(); elem.Valid() {
		return holdsType(elem, oid)
	}
	if rt := t.Ranges(); rt != nil && t.OID != oid {
		return rt.Range.OID == oid || holdsType(rt.Sub, oid)
	}
	if t.IsComposite() && t.OID != oid {
		return slices.ContainsFunc(t.Def.Fields, func(f types.Field) bool { return holdsType(f.Type, oid) })
	}
	return t.OID == oid
}

// composite finds the composite type that a statement names, and fails unless the user owns it.
func (r *run) composite(ctx context.Context, name ast.TableName) (*catalog.TypeDescriptor, error) {
	d, err := r.alteredType(ctx, name)
	if pg, ok := err.(*pgerror.Error); ok && pg.Code == pgerror.WrongObjectType && pg.Hint == useAlterTable {
		return nil, pgerror.New(pgerror.WrongObjectType, "\"%s\" is not a composite type", name.Name)
	}
	if pg, ok := err.(*pgerror.Error); ok && pg.Code == pgerror.UndefinedObject {
		return nil, pgerror.New(pgerror.UndefinedTable, "relation \"%s\" does not exist", name.Name)
	}
	switch {
	case err != nil:
		return nil, err
	case d.Kind != types.Composite:
		return nil, pgerror.New(pgerror.UndefinedTable, "relation \"%s\" does not exist", d.Name)
	}
	return d, nil
}

// alterComposite is ALTER TYPE with changes of attributes.
func (r *run) alterComposite(ctx context.Context, n *ast.AlterType) error {
	d, err := r.composite(ctx, pathName(n.Pos, n.Name))
	if err != nil {
		return err
	}
	cascade, rows := true, false
	for i := range n.Changes {
		cascade = cascade && n.Changes[i].Cascade
		rows = rows || n.Changes[i].Action != "ADD"
	}
	tables, err := r.typedTables(ctx, d, cascade, rows)
	if err != nil {
		return err
	}
	for i := range n.Changes {
		c := &n.Changes[i]
		if c.Action == "DROP" && c.IfExists && fieldNamed(d, c.Attribute.Name) < 0 {
			r.noticeAbsent("column %q of relation %q does not exist, skipping", c.Attribute.Name, d.Name)
			for _, t := range tables {
				r.noticeAbsent("column %q of relation %q does not exist, skipping", c.Attribute.Name, t.Name)
			}
			continue
		}
		next := d.Clone()
		switch place := fieldNamed(d, c.Attribute.Name); {
		case c.Action == "ADD":
			if place >= 0 {
				return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", c.Attribute.Name, d.Name)
			}
			err = r.addAttribute(next, &c.Attribute, c.Position())
		case place < 0:
			return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", c.Attribute.Name, d.Name)
		case c.Action == "DROP":
			if err := r.requireUnused(ctx, d, "DROP ATTRIBUTE"); err != nil {
				return err
			}
			next.Fields = slices.Delete(next.Fields, place, place+1)
		default:
			if err := r.requireNoColumns(ctx, d); err != nil {
				return err
			}
			next.Fields[place].Type, err = r.attributeType(d, &c.Attribute, c.Position())
		}
		if err != nil {
			return err
		}
		if err := r.changeComposite(ctx, d, next); err != nil {
			return err
		}
		if c.Action == "DROP" {
			if err := r.dropFieldUses(ctx, c.Attribute.Name, "column "+c.Attribute.Name+" of composite type "+d.Name, c.Cascade); err != nil {
				return err
			}
		}
		if err := r.alterTyped(ctx, tables, columnChange(c)); err != nil {
			return err
		}
		if d = r.r.Types().ByOID(types.OID(d.ID)); d == nil {
			return pgerror.New(pgerror.SerializationFailure, "could not serialize access due to concurrent update")
		}
	}
	return nil
}

// changeComposite stores a composite type, and bars the statements that were planned with its former attributes from committing.
func (r *run) changeComposite(ctx context.Context, d, next *catalog.TypeDescriptor) error {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Kind == catalog.KindTable && slices.ContainsFunc(t.Columns, func(c catalog.ColumnDescriptor) bool { return holdsType(c.Type, types.OID(d.ID)) }) {
			if err := r.ch.Update(ctx, t, t.Clone(), false); err != nil {
				return err
			}
		}
	}
	return r.addType(ctx, next)
}

// requireNoColumns fails if values of the type are stored, in rows or in keys of indexes, whose fields cannot be converted.
func (r *run) requireNoColumns(ctx context.Context, d *catalog.TypeDescriptor) error {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		for i := range t.Computed {
			c := &t.Computed[i]
			at := slices.IndexFunc(t.Indexes, func(ix catalog.IndexDescriptor) bool { return holdsColumn(&ix, c.ID) })
			if at >= 0 && holdsType(c.Type, types.OID(d.ID)) {
				return pgerror.New(pgerror.FeatureNotSupported, "cannot alter type \"%s\" because index \"%s\" uses it", d.Name, t.Indexes[at].Name)
			}
		}
	}
	return r.eachHolder(ctx, d, func(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) error {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot alter type \"%s\" because column \"%s.%s\" uses it", d.Name, t.Name, c.Name)
	})
}

// requireUnused fails if an index orders its entries by the attributes of the type.
func (r *run) requireUnused(ctx context.Context, d *catalog.TypeDescriptor, what string) error {
	return r.eachHolder(ctx, d, func(t *catalog.TableDescriptor, c *catalog.ColumnDescriptor) error {
		if !inAnyKey(t, c.ID) {
			return nil
		}
		return pgerror.Unsupported(what+" of a type of which column "+t.Name+"."+c.Name+" is indexed", "Drop the index first.")
	})
}

func inAnyKey(t *catalog.TableDescriptor, id uint32) bool {
	return holdsColumn(&t.Primary, id) || slices.ContainsFunc(t.Indexes, func(ix catalog.IndexDescriptor) bool { return holdsColumn(&ix, id) })
}

// eachHolder calls f with each column of a table that has values of a type within, first with its arrays.
func (r *run) eachHolder(ctx context.Context, d *catalog.TypeDescriptor, f func(*catalog.TableDescriptor, *catalog.ColumnDescriptor) error) error {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, arrays := range []bool{true, false} {
		for _, t := range all {
			for i := range t.Columns {
				typ := t.Columns[i].Type
				if t.Kind != catalog.KindTable || (typ.OID == types.OID(d.ArrayID)) != arrays || !holdsType(typ, types.OID(d.ID)) {
					continue
				}
				if err := f(t, &t.Columns[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// renameAttribute is ALTER TYPE … RENAME ATTRIBUTE.
func (r *run) renameAttribute(ctx context.Context, n *ast.RenameAttribute) error {
	d, err := r.composite(ctx, pathName(n.Pos, n.Name))
	if err != nil {
		return err
	}
	place := fieldNamed(d, n.From)
	switch {
	case place < 0:
		return pgerror.New(pgerror.UndefinedColumn, "column \"%s\" does not exist", n.From)
	case fieldNamed(d, n.To) >= 0:
		return pgerror.New(pgerror.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", n.To, d.Name)
	}
	tables, err := r.typedTables(ctx, d, n.Cascade, false)
	if err != nil {
		return err
	}
	next := d.Clone()
	next.Fields[place].Name = n.To
	if err := r.changeComposite(ctx, d, next); err != nil {
		return err
	}
	if err := r.alterTyped(ctx, tables, &ast.RenameColumn{Pos: n.Pos, From: n.From, To: n.To}); err != nil {
		return err
	}
	return r.requireFieldUnnamed(ctx, n.From, "column "+n.From+" of composite type "+d.Name)
}
