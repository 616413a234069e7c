package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/types"
)

// maxProofs bounds the steps of one proof.
const maxProofs = 2000

// prover decides whether rows that pass conditions satisfy the predicate of a partial index, by the rules of PostgreSQL's
// predicate_implied_by. It proves for a condition that is true that the predicate is true. Where a proof needs the value of a literal or
// parameter, the plan depends on it.
type prover struct {
	p     *physical
	s     *scanRel
	steps int
}

// usable reports whether an index contains all rows of a scan that pass the conditions.
func (p *physical) usable(s *scanRel, i int, conds []expr.Scalar) bool {
	ix := &s.table.Indexes[i]
	return ix.State == catalog.IndexPublic && !s.table.Outdated(ix) && ix.Inverted == nil && ix.Exclude == nil && p.includes(s, i, conds)
}

// includes reports whether the predicate of an index, if it has one, holds for all rows of a scan that pass the conditions.
func (p *physical) includes(s *scanRel, i int, conds []expr.Scalar) bool {
	if s.table.Indexes[i].Where == nil {
		return true
	}
	x := p.indexed(s)
	if p.err != nil {
		return false
	}
	return p.implied(s, conds, x.where[i])
}

// implied reports whether conds, all of them together, imply pred.
func (p *physical) implied(s *scanRel, conds []expr.Scalar, pred expr.Scalar) bool {
	pr := &prover{p: p, s: s}
	var clauses []expr.Scalar
	for _, c := range conds {
		clauses = append(clauses, pr.clauses(c)...)
	}
	return pr.all(clauses, pred)
}

// predicateOf returns the predicate of the index, nil if it has none.
func (p *physical) predicateOf(s *scanRel, ix *catalog.IndexDescriptor) expr.Scalar {
	if ix.Where == nil {
		return nil
	}
	for i := range s.table.Indexes {
		if &s.table.Indexes[i] == ix {
			return p.indexed(s).where[i]
		}
	}
	return nil
}

// clauses divides a condition into those that are connected by AND.
func (pr *prover) clauses(c expr.Scalar) []expr.Scalar {
	switch c := c.(type) {
	case *expr.And:
		var out []expr.Scalar
		for _, a := range c.Args {
			out = append(out, pr.clauses(a)...)
		}
		return out
	case *expr.Between:
		if !c.Not {
			return []expr.Scalar{c, expr.NewCompare(expr.GE, c.X, c.Low, c.Class), expr.NewCompare(expr.LE, c.X, c.High, c.Class)}
		}
	}
	return []expr.Scalar{c}
}

// all reports whether clauses, which are all true, imply pred.
func (pr *prover) all(clauses []expr.Scalar, pred expr.Scalar) bool {
	if pr.steps++; pr.steps > maxProofs || pr.p.err != nil {
		return false
	}
	switch q := pred.(type) {
	case *expr.And:
		for _, a := range q.Args {
			if !pr.all(clauses, a) {
				return false
			}
		}
		return true
	case *expr.Between:
		if !q.Not && !pr.any(clauses, pred) {
			return pr.all(clauses, expr.NewCompare(expr.GE, q.X, q.Low, q.Class)) && pr.all(clauses, expr.NewCompare(expr.LE, q.X, q.High, q.Class))
		}
	case *expr.Const:
		if expr.IsTrue(q) {
			return true
		}
	}
	if pr.any(clauses, pred) {
		return true
	}
	for _, a := range alternatives(pred) {
		if pr.all(clauses, a) {
			return true
		}
	}
	// Each alternative of a clause, with the other clauses, must imply it.
	for i, c := range clauses {
		alts := alternatives(c)
		if len(alts) == 0 {
			continue
		}
		every := true
		for _, a := range alts {
			with := append(append(append([]expr.Scalar(nil), clauses[:i]...), clauses[i+1:]...), pr.clauses(a)...)
			if every = pr.all(with, pred); !every {
				break
			}
		}
		if every {
			return true
		}
	}
	return false
}

// any reports whether one of the clauses implies pred.
func (pr *prover) any(clauses []expr.Scalar, pred expr.Scalar) bool {
	for _, c := range clauses {
		if pr.steps++; pr.steps > maxProofs {
			return false
		}
		if pr.one(c, pred) {
			return true
		}
	}
	return false
}

// alternatives lists what a condition connects by OR: the arguments of OR, or an equality with each element of a list. nil: nothing.
func alternatives(c expr.Scalar) []expr.Scalar {
	switch c := c.(type) {
	case *expr.Or:
		return c.Args
	case *expr.InList:
		if c.Not {
			return nil
		}
		out := make([]expr.Scalar, len(c.List))
		for i, e := range c.List {
			out[i] = expr.NewCompare(expr.EQ, c.X, e, c.Class)
		}
		return out
	case *expr.Quantified:
		cmp, plain := c.Plain()
		list, isConst := c.Array.(*expr.Const)
		if !plain || !isConst || c.All || cmp.Op != expr.EQ || list.Value.IsNull() {
			return nil
		}
		var out []expr.Scalar
		for _, d := range list.Value.Array().Elems {
			if !d.IsNull() {
				out = append(out, expr.NewCompare(expr.EQ, c.X, &expr.Const{Value: d, Typ: cmp.Class}, cmp.Class))
			}
		}
		return out
	}
	return nil
}

// one reports whether a clause implies a predicate, neither of which is AND.
func (pr *prover) one(c, pred expr.Scalar) bool {
	if pr.p.same(pr.s, c, pred) {
		return true
	}
	if n, ok := pred.(*expr.IsNull); ok && n.Not {
		return pr.rejectsNull(c, n.X)
	}
	if x, want, ok := truth(pred); ok {
		if y, is, ok := truth(c); ok && is == want && pr.p.same(pr.s, y, x) {
			return true
		}
	}
	pc, ok := pred.(*expr.Compare)
	if !ok {
		return false
	}
	if cc, ok := c.(*expr.Compare); ok {
		return pr.compares(cc, pc)
	}
	return false
}

// truth takes a condition as the statement that a boolean expression is true, or false.
func truth(c expr.Scalar) (x expr.Scalar, want, ok bool) {
	switch c := c.(type) {
	case *expr.Column, *expr.Call:
		return c, true, true
	case *expr.Not:
		if x, want, ok = truth(c.X); ok {
			return x, !want, true
		}
	case *expr.IsBool:
		if !c.Not {
			return c.X, c.Want, true
		}
	case *expr.Compare:
		if k, isConst := c.R.(*expr.Const); isConst && c.Op == expr.EQ && k.Typ.OID == types.OIDBool && !k.Value.IsNull() {
			return c.L, k.Value.Bool(), true
		}
	}
	return nil, false, false
}

// rejectsNull reports whether a clause is not true if x is NULL.
func (pr *prover) rejectsNull(c, x expr.Scalar) bool {
	const marked = -1000
	found := false
	probe := expr.Rewrite(expr.Clone(c), func(e expr.Scalar) expr.Scalar {
		if expr.Equal(e, x) {
			found = true
			return &expr.Column{ID: marked, Typ: x.Type()}
		}
		return e
	})
	return found && expr.RejectsNull(probe, func(id int) bool { return id == marked })
}

// implying lists, for a clause x op k, under which comparison of k with the constant of a predicate x op' k' the predicate follows.
var implying = map[[2]expr.CmpOp]expr.CmpOp{
	{expr.LT, expr.LT}: expr.LE, {expr.LT, expr.LE}: expr.LE, {expr.LT, expr.NE}: expr.LE,
	{expr.LE, expr.LT}: expr.LT, {expr.LE, expr.LE}: expr.LE, {expr.LE, expr.NE}: expr.LT,
	{expr.EQ, expr.LT}: expr.LT, {expr.EQ, expr.LE}: expr.LE, {expr.EQ, expr.EQ}: expr.EQ,
	{expr.EQ, expr.GE}: expr.GE, {expr.EQ, expr.GT}: expr.GT, {expr.EQ, expr.NE}: expr.NE,
	{expr.GE, expr.GT}: expr.GT, {expr.GE, expr.GE}: expr.GE, {expr.GE, expr.NE}: expr.GT,
	{expr.GT, expr.GT}: expr.GE, {expr.GT, expr.GE}: expr.GE, {expr.GT, expr.NE}: expr.GE,
	{expr.NE, expr.NE}: expr.EQ,
}

// compares reports whether a comparison implies another one.
func (pr *prover) compares(c, pred *expr.Compare) bool {
	cx, cop, cv := constantRight(c)
	px, pop, pv := constantRight(pred)
	if cv == nil || pv == nil || !collation.SameOrder(c.Class.Coll, pred.Class.Coll) || c.Class.OID != pred.Class.OID {
		return false
	}
	op, ok := implying[[2]expr.CmpOp{cop, pop}]
	return ok && pr.p.same(pr.s, cx, px) && pr.p.test(pr.s, expr.NewCompare(op, cv, pv, pred.Class))
}

// constantRight returns a comparison with the value on the right; a nil value if neither side is one.
func constantRight(c *expr.Compare) (x expr.Scalar, op expr.CmpOp, value expr.Scalar) {
	switch {
	case valueOnly(c.R) && !valueOnly(c.L):
		return c.L, c.Op, c.R
	case valueOnly(c.L) && !valueOnly(c.R):
		return c.R, c.Op.Commute(), c.L
	}
	return nil, c.Op, nil
}

// inferArbiters finds the unique indexes over exactly the expressions of ON CONFLICT's target whose predicates its condition implies.
func (p *physical) inferArbiters(s *scanRel, cf *conflict) []*catalog.IndexDescriptor {
	t := s.table
	x := p.indexed(s)
	ords := map[int]bool{}
	for _, e := range cf.infer {
		ords[p.ordinalOf(s, expr.Rewrite(e, expr.Fold))] = true
	}
	conds := make([]expr.Scalar, len(cf.inferWhere))
	for i, c := range cf.inferWhere {
		conds[i] = expr.Rewrite(c, expr.Fold)
	}
	fits := func(ix *catalog.IndexDescriptor) bool {
		have := map[int]bool{}
		for i := range ix.Columns {
			ord := t.Ordinal(ix.Columns[i].ColumnID)
			if !ords[ord] {
				return false
			}
			have[ord] = true
		}
		return len(have) == len(ords)
	}
	var out []*catalog.IndexDescriptor
	if fits(&t.Primary) && !hiddenKey(t) {
		out = append(out, &t.Primary)
	}
	for i := range t.Indexes {
		if ix := &t.Indexes[i]; isUnique(ix) && fits(ix) && (ix.Where == nil || p.implied(s, conds, x.where[i])) {
			out = append(out, ix)
		}
	}
	if len(out) == 0 {
		p.fail(errNoArbiter())
	}
	return out
}
