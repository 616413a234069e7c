//go:build !race

package sim

import (
	"runtime"
	"testing"
)

// Goal: a seed replays what happened (I1). Method: seeds run twice in this process, on one processor; the
// digests of all events are compared. Go's own randomness may make a few differ, which is why it is a
// share that is demanded and not all; the race detector has the scheduler choose at random.
func TestSameSeedSameEvents(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const seeds = 20
	same := 0
	for seed := range uint64(seeds) {
		a, b := simulate(t, seed, nil, nil), simulate(t, seed, nil, nil)
		if a.digest == b.digest && a.events == b.events {
			same++
		}
	}
	t.Logf("%d of %d seeds replay exactly", same, seeds)
	if same < seeds*9/10 {
		t.Errorf("only %d of %d seeds replay exactly", same, seeds)
	}
}
