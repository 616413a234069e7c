// Package gen makes the data of the TPC-E-like database: customers and their accounts, companies and
// their securities, and the trades of the days before the run.
//
//	Scale ─► New ─► Generator ─► Parts ─► Batch ─► rows of several tables, as COPY's text format
//	                                │
//	                                ├ fixed            nine small tables, the same at any scale
//	                                └ per load unit    market · customers · history
//
// A load unit is 1,000 customers with their 10 brokers, 500 companies and 685 securities. Its history
// is simulated as it would have been traded: orders arrive, limit orders wait for the price, trades
// complete in the order of time and change what the account holds (see Apply).
//
// Invariants:
//
//  1. Every row is a pure function of Scale and of the row's number. Batches of a part come in the same
//     order with the same rows whoever asks, as often as asked, beside whatever other parts. The check
//     and the run derive names, baskets and first balances anew in place of reading them.
//  2. Amounts are integers of cents, rates integers of their last decimal. Nothing is a float, so that
//     rows do not depend on the processor either.
//  3. Trade ids of load unit h are h·span+1 … (h+1)·span; those that IsSkipped are of orders that were
//     rolled back, all others exist.
//  4. Lots of one account and security are all bought or all sold, so their sum is never zero.
//
// All content (names, words, symbols, rates) is this package's own. The workload is not TPC-E and its
// results are not comparable with published ones. What is known of TPC-E is in facts.go, what is known
// from memory only in facts_from_memory.go.
//
// The package does not talk to a server: package load does.
package gen
