package pgcatalog

import (
	"context"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/inverted"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

func formatInt(v int64) string     { return strconv.FormatInt(v, 10) }
func formatNumber(v uint32) string { return strconv.FormatUint(uint64(v), 10) }

// indexDefinition is the CREATE INDEX statement of an index. pretty leaves the table's schema out if the search path finds the table, and
// parentheses that are not needed.
func (p *printer) indexDefinition(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, pretty bool) string {
	var b strings.Builder
	b.WriteString("CREATE ")
	if isUnique(ix) {
		b.WriteString("UNIQUE ")
	}
	table := keyword.QuoteIdent(t.Schema) + "." + keyword.QuoteIdent(t.Name)
	if pretty {
		table = relationName(p.ctx, p.r, t)
	}
	if t.IsPartitioned() {
		table = "ONLY " + table
	}
	b.WriteString("INDEX " + keyword.QuoteIdent(ix.Name) + " ON " + table + " USING " + methodName(ix) + " (")
	for i, c := range ix.Inverted {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.keyDefinition(t, c.ColumnID, pretty))
		if class := inverted.Class(c.Class); class != inverted.DefaultClass(t.ColumnByID(c.ColumnID).Type) {
			b.WriteString(" " + className(p.r, c.Class, inverted.Class(c.Class).Extension()))
		}
	}
	b.WriteString(p.excludedKeys(t, ix, pretty, false))
	for i := range ix.Columns {
		if ix.Inverted != nil || ix.Exclude != nil {
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		c := &ix.Columns[i]
		b.WriteString(p.keyDefinition(t, c.ColumnID, pretty) + collateClause(p.r, t, c))
		if c.OpClass != "" {
			b.WriteString(" " + keyword.QuoteIdent(c.OpClass))
		}
		b.WriteString(userClass(p.r, c))
		// The direction's own default is not said: NULLS LAST of ASC, NULLS FIRST of DESC.
		switch {
		case c.Desc && c.NullsFirst:
			b.WriteString(" DESC")
		case c.Desc:
			b.WriteString(" DESC NULLS LAST")
		case c.NullsFirst:
			b.WriteString(" NULLS FIRST")
		}
	}
	b.WriteString(")" + includeClause(t, ix))
	if ix.NullsNotDistinct {
		b.WriteString(" NULLS NOT DISTINCT")
	}
	if len(ix.Options) > 0 {
		b.WriteString(" WITH (" + optionList(ix.Options) + ")")
	}
	if ix.Where != nil {
		b.WriteString(" WHERE " + p.indexText(t, ix.Where, types.TBool, pretty))
	}
	return b.String()
}

// includeClause is INCLUDE of an index.
func includeClause(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) string {
	if len(ix.Include) == 0 {
		return ""
	}
	names := make([]string, len(ix.Include))
	for i, id := range ix.Include {
		names[i] = columnName(t, id)
	}
	return " INCLUDE (" + strings.Join(names, ", ") + ")"
}

// excludedKeys are the elements of EXCLUDE as keys of an index, with their operators if operators is set.
func (p *printer) excludedKeys(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, pretty, operators bool) string {
	var list []string
	for _, e := range ix.Exclude {
		key := p.keyDefinition(t, e.ColumnID, pretty)
		if e.Coll != nil {
			key += collateClause(p.r, t, &catalog.IndexColumn{ColumnID: e.ColumnID, Coll: e.Coll})
		}
		if e.Class != "" {
			key += " " + keyword.QuoteIdent(e.Class)
		}
		if operators {
			key += " WITH " + e.Operator
		}
		list = append(list, key)
	}
	return strings.Join(list, ", ")
}

// indexMethods are the methods that an index can name, with PostgreSQL's numbers of them and of their handlers, which no client can call.
var indexMethods = []struct {
	name         string
	oid, handler int
}{{"btree", btreeOID, 330}, {"hash", 405, 331}, {"gist", 783, 332}, {"gin", 2742, 333}, {"spgist", 4000, 334}, {"brin", 3580, 335}}

// methodName names the method of an index.
func methodName(ix *catalog.IndexDescriptor) string {
	switch {
	case ix.Method != "":
		return ix.Method
	case ix.Inverted != nil:
		return "gin"
	}
	return "btree"
}

func methodOID(ix *catalog.IndexDescriptor) int {
	name := methodName(ix)
	for _, m := range indexMethods {
		if m.name == name {
			return m.oid
		}
	}
	return btreeOID
}

// optionList prints storage options as WITH takes them.
func optionList(options []string) string {
	out := make([]string, len(options))
	for i, o := range options {
		name, value, _ := strings.Cut(o, "=")
		if keyword.QuoteIdent(value) != value {
			value = builtin.QuoteLiteral(value)
		}
		out[i] = name + "=" + value
	}
	return strings.Join(out, ", ")
}

// keyDefinition is a key of an index as CREATE INDEX takes it.
func (p *printer) keyDefinition(t *catalog.TableDescriptor, id uint32, pretty bool) string {
	c := t.ColumnByID(id)
	switch {
	case c.Expr == nil:
		return keyword.QuoteIdent(c.Name)
	case c.Expr.Call:
		return p.indexText(t, c.Expr, types.Type{}, pretty)
	}
	return "(" + p.indexText(t, c.Expr, types.Type{}, pretty) + ")"
}

// indexExpressions is pg_index.indexprs: the expressions that are keys. percodb keeps expressions as text.
func (p *printer) indexExpressions(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) types.Datum {
	var all []string
	for _, id := range indexColumnIDs(ix) {
		if c := t.ColumnByID(id); c.Expr != nil {
			all = append(all, p.indexText(t, c.Expr, types.Type{}, false))
		}
	}
	return optional(strings.Join(all, ", "))
}

// indexPredicate is pg_index.indpred.
func (p *printer) indexPredicate(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) types.Datum {
	if ix.Where == nil {
		return types.Null
	}
	return text(p.indexText(t, ix.Where, types.TBool, false))
}

// classOf is the operator class of a key.
func classOf(c *catalog.IndexColumn, t types.Type) int64 {
	if c.OpClassID != 0 {
		return int64(c.OpClassID)
	}
	if c.OpClass != "" {
		rows := pgdata.OpClasses()
		for i, id := range rows.OIDs {
			if rows.Value(i, "opcname") == c.OpClass {
				return int64(id)
			}
		}
	}
	return operatorClass(t)
}

func textArrayOrNull(list []string) types.Datum {
	if len(list) == 0 {
		return types.Null
	}
	return textArray(list)
}

func columnName(t *catalog.TableDescriptor, id uint32) string {
	return keyword.QuoteIdent(t.Columns[t.Ordinal(id)].Name)
}

// constraintDefinition is a constraint as ADD CONSTRAINT takes it.
func (p *printer) constraintDefinition(t *catalog.TableDescriptor, c constraint, pretty bool) string {
	if c.key != nil {
		return foreignKeyDefinition(p.ctx, p.r, t, c.key)
	}
	if c.check != nil {
		def := "CHECK (" + p.checkText(t, c.check, pretty) + ")"
		if c.check.NoInherit {
			def += " NO INHERIT"
		}
		if c.check.NotValid {
			def += " NOT VALID"
		}
		return def
	}
	return p.keyDefinitionOf(t, c, pretty) + deferral(c)
}

// keyDefinitionOf is the definition of a constraint that has an index, without its deferral.
func (p *printer) keyDefinitionOf(t *catalog.TableDescriptor, c constraint, pretty bool) string {
	ix := c.index
	if c.kind == 'x' {
		def := "EXCLUDE USING " + methodName(ix) + " (" + p.excludedKeys(t, ix, pretty, true) + ")" + includeClause(t, ix)
		if len(ix.Options) > 0 {
			def += " WITH (" + optionList(ix.Options) + ")"
		}
		if ix.Where != nil {
			def += " WHERE (" + p.indexText(t, ix.Where, types.TBool, pretty) + ")"
		}
		return def
	}
	names := make([]string, len(ix.Columns))
	for i := range names {
		names[i] = columnName(t, ix.Columns[i].ColumnID)
	}
	word := "UNIQUE ("
	switch {
	case c.kind == 'p':
		word = "PRIMARY KEY ("
	case ix.NullsNotDistinct:
		word = "UNIQUE NULLS NOT DISTINCT ("
	}
	return word + strings.Join(names, ", ") + ")" + includeClause(t, ix)
}

// deferral is DEFERRABLE of a constraint's definition.
func deferral(c constraint) string {
	switch {
	case c.deferred():
		return " DEFERRABLE INITIALLY DEFERRED"
	case c.deferrable():
		return " DEFERRABLE"
	}
	return ""
}

// viewDefinition is a view's query, NULL for a system view, which has none.
func (s *scan) viewDefinition(t *catalog.TableDescriptor) (types.Datum, error) {
	if t.ViewQuery == "" || s.view == nil {
		return types.Null, nil
	}
	definition, err := s.view.ViewText(s.ctx, s.Resolver, t, false, 0)
	return text(definition), err
}

// relationName is a relation's name as the search path finds it.
func relationName(ctx context.Context, r catalog.Resolver, t *catalog.TableDescriptor) string {
	if found, err := r.Relation(ctx, "", t.Name); err == nil && found != nil && found.ID == t.ID {
		return keyword.QuoteIdent(t.Name)
	}
	return keyword.QuoteIdent(t.Schema) + "." + keyword.QuoteIdent(t.Name)
}

// checkedColumns lists the columns that a CHECK names.
func checkedColumns(t *catalog.TableDescriptor, check *catalog.CheckDescriptor) []int64 {
	e, err := sql.ParseExpr(check.Expr)
	if err != nil {
		return nil
	}
	var ids []int64
	for i := range t.Columns {
		if !t.Columns[i].Hidden && mentions(e, t.Columns[i].Name) {
			ids = append(ids, int64(t.Columns[i].ID))
		}
	}
	return ids
}

// mentions reports whether an expression without subqueries, as a CHECK is, names a column.
func mentions(e ast.Expr, column string) bool {
	found := false
	ast.InspectExpr(e, ast.Visitor{Expr: func(e ast.Expr) {
		if ref, ok := e.(*ast.ColumnRef); ok && ref.Parts[len(ref.Parts)-1] == column {
			found = true
		}
	}})
	return found
}

// estimateBytes guesses what a table's rows take, from their number and the widths of its columns.
func estimateBytes(t *catalog.TableDescriptor, stats *catalog.TableStats) int64 {
	width := int64(16)
	for i := range t.Columns {
		switch info := t.Columns[i].Type.Info(); {
		case info == nil || info.Len < 0:
			width += 24
		default:
			width += int64(info.Len)
		}
	}
	return int64(stats.Rows) * width
}
