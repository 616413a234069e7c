package builtin

import (
	"math/bits"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/types"
)

// Remover is an accumulator that can take back rows, so that the frame of a window may move on without being computed
// again. Only exact results allow it: sums of floats depend on the order of the additions, and are not taken back.
type Remover interface {
	Accumulator
	// Remove takes back the arguments of the oldest row added. If it returns false, the state cannot be used any more
	// and the caller begins again.
	Remove(env *Env, args []types.Datum) (bool, error)
}

// Moving returns a new accumulator as NewAccumulator does, one that can take back rows; nil if the aggregate has none.
func (a *Aggregate) Moving() Remover {
	switch acc := a.NewAccumulator().(type) {
	case Remover:
		return acc
	case *sumInt:
		return &movingInt{}
	case *sumNumeric:
		return &movingNumeric{sumNumeric: *acc}
	case *momentsNumeric:
		return &movingMoments{momentsNumeric: *acc}
	case *logical:
		return &movingBool{or: acc.or}
	}
	return nil
}

// Remove implements Remover.
func (c *countStar) Remove(*Env, []types.Datum) (bool, error) { c.n--; return true, nil }

// Remove implements Remover.
func (c *countAny) Remove(_ *Env, a []types.Datum) (bool, error) {
	if !a[0].IsNull() {
		c.n--
	}
	return true, nil
}

// Remove implements Remover.
func (c *countPairs) Remove(_ *Env, a []types.Datum) (bool, error) {
	if !a[0].IsNull() && !a[1].IsNull() {
		c.n--
	}
	return true, nil
}

// remove is the opposite of add.
func (w *wideSum) remove(n int64) {
	var borrow uint64
	w.lo, borrow = bits.Sub64(w.lo, uint64(n), 0)
	w.hi -= uint64(n>>63) + borrow
	w.n--
}

// Remove implements Remover.
func (s *sumWide) Remove(_ *Env, a []types.Datum) (bool, error) {
	if !a[0].IsNull() {
		s.remove(a[0].Int())
	}
	return true, nil
}

// Remove implements Remover.
func (s *avgInt) Remove(_ *Env, a []types.Datum) (bool, error) {
	if !a[0].IsNull() {
		s.remove(a[0].Int())
	}
	return true, nil
}

// Remove implements Remover.
func (s *sumInterval) Remove(_ *Env, a []types.Datum) (bool, error) {
	if a[0].IsNull() {
		return true, nil
	}
	s.n--
	var err error
	s.sum, err = subInterval(s.sum, a[0].Interval())
	return true, err
}

// movingInt is sumInt that counts its rows.
type movingInt struct{ n, sum int64 }

func (s *movingInt) Add(_ *Env, a []types.Datum) (err error) {
	if a[0].IsNull() {
		return nil
	}
	s.n++
	s.sum, err = AddInt8(s.sum, a[0].Int())
	return err
}

func (s *movingInt) Remove(_ *Env, a []types.Datum) (bool, error) {
	if !a[0].IsNull() {
		s.n--
		s.sum -= a[0].Int() // the sum of the remaining rows, which is in range
	}
	return true, nil
}

func (s *movingInt) Result(*Env) (types.Datum, error) {
	if s.n == 0 {
		return types.Null, nil
	}
	return types.Int(s.sum), nil
}

// movingBool is logical that counts its rows.
type movingBool struct {
	or       bool
	n, trues int64
}

func (l *movingBool) Add(_ *Env, a []types.Datum) error {
	l.count(a[0], 1)
	return nil
}

func (l *movingBool) Remove(_ *Env, a []types.Datum) (bool, error) {
	l.count(a[0], -1)
	return true, nil
}

func (l *movingBool) count(d types.Datum, by int64) {
	if d.IsNull() {
		return
	}
	l.n += by
	if d.Bool() {
		l.trues += by
	}
}

func (l *movingBool) Result(*Env) (types.Datum, error) {
	switch {
	case l.n == 0:
		return types.Null, nil
	case l.or:
		return types.Bool(l.trues > 0), nil
	}
	return types.Bool(l.trues == l.n), nil
}

// scales counts the numbers with the largest scale, which is the scale of their sum.
type scales struct {
	largest int32
	numbers int64 // with that scale
}

func (s *scales) add(d *apd.Decimal) {
	switch scale := max(-d.Exponent, 0); {
	case scale > s.largest:
		s.largest, s.numbers = scale, 1
	case scale == s.largest:
		s.numbers++
	}
}

// remove returns false if the numbers that remain may have a smaller scale.
func (s *scales) remove(d *apd.Decimal) bool {
	if max(-d.Exponent, 0) == s.largest {
		s.numbers--
	}
	return s.numbers > 0 || s.largest == 0
}

// movingNumeric is sumNumeric that can subtract.
type movingNumeric struct {
	sumNumeric
	scales scales
}

func (s *movingNumeric) Add(env *Env, a []types.Datum) error {
	if !a[0].IsNull() && a[0].Decimal().Form == apd.Finite {
		s.scales.add(a[0].Decimal())
	}
	return s.sumNumeric.Add(env, a)
}

func (s *movingNumeric) Remove(_ *Env, a []types.Datum) (bool, error) {
	if a[0].IsNull() {
		return true, nil
	}
	s.n--
	d := a[0].Decimal()
	switch {
	case isNaN(d):
		s.nan--
	case isInf(d) && d.Negative:
		s.ninf--
	case isInf(d):
		s.posInf--
	default:
		if !s.scales.remove(d) {
			return false, nil
		}
		diff, err := SubNumeric(&s.sum, d)
		if err != nil {
			return false, err
		}
		s.sum.Set(diff)
	}
	return true, nil
}

// movingMoments is momentsNumeric that can subtract.
type movingMoments struct {
	momentsNumeric
	scales scales
}

func (m *movingMoments) Add(env *Env, a []types.Datum) error {
	if !m.ints && !a[0].IsNull() && a[0].Decimal().Form == apd.Finite {
		m.scales.add(a[0].Decimal())
	}
	return m.momentsNumeric.Add(env, a)
}

func (m *movingMoments) Remove(_ *Env, a []types.Datum) (bool, error) {
	if a[0].IsNull() {
		return true, nil
	}
	d := (*apd.Decimal)(nil)
	if m.ints {
		d = types.NewNumeric(a[0].Int())
	} else if d = a[0].Decimal(); d.Form != apd.Finite || !m.scales.remove(d) {
		return false, nil
	}
	square, err := MulNumeric(d, d)
	if err != nil {
		return false, err
	}
	m.n--
	if m.sum, err = SubNumeric(m.sum, d); err != nil {
		return false, err
	}
	m.sum2, err = SubNumeric(m.sum2, square)
	return true, err
}
