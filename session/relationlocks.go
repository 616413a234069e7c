package session

import (
	"context"
	"slices"
	"sync"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/sql/ast"
)

// relationLocks are what pg_locks shows of the relations that the open transaction uses. The session's goroutine changes them, any may read.
type relationLocks struct {
	mu   sync.Mutex
	held []catalog.RelationLock // each once, in the order in which they were taken
	// index finds those of held if there are many; nil: there are few.
	index map[catalog.RelationLock]struct{}
	// awaited are those of a schema change that is under way.
	awaited []catalog.RelationLock
}

// fewLocks is the length up to which held is searched from its beginning.
const fewLocks = 24

// take notes the locks of a statement.
func (l *relationLocks) take(locks []catalog.RelationLock) {
	if len(locks) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range locks {
		if l.has(k) {
			continue
		}
		if l.held = append(l.held, k); l.index != nil {
			l.index[k] = struct{}{}
		} else if len(l.held) > fewLocks {
			l.index = make(map[catalog.RelationLock]struct{}, 2*fewLocks)
			for _, k := range l.held {
				l.index[k] = struct{}{}
			}
		}
	}
}

func (l *relationLocks) has(k catalog.RelationLock) bool {
	if l.index != nil {
		_, ok := l.index[k]
		return ok
	}
	return slices.Contains(l.held, k)
}

// await notes the locks of a schema change that begins; nil: it has ended.
func (l *relationLocks) await(locks []catalog.RelationLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaited = locks
}

// rollbackTo forgets the locks that were taken after the first n.
func (l *relationLocks) rollbackTo(n int) {
	if len(l.held) == n {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.index = l.held[:n], nil
	if n == 0 && cap(l.held) > 4*fewLocks {
		l.held = nil
	}
}

// list returns the locks that the session has, and those for which it waits while waits is set.
func (l *relationLocks) list(waits bool) (held, awaited []catalog.RelationLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held = slices.Clone(l.held)
	for _, k := range l.awaited {
		switch {
		case slices.Contains(held, k):
		case waits:
			awaited = append(awaited, k)
		default:
			held = append(held, k)
		}
	}
	return held, awaited
}

// SessionLocks implements catalog.SystemView.
func (v *systemView) SessionLocks() (all []catalog.SessionLocks) {
	if v.deps.Sessions == nil {
		return nil
	}
	v.deps.Sessions(func(s *Session) {
		wait, waits := v.deps.Catalog.WaitOf(s.identity.key.PID)
		row := catalog.SessionLocks{PID: s.identity.key.PID, Database: s.identity.databaseOID}
		row.Held, row.Awaited = s.activity.shown.relations.list(waits && wait.Schema)
		start := s.activity.shown.startTS.Load()
		if start == 0 && len(row.Held)+len(row.Awaited) == 0 {
			return
		}
		if start != 0 && (s.activity.shown.numbered.Load() || s.activity.shown.writes.Load() > 0) {
			row.XID = uint32(start)
		}
		if waits && !wait.Schema {
			row.Held, row.Awaited = atCommit(row.Held, wait.Tables)
		}
		all = append(all, row)
	})
	return all
}

// atCommit divides the locks of a transaction whose commit waits for changes of tables: it waits for the locks with which it has changed them.
func atCommit(held []catalog.RelationLock, tables []uint64) (granted, awaited []catalog.RelationLock) {
	for _, k := range held {
		if k.Mode == catalog.RowExclusiveLock && slices.Contains(tables, uint64(k.OID)) {
			awaited = append(awaited, k)
		} else {
			granted = append(granted, k)
		}
	}
	return granted, awaited
}

// lockRelations runs a schema change and notes its locks: while it runs, and if it is in a block until that ends.
func (c *schemaCommands) lockRelations(ctx context.Context, tree ast.Statement, schema catalog.Resolver, block bool, run func() (string, error)) (string, error) {
	relations := &c.tx.shown.relations
	before, err := ddl.Locks(ctx, tree, schema)
	if err != nil {
		return "", err
	}
	if len(before) > 0 {
		relations.await(before)
		defer relations.await(nil)
	}
	tag, err := run()
	if err != nil || !block {
		return tag, err
	}
	c.tx.changed, c.tx.resolver = c.tx.changed || c.tx.guard.Changed(), nil
	if err := c.tx.begin(ctx); err != nil {
		return "", err
	}
	after, err := ddl.Locks(ctx, tree, c.tx.resolver) // It may have made relations.
	relations.take(before)
	relations.take(after)
	return tag, err
}
