// Package run lets customers, the market and the maintainers of a TPC-E-like database act on a server for
// a while, and says what came of it.
//
//	arrivals ─► customers (Workers) ─► Trade-Order ─► journal ─► market ─┬─► Trade-Result ─► journal
//	   │                │ eight kinds                    ▲               └─► Market-Feed ─► journal ─┐
//	   └ by the clock   └─► report.Recorder              └── limit orders that were found ◄──────────┘
//	     or none                                                   (MEEConns)
//	maintenance, once a minute · aggregation of brokers, where they are counted beside their rows
//
// A run is: cleaning up what the last one left open, the ramp, the measured time, and the end, in which
// what is in flight is finished and what waits is dropped.
//
// Invariants:
//
//  1. Paced, arrivals do not wait for the server: the time of a transaction counts from when it was to
//     start. What a slow server piles up is in its percentiles, and in the verdict.
//  2. Ids of trades are given out once, whatever processes run at the same time or were killed before:
//     they are leased from tpce_meta in blocks, and a block whose lease was not acknowledged is not used.
//  3. What the server acknowledged is in the journal before anything follows from it.
//  4. A server that goes away and comes back does not end a run: sessions connect again, for as long as
//     Outage says, and find out what became of their transactions. One that stays away does, and so does
//     canceling the context; the result of a run that was cut short says so.
//  5. A run has a number, of which there are no others in its database than those of runs that began.
//
// The package judges the run (Valid, Reasons) and lists what makes its result incomparable (Flags); it
// prints nothing, and does not check the database: package check does, after the run.
package run
