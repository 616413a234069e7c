// Package txn runs the transactions of the TPC-E-like workload on one connection to a server.
//
//	Inputs ─► OrderInput, … ─► Session.TradeOrder, … ─► frames of statements ─► results, a Sample
//	                               │    ▲
//	                               │    └ retried, with the same input, after a conflict or a lost connection
//	                               └ after a lost COMMIT: determines the outcome on a new connection
//
// A frame contains statements that do not need each other's results. They are sent in a pipeline (Pipeline) or one by
// one, BEGIN with the first of them and COMMIT with the last.
//
// Invariants:
//
//  1. A method always returns a result and a Sample: errors are in the Sample. It returns at the latest when its
//     context ends.
//  2. A transaction whose COMMIT was not answered is repeated only if the database shows that it did not
//     commit, or if a repetition changes nothing. Otherwise its outcome is Unknown. The COMMIT may still be
//     running during the query of the database: the repetition queries again inside its own transaction, which
//     writes the rows that the first attempt wrote, so that one of the two fails if neither sees the other.
//  3. Amounts are integers in cents and never floats. Lots are consumed by gen.Apply, as in the history before
//     the run.
//  4. All times in rows are the driver's clock, sent as parameters.
//
// The statements are SQL that PostgreSQL and percodb have in common; Probe lists those that a server rejects. They
// follow public ports (DBT-5, oltp1) except for two defects of the ports: a buy that wrote the summary of a sale, and a
// Customer-Position without the accounts that have no holdings.
//
// The package neither schedules transactions (package run) nor acts as the exchange (package market).
package txn
