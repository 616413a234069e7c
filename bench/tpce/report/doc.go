// Package report keeps what a run of the TPC-E-like workload measured, and shows it: the line while it
// runs, the table at its end, a JSON object, and a page.
//
//	workers ──Record──▶ Recorder ──Tick──▶ Point (a line, a piece of the series)
//	                       │
//	                       └──Fill──▶ Result ──▶ WriteTable, WriteFile, WritePage
//	                                   ▲  │
//	                            ReadFile  └──Merge──▶ Result
//
// Times are kept in HdrHistograms of microseconds with three significant digits, which add up: the merged
// result of several drivers is what one recorder that saw all of their samples would have.
//
// Invariants:
//  1. A transaction counts where it finished: in the interval of the series, and in the measured time if
//     it finished inside of it. Its time counts only if it was also scheduled inside of it.
//  2. Response time runs from the scheduled start, so that a driver that cannot keep up shows; service
//     time from the actual one.
//  3. Rates are counts by the seconds in which they were counted, never averages of rates.
//  4. The page needs nothing but itself: what it draws with is in it.
//
// It judges no run: it has the rules by which one is judged (MixWithin, WithinLimit) and keeps the verdict.
package report
