package planner

import (
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// recordFunc binds a function in FROM whose columns the call defines.
func (b *binder) recordFunc(sc *scope, name string, t *ast.TableFunc) (rel, []int, error) {
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
	args, ts, err := sc.args(t.Call.Args)
	if err != nil {
		return nil, nil, err
	}
	fn, err := builtin.ResolveRecordFunc(name, ts, columns)
	if err != nil {
		return nil, nil, at(err, int(t.Call.Pos))
	}
	last := len(args) - 1
	if args[last], err = b.coerce(args[last], fn.Args[last], castImplicit, startOf(t.Call.Args[last])); err != nil {
		return nil, nil, err
	}
	f := &setFuncRel{fn: fn, args: args, ordinality: t.Ordinality, name: name}
	for _, c := range columns {
		f.cols = append(f.cols, b.newColumn(c.Name, c.Type))
	}
	if t.Ordinality {
		f.cols = append(f.cols, b.newColumn("ordinality", types.TInt8))
	}
	return f, f.cols, nil
}
