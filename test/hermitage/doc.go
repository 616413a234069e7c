// Package hermitage runs the scenarios of Martin Kleppmann's Hermitage
// (https://github.com/ept/hermitage), which show the anomalies that isolation levels allow and
// prevent, over SQL: fourteen scenarios at three levels, on PostgreSQL and on percodb. Three more have
// cursors, shared locks and savepoints.
//
//	testdata/*.txt   a scenario: its steps, and what became of them at each level
//	     │
//	     ├─▶ PostgreSQL, if there is one: must answer as recorded
//	     └─▶ percodb: must answer as PostgreSQL, or as recorded for percodb, with the reason
//
// A file holds schedules, steps of the form "T1: statement". A transaction begins before its first
// step, its statements may have to wait for others, and are then answered below a later step:
//
//	T1: update test set value = 11 where id = 1 → 1 row
//	T2: update test set value = 12 where id = 1 → waits
//	T1: commit → commit
//	T2 → 1 row
//
// Invariants:
//
//	I1 Whether a statement waits is what the server says of its locks, not a matter of time.
//	I2 percodb is at least as strict as PostgreSQL at a level if the transactions that commit there commit here,
//	   and the transactions' reads and the final table are either the same as there, or those of some
//	   serial order of the transactions that committed. Then no anomaly at all has happened.
//	I3 A difference from PostgreSQL is recorded in the scenario's file, with its reason.
//
// `go test ./test/hermitage -rewrite` records anew; it keeps the reasons, and an empty one fails.
//
// Not here: random schedules, which are test/kill's and the simulation's.
package hermitage
