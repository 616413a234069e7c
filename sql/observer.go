package sql

import (
	"unicode/utf8"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
)

// PostgreSQL has no observers. The words of their statements that are no keywords of PostgreSQL's stay plain names: each has a
// meaning only where PostgreSQL's grammar has no name.

// spells reports whether a token is the unquoted word given, which is no keyword.
func (p *parser) spells(t *token, word string) bool {
	return t.kind == tokIdent && t.kw == kw.None && kw.Fold(p.text[t.start:t.end]) == word
}

// acceptName accepts a word that is no keyword.
func (p *parser) acceptName(word string) bool {
	if !p.spells(p.cur(), word) {
		return false
	}
	p.advance()
	return true
}

// acceptObserver accepts OBSERVER, as the kind of an object.
func (p *parser) acceptObserver() bool { return p.acceptName("observer") }

// createObserver reads CREATE [OR REPLACE] OBSERVER behind these words.
func (p *parser) createObserver(pos ast.Pos, orReplace bool) ast.Statement {
	st := &ast.CreateObserver{Pos: pos, OrReplace: orReplace, Name: p.colID()}
	p.expectWord(kw.On)
	st.Table = p.tableName()
	if p.accept('(') {
		st.Columns = p.observerColumns()
	}
	if p.acceptWord(kw.When) {
		p.expect('(')
		st.When = p.expr()
		p.expect(')')
	}
	if p.acceptWord(kw.From) {
		switch {
		case p.acceptName("now"):
			st.From = "NOW"
		case p.acceptName("beginning"):
			st.From = "BEGINNING"
		default:
			p.unexpected()
		}
	}
	if p.acceptWord(kw.With) {
		st.Options = p.observerOptions()
	}
	if p.acceptWord(kw.As) {
		st.Body = p.observerBody()
	}
	return st
}

// observerColumns reads name, …).
func (p *parser) observerColumns() (list []ast.ObserverColumn) {
	for first := true; first || p.accept(','); first = false {
		list = append(list, ast.ObserverColumn{Pos: p.here(), Name: p.colID()})
	}
	p.expect(')')
	return list
}

// observerOptions reads (name [= value], …).
func (p *parser) observerOptions() []ast.ObserverOption {
	p.expect('(')
	var list []ast.ObserverOption
	for first := true; first || p.accept(','); first = false {
		o := ast.ObserverOption{Pos: p.here(), Name: p.colLabel()}
		if p.acceptOp('=') {
			o.Value = p.settingValue()
		}
		list = append(list, o)
	}
	p.expect(')')
	return list
}

// observerBody reads a string constant that holds statements.
func (p *parser) observerBody() *ast.ObserverBody {
	t := p.cur()
	body := &ast.ObserverBody{Pos: p.here() + 1}
	body.SQL = p.stringLit()
	if p.err == nil && t.sub&styleMask == styleDollar {
		tags := int(t.end-t.start) - len(body.SQL)
		body.Pos += ast.Pos(utf8.RuneCountInString(p.text[t.start:int(t.start)+tags/2])) - 1
	}
	return body
}

// alterObserver reads ALTER OBSERVER behind these words.
func (p *parser) alterObserver(pos ast.Pos) ast.Statement {
	st := &ast.AlterObserver{Pos: pos, Name: p.tableName()}
	switch {
	case p.acceptWord(kw.Enable):
		st.Change = ast.EnableObserver
	case p.acceptWord(kw.Disable):
		st.Change = ast.DisableObserver
	case p.acceptWord(kw.Set):
		st.Change = ast.SetObserver
		st.Options = p.observerOptions()
	case p.acceptWords(kw.Rename, kw.To):
		st.Change = ast.RenameObserver
		st.NewName = p.colID()
	case p.acceptWords(kw.Owner, kw.To):
		st.Change = ast.OwnObserver
		owner := p.role()
		st.Owner = &owner
	case p.acceptName("retry"):
		st.Change = ast.RetryObserver
		st.Where = p.observerWhere()
	default:
		p.unexpected()
	}
	return st
}

// observerWhere reads [WHERE condition].
func (p *parser) observerWhere() ast.Expr {
	if !p.acceptWord(kw.Where) {
		return nil
	}
	return p.expr()
}

// dropObserver reads DROP OBSERVER behind these words.
func (p *parser) dropObserver(pos ast.Pos) ast.Statement {
	st := &ast.DropObserver{Pos: pos, IfExists: p.ifExists()}
	st.Names = p.tableNames()
	st.Cascade = p.cascade()
	return st
}

// notifyObserver reads NOTIFY OBSERVER behind NOTIFY; nil if the statement is NOTIFY of a channel, which may be named observer:
// then no name follows it.
func (p *parser) notifyObserver(pos ast.Pos) ast.Statement {
	if !p.spells(p.cur(), "observer") || !isColID(p.peek(1)) {
		return nil
	}
	p.advance()
	return &ast.NotifyObserver{Pos: pos, Name: p.tableName(), Where: p.observerWhere()}
}

// waitObserver reads WAIT FOR OBSERVER behind its first word, t; nil if that is another.
func (p *parser) waitObserver(t *token, pos ast.Pos) ast.Statement {
	if !p.spells(t, "wait") || !p.isWord(kw.For) || !p.spells(p.peek(1), "observer") {
		return nil
	}
	p.advance()
	p.advance()
	return &ast.WaitObserver{Pos: pos, Name: p.tableName()}
}

// commentObserver reads COMMENT ON OBSERVER behind these words.
func (p *parser) commentObserver(pos ast.Pos) ast.Statement {
	c := &ast.Comment{Pos: pos, Object: p.object("OBSERVER", pathName)}
	p.expectWord(kw.Is)
	c.Text = p.textOrNull()
	return c
}
