package fuzzsql

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Limits of shrinking one difference.
const (
	minimiseTries = 1500
	minimiseTime  = 15 * time.Second
)

// report shrinks a difference and files it, unless one like it is filed.
func (f *fuzzer) report(ctx context.Context, u *unit, d *Difference) error {
	if n := f.shapes[rough(d)]; n > 0 {
		f.shapes[rough(d)]++
		if n > 3 {
			return nil // This kind of difference has been shrunk often enough.
		}
	}
	f.shapes[rough(d)]++
	small, world := f.minimise(ctx, u, d)
	if f.shapes[shape(small)] == 0 {
		small.Script = f.script(world.world, world.past, world.unit)
		f.found = append(f.found, small)
		if f.opts.Progress != nil {
			fmt.Fprintf(f.opts.Progress, "\n%s\n", small)
		}
	}
	f.shapes[shape(small)]++
	return f.restore(ctx)
}

var (
	literals = regexp.MustCompile(`'(?:[^']|'')*'|\b\d+(\.\d+)?\b`)
	names    = regexp.MustCompile(`\b[a-z]\d+\b`)
)

// rough is a difference's class before it is shrunk, shape afterwards.
func rough(d *Difference) string {
	return d.kind() + ": " + literals.ReplaceAllString(d.Text, "?")
}

func shape(d *Difference) string {
	return d.kind() + ": " + names.ReplaceAllString(literals.ReplaceAllString(d.stmt, "?"), "x")
}

// scenario is what shows a difference.
type scenario struct {
	world *world
	past  []*unit
	unit  *unit
}

func (w *world) clone() *world {
	c := &world{style: w.style}
	for _, v := range w.views {
		c.views = append(c.views, &view{v.relation, v.create.clone()})
	}
	for _, t := range w.tables {
		k := *t
		k.create = t.create.clone()
		if t.insert != nil {
			k.insert = t.insert.clone()
		}
		k.indexes = nil
		for _, i := range t.indexes {
			k.indexes = append(k.indexes, i.clone())
		}
		c.tables = append(c.tables, &k)
	}
	return c
}

func (u *unit) clone() *unit {
	c := *u
	c.stmts = u.stmts.clone()
	return &c
}

// minimise shrinks the unit, then the tables under it.
func (f *fuzzer) minimise(ctx context.Context, u *unit, d *Difference) (*Difference, *scenario) {
	s := &scenario{f.world.clone(), f.past, u.clone()}
	last := d
	again := func() bool {
		found, err := f.check(ctx, s.world, s.unit, d.Way)
		if err != nil || found == nil || found.kind() != d.kind() {
			return false
		}
		last = found
		return true
	}
	m := &minimiser{fails: again, tries: minimiseTries, deadline: time.Now().Add(minimiseTime)}
	if strings.HasPrefix(d.Text, "order") || d.got.lost != "" {
		return last, s // Without its order a query may differ and be right; a hang takes too long.
	}
	if !u.commits {
		m.shrink(s.unit.stmts)
	}
	m.fails = func() bool { return f.rebuild(ctx, s, d.Way) == nil && again() }
	if !m.fails() {
		return last, s // It needs something that does not come back: what is shown is what was shrunk.
	}
	f.shrinkWorld(m, s)
	return last, s
}

// shrinkWorld leaves out earlier changes, tables, rows, columns and indexes.
func (f *fuzzer) shrinkWorld(m *minimiser, s *scenario) {
	for len(s.past) > 0 {
		past := s.past
		if !m.attempt(func() { s.past = nil }, func() { s.past = past }) {
			break
		}
	}
	for i := len(s.world.views) - 1; i >= 0; i-- {
		views := s.world.views
		if !m.attempt(func() { s.world.views = slices.Delete(slices.Clone(views), i, i+1) }, func() { s.world.views = views }) {
			m.shrink(views[i].create)
		}
	}
	sets := s.world.style.sets
	for i := len(sets) - 1; i >= 0; i-- {
		before := s.world.style.sets
		m.attempt(func() { s.world.style.sets = slices.Delete(slices.Clone(before), i, i+1) }, func() { s.world.style.sets = before })
	}
	for i := len(s.world.tables) - 1; i >= 0; i-- {
		tables := s.world.tables
		m.attempt(func() { s.world.tables = slices.Delete(slices.Clone(tables), i, i+1) }, func() { s.world.tables = tables })
	}
	for _, t := range s.world.tables {
		indexes := t.indexes
		m.attempt(func() { t.indexes = nil }, func() { t.indexes = indexes })
		insert := t.insert
		if !m.attempt(func() { t.insert = nil }, func() { t.insert = insert }) && insert != nil {
			m.shrink(insert)
		}
		m.shrink(t.create)
		m.shrink(t.indexes...)
	}
	m.shrink(s.unit.stmts)
}

// rebuild makes a scenario's tables and runs what came before.
func (f *fuzzer) rebuild(ctx context.Context, s *scenario, of string) error {
	if err := f.build(ctx, s.world, of); err != nil {
		return err
	}
	for _, u := range s.past {
		for _, p := range f.places(of) {
			f.runUnit(ctx, f.conns[p], s.world, ways[0], u.stmts.kids)
		}
	}
	return nil
}

// restore brings the world back after a difference has been shrunk.
func (f *fuzzer) restore(ctx context.Context) error {
	return f.rebuild(ctx, &scenario{world: f.world, past: f.past}, "")
}

// script is a scenario as a text for psql.
func (f *fuzzer) script(w *world, past []*unit, u *unit) string {
	var b strings.Builder
	for _, set := range w.style.sets {
		if !strings.HasSuffix(set, "= 'UTC'") {
			fmt.Fprintf(&b, "%s;\n", set)
		}
	}
	head := b.String()
	b.Reset()
	for _, t := range w.tables {
		for _, s := range append([]*tree{t.create, t.insert}, t.indexes...) {
			if s != nil && !s.dropped {
				fmt.Fprintf(&b, "%s;\n", s)
			}
		}
	}
	for _, v := range w.views {
		fmt.Fprintf(&b, "%s;\n", v.create)
	}
	for _, p := range past {
		fmt.Fprintf(&b, "%s;\n", p.stmts)
	}
	fmt.Fprintf(&b, "%s;\n", u.stmts)
	return head + definitionsOf(b.String()) + b.String()
}

// definitionsOf are those of the definitions that a script names.
func definitionsOf(script string) string {
	needed := ""
	for _, d := range slices.Backward(definitions) { // A function may take a type.
		name, _, _ := strings.Cut(strings.Fields(d)[2], "(")
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(needed + script) {
			needed = d + ";\n" + needed
		}
	}
	return needed
}
