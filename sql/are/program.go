package are

import (
	"encoding/binary"
	"slices"
	"sort"
	"unicode/utf8"
)

// maxInstructions bounds a program, maxColorWork the sets that contain each of its ranges of characters, together.
const (
	maxInstructions = 200_000
	maxColorWork    = 2 << 20
)

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
	insts     []inst
	sets      []runeSet
	setIDs    map[string]int32 // by runeSet.key, while the program is made; sharedIDs by the place of sets with many ranges
	sharedIDs map[*rune]int32
	looks     []*dfa // of lookaround constraints
	kinds     []lookKind
	colors    colors
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

// The estimates of bytes: of an instruction with its mark, and of a node.
const (
	instBytes = 28
	nodeBytes = 256
)

// bytes estimates the memory of the program.
func (p *program) bytes() int {
	n := 1024 + instBytes*len(p.insts) + 6*len(p.colors.bounds) + p.colors.count
	for i, s := range p.sets {
		n += 48 + 4*len(s) + 2*len(p.colors.member[i])
	}
	return n
}

// stop adds the end of a fragment.
func (p *program) stop() int32 { return p.add(inst{op: instStop, a: -1}) }

// link lets the fragment before go on with the one after.
func (p *program) link(before, after fragment) { p.insts[before.stop].a = after.start }

func (p *program) setID(s runeSet) int32 {
	if len(s) > 2 {
		if id, ok := p.sharedIDs[&s[0]]; ok {
			return id
		}
	}
	key := string(s.key())
	id, ok := p.setIDs[key]
	if !ok {
		id = int32(len(p.sets))
		p.sets = append(p.sets, s)
		p.setIDs[key] = id
	}
	if len(s) > 2 {
		p.sharedIDs[&s[0]] = id
	}
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
	member [][]uint16 // of each set: the colors in it, in order
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
	_, ok := slices.BinarySearch(c.member[set], color)
	return ok
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
	work := 0
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
		if work += len(active); work > maxColorWork {
			fail(errTooBig)
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
	c.member = make([][]uint16, len(p.sets))
	c.kind = make([]charKind, c.count)
	for color, ids := range members {
		c.kind[color] = otherChar
		for _, id := range ids {
			c.member[id] = append(c.member[id], uint16(color))
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
