package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/percodb/percodb/bench/tpce/report"
)

// searchPrecision is the maximum ratio, at the end of a search, of the slowest pace that is too fast to the
// fastest valid one.
const searchPrecision = 1.05

// ErrTooSlow: the server is too slow for any pace that a search tries.
var ErrTooSlow = errors.New("no pace is slow enough: a hundredth of the nominal rate is not valid")

// Search finds the fastest valid pace, and returns the result of its run. It begins with o.Factor, and doubles or
// halves it until it has found a valid and an invalid pace; then it bisects. It calls step with every result.
//
// A run that is interrupted, or fails, ends the search with an error, and the best result so far.
func Search(ctx context.Context, o Options, step func(factor float64, r *report.Result)) (*report.Result, error) {
	if o.Max {
		return nil, errors.New("a search is for the fastest pace: it cannot be run without one")
	}
	if err := o.fill(); err != nil {
		return nil, err
	}
	return search(o.Factor, func(factor float64) (*report.Result, error) {
		o.Factor = factor
		r, err := Run(ctx, o)
		if err == nil {
			err = ctx.Err()
		}
		if r != nil {
			step(factor, r)
		}
		return r, err
	})
}

// search is Search with an injected run.
func search(factor float64, run func(factor float64) (*report.Result, error)) (best *report.Result, err error) {
	const slowest = 0.01
	var good, bad float64 // 0: none yet
	for {
		r, err := run(factor)
		if err != nil {
			return best, fmt.Errorf("at %v times the nominal rate: %w", factor, err)
		}
		if r.Valid {
			best, good = r, factor
		} else {
			bad = factor
		}
		switch {
		case bad == 0 && 2*factor > maxFactor:
			return best, nil
		case bad == 0:
			factor *= 2
		case good == 0 && factor <= slowest:
			return nil, ErrTooSlow
		case good == 0:
			factor = max(factor/2, slowest)
		case bad/good <= searchPrecision:
			return best, nil
		default:
			factor = (good + bad) / 2
		}
	}
}
