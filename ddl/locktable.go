package ddl

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// lockModes are the modes of LOCK TABLE that PostgreSQL's own INSERT, UPDATE and DELETE wait for. Readers wait for none of them here: they read
// as of their snapshots.
var lockModes = []string{"SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"}

// locksWriters reports whether LOCK TABLE keeps others from committing changes of the rows. Other modes keep off nothing but changes of the
// schema, for which a transaction's snapshot has no need.
func locksWriters(n *ast.LockTable) bool { return slices.Contains(lockModes, n.Mode) }

// noWait is how long LOCK TABLE … NOWAIT waits: commits that are under way end meanwhile.
const noWait = 20 * time.Millisecond

// beginLock begins LOCK TABLE in a mode that locksWriters: one transaction of a process at a time has such locks, or changes the schema.
func beginLock(n *ast.LockTable) beginChange {
	return func(g *catalog.Guard, ctx context.Context) (ch *catalog.Change, err error) {
		err = boundLock(ctx, n, n.Tables[0].Name, func(ctx context.Context) error {
			ch, err = g.Change(ctx)
			return err
		})
		return ch, err
	}
}

// boundLock calls f, which waits for a lock on a relation, with the time that the statement may wait.
func boundLock(ctx context.Context, n *ast.LockTable, relation string, f func(context.Context) error) error {
	if !n.NoWait {
		return f(ctx)
	}
	short, cancel := context.WithTimeout(ctx, noWait)
	defer cancel()
	err := f(short)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return pgerror.New(pgerror.LockNotAvailable, "could not obtain lock on relation %q", relation)
	}
	return err
}

// lockTable is LOCK TABLE: it closes the tables to the commits of others, as a change that depends on their data does, until the transaction
// ends. The tables of a view are those that it names.
func (r *run) lockTable(ctx context.Context, n *ast.LockTable) error {
	if r.alone {
		return pgerror.New(pgerror.NoActiveSQLTransaction, "LOCK TABLE can only be used in transaction blocks")
	}
	for i := range n.Tables {
		t, err := r.mustFind(ctx, n.Tables[i].TableName)
		if err != nil {
			return err
		}
		if err := r.lockRelation(ctx, t, n); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) lockRelation(ctx context.Context, t *catalog.TableDescriptor, n *ast.LockTable) error {
	switch {
	case t.Kind == catalog.KindTable && !t.Materialized:
	case t.Kind == catalog.KindView:
		return r.lockRead(ctx, t, n)
	case t.Kind == catalog.KindVirtual:
		if locksWriters(n) {
			return pgerror.Unsupported("LOCK TABLE of a system table in this mode", "Lock the tables of users.")
		}
		return nil
	default:
		return pgerror.New(pgerror.WrongObjectType, "cannot lock relation %q", t.Name).WithDetail("This operation is not supported for %ss.", kindWord(t))
	}
	if !locksWriters(n) {
		return nil
	}
	return boundLock(ctx, n, t.Name, func(ctx context.Context) error { return r.ch.Close(ctx, t) })
}

// lockRead locks the tables that a view reads, which its owner must be permitted to lock, or the user if the view has security_invoker.
func (r *run) lockRead(ctx context.Context, view *catalog.TableDescriptor, n *ast.LockTable) error {
	role := view.OwnerOID()
	if view.SecurityInvoker {
		role = r.User
	}
	for _, id := range view.DependsOn {
		t, err := r.r.RelationByID(ctx, id)
		if err != nil {
			return err
		}
		if t == nil || t.Kind != catalog.KindTable && t.Kind != catalog.KindView || t.Materialized {
			continue
		}
		if r.access.As(role).Relation(t, lockPrivileges(n.Mode), false) == 0 {
			return planner.RelationDenied(t)
		}
		if err := r.lockRelation(ctx, t, n); err != nil {
			return err
		}
	}
	return nil
}

// lockPrivileges are the privileges of which one is needed to lock a table.
func lockPrivileges(mode string) acl.Privileges {
	enough := acl.Update | acl.Delete | acl.Truncate
	switch mode {
	case "ACCESS SHARE":
		enough |= acl.Select
	case "ROW EXCLUSIVE":
		enough |= acl.Insert
	}
	return enough
}

// mayLock returns 42501 unless the user may lock the tables in the mode: whoever may read them, in ACCESS SHARE; whoever may change them, in
// every mode; who may insert only, up to ROW EXCLUSIVE.
func (r *run) mayLock(ctx context.Context, n *ast.LockTable) error {
	for i := range n.Tables {
		t, err := r.find(ctx, n.Tables[i].TableName)
		if err != nil {
			return err
		}
		if t != nil && r.access.Relation(t, lockPrivileges(n.Mode), false) == 0 {
			return planner.RelationDenied(t)
		}
	}
	return nil
}
