package expr

import (
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Like is X [NOT] LIKE Pattern over text. ILIKE, other escapes and bytea go through the builtin
// operators; this node exists because a pattern that does not depend on the row is worth compiling
// once for the execution.
type Like struct {
	X, Pattern Scalar
	Not        bool
}

// Type is boolean.
func (*Like) Type() types.Type { return types.TBool }

// Eval matches.
func (l *Like) Eval(ev *Context, in types.Row) (types.Datum, error) {
	x, err := eval(l.X, ev, in)
	if err != nil {
		return types.Null, err
	}
	pattern, err := l.pattern(ev, in)
	if err != nil || pattern == nil || x.IsNull() {
		return types.Null, err
	}
	matched, err := pattern.Match(ev.Env, x.Text())
	if err != nil {
		return types.Null, err
	}
	return types.Bool(matched != l.Not), nil
}

// pattern returns the compiled pattern, nil for NULL.
func (l *Like) pattern(ev *Context, in types.Row) (*builtin.LikePattern, error) {
	fixed := rowIndependentLeaf(l.Pattern)
	if fixed {
		if m, ok := ev.memo[l]; ok {
			return m.(*builtin.LikePattern), nil
		}
	}
	d, err := eval(l.Pattern, ev, in)
	if err != nil {
		return nil, err
	}
	var p *builtin.LikePattern
	if !d.IsNull() {
		if p, err = builtin.CompileLike(ev.Env, d.Text(), false, false); err != nil {
			return nil, err
		}
	}
	if fixed {
		ev.remember(l, p)
	}
	return p, nil
}
