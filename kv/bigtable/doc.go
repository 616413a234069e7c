// Package bigtable is a kv.Shard and a kv.Router over the rows of one Google Bigtable table. Nothing but the rows is
// durable, and no process owns any: any number of processes serve the same table, each with a Shard of its own.
//
//	row         key
//	  l  lock   x+start_ts: exclusive lock; s+start_ts: shared lock
//	  w  write  ^commit_ts: put or delete, and the start_ts of the data
//	  d  data   ^start_ts: value
//	  s  status r+start_ts: rolled back; c+^commit_ts: a lock that committed; f+^ts: records up to ts are collected
//	  n  notify observer+^ts: hop
//
// ^ts is the inverted timestamp, so that the newest comes first. Cell timestamps are 0: Bigtable's clients truncate them to
// milliseconds. docs/bigtable.md draws the layout and has the reasons.
//
// Invariants:
//
//	I1 A change of a row is one conditional mutation, whose predicate is false, or true, only while the records are those that
//	   the decision was made by (predicate.go). The decisions are those of kv/mvcc.
//	I2 A lock is written before its transaction's commit_ts is fetched from the oracle, and a snapshot is fetched before
//	   it is read at. So a reader that finds no lock misses no commit at or below its snapshot, without a store that
//	   remembers reads.
//	I3 While a transaction's prewritten lock is on a row nothing else changes the row but rollback records of others and
//	   notify cells. A cell with a timestamp in its qualifier has one value for ever.
//	I4 Whoever collects records of a row leaves a fence cell in it. A request of a transaction at or below the fence, or
//	   a read, is refused by the row itself, however late it arrives.
//	I5 A conditional request is never repeated by the client; after an error the caller repeats its request, which reads
//	   the row and learns what has happened.
package bigtable
