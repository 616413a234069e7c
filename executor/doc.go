// Package executor executes a plan as a tree of operators within one transaction.
//
//	planner.Plan ──NewRunner──▶ Runner ──Bind(Runtime), Open──▶ Next … Next ──▶ rows
//
//	    project            each operator pulls rows from its inputs, one at a time;
//	       │               a row is valid until the next call of the operator's Next
//	    hashJoin ─ keeps the rows of its build side
//	     │     │
//	   scan  lookupJoin    the transaction reads and writes pages and groups of keys
//	     │     │
//	   percolator.Reader, Writer        rowenc encodes and decodes keys and values
//
// Operators pass single rows and reuse them. Batches are used where they save network round trips: in pages
// of scans, in scans of many spans at once (= ANY over a key's prefix, lookup joins; see lookahead.go) and in
// groups of point reads (scans with fetch, lookup joins, INSERT … ON CONFLICT). Groups start small and double.
//
// An aggregate, a TopN or the hash table of a join over a scan does not pull rows: the reader calls it with every pair (feed.go), in several goroutines where the table is
// large (parallel.go).
//
// Invariants:
//
//	E1 A returned row is valid until the next call of the operator's Next or Close; a caller that keeps it
//	   longer copies it. With the build tag invariants every operator is wrapped in the type checked, which verifies this.
//	E2 An operator can be opened again after Close: subqueries and the right side of Apply run on one tree
//	   for all outer rows, and a prepared statement reuses one Runner.
//	E3 A statement does not see its own writes. They are deferred to its end (writeSink) except where that
//	   makes no difference: for one row, for an INSERT that does not read its table, and for changes along a
//	   single iterator that insert no key into a unique index. An INSERT whose input may read the table reads all of its
//	   input before it writes.
//	   Changes in WITH items write when all of the statement has been run, in the order in which they ran; until then a
//	   map of pending changes shows each of them what the others have done to a row (Runner.modify).
//	E4 Uniqueness holds at the end of the statement, with deletions applied before insertions. The statement
//	   checks it if Runtime.EagerUnique is set; otherwise the commit does, and UniqueViolation converts
//	   its *mvcc.KeyExistsError into the client's error.
//	E5 Memory that an operator keeps is charged to the statement's memory account, which fails with 53200
//	   at its limit. Sorts, hash joins, grouping, aggregates with ORDER BY, windows and distinct move their rows to a temporary file before
//	   that (memory.crowded), so that memory remains for the other operators. INTERSECT, EXCEPT, WITH items
//	   and the inner rows of nested loops do not.
//	E6 Every loop that may run long without returning a row checks its context.
//	E7 A worker (parallel.go) shares nothing with the session's goroutine but the plan, the spans to be read and the memory pool.
//
// The executor does not choose plans (planner), begin or end transactions, or retry statements (session).
package executor
