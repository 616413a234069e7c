// Package scale measures what the Percolator paper's other figures show, on this machine:
//
//	KV     reads and writes of single rows: a bare store, and percodb's layers above it, in this process
//	       and over gRPC (the paper's figure 8)
//	TSO    timestamps per second, and what one costs, in this process and from a process of its own
//	Steps  the brokerage over 1, 2, 4 store processes: processor time per transaction (figure 9's shape)
//
// The first two use the stores, layers and turns of bench/micro. The third starts the processes itself,
// from the binary it is given, on loopback; loads the brokerage into each deployment; runs it; and
// asks bench/tpce/usage what each role's processes used.
//
// All of them share one machine between servers and driver, so rates say little about several
// machines. What carries over are the quotients: rates against the bare store in turns of the same run,
// and processor time per operation.
//
// Invariants:
//  1. Nothing is compared that was not measured in turns within one run, on one machine.
//  2. Processes that were started are stopped when the measuring ends, however it ends.
package scale
