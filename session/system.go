package session

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// Configuration is what a server is configured by: its flags, and what ALTER SYSTEM has stored. Safe for concurrent use.
type Configuration interface {
	// Values returns what the server gives to the settings of sessions now.
	Values() *settings.Server
	// Check returns why a setting must not be stored, with the others that are.
	Check(ctx context.Context, name string, all map[string]string) error
	// Reload has all servers of the store load stored settings, rules and certificates again; this one before it returns.
	Reload(ctx context.Context) error
	// Stored lists what ALTER SYSTEM has stored, by name.
	Stored(ctx context.Context) ([]catalog.FileSetting, error)
	// AccessRules lists the rules for clients as their file, or ALTER SYSTEM, has them now.
	AccessRules(ctx context.Context) ([]catalog.AccessRule, error)
}

// systemCommands runs ALTER SYSTEM.
type systemCommands struct {
	tx         *transaction
	deps       *Deps
	collection *collection
}

// authorize returns the error of a statement that must not run here, or not by the current role.
func (c *systemCommands) authorize(ctx context.Context, n *ast.AlterSystem) error {
	if c.tx.phase.shared() {
		return pgerror.New(pgerror.ActiveSQLTransaction, "ALTER SYSTEM cannot run inside a transaction block")
	}
	super, err := c.tx.superuser(ctx)
	switch {
	case err != nil || super:
		return err
	case n.Name == "all":
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied to perform ALTER SYSTEM RESET ALL")
	case c.tx.acting.mayUseParameter(n.Name, acl.AlterSystem):
		return nil
	}
	return pgerror.New(pgerror.InsufficientPrivilege, "permission denied to set parameter %q", n.Name)
}

// alter stores a setting, or removes what is stored. How long history is kept is stored by the garbage collector.
func (c *systemCommands) alter(ctx context.Context, n *ast.AlterSystem) error {
	name := strings.ToLower(n.Name)
	switch {
	case name == settings.GCLife:
		return c.collection.alter(ctx, n)
	case n.Default && name == "all":
		if c.collection.reporter != nil {
			if err := c.collection.alter(ctx, n); err != nil {
				return err
			}
		}
		return c.store(ctx, func(all map[string]string) error {
			clear(all)
			return nil
		})
	case n.Default:
		if err := settings.CheckReset(n.Name); err != nil {
			return err
		}
		return c.store(ctx, func(all map[string]string) error {
			delete(all, name)
			return nil
		})
	}
	value, err := settings.CheckSystem(n.Name, settings.Join(n.Name, n.Values))
	if err != nil {
		return err
	}
	return c.store(ctx, func(all map[string]string) error {
		all[name] = value
		if c.deps.Configuration == nil {
			return nil
		}
		return c.deps.Configuration.Check(ctx, name, all)
	})
}

func (c *systemCommands) store(ctx context.Context, change func(all map[string]string) error) error {
	return c.tx.catalog.ChangeSystem(ctx, func(s *catalog.System) error { return change(s.Settings) })
}

// mayExamine reports whether the current role may see the settings that not every role may.
func (p *principal) mayExamine() bool {
	roles, _, err := p.roles()
	return err == nil && roles.HasPrivilegesOf(p.current, catalog.ReadAllSettingsRole)
}
