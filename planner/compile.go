package planner

import (
	"cmp"
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"slices"
)

// physical converts a rewritten rel to nodes: it decides how each step is executed and the position of each column. The
// first error stops it; every method may be called after that and returns an arbitrary value.
type physical struct {
	b      *binder
	inputs []Input
	// inputAt finds the place of an input once there are many of them; nil until then.
	inputAt map[inputKey]int
	outer   [][]int // the columns of the enclosing rows, outermost first
	ctes    []*physicalCTE
	changes *Changes // nil: there is none
	guesses []Guess
	keys    map[uint64]*References     // of the tables that the statement writes, by id
	depends []*catalog.TableDescriptor // tables of their foreign keys
	// foreignKeys are those bound, by OID; parents the leaves of their partitioned parents, by the OID of the index; moves the partitions to which
	// their actions move rows, by the id of the partitioned table.
	foreignKeys map[uint32]*ForeignKey
	parents     map[uint32]*keyLeaves
	moves       map[uint64]*Parts
	err         error
	// ruleList is rules(), made once.
	ruleList []rule
}

// physicalCTE is a materialised WITH item.
type physicalCTE struct {
	def  *cte
	node Node
	// works are the working tables that it reads.
	works map[int]bool
}

func (p *physical) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// compile copies an expression for a row of the given columns: IDs become ordinals or outer references, literals and
// parameters get their positions among the inputs, subqueries their plans.
func (p *physical) compile(e expr.Scalar, cols []int) expr.Scalar {
	if e == nil {
		return nil
	}
	p.pass()
	switch x := e.(type) {
	case *expr.Column:
		return p.place(x, cols)
	case *expr.Input:
		return p.input(x)
	case *expr.Const:
		return x
	}
	return expr.Rewrite(e, func(x expr.Scalar) expr.Scalar {
		p.pass()
		switch x := x.(type) {
		case *expr.Column:
			return p.place(x, cols)
		case *expr.Input:
			return p.input(x)
		}
		if sub := expr.SubqueryOf(x); sub != nil {
			expr.SetSubquery(x, p.subplan(sub, cols))
			return x
		}
		return expr.Fold(x)
	})
}

func (p *physical) compileAll(es []expr.Scalar, cols []int) []expr.Scalar {
	out := make([]expr.Scalar, len(es))
	for i, e := range es {
		out[i] = p.compile(e, cols)
	}
	return out
}

// byCost returns conditions in the order of their costs; those of equal cost keep theirs.
func byCost(conds []expr.Scalar) []expr.Scalar {
	costs := make([]float64, len(conds))
	order := make([]int, len(conds))
	for i, c := range conds {
		costs[i], order[i] = expr.Cost(c), i
	}
	if slices.IsSorted(costs) {
		return conds
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[a], costs[b]) })
	out := make([]expr.Scalar, len(conds))
	for i, at := range order {
		out[i] = conds[at]
	}
	return out
}

// conjunction compiles conditions into one, the cheap ones first, as PostgreSQL tests them; nil for none.
func (p *physical) conjunction(conds []expr.Scalar, cols []int) expr.Scalar {
	switch len(conds) {
	case 0:
		return nil
	case 1:
		return p.compile(conds[0], cols)
	}
	conds = byCost(conds)
	return &expr.And{Args: p.compileAll(conds, cols), Test: true}
}

// place finds a column in the row or in an enclosing one.
func (p *physical) place(c *expr.Column, cols []int) expr.Scalar {
	if c.ID < 0 {
		return c
	}
	for i, id := range cols {
		if id == c.ID {
			out := *c
			out.Ordinal = i
			return &out
		}
	}
	for level := len(p.outer) - 1; level >= 0; level-- {
		for i, id := range p.outer[level] {
			if id == c.ID {
				return &expr.Outer{Level: len(p.outer) - level, Ordinal: i, Typ: c.Typ, Name: c.Name}
			}
		}
	}
	p.fail(pgerror.New(pgerror.InternalError, "column %s is not at hand", c.Name))
	return c
}

// pass counts an expression, and fails if the statement has been cancelled.
func (p *physical) pass() {
	if err := p.b.pass(); err != nil {
		p.fail(err)
	}
}

// poll is pass between two passes.
func (p *physical) poll() {
	if err := p.b.poll(); err != nil {
		p.fail(err)
	}
}

// input gives a literal or parameter its place; the same one as the same type has one place.
func (p *physical) input(in *expr.Input) expr.Scalar {
	if p.err != nil {
		return in
	}
	t := in.Typ
	if in.Param > 0 {
		t = p.b.params[in.Param-1]
	} else if t.OID == types.OIDUnknown {
		t = types.TText
	}
	out := *in
	out.Typ = t
	at, found := p.findInput(inputKeyOf(in.Param, in.Slot, in.Cursor, t))
	if !found {
		at = len(p.inputs)
		p.inputs = append(p.inputs, Input{Param: in.Param, Slot: in.Slot, Cursor: in.Cursor, Type: t, Pos: in.Pos})
		if p.inputAt != nil {
			p.inputAt[inputKeyOf(in.Param, in.Slot, in.Cursor, t)] = at
		}
	}
	out.Index = at
	return &out
}

// inputKey identifies a literal, a parameter or a part of a cursor's position, and its type.
type inputKey struct {
	param, slot, cursor int
	typ                 types.Type
}

func inputKeyOf(param, slot, cursor int, t types.Type) inputKey {
	if param > 0 {
		slot = 0
	}
	return inputKey{param, slot, cursor, t}
}

// mapInputsFrom is the number of inputs from which they are found by a map.
const mapInputsFrom = 16

// findInput returns the place of an input that there is already.
func (p *physical) findInput(key inputKey) (int, bool) {
	if len(p.inputs) < mapInputsFrom {
		for i := range p.inputs {
			if have := &p.inputs[i]; inputKeyOf(have.Param, have.Slot, have.Cursor, have.Type) == key {
				return i, true
			}
		}
		return 0, false
	}
	if p.inputAt == nil {
		p.inputAt = make(map[inputKey]int, 2*len(p.inputs))
		for i := range p.inputs {
			have := &p.inputs[i]
			p.inputAt[inputKeyOf(have.Param, have.Slot, have.Cursor, have.Type)] = i
		}
	}
	i, ok := p.inputAt[key]
	return i, ok
}

// subplan plans a subquery whose enclosing row has the given columns.
func (p *physical) subplan(sub *expr.Subquery, cols []int) *expr.Subquery {
	sr := sub.Plan.(*subRel)
	p.outer = append(p.outer, cols)
	limit := 0.0
	if sr.exists {
		limit = 1
	}
	pn := p.exact(sr.root, sr.cols, limit)
	p.outer = p.outer[:len(p.outer)-1]
	if sr.hidden {
		hide(pn.node)
	}
	out := *sub
	setProperties(pn.node, false)
	out.Plan = pn.node
	return &out
}
