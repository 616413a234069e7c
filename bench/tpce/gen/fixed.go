package gen

import (
	"fmt"

	"github.com/percodb/percodb/bench/tpce/schema"
)

// tradeType is a row of trade_type; its number is its index in tradeTypes.
type tradeType struct {
	id, name     string
	sell, market bool
	charge       int64 // cents, for customers of tier 1; each further tier pays a dollar less
}

const (
	marketBuy = iota
	marketSell
	stopLoss
	limitSell
	limitBuy
)

func tradeTypes() [tradeTypeCount]tradeType {
	return [tradeTypeCount]tradeType{
		marketBuy:  {"TMB", "Market-Buy", false, true, 5_00},
		marketSell: {"TMS", "Market-Sell", true, true, 5_00},
		stopLoss:   {"TSL", "Stop-Loss", true, false, 6_50},
		limitSell:  {"TLS", "Limit-Sell", true, false, 6_00},
		limitBuy:   {"TLB", "Limit-Buy", false, false, 6_00},
	}
}

func (t tradeType) chargeFor(tier int) int64 { return t.charge - int64(tier-1)*100 }

func exchangeIDs() [exchangeCount]string {
	return [exchangeCount]string{"NYSE", "NASDAQ", "AMEX", "PCX"}
}

// quantityBands returns the upper bounds of the bands of quantities that determine commissions.
func quantityBands() [4]int64 { return [4]int64{200, 500, 2000, 999_999} }

// commissionRate returns a rate in hundredths of a percent.
func commissionRate(tier, exchange, band int) int64 {
	rate := [4]int64{40, 36, 32, 20}[band] - 4*int64(tier-1)
	if exchange == exchangeCount-1 {
		rate += 4
	}
	return rate
}

// commission returns the commission of a trade, in cents, rounded half up.
func commission(tier, exchange int, qty, price int64) int64 {
	band := 0
	for qty > quantityBands()[band] {
		band++
	}
	return (qty*price*commissionRate(tier, exchange, band) + 5000) / 10_000
}

// Divisions: 50 of one country, 12 of the other. One has an additional tax bracket.
const (
	divisions   = 62
	divisionsUS = 50
	countriesUS = 5 // tax rates of the countries
	brackets    = 5
)

func divisionName(d int64) string {
	if d < divisionsUS {
		return fmt.Sprintf("U%02d", d+1)
	}
	return fmt.Sprintf("C%02d", d-divisionsUS+1)
}

// tax is a tax rate, in units of its fifth decimal.
type tax struct {
	id, name string
	rate     int64
}

// countryTax returns rate k of the country of division d.
func (g *Generator) countryTax(d, k int64) tax {
	code := "US"
	if d >= divisionsUS {
		code = "CN"
	}
	r := g.at(streamTaxrate, d/divisionsUS*10+k)
	return tax{id: fmt.Sprintf("%s%d", code, k+1), name: fmt.Sprintf("%s Tax on income, bracket %d", code, k+1),
		rate: r.between(15_000, 40_000)}
}

// divisionTax returns rate k of division d.
func (g *Generator) divisionTax(d, k int64) tax {
	r := g.at(streamTaxrate, 100+d*10+k)
	name := divisionName(d)
	return tax{id: fmt.Sprintf("%s%d", name, k+1), name: fmt.Sprintf("%s Tax of the division, bracket %d", name, k+1),
		rate: r.between(0, 10_000)}
}

func countryBrackets(d int64) int64 {
	if d < divisionsUS {
		return countriesUS
	}
	return countryRates - countriesUS
}

func divisionBrackets(d int64) int64 {
	if d == divisions-1 {
		return brackets + 1
	}
	return brackets
}

// zip returns the zip code and the division of place i.
func (g *Generator) zip(i int64) (code string, division int64) {
	division = i % divisions
	n := uint64(i / divisions) // below 238
	if division < divisionsUS {
		return fmt.Sprintf("%02d%03d", division+10, scatter(n, 7, 1000)), division
	}
	return fmt.Sprintf("%c%d%c %d%c%d", letters[division-divisionsUS], n%10, letters[n/10%26], n%7, letters[n%26], n%9), division
}

// fixedTables writes the nine tables whose size does not depend on the scale.
func (g *Generator) fixedTables(b *batcher) {
	for _, s := range [statusTypeCount][2]string{
		{"CMPT", "Completed"}, {"ACTV", "Active"}, {"SBMT", "Submitted"}, {"PNDG", "Pending"}, {"CNCL", "Canceled"},
	} {
		b.to(schema.StatusType).str(s[0]).str(s[1]).end()
	}
	for i := range int64(zipCodes) {
		code, division := g.zip(i)
		r := g.at(streamZip, i)
		b.to(schema.ZipCode).str(code).str(word(r.next(), 3)).str(divisionName(division)).end()
	}
	g.fixedTrading(b)
	g.fixedTaxes(b)
	g.fixedIndustries(b)
	b.cut()
}

// fixedTrading writes trade types, exchanges with their addresses, charges and commission rates.
func (g *Generator) fixedTrading(b *batcher) {
	for i, t := range tradeTypes() {
		b.to(schema.TradeType).str(t.id).str(t.name).bool(t.sell).bool(t.market).end()
		for tier := 1; tier <= tiers; tier++ {
			b.to(schema.Charge).str(t.id).int(int64(tier)).cents(t.chargeFor(tier)).end()
			for e, exchange := range exchangeIDs() {
				from := int64(1)
				for band, to := range quantityBands() {
					b.to(schema.CommissionRate).int(int64(tier)).str(tradeTypes()[i].id).str(exchange).
						int(from).int(to).cents(commissionRate(tier, e, band)).end()
					from = to + 1
				}
			}
		}
	}
	var symbols [exchangeCount]int64
	for s := range g.securities {
		symbols[g.exchangeOf(s)]++
	}
	for e, id := range exchangeIDs() {
		address := int64(e + 1)
		b.to(schema.Exchange).str(id).str(id + " Exchange").int(symbols[e]).int(930).int(1600).
			str("A market for " + word(uint64(address), 3) + " and others").int(address).end()
		g.writeAddress(b, address, false)
	}
}

func (g *Generator) fixedTaxes(b *batcher) {
	write := func(t tax) { b.to(schema.Taxrate).str(t.id).str(t.name).decimal(t.rate, 5).end() }
	for _, d := range []int64{0, divisionsUS} {
		for k := range countryBrackets(d) {
			write(g.countryTax(d, k))
		}
	}
	for d := range int64(divisions) {
		for k := range divisionBrackets(d) {
			write(g.divisionTax(d, k))
		}
	}
}

func sectorNames() [sectors]string {
	return [sectors]string{"Energy", "Metals", "Chemistry", "Building", "Vehicles", "Household", "Food",
		"Health", "Money", "Computing", "Telephony", "Water"}
}

// industryID returns the key of industry i: two letters.
func industryID(i int64) string { return string([]byte{letters[i/26], letters[i%26]}) }

// industryNames returns the names of a sector's industries: eight or nine of them, 102 in all.
func industryNames(sector int) []string {
	kinds := [9]string{"Equipment", "Services", "Supply", "Research", "Transport", "Retail", "Systems", "Materials", "Insurance"}
	names := make([]string, 8+sector%2)
	for i := range names {
		names[i] = sectorNames()[sector] + " " + kinds[i]
	}
	return names
}

func (g *Generator) fixedIndustries(b *batcher) {
	var next int64
	for s, sector := range sectorNames() {
		id := string([]byte{letters[s], letters[25-s]})
		b.to(schema.Sector).str(id).str(sector).end()
		for _, name := range industryNames(s) {
			b.to(schema.Industry).str(industryID(next)).str(name).str(id).end()
			next++
		}
	}
}

// placeOf returns the zip code and the division of an address.
func (g *Generator) placeOf(address int64) (code string, division int64) {
	r := g.at(streamAddress, address)
	return g.zip(r.below(zipCodes))
}

// writeAddress writes a row of address; persons may have a second line, companies have none.
func (g *Generator) writeAddress(b *batcher, id int64, person bool) {
	code, division := g.placeOf(id)
	r := g.at(streamAddress, id)
	r.next() // the place
	row := b.to(schema.Address).int(id).str(fmt.Sprintf("%d %s Street", r.between(1, 9999), word(r.next(), 3)))
	switch {
	case !person || r.percent(percentNoLine2):
		row.null()
	case r.percent(percentApartment):
		row.str(fmt.Sprintf("Apt. %d", r.between(1, 999)))
	default:
		row.str(fmt.Sprintf("Suite %d", r.between(1, 999)))
	}
	country := "USA"
	if division >= divisionsUS {
		country = "CANADA"
	}
	row.str(code).str(country).end()
}
