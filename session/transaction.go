package session

import (
	"context"
	"maps"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/tso"
)

// transaction is what a session knows of its transaction. txn is nil until the first statement that needs a
// snapshot, so that BEGIN alone costs nothing and the snapshot is as fresh as can be.
type transaction struct {
	txn *percolator.Txn
	// resolver is the schema as of resolvedAt, the snapshot then.
	resolver   catalog.Resolver
	resolvedAt tso.Timestamp
	// latest: resolver is what Catalog.Latest returned, and there is no txn (latest.go).
	latest  bool
	phase   phase
	changed bool // the schema, by this transaction
	// modes are the transaction's own once fixed; queried: something has run in it.
	modes          modes
	fixed, queried bool
	asOf           tso.Timestamp // AS OF SYSTEM TIME, 0: the present
	// pessimistic: it takes locks before it writes although it is no block.
	pessimistic bool
	savepoints  []savepoint
	pipeline    pipeline
	settings    map[string]string // as they were before the transaction's first SET
	locals      map[string]string // what SET LOCAL hides, to come back at the end
}

// endedTxn is what the explanation of a failed commit needs of its transaction.
type endedTxn struct {
	resolver     catalog.Resolver
	serializable bool
}

// savepoint is a SAVEPOINT: what ROLLBACK TO goes back to.
type savepoint struct {
	name     string
	mark     percolator.Savepoint
	settings map[string]string
	locals   map[string]string
	changed  bool
	modes    modes
}

// begin makes sure that there is a transaction with a snapshot and a view of the schema as of it.
func (s *Session) begin(ctx context.Context) error {
	if s.tx.txn == nil {
		if err := s.beginTxn(ctx); err != nil {
			return err
		}
	}
	if s.tx.resolver == nil || s.tx.latest {
		s.tx.latest = false
		resolver, err := s.deps.Catalog.At(ctx, s.tx.txn)
		if err != nil {
			return err
		}
		if s.plans.path != nil {
			resolver = catalog.SearchPath(resolver, s.settings.searchPath)
		}
		s.setView(resolver)
		s.tx.resolvedAt = s.tx.txn.ReadTS()
	}
	return nil
}

// setView sets the schema that statements are planned and checked under.
func (s *Session) setView(r catalog.Resolver) {
	s.tx.resolver = r
	s.views++
}

// use is begin for a statement that runs: from here on the transaction's modes are final.
func (s *Session) use(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.tx.queried = true
	return nil
}

// beginTxn begins a transaction as its modes, and what it is for, ask. Blocks are pessimistic: whoever
// wants a row that another one has changed waits for it. A statement that is its own transaction is
// optimistic at first, since nothing is lost when it must run again.
func (s *Session) beginTxn(ctx context.Context) error {
	s.fixModes()
	var txn *percolator.Txn
	if s.tx.asOf != 0 {
		txn = s.deps.DB.BeginAt(s.tx.asOf)
	} else {
		var err error
		txn, err = s.deps.DB.BeginTxn(ctx, percolator.TxnOptions{
			Isolation: s.tx.modes.isolation.percolator(), Pessimistic: s.tx.pessimistic || s.inBlock(),
			LockTimeout: s.settings.lockTimeout,
		})
		if err != nil {
			return err
		}
	}
	s.tx.txn = txn
	s.shown.begin(txn, s.tx.modes.isolation)
	s.guard.Reset(txn)
	s.env.TxnTime = s.env.StmtTime
	return nil
}

// forgetUnused drops a transaction that served planning only, or none but SAVEPOINT, so that the next
// use begins one with the modes of now.
func (s *Session) forgetUnused() {
	if s.tx.txn == nil || s.tx.queried || s.tx.changed {
		return
	}
	s.rollbackTxn()
	s.tx.txn, s.tx.resolver = nil, nil
	s.shown.end()
}

// commitTxn commits what is open. The session is idle afterwards, whatever the outcome.
func (s *Session) commitTxn(ctx context.Context) error {
	txn := s.tx.txn
	if txn == nil {
		s.endTxn(true)
		return nil
	}
	if s.tx.phase == failed {
		s.abortTxn()
		return nil
	}
	if err := s.guard.Wait(ctx); err != nil {
		s.abortTxn()
		return err
	}
	commitTS, err := txn.Commit(ctx)
	s.guard.Done(ctx, commitTS, err)
	s.latest.Saw(commitTS)
	if err != nil {
		err = s.describeCommitError(ctx, err)
		s.ended = endedTxn{resolver: s.tx.resolver, serializable: s.tx.modes.isolation == serializable}
	}
	s.endTxn(err == nil)
	return err
}

// describeCommitError gives a unique violation found at commit the names PostgreSQL gives it.
func (s *Session) describeCommitError(ctx context.Context, err error) error {
	exists, ok := errkind.As[*mvcc.KeyExistsError](err)
	if !ok {
		return err
	}
	return executor.UniqueViolation(ctx, s.tx.resolver, exists.Key)
}

// abortTxn rolls back what is open.
func (s *Session) abortTxn() {
	if s.tx.txn != nil {
		s.rollbackTxn()
	}
	s.endTxn(false)
}

// rollbackTxn undoes the writes of the open transaction and frees its locks.
func (s *Session) rollbackTxn() {
	txn := s.tx.txn
	// The rollback must reach the shards although the statement may have been canceled.
	if err := txn.Rollback(context.WithoutCancel(s.ctx)); err != nil {
		s.log.Warn("rollback left its locks to others", "start_ts", txn.StartTS(), "err", err)
	}
	s.guard.Done(s.ctx, 0, nil)
}

// endTxn forgets the transaction; after a rollback its SETs are undone.
func (s *Session) endTxn(committed bool) {
	s.tx.pipeline.first, s.portals.repeatable = nil, nil // If it runs again, no other portal is bound before.
	s.portals.endTransaction(committed)
	if s.tx.txn != nil {
		s.latest.Saw(s.tx.txn.ReadTS())
	}
	if !committed && s.tx.settings != nil {
		s.settings.restore(s.tx.settings)
		s.refreshEnv()
	} else if len(s.tx.locals) > 0 {
		for name, value := range s.tx.locals {
			// The value was in force before the transaction.
			_, _ = s.settings.set(name, value)
		}
		s.refreshEnv()
	}
	phase := s.tx.phase
	phase.on(end)
	s.tx = transaction{phase: phase, savepoints: s.tx.savepoints[:0]}
	s.shown.end()
}

// Fail notes an error that the client is told of: a block waits for its end, anything else is rolled
// back now.
func (s *Session) Fail(err error) {
	s.deps.Metrics.Errors.WithLabelValues(string(ToPGError(err).Code)).Inc()
	s.tx.phase.on(fail)
	if s.tx.phase != failed {
		s.abortTxn()
	}
}

// reportError is Fail for errors met here; it returns what to tell the client.
func (s *Session) reportError(err error) error {
	err = s.explainPast(s.explainTooOld(s.explainConflict(s.ctx, s.explainCancel(err))))
	s.ended = endedTxn{}
	s.Fail(err)
	return err
}

func (s *Session) beginBlock(n *ast.Begin, w ResultWriter) error {
	if s.tx.phase.explicit() {
		w.Notice(pgerror.New(pgerror.ActiveSQLTransaction, "there is already a transaction in progress"))
		return s.setModes(n.Modes)
	}
	s.forgetUnused()
	before := s.tx.phase
	s.tx.phase.on(begin)
	s.fixModes()
	if err := s.setModes(n.Modes); err != nil {
		s.tx.phase = before // The caller rolls back.
		return err
	}
	return nil
}

func (s *Session) commitBlock(ctx context.Context, n *ast.Commit, w ResultWriter) (Tag, error) {
	if !s.tx.phase.explicit() {
		if n.Chain {
			return Tag{}, pgerror.New(pgerror.NoActiveSQLTransaction, "COMMIT AND CHAIN can only be used in transaction blocks")
		}
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "there is no transaction in progress"))
		return verb("COMMIT"), s.commitTxn(ctx)
	}
	rolledBack, modes := s.tx.phase == failed, s.tx.modes
	if err := s.commitTxn(ctx); err != nil {
		return Tag{}, err
	}
	s.chain(n.Chain, modes)
	if rolledBack {
		return verb("ROLLBACK"), nil
	}
	return verb("COMMIT"), nil
}

func (s *Session) rollbackBlock(n *ast.Rollback, w ResultWriter) (Tag, error) {
	if !s.tx.phase.explicit() {
		if n.Chain {
			return Tag{}, pgerror.New(pgerror.NoActiveSQLTransaction, "ROLLBACK AND CHAIN can only be used in transaction blocks")
		}
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "there is no transaction in progress"))
	}
	modes := s.tx.modes
	s.abortTxn()
	s.chain(n.Chain, modes)
	return verb("ROLLBACK"), nil
}

// chain begins a block with the modes of the one that ended (AND CHAIN).
func (s *Session) chain(chain bool, m modes) {
	if chain {
		s.tx.phase.on(begin)
		s.tx.modes, s.tx.fixed = m, true
	}
}

func (s *Session) setSavepoint(ctx context.Context, name string) error {
	if !s.tx.phase.explicit() {
		return pgerror.New(pgerror.NoActiveSQLTransaction, "SAVEPOINT can only be used in transaction blocks")
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.tx.savepoints = append(s.tx.savepoints, savepoint{
		name: name, mark: s.tx.txn.Savepoint(), settings: s.settings.snapshot(), locals: maps.Clone(s.tx.locals),
		changed: s.tx.changed, modes: s.tx.modes,
	})
	return nil
}

// findSavepoint returns the index of the innermost savepoint of that name.
func (s *Session) findSavepoint(name, command string) (int, error) {
	if !s.tx.phase.explicit() {
		return 0, pgerror.New(pgerror.NoActiveSQLTransaction, "%s can only be used in transaction blocks", command)
	}
	for i := len(s.tx.savepoints) - 1; i >= 0; i-- {
		if s.tx.savepoints[i].name == name {
			return i, nil
		}
	}
	return 0, pgerror.New(pgerror.InvalidSavepoint, "savepoint %q does not exist", name)
}

func (s *Session) releaseSavepoint(name string) error {
	i, err := s.findSavepoint(name, "RELEASE SAVEPOINT")
	if err != nil {
		return err
	}
	s.tx.savepoints = s.tx.savepoints[:i]
	s.portals.releaseSavepoint(i)
	return nil
}

// rollbackTo undoes what came after the savepoint, which stays.
func (s *Session) rollbackTo(name string) error {
	i, err := s.findSavepoint(name, "ROLLBACK TO SAVEPOINT")
	if err != nil {
		return err
	}
	s.portals.rollbackTo(i)
	sp := s.tx.savepoints[i]
	s.tx.txn.RollbackTo(sp.mark)
	s.tx.savepoints = s.tx.savepoints[:i+1]
	s.settings.restore(sp.settings)
	s.tx.locals = maps.Clone(sp.locals)
	s.refreshEnv()
	if s.tx.changed {
		s.tx.resolver = nil // Look at the schema anew.
	}
	s.tx.changed, s.tx.modes = sp.changed, sp.modes
	s.tx.phase.on(rollbackTo)
	return nil
}
