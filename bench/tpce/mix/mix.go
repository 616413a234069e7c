// Package mix defines the twelve transactions of the TPC-E-like workload, with the requirements on each: its share
// of the mix and its limit of the response time. It contains only facts and types, shared by the packages that run,
// record and report transactions.
package mix

import "time"

// Kind is one of the transactions, in the order in which reports list them.
type Kind uint8

// The ten transactions of the mix, then the others.
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
	// BrokerAggregation aggregates broker_delta, in the mode in which commissions are written there.
	BrokerAggregation

	Kinds = int(BrokerAggregation) + 1
	// InMix is the number of kinds that belong to the mix; they are the first kinds.
	InMix = int(MarketWatch) + 1
)

// Fact contains the names of a kind and the requirements on it.
type Fact struct {
	Name string // as in the specification: "Trade-Order"
	Flag string // lower case, for flags and JSON: "trade-order"
	Code string // two letters, for the live line: "TO"
	// Share is in hundredths of a percent of all transactions of the mix, 0 outside of it.
	Share int
	// Weight among the 890 of customers' transactions, 0 for transactions that result from orders.
	Weight int
	// Limit is the limit of the ninetieth percentile of response times, 0 for none.
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
	// RolledBack: a Trade-Order that was intended to be rolled back, and was.
	RolledBack
	// AlreadyDone: a retry detected that an earlier attempt, whose answer was lost, had committed.
	AlreadyDone
	// Unknown: the connection was lost after COMMIT was sent, and a query did not determine the outcome.
	Unknown
	// Failed: an error that is not retried, or too many retries.
	Failed
)

// Sample is the measurement of one transaction, for recorders.
type Sample struct {
	Kind Kind
	// Scheduled is the scheduled start (Started, in a closed loop), Started when a worker began it.
	Scheduled, Started, Finished time.Time
	Outcome                      Outcome
	// Aborts has the SQLSTATE of every attempt that was retried ("" for a lost connection).
	Aborts []string
	// RoundTrips is the number of times the last attempt waited for the server.
	RoundTrips int
	// Err is the reason why it failed.
	Err error
}
