package gen

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/percodb/percodb/bench/tpce/schema"
)

// accountIDs is the number of account ids reserved for a customer; not all are used.
const accountIDs = 10

// Customers of a load unit are ranked, and the rank determines the tier. Ranks are distributed over the ids
// by the permutation rank·389 + 71·(load unit + 1) mod 1000, whose inverse factor is 509.
const (
	rankFactor  = 389
	rankInverse = 509
	rankShift   = 71
)

func customerOfRank(lu, rank int64) int64 {
	return lu*customersPerLU + (rank*rankFactor+(lu+1)*rankShift)%customersPerLU + 1
}

func rankOf(customer int64) int64 {
	lu, i := (customer-1)/customersPerLU, (customer-1)%customersPerLU
	shift := (lu + 1) * rankShift % customersPerLU
	return (i - shift + customersPerLU) % customersPerLU * rankInverse % customersPerLU
}

// tierOf returns the tier of a rank, 1 to 3, and the position within the tier.
func tierOf(rank int64) (tier int, position int64) {
	for i, t := range tierShares() {
		if rank < t.size {
			return i + 1, rank
		}
		rank -= t.size
	}
	return 0, 0 // not reached: ranks are below 1000, the sum of the sizes
}

// pickCustomer draws the customer of the load unit who trades next, with a probability that increases with the rank.
func pickCustomer(r *source, lu int64) int64 {
	p, tier, first := r.below(100), 0, int64(0)
	for ; p >= tierShares()[tier].percent; tier++ {
		p -= tierShares()[tier].percent
		first += tierShares()[tier].size
	}
	return customerOfRank(lu, first+pickPosition(r, tierShares()[tier]))
}

// pickPosition draws a position of the tier; its weight is firstWeight + 2·position. The sum of the weights of
// the first k positions is k² + (firstWeight−1)·k.
func pickPosition(r *source, t tierShare) int64 {
	c := t.firstWeight - 1
	u := r.below(t.size*t.size + c*t.size)
	k := int64((math.Sqrt(float64(c*c+4*u)) - float64(c)) / 2)
	for k*k+c*k > u {
		k--
	}
	for (k+1)*(k+1)+c*(k+1) <= u {
		k++
	}
	return k
}

// accountsOf returns the tier of a customer and the number of its accounts.
func accountsOf(customer int64) (tier int, n int64) {
	tier, position := tierOf(rankOf(customer))
	t := tierShares()[tier-1]
	return tier, t.minAccounts + position%(t.maxAccounts-t.minAccounts+1)
}

func firstAccount(customer int64) int64 { return (customer-1)*accountIDs + 1 }

// Accounts returns the ids of the accounts of one load unit's customers, ascending.
func (g *Generator) Accounts(lu int64) []int64 {
	var ids []int64
	for c := lu*customersPerLU + 1; c <= (lu+1)*customersPerLU; c++ {
		_, n := accountsOf(c)
		for i := range n {
			ids = append(ids, firstAccount(c)+i)
		}
	}
	return ids
}

// account is the data of an account that its id determines.
type account struct {
	id, broker int64
	taxStatus  int64
	balance    int64 // before the run, cents
	others     int64 // the number of other persons who may trade on it
}

func (g *Generator) account(id int64) account {
	r := g.at(streamAccount, id)
	a := account{id: id, broker: (id-1)/accountIDs/customersPerLU*brokersPerLU + r.below(brokersPerLU) + 1}
	switch p := r.below(100); {
	case p < percentTaxFree:
	case p < percentTaxFree+percentTaxWithheld:
		a.taxStatus = 1
	default:
		a.taxStatus = 2
	}
	positive := r.percent(percentPositiveBalance)
	if a.balance = r.between(0, maxBalance); !positive {
		a.balance = -a.balance
	}
	switch p := r.below(100); {
	case p < percentTwoExtra:
		a.others = 2
	case p < percentTwoExtra+percentOneExtra:
		a.others = 1
	}
	return a
}

// InitialBalance returns an account's balance after the load, in cents.
func (g *Generator) InitialBalance(accountID int64) int64 { return g.account(accountID).balance }

// trader returns a person who may trade on an account: 0 is the owner, 1 and 2 are the others.
func (g *Generator) trader(accountID, which int64) Person {
	if which == 0 {
		return g.person((accountID-1)/accountIDs + 1)
	}
	r := g.at(streamPermission, accountID)
	return g.person(otherPersons + r.below(otherPersons) + which)
}

// basket returns the securities that an account trades, in the order of the draws.
func (g *Generator) basket(accountID int64) []int64 {
	tier, n := accountsOf((accountID-1)/accountIDs + 1)
	lo, hi := basketRange(tier, n)
	r := g.at(streamBasket, accountID)
	return g.distinctSecurities(&r, r.between(lo, hi))
}

func (g *Generator) distinctSecurities(r *source, n int64) []int64 {
	drawn := make([]int64, 0, n)
	for int64(len(drawn)) < n {
		if s := r.below(g.securities); !slices.Contains(drawn, s) {
			drawn = append(drawn, s)
		}
	}
	return drawn
}

// taxesOf returns a customer's two tax rates.
func (g *Generator) taxesOf(customer int64) (country, division tax) {
	_, d := g.placeOf(g.addressOf(customer))
	r := g.at(streamCustomerTax, customer)
	return g.countryTax(d, r.below(countryBrackets(d))), g.divisionTax(d, r.below(divisionBrackets(d)))
}

// addressOf returns the id of a customer's address. Addresses of exchanges and companies have lower ids.
func (g *Generator) addressOf(customer int64) int64 {
	return exchangeCount + g.scale.LoadUnits()*companiesPerLU + customer
}

// customerTables writes the rows of one load unit's customers, including their accounts.
func (g *Generator) customerTables(lu int64, b *batcher) {
	for i := range int64(customersPerLU) {
		c := lu*customersPerLU + i + 1
		g.writeCustomer(b, c)
		g.writeAccounts(b, c)
		country, division := g.taxesOf(c)
		b.to(schema.CustomerTaxrate).int(c).str(country.id).end()
		b.to(schema.CustomerTaxrate).int(c).str(division.id).end()
		list := lu*customersPerLU + (i*rankFactor+rankShift)%customersPerLU + 1
		b.to(schema.WatchList).int(list).int(c).end()
		r := g.at(streamWatch, c)
		for _, s := range g.distinctSecurities(&r, r.between(watchItemsMin, watchItemsMax)) {
			b.to(schema.WatchItem).int(list).str(g.Symbol(s)).end()
		}
		if !b.cut() {
			return
		}
	}
}

func (g *Generator) writeCustomer(b *batcher, c int64) {
	p := g.person(c)
	tier, _ := tierOf(rankOf(c))
	r := g.at(streamCustomer, c)
	gender := [2]string{"M", "F"}[r.below(2)]
	row := b.to(schema.Customer).int(c).str(p.TaxID).str("ACTV").str(p.Last).str(p.First).
		str(letters[r.below(26):][:1]).str(gender).int(int64(tier)).date(birthday(&r)).int(g.addressOf(c))
	for _, extension := range [3]int64{25, 15, 5} { // in percent
		row.str("011").str(fmt.Sprintf("%03d", r.between(100, 999))).str(fmt.Sprintf("%07d", r.below(10_000_000)))
		if r.percent(extension) {
			row.str(fmt.Sprintf("%d", r.between(1, 999)))
		} else {
			row.null()
		}
	}
	mailbox := strings.ToLower(p.First[:1] + p.Last)
	row.str(fmt.Sprintf("%s%d@mail.example", mailbox, c)).str(fmt.Sprintf("%s%d@post.example", mailbox, c)).end()
	g.writeAddress(b, g.addressOf(c), true)
}

// birthday draws a date of birth, with ages as of the first trading day.
func birthday(r *source) time.Time {
	p := r.below(100)
	for _, band := range ageBands() {
		if p < band.percent {
			return baseTime().AddDate(0, 0, -int(r.between(band.from*36525/100, band.to*36525/100-1)))
		}
		p -= band.percent
	}
	return baseTime() // not reached: the bands sum to 100
}

func (g *Generator) writeAccounts(b *batcher, c int64) {
	_, n := accountsOf(c)
	for i := range n {
		a := g.account(firstAccount(c) + i)
		owner := g.trader(a.id, 0)
		b.to(schema.CustomerAccount).int(a.id).int(a.broker).int(c).
			str(fmt.Sprintf("%s %s account %d", owner.First, owner.Last, i+1)).int(a.taxStatus).cents(a.balance).end()
		for which := range a.others + 1 {
			p := g.trader(a.id, which)
			b.to(schema.AccountPermission).int(a.id).str([3]string{"0000", "0001", "0011"}[which]).
				str(p.TaxID).str(p.Last).str(p.First).end()
		}
	}
}
