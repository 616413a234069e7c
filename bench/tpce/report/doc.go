// Package report stores the measurements of a run of the TPC-E-like workload, and formats them: a line during the run,
// a table at its end, a JSON object, and a page.
//
//	workers ──Record──▶ Recorder ──Tick──▶ Point (a line, a piece of the series)
//	                       │
//	                       └──Fill──▶ Result ──▶ WriteTable, WriteFile, WritePage
//	                                   ▲  │
//	                            ReadFile  └──Merge──▶ Result
//
// Times are stored in HdrHistograms of microseconds with three significant digits, which can be added: the merged
// result of several drivers equals that of one recorder with all of their samples.
//
// Invariants:
//  1. A transaction counts at its end: in that interval of the series, and in the measured time if the end is
//     inside. Its response time counts only if its scheduled start is inside, too.
//  2. Response time begins at the scheduled start, so that it shows a driver that does not keep up; service
//     time begins at the actual start.
//  3. Rates are counts divided by the seconds in which they were counted, never averages of rates.
//  4. The page is self-contained: it includes its scripts and styles.
//
// It does not decide whether a run is valid: it contains the rules (MixWithin, WithinLimit) and stores the verdict.
package report
