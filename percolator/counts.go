package percolator

// Counts are the sizes of an open transaction, for operators.
type Counts struct {
	Reads  int // spans recorded for verification
	Locks  int // keys locked pessimistically
	Writes int // changes in the write buffer
}

// Counts returns the transaction's sizes. Only the transaction's goroutine may call it.
func (t *Txn) Counts() Counts {
	c := Counts{Writes: t.buf.len()}
	if t.locks != nil {
		c.Locks = t.locks.len()
	}
	if t.reads != nil {
		c.Reads = len(t.reads.spans)
	}
	return c
}
