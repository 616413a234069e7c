package pgcatalog

import (
	"fmt"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// PostgreSQL carries foreign keys out by triggers of the tables, which pg_trigger shows: these rows stand for what the executor does.

// keyTrigger is one of the triggers of a foreign key.
type keyTrigger struct {
	table, other *catalog.TableDescriptor
	constraint   uint32
	kind         uint32 // its place among the constraint's
	parent       uint32 // the trigger of the partitioned table above, 0 for none
	function     int64
	event        int64 // of tgtype
	action       bool  // of the referenced table
	deferrable   bool
	key          *catalog.ForeignKeyDescriptor
}

// The kinds of triggers of a foreign key.
const (
	keyActionDelete uint32 = iota
	keyActionUpdate
	keyCheckInsert
	keyCheckUpdate
)

// The functions of the checks in pg_proc, and those of the actions of deletes, by action; the one of updates follows each.
const (
	checkInsertFunction = 1644
	checkUpdateFunction = 1645
)

var keyActionFunctions = map[catalog.KeyAction]int64{
	catalog.KeyCascade: 1646, catalog.KeyRestrict: 1648, catalog.KeySetNull: 1650, catalog.KeySetDefault: 1652, catalog.KeyNoAction: 1654,
}

// keyTriggerOID is the OID of a trigger of a constraint: beyond those of objects.
func keyTriggerOID(constraint, kind uint32) uint32 { return 1<<31 | constraint<<2 | kind }

// keyTriggerRows are the rows of pg_trigger for the foreign keys of a table.
func (s *scan) keyTriggerRows(t *catalog.TableDescriptor) error {
	for i := range t.ForeignKeys {
		k := &t.ForeignKeys[i]
		parent, err := s.RelationByID(s.ctx, k.Parent)
		if err != nil || parent == nil {
			return err
		}
		if k.Inherited == 0 {
			if err := s.keyActionRows(t, parent, k); err != nil {
				return err
			}
		}
		for _, kind := range []uint32{keyCheckInsert, keyCheckUpdate} {
			g := keyTrigger{table: t, other: parent, constraint: k.OID, kind: kind, function: checkInsertFunction, event: 4, deferrable: true, key: k}
			if kind == keyCheckUpdate {
				g.function, g.event = checkUpdateFunction, 16
			}
			if k.Inherited != 0 {
				g.parent = keyTriggerOID(k.Inherited, kind)
			}
			if err := s.keyTriggerRow(&g); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyActionRows are those of the referenced table, and of the tables below it.
func (s *scan) keyActionRows(child, parent *catalog.TableDescriptor, k *catalog.ForeignKeyDescriptor) error {
	at := map[uint64]uint32{parent.ID: k.OID} // the constraint of each table
	for _, part := range k.Parts {
		at[part.Table] = part.OID
	}
	tables := []uint64{parent.ID}
	for _, part := range k.Parts {
		tables = append(tables, part.Table)
	}
	for _, id := range tables {
		t, err := s.RelationByID(s.ctx, id)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		for kind, action := range []catalog.KeyAction{keyActionDelete: k.OnDelete, keyActionUpdate: k.OnUpdate} {
			g := keyTrigger{
				table: t, other: child, constraint: at[id], kind: uint32(kind), function: keyActionFunctions[action] + int64(kind), event: 8, action: true,
				deferrable: action == catalog.KeyNoAction, key: k,
			}
			if uint32(kind) == keyActionUpdate {
				g.event = 16
			}
			if above := t.PartitionOf; id != parent.ID && above != nil {
				g.parent = keyTriggerOID(at[above.Parent], uint32(kind))
			}
			if err := s.keyTriggerRow(&g); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scan) keyTriggerRow(g *keyTrigger) error {
	id, side := keyTriggerOID(g.constraint, g.kind), "c"
	if g.action {
		side = "a"
	}
	child := g.table
	if g.action {
		child = g.other
	}
	declared, err := catalog.DeclaredKey(s.ctx, s.Resolver, child, g.key)
	if err != nil {
		return err
	}
	off, err := catalog.KeyOff(s.ctx, s.Resolver, g.table, declared.Key.OID)
	if err != nil {
		return err
	}
	state := catalog.TriggerEnabled
	if off {
		state = catalog.TriggerDisabled
	}
	return s.emit(col{"oid", oid(id)}, col{"tgrelid", oid(g.table.OID())}, col{"tgparentid", oid(g.parent)},
		col{"tgname", text(fmt.Sprintf("RI_ConstraintTrigger_%s_%d", side, id))}, col{"tgfoid", oid(uint32(g.function))},
		col{"tgtype", types.Int(1 | g.event)}, col{"tgenabled", letter(byte(state))}, col{"tgisinternal", boolean(true)},
		col{"tgconstrrelid", oid(g.other.OID())}, col{"tgconstrindid", oid(g.key.ParentIndex)}, col{"tgconstraint", oid(g.constraint)},
		col{"tgdeferrable", boolean(g.deferrable && g.key.Deferrable)}, col{"tginitdeferred", boolean(g.deferrable && g.key.Deferred)},
		col{"tgnargs", types.Int(0)}, col{"tgattr", vector(types.TInt2vector, nil)}, col{"tgargs", types.Bytes(nil)}, col{"tgqual", types.Null},
		col{"tgoldtable", types.Null}, col{"tgnewtable", types.Null})
}
