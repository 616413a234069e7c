// Package market is the stock exchange to which the brokerage sends its customers' orders: it lives in
// the driver's process, decides when and at which price trades complete, and tells the market's prices.
//
//	orders ─► Exchange ─► Result ─► a Trade-Result each
//	             │  ▲
//	             │  └── limit orders that a Market-Feed found
//	             └─► tape ─► Feed ─► a Market-Feed for every 20 entries
//
// A market order completes a moment after it arrives. A limit order waits in the database: when the
// price reaches its limit the exchange puts an entry on the tape, the Market-Feed that carries the entry
// finds the order, and the order comes back to be executed. Prices follow a wave that every process
// computes alike from the time of day (gen.Board).
//
// Invariants:
//
//  1. Every Result puts exactly two entries on the tape: its own, and the oldest limit that was reached,
//     or else a security drawn at random. So there is one Market-Feed to ten Trade-Results.
//  2. Time is an argument everywhere but in Emulator.Run, and what is drawn follows from a seed, so that
//     the same calls make the same trades.
//  3. Nothing blocks and nothing is dropped: jobs wait in queues without bound, whose length is how
//     overload is told.
//
// The package does not talk to a server, and does not know whether a job went well.
package market
