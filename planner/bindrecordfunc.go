package planner

import (
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// recordFunc binds a function in FROM whose columns the call defines.
func (b *binder) recordFunc(sc *scope, f builtin.FuncName, t *ast.TableFunc) (rel, []int, error) {
	if len(t.ColumnDefs) == 0 {
		return nil, nil, pgerror.New(pgerror.SyntaxError,
			"a column definition list is required for functions returning \"record\"").At(int(t.Call.Pos))
	}
	var columns []builtin.SetColumn
	for i := range t.ColumnDefs {
		typ, err := b.typeOf(t.ColumnDefs[i].Type)
		if err != nil {
			return nil, nil, err
		}
		columns = append(columns, builtin.SetColumn{Name: t.ColumnDefs[i].Name, Type: typ})
	}
	call, err := sc.inPlace(f, t.Call)
	if err != nil {
		return nil, nil, err
	}
	args, ts, err := sc.args(call.Args)
	if err != nil {
		return nil, nil, err
	}
	fn, err := builtin.ResolveRecordFunc(f.Name, ts, columns)
	if err != nil {
		return nil, nil, at(err, int(t.Call.Pos))
	}
	last := len(args) - 1
	if args[last], err = b.coerce(args[last], fn.Args[last], castImplicit, startOf(call.Args[last])); err != nil {
		return nil, nil, err
	}
	b.notes.call(t.Call, args)
	set := &setFuncRel{fn: fn, args: args, ordinality: t.Ordinality, name: f.Name}
	for _, c := range columns {
		set.cols = append(set.cols, b.newColumn(c.Name, c.Type))
	}
	if t.Ordinality {
		set.cols = append(set.cols, b.newColumn("ordinality", types.TInt8))
	}
	return set, set.cols, nil
}
