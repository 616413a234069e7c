package session

import (
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// prepared is a prepared statement, of the extended protocol or of PREPARE.
type prepared struct {
	name      string
	statement *sql.Statement // nil: the empty query
	tree      ast.Statement
	plan      *cachedPlan // nil for statements without plan
	declared  []types.Type
	params    []types.Type
	counted   int64  // bytes drawn from memory
	at        int64  // when it was prepared, in microseconds since 2000-01-01 UTC
	heading   string // of PREPARE: the text of the name and the types; "": prepared by the protocol
}

// statements are a session's prepared statements by name. The unnamed one is kept apart: every Parse of "" replaces it.
type statements struct {
	named   map[string]*prepared
	unnamed *prepared
	memory  *memory.Account
}

func newStatements() statements { return statements{named: map[string]*prepared{}} }

// statementBytes is what a named statement keeps for each byte of its text: the text, its tree and its plan.
const statementBytes = 8

// find returns a statement, or the error for a client that names one that does not exist.
func (m *statements) find(name string) (*prepared, error) {
	p := m.named[name]
	if name == "" {
		p = m.unnamed
	}
	switch {
	case p != nil:
		return p, nil
	case name == "":
		return nil, pgerror.New(pgerror.InvalidSQLStatementName, "unnamed prepared statement does not exist")
	}
	return nil, pgerror.New(pgerror.InvalidSQLStatementName, "prepared statement %q does not exist", name)
}

// free returns an error if a statement of that name exists.
func (m *statements) free(name string) error {
	if _, taken := m.named[name]; taken {
		return pgerror.New(pgerror.DuplicatePreparedStatement, "prepared statement %q already exists", name)
	}
	return nil
}

// add keeps a statement. A large one draws from the memory until it is forgotten; of the unnamed one, only its text does.
// What meter has drawn since mark is the statement's from now on.
func (m *statements) add(p *prepared, meter *sql.Meter, mark int64) error {
	if p.statement != nil && len(p.statement.Text) >= types.LargeBytes {
		p.counted = int64(len(p.statement.Text))
		if p.name != "" {
			p.counted *= statementBytes
		}
		if err := m.memory.Grow(p.counted); err != nil {
			return err
		}
	}
	p.counted += meter.Take(mark)
	if p.name == "" {
		m.release(m.unnamed)
		m.unnamed = p
		return nil
	}
	m.named[p.name] = p
	return nil
}

// release gives back what a statement has drawn; nil draws nothing.
func (m *statements) release(p *prepared) {
	if p != nil && p.counted > 0 {
		m.memory.Shrink(p.counted)
		p.counted = 0
	}
}

// remove forgets a statement; an unknown name is no error.
func (m *statements) remove(name string) {
	if name == "" {
		m.release(m.unnamed)
		m.unnamed = nil
		return
	}
	m.release(m.named[name])
	delete(m.named, name)
}

// removeNamed forgets all but the unnamed statement (DEALLOCATE ALL).
func (m *statements) removeNamed() {
	for _, p := range m.named {
		m.release(p)
	}
	clear(m.named)
}

// removeAll forgets all statements.
func (m *statements) removeAll() {
	m.removeNamed()
	m.remove("")
}

// executesChange reports whether a statement is EXECUTE of a plan that writes or locks.
func (m *statements) executesChange(tree ast.Statement) bool {
	n, ok := tree.(*ast.Execute)
	if !ok {
		return false
	}
	p := m.named[n.Name]
	return p != nil && p.plan != nil && !p.plan.ReadOnly
}
