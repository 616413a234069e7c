package session

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// isolation is a transaction's level, as the client calls it.
type isolation uint8

// The levels of SQL. Read uncommitted is read committed under another name, as in PostgreSQL;
// repeatable read is snapshot isolation, and the default.
const (
	repeatableRead isolation = iota
	readUncommitted
	readCommitted
	serializable
)

func (i isolation) String() string {
	switch i {
	case readUncommitted:
		return "read uncommitted"
	case readCommitted:
		return "read committed"
	case serializable:
		return "serializable"
	}
	return "repeatable read"
}

// percolator returns the level as transactions know it.
func (i isolation) percolator() percolator.Isolation {
	switch i {
	case readUncommitted, readCommitted:
		return percolator.ReadCommitted
	case serializable:
		return percolator.Serializable
	}
	return percolator.SnapshotIsolation
}

// perStatement reports whether each statement has a snapshot of its own.
func (i isolation) perStatement() bool { return i == readCommitted || i == readUncommitted }

// parseIsolation reads a level's name.
func parseIsolation(value string) (isolation, error) {
	v := strings.ToLower(strings.TrimSpace(value))
	for _, level := range []isolation{serializable, repeatableRead, readCommitted, readUncommitted} {
		if v == level.String() {
			return level, nil
		}
	}
	return 0, fmt.Errorf("available values: serializable, repeatable read, read committed, read uncommitted")
}

func checkIsolation(value string) (string, error) {
	level, err := parseIsolation(value)
	return level.String(), err
}

// modes are the characteristics of a transaction.
type modes struct {
	isolation  isolation
	readOnly   bool
	deferrable bool
}

// modes returns those of the running transaction, or those that the next one will have.
func (s *Session) modes() modes {
	if s.tx.fixed {
		return s.tx.modes
	}
	return s.settings.modes
}

// fixModes has the transaction keep its modes, whatever becomes of the defaults.
func (s *Session) fixModes() {
	if !s.tx.fixed {
		s.tx.modes, s.tx.fixed = s.settings.modes, true
	}
}

// inBlock reports whether the statement that runs shares its transaction with others.
func (s *Session) inBlock() bool { return s.tx.phase.shared() }

// setModes applies the modes of BEGIN or SET TRANSACTION to the open transaction.
func (s *Session) setModes(m ast.TransactionModes) error {
	s.fixModes()
	if m.AsOf != nil {
		if err := s.setAsOfMode(&m); err != nil {
			return err
		}
	}
	if m.Isolation != "" {
		level, err := parseIsolation(m.Isolation)
		if err != nil {
			return settingError(s.settings.defs["transaction_isolation"], m.Isolation, err)
		}
		if err := s.setIsolation(level); err != nil {
			return err
		}
	}
	if m.ReadOnly != nil {
		if err := s.setReadOnly(*m.ReadOnly); err != nil {
			return err
		}
	}
	if m.Deferrable != nil {
		return s.setDeferrable(*m.Deferrable)
	}
	return nil
}

func (s *Session) setIsolation(level isolation) error {
	switch {
	case level == s.tx.modes.isolation:
		return nil
	case s.tx.queried:
		return pgerror.New(pgerror.ActiveSQLTransaction, "SET TRANSACTION ISOLATION LEVEL must be called before any query")
	case len(s.tx.savepoints) > 0:
		return pgerror.New(pgerror.ActiveSQLTransaction, "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction")
	}
	s.tx.modes.isolation = level
	s.forgetUnused()
	return nil
}

func (s *Session) setReadOnly(on bool) error {
	if !on && s.tx.asOf != 0 {
		return pgerror.New(pgerror.ActiveSQLTransaction, "a transaction "+asOfClause+" is read-only")
	}
	if !on && s.tx.modes.readOnly {
		for i := range s.tx.savepoints {
			if s.tx.savepoints[i].modes.readOnly {
				return pgerror.New(pgerror.ActiveSQLTransaction, "cannot set transaction read-write mode inside a read-only transaction")
			}
		}
		if s.tx.queried {
			return pgerror.New(pgerror.ActiveSQLTransaction, "transaction read-write mode must be set before any query")
		}
	}
	s.tx.modes.readOnly = on
	return nil
}

// setDeferrable takes note of a mode that changes nothing: a snapshot is safe for read-only
// transactions at once, serializable ones included.
func (s *Session) setDeferrable(on bool) error {
	switch {
	case len(s.tx.savepoints) > 0:
		return pgerror.New(pgerror.ActiveSQLTransaction, "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction")
	case s.tx.queried:
		return pgerror.New(pgerror.ActiveSQLTransaction, "SET TRANSACTION [NOT] DEFERRABLE must be called before any query")
	}
	s.tx.modes.deferrable = on
	return nil
}

// setTransaction is SET TRANSACTION and SET SESSION CHARACTERISTICS.
func (s *Session) setTransaction(n *ast.SetTransaction, w ResultWriter) error {
	if n.Session {
		return s.setDefaults(n.Modes)
	}
	if !s.inBlock() {
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "SET TRANSACTION can only be used in transaction blocks"))
		return nil
	}
	return s.setModes(n.Modes)
}

// setDefaults changes the modes of transactions to come.
func (s *Session) setDefaults(m ast.TransactionModes) error {
	if m.AsOf != nil {
		return pgerror.Unsupported(asOfClause+" for a whole session", "Give it to each transaction: BEGIN "+asOfClause+" …")
	}
	s.noteSettings()
	set := func(name, value string) error {
		delete(s.tx.locals, name)
		return s.changeSetting(name, value)
	}
	if m.Isolation != "" {
		if err := set("default_transaction_isolation", m.Isolation); err != nil {
			return err
		}
	}
	if m.ReadOnly != nil {
		if err := set("default_transaction_read_only", onOff(*m.ReadOnly)); err != nil {
			return err
		}
	}
	if m.Deferrable != nil {
		return set("default_transaction_deferrable", onOff(*m.Deferrable))
	}
	return nil
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// modeSetting returns what SHOW prints of a setting that is a mode of the running transaction.
func (s *Session) modeSetting(name string) (value string, ok bool) {
	m := s.modes()
	switch name {
	case "transaction_isolation":
		return m.isolation.String(), true
	case "transaction_read_only":
		return onOff(m.readOnly), true
	case "transaction_deferrable":
		return onOff(m.deferrable), true
	}
	return "", false
}

// setModeSetting is SET of such a setting; reset brings the session's default back. Outside a block it
// is checked and has no effect, as in PostgreSQL.
func (s *Session) setModeSetting(name, value string, reset bool) error {
	if reset {
		value, _ = s.settings.get("default_" + name)
	}
	var m ast.TransactionModes
	if name == "transaction_isolation" {
		if _, err := parseIsolation(value); err != nil {
			return settingError(s.settings.defs[name], value, err)
		}
		m.Isolation = value
	} else {
		canonical, err := checkBool(value)
		if err != nil {
			return settingError(s.settings.defs[name], value, err)
		}
		on := canonical == "on"
		if name == "transaction_read_only" {
			m.ReadOnly = &on
		} else {
			m.Deferrable = &on
		}
	}
	if !s.inBlock() && !s.tx.queried {
		return nil
	}
	return s.setModes(m)
}
