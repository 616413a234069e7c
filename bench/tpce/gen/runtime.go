package gen

import (
	"fmt"
	"math/bits"
	"time"
)

// Rand is a sequence of random numbers for running transactions. It is not safe for concurrent use.
type Rand struct{ r source }

// NewRand returns the sequence of a seed. Sequences of different seeds are independent.
func NewRand(seed uint64) *Rand { return &Rand{r: source(mix64(seed + golden))} }

// Below returns a number in [0, n).
func (r *Rand) Below(n int64) int64 { return r.r.below(n) }

// Between returns a number in [lo, hi].
func (r *Rand) Between(lo, hi int64) int64 { return r.r.between(lo, hi) }

// Percent returns true with a probability of p percent.
func (r *Rand) Percent(p int64) bool { return r.r.percent(p) }

// NonUniform returns a number in [lo, hi]; numbers whose distance from lo has many of the bits of a, shifted
// by s, are more frequent. It is TPC's NURand.
func (r *Rand) NonUniform(lo, hi, a int64, s uint) int64 {
	return (r.Between(lo, hi)|r.Between(0, a)<<s)%(hi-lo+1) + lo
}

// Completion returns the time that an exchange needs for an order: exponential, with a maximum.
func (r *Rand) Completion() time.Duration {
	return time.Duration(min(r.r.exponential(completionDelayMean), completionDelayMax)) * time.Microsecond
}

// PickCustomer draws the customer of a load unit who acts next; load units are numbered from 0.
func (g *Generator) PickCustomer(r *Rand, lu int64) int64 { return pickCustomer(&r.r, lu) }

// AccountsOf returns the first id of a customer's accounts and their number; the ids are consecutive.
func (g *Generator) AccountsOf(customer int64) (first, n int64) {
	_, n = accountsOf(customer)
	return firstAccount(customer), n
}

// Owner returns the customer who owns an account.
func (g *Generator) Owner(accountID int64) int64 { return (accountID-1)/accountIDs + 1 }

// Customer returns a customer's name and tax id.
func (g *Generator) Customer(id int64) Person { return g.person(id) }

// Trader returns a person who may trade on an account: 0 is the owner, the others have the numbers of Terms.
func (g *Generator) Trader(accountID, which int64) Person { return g.trader(accountID, which) }

// Basket returns the securities that an account trades, by number.
func (g *Generator) Basket(accountID int64) []int64 { return g.basket(accountID) }

// Terms are the terms of an order. Prices are cents.
type Terms struct {
	Type         string // of trade_type
	Sell, Market bool
	Qty          int64
	Limit        int64 // 0 for orders at the market's price
	LIFO, Margin bool
	Trader       int64 // 0 is the account's owner
}

// DrawTerms draws the terms of an order on an account.
func (g *Generator) DrawTerms(r *Rand, accountID int64) Terms {
	drawn := drawTerms(&r.r, g.account(accountID).others)
	kind := tradeTypes()[drawn.kind]
	t := Terms{Type: kind.id, Sell: kind.sell, Market: kind.market, Qty: drawn.qty, LIFO: drawn.lifo, Margin: !drawn.cash, Trader: drawn.trader}
	if !kind.market {
		t.Limit = r.Between(minPrice, maxPrice)
	}
	return t
}

// DrawTradeID draws the id of a trade of the load, not uniformly.
func (g *Generator) DrawTradeID(r *Rand) int64 {
	id := r.NonUniform(1, g.MaxTradeID(), 65535, 7)
	if g.IsSkipped(id) {
		id++ // the last id of a load unit is not skipped
	}
	return id
}

// Rolled draws whether an order is rolled back: one in 101 is.
func (r *Rand) Rolled() bool { return r.Below(skipPeriod) == 0 }

// BrokerName returns the name of a broker, 1 to Brokers.
func (g *Generator) BrokerName(id int64) string {
	r := g.at(streamBroker, id)
	return fmt.Sprintf("%s %s %d", word(r.next(), 2), word(r.next(), 3), id)
}

// Brokers returns the number of brokers.
func (g *Generator) Brokers() int64 { return brokersPerLU * g.scale.LoadUnits() }

// Companies returns the number of companies, whose ids begin with 1.
func (g *Generator) Companies() int64 { return companiesPerLU * g.scale.LoadUnits() }

// CompanyName returns a company's name.
func (g *Generator) CompanyName(id int64) string { return companyName(id) }

// Company returns the id of the company that issued a security.
func (g *Generator) Company(security int64) int64 { return g.company(security) }

// Issue returns the name of a security among its company's issues.
func (g *Generator) Issue(security int64) string { return g.issues[security%securitiesPerLU].name() }

// SecurityOf returns the number of the security with a symbol, or -1 if none has it.
func (g *Generator) SecurityOf(symbol string) int64 {
	base, extra, number := symbol, "", 0
	if i := len(symbol) - 3; i >= 4 && symbol[i:i+2] == "PR" {
		base, extra = symbol[:i], symbol[i+2:]
		number = int(extra[0]-'A') + 1
	}
	var company int64
	for _, c := range []byte(base) {
		if c < 'A' || c > 'Z' || len(base) > 8 {
			return -1
		}
		company = company*26 + int64(c-'A')
	}
	lu, j := company/companiesPerLU, int(company%companiesPerLU)
	for i, x := range g.issues {
		if s := lu*securitiesPerLU + int64(i); x.company == j && x.number == number && s < g.securities && g.Symbol(s) == symbol {
			return s
		}
	}
	return -1
}

// SectorNames returns the names of the sectors.
func (g *Generator) SectorNames() []string {
	names := sectorNames()
	return names[:]
}

// IndustryNames returns the names of all industries.
func (g *Generator) IndustryNames() []string {
	var names []string
	for s := range sectors {
		names = append(names, industryNames(s)...)
	}
	return names
}

// DrawDivisionTax returns the id of a tax rate of a division.
func (g *Generator) DrawDivisionTax(r *Rand) string {
	d := r.Below(divisions)
	return g.divisionTax(d, r.Below(divisionBrackets(d))).id
}

// History returns the length of the initial period, in trading time: eight hours a day.
func (g *Generator) History() time.Duration { return time.Duration(g.end()) * time.Microsecond }

// TradingTime returns the date and time that is d of trading time after the beginning of the first day.
func (g *Generator) TradingTime(d time.Duration) time.Time { return wallTime(d.Microseconds()) }

// MarketDate returns the i-th day of daily_market, from 0 to Scale.MarketDays - 1.
func (g *Generator) MarketDate(i int64) time.Time { return marketDate(i) }

// SettlementDays is the number of days between a trade and its payment.
const SettlementDays = settlementDays

// Board is the price of every security while transactions run: the wave of the load at the wall clock, so
// that several drivers use the same prices.
type Board struct {
	wave   Wave
	phases []int64 // by security
}

// Board returns a price board whose waves have the given period, 900 s if 0.
func (g *Generator) Board(period time.Duration) *Board {
	micros := period.Microseconds() / 2 * 2
	if micros <= 0 {
		micros = wavePeriod
	}
	b := &Board{wave: Wave{Period: max(micros, 2002)}, phases: make([]int64, g.securities)}
	for s := range b.phases {
		hi, lo := bits.Mul64(uint64(g.phase(int64(s))), uint64(b.wave.Period))
		phase, _ := bits.Div64(hi, lo, uint64(wavePeriod))
		b.phases[s] = int64(phase)
	}
	return b
}

// Price returns a security's price, in cents.
func (b *Board) Price(at time.Time, security int64) int64 {
	return b.wave.Price(at.UnixMicro(), b.phases[security])
}

// Meets returns the first time, from at on, at which the price meets the limit of an order ("TLB", "TSL": at
// most the limit; "TLS": at least). The limit must be within the bounds of prices.
func (b *Board) Meets(at time.Time, security int64, tradeType string, limit int64) time.Time {
	t := at.UnixMicro()
	limit = min(max(limit, minPrice), maxPrice)
	first := b.wave.FirstAtMost
	if tradeType == tradeTypes()[limitSell].id {
		first = b.wave.FirstAtLeast
	}
	return time.UnixMicro(first(t, b.phases[security], limit))
}

// Execution returns the price at which an order is executed when the board shows a price: limit buys pay
// at most their limit, limit sales receive at least theirs.
func Execution(tradeType string, limit, board int64) int64 {
	switch tradeType {
	case tradeTypes()[limitBuy].id:
		return min(limit, board)
	case tradeTypes()[limitSell].id:
		return max(limit, board)
	}
	return board
}
