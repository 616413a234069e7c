package are

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// Regexp is a compiled regular expression. It serves one goroutine at a time.
type Regexp struct {
	root       *node
	prog       *program
	search     dfa // finds where a match ends
	groups     int
	fold       bool
	conditions bool // there are assertions or lookaround constraints
	bytes      int  // of the program, about
	cached     int  // of the automata, about
	filled     []*dfa
	m          matcher
}

// Compile compiles a pattern. Its error's text is PostgreSQL's, without "invalid regular expression".
func Compile(pattern string, flags Flags) (re *Regexp, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			re, err = nil, e.err
		}
	}()
	p := &parser{lexer: lexer{src: pattern, flags: flags}, groups: []*node{nil}}
	p.prefixes()
	p.dot = runeSet{0, utf8.MaxRune}
	if p.flags&NewlineDot != 0 {
		p.dot = runeSet{'\n', '\n'}.complement()
	}
	p.next()
	root := p.parse(tokEnd, false)
	re = &Regexp{root: root, groups: len(p.groups) - 1, fold: p.flags&FoldCase != 0}
	prog := &program{setIDs: map[string]int32{}, sharedIDs: map[*rune]int32{}}
	prog.node(root)
	for _, l := range p.looks {
		d := &dfa{search: l.kind == lookBehind || l.kind == lookNotBehind}
		d.fragment = prog.expr(l.x)
		prog.looks, prog.kinds = append(prog.looks, d), append(prog.kinds, l.kind)
	}
	prog.makeColors()
	prog.setIDs, prog.sharedIDs = nil, nil
	for _, i := range prog.insts {
		re.conditions = re.conditions || i.op == instAssert || i.op == instLook
	}
	re.prog = prog
	re.search = dfa{fragment: root.auto.fragment, search: true}
	re.bytes = prog.bytes() + root.forgetExpr()*nodeBytes + 16*re.groups
	re.m = matcher{re: re, seen: make([]uint32, len(prog.insts))}
	return re, nil
}

// Groups returns the number of capturing groups.
func (re *Regexp) Groups() int { return re.groups }

// Bytes returns about how much memory the expression takes. It changes when the expression is matched.
func (re *Regexp) Bytes() int { return re.bytes + re.cached }

// Find finds the first match that begins at or after start. With captures it returns the positions of the match and of its groups, two
// each, -1 for a group that is no part of it; without, only the match's. nil: there is no match. poll is told of the
// work from time to time.
func (re *Regexp) Find(text string, start int, captures bool, poll Poller) ([]int, error) {
	m := re.reset(text, poll)
	defer re.release()
	m.caps = make([]int, 2*(re.groups+1))
	m.steps += re.groups
	found := m.find(start, captures || re.root.flags&backrefs != 0)
	switch {
	case m.err != nil:
		return nil, m.err
	case !found:
		return nil, nil
	case !captures:
		return m.caps[:2], nil
	}
	return m.caps, nil
}

// Matches reports whether a text has a match.
func (re *Regexp) Matches(text string, poll Poller) (bool, error) {
	if re.root.flags&backrefs != 0 {
		found, err := re.Find(text, 0, false, poll)
		return found != nil, err
	}
	m := re.reset(text, poll)
	defer re.release()
	end := m.shortest(&re.search, 0, 0, len(text))
	return end >= 0, m.err
}

func (re *Regexp) reset(text string, poll Poller) *matcher {
	m := &re.m
	m.text, m.poll, m.err = text, poll, nil
	for _, d := range re.prog.looks {
		d.resumed = nil
	}
	return m
}

// release drops what belongs to the text.
func (re *Regexp) release() { re.m.text, re.m.poll, re.m.caps = "", nil, nil }

// find searches for the first match from start and, if asked to, dissects it.
func (m *matcher) find(start int, dissect bool) bool {
	re := m.re
	verify := re.root.flags&backrefs != 0
	for close := start; close == start || close < len(m.text); {
		// A match that only the text's end has is not found after a failed attempt before it, as in PostgreSQL.
		end, idle := m.shortestIdle(&re.search, close, close, len(m.text))
		if end < 0 {
			return false
		}
		for begin := max(idle, start); begin <= end; begin = m.after(begin) {
			if m.from(begin, dissect, verify) {
				return true
			}
			if m.err != nil {
				return false
			}
		}
		close = m.after(end)
	}
	return false
}

// from tries the matches that begin at a position, in the order of the expression's preference.
func (m *matcher) from(begin int, dissect, verify bool) bool {
	root := m.re.root
	least, limit := begin, len(m.text)
	for {
		end := -1
		if root.flags&shorter != 0 {
			end = m.shortest(&root.auto, begin, least, limit)
		} else {
			end = m.longest(&root.auto, begin, limit)
		}
		if end < 0 {
			return false
		}
		m.steps += m.re.groups
		for i := range m.caps {
			m.caps[i] = -1
		}
		if !dissect || m.dissect(root, begin, end) {
			m.caps[0], m.caps[1] = begin, end
			return m.err == nil
		}
		switch {
		case !verify || m.err != nil:
			return false
		case root.flags&shorter != 0:
			if end == limit {
				return false
			}
			least = m.after(end)
		case end == begin:
			return false
		default:
			limit = m.before(end)
		}
	}
}

// after and before return the neighbouring character's position.
func (m *matcher) after(pos int) int {
	_, width := utf8.DecodeRuneInString(m.text[min(pos, len(m.text)):])
	return pos + max(width, 1)
}

func (m *matcher) before(pos int) int {
	_, width := utf8.DecodeLastRuneInString(m.text[:pos])
	return pos - width
}

// dissect divides a match of a node among the nodes below it and notes captures.
func (m *matcher) dissect(n *node, begin, end int) bool {
	if n.flags&(captures|backrefs) == 0 {
		return true
	}
	ok := true
	switch n.op {
	case nodeCat:
		ok = m.divide(n, begin, end)
	case nodeAlt:
		ok = slices.ContainsFunc(n.subs, func(s *node) bool { return m.exact(&s.auto, begin, end) && m.dissect(s, begin, end) })
	case nodeIterate:
		if n.subs[0].flags&shorter != 0 {
			ok = m.iterateShort(n, begin, end)
		} else {
			ok = m.iterateLong(n, begin, end)
		}
	case nodeGroup:
		ok = m.dissect(n.subs[0], begin, end)
	case nodeBackref:
		ok = m.repeats(n, begin, end)
	}
	if ok && n.capture > 0 {
		m.caps[2*n.capture], m.caps[2*n.capture+1] = begin, end
	}
	return ok && m.spend(1)
}

// divide finds the end of the first of two nodes, longest or shortest first.
func (m *matcher) divide(n *node, begin, end int) bool {
	left, right := n.subs[0], n.subs[1]
	short := left.flags&shorter != 0
	mid := -1
	if short {
		mid = m.shortest(&left.auto, begin, begin, end)
	} else {
		mid = m.longest(&left.auto, begin, end)
	}
	for mid >= 0 {
		if m.exact(&right.auto, mid, end) && m.dissect(left, begin, mid) && m.dissect(right, mid, end) {
			return true
		}
		m.forget(n)
		switch {
		case m.err != nil:
			return false
		case short:
			if mid == end {
				return false
			}
			mid = m.shortest(&left.auto, begin, m.after(mid), end)
		default:
			if mid == begin {
				return false
			}
			mid = m.longest(&left.auto, begin, m.before(mid))
		}
	}
	return false
}

// forget clears the captures in a node.
func (m *matcher) forget(n *node) {
	if n.flags&captures == 0 {
		return
	}
	m.steps++
	if n.capture > 0 {
		m.caps[2*n.capture], m.caps[2*n.capture+1] = -1, -1
	}
	for _, s := range n.subs {
		m.forget(s)
	}
}

// iterations is the state of the division of a match into iterations of a node.
type iterations struct {
	m           *matcher
	sub         *node
	least, most int
	end         int
	ends        []int // of each iteration; ends[0] is where the first begins
	verified    int   // the iterations that are dissected
}

func (m *matcher) iterations(n *node, begin, end int) *iterations {
	it := &iterations{m: m, sub: n.subs[0], least: max(n.min, 1), end: end, ends: []int{begin}}
	// Iterations of no length count only as far as they are needed.
	it.most = utf8.RuneCountInString(m.text[begin:end])
	if n.max != infinite {
		it.most = min(it.most, n.max)
	}
	it.most = max(it.most, it.least)
	return it
}

// emptyNeeded reports whether iteration k may be empty at a position, to reach the least number of iterations.
func (it *iterations) emptyNeeded(k, pos int) bool {
	return k < it.least && it.least-k >= utf8.RuneCountInString(it.m.text[pos:it.end])
}

// verify dissects the first k iterations; it returns the first that fails, 0 if none does.
func (it *iterations) verify(k int) int {
	for i := it.verified + 1; i <= k; i++ {
		it.m.forget(it.sub)
		if !it.m.dissect(it.sub, it.ends[i-1], it.ends[i]) {
			return i
		}
		it.verified = i
	}
	return 0
}

// iterateLong divides a match into iterations, each as long as possible.
func (m *matcher) iterateLong(n *node, begin, end int) bool {
	it := m.iterations(n, begin, end)
	limit := end
	for k := 1; k > 0; {
		it.ends = append(it.ends[:k], m.longest(&it.sub.auto, it.ends[k-1], limit))
		at := it.ends[k]
		it.verified = min(it.verified, k-1)
		back := false
		switch {
		case m.err != nil:
			return false
		case at < 0:
			k--
			back = true
		case at != end && k >= it.most:
			k--
			back = true
		case at != end && at == it.ends[k-1] && !it.emptyNeeded(k, at):
			back = true
		case at != end:
			k++
			limit = end
		case k < it.least:
			back = true
		default:
			failed := it.verify(k)
			if failed == 0 {
				return true
			}
			k, back = failed, true
		}
		for back && k > 0 {
			previous := it.ends[k-1]
			if it.ends[k] > previous {
				limit = m.before(it.ends[k])
				if limit > previous || it.emptyNeeded(k, previous) {
					break
				}
			}
			k--
		}
	}
	// One empty iteration, which sets captures, was preferable to none.
	return n.min == 0 && begin == end
}

// iterateShort divides a match into iterations, each as short as possible.
func (m *matcher) iterateShort(n *node, begin, end int) bool {
	if n.min == 0 && begin == end {
		return true
	}
	it := m.iterations(n, begin, end)
	limit := begin
	for k := 1; k > 0; {
		if limit == it.ends[k-1] && limit != end && !it.emptyNeeded(k, limit) {
			limit = m.after(limit)
		}
		if k >= it.most {
			limit = end
		}
		it.ends = append(it.ends[:k], m.shortest(&it.sub.auto, it.ends[k-1], limit, end))
		at := it.ends[k]
		it.verified = min(it.verified, k-1)
		back := false
		switch {
		case m.err != nil:
			return false
		case at < 0, at != end && k >= it.most:
			k--
			back = true
		case at != end:
			k++
			limit = at
		case k < it.least:
			back = true
		default:
			failed := it.verify(k)
			if failed == 0 {
				return true
			}
			k, back = failed, true
		}
		for back && k > 0 {
			if it.ends[k] < end {
				limit = m.after(it.ends[k])
				break
			}
			k--
		}
	}
	return false
}

// repeats reports whether a text consists of repetitions of a group's text.
func (m *matcher) repeats(n *node, begin, end int) bool {
	from, to := m.caps[2*n.ref], m.caps[2*n.ref+1]
	switch {
	case from < 0:
		return false
	case from == to:
		return begin == end
	case begin == end:
		return n.min == 0
	}
	text, count := m.text[from:to], 0
	for begin < end {
		next := begin + len(text)
		if m.re.fold {
			next = m.foldedPrefix(text, begin, end)
		} else if next > end || m.text[begin:next] != text {
			next = -1
		}
		if next < 0 || !m.spend(len(text)) {
			return false
		}
		begin = next
		count++
	}
	return count >= n.min && (n.max == infinite || count <= n.max)
}

// foldedPrefix returns the end of a text that equals another one regardless of case; -1 if it is a different one.
func (m *matcher) foldedPrefix(text string, begin, end int) int {
	for _, want := range text {
		if begin >= end {
			return -1
		}
		r, width := utf8.DecodeRuneInString(m.text[begin:end])
		if r != want && unicode.ToLower(r) != unicode.ToLower(want) {
			return -1
		}
		begin += width
	}
	return begin
}
