package sql

import (
	"strconv"

	"github.com/percodb/percodb/sql/ast"
)

// item is what a carrier in the text for TiDB's grammar stands for.
type item struct {
	node  any    // one of the types below, an ast node, or nil for a mark
	holes []hole // subqueries inside node, in the order of the carrier's arguments
}

// hole is a place in a tree that waits for TiDB's part: exactly one pointer is set.
type hole struct {
	query *(*ast.Query)
	from  *[]ast.TableExpr
	stmt  *ast.Statement
}

// What items hold besides expressions and statements.
type (
	// selectHead is the field list of a SELECT that is one.
	selectHead struct {
		pos        ast.Pos
		distinct   bool
		distinctOn []ast.Expr
		columns    []ast.SelectItem
		asOf       ast.Expr
	}
	// groupList is the list of GROUP BY.
	groupList struct{ items []ast.Expr }
	// havingTail is HAVING and WINDOW.
	havingTail struct {
		having  ast.Expr
		windows []ast.NamedWindow
	}
	// queryTail is ORDER BY, LIMIT, OFFSET and the locking clauses, in the place of ORDER BY.
	queryTail struct {
		orderBy       []ast.OrderItem
		limit, offset ast.Expr
		locking       []ast.Locking
	}
	// joinQual is the ON of every join.
	joinQual struct {
		pos     ast.Pos
		kind    ast.JoinKind
		natural bool
		using   []string
		on      ast.Expr
		alias   string
		columns []string // names the alias gives to columns
		isAlias bool     // no join: the alias of the parenthesised join on its left
	}
)

func (p *parser) emit(s string) { p.buf = append(p.buf, s...) }

func (p *parser) emitCarrier(id int) {
	p.buf = append(p.buf, 'q')
	p.buf = strconv.AppendInt(p.buf, int64(id), 10)
}

// begin starts a carrier and returns its id and the carrier it is inside of, for end.
func (p *parser) begin() (id, outer int) {
	id, outer = len(p.items), p.open
	p.items = append(p.items, item{})
	p.open = id
	p.emitCarrier(id)
	return id, outer
}

// end finishes a carrier that stands for node.
func (p *parser) end(id, outer int, node any) {
	if len(p.items[id].holes) > 0 {
		p.emit(")")
	}
	p.items[id].node = node
	p.open = outer
}

// hole starts a subquery of the open carrier: its text follows up to endHole.
func (p *parser) hole(h hole) {
	it := &p.items[p.open]
	if len(it.holes) == 0 {
		p.emit("((")
	} else {
		p.emit(",(")
	}
	it.holes = append(it.holes, h)
	p.tree = true
}

func (p *parser) endHole() { p.emit(")") }

// subquery reads (query) into dst.
func (p *parser) subquery(dst *(*ast.Query)) {
	p.expect('(')
	p.holeQuery(dst)
	p.expect(')')
}

// holeQuery reads a query without parentheses of its own into dst.
func (p *parser) holeQuery(dst *(*ast.Query)) {
	if p.err != nil {
		return
	}
	p.hole(hole{query: dst})
	p.query()
	p.endHole()
}

// startsQuery reports whether the parenthesis at the current token plus n encloses a query rather
// than an expression.
func (p *parser) startsQuery(n int) bool {
	at := p.pos + n
	in := at
	for in < len(p.toks) && p.toks[in].kind == '(' {
		in++
	}
	if in == at || in >= len(p.toks) || !queryWord(p.toks, in) {
		return false
	}
	// The innermost parenthesis encloses a query. Each outer one does if the query goes on behind the
	// inner one or ends there.
	for in--; in > at; in-- {
		close := p.toks[in].aux
		if close < 0 {
			return true // unbalanced: an error either way
		}
		if next := &p.toks[close+1]; next.kind != ')' && next.kind != tokEOF && !continuesQuery(next) {
			return false
		}
	}
	return true
}
