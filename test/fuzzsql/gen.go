package fuzzsql

import (
	"fmt"
	"math/rand/v2"
)

// gen makes statements from a seed.
type gen struct {
	*rand.Rand
	world *world
	cat   *catalog
	ctes  []*relation // the WITH items in scope
	names int         // of aliases made
	depth int         // of queries around the one that is made

	ordered bool // the query that is made has an order of its rows that is whole
}

func newGen(seed uint64) *gen {
	return &gen{Rand: rand.New(rand.NewPCG(seed, 0x70657263)), cat: loadCatalog()}
}

// chance is true in so many of 100 cases.
func (g *gen) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *gen, list []T) T { return list[g.IntN(len(list))] }

// alias makes a name that no other has.
func (g *gen) alias(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

// scalar is a random type that is no array and none of a user.
func (g *gen) scalar() *typ {
	if g.chance(30) {
		return pick(g, rareScalars)
	}
	return pick(g, scalars)
}

// sortedType is a random type whose values are sorted, mostly, as what sorts others fails.
func (g *gen) sortedType(draw func() *typ) *typ {
	t := draw()
	for range 5 {
		if !t.unsorted || g.chance(2) {
			break
		}
		t = draw()
	}
	return t
}

// anyType is a random type, an array now and then.
func (g *gen) anyType() *typ {
	t := g.scalar()
	if g.chance(7) {
		t = pick(g, userTypes)
	}
	if g.chance(8) {
		return byOID[arrayOID(t)]
	}
	return t
}

// weighted is an entry of a table of forms.
type weighted[T any] struct {
	weight int
	form   T
}

// choose picks a form by weight.
func choose[T any](g *gen, list []weighted[T]) T {
	total := 0
	for _, w := range list {
		total += w.weight
	}
	n := g.IntN(total)
	for _, w := range list {
		if n -= w.weight; n < 0 {
			return w.form
		}
	}
	panic("BUG: no form chosen")
}
