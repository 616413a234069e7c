package micro

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Way is one of the ways to do an operation that are compared.
type Way struct {
	Name string
	// Do does it once; it is called by several clients at once, each with a generator of its own.
	Do func(r *rand.Rand) error
}

// Turn is what a way came to in one turn. CPU is processor time of this whole process.
type Turn struct {
	Ops       int
	Wall, CPU time.Duration
}

// Many has a number of clients do n operations and returns the first error.
func Many(clients, n int, do func(r *rand.Rand) error) error {
	errs := make(chan error, clients)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(rand.Uint64(), 0))
			for range n / clients {
				if err := do(r); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// Turns has each way do n operations in each of a number of turns, and returns each way's turns. The
// ways take turns, in an order that changes: what else the machine does meets all of them alike. Each
// warms up before the first.
func Turns(clients, n, turns int, ways ...Way) ([][]Turn, error) {
	for _, w := range ways {
		if err := Many(clients, max(n, clients), w.Do); err != nil {
			return nil, err
		}
	}
	took := make([][]Turn, len(ways))
	for turn := range turns {
		for i := range ways {
			w := (i + turn) % len(ways)
			cpu, begin := CPUTime(), time.Now()
			if err := Many(clients, n, ways[w].Do); err != nil {
				return nil, err
			}
			took[w] = append(took[w], Turn{Ops: n / clients * clients, Wall: time.Since(begin), CPU: CPUTime() - cpu})
		}
	}
	return took, nil
}

// Median returns the middle value, the upper one of two.
func Median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
