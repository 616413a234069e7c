// Package pgwire converts messages of the PostgreSQL wire protocol 3.0 to calls of a session, and the
// session's results to messages. It contains no SQL. Package pgproto3 reads messages and encodes the rarer ones;
// rows are encoded here, directly into the send buffer.
//
//	client ── bytes ──▶ pgproto3.Backend ──▶ conn (serve.go: one message, one method)
//	                                           │ session.Query, Parse, Bind, Execute, Sync
//	client ◀─ bytes ─── writer (writer.go) ◀───┘ rows, tags, errors
//	                      └ encodes into a session.Buffer
//
// Invariants:
//
//	W1 One goroutine owns a connection; only cancel and shutdown come from others.
//	W2 Bytes leave at ReadyForQuery, at Flush, or when the buffer is large and the session does not keep them back.
//	W3 After an error in the extended protocol everything up to Sync is skipped (55.2.3).
//	W4 Whatever arrives on the socket, the worst outcome is that this connection ends.
//
// Section numbers are those of PostgreSQL 15's manual, chapter 55.
package pgwire
