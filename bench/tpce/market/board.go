package market

import (
	"fmt"
	"time"

	"github.com/percodb/percodb/bench/tpce/gen"
)

// DefaultPeriod is the time from one lowest price of a security to the next.
const DefaultPeriod = 900 * time.Second

// Listing is a security on the board: the phase is where in the wave it is at the beginning of time, in
// microseconds.
type Listing struct {
	Symbol string
	Phase  int64
}

// Board knows the price of every security at any time. It never changes, and is safe for concurrent use.
type Board struct {
	wave     gen.Wave
	listings []Listing
	phases   map[string]int64
}

// NewBoard returns the board of the listings with waves of the period, which is at least a second.
// Boards with the same arguments show the same prices in every process.
func NewBoard(listings []Listing, period time.Duration) (*Board, error) {
	if period < time.Second {
		return nil, fmt.Errorf("a price period of %v: use a second or more", period)
	}
	if len(listings) == 0 {
		return nil, fmt.Errorf("a market without securities")
	}
	us := period.Microseconds()
	b := &Board{wave: gen.Wave{Period: us + us%2}, listings: listings, phases: make(map[string]int64, len(listings))}
	for _, l := range listings {
		b.phases[l.Symbol] = l.Phase
	}
	return b, nil
}

// Price returns the price of a listed security, in cents.
func (b *Board) Price(symbol string, at time.Time) int64 {
	return b.wave.Price(at.UnixMicro(), b.phases[symbol])
}

// firstAtMost returns when, at or after the time given, the price is first as low as the limit, which is
// a price between the lowest and the highest. firstAtLeast is the same for a price as high.
func (b *Board) firstAtMost(symbol string, at time.Time, limit int64) time.Time {
	from := at.UnixMicro()
	return at.Add(time.Duration(b.wave.FirstAtMost(from, b.phases[symbol], limit)-from) * time.Microsecond)
}

func (b *Board) firstAtLeast(symbol string, at time.Time, limit int64) time.Time {
	from := at.UnixMicro()
	return at.Add(time.Duration(b.wave.FirstAtLeast(from, b.phases[symbol], limit)-from) * time.Microsecond)
}
