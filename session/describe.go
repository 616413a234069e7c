package session

import (
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/types"
)

// describer tells the output columns of statements.
type describer struct {
	settings   *settings.Settings
	statements *statements
	portals    *portals
}

// columns returns a statement's output columns, nil when it yields no rows.
func (d *describer) columns(p *prepared) []Column {
	if p.plan != nil {
		if !p.plan.Returns {
			return nil
		}
		columns := p.plan.Root.Columns()
		return columns[:len(columns)-p.plan.Keys]
	}
	return d.command(p.tree)
}

// command returns the output columns of a statement without plan, nil when it yields no rows.
func (d *describer) command(tree ast.Statement) []Column {
	switch n := tree.(type) {
	case *ast.Show:
		if n.Name == "all" {
			return textColumns("name", "setting", "description")
		}
		return textColumns(d.settings.Title(n.Name))
	case *ast.Explain:
		return explainColumns(n)
	case *ast.Execute:
		if target := d.statements.named[n.Name]; target != nil {
			return d.columns(target)
		}
	case *ast.Fetch:
		if po := d.portals.byName[n.Name]; po != nil && !n.Move {
			return d.columns(po.prepared)
		}
	}
	return nil
}

func textColumns(names ...string) []Column {
	cols := make([]Column, len(names))
	for i, name := range names {
		cols[i] = Column{Name: name, Type: types.TText}
	}
	return cols
}
