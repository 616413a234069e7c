package planner

import (
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/types"
)

// Indentation of queries, PostgreSQL's.
const (
	indentStep     = 8
	indentJoin     = 4
	indentTargets  = 4
	indentLimit    = 40 // beyond it, lines are indented less
	indentHalfStep = indentStep / 2
)

// queryLevel has the names of a query's FROM items while it is written: each differs from those around it.
type queryLevel struct {
	stmt  *ast.Select
	reads bool              // it has a relation, be it one of VALUES
	names map[string]string // by the name in the text
	taken []string
}

// keyword begins a line with a word: before and after change the indentation for it and for what follows, plus is for this
// line alone.
func (w *ruleText) keyword(word string, before, after, plus int) {
	if w.flat {
		w.str(word)
		return
	}
	w.indent += before
	w.trim()
	amount := max(w.indent, 0)
	if w.indent >= indentLimit {
		amount = (indentLimit + (w.indent-indentLimit)/indentHalfStep) % indentLimit
	}
	w.str("\n" + strings.Repeat(" ", amount+plus) + word)
	w.indent = max(w.indent+after, 0)
}

// begin begins a query: a line of it is indented.
func (w *ruleText) begin() {
	if w.indent += indentStep; !w.flat {
		w.str(" ")
	}
}

// trim removes the blanks at the end.
func (w *ruleText) trim() { w.buf = []byte(strings.TrimRight(string(w.buf), " ")) }

// refName is the name of the FROM item that a name means.
func (w *ruleText) refName(f form) string {
	for i := len(w.levels) - 1; i >= 0; i-- {
		if w.levels[i].stmt == f.stmt {
			if name, ok := w.levels[i].names[f.alias]; ok {
				return name
			}
		}
	}
	return f.alias
}

// enter begins the query of a SELECT.
func (w *ruleText) enter(s *ast.Select, reserved ...string) {
	l := &queryLevel{stmt: s, names: map[string]string{}, taken: reserved}
	if s != nil {
		for _, t := range s.From {
			w.addNames(l, t)
		}
	}
	w.levels = append(w.levels, l)
}

func (w *ruleText) leave() { w.levels = w.levels[:len(w.levels)-1] }

// addNames names the items that a FROM item consists of.
func (w *ruleText) addNames(l *queryLevel, t ast.TableExpr) {
	switch t := t.(type) {
	case *ast.TableRef:
		name := t.Alias
		if name == "" {
			name = t.Name.Name
		}
		w.addName(l, name)
	case *ast.DerivedTable:
		w.addName(l, t.Alias)
	case *ast.TableFunc:
		w.addName(l, functionAlias(t))
	case *ast.RowsFrom:
		w.addName(l, rowsFromAlias(t))
	case *ast.Join:
		w.addNames(l, t.L)
		w.addNames(l, t.R)
		for _, alias := range []string{t.Alias, t.UsingAlias} {
			if alias != "" {
				w.addName(l, alias)
			}
		}
	}
}

func (w *ruleText) addName(l *queryLevel, name string) {
	unique := name
	for n := 1; w.nameTaken(l, unique); n++ {
		unique = name + "_" + strconv.Itoa(n)
	}
	l.names[name], l.taken = unique, append(l.taken, unique)
}

func (w *ruleText) nameTaken(l *queryLevel, name string) bool {
	return slices.ContainsFunc(append(w.levels, l), func(at *queryLevel) bool { return slices.Contains(at.taken, name) })
}

// lockable are the items of FROM that FOR UPDATE locks.
func (l *queryLevel) lockable(items []ast.TableExpr) (names []string) {
	for _, t := range items {
		switch t := t.(type) {
		case *ast.TableRef:
			name := t.Alias
			if name == "" {
				name = t.Name.Name
			}
			names = append(names, l.names[name])
		case *ast.DerivedTable:
			names = append(names, l.names[t.Alias])
		case *ast.Join:
			names = append(names, l.lockable([]ast.TableExpr{t.L, t.R})...)
		}
	}
	return names
}

func functionAlias(t *ast.TableFunc) string {
	if t.Alias != "" || t.Call == nil {
		return t.Alias
	}
	return t.Call.Name[len(t.Call.Name)-1]
}

func rowsFromAlias(t *ast.RowsFrom) string {
	if t.Alias == "" && len(t.Functions) > 0 {
		return functionAlias(&t.Functions[0])
	}
	return t.Alias
}

// query writes a query. names are those of its columns, nil for its own; shown: each column that is no bare name is named.
func (w *ruleText) query(q *ast.Query, names []string, shown bool) {
	saved := w.indent
	var reserved []string
	if len(w.levels) == 0 && shown { // A view has these names.
		reserved = []string{"old", "new"}
	}
	body := q.Body
	if nested, ok := body.(*ast.Nested); ok && q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Offset == nil && !q.All {
		w.query(nested.Query, names, shown)
		return
	}
	s, _ := body.(*ast.Select)
	w.enter(s, reserved...)
	w.with(q.With)
	combined := false
	switch b := body.(type) {
	case *ast.Select:
		w.selectQuery(b, names, shown)
	case *ast.Values:
		w.levels[len(w.levels)-1].reads = true
		w.valuesQuery(b, names)
	default:
		w.combined(body, names, shown)
		combined = true
	}
	w.tail(q, combined)
	w.leave()
	w.indent = saved
}

// tail writes what follows the body of a query.
func (w *ruleText) tail(q *ast.Query, combined bool) {
	clause := func(word string, plus int) { w.keyword(word, -indentStep, indentStep, plus) }
	if len(q.OrderBy) > 0 {
		clause(" ORDER BY ", 1)
		w.orderBy(q.OrderBy, q.Body)
	}
	if q.Offset != nil {
		clause(" OFFSET ", 0)
		w.expr(w.boundTo(q.Offset), false)
	}
	switch {
	case q.Ties:
		clause(" FETCH FIRST ", 0)
		w.str("(")
		w.expr(w.boundTo(q.Limit), false)
		w.str(") ROWS WITH TIES")
	case q.Limit != nil:
		clause(" LIMIT ", 0)
		w.expr(w.boundTo(q.Limit), false)
	case q.All:
		clause(" LIMIT ALL", 0)
	}
	level := w.levels[len(w.levels)-1]
	for _, l := range q.Locking {
		var of []string
		for _, name := range l.Of {
			of = append(of, level.names[name.Name])
		}
		if of == nil && level.stmt != nil {
			of = level.lockable(level.stmt.From)
		}
		for _, name := range of {
			clause(" FOR "+l.Strength+" OF ", 0)
			w.ident(name)
			if l.Wait != "" {
				w.str(" " + l.Wait)
			}
		}
	}
}

func (w *ruleText) with(with *ast.With) {
	if with == nil {
		return
	}
	w.begin()
	word := "WITH "
	if with.Recursive {
		word = "WITH RECURSIVE "
	}
	for i := range with.CTEs {
		c := &with.CTEs[i]
		w.str(word)
		word = ", "
		w.ident(c.Name)
		w.nameList(c.Columns)
		w.str(" AS ")
		if c.Materialized != nil {
			if !*c.Materialized {
				w.str("NOT ")
			}
			w.str("MATERIALIZED ")
		}
		w.str("(")
		w.line()
		q, ok := c.Statement.(*ast.Query)
		if !ok {
			w.failed = true
			return
		}
		w.query(q, nil, true)
		w.line()
		w.str(")")
		w.searchCycle(c)
	}
	w.indent -= indentStep
	w.line()
}

// line begins a line.
func (w *ruleText) line() { w.keyword("", 0, 0, 0) }

func (w *ruleText) searchCycle(c *ast.CTE) {
	if s := c.Search; s != nil {
		order := "DEPTH"
		if s.Breadth {
			order = "BREADTH"
		}
		w.str(" SEARCH " + order + " FIRST BY ")
		w.idents(s.Columns)
		w.str(" SET ")
		w.ident(s.Set)
	}
	if y := c.Cycle; y != nil {
		w.str(" CYCLE ")
		w.idents(y.Columns)
		w.str(" SET ")
		w.ident(y.Mark)
		if y.To != nil {
			w.str(" TO ")
			w.expr(w.boundTo(y.To), false)
			w.str(" DEFAULT ")
			w.expr(w.boundTo(y.Default), false)
		}
		w.str(" USING ")
		w.ident(y.Using)
	}
}

func (w *ruleText) idents(names []string) {
	for i, name := range names {
		if i > 0 {
			w.str(", ")
		}
		w.ident(name)
	}
}

// nameList writes the names of columns in parentheses, nothing for none.
func (w *ruleText) nameList(names []string) {
	if len(names) > 0 {
		w.str("(")
		w.idents(names)
		w.str(")")
	}
}

// combined writes a set operation, or a part of one.
func (w *ruleText) combined(body ast.QueryBody, names []string, shown bool) {
	op, ok := body.(*ast.SetOp)
	if !ok {
		w.branch(body, names, shown)
		return
	}
	left, chained := op.L.(*ast.SetOp)
	if chained && (left.Op != op.Op || left.All != op.All) {
		w.str("(")
		w.keyword("", indentStep, 0, 0)
		w.combined(op.L, names, shown)
		w.keyword(") ", -indentStep, 0, 0)
	} else {
		w.combined(op.L, names, shown)
		w.line()
	}
	w.str(op.Op + " ")
	if op.All {
		w.str("ALL ")
	}
	if _, nested := op.R.(*ast.SetOp); !nested {
		w.line()
		w.combined(op.R, names, false)
		return
	}
	w.str("(")
	w.keyword("", indentStep, 0, 0)
	w.combined(op.R, names, false)
	w.indent -= indentStep
	w.keyword(")", 0, 0, 0)
}

// branch writes a query that a set operation combines.
func (w *ruleText) branch(body ast.QueryBody, names []string, shown bool) {
	q := &ast.Query{Body: body}
	if nested, ok := body.(*ast.Nested); ok {
		q = nested.Query
	}
	if _, op := q.Body.(*ast.SetOp); op && plainQuery(q) {
		w.combined(q.Body, names, shown)
		return
	}
	if plainQuery(q) {
		w.query(q, names, shown)
		return
	}
	w.str("(")
	w.query(q, names, shown)
	w.str(")")
}

// plainQuery reports whether a query consists of its body alone.
func plainQuery(q *ast.Query) bool {
	return q.With == nil && len(q.OrderBy) == 0 && len(q.Locking) == 0 && q.Offset == nil && q.Limit == nil && !q.All
}

// valuesQuery writes VALUES, as a SELECT if the columns have other names than its own.
func (w *ruleText) valuesQuery(v *ast.Values, names []string) {
	w.begin()
	own := make([]string, len(v.Rows[0]))
	for i := range own {
		own[i] = "column" + strconv.Itoa(i+1)
	}
	if names == nil || slices.Equal(names[:min(len(names), len(own))], own) {
		w.values(v)
		return
	}
	w.str("SELECT")
	w.targets(len(own), func(i int) {
		w.str(`"*VALUES*".` + own[i])
		if i < len(names) && names[i] != own[i] {
			w.str(" AS ")
			w.ident(names[i])
		}
	})
	w.keyword(" FROM ", -indentStep, indentStep, 2)
	w.str("(")
	w.values(v)
	w.str(`) "*VALUES*"`)
}

func (w *ruleText) values(v *ast.Values) {
	w.str("VALUES ")
	q := w.notes.queries[v]
	if q == nil || q.values == nil {
		w.failed = true
		return
	}
	for i, row := range q.values.rows {
		if i > 0 {
			w.str(", ")
		}
		w.str("(")
		for j, x := range row {
			if j > 0 {
				w.str(",")
			}
			w.alone(x, false)
		}
		w.str(")")
	}
}

func (w *ruleText) selectQuery(s *ast.Select, names []string, shown bool) {
	clause := func(word string, plus int) { w.keyword(word, -indentStep, indentStep, plus) }
	w.begin()
	if returns(s) {
		w.str("RETURN ")
		w.expr(w.boundTo(s.Columns[0].Expr), true)
		return
	}
	w.str("SELECT")
	switch {
	case len(s.DistinctOn) > 0:
		w.str(" DISTINCT ON (")
		w.keys(s.DistinctOn, s)
		w.str(")")
	case s.Distinct:
		w.str(" DISTINCT")
	}
	w.targets(len(s.Columns), func(i int) {
		name := s.Columns[i].Name
		if i < len(names) {
			name = names[i]
		}
		w.target(s, i, name, shown)
	})
	w.from(s.From)
	if s.Where != nil {
		clause(" WHERE ", 1)
		w.expr(w.boundTo(s.Where), false)
	}
	if len(s.GroupBy) > 0 {
		clause(" GROUP BY ", 1)
		if s.GroupSets {
			w.str("DISTINCT ")
		}
		for i, e := range s.GroupBy {
			if i > 0 {
				w.str(", ")
			}
			w.grouping(e, s, true)
		}
	}
	if s.Having != nil {
		clause(" HAVING ", 0)
		w.expr(w.boundTo(s.Having), false)
	}
	for i := range s.Windows {
		if i == 0 {
			clause(" WINDOW ", 1)
		} else {
			w.str(", ")
		}
		w.ident(s.Windows[i].Name)
		w.str(" AS ")
		w.window(&s.Windows[i].Window)
	}
}

// grouping writes a key of GROUP BY or a grouping set; bare: a set of one key has no parentheses.
func (w *ruleText) grouping(e ast.Expr, s *ast.Select, bare bool) {
	set, ok := e.(*ast.GroupingSet)
	if !ok {
		if row, isRow := e.(*ast.Row); isRow && !row.Explicit {
			set = &ast.GroupingSet{Items: row.Elems}
		} else {
			set = &ast.GroupingSet{Items: []ast.Expr{e}}
		}
	}
	switch {
	case set.Kind == "" && len(set.Items) == 0:
		w.str("()")
	case set.Kind == "":
		parens := !bare || len(set.Items) != 1
		if parens {
			w.str("(")
		}
		w.keys(set.Items, s)
		if parens {
			w.str(")")
		}
	default:
		w.str(set.Kind)
		if set.Kind == "GROUPING SETS" {
			w.str(" ")
		}
		w.str("(")
		for i, item := range set.Items {
			if i > 0 {
				w.str(", ")
			}
			w.grouping(item, s, set.Kind != "GROUPING SETS")
		}
		w.str(")")
	}
}

// targets writes a select list of n entries, each in a line of its own as far as the width demands.
func (w *ruleText) targets(n int, target func(i int)) {
	multiline := false
	for i := range n {
		text := w.capture(func() { target(i) })
		if i == 0 {
			w.str(" ")
		} else {
			w.str(", ")
		}
		if w.wrap >= 0 {
			if strings.HasPrefix(text, "\n") {
				w.trim()
			} else if last := len(w.buf) - 1 - strings.LastIndexByte(string(w.buf), '\n'); i > 0 && (last+len(text) > w.wrap || multiline) {
				w.keyword("", -indentStep, indentStep, indentTargets)
			}
			multiline = strings.Contains(text[min(1, len(text)):], "\n")
		}
		w.str(text)
	}
}

// target writes an entry of a select list.
func (w *ruleText) target(s *ast.Select, i int, name string, shown bool) {
	it := &s.Columns[i]
	x := w.boundTo(it.Expr)
	own := "?column?"
	if shown {
		own = ""
	}
	switch c := x.(type) {
	case *expr.Const:
		if q := w.notes.queries[s]; q != nil && c.Typ.OID == types.OIDUnknown && i < len(q.cols) {
			x = w.literalOf(c, w.b.cols[q.cols[i].id].Type)
		}
		w.expr(x, true)
	default:
		w.alone(x, true)
	}
	if f, ok := w.notes.forms[x]; ok {
		_, parameter := x.(*expr.Input)
		if _, column := f.e.(*ast.ColumnRef); column && f.column != "" && !parameter {
			own = f.column
		}
	}
	if name != own {
		w.str(" AS ")
		w.ident(name)
	}
}

// literalOf is a literal that the query has given a type.
func (w *ruleText) literalOf(c *expr.Const, t types.Type) expr.Scalar {
	if c.Value.IsNull() {
		return expr.NewNull(t.Base())
	}
	x, err := w.b.coerce(c, t.Base(), castImplicit, 0)
	if err != nil {
		return c
	}
	return x
}

// keys writes expressions by which rows are grouped.
func (w *ruleText) keys(es []ast.Expr, body ast.QueryBody) {
	for i, e := range es {
		if i > 0 {
			w.str(", ")
		}
		w.key(e, body)
	}
}

// key writes an expression by which rows are sorted or grouped, which may name a column of the result of body by its name or place.
func (w *ruleText) key(e ast.Expr, body ast.QueryBody) {
	place := -1
	columns, combined := resultColumns(body)
	if lit := placeConstant(e); lit != nil && body != nil {
		place, _ = strconv.Atoi(lit.Value)
		place--
	} else if _, bound := w.notes.bound[e]; !bound {
		if ref, ok := e.(*ast.ColumnRef); ok {
			place = slices.IndexFunc(columns, func(it ast.SelectItem) bool { return it.Name == ref.Parts[len(ref.Parts)-1] })
		}
	}
	switch {
	case combined && place >= 0:
		w.str(strconv.Itoa(place + 1))
		return
	case place >= 0 && place < len(columns):
		e = columns[place].Expr
	}
	x := w.boundTo(e)
	if c, ok := x.(*expr.Const); ok {
		w.constant(c, alwaysLabel)
		return
	}
	f := w.notes.forms[x].e
	call, isCall := f.(*ast.Call)
	_, column := x.(*expr.Column)
	_, function := x.(*expr.Call)
	cast, isCast := x.(*expr.Cast)
	isCall = isCall && call.Syntax != ast.ValueSyntax && (column || function)
	parens := w.pretty || isCall || isCast && byFunction(cast)
	if _, name := f.(*ast.ColumnRef); (column || name) && !isCall {
		parens = false
	}
	if parens {
		w.str("(")
	}
	w.expr(x, true)
	if parens {
		w.str(")")
	}
}

// resultColumns are the columns of a query's result as its first SELECT names them.
func resultColumns(body ast.QueryBody) (columns []ast.SelectItem, combined bool) {
	for {
		switch b := body.(type) {
		case *ast.SetOp:
			body, combined = b.L, true
		case *ast.Nested:
			body = b.Query.Body
		case *ast.Select:
			return b.Columns, combined
		case *ast.Values:
			for i := range b.Rows[0] {
				columns = append(columns, ast.SelectItem{Name: "column" + strconv.Itoa(i+1)})
			}
			return columns, combined
		default:
			return nil, combined
		}
	}
}

func (w *ruleText) orderBy(items []ast.OrderItem, body ast.QueryBody) {
	for i := range items {
		it := &items[i]
		if i > 0 {
			w.str(", ")
		}
		w.key(it.Expr, body)
		if it.Desc {
			w.str(" DESC")
		}
		switch {
		case it.NullsFirst && !it.Desc:
			w.str(" NULLS FIRST")
		case !it.NullsFirst && it.Desc:
			w.str(" NULLS LAST")
		}
	}
}

// columnNames are those of a relation that a query defines.
func columnNames(t *catalog.TableDescriptor) []string {
	names := make([]string, len(t.Columns))
	for i := range names {
		names[i] = t.Columns[i].Name
	}
	return names
}
