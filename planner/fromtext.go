package planner

import (
	"strings"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
)

var joinWords = map[ast.JoinKind]string{ast.LeftJoin: " LEFT JOIN ", ast.RightJoin: " RIGHT JOIN ", ast.FullJoin: " FULL JOIN "}

func (w *ruleText) from(items []ast.TableExpr) {
	for i, t := range items {
		if i == 0 {
			w.keyword(" FROM ", -indentStep, indentStep, 2)
			w.table(t)
			continue
		}
		text := w.capture(func() { w.table(t) })
		w.str(", ")
		if w.wrap >= 0 {
			if strings.HasPrefix(text, "\n") {
				w.trim()
			} else if last := len(w.buf) - 1 - strings.LastIndexByte(string(w.buf), '\n'); last+len(text) > w.wrap {
				w.keyword("", -indentStep, indentStep, indentTargets)
			}
		}
		w.str(text)
	}
}

// table writes an item of FROM.
func (w *ruleText) table(t ast.TableExpr) {
	at := w.levels[len(w.levels)-1]
	switch t := t.(type) {
	case *ast.TableRef:
		name := t.Alias
		if name == "" {
			name = t.Name.Name
		}
		w.str(w.relation(t))
		if unique := at.names[name]; t.Alias != "" || unique != t.Name.Name {
			w.str(" ")
			w.ident(unique)
		}
		if len(t.Columns) > 0 {
			w.nameList(w.notes.columns[t])
		}
		w.sample(t.Sample)
	case *ast.DerivedTable:
		w.lateral(t.Lateral)
		w.str("(")
		w.query(t.Query, nil, true)
		w.str(") ")
		w.ident(at.names[t.Alias])
		if len(t.Columns) > 0 {
			w.nameList(w.notes.columns[t])
		}
	case *ast.TableFunc:
		w.lateral(t.Lateral || w.readsLevel(t))
		w.tableFunction(t)
		w.ordinality(t.Ordinality)
		w.str(" ")
		w.ident(at.names[functionAlias(t)])
		if len(t.ColumnDefs) > 0 {
			w.columnDefinitions(t.ColumnDefs)
		} else {
			w.nameList(w.notes.columns[t])
		}
	case *ast.RowsFrom:
		w.lateral(t.Lateral)
		w.str("ROWS FROM(")
		for i := range t.Functions {
			if i > 0 {
				w.str(", ")
			}
			w.tableFunction(&t.Functions[i])
			if defs := t.Functions[i].ColumnDefs; len(defs) > 0 {
				w.str(" AS ")
				w.columnDefinitions(defs)
			}
		}
		w.str(")")
		w.ordinality(t.Ordinality)
		w.str(" ")
		w.ident(at.names[rowsFromAlias(t)])
		w.nameList(w.notes.columns[t])
	case *ast.Join:
		w.join(t)
	default:
		w.failed = true
	}
}

func (w *ruleText) lateral(is bool) {
	if is {
		w.str("LATERAL ")
	}
}

// readsLevel reports whether the arguments of a function in FROM name columns of the query that it is in.
func (w *ruleText) readsLevel(t *ast.TableFunc) bool {
	found := false
	for _, e := range t.Call.Args {
		expr.Walk(w.boundTo(e), func(x expr.Scalar) bool {
			f := w.notes.forms[x]
			_, name := f.e.(*ast.ColumnRef)
			found = found || name && f.stmt != nil && f.stmt == w.levels[len(w.levels)-1].stmt
			return !found
		})
	}
	return found
}

func (w *ruleText) ordinality(with bool) {
	if with {
		w.str(" WITH ORDINALITY")
	}
}

func (w *ruleText) sample(s *ast.Sample) {
	if s == nil {
		return
	}
	w.str(" TABLESAMPLE " + s.Method[len(s.Method)-1] + " (")
	w.list(w.boundAll(s.Args), false)
	w.str(")")
	if s.Seed != nil {
		w.str(" REPEATABLE (")
		w.expr(w.boundTo(s.Seed), false)
		w.str(")")
	}
}

// tableFunction writes a call in FROM.
func (w *ruleText) tableFunction(t *ast.TableFunc) {
	if t.Call == nil {
		w.expr(w.boundTo(t.Expr), true)
		return
	}
	if x, ok := w.notes.bound[t.Call]; ok {
		w.expr(x, true)
		return
	}
	name := w.functionName(t.Call)
	if name == "unnest" && len(t.Call.Args) > 1 { // It is syntax for ROWS FROM.
		name = "UNNEST"
	}
	w.str(name + "(")
	w.arguments(t.Call, w.notes.args[t.Call])
	w.str(")")
}

func (w *ruleText) columnDefinitions(defs []ast.ColumnTypeDef) {
	w.str("(")
	for i := range defs {
		if i > 0 {
			w.str(", ")
		}
		w.ident(defs[i].Name)
		t, err := w.b.typeOf(defs[i].Type)
		if err != nil {
			w.failed = true
			return
		}
		w.str(" " + w.typeName(t))
	}
	w.str(")")
}

// relation is the name of a relation, with its schema unless the search path finds it.
func (w *ruleText) relation(t *ast.TableRef) string {
	name := ast.QuoteIdent(t.Name.Name)
	if t.Name.Schema != "" {
		found, err := w.r.Relation(w.b.ctx, "", t.Name.Name)
		if err != nil || found == nil || found.Schema != t.Name.Schema {
			name = ast.QuoteIdent(t.Name.Schema) + "." + name
		}
	}
	if t.Only {
		name = "ONLY " + name
	}
	return name
}

func (w *ruleText) join(t *ast.Join) {
	word := joinWords[t.Kind]
	using := w.notes.using[t]
	switch {
	case word == "" && t.On == nil && len(using) == 0:
		word = " CROSS JOIN "
	case word == "":
		word = " JOIN "
	}
	nested := false
	if right, ok := t.R.(*ast.Join); ok {
		nested = w.pretty && right.Alias == ""
	}
	parens := !w.pretty || t.Alias != ""
	if parens {
		w.str("(")
	}
	w.table(t.L)
	w.keyword(word, -indentStep, indentStep, indentJoin)
	if nested {
		w.str("(")
	}
	w.table(t.R)
	if nested {
		w.str(")")
	}
	switch {
	case len(using) > 0:
		w.str(" USING ")
		w.nameList(using)
		if t.UsingAlias != "" {
			w.str(" AS ")
			w.ident(t.UsingAlias)
		}
	case t.On != nil:
		w.str(" ON ")
		w.group(func() { w.expr(w.boundTo(t.On), false) })
	case joinWords[t.Kind] != "":
		w.str(" ON TRUE")
	}
	if parens {
		w.str(")")
	}
	if t.Alias != "" {
		w.str(" ")
		w.ident(w.levels[len(w.levels)-1].names[t.Alias])
		w.nameList(t.Columns)
	}
}

// window writes the specification of a window.
func (w *ruleText) window(over *ast.Window) {
	w.str("(")
	space := ""
	part := func(word string) {
		w.str(space + word)
		space = " "
	}
	if over.Name != "" {
		part("")
		w.ident(over.Name)
	}
	if len(over.PartitionBy) > 0 {
		part("PARTITION BY ")
		w.keys(over.PartitionBy, nil)
	}
	if len(over.OrderBy) > 0 {
		part("ORDER BY ")
		w.orderBy(over.OrderBy, nil)
	}
	if f := over.Frame; f != nil && !defaultFrame(f) {
		part(string(f.Mode) + " ")
		if f.Between {
			w.str("BETWEEN ")
			w.frameBound(&f.Start)
			w.str(" AND ")
			w.frameBound(&f.End)
		} else {
			w.frameBound(&f.Start)
		}
		if f.Exclude != "" {
			w.str(" EXCLUDE " + string(f.Exclude))
		}
	}
	w.str(")")
}

func defaultFrame(f *ast.Frame) bool {
	return f.Mode == ast.FrameRange && !f.Between && f.Start.Kind == ast.UnboundedPreceding && f.Exclude == ""
}

func (w *ruleText) frameBound(b *ast.FrameBound) {
	if b.Offset != nil {
		w.expr(w.boundTo(b.Offset), false)
	}
	w.str(map[ast.BoundKind]string{
		ast.UnboundedPreceding: "UNBOUNDED PRECEDING", ast.OffsetPreceding: " PRECEDING", ast.CurrentRow: "CURRENT ROW",
		ast.OffsetFollowing: " FOLLOWING", ast.UnboundedFollowing: "UNBOUNDED FOLLOWING",
	}[b.Kind])
}
