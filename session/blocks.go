package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// blocks runs the statements that begin and end transaction blocks and savepoints, and that set the modes of transactions.
type blocks struct {
	tx     *transaction
	travel *timeTravel
}

// savepoint is what ROLLBACK TO SAVEPOINT restores.
type savepoint struct {
	name     string
	mark     percolator.Savepoint
	settings settings.Mark
	guard    catalog.Mark
	changed  bool
	modes    settings.Modes
	pending  pendingMark
	// constraints is what is deferred.
	constraints executor.DeferredMark
	advisory    int // advisoryLocks.mark
	relations   int // the number of locks on relations
}

// begin is BEGIN and START TRANSACTION.
func (b *blocks) begin(ctx context.Context, n *ast.Begin, w ResultWriter) error {
	t := b.tx
	if t.phase.explicit() {
		w.Notice(pgerror.New(pgerror.ActiveSQLTransaction, "there is already a transaction in progress"))
		return b.setModes(ctx, n.Modes)
	}
	t.forgetUnused()
	before := t.phase
	t.phase.on(begin)
	t.fixModes()
	if err := b.setModes(ctx, n.Modes); err != nil {
		t.phase = before // The caller rolls back.
		return err
	}
	return nil
}

// setModes changes the modes of the open transaction.
func (b *blocks) setModes(ctx context.Context, m ast.TransactionModes) error {
	b.tx.fixModes()
	if m.AsOf != nil {
		if err := b.travel.setMode(ctx, &m); err != nil {
			return err
		}
	}
	return b.tx.setModes(m)
}

// commit is COMMIT.
func (b *blocks) commit(ctx context.Context, n *ast.Commit, w ResultWriter) (Tag, error) {
	t := b.tx
	if !t.phase.explicit() {
		if n.Chain {
			return Tag{}, pgerror.New(pgerror.NoActiveSQLTransaction, "COMMIT AND CHAIN can only be used in transaction blocks")
		}
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "there is no transaction in progress"))
		return verb("COMMIT"), t.commit(ctx)
	}
	rolledBack, modes := t.phase == failed, t.modes
	if err := t.commit(ctx); err != nil {
		return Tag{}, err
	}
	b.chain(n.Chain, modes)
	if rolledBack {
		return verb("ROLLBACK"), nil
	}
	return verb("COMMIT"), nil
}

// rollback is ROLLBACK.
func (b *blocks) rollback(n *ast.Rollback, w ResultWriter) (Tag, error) {
	t := b.tx
	if !t.phase.explicit() {
		if n.Chain {
			return Tag{}, pgerror.New(pgerror.NoActiveSQLTransaction, "ROLLBACK AND CHAIN can only be used in transaction blocks")
		}
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "there is no transaction in progress"))
	}
	modes := t.modes
	t.abort()
	b.chain(n.Chain, modes)
	return verb("ROLLBACK"), nil
}

// prepared is PREPARE TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED: as in a PostgreSQL whose max_prepared_transactions is 0, its default, no
// transaction can be prepared, and none is. The first ends the block.
func (b *blocks) prepared(n *ast.PreparedTransaction) (Tag, error) {
	t := b.tx
	switch {
	case n.Action != "PREPARE TRANSACTION" && t.phase.explicit():
		return Tag{}, pgerror.New(pgerror.ActiveSQLTransaction, "%s cannot run inside a transaction block", n.Action)
	case n.Action != "PREPARE TRANSACTION":
		return Tag{}, pgerror.New(pgerror.UndefinedObject, "prepared transaction with identifier %q does not exist", n.Name)
	case !t.phase.explicit():
		return verb("ROLLBACK"), nil
	}
	failedBefore := t.phase == failed
	t.abort()
	if failedBefore {
		return verb("ROLLBACK"), nil
	}
	return Tag{}, pgerror.New(pgerror.ObjectNotInPrerequisite, "prepared transactions are disabled").
		WithHint("percodb's own commit spans processes; transactions are not prepared by clients.")
}

// chain begins a block with the modes of the one that ended (AND CHAIN).
func (b *blocks) chain(chain bool, m settings.Modes) {
	if chain {
		b.tx.phase.on(begin)
		b.tx.modes, b.tx.fixed = m, true
	}
}

// savepoint is SAVEPOINT.
func (b *blocks) savepoint(ctx context.Context, name string) error {
	t := b.tx
	if !t.phase.explicit() {
		return pgerror.New(pgerror.NoActiveSQLTransaction, "SAVEPOINT can only be used in transaction blocks")
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.mark(name)
	return nil
}

// mark makes a savepoint of the open transaction.
func (t *transaction) mark(name string) {
	t.savepoints = append(t.savepoints, savepoint{
		name: name, mark: t.txn.Savepoint(), settings: t.settings.Mark(), guard: t.guard.Mark(), changed: t.changed, modes: t.modes, pending: t.pending.mark(),
		constraints: t.deferred.Mark(),
		advisory:    t.advisory.mark(),
		relations:   len(t.shown.relations.held),
	})
}

// undoTo undoes what came after the ith savepoint, which stays.
func (t *transaction) undoTo(i int) {
	t.portals.rollbackTo(i)
	sp := t.savepoints[i]
	t.txn.RollbackTo(sp.mark)
	t.guard.RollbackTo(sp.guard)
	t.savepoints = t.savepoints[:i+1]
	t.settings.RollbackTo(sp.settings)
	t.deferred.RollbackTo(sp.constraints)
	t.pending.rollbackTo(sp.pending, t.env.Memory)
	t.advisory.rollbackTo(t.env.Ctx, sp.advisory)
	t.shown.relations.rollbackTo(sp.relations)
	t.resolver = nil // The schema and the search path may have changed.
	t.changed, t.modes = sp.changed, sp.modes
}

// find returns the index of the innermost savepoint of that name.
func (b *blocks) find(name, command string) (int, error) {
	t := b.tx
	if !t.phase.explicit() {
		return 0, pgerror.New(pgerror.NoActiveSQLTransaction, "%s can only be used in transaction blocks", command)
	}
	for i := len(t.savepoints) - 1; i >= 0; i-- {
		if t.savepoints[i].name == name {
			return i, nil
		}
	}
	return 0, pgerror.New(pgerror.InvalidSavepoint, "savepoint %q does not exist", name)
}

// release is RELEASE SAVEPOINT.
func (b *blocks) release(name string) error {
	i, err := b.find(name, "RELEASE SAVEPOINT")
	if err != nil {
		return err
	}
	b.tx.savepoints = b.tx.savepoints[:i]
	b.tx.portals.releaseSavepoint(i)
	return nil
}

// rollbackTo is ROLLBACK TO SAVEPOINT: it undoes what came after the savepoint, which stays.
func (b *blocks) rollbackTo(name string) error {
	i, err := b.find(name, "ROLLBACK TO SAVEPOINT")
	if err != nil {
		return err
	}
	b.tx.undoTo(i)
	b.tx.phase.on(rollbackTo)
	return nil
}

// setTransaction is SET TRANSACTION and SET SESSION CHARACTERISTICS.
func (b *blocks) setTransaction(ctx context.Context, n *ast.SetTransaction, w ResultWriter) error {
	if n.Session {
		return b.setDefaults(n.Modes)
	}
	if !b.tx.phase.shared() {
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "SET TRANSACTION can only be used in transaction blocks"))
		return nil
	}
	return b.setModes(ctx, n.Modes)
}

// setDefaults changes the modes of transactions to come.
func (b *blocks) setDefaults(m ast.TransactionModes) error {
	if m.AsOf != nil {
		return pgerror.Unsupported(asOfClause+" for a whole session", "Give it to each transaction: BEGIN "+asOfClause+" …")
	}
	set := b.tx.settings.Set
	if m.Isolation != "" {
		if err := set("default_transaction_isolation", m.Isolation); err != nil {
			return err
		}
	}
	if m.ReadOnly != nil {
		if err := set("default_transaction_read_only", settings.OnOff(*m.ReadOnly)); err != nil {
			return err
		}
	}
	if m.Deferrable != nil {
		return set("default_transaction_deferrable", settings.OnOff(*m.Deferrable))
	}
	return nil
}
