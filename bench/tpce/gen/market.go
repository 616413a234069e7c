package gen

import (
	"fmt"
	"strings"
	"time"

	"github.com/percodb/percodb/bench/tpce/schema"
)

// extraIssues returns the number of preferred issues of company j of a load unit, besides its common issue.
func extraIssues(j int) int {
	switch j % 10 {
	case 1:
		return 1
	case 6:
		return [10]int{2, 3, 2, 3, 4, 2, 3, 2, 3, 3}[j/10%10]
	}
	return 0
}

// issue is one security of a load unit: its company, and its number among the company's issues.
type issue struct{ company, number int }

// issuesOfUnit returns the securities of a load unit, by company.
func issuesOfUnit() []issue {
	issues := make([]issue, 0, securitiesPerLU)
	for j := range companiesPerLU {
		for n := range 1 + extraIssues(j) {
			issues = append(issues, issue{company: j, number: n})
		}
	}
	return issues
}

func (i issue) name() string {
	if i.number == 0 {
		return "COMMON"
	}
	return "PREF_" + letters[i.number-1:i.number]
}

// company returns the id of the company that issued a security.
func (g *Generator) company(security int64) int64 {
	return security/securitiesPerLU*companiesPerLU + int64(g.issues[security%securitiesPerLU].company) + 1
}

// Symbol returns the symbol of a security, which is numbered from 0.
func (g *Generator) Symbol(security int64) string {
	n := g.company(security) - 1
	var b [8]byte
	i := len(b)
	for ; n > 0 || i > len(b)-4; n /= 26 {
		i--
		b[i] = letters[n%26]
	}
	symbol := string(b[i:])
	if number := g.issues[security%securitiesPerLU].number; number > 0 {
		symbol += "PR" + letters[number-1:number]
	}
	return symbol
}

// Securities returns the number of securities.
func (g *Generator) Securities() int64 { return g.securities }

func (g *Generator) exchangeOf(security int64) int {
	r := g.at(streamExchange, security)
	return int(r.below(exchangeCount))
}

// phase returns the position of a security in the wave at time 0.
func (g *Generator) phase(security int64) int64 {
	r := g.at(streamPhase, security)
	return r.below(wavePeriod)
}

func companyName(id int64) string {
	kind := [7]string{"Company", "Holdings", "Brothers", "Works", "Group", "Partners", "Limited"}[id%7]
	return uniqueWord(id) + " " + kind
}

func (g *Generator) securityName(security int64) string {
	return g.issues[security%securitiesPerLU].name() + " of " + companyName(g.company(security))
}

// marketTables writes the rows of one load unit's companies and securities.
func (g *Generator) marketTables(lu int64, b *batcher) {
	for j := range int64(companiesPerLU) {
		g.writeCompany(b, lu, j)
		if !b.cut() {
			return
		}
	}
	for i := range int64(securitiesPerLU) {
		g.writeSecurity(b, lu*securitiesPerLU+i)
		if !b.cut() {
			return
		}
	}
}

// rating returns one of 39 credit ratings, from best to worst.
func rating(n int64) string {
	return strings.Repeat(letters[n/13:n/13+1], int(n%13)/5+1) + [5]string{"", "+", "-", "1", "2"}[n%13%5]
}

func (g *Generator) writeCompany(b *batcher, lu, j int64) {
	id := lu*companiesPerLU + j + 1
	industry := industryID(j % industries)
	address := exchangeCount + id
	r := g.at(streamCompany, id)
	b.to(schema.Company).int(id).str("ACTV").str(companyName(id)).str(industry).str(rating(r.below(39))).
		str(word(r.next(), 2) + " " + word(r.next(), 3)).int(address).str("Makes " + strings.ToLower(text(&r, 60))).
		date(time.Date(int(r.between(1800, 1999)), 1, 1+int(r.below(365)), 0, 0, 0, 0, time.UTC)).end()
	g.writeAddress(b, address, false)
	members := (companiesPerLU-1-j%industries)/industries + 1 // of the industry, in this load unit
	for k := range int64(competitors) {
		next := (j/industries + 1 + k) % members
		b.to(schema.CompanyCompetitor).int(id).int(lu*companiesPerLU + j%industries + next*industries + 1).str(industry).end()
	}
	g.writeFinancials(b, id)
	end := wallTime(g.end())
	for n := range int64(newsPerCompany) {
		news := (id-1)*newsPerCompany + n + 1
		r := g.at(streamNews, news)
		item := text(&r, g.scale.NewsBytes)
		b.to(schema.NewsItem).int(news).str(prefix(item, 80)).str(prefix(item, 255)).str(item).
			time(end.Add(-time.Duration(r.below(newsAgeDays*86_400)) * time.Second)).
			str(word(r.next(), 3) + " Press").str(word(r.next(), 2) + " " + word(r.next(), 3)).end()
		b.to(schema.NewsXref).int(id).int(news).end()
	}
}

func (g *Generator) writeFinancials(b *batcher, company int64) {
	r := g.at(streamFinancial, company)
	revenue, earnings := r.between(100_000_00, 16_000_000_000_00), r.between(90_000_00, 10_000_000_000_00)
	inventory, assets, debts := r.between(100_000_00, 10_000_000_000_00), r.between(1_000_000_00, 40_000_000_000_00), r.between(1_000_000_00, 30_000_000_000_00)
	shares := r.between(400_000, 9_500_000_000)
	for q := range int64(quarters) {
		for _, v := range []*int64{&revenue, &earnings, &inventory, &assets, &debts} {
			*v = min(*v/100*r.between(90, 115), 9_000_000_000_000_00)
		}
		year, quarter, diluted := 2000+q/4, q%4+1, shares/10*11
		b.to(schema.Financial).int(company).int(year).int(quarter).
			date(time.Date(int(year), time.Month(3*quarter-2), 1, 0, 0, 0, 0, time.UTC)).
			cents(revenue).cents(earnings).cents(min(earnings/shares, 99_999_999_99)).cents(min(earnings/diluted, 99_999_999_99)).
			cents(min(earnings*100/revenue, 99_999_999_99)).cents(inventory).cents(assets).cents(debts).int(shares).int(diluted).end()
	}
}

func (g *Generator) writeSecurity(b *batcher, security int64) {
	const century = 36_500
	symbol := g.Symbol(security)
	r := g.at(streamSecurity, security)
	day := func(from, to int64) time.Time {
		return time.Date(1900, 1, int(r.between(from, to)), 0, 0, 0, 0, time.UTC)
	}
	start := r.between(1, century)
	row := b.to(schema.Security).str(symbol).str(g.issues[security%securitiesPerLU].name()).str("ACTV").
		str(g.securityName(security)).str(exchangeIDs()[g.exchangeOf(security)]).int(g.company(security)).
		int(r.between(4_000_000, 9_500_000_000)).date(day(start, start)).date(day(start, century)).
		cents(r.between(1_00, 120_00))
	high := r.between(25_00, 30_00)
	row.cents(high).date(day(century-364, century)).cents(r.between(20_00, high)).date(day(century-364, century))
	if r.percent(percentDividend) {
		yield := r.between(1, 120_00)
		row.cents(yield * r.between(20, 30) / 100).cents(yield).end()
	} else {
		row.cents(0).cents(0).end()
	}
	price := Wave{Period: wavePeriod}.Price(0, g.phase(security))
	b.to(schema.LastTrade).str(symbol).time(wallTime(g.end())).cents(price).cents(price).int(0).end()
	r = g.at(streamDaily, security)
	for d := range g.scale.MarketDays {
		price := r.between(minPrice, maxPrice)
		b.to(schema.DailyMarket).str(symbol).date(marketDate(d)).cents(price).cents(price * 105 / 100).
			cents(price * 92 / 100).int(r.between(1000, 10_000)).end()
	}
}

// end returns the end of the initial period, in trading time. The last limit orders complete slightly
// later.
func (g *Generator) end() int64 {
	return g.scale.tradesPerLU() * secondsPerTrade * second / customersPerLU
}

// describe returns the description of a trade in cash_transaction.
func (g *Generator) describe(t tradeType, qty, security int64) string {
	return fmt.Sprintf("%s %d shares of %s", t.name, qty, g.securityName(security))
}
