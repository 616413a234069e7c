// Package gc decides how far back history is kept, and has what lies further back removed.
//
//	SQL processes                          the process of the oracle
//	Reporter ──oldest transaction, lease──▶ Registry ─▶ Controller ──▶ every shard
//	    ◀──────── Status ──────────────────────────────────┘
//
// A round of the controller, each step done on every shard that can be reached before the next begins:
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
//	   gone, durably, on all shards.
//	I4 A process pins history from its first report until its lease ends. After a start the controller
//	   waits for one lease, so that it hears from everybody before it chooses. A transaction whose
//	   process was not heard from meets the fence: it fails, and reads nothing wrong.
//
// A shard that cannot be reached takes no part, and keeps its own history. For I3 the others keep the records of all
// transactions that may have a lock somewhere (protect), which are
//
//	on a shard that is away    those with start_ts in (cleared, bound]. cleared is the safe point of the last round
//	                           that has left no lock at or below it there. bound is the lock bound that the
//	                           directory has stored for the shard: it has taken no lock above it, and takes none
//	                           before it has learnt the safe point that was announced (kv/lockbound.go).
//	on the others              those whose locks were left, since only a shard that is away knows their fate.
//
// So a question about the fate of any lock that is yet to be found is answered by records that are all there; the shard
// remembers for which transactions that is so (kv/mvcc/gckept.go). A shard counts as cleared only up to below the oldest
// lock that was left on it. A shard that comes back learns the safe point with its first lock bound; the next round
// resolves what it has, and then protects it no more: what was kept for it goes. A dropped span waits if a part of it is
// away. A shard of which no lock bound is known holds up every one.
//
// Not here: what a shard does with the requests, and how it keeps out of the way of other work (kv,
// kv/mvcc); how locks are resolved (percolator). Between processes, gc/rpc carries reports.
package gc
