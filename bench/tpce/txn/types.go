package txn

import (
	"time"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/mix"
)

// OrderInput is a customer's order. It names the security by its symbol, or by company and issue.
type OrderInput struct {
	Account        int64
	Trader         gen.Person
	Symbol         string // "" if Company and Issue name the security
	Company, Issue string
	Terms          gen.Terms
	RollBack       bool // the order is entered and then rolled back
}

// OrderResult is an order that was entered, for the exchange. Prices are cents.
type OrderResult struct {
	TradeID int64
	Symbol  string
	Type    string // of trade_type
	Market  bool   // is submitted to the exchange at once; otherwise Market-Feed submits it
	Qty     int64
	Price   int64 // the limit, or the market's price
	// Tax is the customer's tax if the order were executed now, Assets the value of the account if
	// the order is on margin.
	Tax, Assets int64
}

// ResultInput is an order's execution by the exchange, with the price in cents.
type ResultInput struct {
	TradeID int64
	Price   int64
}

// ResultOutput is a completed trade.
type ResultOutput struct {
	Account int64
	Symbol  string
	Qty     int64
	Balance int64 // of the account, cents
}

// Ticker is a trade on the exchange's tape.
type Ticker struct {
	Symbol string
	Price  int64 // cents
	Qty    int64
}

// FeedInput is a section of the tape.
type FeedInput struct{ Tickers []Ticker }

// Triggered is a limit order whose limit a ticker has met.
type Triggered struct {
	TradeID int64
	Symbol  string
	Type    string
	Qty     int64
	Limit   int64 // cents
}

// FeedResult contains the outcomes of a Market-Feed's tickers, and the orders to be submitted. Both are
// valid for committed transactions even if the Market-Feed Failed.
type FeedResult struct {
	// Tickers has the outcomes, in the order of the input: Committed, AlreadyDone, Unknown or Failed. All
	// tickers after a Failed one are Failed.
	Tickers   []mix.Outcome
	Triggered []Triggered
}

// StatusInput requests the latest trades of an account.
type StatusInput struct{ Account int64 }

// StatusResult contains the ids of those trades, the latest first.
type StatusResult struct{ Trades []int64 }

// PositionInput requests the accounts of a customer.
type PositionInput struct {
	Customer int64  // 0 if TaxID identifies the customer
	TaxID    string // "" if Customer is set
	// History requests the latest trades of the Account-th of the accounts found.
	History bool
	Account int64
}

// PositionResult contains the accounts of a customer.
type PositionResult struct {
	Customer int64
	Accounts []AccountPosition // by ascending assets
	History  int               // rows
}

// AccountPosition is one account; amounts are cents.
type AccountPosition struct{ Account, Balance, Assets int64 }

// VolumeInput requests the open orders of brokers in a sector.
type VolumeInput struct {
	Brokers []string
	Sector  string
}

// VolumeResult contains the brokers that have such orders.
type VolumeResult struct{ Brokers []string }

// WatchInput requests the change of the value of a list of securities since a day: of a customer's watch list,
// of an account's holdings, or of an industry. One of the first three is set.
type WatchInput struct {
	Customer, Account int64
	Industry          string
	FirstCompany      int64 // with Industry: the range of companies
	LastCompany       int64
	Since             time.Time
}

// WatchResult is the change in percent.
type WatchResult struct{ Percent float64 }

// DetailInput requests all data of a security and its company.
type DetailInput struct {
	Symbol string
	Since  time.Time // of the daily prices
	Days   int64     // how many of them
	News   bool      // the full news, not their headlines
}

// DetailResult contains the numbers of rows.
type DetailResult struct{ Competitors, Quarters, Days, News int }

// LookupInput requests trades: by their ids (frame 1), by account and time (2), by security and time (3), or
// the history of the lots that one trade changed (4).
type LookupInput struct {
	Frame   int
	Trades  []int64 // frame 1
	Account int64   // frames 2 and 4
	Symbol  string  // frame 3
	From    time.Time
	To      time.Time // frames 2 and 3
	Rows    int       // the maximum number
}

// LookupResult contains the trades found; in frame 4 Rows is the number of rows of holding_history.
type LookupResult struct {
	Trades []int64
	Rows   int
}

// UpdateInput requests trades like LookupInput, with frames 1 to 3, and changes up to Updates of them.
type UpdateInput struct {
	LookupInput
	Updates int
}

// UpdateResult contains the trades found, and the number of changed ones.
type UpdateResult struct {
	Trades  []int64
	Updated int
}

// MaintenanceInput requests a small change to one of twelve tables.
type MaintenanceInput struct {
	Table     string
	Account   int64
	Customer  int64 // with table address: 0 if it is the Company's address
	Company   int64
	Symbol    string
	Day       int64 // of the month
	Increment int64
	TaxRate   string
}

// MaintenanceResult contains the number of changed rows.
type MaintenanceResult struct{ Rows int64 }

// CleanupResult contains the numbers of cancelled trades.
type CleanupResult struct{ Pending, Submitted int64 }
