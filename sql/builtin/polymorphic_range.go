package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// isRangePolymorphic reports whether a declared type stands for a range or multirange type, of which family, and which of the two.
func isRangePolymorphic(t types.Type) (is, compat, multi bool) {
	switch t.OID {
	case types.OIDAnyRange:
		return true, false, false
	case types.OIDAnyMultirange:
		return true, false, true
	case types.OIDAnyCompatibleRange:
		return true, true, false
	case types.OIDAnyCompatibleMultirange:
		return true, true, true
	}
	return false, false, false
}

// bindRanges finds the range types of a call's two families: of arguments, and of multiranges'.
func (b *binding) bindRanges(declared, args []types.Type) error {
	for i, d := range declared {
		is, compat, multi := isRangePolymorphic(d)
		if !is || args[i].OID == types.OIDUnknown {
			continue
		}
		a := args[i].Underlying()
		rt := a.Ranges()
		if rt == nil || multi != a.IsMultirange() {
			what := "range"
			if multi {
				what = "multirange"
			}
			return pgerror.New(pgerror.DatatypeMismatch, "argument declared %s is not a %s type but type %s", TypeName(d), what, a)
		}
		bound := &b.ranges
		if compat {
			bound = &b.compatRanges
		}
		if *bound != nil && (*bound).Range.OID != rt.Range.OID {
			return pgerror.New(pgerror.DatatypeMismatch, "arguments declared \"%s\" are not all alike", TypeName(d)).
				WithDetail("%s versus %s", (*bound).Range, a)
		}
		*bound = rt
	}
	return nil
}

// element makes the subtype of the ranges the type of anyelement, with which it must agree.
func (b *binding) element() error {
	if b.ranges == nil {
		return nil
	}
	if sub := b.ranges.Sub; !b.elem.Valid() {
		b.elem = sub
	} else if b.elem.Underlying().OID == sub.Underlying().OID {
		b.elem = sub
	} else {
		return pgerror.New(pgerror.DatatypeMismatch, "argument declared anyrange is not consistent with argument declared anyelement").
			WithDetail("%s versus %s", b.ranges.Range, b.elem)
	}
	return nil
}
