package executor

import "github.com/percodb/percodb/sql/pgerror"

// memory is the account of what a statement's operators hold: sorts, hash tables, materialised
// rows. It counts estimates (row headers, datums, copied bytes), not the allocator's truth.
type memory struct {
	used, limit int64
	scratch     *Scratch // where chunks come from and go to; nil: the heap
}

// grow books n bytes, and refuses what would pass the limit.
func (m *memory) grow(n int64) error {
	if m.used+n > m.limit {
		return pgerror.New(pgerror.OutOfMemory, "statement needs more than its memory limit of %d bytes", m.limit).
			WithHint("Select fewer rows, add an index that yields them in the order needed, or raise the limit.")
	}
	m.used += n
	return nil
}

// crowded reports whether an operator that holds so many bytes should go on in a temporary file: it
// holds half of what the statement may, or little is left and it holds a good part of it. So the
// first operator leaves half to the others, each further one a part of that, and one that holds less
// than a sixteenth is never sent away for what the others have.
func (m *memory) crowded(held int64) bool {
	return held > m.limit/2 || held > m.limit/16 && m.used > m.limit/4*3
}

// shrink gives n bytes back.
func (m *memory) shrink(n int64) { m.used -= n }
