package session

import (
	"context"
	"log/slog"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/tso"
)

// transaction is a session's transaction: its phase, the percolator transaction behind it, and the schema of its snapshot.
// A percolator transaction begins with the first statement that needs a snapshot, so that BEGIN alone costs nothing and the
// snapshot is as fresh as can be. One goroutine's.
type transaction struct {
	db       *percolator.DB
	catalog  *catalog.Catalog
	log      *slog.Logger
	settings *settings.Settings
	env      *builtin.Env
	portals  *portals
	guard    *catalog.Guard
	acting   *principal
	audit    *auditor
	advisory advisoryLocks

	notifications *notifications
	cursors       *ChangeCursors

	phase phase
	txnState
	failure failure
	shown   shown
	claimed memory.Account // of the rows that were delivered to the open transaction
	// deferred are the checks of constraints that wait for the commit.
	deferred *executor.Deferred
	triggers executor.TriggerRunner
	views    uint64       // how many schemas statements have been planned under
	reader   latestReader // of statements without snapshot
}

// txnState is what ends with the transaction.
type txnState struct {
	txn *percolator.Txn // nil: none has begun
	// resolver is the schema as of resolvedAt, the snapshot then; nil: to be looked up.
	resolver   catalog.Resolver
	resolvedAt tso.Timestamp
	// latest: resolver is what Catalog.Latest returned, and there is no txn (latest.go).
	latest   bool
	changed  bool // the schema, by this transaction
	audited  bool // the audit log has statements of it
	numbered bool // a statement has asked for its number
	// modes are the transaction's own once fixed; queried: a statement has run in it.
	modes          settings.Modes
	fixed, queried bool
	asOf           tso.Timestamp // AS OF SYSTEM TIME, 0: the present
	// pessimistic: it takes locks before it writes although it is no block; optimistic: it does not although it is one, of an
	// observer's body.
	pessimistic, optimistic bool
	savepoints              []savepoint
	pipeline                pipelineState
	pending                 pendingNotify // by LISTEN, UNLISTEN and NOTIFY
	delivered               []delivery    // changes that the commit acknowledges
}

// failure is what the explanation of a failed commit needs of its transaction.
type failure struct {
	resolver     catalog.Resolver
	serializable bool
}

// begin makes sure that there is a transaction with a snapshot, and the schema of that snapshot.
func (t *transaction) begin(ctx context.Context) error {
	if t.txn == nil {
		if err := t.beginTxn(ctx); err != nil {
			return err
		}
	}
	if t.resolver == nil || t.latest {
		t.latest = false
		resolver, err := t.catalog.At(ctx, t.txn)
		if err == nil {
			err = t.permit(ctx, resolver)
		}
		if err != nil {
			return err
		}
		t.setResolver(resolver)
		t.resolvedAt = t.txn.ReadTS()
	}
	return nil
}

// permit refuses the statements of a role that must not run any. A schema of the past does not decide that.
func (t *transaction) permit(ctx context.Context, r catalog.Resolver) error {
	roles := r.Roles()
	if t.asOf != 0 {
		var err error
		if roles, err = t.catalog.Roles(ctx); err != nil {
			return err
		}
	}
	return t.acting.permit(roles)
}

// setResolver sets the schema that statements are planned and checked under.
func (t *transaction) setResolver(r catalog.Resolver) {
	if t.changed { // Others' changes of privileges are not in the version.
		t.acting.access = nil
	}
	t.resolver = t.acting.usable(t.temporary().Over(r))
	t.views++
}

// use is begin for a statement that runs: from here on the transaction's modes are final.
func (t *transaction) use(ctx context.Context) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.queried = true
	return nil
}

// beginTxn begins a percolator transaction. Blocks are pessimistic: a statement that wants a row that another transaction
// has changed waits for it. A statement that is its own transaction is optimistic at first, since nothing is lost when it
// runs again.
func (t *transaction) beginTxn(ctx context.Context) error {
	t.fixModes()
	var txn *percolator.Txn
	if t.asOf != 0 {
		txn = t.db.BeginAt(t.asOf)
	} else {
		var err error
		txn, err = t.db.BeginTxn(ctx, percolator.TxnOptions{
			Isolation: snapshots(t.modes.Isolation), Pessimistic: t.pessimistic || t.phase.shared() && !t.optimistic,
		})
		if err != nil {
			return err
		}
	}
	t.txn = txn
	if err := t.advisory.begin(ctx, txn); err != nil {
		return err
	}
	t.setLockTimeout()
	t.shown.begin(txn, t.modes.Isolation)
	t.guard.Reset(txn)
	t.env.BeginTxn()
	return nil
}

// madeVersion reports whether a schema version is one that the transaction has made itself.
func (t *transaction) madeVersion(version uint64) bool {
	return t.guard != nil && t.guard.Made(version)
}

// setLockTimeout bounds the waits to come of the open transaction.
func (t *transaction) setLockTimeout() {
	t.guard.LockTimeout = t.settings.LockTimeout
	if t.txn != nil {
		t.txn.SetLockTimeout(t.settings.LockTimeout)
	}
}

// beginLatest selects the read without a snapshot for a statement that may be alone, if its plan reads one key and no
// transaction is open, and reports whether it did.
func (t *transaction) beginLatest(plan *planner.Plan) bool {
	if !plan.SinglePoint || t.txn != nil || t.activeModes().Isolation == settings.Serializable || t.phase.shared() || t.pessimistic || t.asOf != 0 {
		return false
	}
	if t.latest && t.resolver != nil {
		return true
	}
	schema := t.catalog.Latest()
	if schema == nil || t.acting.permit(schema.Roles()) != nil {
		return false
	}
	t.fixModes()
	t.latest = true
	t.env.BeginTxn() // for 'now' in parameters and literals
	t.setResolver(schema)
	return true
}

// useLatest is use for a statement that runs without a percolator transaction.
func (t *transaction) useLatest() executor.Txn {
	t.env.BeginTxn()
	t.reader.schema = t.resolver
	return &t.reader
}

// beginStatement begins another statement of the transaction. At isolation levels where each statement has a snapshot of its
// own, open cursors first read what they have yet to show.
func (t *transaction) beginStatement(ctx context.Context) error {
	if t.modes.Isolation.PerStatement() {
		if err := t.portals.hold(ctx, t.txn, nil); err != nil {
			return err
		}
	}
	if err := t.txn.BeginStatement(ctx); err != nil {
		return err
	}
	if t.txn.ReadTS() != t.resolvedAt {
		t.resolver = nil
	}
	return t.begin(ctx)
}

// beginChange begins a statement that changes the schema, after it has waited for others' changes. It is to see these, so the snapshot
// advances at every isolation level, unless something that the transaction has read has changed.
func (t *transaction) beginChange(ctx context.Context) error {
	if !t.modes.Isolation.PerStatement() && t.txn.Pessimistic() {
		present, err := t.catalog.Present(ctx)
		if err != nil {
			return err
		}
		if present.Version() != t.resolver.Version() && !t.changed {
			t.txn.KeepReads()
			if err := t.txn.AdvanceSnapshot(ctx); err != nil && errkind.Of(err) != errkind.WriteConflict {
				return err
			}
		}
	}
	return t.beginStatement(ctx)
}

// nextStatement is beginStatement for every statement of a transaction but its first, whose snapshot is as new as can be.
func (t *transaction) nextStatement(ctx context.Context) error {
	if t.txn == nil || !t.queried {
		return nil
	}
	return t.beginStatement(ctx)
}

// lockFirst prepares for a statement whose plan takes locks: its transaction takes them before it reads. It reports whether
// the transaction begins anew for that.
func (t *transaction) lockFirst(plan *cachedPlan) bool {
	if plan == nil || plan.Locks == "" && (plan.ReadOnly || !plan.CallsRoutines) || plan.Procedure != nil || t.pessimistic || t.phase.shared() || t.queried {
		return false
	}
	t.forgetUnused()
	t.pessimistic = true
	return true
}

// forgetUnused drops a percolator transaction that served planning or SAVEPOINT only, so that the next use begins one with
// the present modes.
func (t *transaction) forgetUnused() {
	if t.txn == nil || t.queried || t.changed {
		return
	}
	t.rollback()
	t.txn, t.resolver = nil, nil
	t.shown.end()
}

// commit commits what is open. The phase is idle afterwards, whatever the outcome.
func (t *transaction) commit(ctx context.Context) error {
	if t.phase == failed {
		t.abort()
		return nil
	}
	if t.pending.empty() {
		return t.commitWrites(ctx)
	}
	after, err := t.notifications.prepare(ctx)
	if err != nil {
		t.abort()
		return err
	}
	err = t.commitWrites(ctx)
	after.finish(err)
	return err
}

// commitWrites is commit of what the transaction has written.
func (t *transaction) commitWrites(ctx context.Context) error {
	if t.txn == nil {
		t.end(true)
		return nil
	}
	handled, err := t.prepareCommit(ctx)
	if err == nil {
		err = t.checkDeferred(ctx, true)
	}
	if err == nil {
		err = t.endTemporary(ctx)
	}
	if err == nil {
		err = t.advisory.confirm(ctx)
	}
	if err != nil {
		t.abort()
		return err
	}
	commitTS, err := t.guard.Commit(ctx)
	t.reader.Saw(commitTS)
	if err != nil {
		err = t.nameViolation(ctx, err)
		t.failure = failure{resolver: t.resolver, serializable: t.modes.Isolation == settings.Serializable}
	}
	t.end(err == nil)
	if err == nil {
		t.cursors.committed(handled)
		t.clearCells(ctx, handled)
	}
	return err
}

// prepareCommit waits until the schema allows the commit, and returns the claims that it acknowledges.
func (t *transaction) prepareCommit(ctx context.Context) ([]delivery, error) {
	if err := t.guard.Wait(ctx); err != nil {
		return nil, err
	}
	return t.acknowledged(ctx)
}

// commitDelivered commits a percolator transaction that has only acknowledged changes. The session's transaction goes on, as one that
// has not begun.
func (t *transaction) commitDelivered(ctx context.Context) error {
	handled, err := t.prepareCommit(ctx)
	if err != nil {
		return err
	}
	commitTS, err := t.guard.Commit(ctx)
	t.reader.Saw(commitTS)
	t.txn, t.resolver = nil, nil
	t.shown.end()
	if err == nil {
		t.clearCells(ctx, handled)
	}
	return err
}

// nameViolation gives a unique violation found at commit the names that PostgreSQL gives it.
func (t *transaction) nameViolation(ctx context.Context, err error) error {
	exists, ok := errkind.As[*mvcc.KeyExistsError](err)
	if !ok {
		return err
	}
	now, err := t.inForce(ctx)
	if err != nil {
		now = nil // What has happened matters more than the values.
	}
	return executor.UniqueViolation(ctx, t.resolver, now, t.acting.current, exists.Key)
}

// abort rolls back what is open.
func (t *transaction) abort() {
	if t.txn != nil {
		t.rollback()
	}
	t.end(false)
}

// fail follows an error that the client is sent: a block waits for its end, anything else is rolled back. What the block cannot return
// to is undone at once, as in PostgreSQL: others do not wait for its locks and schema changes until the client ends it.
func (t *transaction) fail() {
	t.phase.on(fail)
	switch n := len(t.savepoints); {
	case t.phase != failed:
		t.abort()
	case t.txn == nil:
	case n > 0:
		t.txn.RollbackTo(t.savepoints[n-1].mark)
		t.guard.RollbackTo(t.savepoints[n-1].guard)
		t.advisory.rollbackTo(t.env.Ctx, t.savepoints[n-1].advisory)
		t.shown.relations.rollbackTo(t.savepoints[n-1].relations)
	default:
		t.rollback()
		t.advisory.end(t.env.Ctx)
		t.reader.Saw(t.txn.ReadTS())
		t.txn = nil
		t.shown.end()
	}
}

// startOver rolls back a transaction whose statements run again, with locks. Portals stay: those that have not run have read
// nothing yet.
func (t *transaction) startOver() {
	t.settings.EndTransaction(false)
	t.pending.clear(t.env.Memory)
	t.replace()
}

// replace rolls back a transaction whose statements do not run again, for one that takes locks: they have only read, and what they
// have SET stays, as does their NOTIFY.
func (t *transaction) replace() {
	if t.txn != nil {
		t.rollback()
	}
	kept := t.pending
	t.pending = pendingNotify{}
	t.forget()
	t.pending, t.pessimistic = kept, true
}

// rollback undoes the writes of the percolator transaction and frees its locks.
func (t *transaction) rollback() {
	// The rollback must reach the shards although the statement may have been canceled.
	if err := t.txn.Rollback(context.WithoutCancel(t.env.Ctx)); err != nil {
		t.log.Warn("rollback left its locks to others", "start_ts", t.txn.StartTS(), "err", err)
	}
	t.guard.Done(t.env.Ctx, 0, nil)
}

// end closes the portals of the transaction and forgets it.
func (t *transaction) end(committed bool) {
	if t.audited {
		t.audit.ended(committed)
	}
	if !committed {
		t.cursors.rolledBack(t.delivered)
	}
	t.portals.endTransaction(committed)
	t.reset(committed)
}

// reset forgets the transaction; after a rollback its SETs are undone.
func (t *transaction) reset(committed bool) {
	t.settings.EndTransaction(committed)
	t.advisory.end(t.env.Ctx)
	t.forget()
}

// forget is reset that leaves the settings as they are.
func (t *transaction) forget() {
	if t.txn != nil {
		t.reader.Saw(t.txn.ReadTS())
	}
	t.phase.on(end)
	t.pending.clear(t.env.Memory)
	t.deferred.Reset()
	t.forgetDelivered()
	t.txnState = txnState{savepoints: t.savepoints[:0]}
	t.shown.end()
}

// note updates what other sessions see of the transaction at the end of a message.
func (t *transaction) note() {
	change(&t.shown.phase, uint64(t.phase))
	if t.txn != nil {
		t.shown.note(t.txn.Counts(), t.txn.ReadTS())
	}
}

// textSearch returns the text search objects of the statement's schema.
func (t *transaction) textSearch() builtin.TextSearch {
	if r := t.names(); r != nil {
		return r.TextSearch()
	}
	return (*catalog.TextSearch)(nil)
}

// names returns the schema in which functions and regclass look objects up; nil when there is none to be had.
func (t *transaction) names() catalog.Resolver {
	if t.resolver == nil {
		if err := t.begin(t.env.Ctx); err != nil {
			return nil
		}
	}
	return t.resolver
}
