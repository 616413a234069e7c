package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/pgerror"
)

// lock adds FOR UPDATE and its kind over the tables of FROM, those of subqueries and views there included.
func (sb *selectBinder) lock(out *query) error {
	for i := range sb.q.Locking {
		l := &sb.q.Locking[i]
		lr := &lockRel{input: out.root, strength: l.Strength, wait: l.Wait}
		targets, err := sb.lockTargets(nil, l.Strength, len(l.Of) == 0)
		if err != nil {
			return err
		}
		for _, name := range l.Of {
			if name.Schema != "" {
				return pgerror.New(pgerror.SyntaxError, "FOR %s must specify unqualified relation names", l.Strength).At(int(name.Pos))
			}
			it := sb.lockItem(name.Name)
			switch {
			case it == nil:
				return pgerror.New(pgerror.UndefinedTable, "relation \"%s\" in FOR %s clause not found in FROM clause", name.Name, l.Strength).At(int(name.Pos))
			case it.unlockable != "":
				return pgerror.New(pgerror.FeatureNotSupported, "FOR %s cannot be applied to %s", l.Strength, it.unlockable).At(int(name.Pos))
			}
			if targets, err = sb.b.lockTargets(targets, it, l.Strength); err != nil {
				return err
			}
		}
		if lr.targets = targets; len(targets) > 0 {
			sb.b.locks = l.Strength
			out.root = lr
		}
	}
	return nil
}

// lockItem finds the item that FOR UPDATE OF names.
func (sb *selectBinder) lockItem(name string) *nsItem {
	for i := range sb.sc.items {
		if it := &sb.sc.items[i]; it.alias == name && it.rel {
			return it
		}
	}
	return nil
}

// lockTargets checks that the rows of the query's tables can be locked, and adds all of them to dst if all is set.
func (sb *selectBinder) lockTargets(dst []*scanRel, strength string, all bool) ([]*scanRel, error) {
	if what := sb.lockObstacle(); what != "" {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "FOR %s is not allowed with %s", strength, what)
	}
	var err error
	for i := 0; all && i < len(sb.sc.items) && err == nil; i++ {
		dst, err = sb.b.lockTargets(dst, &sb.sc.items[i], strength)
	}
	return dst, err
}

// lockTargets adds the tables that an item of FROM reads: the item itself, or those of its subquery or view. Rows are locked by those
// who may update them.
func (b *binder) lockTargets(dst []*scanRel, it *nsItem, strength string) ([]*scanRel, error) {
	switch {
	case it.scan != nil && it.scan.table.Materialized:
		return nil, pgerror.New(pgerror.WrongObjectType, "cannot lock rows in materialized view \"%s\"", it.scan.table.Name)
	case it.scan != nil:
		it.scan.need.Privileges |= acl.Update
		return append(dst, it.scan), b.restrict(it.scan, catalog.PolicyUpdate)
	case it.sequence:
		return nil, pgerror.New(pgerror.WrongObjectType, "cannot lock rows in sequence \"%s\"", it.alias)
	case it.query == nil:
		return dst, nil
	case it.query.combined && (it.view != nil || b.lockingView):
		return dst, nil // No table's rows are those of the view.
	case it.query.combined:
		return nil, pgerror.New(pgerror.FeatureNotSupported, "FOR %s is not allowed with UNION/INTERSECT/EXCEPT", strength)
	case it.query.sel == nil:
		return dst, nil // VALUES
	}
	if it.view != nil {
		it.view.Privileges |= acl.Update
		defer func(outer bool) { b.lockingView = outer }(b.lockingView)
		b.lockingView = true
	}
	return it.query.sel.lockTargets(dst, strength, true)
}

// lockObstacle names the clause because of which rows of the result do not correspond to rows of FROM.
func (sb *selectBinder) lockObstacle() string {
	switch {
	case sb.s.Distinct || len(sb.on) > 0:
		return "DISTINCT clause"
	case len(sb.groups) > 0 || sb.sets != nil:
		return "GROUP BY clause"
	case sb.having != nil:
		return "HAVING clause"
	case len(sb.sel.aggs) > 0:
		return "aggregate functions"
	case sb.sel.windowed():
		return "window functions"
	case len(sb.sel.sets) > 0:
		return "set-returning functions in the target list"
	}
	return ""
}

// nullable reports whether a table is on the side of an outer join that is extended with NULLs.
func nullable(r rel, s *scanRel) bool {
	found := false
	if j, ok := r.(*joinRel); ok {
		found = (j.kind == LeftJoin || j.kind == FullJoin) && reads(j.right, s) || j.kind == FullJoin && reads(j.left, s)
	}
	mapInputs(r, func(in rel) rel {
		found = found || nullable(in, s)
		return in
	})
	return found
}

// reads reports whether the tree below r has the scan s.
func reads(r rel, s *scanRel) bool {
	if r == rel(s) {
		return true
	}
	found := false
	mapInputs(r, func(in rel) rel {
		found = found || reads(in, s)
		return in
	})
	return found
}
