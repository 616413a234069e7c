package ast

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/keyword"
)

// printer writes a tree as SQL. It parenthesises generously: only operands that cannot be taken apart,
// and the left sides of left-associative chains, stand bare.
type printer struct {
	b     []byte
	slots bool // literals print as their slots: the text is a fingerprint, not SQL
}

func (p *printer) str(s string) { p.b = append(p.b, s...) }

func (p *printer) int(n int64) { p.b = strconv.AppendInt(p.b, n, 10) }

func (p *printer) ident(name string) { p.b = appendIdent(p.b, name) }

// idents writes names with a separator.
func (p *printer) idents(names []string, separator string) {
	for i, name := range names {
		if i > 0 {
			p.str(separator)
		}
		p.ident(name)
	}
}

func (p *printer) quoted(s string) { p.b = appendString(p.b, s) }

// columns writes (a, b), nothing for no names.
func (p *printer) columns(names []string) {
	if len(names) > 0 {
		p.str(" (")
		p.idents(names, ", ")
		p.str(")")
	}
}

// when writes s if yes.
func (p *printer) when(yes bool, s string) {
	if yes {
		p.str(s)
	}
}

func (p *printer) String() string { return string(p.b) }

// QuoteIdent quotes a name so that it may stand wherever a name may: keyword.QuoteIdent leaves words bare that begin a clause in
// some places.
func QuoteIdent(name string) string {
	if bareIdent(name) {
		return name
	}
	return string(appendIdent(nil, name))
}

func appendIdent(b []byte, name string) []byte {
	if bareIdent(name) {
		return append(b, name...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(name, `"`, `""`)...)
	return append(b, '"')
}

// bareIdent reports whether a name may stand without quotes wherever a name may stand.
func bareIdent(name string) bool {
	return keyword.Bare(name) && !contextual(keyword.Lookup([]byte(name)))
}

// contextual reports whether a word that is not reserved begins a clause or operator where a name may
// also stand.
func contextual(word keyword.Word) bool {
	switch word {
	case keyword.Cube, keyword.Double, keyword.Groups, keyword.Operator, keyword.Partition, keyword.Range,
		keyword.Rollup, keyword.Rows, keyword.Set, keyword.Values:
		return true
	}
	return false
}

// QuoteString makes a string constant.
func QuoteString(s string) string { return string(appendString(nil, s)) }

func appendString(b []byte, s string) []byte {
	b = append(b, '\'')
	for i := range len(s) {
		if s[i] == '\'' {
			b = append(b, '\'')
		}
		b = append(b, s[i])
	}
	return append(b, '\'')
}

// options writes (name=value, …).
func (p *printer) options(options []StorageOption, separator string) {
	p.str("(")
	for i, o := range options {
		if i > 0 {
			p.str(", ")
		}
		p.setting(o.Name)
		switch {
		case o.Written != "":
			p.str(separator)
			p.when(strings.ContainsRune("+-*/<>=~!@#%^&|`?", rune(o.Written[0])), " ")
			p.str(o.Written)
		case o.Value == "":
		case strings.HasPrefix(o.Name, "force_"):
			p.str(separator)
			p.str(o.Value)
		default:
			p.str(separator)
			p.quoted(o.Value)
		}
	}
	p.str(")")
}

// setting writes a name that may have dots.
func (p *printer) setting(name string) {
	parts := strings.Split(name, ".")
	for _, part := range parts {
		if part == "" {
			p.ident(name)
			return
		}
	}
	p.idents(parts, ".")
}

// WindowFingerprint is Fingerprint for the specification of a window.
func WindowFingerprint(w *Window) string {
	p := printer{slots: true}
	p.window(w, true)
	return p.String()
}

// Fingerprint is a text that two expressions share exactly when they are equal and stay equal whatever
// the values of their slotted literals are: a plan may depend on it. Positions are not part of it.
func Fingerprint(x Expr) string {
	p := printer{slots: true}
	p.expr(x)
	return p.String()
}
