package gen

import (
	"container/heap"

	"github.com/percodb/percodb/bench/tpce/schema"
)

// order is a trade of the history, from the order to its completion. Times are of trading time.
type order struct {
	id            int64
	account, slot int // indexes into the simulation's accounts and the account's basket
	terms
	bid, price                    int64
	ordered, submitted, completed int64
}

// terms are the terms of an order.
type terms struct {
	kind       int // of tradeTypes
	qty        int64
	lifo, cash bool
	trader     int64 // 0 is the owner of the account
}

// drawTerms draws the terms of an order on an account on which `others` other persons may trade.
func drawTerms(r *source, others int64) terms {
	var t terms
	switch p := r.below(100); {
	case p < percentMarketBuy:
		t.kind = marketBuy
	case p < percentMarketBuy+percentMarketSell:
		t.kind = marketSell
	case p < percentMarketBuy+percentMarketSell+percentLimitBuy:
		t.kind = limitBuy
	case p < percentMarketBuy+percentMarketSell+percentLimitBuy+percentLimitSell:
		t.kind = limitSell
	default:
		t.kind = stopLoss
	}
	t.qty = quantity(r)
	t.lifo = r.percent(percentLIFO)
	t.cash = tradeTypes()[t.kind].sell || !r.percent(percentMargin)
	if others > 0 && !r.percent(percentOwnerTrades) {
		t.trader = r.between(1, others)
	}
	return t
}

// orders is a heap of open orders, by the time of completion.
type orders []*order

func (h orders) Len() int      { return len(h) }
func (h orders) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *orders) Push(x any)   { *h = append(*h, x.(*order)) }
func (h orders) Less(i, j int) bool {
	return h[i].completed < h[j].completed || h[i].completed == h[j].completed && h[i].id < h[j].id
}

func (h *orders) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	*h = (*h)[:last]
	return o
}

// position is an account's holding of one security.
type position struct {
	security int64
	lots     []Lot
}

// simAccount is an account in the simulation.
type simAccount struct {
	account
	customer int64
	tier     int
	taxRate  int64 // the sum of the customer's rates, with five decimals
	basket   []position
}

// simulation is the trading of one load unit's customers before the run.
type simulation struct {
	g        *Generator
	lu       int64
	accounts []simAccount
	first    [customersPerLU]int // index of a customer's first account, by the customer's position in the load unit
	open     orders
	wave     Wave
	types    [tradeTypeCount]tradeType
	brokers  [brokersPerLU]struct{ trades, commission int64 }
	outcome  Outcome
}

func (g *Generator) newSimulation(lu int64) *simulation {
	s := &simulation{g: g, lu: lu, wave: Wave{Period: wavePeriod}, types: tradeTypes()}
	for i := range int64(customersPerLU) {
		c := lu*customersPerLU + i + 1
		s.first[i] = len(s.accounts)
		tier, n := accountsOf(c)
		country, division := g.taxesOf(c)
		for k := range n {
			a := simAccount{account: g.account(firstAccount(c) + k), customer: c, tier: tier, taxRate: country.rate + division.rate}
			for _, security := range g.basket(a.id) {
				a.basket = append(a.basket, position{security: security})
			}
			s.accounts = append(s.accounts, a)
		}
	}
	return s
}

// historyTables writes the trades of one load unit and the resulting holdings. When the number of trades is
// reached, no more orders arrive, and open orders complete.
func (g *Generator) historyTables(lu int64, b *batcher) {
	s := g.newSimulation(lu)
	for n := int64(1); n <= g.idsPerLU; n++ {
		if skipped(n) {
			continue
		}
		o := s.order(n)
		for len(s.open) > 0 && s.open[0].completed <= o.ordered {
			s.complete(b, heap.Pop(&s.open).(*order))
		}
		heap.Push(&s.open, o)
		if !b.cut() {
			return
		}
	}
	for len(s.open) > 0 {
		s.complete(b, heap.Pop(&s.open).(*order))
	}
	s.leftOver(b)
}

// order draws the n-th order of the load unit. Orders are evenly spaced; there are one percent more of them than trades.
func (s *simulation) order(n int64) *order {
	id := s.lu*s.g.idsPerLU + n
	r := s.g.at(streamOrder, id)
	gap := s.g.end() / s.g.idsPerLU
	o := &order{id: id, ordered: (n-1)*gap + r.below(gap)}
	customer := pickCustomer(&r, s.lu)
	_, accounts := accountsOf(customer)
	o.account = s.first[(customer-1)%customersPerLU] + int(r.below(accounts))
	a := &s.accounts[o.account]
	o.slot = int(r.below(int64(len(a.basket))))
	o.terms = drawTerms(&r, a.others)
	s.execute(o, &r, s.g.phase(a.basket[o.slot].security))
	return o
}

// execute determines when the order is submitted and completed, and at which price.
func (s *simulation) execute(o *order, r *source, phase int64) {
	o.submitted = o.ordered
	o.bid = s.wave.Price(o.ordered, phase)
	if !s.types[o.kind].market {
		o.bid = r.between(minPrice, maxPrice)
		if o.kind == limitSell {
			o.submitted = s.wave.FirstAtLeast(o.ordered, phase, o.bid)
		} else {
			o.submitted = s.wave.FirstAtMost(o.ordered, phase, o.bid)
		}
		if o.submitted == o.ordered {
			o.submitted += r.between(inTheMoneyMin, inTheMoneyMax)
		}
	}
	o.completed = o.submitted + min(r.exponential(completionDelayMean), completionDelayMax) + completionDelayFixed
	o.price = s.wave.Price(o.completed, phase)
	switch o.kind {
	case limitBuy:
		o.price = min(o.price, o.bid)
	case limitSell:
		o.price = max(o.price, o.bid)
	}
}

// complete writes a trade and updates its account's holdings.
func (s *simulation) complete(b *batcher, o *order) {
	a, kind := &s.accounts[o.account], s.types[o.kind]
	held := &a.basket[o.slot]
	signed := o.qty
	if kind.sell {
		signed = -signed
	}
	s.outcome = Outcome{Changes: s.outcome.Changes[:0]}
	held.lots = Apply(held.lots, Lot{TradeID: o.id, Qty: signed, Price: o.price, At: o.completed}, o.lifo, &s.outcome)
	for _, c := range s.outcome.Changes {
		b.to(schema.HoldingHistory).int(c.LotID).int(o.id).int(c.Before).int(c.After).end()
	}
	var tax int64
	if gain := s.outcome.SellValue - s.outcome.BuyValue; a.taxStatus != 0 && gain > 0 {
		tax = (gain*a.taxRate + 50_000) / 100_000
	}
	fee := commission(a.tier, s.g.exchangeOf(held.security), o.qty, o.price)
	total := &s.brokers[(a.broker-1)%brokersPerLU]
	total.trades++
	total.commission += fee
	s.writeTrade(b, o, tax, fee)
}

func (s *simulation) writeTrade(b *batcher, o *order, tax, fee int64) {
	a, kind := &s.accounts[o.account], s.types[o.kind]
	security := a.basket[o.slot].security
	trader := s.g.trader(a.id, o.trader)
	charge, done := kind.chargeFor(a.tier), wallTime(o.completed)
	b.to(schema.Trade).int(o.id).time(done).str("CMPT").str(kind.id).bool(o.cash).str(s.g.Symbol(security)).
		int(o.qty).cents(o.bid).int(a.id).str(trader.First + " " + trader.Last).cents(o.price).cents(charge).
		cents(fee).cents(tax).bool(o.lifo).end()
	if !kind.market {
		b.to(schema.TradeHistory).int(o.id).time(wallTime(o.ordered)).str("PNDG").end()
	}
	b.to(schema.TradeHistory).int(o.id).time(wallTime(o.submitted)).str("SBMT").end()
	b.to(schema.TradeHistory).int(o.id).time(done).str("CMPT").end()
	amount := o.qty*o.price - charge - fee
	if !kind.sell {
		amount = -(o.qty*o.price + charge + fee)
	}
	if a.taxStatus == 1 {
		amount -= tax
	}
	cashType := "Margin"
	if o.cash {
		cashType = "Cash Account"
		b.to(schema.CashTransaction).int(o.id).time(done).cents(amount).str(s.g.describe(kind, o.qty, security)).end()
	}
	b.to(schema.Settlement).int(o.id).str(cashType).date(done.AddDate(0, 0, settlementDays)).cents(amount).end()
}

// leftOver writes the rows that depend on all trades: lots, their sums, and the brokers' totals.
func (s *simulation) leftOver(b *batcher) {
	for i := range s.accounts {
		a := &s.accounts[i]
		for _, held := range a.basket {
			var sum int64
			symbol := s.g.Symbol(held.security)
			for _, lot := range held.lots {
				sum += lot.Qty
				b.to(schema.Holding).int(lot.TradeID).int(a.id).str(symbol).time(wallTime(lot.At)).cents(lot.Price).int(lot.Qty).end()
			}
			if len(held.lots) > 0 {
				b.to(schema.HoldingSummary).int(a.id).str(symbol).int(sum).end()
			}
		}
		if !b.cut() {
			return
		}
	}
	for i, total := range s.brokers {
		id := s.lu*brokersPerLU + int64(i) + 1
		b.to(schema.Broker).int(id).str("ACTV").str(s.g.BrokerName(id)).
			int(total.trades).cents(total.commission).end()
	}
}
