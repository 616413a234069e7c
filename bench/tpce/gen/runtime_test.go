package gen

import (
	"testing"
	"time"
)

// TestSecurityOf: SecurityOf inverts Symbol, and returns -1 for other texts.
func TestSecurityOf(t *testing.T) {
	scale := small()
	scale.Customers = 3000
	g := newGenerator(t, scale)
	for s := range g.Securities() {
		if back := g.SecurityOf(g.Symbol(s)); back != s {
			t.Fatalf("%s is security %d, not %d", g.Symbol(s), back, s)
		}
	}
	for _, symbol := range []string{"", "A", "AAAa", "AAAAPRZ", "ZZZZ", "AAAAAAAAAAAA", "AAAAA", "PRA", "AAAAPR"} {
		if s := g.SecurityOf(symbol); s != -1 {
			t.Errorf("%q is security %d, %s", symbol, s, g.Symbol(s))
		}
	}
}

// TestBoard: the board shows the wave of the load, with any period, and Meets returns the first time of a limit.
// Method: compare prices at that time and just before it.
func TestBoard(t *testing.T) {
	g := newGenerator(t, small())
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, period := range []time.Duration{0, time.Minute, 900 * time.Second, 7777 * time.Microsecond} {
		b := g.Board(period)
		r := NewRand(1)
		for range 2000 {
			s, limit := r.Below(g.Securities()), r.Between(minPrice, maxPrice)
			if p := b.Price(at, s); p < minPrice || p > maxPrice {
				t.Fatalf("a price of %d", p)
			}
			for _, kind := range []string{"TLB", "TSL", "TLS"} {
				when := b.Meets(at, s, kind, limit)
				met := func(t time.Time) bool {
					if kind == "TLS" {
						return b.Price(t, s) >= limit
					}
					return b.Price(t, s) <= limit
				}
				if when.Before(at) || !met(when) || when.After(at) && met(when.Add(-time.Microsecond)) {
					t.Fatalf("%s at %d: %v after now", kind, limit, when.Sub(at))
				}
			}
		}
	}
	if b := g.Board(0); b.Price(time.UnixMicro(0), 5) != (Wave{Period: wavePeriod}).Price(0, g.phase(5)) {
		t.Error("the board does not show the wave of the load")
	}
}

// TestNonUniform: numbers stay within their bounds, and numbers with the low bits set are more frequent.
func TestNonUniform(t *testing.T) {
	r := NewRand(1)
	var odd int
	for range 20_000 {
		n := r.NonUniform(5, 12, 7, 0)
		if n < 5 || n > 12 {
			t.Fatal(n)
		}
		if (n-5)%8 == (5+7-5)%8 {
			odd++
		}
	}
	if odd < 7500 { // 2500 would be expected of uniform numbers
		t.Errorf("%d of 20000", odd)
	}
}
