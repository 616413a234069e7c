//go:build !race

package sim

import (
	"runtime"
	"testing"
)

// Goal: a seed replays the same events (I1). Method: run seeds twice in this process, on one processor, and compare the
// digests of all events. Go's own randomness may change a few, so that a share must be equal and not all; under the
// race detector the scheduler chooses at random.
func TestSameSeedSameEvents(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const seeds = 20
	same := 0
	for seed := range uint64(seeds) {
		a := simulate(t, seed, nil, nil)
		for range 4 { // On a busy machine the scheduler interrupts a goroutine more often.
			if b := simulate(t, seed, nil, nil); a.digest == b.digest && a.events == b.events {
				same++
				break
			}
		}
	}
	t.Logf("%d of %d seeds replay exactly", same, seeds)
	if same < seeds*9/10 {
		t.Errorf("only %d of %d seeds replay exactly", same, seeds)
	}
}
