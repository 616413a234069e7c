package planner

import (
	"math"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// A plan is made for all values that executions may bring, and is cached without them. Where the statistics of a large table say that the
// share of rows that a condition selects depends on the value (a bound within a histogram, equality with a common value or a rare one),
// the planner notes the value as a Guess. An execution whose values fall into other bands than those that the plan was made for gets a
// plan of its own, which is cached beside it.

const (
	// guessRows is the size of a table from which guesses are noted. Of a smaller one every path is cheap.
	guessRows = 1000
	// maxGuesses bounds the guesses of a plan. Further conditions are estimated without their values.
	maxGuesses = 4
	// maxGuessedText bounds the texts of values that are compared with statistics.
	maxGuessedText = 1024
)

// Guess is an estimate that depends on a value of the execution: which share of a table's rows a condition on one column selects.
type Guess struct {
	// Equal, or Low and High, are the condition's values, over no row; nil: none.
	Equal, Low, High expr.Scalar
	// Share computes the share from a value; nil: dist tells it.
	Share expr.Scalar
	// Test is a condition over values alone, on which the plan depends: Bands says whether it held. nil: the guess is a share.
	Test    expr.Scalar
	dist    *distribution
	scan    *scanRel
	ordinal int
	written [3]expr.Scalar // as they were before they were compiled
	share   float64        // the estimate that the plan was made with
	outcome byte           // of Test, as a band
}

// bandUnknown is the band of a share that is not known.
const bandUnknown = 'z'

// The bands of tests.
const (
	bandTrue  = 'T'
	bandFalse = 'F'
)

// band is a letter for the order of magnitude of a share, in steps of four.
func band(share float64) byte {
	if share < 0 {
		return bandUnknown
	}
	return 'a' + byte(math.Min(math.Max(-math.Log2(share)/2, 0), 20))
}

// AppendBands appends a letter for each of the plan's guesses: the order of magnitude of the share of rows under the values of ev. Plans of a
// statement with the same bands are interchangeable.
func (p *Plan) AppendBands(dst []byte, ev *expr.Context) []byte {
	for i := range p.Guesses {
		dst = append(dst, p.Guesses[i].bandFor(ev))
	}
	return dst
}

// TestsHold reports whether the conditions that the plan requires of the values of its inputs hold for those of ev. A plan may be executed for
// other values than those it was made for only if they do.
func (p *Plan) TestsHold(ev *expr.Context) bool {
	for i := range p.Guesses {
		if p.Bands[i] == bandTrue && p.Guesses[i].bandFor(ev) != bandTrue {
			return false
		}
	}
	return true
}

func (g *Guess) bandFor(ev *expr.Context) byte {
	if g.Test == nil {
		return band(g.shareFor(ev))
	}
	v, ok := knownValue(g.Test, ev)
	switch {
	case !ok:
		return bandUnknown
	case v.IsNull() || !v.Bool():
		return bandFalse
	}
	return bandTrue
}

// maxTests bounds the tests of a plan. What a further one would decide is taken not to hold.
const maxTests = 32

// test reports whether a condition over values alone holds, and notes that the plan depends on it.
func (p *physical) test(s *scanRel, cond expr.Scalar) bool {
	if p.err != nil {
		return false
	}
	tests := 0
	for i := range p.guesses {
		have := &p.guesses[i]
		if have.Test == nil {
			continue
		}
		if tests++; expr.Equal(have.written[0], cond) {
			return have.outcome == bandTrue
		}
	}
	g := Guess{scan: s, written: [3]expr.Scalar{cond}, Test: p.compile(expr.Clone(cond), nil), outcome: bandUnknown}
	if p.err != nil {
		return false
	}
	if ev, ok := p.knownInputs(&g); ok {
		g.outcome = g.bandFor(ev)
	}
	if used := expr.HasInput(cond); !used {
		return g.outcome == bandTrue
	}
	if tests >= maxTests {
		return false
	}
	p.guesses = append(p.guesses, g)
	return g.outcome == bandTrue
}

// shareFor estimates the share of rows under the values of ev, negative if it is unknown.
func (g *Guess) shareFor(ev *expr.Context) float64 {
	if g.Share != nil {
		v, ok := knownValue(g.Share, ev)
		switch {
		case !ok:
			return -1
		case v.IsNull():
			return 0
		}
		return v.Float()
	}
	if g.Equal != nil {
		v, ok := knownValue(g.Equal, ev)
		switch {
		case !ok:
			return -1
		case v.IsNull():
			return 0
		}
		return g.dist.equal(v)
	}
	var ends [2]types.Datum
	for i, e := range [2]expr.Scalar{g.Low, g.High} {
		if e == nil {
			continue
		}
		v, ok := knownValue(e, ev)
		switch {
		case !ok:
			return -1
		case v.IsNull():
			return 0
		}
		ends[i] = v
	}
	return g.dist.between(ends[0], ends[1])
}

// knownValue evaluates e for an estimate. A value that cannot be computed is unknown: the execution reports the error if it needs it.
func knownValue(e expr.Scalar, ev *expr.Context) (types.Datum, bool) {
	v, err := e.Eval(ev, nil)
	if err != nil || v.Kind() == types.KindBytes && len(v.Bytes()) > maxGuessedText {
		return types.Null, false
	}
	return v, true
}

// equalShare estimates the share of rows of a scan whose column equals value, as far as the value decides; false: it does not.
func (p *physical) equalShare(s *scanRel, ord int, value expr.Scalar) (float64, bool) {
	st := p.tableStats(s).Columns[s.table.ColumnAt(ord).ID]
	if len(st.Common) == 0 {
		return 0, false
	}
	return p.guess(Guess{scan: s, ordinal: ord, written: [3]expr.Scalar{value}})
}

// rangeShare estimates the share of rows of a scan whose column lies between low and high, either of which may be nil.
func (p *physical) rangeShare(s *scanRel, ord int, low, high expr.Scalar) float64 {
	if share, ok := p.guess(Guess{scan: s, ordinal: ord, written: [3]expr.Scalar{nil, low, high}}); ok {
		return share
	}
	if low != nil && high != nil {
		return betweenSelectivity
	}
	return rangeSelectivity
}

// guess estimates the share of rows for the condition that g.written describes, and notes that the plan depends on it. False: the statistics
// or the values do not tell.
func (p *physical) guess(g Guess) (float64, bool) {
	if isVirtual(g.scan) || p.tableStats(g.scan).Rows < guessRows || p.err != nil {
		return 0, false
	}
	for i := range p.guesses {
		if have := &p.guesses[i]; have.Test == nil && have.Share == nil && &have.scan.cols[0] == &g.scan.cols[0] && have.ordinal == g.ordinal && have.written == g.written {
			return have.share, have.share >= 0
		}
	}
	col := g.scan.table.ColumnAt(g.ordinal)
	constant := true
	for _, e := range g.written {
		if e == nil {
			continue
		}
		if !valueOnly(e) || !sameValues(e.Type(), col.Type) {
			return 0, false
		}
		_, isConst := e.(*expr.Const)
		constant = constant && isConst
	}
	if !constant && p.shares() >= maxGuesses {
		return 0, false
	}
	dist, err := p.tableStats(g.scan).Decoded(col.ID, func(c catalog.ColumnStats) (any, error) {
		return newDistribution(c, col.Type, p.distinct(g.scan, g.ordinal))
	})
	if err != nil {
		p.fail(err)
		return 0, false
	}
	g.dist = dist.(*distribution)
	if g.written[0] == nil && !g.dist.hasRanges() || g.written[0] != nil && len(g.dist.common) == 0 {
		return 0, false
	}
	g.Equal, g.Low, g.High = p.compile(g.written[0], nil), p.compile(g.written[1], nil), p.compile(g.written[2], nil)
	if p.err != nil {
		return 0, false
	}
	g.share = -1
	if ev, ok := p.knownInputs(&g); ok {
		g.share = g.shareFor(ev)
	}
	if !constant {
		p.guesses = append(p.guesses, g)
	}
	return g.share, g.share >= 0
}

// guessShare estimates a share of the rows of a scan that an expression computes from values; negative if they are not known.
func (p *physical) guessShare(s *scanRel, share expr.Scalar) float64 {
	if p.err != nil {
		return -1
	}
	for i := range p.guesses {
		if have := &p.guesses[i]; have.Share != nil && expr.Equal(have.written[0], share) {
			return have.share
		}
	}
	g := Guess{scan: s, written: [3]expr.Scalar{share}, Share: p.compile(expr.Clone(share), nil), share: -1}
	if p.err != nil {
		return -1
	}
	if ev, ok := p.knownInputs(&g); ok {
		g.share = g.shareFor(ev)
	}
	if expr.HasInput(share) && p.tableStats(s).Rows >= guessRows && p.shares() < maxGuesses {
		p.guesses = append(p.guesses, g)
	}
	return g.share
}

// shares counts the guesses that are shares.
func (p *physical) shares() int {
	n := 0
	for i := range p.guesses {
		if p.guesses[i].Test == nil {
			n++
		}
	}
	return n
}

// valueOnly reports whether an expression reads no row of any query and may be evaluated while the statement is planned.
func valueOnly(e expr.Scalar) bool {
	switch e.(type) {
	case *expr.Const, *expr.Input:
		return true
	}
	return used(e).empty() && !readsOuter(e) && !expr.Volatile(e) && !expr.HasSubquery(e)
}

// readsOuter reports whether an expression has parts that mean something in their place only.
func readsOuter(e expr.Scalar) bool {
	found := false
	expr.Walk(e, func(x expr.Scalar) bool {
		switch x.(type) {
		case *expr.CaseValue, *expr.Outer, *expr.Column:
			found = true
		}
		return !found
	})
	return found
}

// sameValues reports whether values of type a are compared with those of a column of type b as they are.
func sameValues(a, b types.Type) bool {
	isText := func(t types.Type) bool { return t.OID == types.OIDText || t.OID == types.OIDVarchar }
	return a.OID == b.OID || isInteger(a) && isInteger(b) || isText(a) && isText(b)
}

func isInteger(t types.Type) bool {
	return t.OID == types.OIDInt2 || t.OID == types.OIDInt4 || t.OID == types.OIDInt8
}

// knownInputs returns the inputs that a guess reads, as far as planning knows them; false if it does not know all of them.
func (p *physical) knownInputs(g *Guess) (*expr.Context, bool) {
	ev := &expr.Context{Ctx: p.b.ctx, Env: p.b.env, Inputs: make(types.Row, len(p.inputs))}
	known := true
	for _, e := range [5]expr.Scalar{g.Equal, g.Low, g.High, g.Test, g.Share} {
		if e == nil {
			continue
		}
		expr.Walk(e, func(x expr.Scalar) bool {
			if in, ok := x.(*expr.Input); ok && known {
				ev.Inputs[in.Index], known = p.knownInput(&p.inputs[in.Index])
			}
			return known
		})
	}
	return ev, known
}

func (p *physical) knownInput(in *Input) (types.Datum, bool) {
	if in.Param > 0 {
		if in.Param > len(p.b.opts.Params) {
			return types.Null, false
		}
		return p.b.opts.Params[in.Param-1], true
	}
	if in.Cursor > 0 || in.Slot >= len(p.b.opts.Literals) {
		return types.Null, false
	}
	v, err := literalValue(&p.b.opts.Literals[in.Slot], in.Type, p.b.env)
	return v, err == nil
}

// noteGuesses gives the plan the guesses that decide something: not those over tables of which a single row is read.
func (p *physical) noteGuesses(plan *Plan) {
	for _, g := range p.guesses {
		if g.Test == nil && g.scan.point || g.Test != nil && g.scan.untested {
			continue
		}
		g.scan, g.written = nil, [3]expr.Scalar{} // They would keep the binder's tree.
		plan.Guesses = append(plan.Guesses, g)
		if g.Test != nil {
			plan.Bands += string(rune(g.outcome))
		} else {
			plan.Bands += string(rune(band(g.share)))
		}
	}
}
