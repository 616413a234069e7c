package sql

import (
	"strings"

	"github.com/percodb/percodb/sql/ast"
	kw "github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

func upper(w kw.Word) string { return strings.ToUpper(w.String()) }

// typeName reads a type with its array bounds.
func (p *parser) typeName() ast.TypeName {
	pos := p.here()
	setOf := p.acceptWord(kw.Setof)
	typ := p.constType()
	if len(typ.Name) == 1 && typ.Name[0] == "interval" && typ.Mods == nil {
		typ.Mods = p.intervalMods()
	}
	typ.Pos, typ.SetOf = pos, setOf
	if p.acceptWord(kw.Array) {
		typ.Array, typ.Bounds = 1, []int{-1}
		if p.accept('[') {
			typ.Bounds[0] = p.arrayBound(true)
		}
		return typ
	}
	for p.accept('[') {
		typ.Array++
		typ.Bounds = append(typ.Bounds, p.arrayBound(false))
	}
	return typ
}

// arrayBound reads n] or ]; PostgreSQL ignores the number.
func (p *parser) arrayBound(required bool) int {
	bound := -1
	if t := p.cur(); t.kind == tokLiteral && t.lit == ast.LiteralInt4 {
		bound = int(p.intLit())
	} else if required {
		p.unexpected()
	}
	p.expect(']')
	return bound
}

// constTypeWord reports whether a keyword names a type by itself.
func constTypeWord(word kw.Word) bool {
	switch word {
	case kw.Bigint, kw.Bit, kw.Boolean, kw.Char, kw.Character, kw.Dec, kw.Decimal, kw.Double, kw.Float, kw.Int,
		kw.Integer, kw.Interval, kw.National, kw.Nchar, kw.Numeric, kw.Real, kw.Smallint, kw.Time, kw.Timestamp,
		kw.Varchar:
		return true
	}
	return false
}

// typedLiteralAhead reports whether the type keyword at the current token begins a literal with a type:
// a string or more of the type follows. Otherwise the word is a column's name.
func (p *parser) typedLiteralAhead() bool {
	next := p.peek(1)
	if p.cur().kw == kw.Double { // alone, it is a name like any other
		return next.kw == kw.Precision
	}
	if next.kind == '(' || isString(next) {
		return true
	}
	switch p.cur().kw {
	case kw.National:
		return next.kw == kw.Char || next.kw == kw.Character
	case kw.Time, kw.Timestamp:
		return (next.kw == kw.With || next.kw == kw.Without) && p.peek(2).kw == kw.Time
	}
	return next.kw == kw.Varying
}

// constType reads a type without array bounds and without an interval's fields.
func (p *parser) constType() ast.TypeName {
	t := p.cur()
	typ := ast.TypeName{Pos: p.posOf(t)}
	if constTypeWord(t.kw) && (t.kw != kw.Double || p.peek(1).kw == kw.Precision) {
		p.advance()
		typ.Keyword = true
		p.builtinType(&typ, t.kw)
		return typ
	}
	if !isTypeFuncName(t) {
		p.unexpected()
		return typ
	}
	p.advance()
	typ.Name = []string{p.name(t)}
	for p.accept('.') {
		typ.Name = append(typ.Name, p.colLabel())
	}
	if p.is('(') {
		p.genericMods(&typ)
	}
	return typ
}

// genericMods reads the modifiers of a type that the grammar has no word for: integers, or any expressions.
func (p *parser) genericMods(typ *ast.TypeName) {
	plain := true
	for i := p.pos + 1; plain && p.toks[i].kind != ')'; i++ {
		t := &p.toks[i]
		plain = t.kind == ',' || t.kind == tokOp && t.sub == '-' && p.toks[i-1].kind != tokLiteral || t.kind == tokLiteral && t.lit == ast.LiteralInt4
	}
	if plain {
		typ.Mods = p.typeMods()
		return
	}
	p.expect('(')
	pos := p.here()
	typ.ModExprs = p.exprList()
	p.expect(')')
	p.later(pgerror.New(pgerror.InvalidParameterValue, "type modifiers must be simple constants or identifiers").At(int(pos)))
}

// typeMods reads (n, …).
func (p *parser) typeMods() []int {
	p.expect('(')
	mods := []int{int(p.intLit())}
	for p.accept(',') {
		mods = append(mods, int(p.intLit()))
	}
	p.expect(')')
	return mods
}

// length reads (n) if it is there, else gives the default.
func (p *parser) length(none []int) []int {
	if !p.accept('(') {
		return none
	}
	if t := p.cur(); t.kind != tokLiteral || t.lit != ast.LiteralInt4 {
		p.unexpected()
		return none
	}
	mods := []int{int(p.intLit())}
	p.expect(')')
	return mods
}

// builtinType finishes a type whose first keyword has been read; names are PostgreSQL's internal ones.
func (p *parser) builtinType(typ *ast.TypeName, word kw.Word) {
	set := func(name string) { typ.Name = []string{name} }
	switch word {
	case kw.Int, kw.Integer:
		set("int4")
	case kw.Smallint:
		set("int2")
	case kw.Bigint:
		set("int8")
	case kw.Real:
		set("float4")
	case kw.Double:
		p.expectWord(kw.Precision)
		set("float8")
	case kw.Float:
		set(p.floatName())
	case kw.Boolean:
		set("bool")
	case kw.Dec, kw.Decimal, kw.Numeric:
		set("numeric")
		if p.is('(') {
			p.genericMods(typ)
		}
	case kw.Bit:
		set("bit")
		typ.Mods = []int{1}
		if p.acceptWord(kw.Varying) {
			set("varbit")
			typ.Mods = nil
		}
		if p.is('(') {
			typ.Mods = nil
			p.genericMods(typ)
		}
	case kw.National, kw.Char, kw.Character, kw.Nchar, kw.Varchar:
		p.characterType(typ, word)
	case kw.Time, kw.Timestamp:
		mods := p.length(nil)
		name := word.String()
		switch {
		case p.acceptWords(kw.With, kw.Time, kw.Zone):
			name += "tz"
		case p.acceptWords(kw.Without, kw.Time, kw.Zone):
		}
		set(name)
		typ.Mods = mods
	case kw.Interval:
		set("interval")
		if mods := p.length(nil); mods != nil {
			typ.Mods = []int{ast.IntervalFull, mods[0]}
		}
	}
}

// floatName reads the precision of FLOAT(n), in bits, and picks the type that has it.
func (p *parser) floatName() string {
	if !p.is('(') {
		return "float8"
	}
	pos := p.peek(1)
	mods := p.length([]int{0})
	switch {
	case p.err != nil:
	case mods[0] < 1:
		p.failAt(p.posOf(pos), pgerror.InvalidParameterValue, "precision for type float must be at least 1 bit")
	case mods[0] <= 24:
		return "float4"
	case mods[0] > 53:
		p.failAt(p.posOf(pos), pgerror.InvalidParameterValue, "precision for type float must be less than 54 bits")
	}
	return "float8"
}

func (p *parser) characterType(typ *ast.TypeName, word kw.Word) {
	name, none := "bpchar", []int{1}
	if word == kw.National && !p.acceptWord(kw.Char) {
		p.expectWord(kw.Character)
	}
	if word == kw.Varchar || p.acceptWord(kw.Varying) {
		name, none = "varchar", nil
	}
	typ.Name = []string{name}
	typ.Mods = p.length(none)
}

// intervalMods reads an interval's fields, as in INTERVAL DAY TO SECOND(3), and returns PostgreSQL's
// type modifiers for them: a mask of fields and perhaps the precision of seconds.
func (p *parser) intervalMods() []int {
	mask := 0
	switch p.cur().kw {
	case kw.Year:
		mask = p.intervalRange(ast.IntervalYear, kw.Month)
	case kw.Month:
		p.advance()
		mask = ast.IntervalMonth
	case kw.Day:
		mask = p.intervalRange(ast.IntervalDay, kw.Hour, kw.Minute, kw.Second)
	case kw.Hour:
		mask = p.intervalRange(ast.IntervalHour, kw.Minute, kw.Second)
	case kw.Minute:
		mask = p.intervalRange(ast.IntervalMinute, kw.Second)
	case kw.Second:
		p.advance()
		mask = ast.IntervalSecond
	default:
		return nil
	}
	mods := []int{mask}
	if mask&ast.IntervalSecond != 0 && p.is('(') {
		mods = append(mods, p.length(nil)...)
	}
	return mods
}

// intervalRange reads a field and an optional TO with one of the finer ones.
func (p *parser) intervalRange(from int, finer ...kw.Word) int {
	p.advance()
	if !p.isWord(kw.To) {
		return from
	}
	p.advance()
	for _, w := range finer {
		if p.acceptWord(w) {
			return from | ast.IntervalThrough(from, w.String())
		}
	}
	p.unexpected()
	return from
}
