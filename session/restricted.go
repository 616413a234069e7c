package session

import (
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// A security-restricted operation is work on an object of a role that another one, often a superuser, has started: building, rebuilding and analyzing
// the indexes of a table, filling a materialized view. The expressions there are the owner's, and the functions that they call may contain
// anything. They are executed with the owner's privileges, and leave nothing behind that would be executed with those of whoever started the operation:
// no other role, no parameters, no temporary relations, which other statements would find, no prepared statements, held cursors or deferred
// triggers.

// The places in which the settings do not decide as whom the session acts, as errors name them.
const (
	inObserver   = "an observer"
	inDefiner    = "security-definer function"
	inRestricted = "security-restricted operation"
)

// restrict begins a security-restricted operation on what a role owns, and returns what ends it.
func (c *schemaCommands) restrict(owner uint32) (leave func()) {
	restricted, held := c.acting.restricted, c.tx.deferred.Refuse(true)
	mark := c.settings.Mark()
	back := c.acting.become(owner, inRestricted)
	c.acting.restricted = true
	return func() {
		c.settings.RollbackTo(mark)
		c.acting.restricted = restricted
		_ = back()
		c.tx.deferred.Refuse(held)
	}
}

// refuseRestricted fails for a statement that would outlast a security-restricted operation.
func (p *principal) refuseRestricted(tree ast.Statement) error {
	if !p.restricted {
		return nil
	}
	what := ""
	switch n := tree.(type) {
	case *ast.Prepare:
		what = "PREPARE"
	case *ast.Deallocate:
		what = "DEALLOCATE"
	case *ast.Listen:
		what = "LISTEN"
	case *ast.Unlisten:
		what = "UNLISTEN"
	case *ast.CloseCursor:
		what = "CLOSE"
	case *ast.Discard:
		what = "DISCARD"
	case *ast.DeclareCursor:
		if n.Hold {
			return pgerror.New(pgerror.InsufficientPrivilege, "cannot create a cursor WITH HOLD within %s", inRestricted)
		}
	}
	if what == "" {
		return nil
	}
	return pgerror.New(pgerror.InsufficientPrivilege, "cannot execute %s within %s", what, inRestricted)
}
