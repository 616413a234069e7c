package tso

import "time"

// Clock returns wall time. It may step, forward and back.
type Clock interface {
	// NowMillis returns milliseconds since the Unix epoch.
	NowMillis() int64
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// NowMillis implements Clock.
func (SystemClock) NowMillis() int64 { return time.Now().UnixMilli() }

// steadyTime derives a time that never decreases from a clock that may step.
//
//	clock goes forward                   time follows it
//	clock is behind time (stepped back)  time grows by half of what the clock grows, until it is caught up
//	clock leaps beyond maxStepMillis     the leap is left out, time and clock drift apart by it
//
// Half speed keeps lock TTLs running while the distance shrinks.
type steadyTime struct {
	maxStepMillis int64
	now           int64 // the oracle's time
	lastWall      int64
	leapMillis    int64 // sum of leaps left out
	halves        int64 // 0 or 1: a half millisecond carried over
}

// advance takes a reading of the clock and reports whether a leap was left out.
func (s *steadyTime) advance(wall int64) (leapt bool) {
	delta := wall - s.lastWall
	s.lastWall = wall
	switch {
	case delta > s.maxStepMillis:
		s.leapMillis += delta
		return true
	case delta <= 0:
		// A leap that was left out and is now taken back must not count against us.
		s.leapMillis = max(0, s.leapMillis+delta)
		return false
	}
	if target := wall - s.leapMillis; target > s.now {
		s.now = target
		return false
	}
	delta += s.halves
	s.now += delta / 2
	s.halves = delta % 2
	return false
}
