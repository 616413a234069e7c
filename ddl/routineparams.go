package ddl

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// routineParams takes the parameters and the type of the result.
func (r *run) routineParams(ctx context.Context, d *catalog.RoutineDescriptor, n *ast.CreateFunction) error {
	p := &paramReader{run: r, d: d}
	for i := range n.Params {
		if err := p.add(ctx, &n.Params[i], false); err != nil {
			return err
		}
	}
	for i := range n.Table {
		if err := p.add(ctx, &n.Table[i], true); err != nil {
			return err
		}
	}
	if err := p.result(ctx, n); err != nil {
		return err
	}
	return checkPolymorphic(d)
}

// paramReader reads the parameters of a routine.
type paramReader struct {
	*run
	d         *catalog.RoutineDescriptor
	variadic  bool
	defaulted bool
}

var paramModes = map[string]byte{"": 'i', "IN": 'i', "OUT": 'o', "INOUT": 'b', "VARIADIC": 'v'}

func (p *paramReader) add(ctx context.Context, a *ast.Parameter, table bool) error {
	param := builtin.RoutineParam{Name: a.Name, Mode: paramModes[a.Mode]}
	if table {
		param.Mode = 't'
	}
	if a.Type.SetOf {
		what := "functions"
		if p.d.Kind == builtin.ProcedureRoutine {
			what = "procedures"
		}
		return invalidFunction("%s cannot accept set arguments", what)
	}
	t, err := p.routineType(ctx, &a.Type)
	if err != nil {
		return err
	}
	param.Type = t.Base()
	procedure := p.d.Kind == builtin.ProcedureRoutine
	if p.variadic && (param.In() || procedure && param.Out()) {
		if procedure {
			return invalidFunction("VARIADIC parameter must be the last parameter")
		}
		return invalidFunction("VARIADIC parameter must be the last input parameter")
	}
	if param.Mode == 'v' {
		p.variadic = true
		switch {
		case t.OID == types.OIDAny:
			return pgerror.Unsupported("VARIADIC \"any\"", "Use VARIADIC of an array type.").At(a.Position())
		case !t.IsArray() && t.OID != types.OIDAnyArray && t.OID != types.OIDAnyCompatibleArray:
			return invalidFunction("VARIADIC parameter must be an array")
		}
	}
	if err := p.name(&param); err != nil {
		return err
	}
	switch {
	case a.Default != nil && !param.In():
		return invalidFunction("only input parameters can have default values")
	case a.Default != nil:
		p.defaulted = true
		if param.Default, err = p.defaultOf(ctx, &param, a.Default); err != nil {
			return err
		}
	case p.defaulted && param.In():
		return invalidFunction("input parameters after one with a default value must also have defaults")
	case p.defaulted && procedure:
		return invalidFunction("procedure OUT parameters cannot appear after one with a default value")
	}
	p.d.Params = append(p.d.Params, param)
	if len(p.d.InputTypes()) > maxArguments {
		return pgerror.New(pgerror.TooManyArguments, "functions cannot have more than %d arguments", maxArguments)
	}
	return nil
}

// maxArguments is PostgreSQL's FUNC_MAX_ARGS.
const maxArguments = 100

// name refuses a name that another parameter has. An IN parameter and an OUT parameter may have the same.
func (p *paramReader) name(param *builtin.RoutineParam) error {
	if param.Name == "" {
		return nil
	}
	pureIn := func(m byte) bool { return m == 'i' || m == 'v' }
	pureOut := func(m byte) bool { return m == 'o' || m == 't' }
	for i := range p.d.Params {
		other := &p.d.Params[i]
		if other.Name == param.Name && !(pureIn(other.Mode) && pureOut(param.Mode)) && !(pureOut(other.Mode) && pureIn(param.Mode)) {
			return invalidFunction("parameter name %q used more than once", param.Name)
		}
	}
	return nil
}

// defaultOf checks the default of a parameter and returns its text.
func (p *paramReader) defaultOf(ctx context.Context, param *builtin.RoutineParam, e ast.Expr) (string, error) {
	want := param.Type
	if want.IsPolymorphic() {
		want = types.Type{}
	}
	bound, err := p.bind(ctx, nil, e, want, inDefault)
	if err != nil {
		return "", err
	}
	if err := p.literalFits(ctx, bound); err != nil {
		return "", err
	}
	text := p.pinned(e)
	switch l := e.(type) {
	case *ast.Null:
		text += typed(want)
	case *ast.Literal:
		if l.Kind == ast.LiteralString {
			text += typed(want)
		}
	}
	return text, nil
}

// typed is the cast by which a literal has a type wherever it stands, as PostgreSQL shows it.
func typed(t types.Type) string {
	if !t.Valid() {
		return ""
	}
	return "::" + builtin.TypeName(t)
}

// result takes the type of the result, which OUT parameters determine.
func (p *paramReader) result(ctx context.Context, n *ast.CreateFunction) error {
	d := p.d
	var out []types.Type
	for i := range d.Params {
		if d.Params[i].Out() {
			out = append(out, d.Params[i].Type)
		}
	}
	required := types.Type{}
	switch {
	case len(out) == 1 && d.Kind != builtin.ProcedureRoutine:
		required = out[0]
	case len(out) > 0:
		required = types.Type{OID: types.OIDRecord, Mod: -1}
	}
	switch {
	case d.Kind == builtin.ProcedureRoutine && len(out) == 0:
		d.Ret = types.Type{OID: types.OIDVoid, Mod: -1}
	case d.Kind == builtin.ProcedureRoutine:
		d.Ret = required
	case n.Table != nil:
		d.Ret, d.Set = required, true
	case n.Returns == nil && !required.Valid():
		return invalidFunction("function result type must be specified")
	case n.Returns == nil:
		d.Ret = required
	default:
		written := *n.Returns
		d.Set, written.SetOf = written.SetOf, false
		t, err := p.resultType(ctx, &written)
		if err != nil {
			return err
		}
		if d.Ret = t.Base(); required.Valid() && required.OID != t.OID {
			return invalidFunction("function result type must be %s because of OUT parameters", builtin.TypeName(required))
		}
	}
	return nil
}

// resultType is routineType, with PostgreSQL's message for the type of a result.
func (p *paramReader) resultType(ctx context.Context, t *ast.TypeName) (types.Type, error) {
	typ, err := p.routineType(ctx, t)
	if e, ok := errors.AsType[*pgerror.Error](err); ok && e.Code == pgerror.UndefinedObject {
		return typ, pgerror.New(pgerror.UndefinedObject, "type %q does not exist", strings.Join(t.Name, "."))
	}
	return typ, err
}

// routineType resolves the type of a parameter or a result, which may be that of a column.
func (r *run) routineType(ctx context.Context, t *ast.TypeName) (types.Type, error) {
	if t.Percent {
		return r.columnType(ctx, t)
	}
	typ, err := planner.ResolveType(t, r.r)
	if e, ok := errors.AsType[*pgerror.Error](err); ok && e.Code == pgerror.UndefinedObject {
		return typ, pgerror.New(pgerror.UndefinedObject, "type %s does not exist", strings.Join(t.Name, "."))
	}
	if err != nil {
		return typ, unplaced(err)
	}
	return typ, r.mayUseType(typ)
}

// columnType is table.column%TYPE.
func (r *run) columnType(ctx context.Context, t *ast.TypeName) (types.Type, error) {
	last := len(t.Name) - 1
	table, err := r.mustFind(ctx, pathName(t.Pos, t.Name[:last]))
	if err != nil {
		return types.Type{}, err
	}
	i := table.ColumnNamed(t.Name[last])
	if i < 0 {
		return types.Type{}, pgerror.New(pgerror.UndefinedColumn, "column %q of relation %q does not exist", t.Name[last], table.Name).At(t.Position())
	}
	typ := table.Columns[i].Type.Base()
	r.noticeAbsent("type reference %s%%TYPE converted to %s", strings.Join(t.Name, "."), builtin.TypeName(typ))
	return typ, nil
}

// polymorphicInputs are the types of inputs that determine a polymorphic type, by the type's family.
var polymorphicInputs = []struct {
	of     []types.OID
	inputs []types.OID
	need   string
}{
	{[]types.OID{types.OIDAnyElement, types.OIDAnyArray, types.OIDAnyNonArray, types.OIDAnyEnum},
		[]types.OID{types.OIDAnyElement, types.OIDAnyArray, types.OIDAnyNonArray, types.OIDAnyEnum, types.OIDAnyRange, types.OIDAnyMultirange},
		"anyelement, anyarray, anynonarray, anyenum, anyrange, or anymultirange"},
	{[]types.OID{types.OIDAnyRange, types.OIDAnyMultirange}, []types.OID{types.OIDAnyRange, types.OIDAnyMultirange}, "anyrange or anymultirange"},
	{[]types.OID{types.OIDAnyCompatible, types.OIDAnyCompatibleArray, types.OIDAnyCompatibleNonArray},
		[]types.OID{types.OIDAnyCompatible, types.OIDAnyCompatibleArray, types.OIDAnyCompatibleNonArray, types.OIDAnyCompatibleRange, types.OIDAnyCompatibleMultirange},
		"anycompatible, anycompatiblearray, anycompatiblenonarray, anycompatiblerange, or anycompatiblemultirange"},
	{[]types.OID{types.OIDAnyCompatibleRange, types.OIDAnyCompatibleMultirange}, []types.OID{types.OIDAnyCompatibleRange, types.OIDAnyCompatibleMultirange},
		"anycompatiblerange or anycompatiblemultirange"},
}

// checkPolymorphic refuses a polymorphic result that no input determines.
func checkPolymorphic(d *catalog.RoutineDescriptor) error {
	results := []types.Type{d.Ret}
	for i := range d.Params {
		if d.Params[i].Out() {
			results = append(results, d.Params[i].Type)
		}
	}
	in := d.InputTypes()
	for _, t := range results {
		for _, f := range polymorphicInputs {
			if slices.Contains(f.of, t.OID) && !slices.ContainsFunc(in, func(i types.Type) bool { return slices.Contains(f.inputs, i.OID) }) {
				return invalidFunction("cannot determine result data type").
					WithDetail("A result of type %s requires at least one input of type %s.", builtin.TypeName(t), f.need)
			}
		}
		if t.OID == types.OIDInternal && !slices.ContainsFunc(in, func(i types.Type) bool { return i.OID == types.OIDInternal }) {
			return invalidFunction("unsafe use of pseudo-type \"internal\"").
				WithDetail("A function returning \"internal\" must have at least one \"internal\" argument.")
		}
	}
	return nil
}
