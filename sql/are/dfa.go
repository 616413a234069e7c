package are

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// maxCacheBytes is the size of a Regexp's automata at which they are dropped and built anew.
const maxCacheBytes = 1 << 20

// stepsPerPoll is the number of steps, about one a character, between two calls of Poller.Step; each counts stepCost there.
const (
	stepsPerPoll = 1 << 14
	stepCost     = 16
)

// Poller is told of the work that is done. Its error ends a search, which returns it. A nil Poller lets every search end.
type Poller interface {
	Step(n int) error
}

// dfa is the deterministic automaton of a fragment, built as far as texts have needed it.
type dfa struct {
	fragment
	search bool // a match may begin anywhere: the fragment is preceded by any characters
	states map[string]*state
	starts [otherChar + 1]*state // by the kind of the character before

	// Of a lookbehind constraint: how far its search has come in the present text.
	at      int
	resumed *state
}

// state is a set of instructions after a character of some kind, conditions not yet followed.
type state struct {
	insts  []int32
	before charKind
	dead   bool     // no match can follow
	idle   bool     // of a search: no match is under way
	next   []*state // by color; the last is the text's end
	accept []int8   // by color of the next character: 0 unknown, 1 no, 2 yes
	looks  bool     // transitions depend on more than the next character: none is kept
}

// matcher runs the automata of one Regexp over one text.
type matcher struct {
	re    *Regexp
	text  string
	poll  Poller
	steps int
	err   error // of poll; every match fails then
	caps  []int
	seen  []uint32 // by instruction: the mark of the last set that it was added to
	mark  uint32
	list  []int32
}

// spend counts steps; false if the caller wants to stop.
func (m *matcher) spend(n int) bool {
	if m.steps += n; m.steps < stepsPerPoll {
		return m.err == nil
	}
	n, m.steps = m.steps, 0
	if m.err == nil && m.poll != nil {
		m.err = m.poll.Step(n * stepCost)
	}
	return m.err == nil
}

// kindBefore returns the kind of the character before a position.
func (m *matcher) kindBefore(pos int) charKind {
	if pos == 0 || !m.re.conditions {
		return noChar
	}
	r, _ := utf8.DecodeLastRuneInString(m.text[:pos])
	return m.re.prog.colors.kind[m.re.prog.colors.of(r)]
}

// colorAt returns the color of the character at a position, and its width: 0 at the text's end.
func (m *matcher) colorAt(pos int) (color uint16, width int) {
	c := &m.re.prog.colors
	if pos >= len(m.text) {
		return uint16(c.count), 0
	}
	if b := m.text[pos]; b < utf8.RuneSelf {
		return c.ascii[b], 1
	}
	r, width := utf8.DecodeRuneInString(m.text[pos:])
	return c.of(r), width
}

// begin starts a new set of instructions.
func (m *matcher) begin() {
	if m.mark++; m.mark == 0 {
		clear(m.seen)
		m.mark = 1
	}
	m.list = m.list[:0]
}

// reach adds an instruction to the set, with those that it leads to without a condition.
func (m *matcher) reach(d *dfa, pc int32) {
	insts := m.re.prog.insts
	stack := append(make([]int32, 0, 16), pc)
	for len(stack) > 0 {
		pc = stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for m.seen[pc] != m.mark {
			m.seen[pc] = m.mark
			i := &insts[pc]
			m.steps++
			if pc == d.stop || i.op == instSet || i.op == instAssert || i.op == instLook {
				m.list = append(m.list, pc)
				break
			}
			if i.op == instSplit {
				stack = append(stack, i.b)
			}
			pc = i.a
		}
	}
}

// dropAutomata forgets the states of all automata. States that a search is at must not keep the others alive.
func (re *Regexp) dropAutomata() {
	for _, d := range re.filled {
		for _, s := range d.states {
			clear(s.next)
			clear(s.accept)
		}
		d.states, d.starts = nil, [otherChar + 1]*state{}
	}
	re.filled, re.cached = re.filled[:0], 0
}

// intern returns the state of the set.
func (m *matcher) intern(d *dfa, before charKind, idle bool) *state {
	re := m.re
	slices.Sort(m.list)
	key := make([]byte, 0, 4*len(m.list)+1)
	for _, pc := range m.list {
		key = binary.BigEndian.AppendUint32(key, uint32(pc))
	}
	key = append(key, byte(before))
	if idle {
		key = append(key, 1)
	}
	if s, ok := d.states[string(key)]; ok {
		return s
	}
	n := re.prog.colors.count + 1
	m.steps += len(m.list) + n/16
	size := 9*n + 9*len(m.list) + 128
	if re.cached+size > maxCacheBytes {
		re.dropAutomata()
	}
	re.cached += size
	if d.states == nil {
		d.states = map[string]*state{}
		re.filled = append(re.filled, d)
	}
	s := &state{insts: slices.Clone(m.list), before: before, dead: len(m.list) == 0, idle: idle, next: make([]*state, n), accept: make([]int8, n)}
	for _, pc := range s.insts {
		s.looks = s.looks || re.prog.insts[pc].op == instLook
	}
	d.states[string(key)] = s
	return s
}

// first returns the state at a position where a match may begin.
func (m *matcher) first(d *dfa, pos int) *state {
	before := m.kindBefore(pos)
	if s := d.starts[before]; s != nil {
		return s
	}
	m.begin()
	m.reach(d, d.start)
	s := m.intern(d, before, d.search)
	d.starts[before] = s
	return s
}

// step returns the state after the next character, and whether a match ends before it.
func (m *matcher) step(d *dfa, s *state, color uint16, pos int) (next *state, accept bool) {
	if a := s.accept[color]; a != 0 {
		return s.next[color], a == 2
	}
	prog := m.re.prog
	after := noChar
	if int(color) < prog.colors.count {
		after = prog.colors.kind[color]
	}
	looks := s.looks
	m.begin()
	for _, pc := range s.insts {
		m.seen[pc] = m.mark
		m.list = append(m.list, pc)
	}
	if m.re.conditions {
		looks = m.follow(d, s.before, after, pos) || looks
	}
	ready := slices.Clone(m.list)
	m.begin()
	for _, pc := range ready {
		switch i := &prog.insts[pc]; {
		case pc == d.stop:
			accept = true
		case i.op == instSet && int(color) < prog.colors.count && prog.colors.has(i.set, color):
			m.reach(d, i.a)
		}
	}
	idle := d.search && len(m.list) == 0
	if d.search {
		m.reach(d, d.start)
	}
	if !m.re.conditions {
		after = noChar // States need not remember it.
	}
	next = m.intern(d, after, idle)
	if looks || m.err != nil {
		return next, accept
	}
	s.next[color], s.accept[color] = next, 1
	if accept {
		s.accept[color] = 2
	}
	return next, accept
}

// follow adds to the set what its conditions lead to between two characters; it reports whether one was a lookaround constraint.
func (m *matcher) follow(d *dfa, before, after charKind, pos int) (looks bool) {
	prog := m.re.prog
	for k := 0; k < len(m.list); k++ {
		i := &prog.insts[m.list[k]]
		if m.list[k] == d.stop {
			continue
		}
		switch i.op {
		case instAssert:
			if i.assert.holds(before, after) {
				m.reach(d, i.a)
			}
		case instLook:
			looks = true
			saved := slices.Clone(m.list)
			holds := m.look(i.set, pos)
			m.begin() // The constraint has used the marks.
			for _, pc := range saved {
				m.seen[pc] = m.mark
				m.list = append(m.list, pc)
			}
			if holds {
				m.reach(d, i.a)
			}
		}
	}
	return looks
}

// holds reports whether an assertion holds between two characters.
func (a assertion) holds(before, after charKind) bool {
	was, is := before == wordChar, after == wordChar
	switch a {
	case assertBegin:
		return before == noChar
	case assertEnd:
		return after == noChar
	case assertLineBegin:
		return before == noChar || before == newlineChar
	case assertLineEnd:
		return after == noChar || after == newlineChar
	case assertWordStart:
		return !was && is
	case assertWordEnd:
		return was && !is
	case assertWordEdge:
		return was != is
	}
	return was == is
}

// look evaluates a lookaround constraint at a position.
func (m *matcher) look(index int32, pos int) bool {
	d, kind := m.re.prog.looks[index], m.re.prog.kinds[index]
	switch kind {
	case lookAhead, lookNotAhead:
		return (m.shortest(d, pos, pos, len(m.text)) >= 0) == (kind == lookAhead)
	}
	return m.behind(d, pos) == (kind == lookBehind)
}

// behind reports whether a match of a lookbehind constraint ends at a position. The search goes on where the last one ended.
func (m *matcher) behind(d *dfa, pos int) bool {
	if d.resumed == nil || d.at > pos {
		d.at, d.resumed = 0, m.first(d, 0)
	}
	s, at := d.resumed, d.at
	for {
		color, width := m.colorAt(at)
		next, accept := m.step(d, s, color, at)
		if !m.spend(1) {
			return false
		}
		if at >= pos {
			d.at, d.resumed = at, s
			return accept
		}
		s, at = next, at+width
	}
}

// longest returns the end of the longest match from begin that ends at or before limit; -1: there is none.
func (m *matcher) longest(d *dfa, begin, limit int) int {
	s, last := m.first(d, begin), -1
	for pos := begin; ; {
		color, width := m.colorAt(pos)
		next, accept := m.step(d, s, color, pos)
		if accept {
			last = pos
		}
		if !m.spend(1) {
			return -1
		}
		if pos >= limit || next.dead {
			return last
		}
		s, pos = next, pos+width
	}
}

// shortest returns the end of the shortest match from begin that ends between least and limit; -1: there is none.
func (m *matcher) shortest(d *dfa, begin, least, limit int) int {
	end, _ := m.shortestIdle(d, begin, least, limit)
	return end
}

// shortestIdle is shortest, for a search also with the last position at which no partial match was under way.
func (m *matcher) shortestIdle(d *dfa, begin, least, limit int) (end, idle int) {
	s, idle := m.first(d, begin), begin
	for pos := begin; ; {
		if s.idle {
			idle = pos
		}
		color, width := m.colorAt(pos)
		next, accept := m.step(d, s, color, pos)
		if !m.spend(1) {
			return -1, idle
		}
		if accept && pos >= least {
			return pos, idle
		}
		if pos >= limit || next.dead {
			return -1, idle
		}
		s, pos = next, pos+width
	}
}

// exact reports whether the text between two positions matches.
func (m *matcher) exact(d *dfa, begin, end int) bool { return m.longest(d, begin, end) == end }
