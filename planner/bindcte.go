package planner

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// cteScope is the WITH items in sight, innermost first.
type cteScope struct {
	defs  []*cte
	outer *cteScope
}

// cteState is the state of a WITH item during binding.
type cteState uint8

const (
	cteDone    cteState = iota // bound; references read its result
	cteStep                    // its recursive term is being bound: references read the working table
	cteNotSeen                 // not bound yet
)

// cte is a WITH item.
type cte struct {
	def   *ast.CTE
	sc    *scope // its body is bound below this
	state cteState
	// recurses: it refers to itself, and has the form that this requires.
	recurses bool

	q *query // nil: a data-modifying item without RETURNING
	// change is what a data-modifying item does; q has the columns of its RETURNING, and no tree.
	change *change
	fresh  bool // no reference has used q yet
	// inline: every reference binds the body again (it is correlated, or NOT MATERIALIZED).
	inline bool
	pinned bool // MATERIALIZED, or it calls a volatile function, or it recurses
	refs   int
	uses   []*cteRel
	index  int // in Plan.CTEs once it is materialised; -1 before

	work     int // id of the working table
	workCols []outCol
	added    int // of workCols: the last ones, those of SEARCH and CYCLE
}

func (s *cteScope) find(name string) *cte {
	for ; s != nil; s = s.outer {
		for _, d := range s.defs {
			if d.def.Name == name && d.state != cteNotSeen {
				return d
			}
		}
	}
	return nil
}

// bindWith puts the items of a WITH clause in sight of sc, binding each.
func (b *binder) bindWith(sc *scope, w *ast.With) error {
	b.withs = true
	own := &cteScope{outer: sc.ctes}
	for i := range w.CTEs {
		for j := range w.CTEs[:i] {
			if w.CTEs[j].Name == w.CTEs[i].Name {
				return pgerror.New(pgerror.DuplicateAlias, "WITH query name \"%s\" specified more than once", w.CTEs[i].Name).At(int(w.CTEs[i].Pos))
			}
		}
		own.defs = append(own.defs, &cte{def: &w.CTEs[i], sc: sc, state: cteNotSeen, index: -1})
	}
	if w.Recursive {
		order, recurses, err := recursiveOrder(w)
		if err != nil {
			return err
		}
		for i, def := range order {
			own.defs[i].def, own.defs[i].recurses = def, recurses[def]
		}
	}
	sc.ctes = own
	for _, d := range own.defs {
		if err := b.bindCTE(d, w == b.top); err != nil {
			return err
		}
	}
	return nil
}

// bindCTE binds an item's body for the first time; top: the clause is that of the statement itself.
func (b *binder) bindCTE(d *cte, top bool) error {
	body, ok := d.def.Statement.(*ast.Query)
	if !ok {
		return b.bindModifying(d, top)
	}
	volatile := b.volatile
	b.volatile = false
	q, recursed, err := b.cteBody(d, body)
	if err != nil {
		return err
	}
	d.pinned = b.volatile || recursed || (d.def.Materialized != nil && *d.def.Materialized)
	b.volatile = b.volatile || volatile
	d.q, d.fresh, d.state = q, true, cteDone
	d.inline = !freeColumns(q.root).empty() ||
		(d.def.Materialized != nil && !*d.def.Materialized && !recursed)
	return nil
}

// cteBody binds the body and reports whether it recurses.
func (b *binder) cteBody(d *cte, body *ast.Query) (q *query, recursed bool, err error) {
	if !d.recurses {
		if at := d.def.Search; at != nil || d.def.Cycle != nil {
			return nil, false, pgerror.New(pgerror.SyntaxError, "WITH query is not recursive").At(int(d.def.Pos))
		}
		q, err = b.bindQuery(body, d.sc, true)
		return q, false, b.nameColumns(q, d, err)
	}
	sc := d.sc
	if body.With != nil {
		sc = newScope(b, d.sc)
		if err := b.bindWith(sc, body.With); err != nil {
			return nil, false, err
		}
	}
	u := body.Body.(*ast.SetOp) // checkRecursion has seen to it.
	init, err := b.bindBody(u.L, nil, sc)
	if err != nil {
		return nil, false, err
	}
	b.resolveUnknowns(init)
	if err := b.nameColumns(init, d, nil); err != nil {
		return nil, false, err
	}
	ext, err := b.extension(d.def, u, init)
	if err != nil {
		return nil, false, err
	}
	if init, err = ext.first(init); err != nil {
		return nil, false, err
	}
	b.works++
	d.state, d.work, d.workCols, d.added, d.refs = cteStep, b.works, init.cols, ext.count(), 0
	right, err := ext.carry(u.R)
	if err != nil {
		return nil, false, err
	}
	step, err := b.bindBody(right, nil, sc)
	if err != nil {
		return nil, false, err
	}
	d.refs = 0
	if err := sameWidth(init, step, "UNION"); err != nil {
		return nil, false, err
	}
	if step, err = ext.next(step); err != nil {
		return nil, false, err
	}
	if q, err = b.recursiveUnion(d, u, init, step); err == nil {
		ext.trim(q)
	}
	return q, true, err
}

// worksOf returns the ids of the working tables that a tree reads, those of its WITH items included, but for those of recursions within it.
func worksOf(r rel) map[int]bool {
	reads, own := map[int]bool{}, map[int]bool{}
	var walk func(r rel)
	walk = func(r rel) {
		switch r := r.(type) {
		case *workRel:
			reads[r.id] = true
		case *recursiveRel:
			own[r.id] = true
		case *cteRel:
			if r.cte.q != nil && r.cte.q.root != nil {
				walk(r.cte.q.root)
			}
		}
		mapExprs(r, func(e expr.Scalar) expr.Scalar {
			expr.Walk(e, func(x expr.Scalar) bool {
				if sub := expr.SubqueryOf(x); sub != nil {
					if sr, ok := sub.Plan.(*subRel); ok {
						walk(sr.root)
					}
				}
				return true
			})
			return e
		})
		mapInputs(r, func(in rel) rel { walk(in); return in })
	}
	walk(r)
	for id := range own {
		delete(reads, id)
	}
	return reads
}

// recursiveUnion joins the two terms of a recursive item.
func (b *binder) recursiveUnion(d *cte, u *ast.SetOp, init, step *query) (*query, error) {
	r := &recursiveRel{id: d.work, all: u.All}
	out := &query{root: r}
	for i := range init.cols {
		it, st := b.cols[init.cols[i].id].Type, b.cols[step.cols[i].id].Type
		t, err := b.commonType([]types.Type{it, st}, []int{init.cols[i].pos, step.cols[i].pos}, "UNION")
		if err != nil {
			return nil, err
		}
		if !t.Same(it) {
			return nil, pgerror.New(pgerror.DatatypeMismatch,
				"recursive query \"%s\" column %d has type %s in non-recursive term but type %s overall", d.def.Name, i+1, it, t).
				WithHint("Cast the output of the non-recursive term to the correct type.").At(init.cols[i].pos)
		}
		if err := b.recursiveCollation(d.def.Name, i, init, step); err != nil {
			return nil, err
		}
		if err := b.retype(step, i, it, castImplicit); err != nil {
			return nil, err
		}
		id := b.newColumn(init.cols[i].name, it)
		r.cols = append(r.cols, id)
		out.cols = append(out.cols, outCol{id: id, name: init.cols[i].name, pos: init.cols[i].pos})
	}
	r.init, r.step, r.initCols, r.stepCols = init.root, step.root, init.ids(), step.ids()
	return out, nil
}

// nameColumns applies the item's column list.
func (b *binder) nameColumns(q *query, d *cte, err error) error {
	if err != nil {
		return err
	}
	if len(d.def.Columns) > len(q.cols) {
		return pgerror.New(pgerror.InvalidColumnReference,
			"WITH query \"%s\" has %d columns available but %d columns specified", d.def.Name, len(q.cols), len(d.def.Columns)).At(int(d.def.Pos))
	}
	for i, name := range d.def.Columns {
		q.cols[i].name = name
	}
	return nil
}

// cteRef binds a reference to a WITH item.
func (b *binder) cteRef(sc *scope, d *cte, t *ast.TableRef, alias string) (rel, error) {
	item := nsItem{alias: alias, rel: true, open: true, unlockable: "a WITH query"}
	var root rel
	switch d.state {
	case cteStep:
		w := &workRel{id: d.work}
		w.cols = b.standIns(&item, d.workCols, alias)
		item.work = true
		plain := len(item.cols) - d.added
		item.cols, item.system = item.cols[:plain:plain], item.cols[plain:]
		root = w
	default:
		q, err := b.cteQuery(d)
		if err != nil {
			return nil, err
		}
		if q == nil {
			return nil, pgerror.New(pgerror.FeatureNotSupported, "WITH query \"%s\" does not have a RETURNING clause", d.def.Name).At(int(t.Pos))
		}
		if d.inline {
			for _, c := range q.cols {
				item.cols = append(item.cols, nsCol{name: c.name, id: c.id})
			}
			root = q.root
			break
		}
		c := &cteRel{cte: d}
		c.cols = b.standIns(&item, q.cols, alias)
		d.refs++
		d.uses = append(d.uses, c)
		root = c
	}
	if err := b.renameDerived(&item, t.Columns, alias); err != nil {
		return nil, err
	}
	b.notes.item(t, &item)
	return root, sc.addItem(item)
}

// cteQuery returns the item's query; an inlined one is bound again for every reference but the first.
func (b *binder) cteQuery(d *cte) (*query, error) {
	if !d.inline || d.fresh {
		d.fresh = false
		return d.q, nil
	}
	d.state = cteNotSeen
	q, _, err := b.cteBody(d, d.def.Statement.(*ast.Query))
	d.state = cteDone
	return q, err
}

// standIns makes fresh columns for the result of a WITH item.
func (b *binder) standIns(item *nsItem, cols []outCol, alias string) []int {
	ids := make([]int, len(cols))
	for i, c := range cols {
		ids[i] = b.newColumn(c.name, b.cols[c.id].Type)
		b.cols[ids[i]].Table, b.cols[ids[i]].fields = alias, b.cols[c.id].fields
		item.cols = append(item.cols, nsCol{name: c.name, id: ids[i]})
	}
	return ids
}

// inlineCTEs replaces the only reference of an item that need not be materialised by its query.
func (b *binder) inlineCTEs(r rel) rel {
	if c, ok := r.(*cteRel); ok && c.cte.refs == 1 && !c.cte.pinned {
		p := &projectRel{input: b.inlineCTEs(c.cte.q.root)}
		for i, id := range c.cols {
			p.items = append(p.items, projection{id: id, e: b.column(c.cte.q.cols[i].id, 0)})
		}
		return p
	}
	mapInputs(r, b.inlineCTEs)
	mapExprs(r, func(e expr.Scalar) expr.Scalar {
		expr.Walk(e, func(x expr.Scalar) bool {
			if sub := expr.SubqueryOf(x); sub != nil {
				sr := sub.Plan.(*subRel)
				sr.root = b.inlineCTEs(sr.root)
			}
			return true
		})
		return e
	})
	return r
}
