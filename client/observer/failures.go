package observer

import "sync"

// maxFailures is how many changes are counted at least, the last ones that have failed. At most twice as many are.
const maxFailures = 10_000

// failures counts the failed attempts of changes that are handled alone, by Change.ID. Safe for concurrent use.
type failures struct {
	mu sync.Mutex
	// young are the changes that have failed last; when there are maxFailures, they become old, and the old ones are forgotten: most of
	// these have been handled elsewhere, or changed again.
	young, old map[string]int
}

// add counts a failed attempt.
func (f *failures) add(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.young[id] + f.old[id] + 1
	delete(f.old, id)
	if f.young[id] = n; len(f.young) >= maxFailures {
		f.young, f.old = map[string]int{}, f.young
	}
}

// of returns the number of failed attempts.
func (f *failures) of(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.young[id] + f.old[id]
}

// forget forgets changes that are handled.
func (f *failures) forget(changes []Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.young)+len(f.old) == 0 {
		return
	}
	for i := range changes {
		id := changes[i].ID()
		delete(f.young, id)
		delete(f.old, id)
	}
}
