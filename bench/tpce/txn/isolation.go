package txn

import "context"

// Statements that begin transactions.
const (
	beginCommitted      = "BEGIN ISOLATION LEVEL READ COMMITTED"
	beginCommittedRead  = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"
	beginRepeatable     = "BEGIN ISOLATION LEVEL REPEATABLE READ"
	beginRepeatableRead = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	beginSerial         = "BEGIN ISOLATION LEVEL SERIALIZABLE"
	beginSerialRead     = "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"
)

// level returns the argument that the settings select.
func (s *Session) level(snapshot, spec, serializable string) string {
	switch s.set.Isolation {
	case Spec:
		return spec
	case Serializable:
		return serializable
	}
	return snapshot
}

// beginOrder begins Trade-Order, Trade-Update and Market-Feed.
func (s *Session) beginOrder() string {
	return s.level(beginRepeatable, beginRepeatable, beginSerial)
}

// beginResult begins Trade-Result.
func (s *Session) beginResult() string { return s.level(beginRepeatable, beginSerial, beginSerial) }

// beginUpkeep begins transactions outside of the mix.
func (s *Session) beginUpkeep() string {
	return s.level(beginRepeatable, beginCommitted, beginSerial)
}

// beginRead begins read-only transactions of several statements.
func (s *Session) beginRead() string {
	return s.level(beginRepeatableRead, beginCommittedRead, beginSerialRead)
}

// finishRead commits a read-only transaction in its last frame, and sends the frame.
func (s *Session) finishRead(ctx context.Context) error {
	s.frame.commit()
	return s.frame.send(ctx)
}

// sendAlone sends a frame of one query as an implicit transaction, or in an explicit one if it must
// be serializable.
func (s *Session) sendAlone(ctx context.Context) error {
	if s.set.Isolation != Serializable {
		return s.frame.send(ctx)
	}
	s.frame.steps = append([]step{{sql: beginSerialRead, done: anyTag}}, s.frame.steps...)
	return s.finishRead(ctx)
}
