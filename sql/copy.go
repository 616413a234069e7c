package sql

import (
	"strings"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// copy reads COPY in its old and new forms; the options of both arrive under the new names.
func (p *parser) copy(pos ast.Pos) ast.Statement {
	st := &ast.Copy{Pos: pos}
	if p.isWord(kw.Binary) && p.peek(1).kind != '.' && p.peek(1).kind != '(' {
		p.advance()
		st.Old = true
		st.Options = append(st.Options, ast.StorageOption{Name: "format", Value: "binary", Written: "BINARY"})
	}
	if p.accept('(') {
		if isDML(p.cur().kw) {
			p.notYet(p.here(), "COPY of a data-modifying statement", "Copy the result of a query.")
			st.DML = p.inner()
		} else {
			p.requireQuery()
			st.Query = p.query()
		}
		p.expect(')')
		p.expectWord(kw.To)
	} else {
		st.Table = p.tableName()
		if p.is('(') {
			st.Columns = p.columnList()
		}
		if st.From = p.acceptWord(kw.From); !st.From {
			p.expectWord(kw.To)
		}
	}
	st.Source = "STDOUT"
	if st.From {
		st.Source = "STDIN"
	}
	if !p.acceptWord(kw.Stdin) && !p.acceptWord(kw.Stdout) {
		pos := p.here()
		st.Program = p.acceptWord(kw.Program)
		file := p.stringLit()
		st.Source, st.File = "", &file
		p.notYet(pos, "COPY with a file or program of the server",
			"Use COPY … FROM STDIN or TO STDOUT; psql's \\copy does so.")
	}
	p.copyOptions(st)
	if at := p.here(); p.acceptWord(kw.Where) {
		if st.Where = p.expr(); !st.From && p.err == nil {
			p.failAt(at, pgerror.SyntaxError, "WHERE clause not allowed with COPY TO")
		}
	}
	return st
}

// copyOptions reads the options of COPY.
func (p *parser) copyOptions(st *ast.Copy) {
	if p.isWord(kw.Using) || p.isWord(kw.Delimiters) {
		p.acceptWord(kw.Using)
		p.expectWord(kw.Delimiters)
		value := p.stringLit()
		st.Old = true
		st.Options = append(st.Options, ast.StorageOption{Name: "delimiter", Value: value, Written: "DELIMITER " + ast.QuoteString(value)})
	}
	p.acceptWord(kw.With)
	if !p.accept('(') {
		for p.oldCopyOption(st) {
		}
		return
	}
	for i := range st.Options { // of the old form, which the list continues
		st.Options[i].Written = ""
	}
	st.Old = false
	for first := true; first || p.accept(','); first = false {
		o := ast.StorageOption{Name: p.colLabel()}
		start := p.pos
		switch {
		case p.acceptOp('*'):
			o.Value = "*"
		case p.is('('):
			o.Value = formatNames(p.columnList())
		case !p.is(',') && !p.is(')'):
			if strings.HasPrefix(o.Name, "force_") {
				p.later(pgerror.New(pgerror.InvalidParameterValue, `argument to option "%s" must be a list of column names`, o.Name).At(int(p.here())))
			}
			o.Value = p.settingValue()
		}
		if p.err == nil && p.pos > start {
			o.Written = p.textSince(p.toks[start].start)
		}
		st.Options = append(st.Options, o)
	}
	p.expect(')')
}

// formatNames makes a list of columns an option's value.
func formatNames(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = ast.QuoteIdent(name)
	}
	return "(" + strings.Join(quoted, ", ") + ")"
}

// oldCopyOption reads one option in the form of PostgreSQL before 9.0 and reports whether there was one.
func (p *parser) oldCopyOption(st *ast.Copy) bool {
	start := p.cur().start
	add := func(name, value string) {
		st.Old = true
		st.Options = append(st.Options, ast.StorageOption{Name: name, Value: value, Written: p.textSince(start)})
	}
	text := func() string {
		p.acceptWord(kw.As)
		return p.stringLit()
	}
	switch {
	case p.acceptWord(kw.Binary):
		add("format", "binary")
	case p.acceptWord(kw.Csv):
		add("format", "csv")
	case p.acceptWord(kw.Freeze):
		add("freeze", "true")
	case p.acceptWord(kw.Header):
		add("header", "true")
	case p.acceptWord(kw.Delimiter):
		add("delimiter", text())
	case p.acceptWord(kw.Null):
		add("null", text())
	case p.acceptWord(kw.Quote):
		add("quote", text())
	case p.acceptWord(kw.Escape):
		add("escape", text())
	case p.acceptWord(kw.Encoding):
		add("encoding", p.stringLit())
	case p.acceptWords(kw.Force, kw.Quote):
		if p.acceptOp('*') {
			add("force_quote", "*")
		} else {
			add("force_quote", formatNames(p.names()))
		}
	case p.acceptWords(kw.Force, kw.Not, kw.Null):
		add("force_not_null", formatNames(p.names()))
	case p.acceptWords(kw.Force, kw.Null):
		add("force_null", formatNames(p.names()))
	default:
		return false
	}
	return p.err == nil
}

// names reads a comma-separated list of names.
func (p *parser) names() []string {
	names := []string{p.colID()}
	for p.accept(',') {
		names = append(names, p.colID())
	}
	return names
}
