// Package planner converts a statement's syntax tree into a plan: it resolves names and types with the
// catalog, rewrites the query into an equivalent cheaper one, chooses access paths and join orders by
// statistics, and prints plans for EXPLAIN.
//
//	sql/ast ── bind*.go ──▶ relational algebra (rel) over numbered columns   (names, types, errors)
//	        ── rewrite.go ─▶ equivalent algebra, by named rules (fold, push filters, unnest, …)
//	        ── access.go, joinorder.go, joins.go, physical*.go ─▶ Node tree with estimates
//	        ── compile.go ─▶ expressions over row ordinals   (planner/expr)
//
// Invariants:
//
//	I1 A plan is plain data, is never changed after Build, and may be shared between sessions.
//	I2 A plan that is to be cached depends on the kinds and places of the literals that the plan cache treats as
//	   parameters (slots), never on their values, which are used for estimates only.
//	I3 For every statement Build returns a plan or an error with PostgreSQL's SQLSTATE: it does not panic, and
//	   nesting that is too deep fails with 54001.
//	I4 Join order is chosen by dynamic programming for few tables and greedily for many, so that planning
//	   time stays polynomial; a cross product is chosen only if no condition connects the tables.
//
// The planner does not read tables (executor), change the schema (ddl) or implement functions (sql/builtin).
package planner
