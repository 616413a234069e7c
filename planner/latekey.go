package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// LateKey is a constraint of a table that is checked when rows have been written: a deferrable unique one, or EXCLUDE.
type LateKey struct {
	Table *catalog.TableDescriptor
	Index *catalog.IndexDescriptor
	At    int // place in Table.Indexes
	// Elements are the ordinals of what the constraint is over, in its order; those of computed columns follow those of the table's columns.
	Elements []int
	// Conflict are conditions over the elements of a row followed by those of another: the rows conflict if all are true. nil: they conflict if
	// they have equal keys.
	Conflict []expr.Scalar
	Indexed  *IndexExprs // of the table
	reads    []int       // ordinals of the columns on which the constraint depends
}

// Same reports whether two rows are the same to the constraint. equal compares the values of a column.
func (k *LateKey) Same(a, b types.Row, equal func(ordinal int, a, b types.Datum) (bool, error)) (bool, error) {
	for _, ord := range k.reads {
		if same, err := equal(ord, a[ord], b[ord]); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// BindLateKey binds the constraint of an index of t that is CheckedLate.
func BindLateKey(ctx context.Context, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, r catalog.Resolver, env *builtin.Env) (*LateKey, error) {
	p := &physical{b: &binder{ctx: ctx, r: r, env: env, noSlots: true}}
	at := slices.IndexFunc(t.Indexes, func(other catalog.IndexDescriptor) bool { return other.ID == ix.ID })
	k := p.lateKey(t, at, p.indexExprs(t, p.b.newScan(t, t.Name, nil)))
	return k, p.err
}

// lateKeys binds the constraints of t that are checked late.
func (p *physical) lateKeys(t *catalog.TableDescriptor) []*LateKey {
	if !t.HasLateKeys() {
		return nil
	}
	var all []*LateKey
	exprs := p.indexExprs(t, p.b.newScan(t, t.Name, nil))
	for i := range t.Indexes {
		if t.Indexes[i].CheckedLate() && p.err == nil {
			all = append(all, p.lateKey(t, i, exprs))
		}
	}
	return all
}

func (p *physical) lateKey(t *catalog.TableDescriptor, at int, exprs *IndexExprs) *LateKey {
	ix := &t.Indexes[at]
	k := &LateKey{Table: t, Index: ix, At: at, Indexed: exprs}
	if exprs != nil {
		k.reads = append(k.reads, exprs.Reads[at]...)
	}
	for _, id := range ix.ElementIDs() {
		ord := t.Ordinal(id)
		k.Elements = append(k.Elements, ord)
		if ord < len(t.Columns) && !slices.Contains(k.reads, ord) {
			k.reads = append(k.reads, ord)
		}
	}
	if ix.Exclude != nil && p.err == nil {
		p.bindConflict(k)
	}
	return k
}

// bindConflict binds the operators of EXCLUDE.
func (p *physical) bindConflict(k *LateKey) {
	saved := p.b.r
	p.b.r = catalog.ForStored(saved)
	defer func() { p.b.r = saved }()
	var cols []int
	for range 2 {
		for i, ord := range k.Elements {
			typ := k.Table.ColumnAt(ord).Type
			if c := k.Index.Exclude[i].Coll; c != nil {
				typ.Coll = c
			}
			cols = append(cols, len(p.b.cols))
			p.b.cols = append(p.b.cols, columnInfo{Column: Column{Name: k.Table.ColumnAt(ord).Name, Type: typ}})
		}
	}
	for i, e := range k.Index.Exclude {
		x, err := p.b.operator(e.Operator, p.b.column(cols[i], 0), p.b.column(cols[len(k.Elements)+i], 0), 0)
		if err != nil {
			p.fail(err)
			return
		}
		k.Conflict = append(k.Conflict, p.compile(x, cols))
	}
}
