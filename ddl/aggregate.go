package ddl

import (
	"context"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// aggregateItems are the definitions of CREATE AGGREGATE by their names.
type aggregateItems map[string]*ast.DefItem

// aggregateWords are the definitions that there are.
var aggregateWords = map[string]bool{
	"sfunc": true, "sfunc1": true, "stype": true, "stype1": true, "sspace": true, "finalfunc": true, "finalfunc_extra": true, "finalfunc_modify": true,
	"combinefunc": true, "serialfunc": true, "deserialfunc": true, "initcond": true, "initcond1": true, "msfunc": true, "minvfunc": true,
	"mstype": true, "msspace": true, "mfinalfunc": true, "mfinalfunc_extra": true, "mfinalfunc_modify": true, "minitcond": true, "sortop": true,
	"parallel": true, "hypothetical": true, "basetype": true,
}

// createAggregate is CREATE AGGREGATE. A combine function and those of moving aggregates are not used: they are optimizations.
func (r *run) createAggregate(ctx context.Context, n *ast.Define) error {
	name := pathName(n.Pos, n.Name)
	schema, err := r.routineSchema(ctx, name)
	if err != nil {
		return err
	}
	items := aggregateItems{}
	for i := range n.Items {
		it := &n.Items[i]
		if !aggregateWords[it.Name] {
			r.notice(pgerror.SyntaxError, "aggregate attribute %q not recognized", it.Name)
			continue
		}
		items[strings.TrimSuffix(it.Name, "1")] = it
	}
	switch {
	case items["stype"] == nil:
		return invalidFunction("aggregate stype must be specified")
	case items["sfunc"] == nil:
		return invalidFunction("aggregate sfunc must be specified")
	case n.Signature != nil && n.Signature.Ordered, items["hypothetical"] != nil:
		return pgerror.Unsupported("An ordered-set aggregate", "Write a function that takes an array, and call it with array_agg(… ORDER BY …).").At(n.Position())
	}
	d := &catalog.RoutineDescriptor{
		Kind: builtin.AggregateRoutine, Schema: schema, Name: name.Name, Language: "internal", Body: "aggregate_dummy", Parallel: 'u', Cost: 1,
		Owned: catalog.Owned{Owner: r.User}, Aggregate: &catalog.AggregateDescriptor{FinalModify: 'r'},
	}
	if err := r.aggregateParams(ctx, d, n, items); err != nil {
		return err
	}
	if err := r.aggregateState(ctx, d, items); err != nil {
		return err
	}
	if err := r.aggregateFunctions(ctx, d, items); err != nil {
		return err
	}
	if err := r.replaceable(d, n.OrReplace); err != nil {
		return err
	}
	return r.putRoutine(ctx, d)
}

// aggregateParams takes the arguments' types.
func (r *run) aggregateParams(ctx context.Context, d *catalog.RoutineDescriptor, n *ast.Define, items aggregateItems) error {
	if n.Signature == nil {
		base := items["basetype"]
		if base == nil {
			return invalidFunction("aggregate input type must be specified")
		}
		if v := base.Value; v != nil && v.Text != nil && strings.EqualFold(v.Text.Value, "any") || v != nil && v.Operator == "*" {
			return nil
		}
		t, err := r.itemType(ctx, base)
		d.Params = []builtin.RoutineParam{{Mode: 'i', Type: t}}
		return err
	}
	if items["basetype"] != nil {
		return invalidFunction("basetype is redundant with aggregate input type specification")
	}
	p := &paramReader{run: r, d: d}
	for i := range n.Signature.Params {
		a := &n.Signature.Params[i]
		if a.Mode == "OUT" || a.Mode == "INOUT" {
			return invalidFunction("aggregates cannot have output arguments")
		}
		if err := p.add(ctx, a, false); err != nil {
			return err
		}
	}
	return nil
}

// aggregateState takes the type and the first value of the state.
func (r *run) aggregateState(ctx context.Context, d *catalog.RoutineDescriptor, items aggregateItems) (err error) {
	a := d.Aggregate
	if a.State, err = r.itemType(ctx, items["stype"]); err != nil {
		return err
	}
	if a.State.Category() == types.CategoryPseudo && !a.State.IsPolymorphic() && !a.State.Underlying().IsComposite() {
		if a.State.OID == types.OIDInternal {
			return pgerror.Unsupported("An aggregate with a state of type internal", "Use a type with values, such as an array.").At(items["stype"].Position())
		}
		return invalidFunction("aggregate transition data type cannot be %s", builtin.TypeName(a.State))
	}
	in := d.InputTypes()
	determined := false
	for _, t := range in {
		determined = determined || t.IsPolymorphic()
	}
	if a.State.IsPolymorphic() && !determined {
		return invalidFunction("cannot determine transition data type").
			WithDetail("A result of type %s requires at least one input of type anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange.", builtin.TypeName(a.State))
	}
	if it := items["initcond"]; it != nil {
		text := itemText(it)
		a.Initial = &text
		if !a.State.IsPolymorphic() && r.Env != nil {
			if _, err := types.ParseText(a.State, text, &r.Env.Format); err != nil {
				return err
			}
		}
	}
	return nil
}

// aggregateFunctions finds the functions, and takes the type of the result.
func (r *run) aggregateFunctions(ctx context.Context, d *catalog.RoutineDescriptor, items aggregateItems) error {
	a, in := d.Aggregate, d.InputTypes()
	transition, err := r.aggregateFunction(ctx, items["sfunc"], append([]types.Type{a.State}, in...))
	if err != nil {
		return err
	}
	if transition.Ret.OID != a.State.OID {
		return pgerror.New(pgerror.DatatypeMismatch, "return type of transition function %s is not %s", transition.Name, builtin.TypeName(a.State))
	}
	if transition.Strict && a.Initial == nil && (len(in) == 0 || !sameOrBinary(in[0], a.State)) {
		return invalidFunction("must not omit initial value when transition function is strict and transition type is not compatible with input type")
	}
	a.Transition, d.Ret = transition.OID(), a.State
	if it := items["finalfunc"]; it != nil {
		args := []types.Type{a.State}
		if items["finalfunc_extra"] != nil {
			a.FinalExtra = itemTrue(items["finalfunc_extra"])
		}
		if a.FinalExtra {
			args = append(args, in...)
		}
		final, err := r.aggregateFunction(ctx, it, args)
		if err != nil {
			return err
		}
		if a.FinalExtra && final.Strict {
			return invalidFunction("final function with extra arguments must not be declared STRICT")
		}
		a.Final, d.Ret = final.OID(), final.Ret
	}
	if it := items["combinefunc"]; it != nil {
		combine, err := r.aggregateFunction(ctx, it, []types.Type{a.State, a.State})
		if err != nil {
			return err
		}
		if combine.Ret.OID != a.State.OID {
			return pgerror.New(pgerror.DatatypeMismatch, "return type of combine function %s is not %s", combine.Name, builtin.TypeName(a.State))
		}
		a.Combine = combine.OID()
	}
	if it := items["sspace"]; it != nil && it.Value != nil {
		n, _ := strconv.ParseInt(it.Value.Number, 10, 32)
		a.Space = int32(n)
	}
	if it := items["parallel"]; it != nil {
		level, ok := map[string]byte{"safe": 's', "restricted": 'r', "unsafe": 'u'}[strings.ToLower(itemText(it))]
		if !ok {
			return pgerror.New(pgerror.SyntaxError, "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE")
		}
		d.Parallel = level
	}
	if it := items["finalfunc_modify"]; it != nil {
		modify, ok := map[string]byte{"read_only": 'r', "shareable": 's', "read_write": 'w'}[strings.ToLower(itemText(it))]
		if !ok {
			return pgerror.New(pgerror.SyntaxError, "parameter \"finalfunc_modify\" must be READ_ONLY, SHAREABLE, or READ_WRITE")
		}
		a.FinalModify = modify
	}
	if items["sortop"] != nil && len(in) != 1 {
		return invalidFunction("sort operator can only be specified for single-argument aggregates")
	}
	return checkPolymorphic(d)
}

func sameOrBinary(a, b types.Type) bool {
	if a.OID == b.OID || b.IsPolymorphic() {
		return true
	}
	c, ok := builtin.FindCast(a, b, builtin.Implicit)
	return ok && c.NoOp()
}

// aggregateFunction finds a function that an aggregate calls with arguments of some types.
func (r *run) aggregateFunction(ctx context.Context, it *ast.DefItem, args []types.Type) (*planner.AggregateFunction, error) {
	path := itemPath(it)
	f, err := planner.FindAggregateFunction(path, args, r.r)
	if err != nil {
		return nil, err
	}
	if f.Routine != nil {
		if err := planner.RoutineDenied(r.access, f.Routine); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// itemPath is the name in a definition.
func itemPath(it *ast.DefItem) []string {
	switch v := it.Value; {
	case v == nil:
		return []string{""}
	case v.Type != nil:
		return v.Type.Name
	case v.Text != nil:
		return []string{v.Text.Value}
	}
	return []string{itemText(it)}
}

// itemText is the value of a definition as a text.
func itemText(it *ast.DefItem) string {
	switch v := it.Value; {
	case v == nil:
		return ""
	case v.Text != nil:
		return v.Text.Value
	case v.Type != nil:
		return strings.Join(v.Type.Name, ".")
	case v.Number != "":
		return v.Number
	case v.Operator != "":
		return v.Operator
	default:
		return strings.ToLower(v.Word)
	}
}

// itemTrue is the value of a definition as a boolean: one without value is true.
func itemTrue(it *ast.DefItem) bool {
	switch strings.ToLower(itemText(it)) {
	case "", "true", "on", "1":
		return true
	}
	return false
}

// itemType is the type in a definition.
func (r *run) itemType(ctx context.Context, it *ast.DefItem) (types.Type, error) {
	if it.Value == nil || it.Value.Type == nil {
		if it.Value != nil && it.Value.Text != nil {
			name := ast.TypeName{Pos: it.Pos, Name: []string{it.Value.Text.Value}}
			t, err := planner.ResolveType(&name, r.r)
			return t.Base(), unplaced(err)
		}
		return types.Type{}, pgerror.New(pgerror.SyntaxError, "argument of %s must be a type name", it.Name)
	}
	t, err := planner.ResolveType(it.Value.Type, r.r)
	if err != nil {
		return t, unplaced(err)
	}
	return t.Base(), r.mayUseType(t)
}
