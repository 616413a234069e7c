package pgcatalog

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// keyActionLetters are confupdtype and confdeltype.
var keyActionLetters = map[catalog.KeyAction]byte{
	catalog.KeyNoAction: 'a', catalog.KeyRestrict: 'r', catalog.KeyCascade: 'c', catalog.KeySetNull: 'n', catalog.KeySetDefault: 'd',
}

// foreignKeyDefinition is a foreign key as ADD CONSTRAINT takes it.
func foreignKeyDefinition(ctx context.Context, r catalog.Resolver, t *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor) string {
	parent, err := r.RelationByID(ctx, k.Parent)
	if err != nil || parent == nil {
		return ""
	}
	columns := func(t *catalog.TableDescriptor, ids []uint32) string {
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = columnName(t, id)
		}
		return "(" + strings.Join(names, ", ") + ")"
	}
	var b strings.Builder
	b.WriteString("FOREIGN KEY " + columns(t, k.Columns) + " REFERENCES " + relationName(ctx, r, parent) + columns(parent, k.ParentColumns))
	if k.MatchFull {
		b.WriteString(" MATCH FULL")
	}
	if k.OnUpdate != catalog.KeyNoAction {
		b.WriteString(" ON UPDATE " + k.OnUpdate.String())
	}
	if k.OnDelete != catalog.KeyNoAction {
		b.WriteString(" ON DELETE " + k.OnDelete.String())
		if k.DeleteColumns != nil {
			b.WriteString(" " + columns(t, k.DeleteColumns))
		}
	}
	b.WriteString(deferral(constraint{key: k}))
	if k.NotValid {
		b.WriteString(" NOT VALID")
	}
	return b.String()
}

// foreignKeys lists the foreign keys of t as pg_constraint has them: each is followed by those that stand for it at the tables below a partitioned
// parent.
func foreignKeys(ctx context.Context, r catalog.Resolver, t *catalog.TableDescriptor) ([]*catalog.ForeignKeyDescriptor, error) {
	var all []*catalog.ForeignKeyDescriptor
	for i := range t.ForeignKeys {
		k := &t.ForeignKeys[i]
		all = append(all, k)
		at := map[uint64]*catalog.ForeignKeyDescriptor{k.Parent: k} // by parent
		for _, p := range k.Parts {
			part, err := r.RelationByID(ctx, p.Table)
			if err != nil {
				return nil, err
			}
			if part == nil || part.PartitionOf == nil || at[part.PartitionOf.Parent] == nil {
				continue // As of a snapshot between changes of the catalog.
			}
			above := at[part.PartitionOf.Parent]
			parent, err := r.RelationByID(ctx, above.Parent)
			if err != nil {
				return nil, err
			}
			own := *above
			own.OID, own.Name, own.Parent, own.Inherited, own.Comment, own.Parts = p.OID, p.Name, part.ID, above.OID, "", nil
			own.ParentColumns = nil
			for _, id := range above.ParentColumns {
				own.ParentColumns = append(own.ParentColumns, part.Columns[part.InheritedColumn(parent.ColumnByID(id))].ID)
			}
			if ix := part.PartOfIndex(above.ParentIndex); ix != nil {
				own.ParentIndex = ix.OID
			}
			at[part.ID] = &own
			all = append(all, &own)
		}
	}
	return all, nil
}

// foreignKeyRow emits the row of pg_constraint.
func (s *scan) foreignKeyRow(t *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor) error {
	parent, err := s.RelationByID(s.ctx, k.Parent)
	if err != nil || parent == nil {
		return err
	}
	numbers := func(ids []uint32) []int64 {
		var out []int64
		for _, id := range ids {
			out = append(out, int64(id))
		}
		return out
	}
	var pf, pp, ff []int64
	for i := range k.Columns {
		p, f := parent.Columns[parent.Ordinal(k.ParentColumns[i])].Type, t.Columns[t.Ordinal(k.Columns[i])].Type
		pf, pp, ff = append(pf, equalityOf(p, f)), append(pp, equalityOf(p, p)), append(ff, equalityOf(f, f))
	}
	set, match := types.Null, byte('s')
	if k.DeleteColumns != nil {
		set = int2s(numbers(k.DeleteColumns))
	}
	if k.MatchFull {
		match = 'f'
	}
	return s.emit(
		col{"oid", oid(k.OID)}, col{"conname", text(k.Name)}, col{"connamespace", oid(schemaOID(s.Resolver, t.Schema))}, col{"contype", letter('f')},
		col{"condeferrable", boolean(k.Deferrable)}, col{"condeferred", boolean(k.Deferred)}, col{"convalidated", boolean(!k.NotValid)},
		col{"conrelid", oid(t.OID())}, col{"conindid", oid(k.ParentIndex)}, col{"confrelid", oid(parent.OID())},
		col{"confupdtype", letter(keyActionLetters[k.OnUpdate])}, col{"confdeltype", letter(keyActionLetters[k.OnDelete])},
		col{"confmatchtype", letter(match)}, col{"conislocal", boolean(k.Inherited == 0)}, col{"coninhcount", num(boolNumber(k.Inherited != 0))}, col{"conparentid", oid(k.Inherited)}, col{"connoinherit", boolean(k.Inherited == 0 && !t.IsPartitioned())},
		col{"conkey", int2s(numbers(k.Columns))}, col{"confkey", int2s(numbers(k.ParentColumns))},
		col{"conpfeqop", oids(pf)}, col{"conppeqop", oids(pp)}, col{"conffeqop", oids(ff)}, col{"confdelsetcols", set},
	)
}

// equalityOf is the OID of the operator by which a foreign key compares two types: that of the first, where they have none in common.
func equalityOf(a, b types.Type) int64 {
	for _, pair := range [][2]types.Type{{a, b}, {a, a}} {
		left, right := comparedAs(pair[0]), comparedAs(pair[1])
		for _, row := range operatorsNamed("=") {
			ops := pgdata.Operators()
			if ops.Number(row, "oprleft") == uint32(left) && ops.Number(row, "oprright") == uint32(right) {
				return int64(ops.OIDs[row])
			}
		}
	}
	o, err := builtin.ResolveOperator("=", a.Underlying(), a.Underlying())
	if err != nil || len(o.Args) == 0 || o.Args[0].OID == a.Underlying().OID {
		return 0
	}
	return equalityOf(o.Args[0], o.Args[0])
}

// comparedAs is the type whose operators compare values of t.
func comparedAs(t types.Type) types.OID {
	t = t.Underlying()
	switch {
	case t.OID == types.OIDVarchar:
		return types.OIDText
	case t.IsEnum():
		return types.OIDAnyEnum
	}
	return t.OID
}

// referencedConstraint returns the constraint on which a foreign key relies; nil if that is an index without one.
func referencedConstraint(parent *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor) *catalog.IndexDescriptor {
	if ix := parent.IndexByOID(k.ParentIndex); ix != nil && ix.Constraint {
		return ix
	}
	return nil
}

// referentialRows emits information_schema.referential_constraints.
func referentialRows(s *scan) error {
	return s.eachConstraint(func(t *catalog.TableDescriptor, c constraint) error {
		k := c.key
		if k == nil || !s.changes(t) {
			return nil
		}
		parent, err := s.RelationByID(s.ctx, k.Parent)
		if err != nil || parent == nil {
			return err
		}
		match := "NONE"
		if k.MatchFull {
			match = "FULL"
		}
		cols := append(s.named("constraint", t.Schema, c.name), col{"match_option", text(match)},
			col{"update_rule", text(k.OnUpdate.String())}, col{"delete_rule", text(k.OnDelete.String())})
		if ix := referencedConstraint(parent, k); ix != nil {
			cols = append(cols, s.named("unique_constraint", parent.Schema, ix.Name)...)
		}
		return s.emit(cols...)
	})
}

// foreignKeyColumnRows emits a foreign key's rows of information_schema.key_column_usage.
func (s *scan) foreignKeyColumnRows(t *catalog.TableDescriptor, c constraint) error {
	parent, err := s.RelationByID(s.ctx, c.key.Parent)
	if err != nil || parent == nil {
		return err
	}
	ix := parent.IndexByOID(c.key.ParentIndex)
	for i, id := range c.key.Columns {
		if !s.showsColumn(t, &t.Columns[t.Ordinal(id)]) {
			continue
		}
		at := slices.IndexFunc(ix.Columns, func(c2 catalog.IndexColumn) bool { return c2.ColumnID == c.key.ParentColumns[i] })
		if err := s.constrainedColumn(t, c, id, col{"ordinal_position", num(i + 1)}, col{"position_in_unique_constraint", num(at + 1)}); err != nil {
			return err
		}
	}
	return nil
}
