package txn

import (
	"slices"
	"time"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/schema"
)

// InputOptions select the customers who act, and their transactions.
type InputOptions struct {
	// LoadUnits is the number of load units that act, the first ones; all if 0.
	LoadUnits int64
	// FirstOwn and OwnUnits are this driver's own load units, to which PartitionPercent of its customers
	// belong; there is no partition if OwnUnits is 0.
	FirstOwn, OwnUnits int64
	PartitionPercent   int64
	// Weights replace those of the mix, unless all are 0.
	Weights [mix.Kinds]int
}

// Inputs draws the inputs of transactions. It is not safe for concurrent use: every worker has its own.
type Inputs struct {
	g       *gen.Generator
	r       *gen.Rand
	opt     InputOptions
	total   int
	lobbies []string // industry names
	sectors []string
}

// NewInputs returns the inputs of a seed. Inputs of different seeds are independent.
func NewInputs(g *gen.Generator, seed uint64, opt InputOptions) *Inputs {
	in := &Inputs{g: g, r: gen.NewRand(seed), opt: opt, lobbies: g.IndustryNames(), sectors: g.SectorNames()}
	if opt.LoadUnits <= 0 || opt.LoadUnits > g.Scale().LoadUnits() {
		in.opt.LoadUnits = g.Scale().LoadUnits()
	}
	if in.opt.Weights == [mix.Kinds]int{} {
		for k := range mix.Kinds {
			in.opt.Weights[k] = mix.Of(mix.Kind(k)).Weight
		}
	}
	for _, w := range in.opt.Weights {
		in.total += w
	}
	return in
}

// Kind draws the kind of a customer's transaction.
func (in *Inputs) Kind() mix.Kind {
	n := int(in.r.Below(int64(in.total)))
	for k, w := range in.opt.Weights {
		if n < w {
			return mix.Kind(k)
		}
		n -= w
	}
	return mix.TradeStatus // not reached: the weights sum to total
}

// customer draws the customer who acts.
func (in *Inputs) customer() int64 {
	lu := in.r.Below(in.opt.LoadUnits)
	if in.opt.OwnUnits > 0 && in.r.Percent(in.opt.PartitionPercent) {
		lu = in.opt.FirstOwn + in.r.Below(in.opt.OwnUnits)
	}
	return in.g.PickCustomer(in.r, lu)
}

func (in *Inputs) account() int64 {
	first, n := in.g.AccountsOf(in.customer())
	return first + in.r.Below(n)
}

func (in *Inputs) symbol() string { return in.g.Symbol(in.r.Below(in.g.Securities())) }

// Order draws an order.
func (in *Inputs) Order() OrderInput {
	o := OrderInput{Account: in.account()}
	basket := in.g.Basket(o.Account)
	security := basket[in.r.Below(int64(len(basket)))]
	if in.r.Percent(percentBySymbol) {
		o.Symbol = in.g.Symbol(security)
	} else {
		o.Company, o.Issue = in.g.CompanyName(in.g.Company(security)), in.g.Issue(security)
	}
	o.Terms = in.g.DrawTerms(in.r, o.Account)
	o.Trader = in.g.Trader(o.Account, o.Terms.Trader)
	o.RollBack = in.r.Rolled()
	return o
}

// Status draws an account.
func (in *Inputs) Status() StatusInput { return StatusInput{Account: in.account()} }

// Position draws a customer.
func (in *Inputs) Position() PositionInput {
	c := in.customer()
	p := PositionInput{Customer: c}
	if in.r.Percent(percentByTaxID) {
		p = PositionInput{TaxID: in.g.Customer(c).TaxID}
	}
	_, n := in.g.AccountsOf(c)
	p.History, p.Account = in.r.Percent(percentHistory), in.r.Below(n)
	return p
}

// Volume draws brokers and a sector.
func (in *Inputs) Volume() VolumeInput {
	v := VolumeInput{Sector: in.sectors[in.r.Below(int64(len(in.sectors)))]}
	all := in.g.Brokers()
	for _, b := range in.distinct(min(in.r.Between(brokersMin, brokersMax), all), func() int64 { return in.r.Between(1, all) }) {
		v.Brokers = append(v.Brokers, in.g.BrokerName(b))
	}
	return v
}

// distinct draws n different numbers.
func (in *Inputs) distinct(n int64, draw func() int64) []int64 {
	drawn := make([]int64, 0, n)
	for int64(len(drawn)) < n {
		if v := draw(); !slices.Contains(drawn, v) {
			drawn = append(drawn, v)
		}
	}
	return drawn
}

// Watch draws a list of securities and a day.
func (in *Inputs) Watch() WatchInput {
	w := WatchInput{Since: in.watchDay()}
	switch p := in.r.Below(100); {
	case p < percentWatchList:
		w.Customer = in.customer()
	case p < percentWatchList+percentWatchAccount:
		w.Account = in.account()
	default:
		w.Industry = in.lobbies[in.r.Below(int64(len(in.lobbies)))]
		span := min(watchCompanies, in.g.Companies())
		w.FirstCompany = in.r.Between(1, in.g.Companies()-span+1)
		w.LastCompany = w.FirstCompany + span - 1
	}
	return w
}

// watchDay draws a day of daily_market: after the first five weeks, and on Fridays most often.
func (in *Inputs) watchDay() time.Time {
	weeks := in.g.Scale().MarketDays / 5
	var a int64
	for a*2+1+watchWeeks < weeks && a < 255 {
		a = a*2 + 1
	}
	week := in.r.NonUniform(0, a, a, 0) + watchWeeks
	day, p := int64(0), in.r.Below(100)
	for _, percent := range [4]int64{20, 7, 6, 7} { // Monday to Thursday, in percent
		if p < percent {
			break
		}
		p -= percent
		day++
	}
	return in.g.MarketDate(week*5 + day)
}

// Detail draws a security.
func (in *Inputs) Detail() DetailInput {
	d := DetailInput{Symbol: in.symbol(), Days: in.r.Between(detailDaysMin, detailDaysMax), News: in.r.Percent(percentNews)}
	d.Since = in.g.MarketDate(in.r.Between(0, in.g.Scale().MarketDays-d.Days))
	return d
}

// Lookup draws a Trade-Lookup.
func (in *Inputs) Lookup() LookupInput {
	frame := 4
	switch p := in.r.Below(100); {
	case p < 30:
		frame = 1
	case p < 60:
		frame = 2
	case p < 90:
		frame = 3
	}
	return in.lookup(frame)
}

// Update draws a Trade-Update.
func (in *Inputs) Update() UpdateInput {
	frame := 3
	switch p := in.r.Below(100); {
	case p < 33:
		frame = 1
	case p < 66:
		frame = 2
	}
	return UpdateInput{LookupInput: in.lookup(frame), Updates: lookupRows}
}

func (in *Inputs) lookup(frame int) LookupInput {
	l := LookupInput{Frame: frame, Rows: lookupRows, To: in.g.TradingTime(in.g.History()).Add(lookupAfter)}
	switch frame {
	case 1:
		l.Trades = in.distinct(lookupRows, func() int64 { return in.g.DrawTradeID(in.r) })
		slices.Sort(l.Trades)
	case 2:
		l.Account, l.From = in.account(), in.since(lookupBackAccount)
	case 3:
		l.Symbol, l.From = in.symbol(), in.since(lookupBackSymbol)
	default:
		l.Account, l.From = in.account(), in.since(lookupBackHistory)
	}
	return l
}

// since draws a time at least `back` before the end of the history, or a tenth of the history if that is
// shorter.
func (in *Inputs) since(back time.Duration) time.Time {
	whole := in.g.History()
	if in.g.Scale().ShortHistory {
		back = min(back, whole/10)
	}
	ms := in.r.NonUniform(1, (whole - back).Milliseconds(), 4095, 16)
	return in.g.TradingTime(time.Duration(ms) * time.Millisecond)
}

// maintained are the tables of Data-Maintenance, in their order.
var maintained = [12]schema.Table{schema.AccountPermission, schema.Address, schema.Company, schema.Customer,
	schema.CustomerTaxrate, schema.DailyMarket, schema.Exchange, schema.Financial, schema.NewsItem,
	schema.Security, schema.Taxrate, schema.WatchItem}

// Maintenance draws the n-th Data-Maintenance: tables alternate.
func (in *Inputs) Maintenance(n int) MaintenanceInput {
	m := MaintenanceInput{Table: maintained[n%len(maintained)].String(), Account: in.account(), Customer: in.customer(),
		Company: in.r.Between(1, in.g.Companies()), Symbol: in.symbol(), Day: in.r.Between(1, 31),
		Increment: in.r.Between(1, 3), TaxRate: in.g.DrawDivisionTax(in.r)}
	if in.r.Percent(50) {
		m.Increment = -m.Increment
	}
	if m.Table == schema.Address.String() && !in.r.Percent(percentCustomerAddress) {
		m.Customer = 0
	}
	return m
}

// Parameters of the inputs, taken from public ports (DBT-5, oltp1), shares in percent.
const (
	percentBySymbol        = 60
	percentByTaxID         = 50
	percentHistory         = 50
	brokersMin             = 20
	brokersMax             = 40
	percentWatchList       = 60
	percentWatchAccount    = 35 // the rest watches an industry
	watchCompanies         = 5000
	watchWeeks             = 5
	detailDaysMin          = 5
	detailDaysMax          = 20
	percentNews            = 1
	percentCustomerAddress = 67
	lookupRows             = 20
	lookupAfter            = 15 * time.Minute
	lookupBackAccount      = 32 * time.Hour // of trading time
	lookupBackSymbol       = 200 * time.Minute
	lookupBackHistory      = 500 * time.Minute
)
