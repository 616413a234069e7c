package report

import (
	"fmt"
	"math"
	"time"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// WithinLimit reports whether the ninetieth percentile is within the kind's limit.
func WithinLimit(k mix.Kind, p90 time.Duration) bool {
	limit := mix.Of(k).Limit
	return limit == 0 || p90 <= limit
}

// MixWithin returns a line for each kind whose share deviates from its target by more than 2 percent of the
// target and by more than three standard deviations of a sample of that size.
func MixWithin(counts [mix.InMix]int64) []string {
	var all int64
	for _, n := range counts {
		all += n
	}
	var off []string
	if all == 0 {
		return []string{"no transaction finished"}
	}
	for k, n := range counts {
		fact := mix.Of(mix.Kind(k))
		target := float64(fact.Share) / 1e4
		share := float64(n) / float64(all)
		tolerance := max(0.02*target, 3*math.Sqrt(target*(1-target)/float64(all)))
		if math.Abs(share-target) > tolerance {
			off = append(off, fmt.Sprintf("%s is %.2f %% of the mix, not %.2f ± %.2f %%", fact.Name, 100*share, 100*target, 100*tolerance))
		}
	}
	return off
}

// LimitsBroken returns a line for each kind whose ninetieth percentile exceeds its limit.
func (r *Result) LimitsBroken() []string {
	var off []string
	for k := range mix.Kind(mix.InMix) {
		if t := r.Of(k); t.Count > 0 && !t.Pass {
			off = append(off, fmt.Sprintf("%s: p90 is %s ms, the limit %s ms", k, show(t.LatencyMS.P90), show(t.LimitMS)))
		}
	}
	return off
}

// MixOff is MixWithin for the result's counts.
func (r *Result) MixOff() []string {
	var counts [mix.InMix]int64
	for k := range counts {
		counts[k] = r.Of(mix.Kind(k)).Count
	}
	return MixWithin(counts)
}
