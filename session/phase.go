package session

import "fmt"

// phase is the state machine of a session: where it stands between and within transactions.
//
//	       share            begin
//	idle ─────────▶ implicit ─────▶ block ◀─────────────┐
//	 ▲ └──────────────begin──────────▶ │ fail           │ rollbackTo
//	 │                                 ▼                │
//	 └───────────────end──────────── failed ────────────┘
//
// The statements of an extended-protocol pipeline share a transaction in the phase idle: PostgreSQL does not count them
// as a transaction block (pipeline.go).
type phase uint8

const (
	// idle: no transaction block is open. A statement is a transaction of its own.
	idle phase = iota
	// implicit: the statements of one simple-protocol text share a transaction, which ends with the text.
	implicit
	// block: BEGIN has opened a transaction block.
	block
	// failed: a statement of the block has failed; only its end or ROLLBACK TO SAVEPOINT may follow.
	failed

	phases
)

// event is what changes the phase.
type event uint8

const (
	// share: a statement of a text with several begins.
	share event = iota
	// begin: BEGIN, or AND CHAIN.
	begin
	// fail: a statement has failed; outside a block its transaction is rolled back.
	fail
	// rollbackTo: ROLLBACK TO SAVEPOINT.
	rollbackTo
	// end: the transaction has been committed or rolled back.
	end

	events
)

// transitions gives the phase that follows an event. impossible marks the events that callers refuse with an error before
// they occur.
var transitions = [phases][events]phase{
	idle:     {share: implicit, begin: block, fail: idle, rollbackTo: impossible, end: idle},
	implicit: {share: implicit, begin: block, fail: idle, rollbackTo: impossible, end: idle},
	block:    {share: block, begin: block, fail: failed, rollbackTo: block, end: idle},
	failed:   {share: failed, begin: impossible, fail: failed, rollbackTo: block, end: idle},
}

const impossible = phases

// on makes the transition of an event.
func (p *phase) on(e event) {
	next := transitions[*p][e]
	if next == impossible {
		panic(fmt.Sprintf("BUG: %v in a session that is %v", e, *p))
	}
	*p = next
}

// explicit reports whether BEGIN has opened the transaction, failed or not.
func (p phase) explicit() bool { return p == block || p == failed }

// shared reports whether the running statement shares its transaction with others of its block or text.
func (p phase) shared() bool { return p != idle }

// status returns the transaction indicator of ReadyForQuery.
func (p phase) status() TxnStatus {
	switch p {
	case block:
		return InBlock
	case failed:
		return Failed
	}
	return Idle
}

func (p phase) String() string {
	return [...]string{idle: "idle", implicit: "implicit", block: "block", failed: "failed"}[p]
}

func (e event) String() string {
	return [...]string{share: "share", begin: "begin", fail: "fail", rollbackTo: "rollback to", end: "end"}[e]
}
