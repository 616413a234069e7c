package gen

import (
	"errors"
	"fmt"

	"github.com/percodb/percodb/bench/tpce/schema"
)

// GeneratorVersion changes whenever the rows of a Scale change.
const GeneratorVersion = 1

// Scale determines the amount of data. Its JSON form is stored in the database.
type Scale struct {
	Customers  int64 `json:"customers"`   // a multiple of 1000
	TradeDays  int64 `json:"trade_days"`  // days of trades before the run
	MarketDays int64 `json:"market_days"` // days in daily_market
	NewsBytes  int64 `json:"news_bytes"`  // length of a news item
	Seed       int64 `json:"seed"`
	// TradesPerCustomer, if not 0, replaces TradeDays; a day has 57.6 trades per customer.
	TradesPerCustomer int64 `json:"trades_per_customer,omitempty"`
	// ShortHistory allows for fewer trades than lookups expect.
	ShortHistory bool `json:"short_history,omitempty"`
}

// Profiles returns the names of the profiles, small to large.
func Profiles() []string { return []string{"tiny", "dev", "bench", "spec"} }

// Profile returns the scale of a profile.
func Profile(name string) (Scale, error) {
	switch name {
	case "tiny":
		return Scale{Customers: 1000, TradeDays: 5, MarketDays: 65, NewsBytes: 500, Seed: 1}, nil
	case "dev":
		return Scale{Customers: 1000, TradeDays: 10, MarketDays: 261, NewsBytes: 2000, Seed: 1}, nil
	case "bench":
		return Scale{Customers: 5000, TradeDays: 10, MarketDays: 261, NewsBytes: 2000, Seed: 1}, nil
	case "spec":
		return Scale{Customers: 5000, TradeDays: specTradeDays, MarketDays: specMarketDays, NewsBytes: specNewsBytes, Seed: 1}, nil
	}
	return Scale{}, fmt.Errorf("profile %q: use one of %v", name, Profiles())
}

// Validate reports what is wrong with the scale.
func (s Scale) Validate() error {
	switch {
	case s.Customers < customersPerLU || s.Customers%customersPerLU != 0 || s.Customers > 100_000_000:
		return fmt.Errorf("%d customers: use a multiple of %d, at most 100 million", s.Customers, customersPerLU)
	case s.TradeDays < 1 || s.TradeDays > 10_000:
		return fmt.Errorf("%d trade days: use 1 to 10000", s.TradeDays)
	case s.TradesPerCustomer < 0 || s.TradesPerCustomer > 600_000:
		return fmt.Errorf("%d trades per customer: use 1 to 600000", s.TradesPerCustomer)
	case s.MarketDays < 31 || s.MarketDays > 10_000:
		return fmt.Errorf("%d market days: use 31 to 10000", s.MarketDays)
	case s.NewsBytes < 300 || s.NewsBytes > 10_000_000:
		return fmt.Errorf("news of %d bytes: use 300 to 10 million", s.NewsBytes)
	case s.tradesPerLU() < minimumTradeDays*tradingDaySecs*2 && !s.ShortHistory:
		return errors.New("a history of less than 5 trade days is too short for lookups; allow it explicitly if they do not matter")
	}
	return nil
}

// LoadUnits returns the number of load units of 1,000 customers.
func (s Scale) LoadUnits() int64 { return s.Customers / customersPerLU }

// tradesPerLU returns the number of trades of one load unit.
func (s Scale) tradesPerLU() int64 {
	if s.TradesPerCustomer > 0 {
		return s.TradesPerCustomer * customersPerLU
	}
	return s.TradeDays * tradingDaySecs * customersPerLU / secondsPerTrade
}

// Rule is the expected size of a table.
type Rule struct {
	Rows int64
	// Tolerance is the permitted deviation in percent. It is negative if there is no rule, because the
	// size depends on how long accounts have been trading.
	Tolerance float64
	Grows     bool // the run adds or deletes rows
}

// Rule returns the rule for a table.
func (s Scale) Rule(t schema.Table) Rule {
	c, trades := s.Customers, s.tradesPerLU()*s.LoadUnits()
	securities := securitiesPerLU * s.LoadUnits()
	switch t {
	case schema.Charge:
		return Rule{Rows: tradeTypeCount * tiers}
	case schema.CommissionRate:
		return Rule{Rows: commissionRates}
	case schema.Exchange:
		return Rule{Rows: exchangeCount}
	case schema.Industry:
		return Rule{Rows: industries}
	case schema.Sector:
		return Rule{Rows: sectors}
	case schema.StatusType:
		return Rule{Rows: statusTypeCount}
	case schema.Taxrate:
		return Rule{Rows: taxRates}
	case schema.TradeType:
		return Rule{Rows: tradeTypeCount}
	case schema.ZipCode:
		return Rule{Rows: zipCodes}
	case schema.Customer, schema.WatchList, schema.NewsItem, schema.NewsXref:
		return Rule{Rows: c} // as many news as customers: two for each of half as many companies
	case schema.CustomerAccount:
		return Rule{Rows: 5 * c, Tolerance: 3}
	case schema.AccountPermission:
		return Rule{Rows: 5 * c * 142 / 100, Tolerance: 3}
	case schema.CustomerTaxrate:
		return Rule{Rows: 2 * c}
	case schema.WatchItem:
		return Rule{Rows: 100 * c, Tolerance: 3}
	case schema.Broker:
		return Rule{Rows: c / 100}
	case schema.Company:
		return Rule{Rows: c / 2}
	case schema.CompanyCompetitor:
		return Rule{Rows: competitors * c / 2}
	case schema.Security, schema.LastTrade:
		return Rule{Rows: securities}
	case schema.Address:
		return Rule{Rows: exchangeCount + c/2 + c}
	case schema.DailyMarket:
		return Rule{Rows: s.MarketDays * securities}
	case schema.Financial:
		return Rule{Rows: quarters * c / 2}
	case schema.Trade, schema.Settlement:
		return Rule{Rows: trades, Grows: true}
	case schema.TradeHistory:
		return Rule{Rows: trades * 24 / 10, Tolerance: 3, Grows: true}
	case schema.CashTransaction:
		return Rule{Rows: trades * 92 / 100, Tolerance: 3, Grows: true}
	case schema.TradeRequest:
		return Rule{Grows: true}
	}
	return Rule{Tolerance: -1, Grows: true} // holding, holding_summary, holding_history
}

// Total returns the approximate number of rows, for a progress bar.
func (s Scale) Total() int64 {
	var total int64
	for t := range schema.Count {
		total += s.Rule(t).Rows
	}
	// Tables without a rule: 1.26 rows of holding_history and 0.28 lots per trade after ten days, nearly
	// ten summaries per account.
	return total + s.tradesPerLU()*s.LoadUnits()*154/100 + 48*s.Customers
}
