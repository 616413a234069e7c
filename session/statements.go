package session

import (
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
}

// statements are a session's prepared statements by name. The unnamed one is kept apart: every Parse of "" replaces it.
type statements struct {
	named   map[string]*prepared
	unnamed *prepared
}

func newStatements() statements { return statements{named: map[string]*prepared{}} }

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

func (m *statements) add(p *prepared) {
	if p.name == "" {
		m.unnamed = p
		return
	}
	m.named[p.name] = p
}

// remove forgets a statement; an unknown name is no error.
func (m *statements) remove(name string) {
	if name == "" {
		m.unnamed = nil
		return
	}
	delete(m.named, name)
}

// removeNamed forgets all but the unnamed statement (DEALLOCATE ALL).
func (m *statements) removeNamed() { clear(m.named) }

// removeAll forgets all statements.
func (m *statements) removeAll() {
	clear(m.named)
	m.unnamed = nil
}
