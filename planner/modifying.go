package planner

import (
	"slices"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// Data-modifying items of WITH. All parts of such a statement read the snapshot before it; its writes are applied at its end. Each item
// runs once and to its end, whether its rows are read or not, and a row that one part has changed is left alone by the others.

// bindChange binds an INSERT, UPDATE, DELETE or MERGE below outer.
func (b *binder) bindChange(stmt ast.Statement, outer *scope) (*change, error) {
	switch s := stmt.(type) {
	case *ast.Insert:
		return b.bindInsert(s, outer)
	case *ast.Update:
		return b.bindUpdate(s, outer)
	case *ast.Delete:
		return b.bindDelete(s, outer)
	case *ast.Merge:
		return b.bindMerge(s, outer)
	}
	return nil, pgerror.New(pgerror.InternalError, "%T is not planned", stmt)
}

// bindModifying binds a data-modifying item, which may be in the WITH clause of the statement itself only.
func (b *binder) bindModifying(d *cte, top bool) error {
	if _, merge := d.def.Statement.(*ast.Merge); merge {
		return pgerror.New(pgerror.FeatureNotSupported, "MERGE not supported in WITH query").At(int(d.def.Pos))
	}
	if !top {
		return pgerror.New(pgerror.FeatureNotSupported, "WITH clause containing a data-modifying statement must be at the top level").
			At(int(d.def.Pos))
	}
	c, err := b.bindChange(d.def.Statement, d.sc)
	if err != nil {
		return err
	}
	d.change, d.state, d.pinned = c, cteDone, true
	b.modifying = append(b.modifying, d)
	if c.returning == nil {
		return nil
	}
	q := &query{}
	for i := range c.returning {
		t := &c.returning[i]
		q.cols = append(q.cols, outCol{id: b.newColumn(t.name, t.e.Type()), name: t.name, pos: t.pos})
	}
	d.q = q
	return b.nameColumns(q, d, nil)
}

// planModifying plans the data-modifying items that nothing has read, and lists all of them.
func (p *physical) planModifying(plan *Plan) error {
	for _, d := range p.b.modifying {
		p.materialise(d)
		if p.err != nil {
			return p.err
		}
		plan.Modifying = append(plan.Modifying, d.index)
		plan.Writes = append(plan.Writes, d.change.table)
	}
	if len(plan.Modifying) > 0 {
		slices.Reverse(plan.Modifying)
		plan.ReadOnly = false
	}
	return nil
}

// deferWrites has all changes of a statement with data-modifying items wait with their writes for its end.
func (p *Plan) deferWrites() {
	for _, root := range append([]Node{p.Root}, p.CTEs...) {
		switch n := root.(type) {
		case *Insert:
			n.Direct, n.Gather = false, false
		case *Update:
			n.Direct, n.Feed = false, Feed{}
		case *Delete:
			n.Direct, n.Feed = false, Feed{}
		} // MERGE always waits.
	}
}
