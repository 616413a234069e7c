// Package planner turns a statement's tree into a plan: it binds names and types under the catalog,
// rewrites what was asked into what is cheaper, chooses access paths and join orders by statistics,
// and prints plans for EXPLAIN.
//
//	sql/ast ── bind*.go ──▶ rel tree over numbered columns   (names, types, PostgreSQL's errors)
//	        ── rewrite.go ─▶ the same, by named rules         (fold, push filters, unnest, …)
//	        ── access.go, joinorder.go, joins.go, physical*.go ─▶ Node tree with estimates
//	        ── compile.go ─▶ expressions over row ordinals   (planner/expr)
//
// Invariants:
//
//	I1 A plan is plain data, never changed after Build, and shared between sessions.
//	I2 A plan that is to be cached depends on the kinds and slots of slotted literals, never on their
//	   values, which serve estimates only.
//	I3 Whatever the text, Build answers with a plan or an error of PostgreSQL's: it does not panic,
//	   and deep nesting ends in 54001.
//	I4 Join order is dynamic programming for few tables and greedy for many, so that planning time
//	   stays polynomial; a cross product is chosen only where no condition connects.
//
// Not here: reading data (executor), schema changes (ddl), what functions compute (sql/builtin).
package planner
