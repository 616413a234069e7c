package executor

import (
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/pgerror"
)

// statementMemory accounts for the memory of a statement's operators: sorts, hash tables, materialised rows. It counts
// estimates (row headers, datums, copied bytes), not the allocator's figures. It reserves the memory from the session's
// account.
type statementMemory struct {
	used int64
	// limit is the memory of operators above which they continue in a temporary file; operators that cannot do so may
	// use up to most, if it is set.
	limit, most int64
	account     *memory.Account // nil: nothing is reserved
	scratch     *Scratch        // where chunks come from and go to; nil: the heap
}

const (
	// leastLimitBytes is the smallest limit that a small server gives its statements.
	leastLimitBytes = 4 << 20
	// scarceBytes is what an operator may keep in memory although the server's memory is exhausted.
	scarceBytes = 1 << 20
)

// begin prepares m for a run, with the given limit or, if it is 0, an eighth of the server's memory or the default.
func (m *statementMemory) begin(limit int64, account *memory.Account, scratch *Scratch) {
	*m = statementMemory{limit: limit, account: account, scratch: scratch}
	if limit > 0 {
		return
	}
	m.limit = defaultMemoryLimitBytes
	if whole := account.PoolLimit(); whole > 0 {
		m.limit = min(m.limit, max(whole/8, leastLimitBytes))
		m.most = whole
	}
}

// end gives back whatever the run has not.
func (m *statementMemory) end() {
	if m.account != nil {
		m.account.Shrink(m.used)
	}
	m.used, m.account, m.scratch = 0, nil, nil
}

// grow charges n bytes, and fails if they exceed the limit, or if the server's memory is exhausted.
func (m *statementMemory) grow(n int64) error {
	if limit := max(m.limit, m.most); m.used+n > limit {
		return pgerror.New(pgerror.OutOfMemory, "statement needs more than its memory limit of %d bytes", limit).
			WithHint("Select fewer rows, add an index that yields them in the order needed, or raise the limit.")
	}
	if m.account != nil {
		if err := m.account.Grow(n); err != nil {
			return err
		}
	}
	m.used += n
	return nil
}

// crowded reports whether an operator that keeps so many bytes should continue in a temporary file: it keeps half of the
// statement's limit, or little is left and it keeps a considerable part of it. Thus the first operator leaves half to
// the others, each further one a part of the rest, and an operator that keeps less than a sixteenth is never affected by
// the others. If the server's memory is exhausted, all but the smallest must continue in a file.
func (m *statementMemory) crowded(held int64) bool {
	return held > m.limit/2 || held > m.limit/16 && m.used > m.limit/4*3 ||
		held > scarceBytes && m.account.Scarce()
}

// shrink gives n bytes back.
func (m *statementMemory) shrink(n int64) {
	m.used -= n
	if m.account != nil {
		m.account.Shrink(n)
	}
}
