// Package history judges what clients of a transactional store have seen. A test records what each
// transaction did, read and was told; a checker says which of the anomalies of the literature the
// record proves. It knows nothing of how the store works, and nothing of percodb.
//
//	clients ──record──▶ History ──CheckListAppend──▶ versions of each key, from the lists read
//	                                                    │
//	                                 ww, wr, rw, rt edges between transactions
//	                                                    │
//	                                 cycles, by class, shortest first ──▶ []Anomaly
//
// Lists that are only appended to, with values that are never appended twice, tell everything: a list
// read is the whole order of the versions before it (Kingsbury and Alvaro, "Elle", VLDB 2020). Then
//
//	ww  T1's version of a key was replaced by T2's
//	wr  T2 read T1's version
//	rw  T1 read the version that T2 replaced
//	rt  T1 was acknowledged before T2 began
//
// and the classes are Adya's: G0 has only ww; G1c ww and wr; G-single exactly one rw; G2-item several
// rw, G2 one of them from a predicate. Snapshot isolation allows a cycle only if two rw follow each
// other in it. That is checked on a graph with two nodes for each transaction, its beginning B and its
// commit C (Cerone and Gotsman, "Analysing Snapshot Isolation", JACM 2018): ww, wr and rt lead from C to
// B, rw from B to C, so two rw in a row are no path, and every cycle is a violation.
//
// Invariants:
//
//	I1 Sound: what is reported has happened under every reading of the record. A transaction whose
//	   outcome is unknown counts as committed only if somebody has seen its writes, and its end is
//	   never before anything else.
//	I2 A cycle is reported with the edges it consists of and what each transaction did, and no part
//	   of it can be left out.
//	I3 Time and memory grow linearly with the record, cycles found apart: a hundred thousand
//	   transactions take about a second.
//
// Beside lists, there are checkers for records that say less and are cheaper to make: bank totals,
// counters, unique inserts, indexes, long forks, write skew, monotonic reads, rings.
//
// Not here: proving a record right for histories without versions (registers written blindly), which is
// NP-complete. What is not found may still have happened.
package history
