package ddl

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// rangeOptions are the definitions of CREATE TYPE … AS RANGE.
type rangeOptions struct {
	subtype            types.Type
	diff               string   // of the function
	multirange         []string // the name, at multiPos; nil: none is given
	multiPos           ast.Pos
	opclass, collation *ast.DefItem
}

// createRange is CREATE TYPE … AS RANGE.
func (r *run) createRange(ctx context.Context, n *ast.CreateType) error {
	name := pathName(n.Pos, n.Name)
	opt, err := r.rangeOptions(n)
	if err != nil {
		return err
	}
	d, err := r.newType(ctx, name, types.RangeKind)
	if err != nil {
		return err
	}
	d.Parent, d.Difference = opt.subtype.Base().Collated(opt.subtype.Coll), opt.diff
	multiName := ast.TableName{Schema: d.Schema, Name: multirangeName(d.Name)}
	if opt.multirange != nil {
		multiName = pathName(opt.multiPos, opt.multirange)
	}
	m, err := r.newType(ctx, multiName, types.MultirangeKind)
	if e, ok := err.(*pgerror.Error); ok && e.Code == pgerror.DuplicateObject && opt.multirange == nil {
		return e.WithDetail("Failed while creating a multirange type for type \"%s\".", d.Name).
			WithHint("You can manually specify a multirange type name using the \"multirange_type_name\" attribute.")
	}
	if err != nil {
		return err
	}
	if m.Schema == d.Schema && (m.Name == d.Name || m.Name == d.ArrayName) {
		return pgerror.New(pgerror.DuplicateObject, "type %q already exists", m.Name)
	}
	if m.ArrayName == d.ArrayName && m.Schema == d.Schema {
		m.ArrayName = "_" + clipRunes(m.ArrayName, maxNameBytes-1)
	}
	d.MultirangeID, m.Parent = m.ID, types.Type{OID: types.OID(d.ID), Mod: -1}
	if err := r.ch.PutType(ctx, m); err != nil {
		return err
	}
	return r.addType(ctx, d)
}

// multirangeName chooses the name of a multirange type by that of its range type.
func multirangeName(name string) string {
	if before, after, ok := strings.Cut(name, "range"); ok {
		return clipRunes(before+"multirange"+after, maxNameBytes)
	}
	const suffix = "_multirange"
	return clipRunes(name, maxNameBytes-len(suffix)) + suffix
}

func (r *run) rangeOptions(n *ast.CreateType) (*rangeOptions, error) {
	opt := &rangeOptions{}
	seen := map[string]bool{}
	for i := range n.Items {
		item := &n.Items[i]
		if seen[item.Name] {
			return nil, pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(item.Position())
		}
		seen[item.Name] = true
		if err := r.rangeOption(opt, item); err != nil {
			return nil, err
		}
	}
	t := opt.subtype
	switch {
	case !t.Valid():
		return nil, pgerror.New(pgerror.SyntaxError, "type attribute \"subtype\" is required")
	case t.Category() == types.CategoryPseudo:
		return nil, pgerror.New(pgerror.DatatypeMismatch, "range subtype cannot be %s", builtin.TypeName(t))
	case !t.Ordered():
		return nil, pgerror.New(pgerror.UndefinedObject, "data type %s has no default operator class for access method \"btree\"", builtin.TypeName(t)).
			WithHint("You must specify an operator class for the range type or define a default operator class for the subtype.")
	}
	return opt, r.rangeOrder(opt)
}

// rangeOrder gives the subtype its collation, and refuses other orders of the bounds than the subtype's.
func (r *run) rangeOrder(opt *rangeOptions) error {
	if item := opt.collation; item != nil {
		if !opt.subtype.Collatable() {
			return pgerror.New(pgerror.WrongObjectType, "range collation specified but subtype does not support collation")
		}
		var err error
		if opt.subtype, err = planner.CollateType(opt.subtype, definedName(item), r.r, 0); err != nil {
			return err
		}
	}
	if item := opt.opclass; item != nil {
		name := definedName(item)
		last := name[len(name)-1]
		if want := opt.subtype.Underlying().Info().Name + "_ops"; last != want && !(strings.HasSuffix(last, "_ops") && opt.subtype.Underlying().IsString()) {
			return pgerror.New(pgerror.UndefinedObject, "operator class \"%s\" does not exist for access method \"btree\"", last)
		}
	}
	if opt.diff != "" {
		return requireDifference(opt)
	}
	return nil
}

// requireDifference checks the function for the difference of two bounds.
func requireDifference(opt *rangeOptions) error {
	args := []types.Type{opt.subtype, opt.subtype}
	fn, err := builtin.ResolveFunc(opt.diff, args)
	if err != nil || fn.Args[0].OID != opt.subtype.OID || fn.Args[1].OID != opt.subtype.OID {
		return pgerror.New(pgerror.UndefinedFunction, "function %s does not exist", builtin.CallSignature(opt.diff, args))
	}
	if fn.Ret.OID != types.OIDFloat8 {
		return pgerror.New(invalidObjectDefinition, "range subtype diff function %s must return type double precision", builtin.CallSignature(opt.diff, args))
	}
	return nil
}

// definedName returns the name that a definition has as its value.
func definedName(item *ast.DefItem) []string {
	switch v := item.Value; {
	case v == nil:
	case v.Type != nil:
		return v.Type.Name
	case v.Text != nil:
		return []string{v.Text.Value}
	}
	return []string{""}
}

func (r *run) rangeOption(opt *rangeOptions, item *ast.DefItem) (err error) {
	name := definedName(item)
	if name[0] == "" {
		return pgerror.New(pgerror.SyntaxError, "%s requires a parameter", item.Name)
	}
	switch item.Name {
	case "subtype":
		written := ast.TypeName{Pos: item.Pos, Name: name}
		if item.Value.Type != nil {
			written = *item.Value.Type
		}
		opt.subtype, err = planner.ResolveType(&written, r.r)
	case "subtype_opclass":
		opt.opclass = item
	case "collation":
		opt.collation = item
	case "subtype_diff":
		opt.diff = name[len(name)-1]
	case "multirange_type_name":
		opt.multirange, opt.multiPos = name, item.Pos
	case "canonical":
		return pgerror.Unsupported("CREATE TYPE … AS RANGE with canonical", "Use a built-in range type of a discrete type, or bounds of one form.").At(item.Position())
	default:
		return pgerror.New(pgerror.SyntaxError, "type attribute \"%s\" not recognized", item.Name).At(item.Position())
	}
	return err
}

// multirangeOf returns the multirange type of a range type.
func (r *run) multirangeOf(d *catalog.TypeDescriptor) *catalog.TypeDescriptor {
	if d.Kind != types.RangeKind {
		return nil
	}
	return r.r.Types().ByOID(types.OID(d.MultirangeID))
}
