// Command kill runs percodb's processes under load, kills them with SIGKILL and restarts them, and checks that no
// acknowledged transaction is lost and no read is wrong.
//
//	go run ./test/kill --duration 30m
//	go run ./test/kill --duration 30m --cluster
//	go run ./test/kill --duration 30m --bigtable
//	go run ./test/kill --duration 30m --bigtable --lists --sql 2
//
//	 faults                    workloads (pgx)
//	   │ kill, pause, cut        bank · list append · inserts · counters · index against rows · foreign keys
//	   │                         partitions · triggers · advisory locks · temporary tables · large · observers
//	   ▼                            │ record
//	 processes ◀── SQL ─────────────┘    │
//	   │ data directories                ▼
//	   └──▶ percodb check          test/history: lost? wrong?
//
// Without --cluster there is one process; with it an oracle, three stores and two SQL processes, connected through
// proxies that cut connections or drop what is sent. With --bigtable there are SQL processes over Bigtable's emulator, and
// of their requests one in twenty is refused, lost, late, repeated or delayed. With --lists nothing else happens: no
// process is killed, and only the histories of lists at the three isolation levels are made.
//
// A run consists of rounds of some twenty seconds, each with its own tables. At a round's end all processes run and are
// connected again, the contents of the tables are read, the histories are checked, garbage collection, which runs
// throughout, must finish a round, every process is killed and every data directory verified with `percodb check`.
// Large transactions (large.go) replace all rows of a table of 18 MB: their writes go to a file and, in one process,
// from there to table files that are ingested. Partitions are detached and attached while rows move between them, are
// referenced, and fire triggers (partitioned.go). What triggers keep of rows must be what the rows say, and constraints
// that are checked late hold in every snapshot (triggered.go). An advisory lock never has two holders (advised.go). Nothing
// is left of temporary relations (temporaries.go). What observers derive (observed.go) must equal a recomputation, and
// of the deliveries of a change one may have committed. The last lines are
//
//	observers handled 20411 changes
//	kills met 14 large transactions while they wrote, 9 in prewrite, 5 with files to ingest, 2 that committed
//	57 kills, 81403 transactions, 0 lost, 0 wrong
//
// and the exit code is 1 unless both are 0; the findings, and the paths of the data and the processes' logs, are
// printed before.
//
// Invariants:
//
//	I1 Begin and End of a recorded transaction are read from one counter of this process, before the first
//	   statement is sent and after the last answer.
//	I2 A transaction counts as aborted only if COMMIT was not sent, or the server said so; as
//	   committed only if the server said so. Any other outcome is unknown.
//	I3 An error that no client should receive (an internal one, a constraint that does not exist) is wrong,
//	   whatever the data; so is a transaction that takes 30 s. After 15 s the goroutines of all processes are written to files.
//	I4 History is kept for a second only, and pins last less than some faults, so that versions, locks and
//	   rollback records are removed while transactions may still need them.
//
// The seed determines the choices of the clients and of the faults, but not their timing: a seed repeats the kind of a
// run, not the run. Runs of the simulation (test/sim) repeat exactly.
//
// Not covered: loss of power (the simulation's file system does that) and clock steps.
package main
