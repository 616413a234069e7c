package planner

import (
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// InputRow is a row that a statement may name although it is in no FROM clause: each column is a parameter of the statement.
type InputRow struct {
	Name    string
	Columns []Column
	Param   int // number of the first column's parameter; the others' follow
	// Table is the OID that the row's tableoid has, 0: it has none.
	Table uint32
	// Open: the columns may also be named without the row, and by the numbers of their parameters.
	Open bool
}

// The names of an observer's rows.
const (
	NewRow = "new"
	OldRow = "old"
	KeyRow = "key"
)

// ObserverRows returns the rows that the condition and the statements of an observer of t may name: NEW, the table's row, and
// KEY, its primary key.
func ObserverRows(t *catalog.TableDescriptor) []InputRow {
	row := InputRow{Name: NewRow, Param: 1}
	for i := range t.Columns {
		row.Columns = append(row.Columns, Column{Name: t.Columns[i].Name, Type: t.Columns[i].Type})
	}
	key := InputRow{Name: KeyRow, Param: 1 + len(row.Columns)}
	for i := range t.Primary.Columns {
		key.Columns = append(key.Columns, row.Columns[t.Ordinal(t.Primary.Columns[i].ColumnID)])
	}
	return []InputRow{row, key}
}

// RowTypes are the types of the parameters of rows that follow each other.
func RowTypes(rows []InputRow) []types.Type {
	var all []types.Type
	for i := range rows {
		for j := range rows[i].Columns {
			all = append(all, rows[i].Columns[j].Type)
		}
	}
	return all
}

// rowScope puts Options.Rows in sight, outside of all else; nil if there are none.
func (b *binder) rowScope() *scope {
	if len(b.opts.Rows) == 0 {
		return nil
	}
	b.params = append(b.params, RowTypes(b.opts.Rows)...)
	for range b.params {
		b.paramPos = append(b.paramPos, 1)
	}
	var need *Need
	if b.opts.RowsOf != nil {
		need = b.need(b.opts.RowsOf, acl.None)
		need.Named = false
	}
	sc := newScope(b, nil)
	sc.given = true
	for i := range b.opts.Rows {
		row := &b.opts.Rows[i]
		it := nsItem{alias: row.Name, rel: true, given: true, open: row.Open}
		for j, c := range row.Columns {
			col := nsCol{name: c.Name, e: &expr.Input{Index: -1, Param: row.Param + j, Typ: c.Type}, need: need}
			if need != nil {
				col.ordinal = need.Relation.ColumnNamed(c.Name)
			}
			it.cols = append(it.cols, col)
		}
		sc.items = append(sc.items, it)
	}
	return sc
}

// BindRows binds an expression over rows, which lie behind each other in the row that it is evaluated over. The value is
// coerced to want as for an assignment; the zero Type leaves it as it is. clause is named in errors.
func BindRows(ctx context.Context, e ast.Expr, rows []InputRow, r catalog.Resolver, env *builtin.Env, want types.Type, clause string) (expr.Scalar, error) {
	b := &binder{ctx: ctx, r: r, env: env, noSlots: true}
	sc := newScope(b, nil)
	var cols []int
	for i := range rows {
		it := nsItem{alias: rows[i].Name, rel: true}
		if rows[i].Table != 0 {
			it.system = []nsCol{{name: "tableoid", e: &expr.Const{Value: types.Int(int64(rows[i].Table)), Typ: types.TOid}}}
		}
		for _, c := range rows[i].Columns {
			id := b.newColumn(c.Name, c.Type)
			it.cols = append(it.cols, nsCol{name: c.Name, id: id})
			cols = append(cols, id)
		}
		sc.items = append(sc.items, it)
	}
	return b.standalone(sc, e, cols, want, clause)
}

// standalone binds an expression that is no part of a statement, over a row of the given columns.
func (b *binder) standalone(sc *scope, e ast.Expr, cols []int, want types.Type, clause string) (expr.Scalar, error) {
	sc.in(clause, false, false)
	sc.noSubqueries = pgerror.New(pgerror.FeatureNotSupported, "cannot use subquery in %s", strings.TrimSuffix(clause, "s")).At(startOf(e))
	x, err := sc.valueFor(e, want, castAssignment, startOf(e))
	if err != nil {
		return nil, err
	}
	if want.Valid() {
		from := x.Type()
		x, err = b.coerce(x, want, castAssignment, startOf(e))
		if pe, ok := err.(*pgerror.Error); ok && pe.Code == pgerror.CannotCoerce {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "expression is of type %s but type %s is wanted", from.Base(), want.Base()).At(startOf(e))
		}
		if err != nil {
			return nil, err
		}
	}
	x = b.textIfUnknown(x)
	p := &physical{b: b}
	out := p.compile(x, cols)
	return out, p.err
}
