package gen

// Wave is the price of every security over time: a triangle between 20.00 and 30.00, with a different phase for
// each security. Prices are cents, times microseconds.
type Wave struct {
	// Period is the time from one lowest price to the next, even, and more than 2000.
	Period int64
}

// Price returns the price at time t of a security with the given phase.
func (w Wave) Price(t, phase int64) int64 {
	x := w.height(w.position(t, phase))
	return minPrice + ((maxPrice-minPrice)*x+w.Period/2)/w.Period
}

func (w Wave) position(t, phase int64) int64 { return (t + phase) % w.Period }

// height returns the height of the triangle, 0 to Period, at a position in the period.
func (w Wave) height(pos int64) int64 {
	return min(2*pos, 2*(w.Period-pos))
}

// FirstAtMost returns the first time from t on at which the price is at most limit. limit must be between the
// lowest and the highest price.
func (w Wave) FirstAtMost(t, phase, limit int64) int64 {
	// Price ≤ limit is equivalent to (maxPrice−minPrice)·x + Period/2 < (limit−minPrice+1)·Period.
	top := (limit-minPrice+1)*w.Period - w.Period/2 - 1
	half := top / (maxPrice - minPrice) / 2 // the maximum distance from the lowest point
	pos := w.position(t, phase)
	if pos <= half || pos >= w.Period-half {
		return t
	}
	return t + w.Period - half - pos
}

// FirstAtLeast is the same for a price of at least limit.
func (w Wave) FirstAtLeast(t, phase, limit int64) int64 {
	const rise = maxPrice - minPrice
	bottom := max((limit-minPrice)*w.Period-w.Period/2, 0)
	from := ((bottom+rise-1)/rise + 1) / 2
	pos := w.position(t, phase)
	switch {
	case pos < from:
		return t + from - pos
	case pos > w.Period-from:
		return t + w.Period + from - pos
	}
	return t
}
