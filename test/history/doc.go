// Package history checks what clients of a transactional store have observed. A test records what each transaction did,
// what it read and which answers it received; a checker returns the anomalies of the literature that the record proves.
// The package depends neither on the store nor on percodb.
//
//	clients ──record──▶ History ──CheckListAppend──▶ versions of each key, from the lists read
//	                                                    │
//	                                 ww, wr, rw, rt edges between transactions
//	                                                    │
//	                                 cycles, by class, shortest first ──▶ []Anomaly
//
// Lists that are only appended to, with unique values, are sufficient: a list that was read is the order of all
// versions before it (Kingsbury and Alvaro, "Elle", VLDB 2020). The edges are
//
//	ww  T1's version of a key was replaced by T2's
//	wr  T2 read T1's version
//	rw  T1 read the version that T2 replaced
//	rt  T1 was acknowledged before T2 began
//
// and the classes are Adya's: G0 has only ww; G1c ww and wr; G-single exactly one rw; G2-item several rw, G2 one of
// them from a predicate. Snapshot isolation allows a cycle only if two of its rw edges are adjacent. That is checked on
// a graph with two nodes for each transaction, its begin B and its commit C (Cerone and Gotsman, "Analysing Snapshot
// Isolation", JACM 2018): ww, wr and rt lead from C to B, rw from B to C, so two adjacent rw are not a path, and every
// cycle is a violation.
//
// Invariants:
//
//	I1 Sound: what is reported has happened under every interpretation of the record. A transaction whose
//	   outcome is unknown counts as committed only if another has read its writes, and its end is never
//	   before another event.
//	I2 A cycle is reported with its edges and the statements of its transactions, and it is minimal.
//	I3 Time and memory grow linearly with the record, except for cycles: a hundred thousand transactions
//	   take about a second.
//
// There are also checkers for records that contain less and are cheaper to make: bank totals, counters, unique inserts,
// indexes, long forks, write skew, monotonic reads, rings.
//
// Not covered: histories without versions (blind writes to registers), whose check is NP-complete. An anomaly that is
// not found may still have happened.
package history
