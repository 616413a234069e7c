package builtin

import (
	"errors"
	"slices"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// errUndetermined is the error if all arguments of a polymorphic type are untyped literals.
var errUndetermined = errors.New("polymorphic type is not determined")

// binding is the actual types of one call's polymorphic types: elem for the anyelement family, in which all types must
// be the same, and compat for the anycompatible family, in which they have a common type.
type binding struct {
	elem, compat         types.Type
	vector               types.Type // of the arrays of the former family, if they are int2vector or oidvector
	ranges, compatRanges *types.RangeTypes
}

func (b binding) actual(t types.Type) types.Type {
	switch t.OID {
	case types.OIDAnyElement, types.OIDAnyNonArray, types.OIDAnyEnum:
		return b.elem
	case types.OIDAnyArray:
		if b.vector.Valid() {
			return b.vector
		}
		return b.elem.ArrayOf()
	case types.OIDAnyCompatible, types.OIDAnyCompatibleNonArray:
		return b.compat
	case types.OIDAnyCompatibleArray:
		return b.compat.ArrayOf()
	}
	if is, compat, multi := isRangePolymorphic(t); is {
		rt := b.ranges
		if compat {
			rt = b.compatRanges
		}
		if multi {
			return rt.Multi
		}
		return rt.Range
	}
	return t
}

// arrays checks that the array types which a declaration needs exist.
func (b binding) arrays(declared ...types.Type) error {
	for _, d := range declared {
		elem := types.Type{}
		switch d.OID {
		case types.OIDAnyArray:
			elem = b.elem
		case types.OIDAnyCompatibleArray:
			elem = b.compat
		default:
			continue
		}
		if !elem.ArrayOf().Valid() {
			return pgerror.New(pgerror.UndefinedObject, "could not find array type for data type %s", elem)
		}
	}
	return nil
}

// bindPolymorphic finds the actual types for a declaration's polymorphic ones.
func bindPolymorphic(declared, args []types.Type) (binding, error) {
	var b binding
	var compat []types.Type
	var hasElem, hasEnum, hasCompat, undetermined, plain bool
	if err := b.bindRanges(declared, args); err != nil {
		return b, err
	}
	for i, d := range declared {
		a := args[i]
		switch d.OID {
		case types.OIDAnyElement, types.OIDAnyNonArray, types.OIDAnyArray, types.OIDAnyEnum:
			hasElem, hasEnum = true, hasEnum || d.OID == types.OIDAnyEnum
			if a.OID == types.OIDUnknown {
				continue
			}
			t := a.Base()
			if d.OID != types.OIDAnyElement { // which alone keeps a domain
				a = a.Underlying()
			}
			if d.OID == types.OIDAnyArray {
				if t = a.Elem().Base(); !a.IsArray() {
					return b, errNotArray(d, a)
				}
				if plain = plain || !a.IsVector(); !plain {
					b.vector = a
				} else {
					b.vector = types.Type{}
				}
			}
			if d.OID == types.OIDAnyEnum {
				t = a.Base()
			}
			if d.OID == types.OIDAnyNonArray && a.IsArray() {
				return b, pgerror.New(pgerror.DatatypeMismatch, "type matched to anynonarray is an array type: %s", a)
			}
			if d.OID == types.OIDAnyEnum && !a.IsEnum() {
				return b, pgerror.New(pgerror.DatatypeMismatch, "type matched to anyenum is not an enum type: %s", a)
			}
			if b.elem.Valid() && b.elem != t {
				return b, pgerror.New(pgerror.DatatypeMismatch, "arguments declared \"%s\" are not all alike", TypeName(d)).
					WithDetail("%s versus %s", b.elem, t)
			}
			b.elem = t
		case types.OIDAnyCompatible, types.OIDAnyCompatibleNonArray:
			hasCompat = true
			if d.OID == types.OIDAnyCompatibleNonArray && a.Underlying().IsArray() {
				return b, pgerror.New(pgerror.DatatypeMismatch, "type matched to anycompatiblenonarray is an array type: %s", a)
			}
			compat = append(compat, a)
		case types.OIDAnyCompatibleArray:
			hasCompat = true
			if a.OID == types.OIDUnknown {
				continue
			}
			if a = a.Underlying(); !a.IsArray() {
				return b, errNotArray(d, a)
			}
			compat = append(compat, a.Elem())
		case types.OIDAnyRange, types.OIDAnyMultirange:
			undetermined = undetermined || b.ranges == nil
		case types.OIDAnyCompatibleRange, types.OIDAnyCompatibleMultirange:
			hasCompat = true
			if undetermined = undetermined || b.compatRanges == nil; b.compatRanges != nil {
				compat = append(compat, b.compatRanges.Sub)
			}
		}
	}
	if err := b.element(); err != nil {
		return b, err
	}
	if undetermined {
		return b, errUndetermined
	}
	if hasCompat {
		t, _, err := commonOf("anycompatible", compat)
		if err != nil {
			return b, err
		}
		if b.compat = t.Base(); b.compatRanges != nil && b.compat.OID != b.compatRanges.Sub.OID {
			return b, pgerror.New(pgerror.DatatypeMismatch, "anycompatiblerange type %s does not match anycompatible type %s", b.compatRanges.Range, b.compat)
		}
	}
	if hasElem && !b.elem.Valid() {
		if hasEnum {
			return b, pgerror.New(pgerror.DatatypeMismatch, "type matched to anyenum is not an enum type: unknown")
		}
		return b, errUndetermined
	}
	return b, nil
}

func errNotArray(declared, actual types.Type) error {
	return pgerror.New(pgerror.DatatypeMismatch, "argument declared %s is not an array but type %s", declared, actual)
}

// CommonTypeIn returns the common type of values in UNION, CASE, COALESCE, GREATEST, VALUES, IN lists and ARRAY: the
// first type of the one category that all have, unless a later one is preferred or the others can be cast to it
// implicitly. Untyped literals take the type of the others, or text if there are none. The modifier is kept if all
// types are the same. context is the construct that the error (42804) names: "CASE", "UNION".
func CommonTypeIn(context string, ts []types.Type) (types.Type, error) {
	return (*Casts)(nil).CommonTypeIn(context, ts)
}

// CommonTypeIn is the function CommonTypeIn with the casts that users have defined.
func (s *Casts) CommonTypeIn(context string, ts []types.Type) (types.Type, error) {
	t, _, err := s.commonOf(context, ts)
	return t, err
}

func commonOf(context string, ts []types.Type) (t types.Type, known bool, err error) {
	return (*Casts)(nil).commonOf(context, ts)
}

func (s *Casts) commonOf(context string, ts []types.Type) (t types.Type, known bool, err error) {
	best := types.TUnknown
	sameMod := true
	if slices.ContainsFunc(ts, func(t types.Type) bool { return t != ts[0] }) {
		ts = underlying(ts)
	}
	for i, t := range ts {
		if i > 0 && t != ts[0] {
			sameMod = false
		}
		if t.OID == types.OIDUnknown || t.OID == best.OID {
			continue
		}
		if best.OID == types.OIDUnknown {
			best = t
			continue
		}
		if t.Category() != best.Category() {
			return types.Type{}, false, pgerror.New(pgerror.DatatypeMismatch, "%s types %s and %s cannot be matched",
				context, TypeName(best), TypeName(t))
		}
		if !best.Preferred() && s.implicit(best, t) && !s.implicit(t, best) {
			best = t
		}
	}
	if best.OID == types.OIDUnknown {
		return types.TText, false, nil
	}
	if context == "CASE" {
		context = "CASE/WHEN" // An ELSE, the first of the values, decides the type.
	}
	for _, t := range ts {
		if !s.implicit(t, best) {
			return types.Type{}, false, pgerror.New(pgerror.CannotCoerce, "%s could not convert type %s to %s",
				context, TypeName(t), TypeName(best))
		}
	}
	if !sameMod {
		best = best.Base()
	}
	return best, true, nil
}
