package sql

import (
	"slices"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// utility reads a statement that is no query: DDL, transactions, settings, cursors and the like.
func (p *parser) utility() ast.Statement {
	t := p.cur()
	pos := p.posOf(t)
	if t.kind != tokIdent {
		p.unexpected()
		return nil
	}
	p.advance()
	switch t.kw {
	case kw.Create:
		return p.create(pos)
	case kw.Drop:
		return p.drop(pos)
	case kw.Alter:
		if p.isWord(kw.System) {
			return p.alterSystem(pos)
		}
		return p.alter(pos)
	case kw.Truncate:
		return p.truncate(pos)
	case kw.Comment:
		return p.comment(pos)
	case kw.Set:
		return p.set(pos)
	case kw.Reset:
		return p.resetSetting(pos)
	case kw.Show:
		return p.show(pos)
	case kw.Prepare:
		return p.prepare(pos)
	case kw.Execute:
		return p.execute(pos)
	case kw.Deallocate:
		return p.deallocate(pos)
	case kw.Explain:
		return p.explain(pos)
	case kw.Copy:
		return p.copy(pos)
	case kw.Declare:
		return p.declare(pos)
	case kw.Fetch, kw.Move:
		return p.fetch(pos, t.kw == kw.Move)
	case kw.Close:
		return p.closeCursor(pos)
	case kw.Analyze, kw.Analyse:
		return p.analyze(pos)
	case kw.Vacuum:
		return p.vacuum(pos)
	case kw.Discard:
		return p.discard(pos)
	case kw.Lock:
		return p.lockTable(pos)
	case kw.Listen, kw.Unlisten, kw.Notify:
		return p.notification(t.kw, pos)
	case kw.Values: // without a parenthesis behind it
		p.unexpected()
		return nil
	}
	if st := p.transaction(t.kw, pos); st != nil || p.err != nil {
		return st
	}
	if st := p.waitObserver(t, pos); st != nil {
		return st
	}
	return p.foreignStatement(t.kw, pos)
}

func (p *parser) prepare(pos ast.Pos) ast.Statement {
	if p.isWord(kw.Transaction) {
		return p.preparedTransaction(pos, "PREPARE TRANSACTION")
	}
	named := p.cur().start
	st := &ast.Prepare{Pos: pos, Name: p.colID()}
	if p.accept('(') {
		for first := true; first || p.accept(','); first = false {
			st.Types = append(st.Types, p.typeName())
		}
		p.expect(')')
	}
	st.Heading = p.textSince(named)
	p.expectWord(kw.As)
	start := p.cur().start
	st.At = p.here()
	if !isDML(p.cur().kw) {
		p.requireQuery()
	}
	st.Statement = p.inner()
	st.Text = p.textSince(start)
	return st
}

func (p *parser) execute(pos ast.Pos) ast.Statement {
	st := &ast.Execute{Pos: pos, Name: p.colID()}
	if p.accept('(') {
		st.Args = p.exprList()
		p.expect(')')
	}
	return st
}

func (p *parser) deallocate(pos ast.Pos) ast.Statement {
	if p.isWord(kw.Prepare) && p.peek(1).kind != tokEOF {
		p.advance()
	}
	if p.acceptWord(kw.All) {
		return &ast.Deallocate{Pos: pos}
	}
	return &ast.Deallocate{Pos: pos, Name: p.colID()}
}

// explain reads EXPLAIN in its two forms.
func (p *parser) explain(pos ast.Pos) ast.Statement {
	st := &ast.Explain{Pos: pos}
	if p.is('(') && !p.startsQuery(0) {
		p.explainOptions(st)
	} else {
		if st.Analyze = p.acceptWord(kw.Analyze) || p.acceptWord(kw.Analyse); st.Analyze {
			st.Options = append(st.Options, ast.StorageOption{Name: "analyze"})
			st.Summary = true
		}
		if st.Verbose = p.acceptWord(kw.Verbose); st.Verbose {
			st.Options = append(st.Options, ast.StorageOption{Name: "verbose"})
		}
	}
	start := p.cur().start
	switch p.cur().kw {
	case kw.Create, kw.Declare, kw.Execute, kw.Refresh:
	default:
		if !isDML(p.cur().kw) {
			p.requireQuery()
		}
	}
	st.Statement = p.inner()
	st.Text = p.textSince(start)
	p.explainable(st.Statement)
	return st
}

// explainable refuses the statements behind EXPLAIN's CREATE that have no plan.
func (p *parser) explainable(st ast.Statement) {
	switch st := st.(type) {
	case *ast.CreateTable:
		if st.Columns == nil && st.Constraints == nil {
			return
		}
	case *ast.CreateMaterializedView, *ast.RefreshMaterializedView, *ast.Query, *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge, *ast.DeclareCursor,
		*ast.Execute, nil:
		return
	}
	p.unexpected()
}

var explainFormats = []string{"text", "xml", "json", "yaml"}

// explainOptions reads (option [value], …).
func (p *parser) explainOptions(st *ast.Explain) {
	var timing, summary *bool
	var wal bool
	p.expect('(')
	for first := true; first || p.accept(','); first = false {
		pos := p.here()
		o := p.writtenOption()
		name, value := o.Name, o.Value
		st.Options = append(st.Options, o)
		switch name {
		case "analyze", "analyse":
			st.Analyze = p.boolOption(pos, name, value)
		case "verbose":
			st.Verbose = p.boolOption(pos, name, value)
		case "format":
			if st.Format = kw.Fold(value); !slices.Contains(explainFormats, st.Format) {
				p.later(pgerror.New(pgerror.InvalidParameterValue, `unrecognized value for EXPLAIN option "%s": "%s"`, name, value).At(int(pos)))
			}
		case "costs":
			st.NoCosts = !p.boolOption(pos, name, value)
		case "buffers":
			st.Buffers = p.boolOption(pos, name, value)
		case "timing":
			timing = new(p.boolOption(pos, name, value))
		case "summary":
			summary = new(p.boolOption(pos, name, value))
		case "wal":
			wal = p.boolOption(pos, name, value)
		case "settings":
			p.boolOption(pos, name, value)
		default:
			p.later(pgerror.New(pgerror.SyntaxError, `unrecognized EXPLAIN option "%s"`, name).At(int(pos)))
		}
	}
	p.expect(')')
	for _, o := range []struct {
		name string
		set  bool
	}{{"WAL", wal}, {"TIMING", timing != nil && *timing}} {
		if o.set && !st.Analyze {
			p.later(pgerror.New(pgerror.InvalidParameterValue, "EXPLAIN option %s requires ANALYZE", o.name))
		}
	}
	st.NoTiming, st.Summary = timing != nil && !*timing, st.Analyze
	if summary != nil {
		st.Summary = *summary
	}
}

// utilityOption reads an option's name and value.
func (p *parser) utilityOption() (name, value string) {
	if p.isWord(kw.Analyze) || p.isWord(kw.Analyse) {
		name = p.colLabel()
	} else {
		name = p.nonReserved()
	}
	if !p.is(',') && !p.is(')') {
		value = p.settingValue()
	}
	return name, value
}

func (p *parser) declare(pos ast.Pos) ast.Statement {
	st := &ast.DeclareCursor{Pos: pos, Name: p.colID()}
	for !p.isWord(kw.Cursor) && p.err == nil {
		switch {
		case p.acceptWord(kw.Binary):
			st.Binary = true
		case p.acceptWords(kw.No, kw.Scroll):
			st.NoScroll = true
		case p.acceptWord(kw.Scroll):
			st.Scroll = true
		case p.acceptWord(kw.Insensitive):
			st.Insensitive = true
		case p.acceptWord(kw.Asensitive):
			st.Asensitive = true
		default:
			p.unexpected()
		}
	}
	p.expectWord(kw.Cursor)
	if st.Hold = p.acceptWords(kw.With, kw.Hold); !st.Hold {
		p.acceptWords(kw.Without, kw.Hold)
	}
	p.expectWord(kw.For)
	start := p.cur().start
	st.At = p.here()
	p.requireQuery()
	st.Query = p.query()
	st.Text = p.textSince(start)
	return st
}

// fetch reads FETCH or MOVE.
func (p *parser) fetch(pos ast.Pos, move bool) ast.Statement {
	st := &ast.Fetch{Pos: pos, Move: move, Direction: "NEXT", Count: 1}
	// A word that is a direction is the cursor's name when nothing follows it.
	if p.peek(1).kind != tokEOF {
		p.direction(st)
	}
	if !p.acceptWord(kw.From) {
		p.acceptWord(kw.In)
	}
	st.Name = p.colID()
	return st
}

func (p *parser) direction(st *ast.Fetch) {
	word := p.cur().kw
	switch word {
	case kw.Next, kw.Prior, kw.First, kw.Last:
		st.Direction = upper(word)
		p.advance()
	case kw.Absolute, kw.Relative:
		st.Direction = upper(word)
		p.advance()
		st.Count = p.smallInt()
	case kw.All:
		st.Direction, st.All = "FORWARD", true
		p.advance()
	case kw.Forward, kw.Backward:
		st.Direction = upper(word)
		p.advance()
		switch {
		case p.acceptWord(kw.All):
			st.All = true
		case p.is(tokLiteral), p.isOp('-'), p.isOp('+'):
			st.Count = p.smallInt()
		}
	default:
		if p.is(tokLiteral) || p.isOp('-') || p.isOp('+') {
			st.Direction, st.Count = "FORWARD", p.smallInt()
		}
	}
}

func (p *parser) closeCursor(pos ast.Pos) ast.Statement {
	if p.acceptWord(kw.All) {
		return &ast.CloseCursor{Pos: pos}
	}
	return &ast.CloseCursor{Pos: pos, Name: p.colID()}
}

// maintained reads the tables of ANALYZE and VACUUM with their columns, which have no meaning here.
func (p *parser) maintained() (names []ast.TableName, columns [][]string) {
	if p.is(tokEOF) || p.is(';') {
		return nil, nil
	}
	some := false
	for first := true; first || p.accept(','); first = false {
		names = append(names, p.tableName())
		var list []string
		if p.is('(') {
			list, some = p.columnList(), true
		}
		columns = append(columns, list)
	}
	if !some {
		columns = nil
	}
	return names, columns
}

func (p *parser) analyze(pos ast.Pos) ast.Statement {
	st := &ast.Analyze{Pos: pos}
	if p.is('(') {
		st.Options = p.maintenanceOptions(func(name string, on bool) bool {
			if name == "verbose" {
				st.Verbose = on
			}
			return name == "verbose" || name == "skip_locked"
		}, "ANALYZE")
	} else if st.Verbose = p.acceptWord(kw.Verbose); st.Verbose {
		st.Options = []ast.StorageOption{{Name: "verbose"}}
	}
	st.Tables, st.Columns = p.maintained()
	return st
}

func (p *parser) vacuum(pos ast.Pos) ast.Statement {
	st := &ast.Vacuum{Pos: pos}
	if p.is('(') {
		st.Options = p.maintenanceOptions(func(name string, on bool) bool {
			switch name {
			case "analyze", "analyse":
				st.Analyze = on
			case "full":
				st.Full = on
			case "verbose", "freeze", "disable_page_skipping", "skip_locked", "index_cleanup", "process_toast",
				"truncate", "parallel":
			default:
				return false
			}
			return true
		}, "VACUUM")
		st.Tables, st.Columns = p.maintained()
		return st
	}
	option := func(name string, there bool) bool {
		if there {
			st.Options = append(st.Options, ast.StorageOption{Name: name})
		}
		return there
	}
	st.Full = option("full", p.acceptWord(kw.Full))
	option("freeze", p.acceptWord(kw.Freeze))
	option("verbose", p.acceptWord(kw.Verbose))
	st.Analyze = option("analyze", p.acceptWord(kw.Analyze) || p.acceptWord(kw.Analyse))
	st.Tables, st.Columns = p.maintained()
	return st
}

// maintenanceOptions reads (option [value], …) and gives each to known, which says whether it is one.
func (p *parser) maintenanceOptions(known func(name string, on bool) bool, statement string) []ast.StorageOption {
	var list []ast.StorageOption
	p.expect('(')
	for first := true; first || p.accept(','); first = false {
		pos := p.here()
		o := p.writtenOption()
		list = append(list, o)
		on := o.Name == "index_cleanup" || o.Name == "parallel" || p.boolOption(pos, o.Name, o.Value)
		if !known(o.Name, on) {
			p.later(pgerror.New(pgerror.SyntaxError, `unrecognized %s option "%s"`, statement, o.Name).At(int(pos)))
		}
	}
	p.expect(')')
	return list
}

func (p *parser) discard(pos ast.Pos) ast.Statement {
	word := p.cur().kw
	switch word {
	case kw.All, kw.Plans, kw.Temp, kw.Sequences:
		p.advance()
		return &ast.Discard{Pos: pos, What: upper(word)}
	case kw.Temporary:
		p.advance()
		return &ast.Discard{Pos: pos, What: "TEMP"}
	}
	p.unexpected()
	return nil
}

// lockTable reads LOCK TABLE.
func (p *parser) lockTable(pos ast.Pos) ast.Statement {
	p.acceptWord(kw.Table)
	st := &ast.LockTable{Pos: pos, Mode: "ACCESS EXCLUSIVE"}
	st.Tables = p.relationNames()
	if p.acceptWord(kw.In) {
		st.Mode = p.lockMode()
		p.expectWord(kw.Mode)
	}
	st.NoWait = p.acceptWord(kw.Nowait)
	return st
}

func (p *parser) lockMode() string {
	switch {
	case p.acceptWords(kw.Access, kw.Share):
		return "ACCESS SHARE"
	case p.acceptWords(kw.Access, kw.Exclusive):
		return "ACCESS EXCLUSIVE"
	case p.acceptWords(kw.Row, kw.Share):
		return "ROW SHARE"
	case p.acceptWords(kw.Row, kw.Exclusive):
		return "ROW EXCLUSIVE"
	case p.acceptWords(kw.Share, kw.Update, kw.Exclusive):
		return "SHARE UPDATE EXCLUSIVE"
	case p.acceptWords(kw.Share, kw.Row, kw.Exclusive):
		return "SHARE ROW EXCLUSIVE"
	case p.acceptWord(kw.Share):
		return "SHARE"
	case p.acceptWord(kw.Exclusive):
		return "EXCLUSIVE"
	}
	p.unexpected()
	return ""
}
