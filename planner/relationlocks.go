package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
)

// relationLocks are the modes in which PostgreSQL locks the relations of the plan: the ones that it changes, ROW EXCLUSIVE; those that it reads
// with FOR UPDATE and its kin, and those whose foreign keys it checks, ROW SHARE; the others ACCESS SHARE.
func (p *Plan) relationLocks() []catalog.RelationLock {
	var locks []catalog.RelationLock
	add := func(t *catalog.TableDescriptor, mode catalog.LockMode, indexes bool) {
		more := []catalog.RelationLock{{OID: t.OID(), Mode: mode}}
		if indexes && t.Kind == catalog.KindTable {
			more = catalog.LockWithIndexes(nil, t, mode)
		}
		for _, l := range more {
			if !slices.Contains(locks, l) {
				locks = append(locks, l)
			}
		}
	}
	needed := map[uint64]bool{}
	for _, n := range p.Needs {
		t := n.Relation
		if t == nil {
			continue
		}
		needed[t.ID] = true
		changes := acl.Update | acl.Delete
		writes := slices.Contains(p.Writes, t) || t.Kind == catalog.KindView
		switch {
		case n.Privileges&changes != 0 && writes && p.Tag != "SELECT":
			add(t, catalog.RowExclusiveLock, true)
		case n.Privileges&acl.Insert != 0:
			add(t, catalog.RowExclusiveLock, false)
		case n.Privileges&changes != 0 && p.Locks != "":
			add(t, catalog.RowShareLock, true)
		default:
			add(t, catalog.AccessShareLock, true)
		}
	}
	for _, t := range p.Writes {
		if !needed[t.ID] && t.PartitionOf == nil {
			needed[t.ID] = true
			add(t, catalog.RowShareLock, true)
		}
	}
	for _, t := range p.Relations {
		switch {
		case needed[t.ID]:
		case t.PartitionOf == nil:
			add(t, catalog.AccessShareLock, true)
		default: // The partitions of a table that is listed before them.
			for _, mode := range modesOf(locks, uint32(t.PartitionOf.Parent)) {
				add(t, mode, mode != catalog.RowExclusiveLock || p.Tag != "INSERT")
			}
		}
	}
	return locks
}

// modesOf lists the modes in which a relation is locked.
func modesOf(locks []catalog.RelationLock, oid uint32) (modes []catalog.LockMode) {
	for _, l := range locks {
		if l.OID == oid {
			modes = append(modes, l.Mode)
		}
	}
	return modes
}
