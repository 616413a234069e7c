// Package txn runs the transactions of the TPC-E-like workload on one connection to a server.
//
//	Inputs ─► OrderInput, … ─► Session.TradeOrder, … ─► frames of statements ─► what it found, a Sample
//	                               │    ▲
//	                               │    └ again, with the same input, after a conflict or a lost connection
//	                               └ after a lost COMMIT: looks on a new connection what became of it
//
// A frame holds statements that do not need each other's results. They are sent together (Pipeline) or
// one by one, BEGIN with the first of them and COMMIT with the last.
//
// Invariants:
//
//  1. A method returns what was asked of it and a Sample, whatever the server does: errors are in the
//     Sample. It returns at the latest when its context ends.
//  2. A transaction whose COMMIT was not answered is repeated only when the database shows that it did not
//     commit, or when repeating it changes nothing. Otherwise its outcome is Unknown. The COMMIT may still be
//     under way when the database is asked: the repetition asks again inside its own transaction, which writes
//     what the first attempt wrote, so that one of the two fails if neither sees the other.
//  3. Amounts are integers of cents and never floats. Lots are used up by gen.Apply, as they were for the
//     history before the run.
//  4. All times in rows are of the driver's clock, sent as parameters.
//
// The statements are SQL that PostgreSQL and percodb have in common; Probe lists what a server rejects.
// Written from what public ports show (DBT-5, oltp1), with two of their faults left out: a buy that wrote
// the summary of a sale, and a Customer-Position without the accounts that hold nothing.
//
// The package does not decide when to run what (package run), and does not play the exchange (package
// market).
package txn
