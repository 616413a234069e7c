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
	Symbol         string // "" if Company and Issue say it
	Company, Issue string
	Terms          gen.Terms
	RollBack       bool // the order is entered and then rolled back
}

// OrderResult is an order that was entered: what an exchange must know. Prices are cents.
type OrderResult struct {
	TradeID int64
	Symbol  string
	Type    string // of trade_type
	Market  bool   // goes to the exchange at once; otherwise Market-Feed submits it
	Qty     int64
	Price   int64 // the limit, or the price at which the market was
	// Tax is what the customer would pay if the order were executed now, Assets what the account is worth if
	// the order is on margin.
	Tax, Assets int64
}

// ResultInput is what the exchange says of an order: it was executed, at a price in cents.
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

// FeedInput is a piece of tape.
type FeedInput struct{ Tickers []Ticker }

// Triggered is a limit order that a ticker let go.
type Triggered struct {
	TradeID int64
	Symbol  string
	Type    string
	Qty     int64
	Limit   int64 // cents
}

// FeedResult is what a Market-Feed did: with each ticker, and which orders are submitted now. Both hold
// for what was committed, also when the whole Failed.
type FeedResult struct {
	// Tickers has the outcomes, in the order of the input: Committed, AlreadyDone, Unknown or Failed. After
	// a Failed one, those behind it are Failed too.
	Tickers   []mix.Outcome
	Triggered []Triggered
}

// StatusInput asks for the latest trades of an account.
type StatusInput struct{ Account int64 }

// StatusResult has the ids of those trades, the latest first.
type StatusResult struct{ Trades []int64 }

// PositionInput asks what a customer owns.
type PositionInput struct {
	Customer int64  // 0 if TaxID says who
	TaxID    string // "" if Customer does
	// History asks for the latest trades of one of the accounts found, the Account-th of them.
	History bool
	Account int64
}

// PositionResult is what a customer owns.
type PositionResult struct {
	Customer int64
	Accounts []AccountPosition // the poorest first
	History  int               // rows
}

// AccountPosition is one account; amounts are cents.
type AccountPosition struct{ Account, Balance, Assets int64 }

// VolumeInput asks what orders are open with brokers, in a sector.
type VolumeInput struct {
	Brokers []string
	Sector  string
}

// VolumeResult has the brokers that have such orders.
type VolumeResult struct{ Brokers []string }

// WatchInput asks how the worth of a list of securities has changed since a day: of a customer's watch list,
// of what an account holds, or of an industry. One of the first three is set.
type WatchInput struct {
	Customer, Account int64
	Industry          string
	FirstCompany      int64 // with Industry: the companies asked about
	LastCompany       int64
	Since             time.Time
}

// WatchResult is the change in percent.
type WatchResult struct{ Percent float64 }

// DetailInput asks for everything about a security and its company.
type DetailInput struct {
	Symbol string
	Since  time.Time // of the daily prices
	Days   int64     // how many of them
	News   bool      // the news themselves, not their headlines
}

// DetailResult says how much there was.
type DetailResult struct{ Competitors, Quarters, Days, News int }

// LookupInput asks for trades: by their ids (frame 1), by account and time (2), by security and time (3), or
// for the history of what one trade changed (4).
type LookupInput struct {
	Frame   int
	Trades  []int64 // frame 1
	Account int64   // frames 2 and 4
	Symbol  string  // frame 3
	From    time.Time
	To      time.Time // frames 2 and 3
	Rows    int       // at most so many
}

// LookupResult has the trades that were found; in frame 4 Rows of holding_history.
type LookupResult struct {
	Trades []int64
	Rows   int
}

// UpdateInput asks for trades as LookupInput does, with frames 1 to 3, and changes up to Updates of them.
type UpdateInput struct {
	LookupInput
	Updates int
}

// UpdateResult has the trades that were found, and how many were changed.
type UpdateResult struct {
	Trades  []int64
	Updated int
}

// MaintenanceInput changes something small in one of twelve tables.
type MaintenanceInput struct {
	Table     string
	Account   int64
	Customer  int64 // with table address: 0 if Company's is meant
	Company   int64
	Symbol    string
	Day       int64 // of the month
	Increment int64
	TaxRate   string
}

// MaintenanceResult says how many rows changed.
type MaintenanceResult struct{ Rows int64 }

// CleanupResult says how many trades were cancelled.
type CleanupResult struct{ Pending, Submitted int64 }
