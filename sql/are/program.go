package are

import (
	"encoding/binary"
	"slices"
	"sort"
	"unicode/utf8"
)

// maxInstructions bounds a program.
const maxInstructions = 200_000

type instOp uint8

const (
	instJump   instOp = iota // to a
	instSplit                // to a and b
	instSet                  // a character of set, then a
	instAssert               // a condition, then a
	instLook                 // a lookaround constraint, then a
	instStop                 // the end of a fragment: goes on at a in the fragment around it
)

type inst struct {
	op     instOp
	assert assertion
	a, b   int32
	set    int32 // in program.sets; of instLook: in program.looks
}

// program is the automaton of an expression. Each node's part of it begins at one instruction and ends at another.
type program struct {
	insts  []inst
	sets   []runeSet
	setIDs map[string]int32
	looks  []*dfa // of lookaround constraints
	kinds  []lookKind
	colors colors
}

// fragment is a part of the program with one way in and one way out.
type fragment struct{ start, stop int32 }

func (p *program) add(i inst) int32 {
	if len(p.insts) >= maxInstructions {
		fail(errTooBig)
	}
	p.insts = append(p.insts, i)
	return int32(len(p.insts) - 1)
}

// stop adds the end of a fragment.
func (p *program) stop() int32 { return p.add(inst{op: instStop, a: -1}) }

// link lets the fragment before go on with the one after.
func (p *program) link(before, after fragment) { p.insts[before.stop].a = after.start }

func (p *program) setID(s runeSet) int32 {
	key := make([]byte, 0, 4*len(s))
	for _, r := range s {
		key = binary.BigEndian.AppendUint32(key, uint32(r))
	}
	if id, ok := p.setIDs[string(key)]; ok {
		return id
	}
	id := int32(len(p.sets))
	p.sets = append(p.sets, s)
	p.setIDs[string(key)] = id
	return id
}

// expr compiles an expression.
func (p *program) expr(x *expr) fragment {
	switch x.op {
	case opCat:
		return p.sequence(len(x.subs), func(i int) fragment { return p.expr(x.subs[i]) })
	case opAlt:
		return p.choice(len(x.subs), func(i int) fragment { return p.expr(x.subs[i]) })
	case opRepeat:
		return p.repeat(x.min, x.max, x.subs[0])
	}
	i := inst{op: instJump}
	switch x.op {
	case opSet:
		i = inst{op: instSet, set: p.setID(x.set)}
	case opAssert:
		i = inst{op: instAssert, assert: x.assert}
	case opLook:
		i = inst{op: instLook, set: int32(x.look.index)}
	}
	start := p.add(i)
	stop := p.stop()
	p.insts[start].a = stop
	return fragment{start, stop}
}

func (p *program) sequence(n int, part func(i int) fragment) fragment {
	all := part(0)
	for i := 1; i < n; i++ {
		next := part(i)
		p.link(all, next)
		all.stop = next.stop
	}
	return all
}

func (p *program) choice(n int, part func(i int) fragment) fragment {
	stop := int32(-1)
	start := int32(-1)
	for i := range n {
		f := part(i)
		if i == 0 {
			start, stop = f.start, p.stop()
		} else {
			start = p.add(inst{op: instSplit, a: start, b: f.start})
		}
		p.insts[f.stop].a = stop
	}
	return fragment{start, stop}
}

// repeat compiles x{least,most}.
func (p *program) repeat(least, most int, x *expr) fragment {
	head := p.add(inst{op: instJump})
	first := p.stop()
	p.insts[head].a = first
	all := fragment{head, first}
	for range least {
		f := p.expr(x)
		p.link(all, f)
		all.stop = f.stop
	}
	stop := p.stop()
	if most == infinite {
		f := p.expr(x)
		split := p.add(inst{op: instSplit, a: f.start, b: stop})
		p.insts[f.stop].a = split
		p.insts[all.stop].a = split
		return fragment{head, stop}
	}
	for range most - least {
		f := p.expr(x)
		p.insts[all.stop].a = p.add(inst{op: instSplit, a: f.start, b: stop})
		all.stop = f.stop
	}
	p.insts[all.stop].a = stop
	return fragment{head, stop}
}

// node compiles a node and those below it.
func (p *program) node(n *node) fragment {
	var f fragment
	switch n.op {
	case nodeCat:
		f = p.sequence(2, func(i int) fragment { return p.node(n.subs[i]) })
	case nodeAlt:
		f = p.choice(len(n.subs), func(i int) fragment { return p.node(n.subs[i]) })
	case nodeIterate:
		p.node(n.subs[0]) // to verify one iteration
		f = p.expr(n.expr())
	case nodeGroup:
		f = p.node(n.subs[0])
	default:
		f = p.expr(n.expr())
	}
	n.auto.fragment = f
	return f
}

// colors divides the characters into classes that all sets treat alike.
type colors struct {
	ascii  [utf8.RuneSelf]uint16
	bounds []rune // the first characters of ranges, in order
	color  []uint16
	count  int
	member [][]uint64 // of each set: the colors in it
	kind   []charKind // of each color
}

// charKind is what assertions ask of a character.
type charKind uint8

const (
	noChar charKind = iota // beyond the text
	newlineChar
	wordChar
	otherChar
)

func (c *colors) of(r rune) uint16 {
	if r < utf8.RuneSelf {
		return c.ascii[r]
	}
	i := sort.Search(len(c.bounds), func(i int) bool { return c.bounds[i] > r })
	return c.color[i-1]
}

func (c *colors) has(set int32, color uint16) bool {
	return c.member[set][color/64]&(1<<(color%64)) != 0
}

// makeColors computes the colors of the program's sets, to which it adds the newline and the word characters.
func (p *program) makeColors() {
	word, line := p.setID(classSet(classWord)), p.setID(runeSet{'\n', '\n'})
	type event struct {
		at  rune
		set int32
	}
	var events []event
	for id, s := range p.sets {
		for i := 0; i < len(s); i += 2 {
			events = append(events, event{s[i], int32(id)}, event{s[i+1] + 1, int32(id)})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return int(a.at) - int(b.at) })
	c := &p.colors
	active := map[int32]bool{}
	known := map[string]uint16{}
	signature := func() []int32 {
		ids := make([]int32, 0, len(active))
		for id := range active {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		return ids
	}
	var members [][]int32 // of each color
	for i, at := 0, rune(0); at <= utf8.MaxRune; {
		for i < len(events) && events[i].at == at {
			id := events[i].set
			if active[id] {
				delete(active, id)
			} else {
				active[id] = true
			}
			i++
		}
		ids := signature()
		key := make([]byte, 0, 4*len(ids))
		for _, id := range ids {
			key = binary.BigEndian.AppendUint32(key, uint32(id))
		}
		color, ok := known[string(key)]
		if !ok {
			if len(members) >= 1<<16-2 {
				fail(errTooBig)
			}
			color = uint16(len(members))
			known[string(key)] = color
			members = append(members, ids)
		}
		c.bounds, c.color = append(c.bounds, at), append(c.color, color)
		if i == len(events) {
			break
		}
		at = events[i].at
	}
	c.count = len(members)
	c.member = make([][]uint64, len(p.sets))
	for id := range c.member {
		c.member[id] = make([]uint64, c.count/64+1)
	}
	c.kind = make([]charKind, c.count)
	for color, ids := range members {
		c.kind[color] = otherChar
		for _, id := range ids {
			c.member[id][color/64] |= 1 << (color % 64)
			switch id {
			case word:
				c.kind[color] = wordChar
			case line:
				c.kind[color] = newlineChar
			}
		}
	}
	for r := range rune(utf8.RuneSelf) {
		i := sort.Search(len(c.bounds), func(i int) bool { return c.bounds[i] > r })
		c.ascii[r] = c.color[i-1]
	}
}
