package tsparser

import (
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a token, with PostgreSQL's number.
type Kind uint8

// The kinds of tokens.
const (
	AsciiWord Kind = iota + 1
	Word
	NumWord
	Email
	URL
	Host
	SFloat
	Version
	HWordNumPart
	HWordPart
	HWordAsciiPart
	Blank
	Tag
	Protocol
	NumHWord
	AsciiHWord
	HWord
	URLPath
	File
	Float
	Int
	UInt
	Entity
)

// KindInfo describes a kind of tokens.
type KindInfo struct{ Name, Description string }

// Kinds are the kinds' names and descriptions; the kind 1 is the first.
var Kinds = [...]KindInfo{
	{"asciiword", "Word, all ASCII"}, {"word", "Word, all letters"}, {"numword", "Word, letters and digits"},
	{"email", "Email address"}, {"url", "URL"}, {"host", "Host"}, {"sfloat", "Scientific notation"}, {"version", "Version number"},
	{"hword_numpart", "Hyphenated word part, letters and digits"}, {"hword_part", "Hyphenated word part, all letters"},
	{"hword_asciipart", "Hyphenated word part, all ASCII"}, {"blank", "Space symbols"}, {"tag", "XML tag"},
	{"protocol", "Protocol head"}, {"numhword", "Hyphenated word, letters and digits"}, {"asciihword", "Hyphenated word, all ASCII"},
	{"hword", "Hyphenated word, all letters"}, {"url_path", "URL path"}, {"file", "File or path name"},
	{"float", "Decimal notation"}, {"int", "Signed integer"}, {"uint", "Unsigned integer"}, {"entity", "XML entity"},
}

// place is a position in the text with the state there, and the length of the token up to it.
type place struct {
	state  state
	pos    int
	length int // bytes of the token
	// rule is the one that pushed, after which to go on; -1: none.
	rule int
}

// Parser divides one text.
type Parser struct {
	text  string
	stack []place
	// wantHost: a host follows that is known to belong to a URL or address. inScript: within <script> or <style>.
	wantHost, inScript bool
	failed             map[attempt]struct{}
	start              int
	poll               func() error
	err                error
	nested             int
	noComment          bool // no comment that begins from here on ends
}

// attempt is what a rule has tried at a position.
type attempt struct {
	state state
	pos   int
}

// New returns a parser of a text. poll is called from time to time and may end the work.
func New(text string, poll func() error) *Parser {
	return &Parser{text: text, stack: []place{{state: base, rule: -1}}, failed: map[attempt]struct{}{}, poll: poll}
}

// at is the current position.
func (p *Parser) at() *place { return &p.stack[len(p.stack)-1] }

// char returns the character at the current position and its size; 0 at the end.
func (p *Parser) char() (rune, int) {
	pos := p.at().pos
	if pos >= len(p.text) {
		return 0, 0
	}
	if c := p.text[pos]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(p.text[pos:])
}

// Next returns the next token; false at the end.
func (p *Parser) Next() (Kind, string, bool, error) {
	if p.at().pos >= len(p.text) {
		return 0, "", false, nil
	}
	p.start = p.at().pos
	p.at().rule = -1
	kind, length := p.run()
	if p.err != nil || kind == 0 {
		return 0, "", false, p.err
	}
	return kind, p.text[p.start : p.start+length], true, nil
}

// run applies rules until one finds a token.
func (p *Parser) run() (Kind, int) {
	for p.at().pos <= len(p.text) {
		if p.err = p.poll(); p.err != nil {
			return 0, 0
		}
		c, size := p.char()
		rules := automaton[p.at().state]
		i := p.at().rule + 1
		for ; !p.applies(&rules[i], c, size); i++ {
		}
		p.at().rule = -1
		r := &rules[i]
		if r.class == urlPath || r.class == address {
			size = 0 // The nested parser has moved the position.
		}
		if r.special != nil {
			r.special(p)
		}
		kind, length := r.kind, p.at().length
		if kind != 0 { // The positions to return to are of this token.
			p.stack = append(p.stack[:0], *p.at())
			p.at().length = 0
		} else {
			p.unstack(r, i)
		}
		if r.to != stay {
			p.at().state = r.to
		}
		if kind != 0 {
			return kind, length
		}
		if r.do == rerun || r.do == pop {
			continue
		}
		if p.at().pos >= len(p.text) {
			return 0, 0
		}
		here := p.at()
		here.pos += size
		here.length += size
	}
	return 0, 0
}

// unstack does what a rule says about the stack.
func (p *Parser) unstack(r *rule, i int) {
	n := len(p.stack)
	switch r.do {
	case push:
		here := *p.at()
		p.at().rule = i
		p.stack = append(p.stack, here)
	case pop:
		p.stack = p.stack[:n-1]
		// What was pushed has failed.
		here := p.at()
		if !p.wantHost {
			p.failed[attempt{automaton[here.state][here.rule].to, here.pos}] = struct{}{}
		}
	case clear:
		p.stack = append(p.stack[:n-2], p.stack[n-1])
	case merge:
		below := &p.stack[n-2]
		top := p.stack[n-1]
		below.pos, below.length = top.pos, top.length
		p.stack = p.stack[:n-1]
	}
}

// applies reports whether a rule applies to a character.
func (p *Parser) applies(r *rule, c rune, size int) bool {
	if !p.is(r.class, c, size) {
		return false
	}
	if r.to == comment && p.noComment {
		return false
	}
	if r.do == push {
		if _, ok := p.failed[attempt{r.to, p.at().pos}]; ok && !p.wantHost {
			return false
		}
	}
	return true
}

// is reports whether a character is of a class.
func (p *Parser) is(k class, c rune, size int) bool {
	if k > 0 {
		return size > 0 && rune(k) == c
	}
	switch k {
	case anything:
		return true
	case end:
		return size == 0
	case stopHost:
		was := p.wantHost
		p.wantHost = false
		return was
	case script:
		return p.inScript
	case address:
		return p.nest(base, Host)
	case urlPath:
		return p.nest(urlPathFirst, URLPath)
	}
	return size > 0 && classOf(k, c)
}

// nest parses what follows with a parser of its own; if that begins with a token of a kind, the position moves behind it.
func (p *Parser) nest(s state, want Kind) bool {
	const deepest = 4 // Each level needs a host within a host.
	here := p.at()
	if p.nested >= deepest || here.pos >= len(p.text) {
		return false
	}
	sub := New(p.text, p.poll)
	sub.nested = p.nested + 1
	sub.stack = []place{{state: base, pos: here.pos, rule: -1}}
	if s == base {
		sub.wantHost = true
	} else {
		sub.stack = append(sub.stack, place{state: s, pos: here.pos, rule: -1})
		sub.stack[0].rule = 0
	}
	sub.start = here.pos
	kind, length := sub.run()
	if p.err = sub.err; p.err != nil || kind != want {
		return false
	}
	here.pos += length
	here.length += length
	return true
}

// again goes back to the beginning of the token, whose parts follow.
func (p *Parser) again() {
	here := p.at()
	here.pos -= here.length
}

// host goes back to the beginning of a URL, whose host follows.
func (p *Parser) host() {
	p.again()
	p.wantHost = true
}

// sign ends the token after the sign of a version number, which has none.
func (p *Parser) sign() {
	p.again()
	p.at().pos++
	p.at().length = 1
}

// tag notes where scripts begin and end, whose contents are no words.
func (p *Parser) tag() {
	token := p.text[p.start:p.at().pos]
	switch {
	case strings.EqualFold(token, "</script"), strings.EqualFold(token, "</style"):
		p.inScript = false
	case strings.EqualFold(token, "<script"), strings.EqualFold(token, "<style"):
		p.inScript = true
	}
}

// openComment notes that a comment does not end, so that later ones are not tried.
func (p *Parser) openComment() { p.noComment = true }
