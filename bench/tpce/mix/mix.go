// Package mix names the twelve transactions of the TPC-E-like workload, and says what is asked of each:
// its share of the mix and its limit of response time. It holds facts and types that the rooms which run,
// record and report transactions share; it does nothing.
package mix

import "time"

// Kind is one of the transactions, in the order in which reports list them.
type Kind uint8

// The ten transactions of the mix, then those beside it.
const (
	TradeOrder Kind = iota
	TradeResult
	TradeLookup
	TradeUpdate
	TradeStatus
	CustomerPosition
	BrokerVolume
	SecurityDetail
	MarketFeed
	MarketWatch
	// DataMaintenance runs once a minute.
	DataMaintenance
	// TradeCleanup runs before the others.
	TradeCleanup
	// BrokerAggregation adds up broker_delta, where commissions are written beside the broker's row.
	BrokerAggregation

	Kinds = int(BrokerAggregation) + 1
	// InMix is the number of kinds, the first ones, that count in the mix.
	InMix = int(MarketWatch) + 1
)

// Fact is what is asked of a kind.
type Fact struct {
	Name string // as in the specification: "Trade-Order"
	Flag string // lower case, for flags and JSON: "trade-order"
	Code string // two letters, for the live line: "TO"
	// Share is in hundredths of a percent of all transactions of the mix, 0 outside of it.
	Share int
	// Weight among the 890 of those that customers draw, 0 for what follows from orders.
	Weight int
	// Limit of the ninetieth percentile of response times, 0 for none.
	Limit    time.Duration
	ReadOnly bool
}

// Of returns the facts of a kind. Shares and weights are those of public ports (DBT-5, oltp1); the limits
// are from memory of the specification's clause 6.
func Of(k Kind) Fact { return facts[k] }

var facts = [Kinds]Fact{
	TradeOrder:        {"Trade-Order", "trade-order", "TO", 1010, 101, 2 * time.Second, false},
	TradeResult:       {"Trade-Result", "trade-result", "TR", 1000, 0, 2 * time.Second, false},
	TradeLookup:       {"Trade-Lookup", "trade-lookup", "TL", 800, 80, 3 * time.Second, true},
	TradeUpdate:       {"Trade-Update", "trade-update", "TU", 200, 20, 3 * time.Second, false},
	TradeStatus:       {"Trade-Status", "trade-status", "TS", 1900, 190, time.Second, true},
	CustomerPosition:  {"Customer-Position", "customer-position", "CP", 1300, 130, 3 * time.Second, true},
	BrokerVolume:      {"Broker-Volume", "broker-volume", "BV", 490, 49, 3 * time.Second, true},
	SecurityDetail:    {"Security-Detail", "security-detail", "SD", 1400, 140, 3 * time.Second, true},
	MarketFeed:        {"Market-Feed", "market-feed", "MF", 100, 0, 2 * time.Second, false},
	MarketWatch:       {"Market-Watch", "market-watch", "MW", 1800, 180, 3 * time.Second, true},
	DataMaintenance:   {"Data-Maintenance", "data-maintenance", "DM", 0, 0, 0, false},
	TradeCleanup:      {"Trade-Cleanup", "trade-cleanup", "TC", 0, 0, 0, false},
	BrokerAggregation: {"Broker-Aggregation", "broker-aggregation", "BA", 0, 0, 0, false},
}

// String returns the name.
func (k Kind) String() string { return facts[k].Name }

// Outcome is how a transaction ended, after all of its retries.
type Outcome uint8

const (
	// Committed: the server acknowledged it.
	Committed Outcome = iota
	// RolledBack: a Trade-Order that was drawn to be rolled back, and was.
	RolledBack
	// AlreadyDone: a retry found that an earlier attempt, whose answer was lost, had committed.
	AlreadyDone
	// Unknown: the connection was lost after COMMIT was sent, and looking did not settle it.
	Unknown
	// Failed: an error that is not for retrying, or retries used up.
	Failed
)

// Sample is one transaction as it went: what recorders take.
type Sample struct {
	Kind Kind
	// Scheduled is when it was to start (Started, in a closed loop), Started when a worker took it.
	Scheduled, Started, Finished time.Time
	Outcome                      Outcome
	// Aborts has the SQLSTATE of every attempt that was retried ("" for a lost connection).
	Aborts []string
	// RoundTrips is how often the last attempt waited for the server.
	RoundTrips int
	// Err says why it failed.
	Err error
}
