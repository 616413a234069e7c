package planner

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// CursorKey is a column of the primary key of the row that a cursor is on.
type CursorKey struct {
	Cursor string // its name, unless Param has it
	Param  int    // the number of the parameter that has the name; 0: none
	Table  *catalog.TableDescriptor
	Column int // its place in the key
}

// Position says where the rows of a cursor's query have the primary key of a table that they come from: its place among Plan.Keys.
type Position struct {
	Table     uint64
	At, Width int
}

// value returns the column's value; NULL: the cursor's row comes from no row of the table.
func (k *CursorKey) value(params types.Row, env *builtin.Env) (types.Datum, error) {
	cursor := k.Cursor
	if k.Param > 0 && k.Param <= len(params) && !params[k.Param-1].IsNull() {
		cursor = params[k.Param-1].Text()
	}
	if env.Cursors == nil {
		return types.Null, pgerror.New(pgerror.InvalidCursorName, "cursor \"%s\" does not exist", cursor)
	}
	key, err := env.Cursors.CurrentKey(cursor, k.Table.ID, k.Table.Name)
	if err != nil || key == nil {
		return types.Null, err
	}
	if k.Column >= len(key) {
		return types.Null, pgerror.New(pgerror.InternalError, "the key of cursor \"%s\" has %d columns", cursor, len(key))
	}
	return key[k.Column], nil
}

// currentRow binds WHERE CURRENT OF as the comparison of the target's primary key with that of the cursor's row.
func (b *binder) currentRow(e *ast.CurrentOf, scan *scanRel) ([]expr.Scalar, error) {
	var conds []expr.Scalar
	param := 0
	if b.opts.Variables != nil {
		v, err := b.opts.Variables.Variable([]string{e.Cursor}, false, false)
		if err != nil {
			return nil, err
		}
		if v != nil && v.Fields == nil && v.Type.OID == types.OIDRefcursor {
			param = b.variableInput(v, int(e.Pos)).Param
		}
	}
	for i, id := range b.positionColumns(scan) {
		b.currentOf = append(b.currentOf, CursorKey{Cursor: e.Cursor, Param: param, Table: scan.table, Column: i})
		in := &expr.Input{Index: -1, Cursor: len(b.currentOf), Typ: b.cols[id].Type}
		cond, err := b.operator("=", b.column(id, 0), in, int(e.Pos))
		if err != nil {
			return nil, err
		}
		conds = append(conds, cond)
	}
	return conds, nil
}

// positionColumns lists the columns that name a row of a scan: those of the primary key and, of a partitioned table, the partition.
func (b *binder) positionColumns(scan *scanRel) []int {
	var ids []int
	for _, ord := range keyOrdinals(scan.table) {
		ids = append(ids, scan.cols[ord])
	}
	if scan.table.IsPartitioned() {
		ids = append(ids, scan.originColumn(b))
	}
	return ids
}

// keyOrdinals returns the places of the columns of the primary key, a hidden one included.
func keyOrdinals(t *catalog.TableDescriptor) []int {
	var out []int
	for i := range t.Primary.Columns {
		out = append(out, t.Ordinal(t.Primary.Columns[i].ColumnID))
	}
	return out
}

// cursorPositions has a cursor's query yield the keys of its rows behind its columns: of the tables that it locks, or of the one table
// that it reads.
func (b *binder) cursorPositions(q *query) []Position {
	if q.sel == nil || q.combined || q.sel.lockObstacle() != "" {
		return nil
	}
	scans, _ := positioned(q.root)
	visible := len(q.cols)
	var out []Position
	for _, s := range scans {
		columns := b.positionColumns(s)
		available := outputSet(q.root)
		p := Position{Table: s.table.ID, At: len(q.cols) - visible, Width: len(columns)}
		for _, id := range columns {
			if !available.has(id) {
				return nil
			}
			q.cols = append(q.cols, outCol{id: id, name: b.cols[id].Name})
		}
		out = append(out, p)
	}
	return out
}

// positioned returns the tables whose rows the rows of a query stand for: those that are locked, else the only one that is read.
func positioned(r rel) (scans []*scanRel, locked bool) {
	switch r := r.(type) {
	case *lockRel:
		scans, locked = positioned(r.input)
		if !locked {
			scans = nil
		}
		return append(scans, r.targets...), true
	case *scanRel:
		if r.table.Kind == catalog.KindTable {
			return []*scanRel{r}, false
		}
	case *filterRel:
		return positioned(r.input)
	case *projectRel:
		return positioned(r.input)
	case *barrierRel:
		return positioned(r.input)
	case *sortRel:
		return positioned(r.input)
	case *limitRel:
		return positioned(r.input)
	}
	return nil, false
}

// simpleScan reports whether a plan reads one table, in the order in which it yields its rows.
func simpleScan(n Node) bool {
	switch n.(type) {
	case *Sort, *TopN:
		return false
	}
	children := n.Children()
	if _, parts := n.(*Append); parts {
		return !slices.ContainsFunc(children, func(in Node) bool { return !simpleScan(in) })
	}
	return len(children) == 0 || len(children) == 1 && simpleScan(children[0])
}
