// Package sim runs percodb's transactions against a world that goes wrong, and judges what the
// clients have seen. Everything below SQL is the code that ships: percolator.DB, kv.CachingRouter,
// kv.LocalDirectory, kv.Store over Pebble, tso.Local, gc.Controller. What is simulated is the rest: time,
// the network, the disks' power, and the lives of processes.
//
//	client ─ percolator.DB ─▶ conn ─┐                           ┌─▶ kv.Store ─▶ Pebble ─▶ memory, clones
//	client ─ percolator.DB ─▶ conn ─┼─▶ messages, in no order ──┼─▶ kv.Store ─▶ Pebble    of what was synced
//	client ─ percolator.DB ─▶ conn ─┘        ▲                  └─▶ tso.Local
//	                                         │
//	    the scheduler: when all goroutines wait, draws the next event from the seed: deliver, lose,
//	    repeat, hold back; crash, restart, kill, cut, heal, split, take away, let a sync finish; let time pass
//
// A run lives in a testing/synctest bubble. Its clock stands still while anybody works, so that a
// hundred TTLs pass in a moment, and synctest.Wait tells the scheduler when nobody does. Then it
// looks at the messages under way, in an order of their content, not of their arrival, and decides.
//
// Invariants:
//
//	I1 All decisions come from the seed, and from the number of the decision where goroutines other
//	   than the scheduler make them. A seed replays the same events as long as the code is the same,
//	   the goroutines run on one processor (the worker processes of TestSeeds and TestSeed do) and
//	   Go's own randomness (select, maps) does not show; TestSameSeedSameEvents measures how far
//	   that goes.
//	I2 A request is copied when it is sent. What a client does to its memory afterwards, or its
//	   death, does not change what arrives, however late.
//	I3 A crash loses what was not synced, in part or all of it. Syncs take as long as the scheduler
//	   likes; nothing is answered by a store that has crashed.
//	I4 In the end all is healed, all locks expire, everything is read twice, garbage is collected, and
//	   everything is read again: the three must agree, no written key is locked any more, and every
//	   key can be locked.
//	I5 A checker is only worth what it finds: broken_test.go breaks the world in a dozen ways, and each
//	   must be caught.
//
// Run it: `go test ./test/sim` (200 seeds, 50 with -short), for more
// `go test ./test/sim -run TestSeeds -seeds 10000 -timeout 0`, and to replay one with every event
// `go test ./test/sim -run TestSeed$ -seed 42 -events`.
//
// In some runs write sets go to files and, in worlds of one process, commit as large ones, slowly (large.go).
// Transactions hold cursors open across statements that wait, lock rows shared, and roll back to savepoints.
//
// Not here: SQL, gRPC, real disks and processes.
package sim
