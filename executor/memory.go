package executor

import (
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/pgerror"
)

// statementMemory is the account of what a statement's operators hold: sorts, hash tables, materialised
// rows. It counts estimates (row headers, datums, copied bytes), not the allocator's figures. What it
// holds it draws from the session's account.
type statementMemory struct {
	used int64
	// limit is what operators may hold before they go on in a temporary file; those that cannot may hold
	// most, where that is set.
	limit, most int64
	account     *memory.Account // nil: nothing is drawn
	scratch     *Scratch        // where chunks come from and go to; nil: the heap
}

const (
	// leastLimitBytes is the smallest limit that a small server gives its statements.
	leastLimitBytes = 4 << 20
	// scarceBytes is what an operator may hold although the server's memory runs out.
	scarceBytes = 1 << 20
)

// begin prepares m for a run, with a limit of its own, or, where that is 0, an eighth of the server's
// memory or the default.
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

// grow counts n bytes, and refuses what would exceed the limit, or what the server does not have.
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

// crowded reports whether an operator that holds so many bytes should go on in a temporary file: it
// holds half of what the statement may, or little is left and it holds a good part of it. So the
// first operator leaves half to the others, each further one a part of that, and one that holds less
// than a sixteenth is never sent away for what the others have. Where the server's memory runs out,
// everyone but the smallest goes.
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
