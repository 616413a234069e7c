// Package observers measures observers beside what PostgreSQL's users build in their place: a trigger that inserts into a job table and
// calls NOTIFY, and workers that take jobs with FOR UPDATE SKIP LOCKED.
//
//	Latency     from the change to the commit of its handling, at 1,000 changes/s
//	Throughput  changes handled per second, one a transaction, and a hundred a transaction into counters, with writers beside
//	Writer      CPU time of an UPDATE of an observed table, divided by that of an unobserved one
//	Idle        CPU time of a hundred observers without changes (percodb)
//	Backlog     a million pending changes: catch-up rate and memory (percodb)
//
// Invariants:
//  1. Servers do the same work: a change is handled exactly once, and the derived tables are compared with a recomputation.
//  2. Nothing is compared that was not measured in one run, on one machine.
package observers
