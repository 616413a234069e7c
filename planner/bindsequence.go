package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// sequenceTable binds a sequence in FROM: a table of one row, its state.
func (b *binder) sequenceTable(sc *scope, table *catalog.TableDescriptor, t *ast.TableRef, alias string) (rel, error) {
	b.use(table)
	need := b.need(table, acl.Select)
	oid := &expr.Const{Value: types.Int(int64(table.ID)), Typ: types.TRegclass}
	r := b.setFuncItem(table.Name, builtin.SequenceTable, []expr.Scalar{oid}, false)
	b.volatile = true
	item := nsItem{alias: alias, rel: true, open: true, sequence: true, unlockable: "a sequence"}
	if t.Alias == "" {
		item.schema = table.Schema
	}
	for i, id := range r.cols {
		b.cols[id].Table = alias
		item.cols = append(item.cols, nsCol{name: b.cols[id].Name, id: id, need: need, ordinal: i})
	}
	if err := b.rename(&item, t.Columns, alias, int(t.Pos)); err != nil {
		return nil, err
	}
	return r, sc.addItem(item)
}
