// Package plpgsql implements the procedural language PL/pgSQL: its parser, its checks, and its execution.
//
//	source ── parse*.go ──▶ Function: blocks of statements with lines, expressions as SQL texts
//	       ── activation ─▶ variables in frames; each expression and statement is bound when it is first executed
//	       ── Host ───────▶ plans and commands run in the session's transaction
//
// An expression that reads no table is evaluated by its compiled form over the values of the variables that it names. Everything else is
// a statement that the Host runs, with the variables as parameters.
//
// Invariants:
//
//	L1 A text that PostgreSQL 15 refuses when a function is created is refused by Parse, with its SQLSTATE and message.
//	L2 A Function is immutable after Parse. What an execution binds belongs to the Code of one session.
//	L3 An error leaves an activation with the context lines that PostgreSQL gives it.
//	L4 Every loop polls its context. An error that the whole client statement must see, as a cancel or a conflict, enters no handler.
//
// The package begins no transactions and knows no protocol (session).
package plpgsql
