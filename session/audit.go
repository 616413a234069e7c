package session

import (
	"fmt"
	"strconv"

	"github.com/percodb/percodb/audit"
	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// auditor writes what the session does to the audit log. Without one it does nothing.
type auditor struct {
	log      *audit.Log // nil: there is none
	identity *identity
	acting   *principal
	tx       *transaction
}

// event begins an event about the session.
func (a *auditor) event(kind audit.Kind) audit.Event {
	e := audit.Event{Event: kind, Session: a.identity.key.PID, User: a.identity.user, Database: a.identity.database, Role: a.acting.other()}
	if a.identity.client.Addr != nil {
		e.Address = auth.Where(a.identity.client.Addr)
	}
	return e
}

// other returns the name of the role as which the session acts, "" if it is the one that has connected.
func (p *principal) other() string {
	if p.current == p.authenticated.OID {
		return ""
	}
	if name := p.name(p.current); name != "" {
		return name
	}
	return strconv.FormatUint(uint64(p.current), 10) // It was dropped.
}

// OtherRole returns the role as which the session acts, "" if it is the one that has connected. The session's goroutine calls it.
func (s *Session) OtherRole() string { return s.acting.other() }

// outcome sets how something has ended.
func outcome(e *audit.Event, err error) {
	e.SQLState = audit.Success
	if err != nil {
		pg := ToPGError(err)
		e.SQLState, e.Message = string(pg.Code), pg.Message
	}
}

// run runs a statement of a class, and writes it to the log. The event says how the statement has ended, also where it panics.
func (a *auditor) run(r *run, class string, run func() (Tag, error)) (tag Tag, err error) {
	e := a.event(audit.Statement)
	e.Class, e.Text = class, auditText(r, r.tree)
	err = pgerror.New(pgerror.InternalError, "the statement has panicked")
	defer func() {
		if outcome(&e, err); err == nil {
			e.Command = tag.Verb
		}
		if err == nil && (a.tx.phase.shared() || a.tx.pipeline.executed > 1) {
			e.Transaction, a.tx.audited = true, true
		}
		a.log.Write(e)
	}()
	return run()
}

// class is the class of a statement without plan, "" if it is not written to the log.
func (a *auditor) class(tree ast.Statement) string {
	if a.log == nil {
		return ""
	}
	switch n := tree.(type) {
	case *ast.CreateRole, *ast.AlterRole, *ast.AlterRoleSet, *ast.AlterDatabaseSet, *ast.GrantRole, *ast.Grant, *ast.AlterDefaultPrivileges, *ast.OwnedBy:
		return audit.Roles
	case *ast.DropObjects:
		if n.Objects[0].Role != nil {
			return audit.Roles
		}
		return audit.DDL
	case *ast.AlterObject:
		if n.Object.Role != nil || n.Change.Owner != nil {
			return audit.Roles
		}
		return audit.DDL
	case *ast.CreateTable, *ast.CreateIndex, *ast.CreateView, *ast.CreateSequence, *ast.CreateSchema, *ast.Drop, *ast.AlterTable, *ast.Truncate,
		*ast.Comment, *ast.CreateObserver, *ast.AlterObserver, *ast.DropObserver, *ast.CreatePolicy, *ast.AlterPolicy, *ast.CreateTrigger, *ast.CreateType, *ast.AlterEnum,
		*ast.CreateFunction, *ast.AlterFunction, *ast.Define, *ast.AlterTextSearch,
		*ast.AlterType, *ast.RenameAttribute, *ast.CreateDomain, *ast.AlterDomain, *ast.Database,
		*ast.CreateExtension, *ast.AlterExtension, *ast.CreateMaterializedView, *ast.RefreshMaterializedView:
		return audit.DDL
	case *ast.AlterSystem:
		return audit.System
	case *ast.Set:
		if isRoleSetting(n.Name) {
			return audit.Acting
		}
	}
	return ""
}

// isRoleSetting reports whether a parameter decides as which role a session acts.
func isRoleSetting(name string) bool {
	return name == settings.Role || name == settings.SessionAuthorization
}

// auditText is a statement's text, without a password.
func auditText(r *run, tree ast.Statement) string {
	if text, masked := maskedText(tree); masked {
		return text
	}
	switch {
	case r.text != nil:
		return r.text.Text
	case r.portal != nil && r.portal.prepared.statement != nil:
		return r.portal.prepared.statement.Text
	}
	return fmt.Sprint(tree)
}

// maskedText writes a statement that has a password anew, without it; false: it has none.
func maskedText(tree ast.Statement) (string, bool) {
	switch n := tree.(type) {
	case *ast.CreateRole:
		if options, masked := maskPasswords(n.Options); masked {
			c := *n
			c.Options = options
			return c.String(), true
		}
	case *ast.AlterRole:
		if options, masked := maskPasswords(n.Options); masked {
			c := *n
			c.Options = options
			return c.String(), true
		}
	}
	return "", false
}

// maskPasswords returns the options of a role with other passwords, and whether there are any.
func maskPasswords(options []ast.RoleOption) (_ []ast.RoleOption, masked bool) {
	mask := "********"
	shown := make([]ast.RoleOption, len(options))
	for i, o := range options {
		if o.Name == "PASSWORD" && o.Value != nil {
			o.Value, masked = &mask, true
		}
		shown[i] = o
	}
	return shown, masked
}

// function writes that a function was called that does not concern its session alone, and how that has ended.
func (a *auditor) function(name string, err error, result bool, args ...string) {
	if a.log == nil {
		return
	}
	e := a.event(audit.Function)
	e.Command, e.Arguments = name, args
	if outcome(&e, err); err == nil {
		e.Result = strconv.FormatBool(result)
	}
	a.log.Write(e)
}

// changed writes that the session acts as another role from now on.
func (a *auditor) changed() {
	if a != nil && a.log != nil {
		e := a.event(audit.RoleChange)
		e.Role = a.acting.name(a.acting.current)
		a.log.Write(e)
	}
}

// ended writes how a transaction has ended of which statements were written.
func (a *auditor) ended(committed bool) {
	if a.log == nil {
		return
	}
	e := a.event(audit.Ended)
	if e.Command = "ROLLBACK"; committed {
		e.Command = "COMMIT"
	}
	a.log.Write(e)
}
