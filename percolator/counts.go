package percolator

// Counts are the sizes of what an open transaction carries, for an operator to look at.
type Counts struct {
	Reads  int // spans recorded, to see later whether they have changed
	Locks  int // keys locked pessimistically
	Writes int // changes in the write buffer
}

// Counts returns the transaction's. The transaction's goroutine alone may ask.
func (t *Txn) Counts() Counts {
	c := Counts{Writes: t.buf.len()}
	if t.locks != nil {
		c.Locks = len(t.locks.held)
	}
	if t.reads != nil {
		c.Reads = len(t.reads.spans)
	}
	return c
}
