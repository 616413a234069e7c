package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// InternalFunction returns the function of the system that a function in LANGUAGE internal stands for; nil if percodb has none of that name which takes
// as many arguments.
func InternalFunction(d *catalog.RoutineDescriptor) *builtin.Proc {
	for _, p := range builtin.Procs() {
		if p.Kind == 'f' && p.Value("prosrc") == d.Body && len(p.Args) == len(d.InputTypes()) {
			return p
		}
	}
	return nil
}

// internalStatement is the body of a function in LANGUAGE internal: the call of the function that it stands for. Arguments and the result have the
// same values under its types.
func internalStatement(d *catalog.RoutineDescriptor, p *builtin.Proc) ast.Statement {
	call := &ast.Call{Name: []string{catalog.SystemSchema, p.Name}}
	for i, t := range d.InputTypes() {
		arg := ast.Expr(&ast.Param{Number: i + 1})
		if want := (types.Type{OID: p.Args[i], Mod: -1}); t.OID != want.OID && !want.IsPolymorphic() {
			arg = castTo(arg, want)
		}
		call.Args = append(call.Args, arg)
	}
	result := ast.Expr(call)
	if ret := (types.Type{OID: p.Ret, Mod: -1}); d.Ret.OID != ret.OID && !ret.IsPolymorphic() && d.Ret.OID != types.OIDVoid {
		result = castTo(result, d.Ret)
	}
	return &ast.Query{Body: &ast.Select{Columns: []ast.SelectItem{{Name: p.Name, Expr: result}}}}
}

// castTo casts to a type by its name.
func castTo(x ast.Expr, t types.Type) ast.Expr {
	array := 0
	if elem := t.Elem(); elem.Valid() && t.IsArray() {
		t, array = elem, 1
	}
	name := []string{catalog.SystemSchema, t.Base().String()}
	if info := t.Info(); info != nil {
		name[1] = info.Name
	}
	if t.Def != nil {
		name = []string{t.Def.Schema, t.Def.Name}
	}
	return &ast.Cast{X: x, Type: ast.TypeName{Name: name, Array: array}}
}
