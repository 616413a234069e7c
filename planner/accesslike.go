package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// The functions of a LIKE pattern that bound the texts that match it, in the order of bytes.
var (
	likeLow  = boundOfPattern("like_low", func(prefix string) string { return prefix })
	likeHigh = boundOfPattern("like_high", func(prefix string) string {
		b := []byte(prefix)
		if len(b) > 0 {
			b[len(b)-1]++ // No byte of UTF-8 is 0xFF.
		}
		return string(b)
	})
)

func boundOfPattern(name string, bound func(prefix string) string) *builtin.Overload {
	return &builtin.Overload{Name: name, Args: []types.Type{types.TText}, Ret: types.TText, Strict: true, Volatility: builtin.Immutable,
		Fn: func(_ *builtin.Env, args []types.Datum) (types.Datum, error) {
			return types.Text(bound(builtin.LikePrefix(args[0].Text()))), nil
		}}
}

// likeBounds takes column LIKE pattern as two bounds, if the pattern begins with a text: an index by bytes has what matches it together.
func (p *physical) likeBounds(s *scanRel, own colSet, cond expr.Scalar, i int) (low, high sarg, ok bool) {
	like, ok := cond.(*expr.Like)
	if !ok || like.Not || !independent(like.Pattern, own) || !valueOnly(like.Pattern) || !isTextType(like.Pattern.Type()) {
		return sarg{}, sarg{}, false
	}
	ord := p.ordinalOf(s, like.X)
	if ord < 0 || !isTextType(s.table.ColumnAt(ord).Type) {
		return sarg{}, sarg{}, false
	}
	from, to := expr.NewCall(likeLow, []expr.Scalar{like.Pattern}), expr.NewCall(likeHigh, []expr.Scalar{like.Pattern})
	begins := expr.NewCompare(expr.NE, from, &expr.Const{Value: types.Text(""), Typ: types.TText}, types.TText)
	if !p.test(s, begins) {
		return sarg{}, sarg{}, false
	}
	return sarg{ord: ord, cond: i, op: expr.GE, value: from}, sarg{ord: ord, cond: i, op: expr.LT, value: to}, true
}

func isTextType(t types.Type) bool {
	return t.OID == types.OIDText || t.OID == types.OIDVarchar || t.OID == types.OIDUnknown
}

// appendTruth adds a condition that is a boolean expression of an index.
func (p *physical) appendTruth(out []sarg, s *scanRel, cond expr.Scalar, i int) []sarg {
	if ord := p.ordinalOf(s, cond); ord >= 0 {
		out = append(out, sarg{ord: ord, cond: i, op: expr.EQ, value: expr.NewBool(true), exact: true})
	}
	return out
}
