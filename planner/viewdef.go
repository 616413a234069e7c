package planner

import (
	"context"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
)

// ViewDefinition writes the query of a view as pg_get_viewdef does, with all parentheses, and if pretty with those that are needed. What it does
// not lay out, WITH and windows among it, is written in one line.
func ViewDefinition(ctx context.Context, view *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env, pretty bool) (string, error) {
	stmt, err := sql.ParseStatement(view.ViewQuery)
	if err != nil {
		return "", textError(err, "view", view.Name)
	}
	q, ok := stmt.(*ast.Query)
	if !ok || !laidOut(q) {
		return " " + view.ViewQuery + ";", nil
	}
	v := &viewPrinter{ctx: ctx, r: r, pretty: pretty, parts: map[ast.Expr]bool{}, texts: map[ast.Expr]string{}, names: map[int]string{}}
	v.collect(q)
	b := &binder{ctx: ctx, r: catalog.ForStored(r), env: env, noSlots: true, stored: 1, shallow: true}
	b.onExpr = v.bound
	if _, err := b.bindQuery(q, nil, true); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return " " + view.ViewQuery + ";", nil
	}
	v.query(q, 0, view)
	return v.String() + ";", nil
}

// viewPrinter writes a bound query.
type viewPrinter struct {
	strings.Builder
	ctx    context.Context
	r      catalog.Resolver
	pretty bool
	parts  map[ast.Expr]bool   // the expressions that are written as a whole
	texts  map[ast.Expr]string // of those of them that were bound
	names  map[int]string      // of columns by their IDs, as they were named last
}

// laidOut reports whether all of a query can be laid out.
func laidOut(q *ast.Query) bool {
	if q.With != nil || len(q.Locking) > 0 || q.Ties {
		return false
	}
	return bodyLaidOut(q.Body)
}

func bodyLaidOut(body ast.QueryBody) bool {
	switch b := body.(type) {
	case *ast.SetOp:
		_, nested := b.R.(*ast.SetOp)
		l, chain := b.L.(*ast.SetOp)
		return !nested && (!chain || l.Op == b.Op && l.All == b.All) && bodyLaidOut(b.L) && bodyLaidOut(b.R)
	case *ast.Select:
		ok := len(b.Windows) == 0 && !b.GroupSets && len(b.Columns) > 0
		for _, t := range b.From {
			ok = ok && fromLaidOut(t)
		}
		return ok
	}
	return false
}

func fromLaidOut(t ast.TableExpr) bool {
	switch t := t.(type) {
	case *ast.TableRef:
		return t.Sample == nil
	case *ast.Join:
		return t.Alias == "" && t.UsingAlias == "" && !t.Natural && fromLaidOut(t.L) && fromLaidOut(t.R)
	case *ast.DerivedTable:
		return laidOut(t.Query)
	}
	return false
}

// collect notes the expressions that a query consists of.
func (v *viewPrinter) collect(q *ast.Query) {
	for i := range q.OrderBy {
		v.parts[q.OrderBy[i].Expr] = true
	}
	v.collectBody(q.Body)
}

func (v *viewPrinter) collectBody(body ast.QueryBody) {
	switch b := body.(type) {
	case *ast.SetOp:
		v.collectBody(b.L)
		v.collectBody(b.R)
	case *ast.Select:
		for i := range b.Columns {
			v.parts[b.Columns[i].Expr] = true
		}
		for _, e := range append(append([]ast.Expr{b.Where, b.Having}, b.GroupBy...), b.DistinctOn...) {
			v.parts[e] = true
		}
		for _, t := range b.From {
			v.collectTable(t)
		}
	}
}

func (v *viewPrinter) collectTable(t ast.TableExpr) {
	switch t := t.(type) {
	case *ast.DerivedTable:
		v.collect(t.Query)
	case *ast.Join:
		v.parts[t.On] = true
		v.collectTable(t.L)
		v.collectTable(t.R)
	}
}

// bound keeps the text of an expression, as it was bound.
func (v *viewPrinter) bound(sc *scope, e ast.Expr, x expr.Scalar) {
	switch e := e.(type) {
	case *ast.ColumnRef:
		if c, ok := x.(*expr.Column); ok {
			v.names[c.ID] = sc.qualifiedName(e, c)
			if parts := sc.qualifiedParts(e); parts != nil {
				e.Parts = parts
			}
		}
	case *ast.Call:
		if c, ok := x.(*expr.Column); ok { // An aggregate, or another function that a node of its own computes.
			v.names[c.ID] = e.String()
		}
	}
	if !v.parts[e] {
		return
	}
	text, ok := expr.DeparseColumns(x, func(c *expr.Column) (string, bool) {
		name, known := v.names[c.ID]
		return name, known
	}, v.pretty)
	if !ok || ownSyntax(e) {
		text = e.String()
	}
	v.texts[e] = pgcatalog.WithTextSearchNames(v.r, text)
}

// ownSyntax reports whether an expression calls a function that is not written as a call everywhere, or that of a user, whose schema is written.
func ownSyntax(e ast.Expr) bool {
	found := false
	ast.InspectExpr(e, ast.Visitor{Expr: func(x ast.Expr) {
		if call, ok := x.(*ast.Call); ok {
			name := call.Name[len(call.Name)-1]
			found = found || len(call.Name) > 1 || name == "extract" || name == "position"
		}
	}})
	return found
}

// text is that of an expression.
func (v *viewPrinter) text(e ast.Expr) string {
	if text, ok := v.texts[e]; ok {
		return text
	}
	return e.String()
}

// qualifiedParts is the name of a column with that of its table, nil if it has none.
func (sc *scope) qualifiedParts(e *ast.ColumnRef) []string {
	if len(e.Parts) > 1 {
		return e.Parts[len(e.Parts)-2:]
	}
	for at := sc; at != nil; at = at.outer {
		for i := range at.items {
			it := &at.items[i]
			for j := range it.cols {
				if it.open && it.cols[j].name == e.Parts[0] {
					if it.alias == "" {
						return nil
					}
					return []string{it.alias, e.Parts[0]}
				}
			}
		}
	}
	return nil
}

// qualifiedName is the text of the name of a column.
func (sc *scope) qualifiedName(e *ast.ColumnRef, c *expr.Column) string {
	parts := sc.qualifiedParts(e)
	if parts == nil {
		parts = []string{sc.b.cols[c.ID].Table, e.Parts[len(e.Parts)-1]}
	}
	if parts[0] == "" {
		parts = parts[1:]
	}
	quoted := make([]string, len(parts))
	for i, part := range parts {
		quoted[i] = keyword.QuoteIdent(part)
	}
	return strings.Join(quoted, ".")
}

// output is the text of an expression of ORDER BY, GROUP BY or DISTINCT ON, which may name an output column by its name or its place. Other
// expressions than columns have parentheses.
func (v *viewPrinter) output(e ast.Expr, body ast.QueryBody) string {
	if _, bound := v.texts[e]; bound {
		return v.sorted(e)
	}
	name, combined := e.String(), false
	for op, ok := body.(*ast.SetOp); ok; op, ok = body.(*ast.SetOp) {
		body, combined = op.L, true
	}
	s, ok := body.(*ast.Select)
	if !ok {
		return name
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n <= len(s.Columns) && !combined {
		return v.sorted(s.Columns[n-1].Expr)
	}
	for i := range s.Columns {
		if keyword.QuoteIdent(s.Columns[i].Name) != name {
			continue
		}
		if combined {
			return strconv.Itoa(i + 1)
		}
		return v.sorted(s.Columns[i].Expr)
	}
	return name
}

// sorted is the text of an expression by which rows are sorted or grouped.
func (v *viewPrinter) sorted(e ast.Expr) string {
	text := v.text(e)
	if _, column := e.(*ast.ColumnRef); column || !v.pretty && strings.HasPrefix(text, "(") {
		return text
	}
	return "(" + text + ")"
}

// line begins a line.
func (v *viewPrinter) line(indent int, s string) {
	v.WriteString("\n" + strings.Repeat(" ", indent) + s)
}

// query writes a query; view, if it is its query, names its columns.
func (v *viewPrinter) query(q *ast.Query, indent int, view *catalog.TableDescriptor) {
	v.body(q.Body, indent, view)
	for i := range q.OrderBy {
		it := &q.OrderBy[i]
		if i == 0 {
			v.line(indent, "  ORDER BY ")
		} else {
			v.WriteString(", ")
		}
		v.WriteString(v.output(it.Expr, q.Body))
		if it.Desc {
			v.WriteString(" DESC")
		}
		switch {
		case it.NullsFirst && !it.Desc:
			v.WriteString(" NULLS FIRST")
		case !it.NullsFirst && it.Desc:
			v.WriteString(" NULLS LAST")
		}
	}
	if q.Offset != nil {
		v.line(indent, " OFFSET "+q.Offset.String())
	}
	if q.Limit != nil {
		v.line(indent, " LIMIT "+q.Limit.String())
	}
}

func (v *viewPrinter) body(body ast.QueryBody, indent int, view *catalog.TableDescriptor) {
	switch b := body.(type) {
	case *ast.SetOp:
		v.body(b.L, indent, view)
		op := b.Op
		if b.All {
			op += " ALL"
		}
		v.line(indent, op+"\n"+strings.Repeat(" ", indent))
		v.body(b.R, indent, view)
	case *ast.Select:
		v.selectQuery(b, indent, view)
	}
}

func (v *viewPrinter) selectQuery(s *ast.Select, indent int, view *catalog.TableDescriptor) {
	v.WriteString(" SELECT ")
	switch {
	case len(s.DistinctOn) > 0:
		v.WriteString("DISTINCT ON (")
		v.list(s.DistinctOn, s)
		v.WriteString(") ")
	case s.Distinct:
		v.WriteString("DISTINCT ")
	}
	for i := range s.Columns {
		it := &s.Columns[i]
		if i > 0 {
			v.WriteString(",")
			v.line(indent, "    ")
		}
		v.WriteString(v.text(it.Expr))
		name, own := it.Name, "?column?"
		if view != nil && i < len(view.Columns) {
			name = view.Columns[i].Name
		}
		if ref, ok := it.Expr.(*ast.ColumnRef); ok {
			own = ref.Parts[len(ref.Parts)-1]
		}
		if name != own {
			v.WriteString(" AS " + keyword.QuoteIdent(name))
		}
	}
	for i, t := range s.From {
		if i == 0 {
			v.line(indent, "   FROM ")
		} else {
			v.WriteString(",")
			v.line(indent, "    ")
		}
		v.table(t, indent)
	}
	if s.Where != nil {
		v.line(indent, "  WHERE "+v.text(s.Where))
	}
	if len(s.GroupBy) > 0 {
		v.line(indent, "  GROUP BY ")
		v.list(s.GroupBy, s)
	}
	if s.Having != nil {
		v.line(indent, " HAVING "+v.text(s.Having))
	}
}

func (v *viewPrinter) list(es []ast.Expr, s *ast.Select) {
	for i, e := range es {
		if i > 0 {
			v.WriteString(", ")
		}
		v.WriteString(v.output(e, s))
	}
}

// table writes an item of FROM.
func (v *viewPrinter) table(t ast.TableExpr, indent int) {
	switch t := t.(type) {
	case *ast.TableRef:
		v.WriteString(v.relation(t))
		if t.Alias != "" && t.Alias != t.Name.Name {
			v.WriteString(" " + keyword.QuoteIdent(t.Alias))
		}
		v.columns(t.Columns)
	case *ast.DerivedTable:
		if t.Lateral {
			v.WriteString("LATERAL ")
		}
		v.WriteString("(")
		v.query(t.Query, indent+8, nil)
		v.WriteString(") " + keyword.QuoteIdent(t.Alias))
		v.columns(t.Columns)
	case *ast.Join:
		v.join(t, indent)
	}
}

// relation is the name of a relation, with its schema unless the search path finds it.
func (v *viewPrinter) relation(t *ast.TableRef) string {
	name := keyword.QuoteIdent(t.Name.Name)
	found, err := v.r.Relation(v.ctx, "", t.Name.Name)
	if t.Name.Schema != "" && (err != nil || found == nil || found.Schema != t.Name.Schema) {
		name = keyword.QuoteIdent(t.Name.Schema) + "." + name
	}
	if t.Only {
		name = "ONLY " + name
	}
	return name
}

func (v *viewPrinter) columns(names []string) {
	for i, name := range names {
		v.WriteString([]string{"(", ", "}[min(i, 1)] + keyword.QuoteIdent(name))
	}
	if len(names) > 0 {
		v.WriteString(")")
	}
}

var joinWords = map[ast.JoinKind]string{ast.LeftJoin: "LEFT JOIN ", ast.RightJoin: "RIGHT JOIN ", ast.FullJoin: "FULL JOIN "}

func (v *viewPrinter) join(t *ast.Join, indent int) {
	word := joinWords[t.Kind]
	switch {
	case word == "" && t.On == nil && len(t.Using) == 0:
		word = "CROSS JOIN "
	case word == "":
		word = "JOIN "
	}
	_, nested := t.R.(*ast.Join)
	if !v.pretty {
		v.WriteString("(")
	}
	v.table(t.L, indent)
	v.line(indent, "     "+word)
	if nested && v.pretty {
		v.WriteString("(")
	}
	v.table(t.R, indent)
	if nested && v.pretty {
		v.WriteString(")")
	}
	switch {
	case len(t.Using) > 0:
		v.WriteString(" USING ")
		v.columns(t.Using)
	case t.On != nil && v.pretty:
		v.WriteString(" ON " + v.text(t.On))
	case t.On != nil:
		v.WriteString(" ON (" + v.text(t.On) + ")")
	}
	if !v.pretty {
		v.WriteString(")")
	}
}
