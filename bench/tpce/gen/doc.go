// Package gen generates the data of the TPC-E-like database: customers and their accounts, companies and their
// securities, and the trades of the days before the run.
//
//	Scale ─► New ─► Generator ─► Parts ─► Batch ─► rows of several tables, as COPY's text format
//	                                │
//	                                ├ fixed            nine small tables, the same at any scale
//	                                └ per load unit    market · customers · history
//
// A load unit is 1,000 customers with their 10 brokers, 500 companies and 685 securities. Its history is simulated:
// orders arrive, limit orders wait for the price, trades complete in the order of time and change the account's
// holdings (see Apply).
//
// Invariants:
//
//  1. Every row is a pure function of Scale and of the row's number. Each call of a part produces the same
//     batches, with the same rows in the same order, also when other parts run at the same time. The check
//     and the run recompute names, baskets and initial balances instead of reading them.
//  2. Amounts are integers in cents, rates integers in units of their last decimal. There are no floats, so
//     rows do not depend on the processor.
//  3. Trade ids of load unit h are h·span+1 … (h+1)·span. Ids for which IsSkipped is true belong to orders
//     that were rolled back; all others exist.
//  4. Lots of one account and security are all bought or all sold, so their sum is never zero.
//
// All content (names, words, symbols, rates) is this package's own. The workload is not TPC-E and its results are not
// comparable with published ones. Verified facts about TPC-E are in facts.go, those from memory in
// facts_from_memory.go.
//
// The package does not connect to a server: package load does.
package gen
