// Package run runs the customers, the market and the maintenance of a TPC-E-like database against a server for a while,
// and reports the results.
//
//	arrivals ─► customers (Workers) ─► Trade-Order ─► journal ─► market ─┬─► Trade-Result ─► journal
//	   │                │ eight kinds                    ▲               └─► Market-Feed ─► journal ─┐
//	   └ by the clock   └─► report.Recorder              └── limit orders that were found ◄──────────┘
//	     or none                                                   (MEEConns)
//	maintenance, once a minute · aggregation of brokers, where they are counted beside their rows
//
// A run consists of the clean-up after the previous one, the ramp, the measured time, and the end, in which running
// transactions complete and waiting ones are dropped.
//
// Invariants:
//
//  1. With a pace, arrivals do not wait for the server: the time of a transaction counts from its scheduled
//     start. The backlog of a slow server shows in its percentiles, and makes the run invalid.
//  2. Ids of trades are assigned once, even if several processes run at the same time or were killed before:
//     they are leased from tpce_meta in blocks, and a block whose lease was not acknowledged is not used.
//  3. An acknowledgement of the server is in the journal before the run acts on it.
//  4. A temporary outage of the server does not end a run: sessions reconnect, for up to the duration of
//     Outage, and determine the outcomes of their transactions. A longer outage ends the run, and so does
//     canceling the context; the result of a run that ended early says so.
//  5. A run has a number. Every number in a database belongs to a run that began.
//
// The package decides whether the run is valid (Valid, Reasons) and lists what makes its result incomparable (Flags);
// it prints nothing, and does not check the database: package check does, after the run.
package run
