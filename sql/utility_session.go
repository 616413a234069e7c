package sql

import (
	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// transaction reads a transaction statement behind its first word; nil if the word begins none.
func (p *parser) transaction(word kw.Word, pos ast.Pos) ast.Statement {
	switch word {
	case kw.Begin:
		p.transactionNoise()
		return &ast.Begin{Pos: pos, Modes: p.transactionModes(false)}
	case kw.Start:
		p.expectWord(kw.Transaction)
		return &ast.Begin{Pos: pos, Start: true, Modes: p.transactionModes(false)}
	case kw.Commit, kw.End:
		if word == kw.Commit && p.isWord(kw.Prepared) {
			return p.preparedTransaction(pos, "COMMIT PREPARED")
		}
		p.transactionNoise()
		return &ast.Commit{Pos: pos, Chain: p.chain()}
	case kw.Rollback, kw.Abort:
		return p.rollback(word, pos)
	case kw.Savepoint:
		return &ast.Savepoint{Pos: pos, Name: p.colID()}
	case kw.Release:
		if p.isWord(kw.Savepoint) && p.peek(1).kind != tokEOF {
			p.advance()
		}
		return &ast.ReleaseSavepoint{Pos: pos, Name: p.colID()}
	}
	return nil
}

func (p *parser) rollback(word kw.Word, pos ast.Pos) ast.Statement {
	if word == kw.Rollback && p.isWord(kw.Prepared) {
		return p.preparedTransaction(pos, "ROLLBACK PREPARED")
	}
	p.transactionNoise()
	if word == kw.Rollback && p.acceptWord(kw.To) {
		if p.isWord(kw.Savepoint) && p.peek(1).kind != tokEOF {
			p.advance()
		}
		return &ast.RollbackTo{Pos: pos, Name: p.colID()}
	}
	return &ast.Rollback{Pos: pos, Chain: p.chain()}
}

// transactionNoise reads [WORK|TRANSACTION].
func (p *parser) transactionNoise() {
	if !p.acceptWord(kw.Work) {
		p.acceptWord(kw.Transaction)
	}
}

// chain reads [AND [NO] CHAIN].
func (p *parser) chain() bool {
	if !p.acceptWord(kw.And) {
		return false
	}
	no := p.acceptWord(kw.No)
	p.expectWord(kw.Chain)
	return !no
}

// transactionModes reads modes with or without commas between them.
func (p *parser) transactionModes(required bool) ast.TransactionModes {
	var m ast.TransactionModes
	yes, no := true, false
	for first := true; ; first = false {
		comma := !first && p.accept(',')
		switch {
		case p.acceptWords(kw.Isolation, kw.Level):
			m.Isolation = p.isolation()
		case p.acceptWords(kw.Read, kw.Only):
			m.ReadOnly = &yes
		case p.acceptWords(kw.Read, kw.Write):
			m.ReadOnly = &no
		case p.acceptWord(kw.Deferrable):
			m.Deferrable = &yes
		case p.acceptWords(kw.Not, kw.Deferrable):
			m.Deferrable = &no
		case p.asOfAhead():
			m.AsOf = p.asOfTime()
		default:
			if comma || first && required {
				p.unexpected()
			}
			return m
		}
	}
}

func (p *parser) isolation() string {
	switch {
	case p.acceptWord(kw.Serializable):
		return "serializable"
	case p.acceptWords(kw.Repeatable, kw.Read):
		return "repeatable read"
	case p.acceptWords(kw.Read, kw.Committed):
		return "read committed"
	case p.acceptWords(kw.Read, kw.Uncommitted):
		return "read uncommitted"
	}
	p.unexpected()
	return ""
}

// set reads SET.
func (p *parser) set(pos ast.Pos) ast.Statement {
	if !p.assigns(1) && p.acceptWord(kw.Constraints) {
		return p.setConstraints(pos)
	}
	st := &ast.Set{Pos: pos}
	switch {
	case p.isWord(kw.Local) && !p.assigns(1):
		p.advance()
		st.Local = true
	case p.isWord(kw.Session) && p.peek(1).kw != kw.Authorization && p.peek(1).kw != kw.Characteristics && !p.assigns(1):
		p.advance()
	}
	if p.acceptWords(kw.Session, kw.Characteristics) {
		p.expectWords(kw.As, kw.Transaction)
		return &ast.SetTransaction{Pos: pos, Session: true, Modes: p.transactionModes(true)}
	}
	if p.isWord(kw.Transaction) && !p.assigns(1) {
		p.advance()
		if p.acceptWord(kw.Snapshot) {
			p.notYet(pos, "SET TRANSACTION SNAPSHOT", "Read in one transaction.")
			return &ast.SetTransaction{Pos: pos, Snapshot: p.stringLit()}
		}
		return &ast.SetTransaction{Pos: pos, Modes: p.transactionModes(true)}
	}
	return p.setVariable(st)
}

// assigns reports whether the word before the token n ahead is a setting's name: TO, = or a dot follows.
func (p *parser) assigns(n int) bool {
	t := p.peek(n)
	return t.kw == kw.To || t.kw == kw.From || t.kind == '.' || t.kind == tokOp && t.sub == '='
}

// setVariable reads the name and value of SET in its many forms.
func (p *parser) setVariable(st *ast.Set) ast.Statement {
	switch {
	case p.acceptWords(kw.Time, kw.Zone):
		st.Name = "timezone"
		p.timeZone(st)
		return st
	case p.acceptWords(kw.Session, kw.Authorization):
		st.Name = "session_authorization"
		if st.Default = p.acceptWord(kw.Default); !st.Default {
			st.Values = []string{p.roleName()}
		}
		return st
	case p.isWord(kw.Role) && !p.assigns(1):
		p.advance()
		st.Name = "role"
		st.Values = []string{p.roleName()}
		return st
	case p.isWord(kw.Names) && !p.assigns(1):
		p.advance()
		st.Name = "client_encoding"
		if st.Default = p.is(tokEOF) || p.acceptWord(kw.Default); !st.Default {
			st.Values = []string{p.stringLit()}
		}
		return st
	case p.isWord(kw.Schema) && isString(p.peek(1)):
		p.advance()
		st.Name, st.Values = "search_path", []string{p.stringLit()}
		return st
	case p.isWord(kw.Xml) && p.peek(1).kw == kw.Option:
		p.notYet(st.Pos, "SET XML OPTION", "percodb has no XML type.")
		p.advance()
		p.advance()
		st.Name, st.Values = "xmloption", []string{upper(p.cur().kw)}
		if !p.acceptWord(kw.Document) {
			p.expectWord(kw.Content)
		}
		return st
	}
	st.Name = p.settingName()
	if pos := p.here(); p.acceptWords(kw.From, kw.Current) {
		p.notYet(pos, "SET … FROM CURRENT", "Name the value.")
		st.Current = true
		return st
	}
	if !p.acceptWord(kw.To) {
		p.expectAssign()
	}
	p.setValue(st)
	return st
}

// roleName reads a word or string.
func (p *parser) roleName() string {
	if isString(p.cur()) {
		return p.stringLit()
	}
	return p.nonReserved()
}

// settingName reads a setting's name, which may have dots.
func (p *parser) settingName() string {
	name := p.colID()
	for p.accept('.') {
		name += "." + p.colID()
	}
	return name
}

// setValue reads DEFAULT or a list of values.
func (p *parser) setValue(st *ast.Set) {
	if p.acceptWord(kw.Default) {
		st.Default = true
		return
	}
	for first := true; first || p.accept(','); first = false {
		st.Values = append(st.Values, p.settingValue())
	}
}

// settingValue reads a word, string or number.
func (p *parser) settingValue() string {
	switch t := p.cur(); {
	case isString(t):
		return p.stringLit()
	case t.kw == kw.True || t.kw == kw.False || t.kw == kw.On:
		p.advance()
		return t.kw.String()
	case isColLabel(t):
		return p.nonReserved()
	}
	return p.signedNumber()
}

// timeZone reads the value of SET TIME ZONE.
func (p *parser) timeZone(st *ast.Set) {
	switch {
	case p.acceptWord(kw.Default), p.acceptWord(kw.Local):
		st.Default = true
	case p.isWord(kw.Interval):
		pos := p.here()
		st.Interval = p.anyConstant()
		p.checkZoneInterval(st.Interval, pos)
	case p.is(tokIdent) && !p.isWord(kw.None):
		p.unexpected() // no keyword names a time zone
	default:
		st.Values = []string{p.settingValue()}
	}
}

// checkZoneInterval refuses an offset with fields other than hours and minutes.
func (p *parser) checkZoneInterval(e ast.Expr, pos ast.Pos) {
	c, ok := e.(*ast.Cast)
	if !ok || len(c.Type.Mods) == 0 || c.Type.Mods[0] == ast.IntervalFull {
		return
	}
	if c.Type.Mods[0]&^(ast.IntervalHour|ast.IntervalMinute) != 0 {
		p.failAt(pos, pgerror.SyntaxError, "time zone interval must be HOUR or HOUR TO MINUTE")
	}
}

func (p *parser) setConstraints(pos ast.Pos) ast.Statement {
	st := &ast.SetConstraints{Pos: pos}
	if !p.acceptWord(kw.All) {
		st.Names = p.tableNames()
	}
	if st.Deferred = p.acceptWord(kw.Deferred); !st.Deferred {
		p.expectWord(kw.Immediate)
	}
	return st
}

// specialSetting reads the names of settings that are several words; "" if there is none.
func (p *parser) specialSetting() string {
	switch {
	case p.acceptWords(kw.Time, kw.Zone):
		return "timezone"
	case p.acceptWords(kw.Transaction, kw.Isolation, kw.Level):
		return "transaction_isolation"
	case p.acceptWords(kw.Session, kw.Authorization):
		return "session_authorization"
	case p.acceptWord(kw.All):
		return "all"
	}
	return ""
}

func (p *parser) resetSetting(pos ast.Pos) ast.Statement {
	st := &ast.Set{Pos: pos, Default: true, Reset: true, Name: p.specialSetting()}
	if st.Name == "" {
		st.Name = p.settingName()
	}
	return st
}

func (p *parser) show(pos ast.Pos) ast.Statement {
	st := &ast.Show{Pos: pos, Name: p.specialSetting()}
	if st.Name == "" {
		st.Name = p.settingName()
	}
	return st
}
