package session

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/plpgsql"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// maxCodes bounds the functions whose code a session keeps.
const maxCodes = 256

// codeKey identifies a function with the types for which polymorphic parameters stand, and the table of a trigger.
type codeKey struct {
	oid   types.OID
	types string
}

// keptCode is the code of a function.
type keptCode struct {
	code    *plpgsql.Code
	version uint64 // of the function
	schema  uint64 // the version of the schema under which it was parsed
	defined bool   // it has variables of types that a schema change may change
}

// function executes a function in PL/pgSQL. atomic: it must not end the transaction. yield takes the rows of a set.
func (h *procedural) function(ctx context.Context, d *catalog.RoutineDescriptor, call *builtin.RoutineCall, args types.Row, atomic bool, yield func(types.Row) error) (types.Datum, error) {
	code, err := h.code(ctx, d, signature(h.tx.resolver, d, call))
	if err != nil {
		return types.Null, err
	}
	defer h.enter()()
	c := &plpgsql.Call{Args: args, Yield: yield, Atomic: atomic}
	if call.Ret.OID == types.OIDRecord {
		for _, column := range call.Columns {
			c.Columns = append(c.Columns, column.Type)
		}
	}
	return code.Execute(ctx, h, c)
}

// enter sets where the messages of a function go that is called from a statement of the client, and returns what undoes that.
func (h *procedural) enter() func() {
	if !h.stack.Empty() {
		return func() {}
	}
	outer := h.w
	h.w = h.warnings.to
	return func() { h.w = outer }
}

// code returns the code of a function for a signature.
func (h *procedural) code(ctx context.Context, d *catalog.RoutineDescriptor, sig *plpgsql.Signature) (*plpgsql.Code, error) {
	r, err := h.Schema(ctx)
	if err != nil {
		return nil, err
	}
	key := codeKey{d.OID(), sig.Key()}
	if have := h.codes[key]; have != nil && have.version == d.Version && (have.schema == r.Version() || !have.defined) {
		return have.code, nil
	}
	f, err := plpgsql.Parse(ctx, sig, d.Body, r, h.plans.meter, h.Options(), nil)
	if err != nil {
		return nil, plpgsql.InCompilation(err, sig)
	}
	if h.codes == nil || len(h.codes) >= maxCodes {
		h.codes = map[codeKey]*keptCode{}
	}
	code := plpgsql.NewCode(f)
	if !h.tx.changed { // Another transaction's function may have the same number and version.
		h.codes[key] = &keptCode{code: code, version: d.Version, schema: r.Version(), defined: f.UsesDefinedTypes()}
	}
	return code, nil
}

// signature describes a function to the language; call has the types of polymorphic parameters, nil: the function is only checked.
func signature(r catalog.Resolver, d *catalog.RoutineDescriptor, call *builtin.RoutineCall) *plpgsql.Signature {
	s := &plpgsql.Signature{
		Name: d.Name, Returns: d.Ret, Set: d.Set, Proc: d.Kind == builtin.ProcedureRoutine, ReadOnly: d.Volatility != builtin.Volatile,
		Trigger: d.Ret.OID == types.OIDTrigger,
	}
	var names []string
	in, out := 0, 0
	for i := range d.Params {
		p := &d.Params[i]
		t := p.Type
		switch {
		case call == nil:
			t = sampleType(t)
		case p.In():
			t = call.Args[in]
		case call.Columns != nil:
			t = call.Columns[out].Type
		default:
			t = call.Ret
		}
		if p.In() {
			names = append(names, builtin.TypeName(p.Type))
			in++
		}
		if p.Out() {
			out++
		}
		s.Params = append(s.Params, plpgsql.Param{Name: p.Name, Mode: plpgsql.Mode(p.Mode), Type: t})
	}
	if call == nil {
		s.Returns = sampleType(d.Ret)
	} else if d.Ret.OID != types.OIDRecord && d.Ret.OID != types.OIDVoid {
		s.Returns = call.Ret
	}
	name := d.Name
	if r != nil && !slices.Contains(catalog.Path(r), d.Schema) {
		name = d.Schema + "." + name
	}
	s.Context = name + "(" + strings.Join(names, ",") + ")"
	return s
}

// sampleType is the type for which a function with a polymorphic type is checked, as in PostgreSQL.
func sampleType(t types.Type) types.Type {
	switch t.OID {
	case types.OIDAnyArray, types.OIDAnyCompatibleArray:
		return types.TInt4.ArrayOf()
	case types.OIDAnyRange, types.OIDAnyCompatibleRange:
		return types.Type{OID: types.OIDInt4Range, Mod: -1}
	case types.OIDAnyMultirange, types.OIDAnyCompatibleMultirange:
		return types.Type{OID: types.OIDInt4Multirange, Mod: -1}
	}
	if t.IsPolymorphic() {
		return types.TInt4
	}
	return t
}

// check is ddl.Deps.CheckProcedural: it refuses functions whose text is wrong.
func (h *procedural) check(ctx context.Context, d *catalog.RoutineDescriptor, r catalog.Resolver) ([]*pgerror.Error, error) {
	v := &plpgsql.Validation{}
	_, err := plpgsql.Parse(ctx, signature(r, d, nil), d.Body, r, h.plans.meter, h.Options(), v)
	return v.Warnings, err
}
