// Package executor runs a plan as a tree of operators against one transaction.
//
//	planner.Plan ──NewRunner──▶ Runner ──Bind(Runtime), Open──▶ Next … Next ──▶ rows
//
//	    project            each operator pulls rows from those below it, one at a time;
//	       │               a row is valid until the operator's following Next
//	    hashJoin ─ build side kept
//	     │     │
//	   scan  lookupJoin    reads and writes go to the transaction: pages and groups of keys
//	     │     │
//	   percolator.Reader, Writer        keys and values made and read by rowenc
//
// Rows are reused, not batched: what is gained by batches is gained where the network is, in pages
// of scans, in scans of many spans at once (= ANY over a key's prefix, lookup joins; see lookahead) and in
// groups of point reads inside scans with fetch, lookup joins and INSERT … ON CONFLICT. Groups start
// small and double.
//
// Invariants:
//
//	E1 A row handed out stays valid until the operator's next Next or Close; whoever keeps it longer
//	   copies it. Builds with invariants wrap every operator in checked, which enforces it.
//	E2 After Close an operator may be opened again: subqueries and the right side of Apply run once
//	   per outer row on one tree, prepared statements on one Runner.
//	E3 A statement does not see its own writes. Changes of more than one row are held back to its
//	   end (writeSink) unless one iterator is all it reads, an INSERT that may read its table reads
//	   all of it first.
//	E4 Uniqueness holds at the statement's end, deletions counted before insertions: eagerly where
//	   Runtime.EagerUnique asks for it, else by the commit, whose *mvcc.KeyExistsError UniqueViolation
//	   explains.
//	E5 What an operator keeps is booked with the statement's memory account, which refuses with
//	   53200. Sorts, hash joins, groups and distinct rows go on in a temporary file before that
//	   (memory.crowded), so that each leaves room to the others; INTERSECT, EXCEPT, WITH items and the
//	   inner rows of nested loops do not.
//	E6 Every loop that may run long without yielding a row looks at its context.
//
// It decides nothing about how to run a query (planner), begins and ends no transaction, and retries
// nothing (session).
package executor
