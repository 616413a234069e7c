package builtin

import (
	"math"
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// moneyScale is the number of decimals of a currency in the locale C.
const moneyScale = 2

func moneyOps() []decl {
	out := []decl{
		{sig: "+(money,money) money", fn: fn2(moneyPlus)}, {sig: "-(money,money) money", fn: fn2(moneyMinus)},
		{sig: "/(money,money) float8", fn: moneyRatio},
	}
	for _, t := range []string{"int2", "int4", "int8"} {
		out = append(out, decl{sig: "*(money," + t + ") money", fn: moneyTimes}, decl{sig: "*(" + t + ",money) money", fn: moneyTimes},
			decl{sig: "/(money," + t + ") money", fn: moneyDiv})
	}
	for _, t := range []string{"float4", "float8"} {
		out = append(out, decl{sig: "*(money," + t + ") money", fn: moneyTimesFloat}, decl{sig: "*(" + t + ",money) money", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			return moneyOfFloat(float64(b.Int())*a.Float(), a.Float())
		})}, decl{sig: "/(money," + t + ") money", fn: moneyDivFloat})
	}
	return out
}

func moneyFuncs() []decl {
	out := []decl{
		{sig: "cash_pl(money,money) money", fn: fn2(moneyPlus)}, {sig: "cash_mi(money,money) money", fn: fn2(moneyMinus)},
		{sig: "cash_div_cash(money,money) float8", fn: moneyRatio},
		{sig: "cash_words(money) text", fn: moneyWords},
		{sig: "cashsmaller(money,money) money", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return types.Int(min(a.Int(), b.Int())), nil })},
		{sig: "cashlarger(money,money) money", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return types.Int(max(a.Int(), b.Int())), nil })},
	}
	return append(out, comparisonFuncs("cash_", "money", "cash_cmp")...)
}

func moneyCasts() []typeCast {
	ofInt := fn1(func(a types.Datum) (types.Datum, error) { return intDatum(MulInt8(a.Int(), 100)) })
	return []typeCast{
		{from: "money", to: "numeric", context: Assignment, volatility: Stable, fn: fn1(func(a types.Datum) (types.Datum, error) {
			d := types.NewNumeric(a.Int())
			d.Exponent = -moneyScale
			return types.Decimal(d), nil
		})},
		{from: "numeric", to: "money", context: Assignment, volatility: Stable, fn: fn1(func(a types.Datum) (types.Datum, error) {
			scaled, err := MulNumeric(a.Decimal(), types.NewNumeric(100))
			if err != nil {
				return types.Null, err
			}
			return intDatum(NumericToInt(scaled, types.OIDInt8))
		})},
		{from: "int4", to: "money", context: Assignment, volatility: Stable, fn: ofInt},
		{from: "int8", to: "money", context: Assignment, volatility: Stable, fn: ofInt},
	}
}

func moneyAggs() []aggDecl {
	return []aggDecl{{sig: "sum(money) money", make: fixed(func() Accumulator { return new(moneySum) })}}
}

// moneySum implements sum(money).
type moneySum struct {
	some bool
	n    int64
}

func (s *moneySum) Add(_ *Env, a []types.Datum) (err error) {
	if !a[0].IsNull() {
		s.some = true
		s.n, err = inMoney(AddInt8(s.n, a[0].Int()))
	}
	return err
}

func (s *moneySum) Result(*Env) (types.Datum, error) {
	if !s.some {
		return types.Null, nil
	}
	return types.Int(s.n), nil
}

func errMoneyRange() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "money out of range")
}

// inMoney is the result of an operation on bigints, with money's error where it is out of range.
func inMoney(n int64, err error) (int64, error) {
	if err != nil {
		err = errMoneyRange()
	}
	return n, err
}

func moneyPlus(a, b types.Datum) (types.Datum, error) {
	return intDatum(inMoney(AddInt8(a.Int(), b.Int())))
}

func moneyMinus(a, b types.Datum) (types.Datum, error) {
	return intDatum(inMoney(SubInt8(a.Int(), b.Int())))
}

func moneyTimes(_ *Env, a []types.Datum) (types.Datum, error) {
	return intDatum(inMoney(MulInt8(a[0].Int(), a[1].Int())))
}

func moneyDiv(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[1].Int() == 0 {
		return types.Null, ErrDivisionByZero()
	}
	if a[0].Int() == math.MinInt64 && a[1].Int() == -1 {
		return types.Null, errMoneyRange()
	}
	return types.Int(a[0].Int() / a[1].Int()), nil
}

// moneyOfFloat rounds hundredths, halves to even.
func moneyOfFloat(v float64, operands ...float64) (types.Datum, error) {
	if math.IsInf(v, 0) && !slices.ContainsFunc(operands, func(f float64) bool { return math.IsInf(f, 0) }) {
		return types.Null, errFloatOverflow()
	}
	if v = math.RoundToEven(v); !(v >= -0x1p63 && v < 0x1p63) {
		return types.Null, errMoneyRange()
	}
	return types.Int(int64(v)), nil
}

func moneyTimesFloat(_ *Env, a []types.Datum) (types.Datum, error) {
	return moneyOfFloat(float64(a[0].Int())*a[1].Float(), a[1].Float())
}

func moneyDivFloat(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[1].Float() == 0 {
		return types.Null, ErrDivisionByZero()
	}
	return moneyOfFloat(float64(a[0].Int())/a[1].Float(), a[1].Float())
}

func moneyRatio(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[1].Int() == 0 {
		return types.Null, ErrDivisionByZero()
	}
	return types.Float(float64(a[0].Int()) / float64(a[1].Int())), nil
}

// numberWords are the words of the numbers up to 19, tensWords those of the tens.
var (
	numberWords = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
		"fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"}
	tensWords  = []string{"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}
	powerWords = []string{"", " thousand", " million", " billion", " trillion", " quadrillion"}
)

// moneyWords is cash_words: an amount in English, as on a cheque.
func moneyWords(_ *Env, a []types.Datum) (types.Datum, error) {
	amount := a[0].Int()
	value := uint64(amount)
	text := ""
	if amount < 0 {
		value, text = -value, "minus "
	}
	cents, dollars := value%100, value/100
	var groups []string
	for power, rest := 0, dollars; rest > 0; power, rest = power+1, rest/1000 {
		if group := rest % 1000; group > 0 {
			groups = append(groups, belowThousand(group)+powerWords[power])
		}
	}
	if len(groups) == 0 {
		groups = []string{numberWords[0]}
	}
	slices.Reverse(groups)
	text += strings.Join(groups, " ")
	if dollars > 0 && dollars%1000 == 0 {
		text += " " // PostgreSQL's text has two spaces here.
	}
	unit := func(n uint64, name string) string {
		if n == 1 {
			return " " + name
		}
		return " " + name + "s"
	}
	text += unit(dollars, "dollar") + " and " + belowThousand(cents) + unit(cents, "cent")
	return types.Text(strings.ToUpper(text[:1]) + text[1:]), nil
}

// belowThousand returns the words of a number.
func belowThousand(n uint64) string {
	var words []string
	if n >= 100 {
		words = append(words, numberWords[n/100], "hundred")
		if n%100 == 0 {
			return strings.Join(words, " ")
		}
	}
	switch rest := n % 100; {
	case rest < 20:
		if n >= 100 {
			words = append(words, "and")
		}
		words = append(words, numberWords[rest])
	case rest%10 == 0:
		words = append(words, tensWords[rest/10])
	default:
		words = append(words, tensWords[rest/10], numberWords[rest%10])
	}
	return strings.Join(words, " ")
}
