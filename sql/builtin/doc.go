// Package builtin implements what PostgreSQL keeps in pg_proc, pg_operator, pg_cast and pg_aggregate: the functions,
// operators, casts and aggregates on the types of package types, and overload resolution.
//
//	planner   ResolveFunc, ResolveOperator, ResolveAggregate, ResolveSetFunc, FindCast, CommonTypeIn
//	              │  (once per plan)
//	              ▼
//	          *Overload, *Cast, *Aggregate, *SetFunc          immutable, shared by all sessions
//	              │  (once per row)
//	              ▼
//	executor  Fn(env, args), Apply(env, d), Accumulator.Add   env: one per statement
//
// Invariants:
//  1. Resolution is PostgreSQL's: exact match, then implicit casts, then the preferred types of
//     categories, then the other side's type for literals of type unknown. Overload.Args tells to
//     which types the caller must coerce the arguments.
//  2. A Strict overload's Fn is never called with a NULL: the caller returns NULL.
//  3. A Fn does not keep args or what they alias, and its result may alias both.
//  4. Everything returned by a Resolve function is safe for concurrent use; an Accumulator, a row
//     iterator and an Env are one goroutine's.
//  5. The arithmetic that the planner evaluates inline (AddInt4, DivNumeric, …) is the same function
//     the overloads call.
//  6. Errors are *pgerror.Error with PostgreSQL's SQLSTATE and message.
//
// It evaluates no expressions: laziness (AND, OR, CASE, COALESCE), comparison with ANY and ALL, row
// comparison and subqueries are the planner's. Nothing here reads or writes tables; what needs the
// catalog, sequences or the session goes through the interfaces of Env.
package builtin
