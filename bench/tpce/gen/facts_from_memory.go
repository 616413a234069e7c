package gen

// Facts that were NOT verified: they are from general knowledge of TPC-E, or from notes without a
// source. Compare them with the specification before publishing a result.
const (
	// Accounts and customers, in percent.
	percentTaxFree         = 20 // ca_tax_st 0
	percentTaxWithheld     = 50 // ca_tax_st 1, the rest has 2
	percentPositiveBalance = 80
	maxBalance             = 9_999_999_99 // cents
	percentOneExtra        = 38           // accounts on which one other person may trade
	percentTwoExtra        = 2
	percentOwnerTrades     = 75 // of the orders on accounts on which others may trade
	percentNoLine2         = 60
	percentApartment       = 75 // of the addresses with a second line

	// Orders, in percent and in cents.
	percentMarketBuy  = 30
	percentMarketSell = 30
	percentLimitBuy   = 20
	percentLimitSell  = 10 // the rest is stop-loss
	percentMargin     = 16 // of the buys
	percentLIFO       = 35
	minPrice          = 20_00
	maxPrice          = 30_00

	// Market, times in microseconds of trading time.
	wavePeriod           = 900 * second
	completionDelayMean  = 1 * second
	completionDelayMax   = 5 * second
	completionDelayFixed = 1 * second
	inTheMoneyMin        = second / 2
	inTheMoneyMax        = 3 * second / 2
	settlementDays       = 2
	percentDividend      = 60 // of the securities
	newsAgeDays          = 50
)

// quantity draws the number of shares of an order.
func quantity(r *source) int64 { return 100 << r.below(4) }

// ageBand is the share, in percent, of the customers whose age in years is in [from, to).
type ageBand struct {
	percent, from, to int64
}

func ageBands() []ageBand {
	return []ageBand{{5, 10, 19}, {16, 19, 25}, {17, 25, 35}, {19, 35, 45}, {16, 45, 55}, {11, 55, 65}, {8, 65, 75}, {7, 75, 85}, {1, 85, 101}}
}

// basketRange returns the minimum and maximum number of securities that an account trades, for a customer of a tier
// with n accounts.
func basketRange(tier int, n int64) (lo, hi int64) {
	switch tier {
	case 1:
		lo = []int64{6, 4, 2, 2}[n-1]
	case 2:
		lo = []int64{7, 5, 4, 3, 2, 2, 2}[n-2]
	default:
		lo = []int64{4, 4, 3, 3, 2, 2}[n-5]
	}
	return lo, 20 - lo
}
