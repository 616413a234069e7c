package gen

import (
	"math"
	"slices"
	"testing"
)

// TestPickPosition: positions of a tier are drawn according to their weights. Method: compare the cumulative weights
// with the inverse at every boundary of the tier.
func TestPickPosition(t *testing.T) {
	g := newGenerator(t, small())
	for i, tier := range tierShares() {
		var total int64
		for k := range tier.size {
			total += tier.firstWeight + 2*k
		}
		if want := [tiers]int64{100_000, 1_200_000, 300_000}[i]; total != want {
			t.Errorf("tier %d: weights add up to %d, want %d", i+1, total, want)
		}
		const draws = 400_000
		r := g.at(0, int64(i))
		counts := make([]int64, tier.size)
		for range draws {
			counts[pickPosition(&r, tier)]++
		}
		var chi float64
		for k, n := range counts {
			want := float64(draws) * float64(tier.firstWeight+2*int64(k)) / float64(total)
			chi += (float64(n) - want) * (float64(n) - want) / want
		}
		free := float64(tier.size - 1)
		if chi > free+6*math.Sqrt(2*free) {
			t.Errorf("tier %d: chi squared is %.0f with %.0f degrees of freedom", i+1, chi, free)
		}
	}
}

// TestRanks: ranks and customers correspond one to one, and tiers have their sizes and accounts.
func TestRanks(t *testing.T) {
	for _, lu := range []int64{0, 1, 17} {
		var tierCount [tiers + 1]int
		for rank := range int64(customersPerLU) {
			c := customerOfRank(lu, rank)
			if back := rankOf(c); back != rank || (c-1)/customersPerLU != lu {
				t.Fatalf("rank %d of unit %d is customer %d, whose rank is %d", rank, lu, c, back)
			}
			tier, n := accountsOf(c)
			tierCount[tier]++
			if bounds := tierShares()[tier-1]; n < bounds.minAccounts || n > bounds.maxAccounts {
				t.Fatalf("customer %d of tier %d has %d accounts", c, tier, n)
			}
		}
		if tierCount != [tiers + 1]int{0, 200, 600, 200} {
			t.Errorf("tiers have %v customers", tierCount)
		}
	}
}

// TestUnitHas685Securities: the pattern of issues yields exactly the securities of a load unit.
func TestUnitHas685Securities(t *testing.T) {
	if n := len(issuesOfUnit()); n != securitiesPerLU {
		t.Errorf("%d securities", n)
	}
}

// TestWave: FirstAtMost and FirstAtLeast return the earliest time; prices stay within their bounds. Method: a linear
// search over two periods, for all phases and limits of a short wave.
func TestWave(t *testing.T) {
	w := Wave{Period: 2600}
	for phase := int64(0); phase < w.Period; phase += 97 {
		for limit := int64(minPrice); limit <= maxPrice; limit += 7 {
			nextLow, nextHigh := int64(math.MaxInt64), int64(math.MaxInt64)
			for at := 3 * w.Period; at >= 0; at-- {
				p := w.Price(at, phase)
				if p < minPrice || p > maxPrice {
					t.Fatalf("price %d", p)
				}
				if p <= limit {
					nextLow = at
				}
				if p >= limit {
					nextHigh = at
				}
				if at > w.Period {
					continue
				}
				if got := w.FirstAtMost(at, phase, limit); got != nextLow {
					t.Fatalf("at most %d from %d in phase %d: %d, want %d", limit, at, phase, got, nextLow)
				}
				if got := w.FirstAtLeast(at, phase, limit); got != nextHigh {
					t.Fatalf("at least %d from %d in phase %d: %d, want %d", limit, at, phase, got, nextHigh)
				}
			}
		}
	}
}

// share is one share of a lot, for the model of TestLots.
type share struct {
	trade, price int64
	short        bool
}

// TestLots: Apply agrees with a model that moves single shares. Method: random walks of small trades,
// oldest and newest first, with changes of sign.
func TestLots(t *testing.T) {
	g := newGenerator(t, small())
	for walk := range int64(200) {
		r := g.at(0, walk)
		var lots []Lot
		var model []share
		for trade := int64(1); trade <= 60; trade++ {
			qty, price, lifo := r.between(1, 8), r.between(1, 50), r.percent(50)
			if r.percent(50) {
				qty = -qty
			}
			var out Outcome
			lots = Apply(lots, Lot{TradeID: trade, Qty: qty, Price: price, At: trade}, lifo, &out)
			var buy, sell int64
			for range abs(qty) {
				if len(model) == 0 || model[0].short == (qty < 0) {
					model = append(model, share{trade: trade, price: price, short: qty < 0})
					continue
				}
				i := 0
				if lifo {
					i = len(model) - 1
				}
				if qty < 0 {
					buy, sell = buy+model[i].price, sell+price
				} else {
					buy, sell = buy+price, sell+model[i].price
				}
				model = slices.Delete(model, i, i+1)
			}
			checkLots(t, lots, model, out, buy, sell, qty)
		}
	}
}

func checkLots(t *testing.T, lots []Lot, model []share, out Outcome, buy, sell, qty int64) {
	t.Helper()
	var shares []share
	for _, lot := range lots {
		for range abs(lot.Qty) {
			shares = append(shares, share{trade: lot.TradeID, price: lot.Price, short: lot.Qty < 0})
		}
	}
	if !slices.Equal(shares, model) {
		t.Fatalf("lots are %v, the model's %v", shares, model)
	}
	var moved int64
	for _, c := range out.Changes {
		moved += c.After - c.Before
	}
	if moved != qty || out.BuyValue != buy || out.SellValue != sell {
		t.Fatalf("moved %d for %d and %d, want %d for %d and %d", moved, out.BuyValue, out.SellValue, qty, buy, sell)
	}
}

// TestExponential: the numbers have the mean and the quantiles of an exponential distribution.
func TestExponential(t *testing.T) {
	const mean, draws = 1_000_000, 300_000
	r := newGenerator(t, small()).at(0, 0)
	var sum, over1, over3 float64
	for range draws {
		x := float64(r.exponential(mean))
		sum += x
		if x > mean {
			over1++
		}
		if x > 3*mean {
			over3++
		}
	}
	for what, v := range map[string][2]float64{
		"mean": {sum / draws / mean, 1}, "above the mean": {over1 / draws, math.Exp(-1)}, "above three": {over3 / draws, math.Exp(-3)},
	} {
		if math.Abs(v[0]-v[1]) > 0.01*math.Max(v[1], 0.2) {
			t.Errorf("%s: %.4f, want %.4f", what, v[0], v[1])
		}
	}
}

// TestTradingTime: a day ends at 17:00, a week on Friday.
func TestTradingTime(t *testing.T) {
	for at, want := range map[int64]string{
		0:                        "2005-01-03 09:00:00",
		tradingDay - second:      "2005-01-03 16:59:59",
		tradingDay:               "2005-01-04 09:00:00",
		5 * tradingDay:           "2005-01-10 09:00:00",
		9*tradingDay + 60*second: "2005-01-14 09:01:00",
	} {
		if got := wallTime(at).Format("2006-01-02 15:04:05"); got != want {
			t.Errorf("%d: %s, want %s", at, got, want)
		}
	}
	if d := marketDate(260).Format("2006-01-02"); d != "2001-01-01" {
		t.Errorf("the last of 261 business days is %s", d)
	}
}
