package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// nameRowType has stored expressions name the row type of a relation that is about to be renamed. It returns the relation as it is then.
func (r *run) nameRowType(ctx context.Context, t *catalog.TableDescriptor, schema, name string) (*catalog.TableDescriptor, error) {
	row := r.r.Types().RowType(t)
	if row == nil {
		return t, nil
	}
	if err := r.rewriteUses(ctx, castsChanged(row, func(c *ast.Cast) { c.Type.Name = []string{schema, name} })); err != nil {
		return nil, err
	}
	return r.current(ctx, t)
}

// requireNoRowValues fails if values of the relation's row type are stored, which a statement that changes the rows would not change.
func (r *run) requireNoRowValues(ctx context.Context, t *catalog.TableDescriptor) error {
	row := r.r.Types().RowType(t)
	if row == nil {
		return nil
	}
	return r.eachHolder(ctx, row, func(holder *catalog.TableDescriptor, c *catalog.ColumnDescriptor) error {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot alter table \"%s\" because column \"%s.%s\" uses its row type", t.Name, holder.Name, c.Name)
	})
}

// requireNoRowKeys fails if an index orders its entries by rows of the relation.
func (r *run) requireNoRowKeys(ctx context.Context, t *catalog.TableDescriptor, what string) error {
	if row := r.r.Types().RowType(t); row != nil {
		return r.requireUnused(ctx, row, what)
	}
	return nil
}

// requireNotWithin fails if values of a type that a column is to have contain rows of the column's own relation.
func (r *run) requireNotWithin(t *catalog.TableDescriptor, of types.Type) error {
	if row, _ := t.RowType(); row != 0 && t.ID != 0 && holdsType(of, row) {
		return pgerror.New(pgerror.InvalidTableDefinition, "composite type %s cannot be made a member of itself", t.Name)
	}
	return nil
}

// requireLasting fails if a column of a relation that is not temporary is to have a type that ends with the session.
func requireLasting(schema string, t types.Type) error {
	if catalog.IsTemporary(schema) || !holdsTemporary(t) {
		return nil
	}
	return pgerror.Unsupported("the row type of a temporary table in what is not temporary", "Create a type with CREATE TYPE … AS, and use that.")
}

// holdsTemporary reports whether values of t contain rows of a temporary relation.
func holdsTemporary(t types.Type) bool {
	for t.IsDomain() {
		t = t.Def.Parent
	}
	if elem := t.Elem(); elem.Valid() {
		return holdsTemporary(elem)
	}
	if rt := t.Ranges(); rt != nil {
		return holdsTemporary(rt.Sub)
	}
	return t.IsComposite() && (catalog.IsTemporary(t.Def.Schema) || slices.ContainsFunc(t.Def.Fields, func(f types.Field) bool { return holdsTemporary(f.Type) }))
}

// rowTypeUses are what depends on the row type of a relation that is to be dropped, views and what is dropped with it apart.
type rowTypeUses struct {
	row  *catalog.TypeDescriptor
	uses *typeDropping
}

// addRowTypeUses finds what depends on the row types of the targets and dependents. Views become dependents.
func (d *dropping) addRowTypeUses(ctx context.Context) error {
	for i := 0; i < len(d.targets)+len(d.dependents); i++ {
		t := slices.Concat(d.targets, d.dependents)[i]
		row := d.r.r.Types().RowType(t)
		if row == nil {
			continue
		}
		found, err := d.r.usesOf(ctx, row)
		if err != nil {
			return err
		}
		found.columns = slices.DeleteFunc(found.columns, func(u columnUse) bool { return d.has(u.table.ID) })
		others := found.others
		found.others = nil
		for _, u := range others {
			switch {
			case d.has(u.relation.ID):
			case u.relation.HasQuery():
				if err := d.addDependent(ctx, u.relation, d.r.describe(ctx, u.relation)+" depends on type "+row.Name); err != nil {
					return err
				}
			default:
				found.others = append(found.others, u)
			}
		}
		if lines := found.describe(onType(row)); len(lines) > 0 {
			d.why = append(d.why, lines...)
			d.rows = append(d.rows, rowTypeUses{row, found})
		}
	}
	return nil
}

// dropRowTypeUses drops what depends on the row types, and returns what is dropped then as run found it.
func (d *dropping) dropRowTypeUses(ctx context.Context) (*dropping, error) {
	rest := newDropping(d.r)
	rest.others, rest.quiet = d.others, d.quiet
	for _, u := range d.rows {
		rest.others = append(rest.others, u.uses.describe(nil)...)
		if err := d.r.dropDependents(ctx, u.uses); err != nil {
			return nil, err
		}
	}
	for _, t := range d.targets {
		now, err := d.r.r.RelationByID(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		if now != nil {
			rest.addTarget(now)
		}
	}
	return rest, nil
}
