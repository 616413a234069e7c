package mvcc

import (
	"fmt"
	"strings"
	"time"
)

// smModel searches one configuration, whole or with one rule off.
type smModel struct {
	cfg *smConfig
	mut smMutant

	violation string // of the step or state under way
	quiet     bool   // of a mutant: the request under way writes no notify cells
	edges     []smEdge
	tracing   bool
}

// smEdge is one step out of a state.
type smEdge struct {
	to        smState
	violation string
	what      string // while tracing
}

func (m *smModel) fail(why string) {
	if m.violation == "" {
		m.violation = why
	}
}

// emit ends a step.
func (m *smModel) emit(s *smState, what string, msg *smMsg) {
	e := smEdge{violation: m.violation}
	m.violation = ""
	if m.tracing {
		if e.what = what; msg != nil {
			e.what += " " + msg.String()
		}
	}
	s.canonical()
	e.to = *s
	m.edges = append(m.edges, e)
}

func (msg *smMsg) String() string {
	return fmt.Sprintf("%s(txn %d, keys %03b, flags %b, at %d)", smKindNames[msg.kind], msg.txn, msg.keys, msg.flags, msg.ts)
}

// successors leaves all steps out of s in m.edges.
func (m *smModel) successors(s *smState) {
	m.edges = m.edges[:0]
	m.deliveries(s)
	for t := range m.cfg.txns {
		m.clientSteps(s, uint8(t))
	}
	m.gcSteps(s)
	m.noise(s)
}

// smResult is what a search found.
type smResult struct {
	states, steps int
	violation     string
	trace         []string // steps to the violation: the shortest there is
	took          time.Duration
}

// smTable is the set of the fingerprints met.
type smTable struct {
	slots []smHash
	n     int
}

func (t *smTable) add(h smHash) bool {
	if 4*t.n >= 3*len(t.slots) {
		old := t.slots
		t.slots = make([]smHash, max(1<<12, 2*len(old)))
		t.n = 0
		for _, o := range old {
			if o != (smHash{}) {
				t.add(o)
			}
		}
	}
	mask := uint64(len(t.slots) - 1)
	for i := h.a & mask; ; i = (i + 1) & mask {
		switch t.slots[i] {
		case smHash{}:
			t.slots[i] = h
			t.n++
			return true
		case h:
			return false
		}
	}
}

// smParent is the state, and its step, from which a state was reached first.
type smParent struct {
	state uint32
	edge  uint16
}

// smLevel holds the states of one level, in pieces, so that it can grow without being copied.
type smLevel struct {
	pieces [][]smState
	n      int
}

const smPiece = 1 << 10

// push adds a state; spare holds pieces to use again.
func (l *smLevel) push(s *smState, spare *[][]smState) {
	if l.n%smPiece == 0 {
		var piece []smState
		if last := len(*spare) - 1; last >= 0 {
			piece, *spare = (*spare)[last][:0], (*spare)[:last]
		} else {
			piece = make([]smState, 0, smPiece)
		}
		l.pieces = append(l.pieces, piece)
	}
	at := l.n / smPiece
	l.pieces[at] = append(l.pieces[at], *s)
	l.n++
}

// search visits every state that can be reached, breadth first, up to the first violation. limit bounds
// the number of states; 0 means none.
func (m *smModel) search(limit int) (r smResult) {
	begun := time.Now()
	defer func() { r.took = time.Since(begun) }()
	first := m.cfg.initialState()
	var seen smTable
	seen.add(first.hash())
	parents := []smParent{{}}
	var level smLevel
	var spare [][]smState
	level.push(&first, &spare)
	base := 0 // number of the level's first state
	for level.n > 0 {
		var next smLevel
		for i := range level.n {
			m.successors(&level.pieces[i/smPiece][i%smPiece])
			if i%smPiece == smPiece-1 {
				spare = append(spare, level.pieces[i/smPiece])
			}
			r.steps += len(m.edges)
			for j := range m.edges {
				e := &m.edges[j]
				if e.violation == "" && !seen.add(e.to.hash()) {
					continue
				}
				parents = append(parents, smParent{state: uint32(base + i), edge: uint16(j)})
				if e.violation == "" {
					e.violation = m.judge(&e.to)
				}
				if e.violation != "" {
					r.states, r.violation = len(parents), e.violation
					r.trace = m.retrace(parents)
					return r
				}
				next.push(&e.to, &spare)
			}
		}
		base += level.n
		level = next
		if limit > 0 && len(parents) > limit {
			break
		}
	}
	r.states = len(parents)
	return r
}

// judge checks a state.
func (m *smModel) judge(s *smState) string {
	m.check(s)
	if m.violation == "" {
		m.checkEnd(s)
	}
	why := m.violation
	m.violation = ""
	return why
}

// retrace returns the steps to the last state reached.
func (m *smModel) retrace(parents []smParent) []string {
	var path []uint16
	for at := len(parents) - 1; at != 0; at = int(parents[at].state) {
		path = append(path, parents[at].edge)
	}
	m.tracing = true
	defer func() { m.tracing = false }()
	s := m.cfg.initialState()
	var trace []string
	for i := len(path) - 1; i >= 0; i-- {
		m.successors(&s)
		e := m.edges[path[i]]
		trace = append(trace, e.what+"\n      "+m.describe(&e.to))
		s = e.to
	}
	return trace
}

// describe formats a state as one line.
func (m *smModel) describe(s *smState) string {
	var b strings.Builder
	fmt.Fprintf(&b, "now=%d.%d ", s.now/smClock, s.now%smClock)
	for k := range m.cfg.keys {
		rec := &s.keys[k]
		fmt.Fprintf(&b, "%s@%d[v%02x r%x c%x", smKeyNames[k], s.at[k], rec.versions, rec.rollbacks, rec.lockCommit)
		if l := &rec.lock; l.owner != 0 {
			fmt.Fprintf(&b, " lock t%d op%d min%d fut%d async=%v state%d", l.owner-1, l.op, l.min, l.forUpdate, l.async, l.state)
		}
		b.WriteString("] ")
	}
	for i := range m.cfg.shards() {
		fmt.Fprintf(&b, "max%d=%d sp=%d ", i, s.shards[i].maxTS, s.shards[i].safePoint)
	}
	for t := range m.cfg.txns {
		x := &s.txns[t]
		fmt.Fprintf(&b, "| t%d pc%d out%d start%d read%d c%d committed%d o%b ok%b lost%b need%b saw%v met%d ask%d ", t, x.pc, x.outcome, x.start, x.read, x.commit, x.committedAt, x.out, x.ok, x.lost, x.need, x.saw, x.metTxn, x.asking)
	}
	fmt.Fprintf(&b, "| %d messages", s.nmsgs)
	return b.String()
}
