// Package market is the stock exchange of the brokerage's orders: it runs in the driver's process, decides when and at
// which price trades complete, and publishes the market's prices.
//
//	orders ─► Exchange ─► Result ─► a Trade-Result each
//	             │  ▲
//	             │  └── limit orders that a Market-Feed found
//	             └─► tape ─► Feed ─► a Market-Feed for every 20 entries
//
// A market order completes shortly after it arrives. A limit order waits in the database: when the price reaches its
// limit the exchange puts an entry on the tape, the Market-Feed with that entry finds the order, and the order is
// executed. Prices follow a wave that every process computes from the time of day (gen.Board).
//
// Invariants:
//
//  1. Every Result puts exactly two entries on the tape: its own, and the oldest limit that was reached,
//     or a random security if there is none. So there is one Market-Feed for ten Trade-Results.
//  2. Time is an argument everywhere except in Emulator.Run, and random numbers follow from a seed, so that
//     the same calls produce the same trades.
//  3. Nothing blocks and nothing is dropped: jobs wait in unbounded queues, whose length shows overload.
//
// The package does not connect to a server, and does not learn whether a job succeeded.
package market
