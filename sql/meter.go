package sql

import (
	"context"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/pgerror"
)

// Passes over tokens poll a Meter each time they have seen pollTokens, scans of a text and of the bytes of one token each
// time they have seen pollBytes.
const (
	pollTokens = 1 << 12
	pollMask   = pollTokens - 1
	pollBytes  = 1 << 16
)

// A Meter bounds what a statement costs before it runs: the lexer, the parser and the planner ask it, as they go on,
// whether the statement has been cancelled, and draw memory for what they are about to make. What they draw are estimates
// of live bytes; short statements draw nothing. After an error every call returns it, until Begin.
//
// A nil Meter bounds nothing. Not safe for concurrent use.
type Meter struct {
	ctx    context.Context
	memory *memory.Account
	drawn  int64
	err    error
}

// NewMeter makes a Meter that draws from an account, which may be nil.
func NewMeter(account *memory.Account) *Meter {
	return &Meter{ctx: context.Background(), memory: account}
}

// Begin makes ctx the context of the following calls.
func (m *Meter) Begin(ctx context.Context) { m.ctx, m.err = ctx, nil }

// Poll returns the context's error, or an earlier one.
func (m *Meter) Poll() error {
	if m == nil || m.err != nil {
		return m.Err()
	}
	m.err = m.ctx.Err()
	return m.err
}

// Grow polls and draws n bytes. Errors: the context's, *memory.ExceededError.
func (m *Meter) Grow(n int64) error {
	if err := m.Poll(); err != nil || m == nil {
		return err
	}
	if m.memory != nil {
		m.err = m.memory.Grow(n)
	}
	if m.err == nil {
		m.drawn += n
	}
	return m.err
}

// Shrink gives back n bytes.
func (m *Meter) Shrink(n int64) {
	if m == nil || n == 0 {
		return
	}
	m.drawn -= n
	if m.memory != nil {
		m.memory.Shrink(n)
	}
}

// Drawn is the sum of what was drawn and not given back.
func (m *Meter) Drawn() int64 {
	if m == nil {
		return 0
	}
	return m.drawn
}

// Release gives back what was drawn since Drawn was mark.
func (m *Meter) Release(mark int64) { m.Shrink(m.Drawn() - mark) }

// Take makes the caller the owner of what was drawn since Drawn was mark: it is to be given back to the account.
func (m *Meter) Take(mark int64) int64 {
	n := m.Drawn() - mark
	if m != nil {
		m.drawn = mark
	}
	return n
}

// Err is the first error since Begin.
func (m *Meter) Err() error {
	if m == nil {
		return nil
	}
	return m.err
}

// errStopped stands for a Meter's error where errors have a position. Callers of the package are given the Meter's.
var errStopped = pgerror.New(pgerror.QueryCanceled, "the meter has stopped the statement")

// poll is Poll within the package.
func (m *Meter) poll() *pgerror.Error {
	if m.Poll() != nil {
		return errStopped
	}
	return nil
}

// grow is Grow within the package.
func (m *Meter) grow(n int64) *pgerror.Error {
	if m.Grow(n) != nil {
		return errStopped
	}
	return nil
}

// explain returns the Meter's error in the place of errStopped.
func (m *Meter) explain(err error) error {
	if m != nil && m.err != nil {
		return m.err
	}
	return err
}
