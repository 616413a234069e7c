package session

import (
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// The modes of a transaction: isolation level, read only, deferrable. Those of a transaction to come are settings; they are
// fixed when it begins, and BEGIN and SET TRANSACTION change them as long as no statement has run.

// snapshots returns the isolation level as percolator knows it.
func snapshots(level settings.Isolation) percolator.Isolation {
	switch {
	case level.PerStatement():
		return percolator.ReadCommitted
	case level == settings.Serializable:
		return percolator.Serializable
	}
	return percolator.SnapshotIsolation
}

// activeModes returns the modes of the running transaction, or those that the next one will have.
func (t *transaction) activeModes() settings.Modes {
	if t.fixed {
		return t.modes
	}
	return t.settings.Modes
}

// fixModes gives the transaction modes of its own, which later changes of the defaults leave alone.
func (t *transaction) fixModes() {
	if !t.fixed {
		t.modes, t.fixed = t.settings.Modes, true
	}
}

// setModes changes the modes of the open transaction, but for AS OF SYSTEM TIME.
func (t *transaction) setModes(m ast.TransactionModes) error {
	t.fixModes()
	if m.Isolation != "" {
		level, err := settings.ParseIsolation(m.Isolation)
		if err != nil {
			return t.settings.Invalid("transaction_isolation", m.Isolation, err)
		}
		if err := t.setIsolation(level); err != nil {
			return err
		}
	}
	if m.ReadOnly != nil {
		if err := t.setReadOnly(*m.ReadOnly); err != nil {
			return err
		}
	}
	if m.Deferrable != nil {
		return t.setDeferrable(*m.Deferrable)
	}
	return nil
}

func (t *transaction) setIsolation(level settings.Isolation) error {
	switch {
	case level == t.modes.Isolation:
		return nil
	case t.queried:
		return pgerror.New(pgerror.ActiveSQLTransaction, "SET TRANSACTION ISOLATION LEVEL must be called before any query")
	case len(t.savepoints) > 0:
		return pgerror.New(pgerror.ActiveSQLTransaction, "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction")
	}
	t.modes.Isolation = level
	t.forgetUnused()
	return nil
}

func (t *transaction) setReadOnly(on bool) error {
	if !on && t.asOf != 0 {
		return pgerror.New(pgerror.ActiveSQLTransaction, "a transaction "+asOfClause+" is read-only")
	}
	if !on && t.modes.ReadOnly {
		for i := range t.savepoints {
			if t.savepoints[i].modes.ReadOnly {
				return pgerror.New(pgerror.ActiveSQLTransaction, "cannot set transaction read-write mode inside a read-only transaction")
			}
		}
		if t.queried {
			return pgerror.New(pgerror.ActiveSQLTransaction, "transaction read-write mode must be set before any query")
		}
	}
	t.modes.ReadOnly = on
	return nil
}

// setDeferrable sets a mode that changes nothing: a snapshot is safe for read-only transactions at once, serializable ones
// included.
func (t *transaction) setDeferrable(on bool) error {
	switch {
	case len(t.savepoints) > 0:
		return pgerror.New(pgerror.ActiveSQLTransaction, "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction")
	case t.queried:
		return pgerror.New(pgerror.ActiveSQLTransaction, "SET TRANSACTION [NOT] DEFERRABLE must be called before any query")
	}
	t.modes.Deferrable = on
	return nil
}

// showModes connects the settings transaction_isolation, transaction_read_only and transaction_deferrable with the
// transaction. Outside a block SET of one is checked and has no effect, as in PostgreSQL.
func (t *transaction) showModes() {
	live := func(name string, value func(settings.Modes) string, modes func(value string) ast.TransactionModes) {
		t.settings.Live(name, func() string { return value(t.activeModes()) }, func(value string) error {
			if !t.phase.shared() && !t.queried {
				return nil
			}
			return t.setModes(modes(value))
		})
	}
	live("transaction_isolation", func(m settings.Modes) string { return m.Isolation.String() }, func(value string) ast.TransactionModes {
		return ast.TransactionModes{Isolation: value}
	})
	live("transaction_read_only", func(m settings.Modes) string { return settings.OnOff(m.ReadOnly) }, func(value string) ast.TransactionModes {
		on := value == "on"
		return ast.TransactionModes{ReadOnly: &on}
	})
	live("transaction_deferrable", func(m settings.Modes) string { return settings.OnOff(m.Deferrable) }, func(value string) ast.TransactionModes {
		on := value == "on"
		return ast.TransactionModes{Deferrable: &on}
	})
}
