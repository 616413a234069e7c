package builtin

import (
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// toNumber reads a number with a template, character by character: a digit of the template consumes the character at
// its position; characters other than digits, point and sign are skipped.
func toNumber(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[1].Text() == "" {
		return types.Null, nil
	}
	nodes, err := numTemplate().parse(a[1].Text())
	if err != nil {
		return types.Null, err
	}
	l, err := layOut(nodes)
	switch {
	case err != nil:
		return types.Null, err
	case l.eeee:
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "\"EEEE\" not supported for input")
	}
	if l.sign == signBefore && l.pre == l.preSign {
		l.sign = signAfter
	}
	r := &numberInput{s: a[0].Text(), l: l, sign: ' '}
	for i := range nodes {
		if r.at >= len(r.s) {
			break
		}
		r.node(&nodes[i])
	}
	text := string(r.sign) + strings.TrimSuffix(r.digits.String(), ".")
	precision, scale := l.pre+l.multi+r.post, r.post
	t := types.Type{OID: types.OIDNumeric, Mod: types.MakeNumericMod(precision, scale)}
	d, err := types.ParseText(t, text, nil)
	if err != nil || !l.v {
		return d, err
	}
	divisor, err := powInt(types.NewNumeric(10), int64(-l.multi), minSignificantDigits)
	if err != nil {
		return types.Null, err
	}
	return numericDatum(MulNumeric(d.Decimal(), divisor))
}

// numberInput is the text being read.
type numberInput struct {
	s         string
	at        int
	l         *numLayout
	sign      byte // of the result, a blank while unknown
	digits    strings.Builder
	pre, post int
	point     bool
}

func (r *numberInput) node(n *templateNode) {
	if n.kind != nodeField {
		_, size := utf8.DecodeRuneInString(r.s[r.at:])
		r.at += size
		return
	}
	switch strings.ToUpper(n.key) {
	case "9", "0", ".", "D":
		r.part(n.key == "9" || n.key == "0")
		r.at++
	case ",", "G":
		if r.s[r.at] == ',' && !r.l.fill {
			r.at++
		}
	case "L", "MI", "PL", "SG":
		r.passOver(1)
	case "TH":
		r.passOver(2)
	}
}

// passOver skips characters that cannot belong to the number.
func (r *numberInput) passOver(n int) {
	for ; n > 0 && r.at < len(r.s) && strings.IndexByte("0123456789.,+-", r.s[r.at]) < 0; n-- {
		_, size := utf8.DecodeRuneInString(r.s[r.at:])
		r.at += size
	}
}

func (r *numberInput) end() bool { return r.at >= len(r.s) }

// part reads one character of the number, with a sign before or after it. The caller advances past the character
// itself.
func (r *numberInput) part(digit bool) {
	if r.s[r.at] == ' ' {
		r.at++
	}
	if r.end() {
		return
	}
	if r.sign == ' ' && digit && r.pre+r.post == 0 {
		r.leadingSign()
	}
	if r.end() {
		return
	}
	read := false
	switch c := r.s[r.at]; {
	case isDigit(c):
		if r.point && r.post == r.l.post {
			return
		}
		r.digits.WriteByte(c)
		if r.point {
			r.post++
		} else {
			r.pre++
		}
		read = true
	case c == '.' && r.l.decimal && !r.point:
		r.digits.WriteByte(c)
		r.point, read = true, true
	}
	if r.sign == ' ' && r.pre+r.post > 0 {
		r.trailingSign(read)
	}
}

func (r *numberInput) leadingSign() {
	c := r.s[r.at]
	switch {
	case c == '-', c == '<' && r.l.bracket && !r.l.s:
		r.sign = '-'
	case c == '+':
		r.sign = '+'
	default:
		return
	}
	r.at++
}

func (r *numberInput) trailingSign(read bool) {
	at := r.at
	if r.l.s {
		if at++; !read || at >= len(r.s) {
			return
		}
	} else if read || !r.l.plus && !r.l.minus {
		return
	}
	if c := r.s[at]; c == '-' || c == '+' {
		r.sign, r.at = c, at
	}
}
