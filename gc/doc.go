// Package gc decides how far back history is kept, and has what lies further back removed.
//
//	SQL processes                          the process of the oracle
//	Reporter ──oldest transaction, lease──▶ Registry ─▶ Controller ──▶ every shard
//	    ◀──────── Status ──────────────────────────────────┘
//
// A round of the controller, each step done on every shard before the next begins:
//
//	choose    sp = the least of now - life and the oldest transaction that anybody has reported
//	fence     nothing at or below sp is read, begun or prewritten any more
//	resolve   what was begun at or below sp and has left locks is finished, forward or back
//	sync      what was finished survives a power cut
//	collect   versions, rollback records and dropped tables that only snapshots up to sp could need go
//
//	I1 The safe point never goes down, over restarts as well: every shard keeps it, and the controller
//	   keeps it before it tells any.
//	I2 A shard that joins learns the safe point before it serves: it is announced before the list of
//	   shards to be fenced is made.
//	I3 No record that could tell a transaction's fate goes before all of the transaction's locks have
//	   gone, durably, on all shards. A shard that cannot be reached holds up every one.
//	I4 A process pins history from its first report until its lease ends. After a start the controller
//	   waits for one lease, so that it hears from everybody before it chooses. A transaction whose
//	   process was not heard from meets the fence: it fails, and reads nothing wrong.
//
// Not here: what a shard does with the requests, and how it keeps out of the way of other work (kv,
// kv/mvcc); how locks are resolved (percolator). Between processes, gc/rpc carries reports.
package gc
