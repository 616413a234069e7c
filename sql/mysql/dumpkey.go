package mysql

import (
	"slices"
	"strconv"
	"strings"

	tidb "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/percodb/percodb/sql/ast"
)

// key maps a key or constraint of a dump's table.
func (m *mapping) key(text string) {
	n, err := createOf(cutKeyOptions(text))
	if err != nil || len(n.Constraints) != 1 {
		m.leave("a key or constraint of "+m.label(), "it is not known here", "-- MySQL: "+text)
		return
	}
	k := n.Constraints[0]
	c := m.converter()
	switch k.Tp {
	case tidb.ConstraintForeignKey:
		statement := "ALTER TABLE " + quoteTable(m.table) + " ADD " + m.foreignKey(c, k)
		m.leave("the foreign key "+k.Name+" of "+m.label(), "add it when all tables have their rows", statement)
	case tidb.ConstraintCheck:
		name := k.Name
		if name == "" {
			name = "check"
		}
		m.check(c.indexName(m.table, name, nil), k.Expr, "the CHECK "+k.Name+" of "+m.label(), text)
	case tidb.ConstraintPrimaryKey:
		m.primaryKey(c, k, text)
	default:
		m.index(c, k, text)
	}
}

// cutKeyOptions takes out of a key's definition what follows its columns and has no effect.
func cutKeyOptions(text string) string {
	list := tokens(text)
	if list[0].is("CONSTRAINT") || list[0].is("FOREIGN") || list[0].is("CHECK") {
		return text
	}
	depth := 0
	for _, t := range list {
		switch t.text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return text[:t.end]
			}
		}
	}
	return text
}

func (m *mapping) foreignKey(c *converter, k *tidb.Constraint) string {
	if k.Refer.Table.Schema.O == "" || m.o.OneSchema {
		k.Refer.Table.Schema = tidb.NewCIStr(m.Schema)
	}
	return c.foreignKey(k)
}

func (m *mapping) primaryKey(c *converter, k *tidb.Constraint, text string) {
	why := ""
	var names []string
	for _, part := range k.Keys {
		switch {
		case part.Expr != nil:
			why = "percodb has no index over an expression"
		case part.Length > 0:
			why = "percodb has no index over a prefix of a column"
		default:
			names = append(names, c.name(part.Column.Name.O))
		}
	}
	if column := m.leftOutOf(names); column != "" {
		why = "the column " + column + " is left out"
	}
	if why != "" {
		m.leave("the primary key of "+m.label(), why, "-- MySQL: "+text)
		return
	}
	m.primary = names
	m.lines = append(m.lines, "PRIMARY KEY ("+quoteAll(names)+")")
}

// leftOutOf is the first of the names that is not a column of the new table, or "".
func (m *mapping) leftOutOf(names []string) string {
	for _, name := range names {
		if !slices.ContainsFunc(m.Columns, func(c DumpColumn) bool { return c.Name == name && c.Kind != Skipped }) {
			return name
		}
	}
	return ""
}

// index maps UNIQUE and KEY.
func (m *mapping) index(c *converter, k *tidb.Constraint, text string) {
	unique := false
	switch k.Tp {
	case tidb.ConstraintUniq, tidb.ConstraintUniqKey, tidb.ConstraintUniqIndex:
		unique = true
	case tidb.ConstraintKey, tidb.ConstraintIndex:
	default:
		m.leave("the key "+k.Name+" of "+m.label(), "percodb has no such indexes", "-- MySQL: "+text)
		return
	}
	var parts, names []string
	why := ""
	for _, part := range k.Keys {
		if part.Expr != nil {
			why = "percodb has no index over an expression"
			break
		}
		name := c.name(part.Column.Name.O)
		names = append(names, name)
		if part.Length > 0 {
			if unique || !m.short(name) {
				why = "percodb has no index over a prefix of a column"
				break
			}
			m.notice("an index over a prefix of a VARCHAR column is one over the whole column")
		}
		text := ast.QuoteIdent(name)
		if part.Desc && !unique {
			text += " DESC"
		}
		parts = append(parts, text)
	}
	if column := m.leftOutOf(names); why == "" && column != "" {
		why = "the column " + column + " is left out"
	}
	if why != "" {
		m.leave("the key "+k.Name+" of "+m.label(), why, "-- MySQL: "+text)
		return
	}
	name := m.unused(c.indexName(m.table, k.Name, names))
	if unique {
		m.unique(name, strings.Join(parts, ", "))
		return
	}
	m.Keys = append(m.Keys, DumpKey{Name: name, Statement: "CREATE INDEX " + ast.QuoteIdent(name) + " ON " + quoteTable(m.table) + " (" + strings.Join(parts, ", ") + ")"})
}

// short reports whether a column's values are short enough for a key.
func (m *mapping) short(name string) bool {
	for _, col := range m.Columns {
		if col.Name == name {
			return strings.HasPrefix(col.MySQL, "varchar") || strings.HasPrefix(col.MySQL, "char") ||
				strings.HasPrefix(col.MySQL, "varbinary") || strings.HasPrefix(col.MySQL, "binary")
		}
	}
	return false
}

func (m *mapping) unique(name, columns string) {
	name = m.unused(name)
	m.Keys = append(m.Keys, DumpKey{Name: name, Statement: "ALTER TABLE " + quoteTable(m.table) + " ADD CONSTRAINT " + ast.QuoteIdent(name) + " UNIQUE (" + columns + ")"})
}

// check maps a condition, which is added after the rows.
func (m *mapping) check(name string, x tidb.ExprNode, what, text string) {
	c := m.converter()
	condition := c.condition(x)
	if c.err != nil {
		m.leave(what, reason(c.err), "-- MySQL: "+text)
		return
	}
	name = m.unused(name)
	m.Keys = append(m.Keys, DumpKey{Name: name, Statement: "ALTER TABLE " + quoteTable(m.table) + " ADD CONSTRAINT " + ast.QuoteIdent(name) + " CHECK (" + condition.String() + ")"})
}

// unused varies a key's name, which names cut to 63 bytes may share.
func (m *mapping) unused(name string) string {
	used := func(name string) bool {
		return slices.ContainsFunc(m.Keys, func(k DumpKey) bool { return k.Name == name })
	}
	return varyName(name, used)
}

func varyName(name string, used func(string) bool) string {
	for n, base := 1, name; used(name); n++ {
		suffix := "_" + strconv.Itoa(n)
		name = base[:min(len(base), maxName-len(suffix))] + suffix
	}
	return name
}
