package types

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
)

// The types of the extension ltree: paths of labels, and the patterns and conditions that they are matched with. A path is its text: the dot
// between labels is less than all that labels consist of, so that paths order as their bytes do.
const (
	OIDLtree          OID = FirstExtensionOID + 14
	oidLtreeArray     OID = FirstExtensionOID + 15
	OIDLquery         OID = FirstExtensionOID + 16
	oidLqueryArray    OID = FirstExtensionOID + 17
	OIDLtxtquery      OID = FirstExtensionOID + 18
	oidLtxtqueryArray OID = FirstExtensionOID + 19
)

// TLtree is the type ltree.
var TLtree = Type{OID: OIDLtree, Mod: -1}

// Limits of paths.
const (
	ltreeMaxLabel  = 255 // characters
	ltreeMaxLevels = 65535
)

func init() {
	registerPath(OIDLtree, oidLtreeArray, "ltree", false, ParseLtree)
	registerPath(OIDLquery, oidLqueryArray, "lquery", true, func(s string) (string, error) {
		q, err := parseLquery(s)
		return q.String(), err
	})
	registerPath(OIDLtxtquery, oidLtxtqueryArray, "ltxtquery", true, func(s string) (string, error) {
		q, err := parseLtxtquery(s)
		return q.String(), err
	})
}

// registerPath adds a type whose values are texts that canonical checks. The binary form is a version number and the text.
func registerPath(id, array OID, name string, unordered bool, canonical func(string) (string, error)) {
	parse := func(s string) (Datum, error) {
		text, err := canonical(s)
		if err != nil {
			return Null, err
		}
		return Text(text), nil
	}
	register(&Methods{
		Info: Info{id, name, name, array, 0, -1, CategoryUser, false, KindBytes}, Extension: "ltree", Unordered: unordered, NoEquality: unordered,
		Parse:  func(s string, _ int32, _ *Format) (Datum, error) { return parse(s) },
		Append: func(dst []byte, d Datum, _ *Format) []byte { return append(dst, d.Bytes()...) },
		Receive: func(b []byte, _ int32, _ *Format) (Datum, error) {
			if len(b) == 0 || b[0] != 1 {
				return Null, pgerror.New("XX000", "unsupported %s version number", name)
			}
			if err := ValidateText(b[1:]); err != nil {
				return Null, err
			}
			return parse(string(b[1:]))
		},
		Send: func(dst []byte, d Datum) []byte { return append(append(dst, 1), d.Bytes()...) },
	})
}

func isLabelRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func pathSyntax(kind string, at int) error {
	return pgerror.New(pgerror.SyntaxError, "%s syntax error at character %d", kind, at+1)
}

func pathEnd(kind string) error {
	return pgerror.New(pgerror.SyntaxError, "%s syntax error", kind).WithDetail("Unexpected end of input.")
}

func labelTooLong(length, at int) error {
	return pgerror.New(pgerror.NameTooLong, "label string is too long").
		WithDetail("Label length is %d, must be at most %d, at character %d.", length, ltreeMaxLabel, at+1)
}

func tooManyLevels(kind string, n int) error {
	return pgerror.New(pgerror.ProgramLimitExceeded, "number of %s labels (%d) exceeds the maximum allowed (%d)", kind, n, ltreeMaxLevels)
}

// ParseLtree checks a path: labels of letters, digits and underscores between dots; "" has none.
func ParseLtree(s string) (string, error) {
	if n := strings.Count(s, ".") + 1; n > ltreeMaxLevels {
		return "", tooManyLevels("ltree", n)
	}
	length, at := 0, 0
	for _, r := range s {
		switch {
		case r == '.' && length > 0:
			if length > ltreeMaxLabel {
				return "", labelTooLong(length, at)
			}
			length = 0
		case isLabelRune(r):
			length++
		default:
			return "", pathSyntax("ltree", at)
		}
		at++
	}
	switch {
	case length > ltreeMaxLabel:
		return "", labelTooLong(length, at)
	case length == 0 && s != "":
		return "", pathEnd("ltree")
	}
	return s, nil
}

// LtreeLabels returns the labels of a path.
func LtreeLabels(d Datum) []string {
	if len(d.Bytes()) == 0 {
		return nil
	}
	return strings.Split(d.Text(), ".")
}

// LtreeLevels returns the number of labels of a path.
func LtreeLevels(d Datum) int {
	if len(d.Bytes()) == 0 {
		return 0
	}
	return bytes.Count(d.Bytes(), []byte{'.'}) + 1
}

// Ltree returns the path of labels, of which there may be too many.
func Ltree(labels []string) (Datum, error) {
	if len(labels) > ltreeMaxLevels {
		return Null, tooManyLevels("ltree", len(labels))
	}
	return Text(strings.Join(labels, ".")), nil
}

// LtreeAncestor reports whether a path is another one or above it.
func LtreeAncestor(a, b Datum) bool {
	x, y := a.Bytes(), b.Bytes()
	return len(x) == 0 || bytes.HasPrefix(y, x) && (len(x) == len(y) || y[len(x)] == '.')
}

// labelPattern is what a label is compared with: a label, or the beginning of one (*), without regard for case (@), word by word (%).
type labelPattern struct {
	name                   string
	prefix, fold, subwords bool
}

func (p *labelPattern) String() string {
	s := p.name
	for _, flag := range []struct {
		set  bool
		sign string
	}{{p.subwords, "%"}, {p.fold, "@"}, {p.prefix, "*"}} {
		if flag.set {
			s += flag.sign
		}
	}
	return s
}

// flag sets the flag that a sign means, if it is one.
func (p *labelPattern) flag(sign rune) bool {
	switch sign {
	case '*':
		p.prefix = true
	case '@':
		p.fold = true
	case '%':
		p.subwords = true
	default:
		return false
	}
	return true
}

func (p *labelPattern) flagged() bool { return p.prefix || p.fold || p.subwords }

func (p *labelPattern) matches(label string) bool {
	name := p.name
	if p.fold {
		name, label = strings.ToLower(name), strings.ToLower(label)
	}
	equal := func(word, of string) bool { return word == of || p.prefix && strings.HasPrefix(of, word) }
	if !p.subwords {
		return equal(name, label)
	}
	words := strings.FieldsFunc(label, isUnderscore)
words:
	for _, word := range strings.FieldsFunc(name, isUnderscore) {
		for _, of := range words {
			if equal(word, of) {
				continue words
			}
		}
		return false
	}
	return true
}

func isUnderscore(r rune) bool { return r == '_' }

// check checks the length of a pattern's label.
func (p *labelPattern) check(at int) error {
	if n := utf8.RuneCountInString(p.name); n > ltreeMaxLabel {
		return labelTooLong(n, at)
	}
	return nil
}
