package catalog

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// gate excludes commits and schema changes of this process from each other, table by table. mu is held for a few map
// lookups only.
type gate struct {
	mu struct {
		sync.Mutex
		tables map[uint64]*tableGate // those with commits in flight, or closed
	}
}

// tableGate is one table's part; guarded by gate.mu.
type tableGate struct {
	inFlight int
	closedBy *Change
	// changed is closed when inFlight drops to 0 or the gate opens; nil if nothing waits for it.
	changed chan struct{}
}

// wake makes the waiters check the gate again.
func (t *tableGate) wake() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// wait returns a channel that is closed at the next change.
func (t *tableGate) wait() <-chan struct{} {
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.changed
}

// close shuts the table to all commits but ch's and waits until those in flight have left.
func (g *gate) close(ctx context.Context, ch *Change, id uint64) error {
	for {
		g.mu.Lock()
		t := g.mu.tables[id]
		if t == nil {
			t = &tableGate{}
			g.mu.tables[id] = t
		}
		if t.closedBy == nil {
			t.closedBy = ch
		}
		if t.closedBy == ch && t.inFlight == 0 {
			g.mu.Unlock()
			return nil
		}
		changed := t.wait()
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err() // The change opens at its end what it has closed.
		}
	}
}

// open admits writers again.
func (g *gate) open(ch *Change, ids []uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if t := g.mu.tables[id]; t != nil && t.closedBy == ch {
			t.closedBy = nil
			t.wake()
			if t.inFlight == 0 {
				delete(g.mu.tables, id)
			}
		}
	}
}

// await returns once no other change than own has one of the tables closed.
func (g *gate) await(ctx context.Context, c *Catalog, who waiter, writes []tableWrite, own *Change) error {
	changed, relation := g.closed(writes, own)
	if changed == nil {
		return nil
	}
	ids := tableIDs(writes)
	who.tables = ids
	who.blockers = func() (sessions []uint32) {
		g.eachCloser(ids, own, func(ch *Change) { sessions = append(sessions, ch.session) })
		return sessions
	}
	w := c.watch(ctx, who, relation, func() []tso.Timestamp { return g.closers(ids, own) })
	defer w.stop()
	for changed != nil {
		if err := w.until(ctx, changed, 0); err != nil {
			return err
		}
		changed, w.relation = g.closed(writes, own)
	}
	return nil
}

// closed returns the channel to wait on while one of the tables is closed, and the name of that table; else nil.
func (g *gate) closed(writes []tableWrite, own *Change) (changed <-chan struct{}, relation string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range writes {
		if t := g.mu.tables[writes[i].table.ID]; t != nil && t.closedBy != nil && t.closedBy != own {
			return t.wait(), writes[i].table.Name
		}
	}
	return nil, ""
}

// closers lists the transactions of others that have one of the tables closed.
func (g *gate) closers(ids []uint64, own *Change) (txns []tso.Timestamp) {
	g.eachCloser(ids, own, func(ch *Change) { txns = append(txns, ch.id) })
	return txns
}

// eachCloser calls f with the changes of others that have one of the tables closed.
func (g *gate) eachCloser(ids []uint64, own *Change, f func(*Change)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if t := g.mu.tables[id]; t != nil && t.closedBy != nil && t.closedBy != own {
			f(t.closedBy)
		}
	}
}

// enter admits a commit to all its tables, or to none.
func (g *gate) enter(c *Catalog, writes []tableWrite, own *Change) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	// The published schema is read under mu: it is replaced before the gate opens.
	current := c.current.Load()
	for i := range writes {
		w := &writes[i]
		t := g.mu.tables[w.table.ID]
		touched, ok := own.permits(w.table)
		if !touched {
			ok = (t == nil || t.closedBy == nil || t.closedBy == own) && current != nil && current.permits(w.table)
		}
		if !ok {
			return &SchemaChangedError{Table: w.table.ID, Name: w.table.Name}
		}
	}
	for i := range writes {
		id := writes[i].table.ID
		t := g.mu.tables[id]
		if t == nil {
			t = &tableGate{}
			g.mu.tables[id] = t
		}
		t.inFlight++
	}
	return nil
}

// leave reverses enter.
func (g *gate) leave(writes []tableWrite) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range writes {
		id := writes[i].table.ID
		t := g.mu.tables[id]
		if t.inFlight--; t.inFlight == 0 {
			t.wake()
			if t.closedBy == nil {
				delete(g.mu.tables, id)
			}
		}
	}
}

// permits reports whether a transaction planned under planned may commit under s.
func (s *schemaSnapshot) permits(planned *TableDescriptor) bool {
	t := s.byID[planned.ID]
	return t != nil && t.WriterVersion == planned.WriterVersion
}

// tableWrite is a table that a transaction wrote, as of the plan, and the number of rows; or a table that a serializable
// transaction read.
type tableWrite struct {
	table *TableDescriptor
	rows  int64
}

// tableIDs lists the tables of writes.
func tableIDs(writes []tableWrite) []uint64 {
	ids := make([]uint64, len(writes))
	for i := range writes {
		ids[i] = writes[i].table.ID
	}
	return ids
}

// Guard excludes a session's transactions and schema changes from each other; the session resets
// it for every transaction. It implements percolator.CommitPermit. Not safe for concurrent use.
//
//	Reset(txn)     begins
//	Writes(t,n)    for every table written
//	Reads(t…)      for those read by a serializable transaction
//	Change(ctx)    when the schema is to be changed
//	RollbackTo(m)  after a rollback to the savepoint at which Mark returned m
//	Wait(ctx)      before Commit, so that commits do not fail on a gate that is about to open
//	Commit(ctx)    acquires the permit to commit, and commits
//	Done(ts,err)   after Rollback
type Guard struct {
	// LockTimeout bounds each wait for schema changes of others; 0: only the context does.
	LockTimeout time.Duration
	// Session is the process id of the session whose transactions are guarded (WaitOf); 0: none.
	Session uint32
	// Temporary is the session's schema of temporary relations; nil: it has none.
	Temporary *Temporary

	catalog *Catalog
	txn     *percolator.Txn
	writes  []tableWrite
	change  *Change
	// permitted: the commit is allowed, up to maxCommitTS (0: any).
	permitted   bool
	maxCommitTS tso.Timestamp
	look        *look // that allowed the commit (Shared only)
	buf         [4]tableWrite
}

var _ percolator.CommitPermit = (*Guard)(nil)

// NewGuard makes a guard without a transaction.
func (c *Catalog) NewGuard() *Guard {
	return &Guard{catalog: c}
}

// Reset begins to guard txn. It rolls back the schema change of an earlier transaction for which Done was not called.
func (g *Guard) Reset(txn *percolator.Txn) {
	if g.change != nil || g.permitted {
		g.Done(context.Background(), 0, nil)
	}
	g.txn, g.writes, g.change = txn, g.buf[:0], nil
	txn.SetCommitPermit(g)
}

// Continue switches to another transaction and keeps the schema change that was begun: a change that closed a table must
// read it in a transaction that begins afterwards.
func (g *Guard) Continue(txn *percolator.Txn) {
	g.txn = txn
	if ch := g.change; ch != nil {
		ch.txn, ch.bumped, ch.base, ch.wrote = txn, false, nil, wrote{}
	}
	txn.SetCommitPermit(g)
}

// Writes records that the transaction changes rows of t, as planned under t. Call it before the first row is written;
// rows may then be 0 and be added by a second call.
func (g *Guard) Writes(t *TableDescriptor, rows int64) {
	if t.Temporary() {
		g.Temporary.wrote(t.ID)
		return
	}
	for i := range g.writes {
		if w := &g.writes[i]; w.table.ID == t.ID {
			w.rows += rows
			return
		}
	}
	g.writes = append(g.writes, tableWrite{table: t, rows: rows})
}

// Reads records that the transaction reads tables, as planned under the given descriptors, and that the result must
// still hold at commit: a change that closes a table, such as TRUNCATE, may change no key that was read. Only
// serializable transactions call it.
func (g *Guard) Reads(tables []*TableDescriptor) {
	for _, t := range tables {
		if !t.Temporary() {
			g.Writes(t, 0)
		}
	}
}

// Mark is a position in a guarded transaction that RollbackTo returns to, together with a savepoint of the transaction.
type Mark struct {
	writes, touched, created, temporary int

	change bool // there is one
}

// Mark returns the present position.
func (g *Guard) Mark() Mark {
	m := Mark{writes: len(g.writes)}
	if g.change != nil {
		m.change, m.touched, m.created = true, len(g.change.touched), len(g.change.created)
	}
	if g.Temporary != nil {
		m.temporary = len(g.Temporary.undo)
	}
	return m
}

// RollbackTo follows a rollback to a savepoint. A change that began after it ends: others wait for it no longer. A table whose descriptor the transaction no longer writes is checked at commit like
// any other: no conflict on the descriptor would show a change that came between. What was written under descriptors that are
// undone is undone, too.
func (g *Guard) RollbackTo(m Mark) {
	if g.change == nil {
		return
	}
	if g.Temporary != nil {
		g.Temporary.rollbackTo(m.temporary)
	}
	undone := g.change.rollbackTo(m)
	later := slices.DeleteFunc(g.writes[m.writes:], func(w tableWrite) bool {
		return slices.ContainsFunc(undone, func(t touch) bool { return t.id == w.table.ID })
	})
	g.writes = g.writes[:m.writes+len(later)]
	if !m.change {
		g.change.finish(context.Background(), 0, nil)
		g.change = nil
	}
}

// Wait returns when no schema change keeps a table closed on which the transaction depends; a transaction that wrote
// nothing does not wait. After an error of Wait the statement or transaction must be rolled back; it is *DeadlockError if the
// schema change waits for this transaction, and *LockTimeoutError after LockTimeout.
func (g *Guard) Wait(ctx context.Context) error {
	if !g.txn.Wrote() {
		return nil
	}
	if g.catalog.opts.Shared {
		return g.catalog.lease.await(ctx, g.waiter(), g.writes, g.change)
	}
	return g.catalog.gate.await(ctx, g.catalog, g.waiter(), g.writes, g.change)
}

// waiter is the transaction as one that waits: others wait for it only if it may have row locks.
func (g *Guard) waiter() waiter {
	w := waiter{limit: g.LockTimeout, session: g.Session}
	if g.txn != nil && g.txn.Pessimistic() {
		w.id = g.txn.StartTS()
	}
	return w
}

// Commit acquires the permit for what the transaction has written, commits it, and ends the guard's part in it, as Done does. It
// does not wait for a closed table, because the transaction may hold locks that the change waits for. The transaction is over in
// any case; the results are those of percolator.Txn.Commit, and *SchemaChangedError.
func (g *Guard) Commit(ctx context.Context) (tso.Timestamp, error) {
	txn := g.txn
	if txn.Wrote() {
		if err := g.enter(ctx); err != nil {
			// The rollback frees locks although the statement may have been canceled; those that it cannot reach expire.
			_ = txn.Rollback(context.WithoutCancel(ctx))
			g.Done(ctx, 0, nil)
			return 0, err
		}
	}
	ts, err := txn.Commit(ctx)
	if err == nil {
		g.Temporary.end(true)
	}
	g.Done(ctx, ts, err)
	return ts, err
}

// enter acquires the permit. It reads the schema that the commit will leave and, of several processes, looks at the store if the
// last look is too old.
func (g *Guard) enter(ctx context.Context) (err error) {
	if g.change != nil {
		if err := g.change.prepare(ctx); err != nil {
			return err
		}
	}
	if g.catalog.opts.Shared {
		g.look, g.maxCommitTS, err = g.catalog.lease.enter(ctx, g.writes, g.change)
		g.permitted = err == nil
		return err
	}
	if g.catalog.current.Load() == nil {
		if err := g.catalog.refresh(ctx); err != nil {
			return err
		}
	}
	err = g.catalog.gate.enter(g.catalog, g.writes, g.change)
	g.permitted = err == nil
	return err
}

// leave gives the permit back. undetermined: the commit had no answer, and may still happen.
func (g *Guard) leave(undetermined bool) {
	switch {
	case !g.permitted:
	case g.look != nil:
		g.catalog.lease.leave(g.look, undetermined)
	default:
		g.catalog.gate.leave(g.writes)
	}
	g.permitted, g.look, g.maxCommitTS = false, nil, 0
}

// MaxCommitTS implements percolator.CommitPermit.
func (g *Guard) MaxCommitTS() (tso.Timestamp, error) {
	if !g.permitted {
		return 0, errNoPermit
	}
	return g.maxCommitTS, nil
}

// Renew implements percolator.CommitPermit: the commit is allowed by another look.
func (g *Guard) Renew(ctx context.Context) error {
	g.leave(false)
	return g.enter(ctx)
}

// errNoPermit refuses a commit that has bypassed Guard.Commit.
var errNoPermit = errors.New("BUG: a guarded transaction commits without a permit")

// Done ends the transaction: commitTS and err are the results of Commit, or 0 and nil after a rollback. It publishes
// schema changes and opens what they closed.
func (g *Guard) Done(ctx context.Context, commitTS tso.Timestamp, err error) {
	g.leave(errkind.Of(err) == errkind.Undetermined)
	if g.change != nil {
		g.change.finish(context.WithoutCancel(ctx), commitTS, err)
		g.change = nil
	}
	if err == nil && commitTS != 0 {
		for i := range g.writes {
			g.catalog.stats.note(changedTable{g.catalog.database, g.writes[i].table.ID}, g.writes[i].rows)
		}
	}
	g.Temporary.end(false) // Nothing is left to be undone after a commit.
	g.txn, g.writes = nil, g.buf[:0]
}
