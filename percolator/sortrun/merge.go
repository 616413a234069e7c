package sortrun

import "bytes"

// Merge walks over several runs in ascending order; records of equal keys come in the order of their runs.
// Key and Value are valid until the next move. One goroutine's.
type Merge struct {
	heap []ranked
	err  error
}

// ranked is a run's cursor, and the run's position among those merged.
type ranked struct {
	*Cursor
	rank int
}

// NewMerge stands on the first record, if there is one.
func NewMerge(runs []*Run) *Merge {
	m := &Merge{heap: make([]ranked, 0, len(runs))}
	for i, r := range runs {
		c := r.NewCursor()
		if c.First() {
			m.heap = append(m.heap, ranked{c, i})
		} else if c.Err() != nil {
			m.err = c.Err()
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m
}

// Valid says that the merge stands on a record.
func (m *Merge) Valid() bool { return m.err == nil && len(m.heap) > 0 }

// Err returns the failure that ended the walk, or nil.
func (m *Merge) Err() error { return m.err }

// Key is that of the present record.
func (m *Merge) Key() []byte { return m.heap[0].Key() }

// Run is the position of the run that the present record is in.
func (m *Merge) Run() int { return m.heap[0].rank }

// Value is that of the present record.
func (m *Merge) Value() []byte { return m.heap[0].Value() }

// Next moves to the following record.
func (m *Merge) Next() {
	c := m.heap[0]
	if !c.Next() {
		if m.err = c.Err(); m.err != nil {
			return
		}
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.down(0)
}

// Block returns the block of which the present record is the first, if all its records come before those of
// the other runs and it is not marked; else nil.
func (m *Merge) Block() *Block {
	c := m.heap[0].Cursor
	if c.i > 0 {
		return nil
	}
	b := &c.run.blocks[c.at]
	if b.marked {
		return nil
	}
	for i := 1; i < min(3, len(m.heap)); i++ {
		if bytes.Compare(m.heap[i].Key(), b.Last) <= 0 {
			return nil
		}
	}
	return b
}

// PassBlock moves to the record after the block that Block has returned.
func (m *Merge) PassBlock() {
	c := m.heap[0].Cursor
	c.i = len(c.recs) - 1
	m.Next()
}

func (m *Merge) less(i, j int) bool {
	a, b := m.heap[i], m.heap[j]
	if c := bytes.Compare(a.Key(), b.Key()); c != 0 {
		return c < 0
	}
	return a.rank < b.rank
}

func (m *Merge) down(i int) {
	for {
		least := 2*i + 1
		if least >= len(m.heap) {
			return
		}
		if right := least + 1; right < len(m.heap) && m.less(right, least) {
			least = right
		}
		if !m.less(least, i) {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}
