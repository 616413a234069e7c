package expr

import (
	"bytes"
	"math"

	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/types"
)

// CmpOp is a comparison operator.
type CmpOp uint8

// The comparison operators.
const (
	EQ CmpOp = iota + 1
	NE
	LT
	LE
	GT
	GE
)

// cmpOps spells the operators; index is CmpOp.
var cmpOps = [...]string{EQ: "=", NE: "<>", LT: "<", LE: "<=", GT: ">", GE: ">="}

// String returns the operator as SQL writes it.
func (op CmpOp) String() string { return cmpOps[op] }

// ParseCmpOp returns the operator that name spells, 0 for none.
func ParseCmpOp(name string) CmpOp {
	switch name {
	case "=":
		return EQ
	case "<>", "!=":
		return NE
	case "<":
		return LT
	case "<=":
		return LE
	case ">":
		return GT
	case ">=":
		return GE
	}
	return 0
}

// Commute returns the operator for swapped operands.
func (op CmpOp) Commute() CmpOp {
	switch op {
	case LT:
		return GT
	case LE:
		return GE
	case GT:
		return LT
	case GE:
		return LE
	}
	return op
}

// Negate returns the operator that holds where op does not; NULL operands stay NULL under both.
func (op CmpOp) Negate() CmpOp {
	switch op {
	case EQ:
		return NE
	case NE:
		return EQ
	case LT:
		return GE
	case LE:
		return GT
	case GT:
		return LE
	}
	return LT
}

// holds reports whether op accepts a comparison's outcome c.
func (op CmpOp) holds(c int) bool {
	switch op {
	case EQ:
		return c == 0
	case NE:
		return c != 0
	case LT:
		return c < 0
	case LE:
		return c <= 0
	case GT:
		return c > 0
	}
	return c >= 0
}

// Compare compares two values of one comparison class; NULL if either is. Class is the type under
// which both are compared (types.Compare): it agrees with the datums' kind.
type Compare struct {
	Op    CmpOp
	L, R  Scalar
	Class types.Type
	// kind is Class's representation, kept here to choose the loop without a lookup.
	kind types.Kind
}

// NewCompare makes a comparison under class.
func NewCompare(op CmpOp, l, r Scalar, class types.Type) *Compare {
	c := &Compare{Op: op, L: l, R: r, Class: class, kind: class.KindOf()}
	if class.OID == types.OIDBPChar || class.OID == types.OIDJSONB || class.OID == types.OIDCitext || class.OID == types.OIDTSQuery {
		c.kind = types.KindNull // trailing blanks, the scales of numbers, case and weights do not count: no plain byte comparison
	}
	return c
}

// Collated returns c in a collation. Equality is that of bytes in all.
func (c *Compare) Collated(coll *collation.Collation) *Compare {
	out := *c
	out.Class.Coll = coll
	if !coll.ByBytes() && c.Op != EQ && c.Op != NE {
		out.kind = types.KindNull
	}
	return &out
}

// Type is boolean.
func (*Compare) Type() types.Type { return types.TBool }

// Eval compares.
func (c *Compare) Eval(ev *Context, in types.Row) (types.Datum, error) {
	l, err := eval(c.L, ev, in)
	if err != nil || l.IsNull() {
		if err != nil {
			return types.Null, err
		}
		// The right side is still evaluated: its error is the statement's.
		if _, err := eval(c.R, ev, in); err != nil {
			return types.Null, err
		}
		return types.Null, nil
	}
	r, err := eval(c.R, ev, in)
	if err != nil || r.IsNull() {
		return types.Null, err
	}
	switch c.kind {
	case types.KindInt:
		return types.Bool(c.Op.holdsInt(l.Int(), r.Int())), nil
	case types.KindBytes:
		if c.Op == EQ {
			return types.Bool(bytes.Equal(l.Bytes(), r.Bytes())), nil
		}
		return types.Bool(c.Op.holds(bytes.Compare(l.Bytes(), r.Bytes()))), nil
	case types.KindFloat:
		return types.Bool(c.Op.holds(compareFloat(l.Float(), r.Float()))), nil
	}
	order, err := compareDatums(l, r, c.Class, c.Op == EQ || c.Op == NE)
	return types.Bool(c.Op.holds(order)), err
}

// condition is Eval for a condition: holds is false for NULL. Nearly all conditions on integers compare a column with a value that is the
// same for all rows.
func (c *Compare) condition(ev *Context, in types.Row) (holds, null bool, err error) {
	if l, ok := c.L.(*Column); ok && c.kind == types.KindInt {
		var right *types.Datum
		switch r := c.R.(type) {
		case *Const:
			right = &r.Value
		case *Input:
			right = &ev.Inputs[r.Index]
		case *Column:
			right = &in[r.Ordinal]
		}
		if right != nil {
			if in[l.Ordinal].IsNull() || right.IsNull() {
				return false, true, nil
			}
			return c.Op.holdsInt(in[l.Ordinal].Int(), right.Int()), false, nil
		}
	}
	d, err := c.Eval(ev, in)
	return !d.IsNull() && d.Bool(), d.IsNull(), err
}

// compareDatums is types.Compare, with an error for records that cannot be compared.
func compareDatums(l, r types.Datum, class types.Type, equality bool) (int, error) {
	switch l.Kind() {
	case types.KindRow, types.KindArray:
		if err := types.CheckSimilar(l, r, equality); err != nil {
			return 0, err
		}
	}
	return types.Compare(l, r, class), nil
}

// holdsInt compares integers without first making a three-way outcome.
func (op CmpOp) holdsInt(l, r int64) bool {
	switch op {
	case EQ:
		return l == r
	case NE:
		return l != r
	case LT:
		return l < r
	case LE:
		return l <= r
	case GT:
		return l > r
	}
	return l >= r
}

// compareFloat orders NaN above all and equal to itself, as PostgreSQL does.
func compareFloat(l, r float64) int {
	switch {
	case l < r:
		return -1
	case l > r:
		return 1
	case l == r:
		return 0
	}
	switch ln, rn := math.IsNaN(l), math.IsNaN(r); {
	case ln && rn:
		return 0
	case ln:
		return 1
	}
	return -1
}

// IsDistinct is L IS [NOT] DISTINCT FROM R under Class; never NULL.
type IsDistinct struct {
	L, R  Scalar
	Class types.Type
	// Equal compares instead of Class if = is a function for these types: it is over a row of its own, of L and R.
	Equal Scalar
	Not   bool
}

// Type is boolean.
func (*IsDistinct) Type() types.Type { return types.TBool }

// Eval compares, taking NULL as equal to NULL.
func (d *IsDistinct) Eval(ev *Context, in types.Row) (types.Datum, error) {
	l, err := eval(d.L, ev, in)
	if err != nil {
		return types.Null, err
	}
	r, err := eval(d.R, ev, in)
	if err != nil {
		return types.Null, err
	}
	distinct := l.IsNull() != r.IsNull()
	switch {
	case l.IsNull() || r.IsNull():
	case d.Equal != nil:
		pair := ev.push(2)
		defer ev.pop(2)
		pair[0], pair[1] = l, r
		equal, err := d.Equal.Eval(ev, pair)
		if err != nil {
			return types.Null, err
		}
		distinct = equal.IsNull() || !equal.Bool()
	default:
		order, err := compareDatums(l, r, d.Class, true)
		if err != nil {
			return types.Null, err
		}
		distinct = order != 0
	}
	return types.Bool(distinct != d.Not), nil
}

// RowCompare compares (L…) with (R…) field by field, as SQL's row comparison: for = and <> NULLs
// only matter where no field decides; for the orderings the first pair that differs or is NULL does.
type RowCompare struct {
	Op      CmpOp
	L, R    []Scalar
	Classes []types.Type
}

// Type is boolean.
func (*RowCompare) Type() types.Type { return types.TBool }

// Eval compares.
func (c *RowCompare) Eval(ev *Context, in types.Row) (types.Datum, error) {
	null := false
	for i := range c.L {
		l, err := eval(c.L[i], ev, in)
		if err != nil {
			return types.Null, err
		}
		r, err := eval(c.R[i], ev, in)
		if err != nil {
			return types.Null, err
		}
		decided, out := c.field(i, l, r, &null)
		if decided {
			return out, nil
		}
	}
	if null {
		return types.Null, nil
	}
	return types.Bool(c.Op == EQ || c.Op == LE || c.Op == GE), nil
}

// field compares pair i; decided reports that the remaining pairs are irrelevant.
func (c *RowCompare) field(i int, l, r types.Datum, null *bool) (decided bool, out types.Datum) {
	if l.IsNull() || r.IsNull() {
		if c.Op == EQ || c.Op == NE {
			*null = true
			return false, types.Null
		}
		return true, types.Null
	}
	cmp := types.Compare(l, r, c.Classes[i])
	if cmp == 0 {
		return false, types.Null
	}
	return true, types.Bool(c.Op.holds(cmp))
}

// Between is Low <= X <= High under Class, X evaluated once; Not negates.
type Between struct {
	X, Low, High Scalar
	Class        types.Type
	Not          bool
}

// Type is boolean.
func (*Between) Type() types.Type { return types.TBool }

// Eval tests both bounds under three-valued logic.
func (b *Between) Eval(ev *Context, in types.Row) (types.Datum, error) {
	x, err := eval(b.X, ev, in)
	if err != nil {
		return types.Null, err
	}
	lo, err := eval(b.Low, ev, in)
	if err != nil {
		return types.Null, err
	}
	if !x.IsNull() && !lo.IsNull() {
		if order, err := compareDatums(x, lo, b.Class, false); err != nil || order < 0 {
			return types.Bool(b.Not), err // The upper bound is not evaluated.
		}
	}
	hi, err := eval(b.High, ev, in)
	if err != nil || x.IsNull() {
		return types.Null, err
	}
	if !hi.IsNull() {
		if order, err := compareDatums(x, hi, b.Class, false); err != nil || order > 0 {
			return types.Bool(b.Not), err
		}
	}
	if lo.IsNull() || hi.IsNull() {
		return types.Null, nil
	}
	return types.Bool(!b.Not), nil
}
