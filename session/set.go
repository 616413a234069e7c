package session

import (
	"strings"

	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// settingCommands runs SET, RESET and SHOW.
type settingCommands struct {
	tx        *transaction
	settings  *settings.Settings
	describer *describer
}

// set is SET, SET LOCAL and RESET.
func (c *settingCommands) set(n *ast.Set, w ResultWriter) (Tag, error) {
	block, value := c.tx.phase.shared(), settings.Join(n.Name, n.Values)
	if n.Default {
		return verb("RESET"), c.reset(n, block, w)
	}
	if n.Interval != nil {
		var err error
		if value, err = intervalSetting(n.Interval, &c.settings.Format); err != nil {
			return verb("SET"), err
		}
	}
	switch {
	case c.settings.IsLive(n.Name) || !n.Local: // A mode of the transaction is local anyway.
		return verb("SET"), setParameter(c.settings, n.Name, value, false)
	case !block:
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "SET LOCAL can only be used in transaction blocks"))
		return verb("SET"), nil
	}
	return verb("SET"), setParameter(c.settings, n.Name, value, true)
}

// intervalSetting returns the value of SET TIME ZONE INTERVAL as set_config takes it.
func intervalSetting(e ast.Expr, format *types.Format) (string, error) {
	c, ok := e.(*ast.Cast)
	if !ok {
		return "", pgerror.New(pgerror.InvalidParameterValue, "SET TIME ZONE requires an interval")
	}
	text, ok := c.X.(*ast.Literal)
	if !ok {
		return "", pgerror.New(pgerror.InvalidParameterValue, "SET TIME ZONE requires an interval")
	}
	t, err := types.IntervalType(c.Type.Mods)
	if err != nil {
		return "", err
	}
	d, err := types.ParseText(t, text.Value, format)
	if err != nil {
		return "", err
	}
	return "INTERVAL '" + format.Text(d, types.TInterval) + "'", nil
}

// setParameter is SET, or SET LOCAL. Another session user acts as itself: a role that SET ROLE has chosen before is left.
func setParameter(s *settings.Settings, name, value string, local bool) error {
	set := s.Set
	if local {
		set = s.SetLocal
	}
	if err := set(name, value); err != nil || !strings.EqualFold(name, settings.SessionAuthorization) {
		return err
	}
	return set(settings.Role, settings.NoRole)
}

func (c *settingCommands) reset(n *ast.Set, block bool, w ResultWriter) error {
	switch {
	case n.Name == "all":
		return c.settings.ResetAll()
	case c.settings.IsLive(n.Name):
		if !block {
			w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "RESET TRANSACTION can only be used in transaction blocks"))
		}
		return c.settings.Reset(n.Name)
	case n.Name == settings.SessionAuthorization && !n.Local:
		return c.resetRoles()
	case !n.Local:
		return c.settings.Reset(n.Name)
	case !block:
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "SET LOCAL can only be used in transaction blocks"))
		return nil
	}
	return c.settings.ResetLocal(n.Name)
}

// resetRoles makes the role that has connected act again.
func (c *settingCommands) resetRoles() error {
	if err := c.settings.Reset(settings.SessionAuthorization); err != nil {
		return err
	}
	return c.settings.Reset(settings.Role)
}

// show is SHOW and SHOW ALL.
func (c *settingCommands) show(n *ast.Show, q request) error {
	cols := c.describer.command(n)
	if n.Name == "all" {
		var rows []types.Row
		for _, s := range c.settings.All() {
			rows = append(rows, types.Row{types.Text(s.Name), types.Text(s.Value), types.Text(s.Note)})
		}
		return q.rows(cols, rows)
	}
	value, err := c.settings.Get(n.Name)
	if err != nil {
		return err
	}
	return q.rows(cols, []types.Row{{types.Text(value)}})
}
