package mysql

import (
	"reflect"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// A converted tree printed as PostgreSQL's text parses back to an equal tree. So package sql decides which literals of a
// MySQL statement are slots, and what its plan cache key is: its lexer reads the printed text. The tree with slots is parsed
// from that text when there is no plan, and takes its positions from the converted tree.

// keyMark begins the keys of MySQL's statements: their plans have positions of MySQL's texts.
const keyMark = "\x00mysql\x00"

// maxTextKey bounds a statement's text that is its own key.
const maxTextKey = 4 << 10

// slotter makes statements of converted ones. It keeps a lexer's buffers. Not safe for concurrent use.
type slotter struct {
	lexer *sql.Lexer
	meter *sql.Meter
}

func (s *slotter) statement(st *Statement) *sql.Statement {
	parse := func() (ast.Statement, error) { return st.Tree, nil }
	if !hasPlan(st.Tree) {
		return sql.NewStatement(parse, nil, nil, st.Text, st.Offset, st.Params)
	}
	printed := s.printed(st.Tree)
	if printed == nil {
		var key []byte // of a long text none: it would fill the cache
		if len(st.Text) <= maxTextKey {
			key = append([]byte(keyMark), st.Text...)
		}
		return sql.NewStatement(parse, key, nil, st.Text, st.Offset, st.Params)
	}
	parse = func() (ast.Statement, error) {
		tree, err := sql.Parse(printed, s.meter)
		if err != nil { // it has no support; the position is the printed text's
			if e, ok := err.(*pgerror.Error); ok {
				e.Position = 0
			}
			return nil, err
		}
		copyPositions(reflect.ValueOf(tree), reflect.ValueOf(st.Tree))
		return tree, nil
	}
	place(printed.Literals, st.Tree)
	key := append([]byte(keyMark), printed.Key...)
	return sql.NewStatement(parse, key, printed.Literals, st.Text, st.Offset, st.Params)
}

// hasPlan reports whether a statement is run by a plan.
func hasPlan(tree ast.Statement) bool {
	switch tree.(type) {
	case *ast.Query, *ast.Insert, *ast.Update, *ast.Delete:
		return true
	}
	return false
}

// printed is the statement printed and read by package sql's lexer, nil where PostgreSQL has no words for it.
func (s *slotter) printed(tree ast.Statement) *sql.Statement {
	if ins, ok := tree.(*ast.Insert); ok && ins.OnConflict != nil && ins.OnConflict.AnyKey {
		return nil
	}
	if s.lexer == nil {
		s.lexer = sql.NewLexer()
		s.lexer.UseMeter(s.meter)
	}
	s.lexer.Reset(tree.String())
	st, err := s.lexer.Next()
	if err != nil || len(st.Key) == 0 {
		return nil
	}
	return st.Clone()
}

// place sets the positions of literals, which stand in the text nearly in the order of the tree's.
func place(literals []sql.Literal, tree ast.Statement) {
	if len(literals) == 0 {
		return
	}
	var list []*ast.Literal
	collect := ast.Visitor{Expr: func(x ast.Expr) {
		if lit, ok := x.(*ast.Literal); ok && lit.Pos > 0 {
			list = append(list, lit)
		}
	}}
	switch n := tree.(type) {
	case *ast.Query:
		ast.InspectQuery(n, collect)
	case *ast.Insert:
		if n.Query != nil {
			ast.InspectQuery(n.Query, collect)
		}
	case *ast.Update:
		for _, a := range n.Set {
			ast.InspectExpr(a.Value, collect)
		}
		ast.InspectExpr(n.Where, collect)
	case *ast.Delete:
		ast.InspectExpr(n.Where, collect)
	}
	at := 0
	for i := range literals {
		literals[i].Pos = 0
		for j := range list {
			if lit := list[(at+j)%len(list)]; lit.Kind == literals[i].Kind && lit.Value == literals[i].Value {
				literals[i].Pos = int(lit.Pos)
				at = (at + j + 1) % len(list)
				break
			}
		}
	}
}

var (
	posType  = reflect.TypeFor[ast.Pos]()
	itemType = reflect.TypeFor[ast.SelectItem]()
)

// copyPositions gives a tree the positions of an equal one, and says which aliases the client has not written.
func copyPositions(to, from reflect.Value) {
	if !to.IsValid() || !from.IsValid() || to.Type() != from.Type() {
		return
	}
	switch to.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !to.IsNil() && !from.IsNil() {
			copyPositions(to.Elem(), from.Elem())
		}
	case reflect.Slice:
		for i := range min(to.Len(), from.Len()) {
			copyPositions(to.Index(i), from.Index(i))
		}
	case reflect.Struct:
		for i := range to.NumField() {
			switch {
			case !to.Field(i).CanSet():
			case to.Type().Field(i).Type == posType:
				to.Field(i).SetInt(from.Field(i).Int())
			case to.Type() == itemType && to.Type().Field(i).Name == "Aliased":
				to.Field(i).SetBool(from.Field(i).Bool())
			default:
				copyPositions(to.Field(i), from.Field(i))
			}
		}
	}
}
