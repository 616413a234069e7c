package planner

// materialise plans a WITH item once.
func (p *physical) materialise(d *cte) *physicalCTE {
	if d.index >= 0 {
		return p.ctes[d.index]
	}
	saved := p.outer
	p.outer = nil
	c := &physicalCTE{def: d}
	if d.change != nil {
		c.node = p.change(d.change)
	} else {
		if p.b.works > 0 {
			c.works = worksOf(d.q.root)
		}
		c.node = p.exact(p.rewrite(d.q.root), d.q.ids(), 0).node
	}
	p.outer = saved
	d.index = len(p.ctes)
	p.ctes = append(p.ctes, c)
	return c
}

func (p *physical) recursive(r *recursiveRel) pnode {
	init := p.exact(r.init, r.initCols, 0)
	step := p.exact(r.step, r.stepCols, 0)
	rows := (init.est.Rows + step.est.Rows) * recursiveGrowth
	est := Estimate{Rows: rows, Cost: init.est.Cost + step.est.Cost*recursiveGrowth}
	n := &RecursiveUnion{Base: p.base(r.cols, est), ID: r.id, Init: init.node, Step: step.node, All: r.all}
	for i, c := range p.ctes {
		if c.works[r.id] {
			n.Anew = append(n.Anew, i)
		}
	}
	return pnode{cols: r.cols, est: est, node: n}
}
