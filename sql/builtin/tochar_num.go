package builtin

import (
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// numTemplate is the syntax of templates of numbers.
var numTemplate = sync.OnceValue(func() *templateSyntax {
	return newTemplateSyntax(`, . 0 9 B C D EEEE FM G L MI PL PR RN SG SP S TH V b c d eeee fm g l mi pl pr rn sg sp s th v`, false)
})

// signPlace is where S puts the sign.
type signPlace uint8

const (
	signNowhere signPlace = iota
	signBefore
	signAfter
)

// numLayout is the properties of a number's template as a whole.
type numLayout struct {
	pre, post, multi int // digits before and after the point; V's
	zeroStart        int // the position of the first 0, from 1
	zeroEnd          int
	preSign          int // digits before S
	sign             signPlace
	hasZero, decimal bool
	fill             bool // FM
	s, bracket       bool
	minus, plus      bool
	roman, v, eeee   bool
	blank            bool // B
}

func errTemplate(format string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.SyntaxError, format, args...)
}

// layOut reads a template's nodes.
func layOut(nodes []templateNode) (*numLayout, error) {
	l := &numLayout{}
	for _, n := range nodes {
		if n.kind != nodeField {
			continue
		}
		key := strings.ToUpper(n.key)
		if l.eeee && key != "EEEE" {
			return nil, errTemplate("\"EEEE\" must be the last pattern used")
		}
		if err := l.add(key); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *numLayout) add(key string) error {
	switch key {
	case "9", "0":
		if l.bracket {
			return errTemplate("\"%s\" must be ahead of \"PR\"", key)
		}
		return l.digit(key == "0")
	case ".", "D":
		switch {
		case l.decimal:
			return errTemplate("multiple decimal points")
		case l.v:
			return errTemplate("cannot use \"V\" and decimal point together")
		}
		l.decimal = true
	case "FM":
		l.fill = true
	case "S":
		switch {
		case l.s:
			return errTemplate("cannot use \"S\" twice")
		case l.plus || l.minus || l.bracket:
			return errTemplate("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together")
		case !l.decimal:
			l.sign, l.preSign, l.s = signBefore, l.pre, true
		default:
			l.sign, l.s = signAfter, true
		}
	case "MI", "PL", "SG":
		if l.s {
			return errTemplate("cannot use \"S\" and \"%s\" together", key)
		}
		l.minus = l.minus || key != "PL"
		l.plus = l.plus || key != "MI"
	case "PR":
		if l.s || l.plus || l.minus {
			return errTemplate("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together")
		}
		l.bracket = true
	case "RN":
		l.roman = true
	case "B":
		l.blank = l.blank || l.pre == 0 && l.post == 0 && !l.hasZero
	case "V":
		if l.decimal {
			return errTemplate("cannot use \"V\" and decimal point together")
		}
		l.v = true
	case "EEEE":
		switch {
		case l.eeee:
			return errTemplate("cannot use \"EEEE\" twice")
		case l.fill || l.s || l.bracket || l.minus || l.plus || l.roman || l.v || l.blank:
			return errTemplate("\"EEEE\" is incompatible with other formats").
				WithDetail("\"EEEE\" may only be used together with digit and decimal point patterns.")
		}
		l.eeee = true
	}
	return nil
}

func (l *numLayout) digit(zero bool) error {
	if !zero {
		switch {
		case l.v:
			l.multi++
		case l.decimal:
			l.post++
		default:
			l.pre++
		}
		return nil
	}
	if !l.hasZero && !l.decimal {
		l.hasZero, l.zeroStart = true, l.pre+1
	}
	if l.decimal {
		l.post++
	} else {
		l.pre++
	}
	l.zeroEnd = l.pre + l.post
	return nil
}

// numShown is the state of printing a number with a template.
type numShown struct {
	l         *numLayout
	digits    string // absolute value, with a point
	at        int    // the next of digits
	negative  bool
	spaces    int // digits of the template before the number begins
	place     int // digits of the template so far
	count     int
	lastDigit int // FM: the last significant digit, -1: all are
	signDone  bool
	inNumber  bool
	ended     bool // the output is complete
	out       strings.Builder
}

// fitDigits fits digits to the layout: too many before the point become a row of #.
func fitDigits(l *numLayout, digits string) (shown string, spaces int) {
	whole := strings.IndexByte(digits, '.')
	if whole < 0 {
		whole = len(digits)
	}
	if whole > l.pre {
		return strings.Repeat("#", l.pre) + "." + strings.Repeat("#", l.post), 0
	}
	return digits, l.pre - whole
}

// numToChar writes a number, given as text for the layout, by the template's nodes.
func numToChar(nodes []templateNode, l *numLayout, digits string) (string, error) {
	p := &numShown{l: l, lastDigit: -1}
	p.negative = strings.HasPrefix(digits, "-")
	p.digits, p.spaces = fitDigits(l, strings.TrimPrefix(digits, "-"))
	if l.roman {
		*l = numLayout{roman: true, fill: l.fill}
		p.digits, p.spaces, p.negative = digits, 0, false
	}
	l.zeroStart = max(0, l.zeroStart-1) // counted from 0 from here on
	p.prepareSign()
	p.count = l.post + l.pre - 1
	if l.fill && l.decimal {
		p.findLastDigit()
	}
	if !p.signDone && p.spaces == 0 {
		p.count++
	}
	for i := range nodes {
		if err := p.node(&nodes[i]); err != nil {
			return "", err
		}
		if p.ended {
			break
		}
	}
	return p.out.String(), nil
}

func (p *numShown) prepareSign() {
	l := p.l
	if l.plus || l.minus {
		p.signDone = !l.plus || l.minus // MI, PL and SG write it themselves
		return
	}
	if !p.negative && l.fill {
		l.bracket = false
	}
	p.signDone = !p.negative && l.fill && !l.s
	if l.sign == signBefore && l.pre == l.preSign {
		l.sign = signAfter
	}
}

// findLastDigit finds where FM stops: it drops trailing zeros after the point, but not those that a 0 requires.
func (p *numShown) findLastDigit() {
	point := strings.IndexByte(p.digits, '.')
	if point < 0 {
		return
	}
	last := point
	for i := point + 1; i < len(p.digits); i++ {
		if p.digits[i] != '0' {
			last = i
		}
	}
	if p.l.zeroEnd > p.spaces {
		last = max(last, min(len(p.digits)-1, p.l.zeroEnd-p.spaces))
	}
	p.lastDigit = last
}

func (p *numShown) node(n *templateNode) error {
	if n.kind != nodeField {
		p.out.WriteString(n.text)
		return nil
	}
	blank := func(write bool, c byte) {
		if write {
			p.out.WriteByte(c)
		} else if !p.l.fill {
			p.out.WriteByte(' ')
		}
	}
	switch key := strings.ToUpper(n.key); key {
	case "9", "0", ".", "D":
		if !p.l.roman {
			p.part(key)
		}
	case ",", "G":
		blank(p.inNumber, ',')
	case "L":
		p.out.WriteByte(' ') // the C locale has no currency symbol
	case "RN":
		s := p.digits
		if n.key == "rn" {
			s = strings.ToLower(s)
		}
		if !p.l.fill {
			s = strings.Repeat(" ", max(0, 15-len(s))) + s
		}
		p.out.WriteString(s)
	case "TH":
		if !p.l.roman && !p.negative && !p.l.decimal && !strings.HasPrefix(p.digits, "#") {
			if !isDigit(p.digits[len(p.digits)-1]) {
				return pgerror.New(pgerror.InvalidTextRepresentation, "\"%s\" is not a number", p.digits)
			}
			p.out.WriteString(ordinal(p.digits, n.key))
		}
	case "MI":
		blank(p.negative, '-')
	case "PL":
		blank(!p.negative && !p.l.roman, '+')
	case "SG":
		// Like PostgreSQL, which has no sign for Roman numerals and ends the string there.
		if p.ended = p.l.roman; !p.ended {
			p.out.WriteByte(p.signChar())
		}
	}
	return nil
}

func (p *numShown) signChar() byte {
	if p.negative {
		return '-'
	}
	return '+'
}

// spaceBeforePoint reports whether the next digit is the lone 0 of 0.1, which 9 leaves blank.
func (p *numShown) spaceBeforePoint() bool {
	return !p.l.hasZero && p.at == 0 && strings.HasPrefix(p.digits, "0") && p.l.post != 0
}

// lastIsPoint reports whether FM stops at the point.
func (p *numShown) lastIsPoint() bool {
	return p.lastDigit >= 0 && p.digits[p.lastDigit] == '.'
}

// part writes one digit or the point.
func (p *numShown) part(key string) {
	l := p.l
	p.inNumber = false
	if !p.signDone && (p.place >= p.spaces || l.hasZero && l.zeroStart == p.place) && (!p.spaceBeforePoint() || p.lastIsPoint()) {
		p.writeSign()
	}
	switch {
	case p.place < p.spaces && (!l.hasZero || l.zeroStart > p.place):
		if !l.fill {
			p.out.WriteByte(' ')
		}
	case l.hasZero && p.place < p.spaces:
		p.out.WriteByte('0')
		p.inNumber = true
	default:
		p.writeDigit(key)
		if p.ended {
			return
		}
	}
	end := p.count
	if p.spaces > 0 {
		end++
	}
	if l.decimal {
		end++
	}
	if p.lastDigit >= 0 && p.lastDigit == p.at {
		end = p.place
	}
	if p.place+1 == end {
		p.closeSign()
	}
	p.place++
}

func (p *numShown) writeSign() {
	switch {
	case p.l.s:
		if p.l.sign == signBefore {
			p.out.WriteByte(p.signChar())
			p.signDone = true
		}
		return
	case p.l.bracket && p.negative:
		p.out.WriteByte('<')
	case p.l.bracket:
		p.out.WriteByte(' ')
	case p.negative:
		p.out.WriteByte('-')
	case !p.l.fill:
		p.out.WriteByte(' ')
	}
	p.signDone = true
}

func (p *numShown) closeSign() {
	switch {
	case p.signDone && p.l.bracket && p.negative:
		p.out.WriteByte('>')
	case p.signDone && p.l.bracket:
		p.out.WriteByte(' ')
	case p.l.s && p.l.sign == signAfter:
		p.out.WriteByte(p.signChar())
	}
}

func (p *numShown) writeDigit(key string) {
	c := byte(0)
	if p.at < len(p.digits) {
		c = p.digits[p.at]
	}
	switch {
	case c == '.':
		if !p.lastIsPoint() || p.l.fill {
			p.out.WriteByte('.')
		}
	case p.lastDigit >= 0 && p.at > p.lastDigit && key != "0":
	case p.spaceBeforePoint():
		if !p.l.fill {
			p.out.WriteByte(' ')
		} else if p.lastIsPoint() {
			p.out.WriteByte('0')
		}
	case c == 0:
		p.ended = true // a point without digits after it: PostgreSQL ends the string
	default:
		p.out.WriteByte(c)
		p.inNumber = true
	}
	p.at = min(p.at+1, len(p.digits))
}

var romanValues = []struct {
	n int64
	s string
}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}}

// romanNumeral writes 1 … 3999.
func romanNumeral(n int64) string {
	if n < 1 || n > 3999 {
		return strings.Repeat("#", 15)
	}
	var b strings.Builder
	for _, r := range romanValues {
		for ; n >= r.n; n -= r.n {
			b.WriteString(r.s)
		}
	}
	return b.String()
}

// toCharNum returns a to_char of numbers: digits writes the value for a layout.
func toCharNum(digits func(l *numLayout, d types.Datum) (string, error)) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		if a[1].Text() == "" {
			return types.Text(""), nil
		}
		nodes, err := numTemplate().parse(a[1].Text())
		if err != nil {
			return types.Null, err
		}
		l, err := layOut(nodes)
		if err != nil {
			return types.Null, err
		}
		s, err := digits(l, a[0])
		if err != nil {
			return types.Null, err
		}
		if l.eeee {
			return types.Text(s), nil
		}
		s, err = numToChar(nodes, l, s)
		return types.Text(s), err
	}
}

// intDigits writes an integer for a layout; V multiplies it within its type.
func intDigits(multiply func(n, power int64) (int64, error), scientific func(l *numLayout, n int64) string) func(l *numLayout, d types.Datum) (string, error) {
	return func(l *numLayout, d types.Datum) (string, error) {
		n := d.Int()
		switch {
		case l.roman:
			n, err := NarrowInt(n, types.OIDInt4)
			return romanNumeral(n), err
		case l.eeee:
			return scientific(l, n), nil
		case l.v:
			power, ok := numericInt64(pow10Numeric(l.multi))
			if !ok {
				return "", errInt8Range()
			}
			var err error
			if n, err = multiply(n, power); err != nil {
				return "", err
			}
			l.pre += l.multi
		}
		s := strconv.FormatInt(n, 10)
		if l.post > 0 {
			s += "." + strings.Repeat("0", l.post)
		}
		return s, nil
	}
}

// scientificInt4 converts through a float, as PostgreSQL does, and scientificInt8 through numeric.
func scientificInt4(l *numLayout, n int64) string { return scientificFloat(float64(n), l.post) }
func scientificInt8(l *numLayout, n int64) string { return scientific(types.NewNumeric(n), l.post) }

// wrappingMul multiplies integers as PostgreSQL does here.
func wrappingMul(n, power int64) (int64, error) { return int64(int32(n) * int32(power)), nil }

func numericDigits(l *numLayout, d types.Datum) (string, error) {
	v := d.Decimal()
	if l.roman {
		n, err := NumericToInt(v, types.OIDInt4)
		return romanNumeral(n), err
	}
	if l.eeee {
		if v.Form != apd.Finite {
			return noExponent(l), nil
		}
		return scientific(v, l.post), nil
	}
	if l.v {
		l.pre += l.multi
		var err error
		if v, err = MulNumeric(v, pow10Numeric(l.multi)); err != nil {
			return "", err
		}
	}
	return string(types.AppendNumeric(nil, types.RoundNumeric(v, l.post))), nil
}

func pow10Numeric(n int) *apd.Decimal {
	d := new(apd.Decimal)
	d.Coeff.Set(types.Pow10(n))
	return d
}

// noExponent replaces NaN and infinities in EEEE, which have no digits.
func noExponent(l *numLayout) string {
	return " " + strings.Repeat("#", l.pre) + "." + strings.Repeat("#", l.post+4)
}

// scientific writes d.ddde+dd.
func scientific(v *apd.Decimal, scale int) string {
	exponent := 0
	mantissa := v
	if signum(v) != 0 {
		exponent = int(apd.NumDigits(&v.Coeff)) + int(v.Exponent) - 1
		mantissa = shiftNumeric(v, -exponent, scale) // 9.99 becomes 10, as in PostgreSQL
	} else {
		mantissa = types.RoundNumeric(v, scale)
	}
	s := string(types.AppendNumeric(nil, mantissa))
	if !v.Negative {
		s = " " + s
	}
	sign := "+"
	if exponent < 0 {
		sign, exponent = "-", -exponent
	}
	return s + "e" + sign + padded(int64(exponent), 2, false)
}

// shiftNumeric returns v·10^n, rounded to a scale.
func shiftNumeric(v *apd.Decimal, n, scale int) *apd.Decimal {
	shifted := &apd.Decimal{Negative: v.Negative, Exponent: v.Exponent + int32(n)}
	shifted.Coeff.Set(&v.Coeff)
	if shifted.Exponent > 0 {
		shifted.Coeff.Mul(&shifted.Coeff, types.Pow10(int(shifted.Exponent)))
		shifted.Exponent = 0
	}
	return types.RoundNumeric(shifted, scale)
}

// floatDigits writes a float with no more digits than its type has.
func floatDigits(precision int) func(l *numLayout, d types.Datum) (string, error) {
	return func(l *numLayout, d types.Datum) (string, error) {
		v := d.Float()
		special := math.IsNaN(v) || math.IsInf(v, 0)
		switch {
		case l.roman:
			if special {
				return romanNumeral(0), nil
			}
			return romanNumeral(int64(math.RoundToEven(v))), nil
		case l.eeee && special:
			return noExponent(l), nil
		case l.eeee:
			return scientificFloat(v, l.post), nil
		case l.v:
			v *= math.Pow10(l.multi)
			l.pre += l.multi
		}
		whole := len(fixedFloat(math.Abs(v), 0))
		switch {
		case whole >= precision:
			l.post = 0
		case whole+l.post > precision:
			l.post = precision - whole
		}
		return fixedFloat(v, l.post), nil
	}
}

func scientificFloat(v float64, scale int) string {
	s := strconv.FormatFloat(v, 'e', scale, 64)
	if !math.Signbit(v) {
		s = " " + s
	}
	return s
}

// fixedFloat is C's %.*f.
func fixedFloat(v float64, scale int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(v, 'f', scale, 64)
}

func toCharFuncs() []decl {
	return []decl{
		{sig: "to_char(timestamp,text) text", flags: stable, fn: toCharTimestamp(false)},
		{sig: "to_char(timestamptz,text) text", flags: stable, fn: toCharTimestamp(true)},
		{sig: "to_char(interval,text) text", flags: stable, fn: toCharInterval},
		{sig: "to_char(int4,text) text", flags: stable, fn: toCharNum(intDigits(wrappingMul, scientificInt4))},
		{sig: "to_char(int8,text) text", flags: stable, fn: toCharNum(intDigits(MulInt8, scientificInt8))},
		{sig: "to_char(numeric,text) text", flags: stable, fn: toCharNum(numericDigits)},
		{sig: "to_char(float4,text) text", flags: stable, fn: toCharNum(floatDigits(6))},
		{sig: "to_char(float8,text) text", flags: stable, fn: toCharNum(floatDigits(15))},
		{sig: "to_number(text,text) numeric", flags: stable, fn: toNumber},
		{sig: "to_date(text,text) date", flags: stable, fn: toDate},
		{sig: "to_timestamp(text,text) timestamptz", flags: stable, fn: toTimestamp},
	}
}
