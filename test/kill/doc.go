// Command kill runs percodb as real processes under load, kills them with SIGKILL and restarts them, and
// checks that nothing which was acknowledged is lost and nothing that was read is wrong.
//
//	go run ./test/kill --duration 30m
//	go run ./test/kill --duration 30m --cluster
//
//	 faults                    workloads (pgx)
//	   │ kill, pause, cut        bank · list append · inserts · counters · index against rows · large
//	   ▼                            │ record
//	 processes ◀── SQL ─────────────┘    │
//	   │ data directories                ▼
//	   └──▶ percodb check          test/history: lost? wrong?
//
// Without --cluster there is one process that does everything; with it an oracle, three stores and two
// SQL processes, which reach each other through proxies that cut connections or swallow what is sent.
//
// A run consists of rounds of some twenty seconds, each on tables of its own. At a round's end all
// processes are up again and connected, what the tables hold is read, the histories are checked, garbage
// collection, which goes on all the time, has to come to an end, every process is killed and every data
// directory verified with `percodb check`. Large transactions (large.go) replace all rows of a table of 18 MB: their
// writes go to a file and, in one process, from there to table files that are ingested. The last lines are
//
//	kills met 14 large transactions while they wrote, 9 in prewrite, 5 with files to ingest, 2 that committed
//	57 kills, 81403 transactions, 0 lost, 0 wrong
//
// and the exit code is 1 unless it ends in two zeros; what was found, and where the data and the
// processes' logs are kept, is printed then.
//
// Invariants:
//
//	I1 Begin and End of what is recorded are read from one counter of this process, outside of the
//	   statement's own time on both sides.
//	I2 A transaction counts as aborted only if COMMIT was not sent, or the server said so; as
//	   committed only if the server said so. All else is unknown.
//	I3 An error that a client cannot be expected to meet (an internal one, a constraint that does
//	   not exist) is wrong, whatever became of the data; so is a transaction that takes 30 s.
//	I4 History is kept for a second only, and pins last less than some faults, so that versions, locks and
//	   rollback records are removed under the transactions' feet.
//
// The seed decides what the clients and the faults choose; how they meet is up to the machine, so a seed
// repeats a run's kind rather than the run. Runs that repeat exactly are the simulation's.
//
// Not here: a machine that loses power (the simulation's file system does that); moved clocks.
package main
