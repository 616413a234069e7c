// Package sim runs percodb's transactions in a simulated world with faults, and checks what the clients have observed.
// All code below SQL is production code: percolator.DB, kv.CachingRouter, kv.LocalDirectory, kv.Store over Pebble,
// tso.Local, gc.Controller. Time, the network, the disks' power and the processes are simulated.
//
//	client ─ percolator.DB ─▶ conn ─┐                           ┌─▶ kv.Store ─▶ Pebble ─▶ memory, clones
//	client ─ percolator.DB ─▶ conn ─┼─▶ messages, in no order ──┼─▶ kv.Store ─▶ Pebble    of what was synced
//	client ─ percolator.DB ─▶ conn ─┘        ▲                  └─▶ tso.Local
//	                                         │
//	    the scheduler: when all goroutines wait, draws the next event from the seed: deliver, lose,
//	    repeat, hold back; crash, restart, kill, cut, heal, split, take away, let a sync finish; let time pass
//
// A run executes in a testing/synctest bubble. Its clock does not advance while a goroutine works, so that a hundred
// TTLs pass in a moment, and synctest.Wait returns to the scheduler when all goroutines wait. The scheduler then orders
// the messages in flight by their content, not by their arrival, and decides.
//
// Invariants:
//
//	I1 The seed determines all decisions; those of goroutines other than the scheduler also depend on the
//	   decision's number. A seed replays the same events as long as the code is the same, the goroutines run
//	   on one processor (as in the worker processes of TestSeeds and TestSeed) and Go's own randomness
//	   (select, maps) has no effect; TestSameSeedSameEvents measures to what extent that holds.
//	I2 A request is copied when it is sent. Later changes of the client's memory, or its death, do not change
//	   what arrives.
//	I3 A crash loses some or all of what was not synced. The scheduler decides how long a sync takes; a store
//	   that has crashed answers nothing.
//	I4 At the end all faults are undone, all locks expire, everything is read twice, garbage is collected, and
//	   everything is read again: the three reads must agree, no written key is still locked, and every key can
//	   be locked.
//	I5 The checkers are tested: broken_test.go injects thirty defects, and each must be detected.
//
// Run `go test ./test/sim` (200 seeds, 50 with -short), for more seeds `go test ./test/sim -run TestSeeds -seeds 10000
// -timeout 0`, and to replay one with every event `go test ./test/sim -run TestSeed$ -seed 42 -events`.
//
// In some runs write sets go to files and, in worlds of one process, commit as large ones, slowly (large.go).
// Transactions keep cursors open across statements that wait, lock rows shared, and roll back to savepoints.
//
// In some runs observers derive data from what the clients write (workload4.go); the derived data must equal a recomputation, and
// no change may be delivered by two transactions that commit.
//
// In worlds with a table (table.go, -table) there are no stores: every process has a shard of kv/bigtable, and the messages are its requests to a table in
// memory, row by row. The shard's decisions, predicates and fences meet requests that are lost, repeated and late.
//
// Not covered: SQL, gRPC, real disks and processes.
package sim
