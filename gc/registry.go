package gc

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/percodb/percodb/tso"
)

// Pin is a process's statement that it runs no transaction at or below Oldest.
type Pin struct {
	ID     string
	Oldest tso.Timestamp
	Ends   time.Time
}

// Registry keeps the pins of processes for as long as their leases last. Safe for concurrent use.
type Registry struct {
	lease time.Duration
	clock func() time.Time
	ready time.Time // from then on every live process has reported

	mu   sync.Mutex
	pins map[string]Pin
}

// NewRegistry returns an empty registry. clock is time.Now unless given; only differences count.
func NewRegistry(lease time.Duration, clock func() time.Time) *Registry {
	if lease <= 0 {
		lease = DefaultLease
	}
	if clock == nil {
		clock = time.Now
	}
	return &Registry{lease: lease, clock: clock, ready: clock().Add(lease), pins: map[string]Pin{}}
}

// Report renews a pin; oldest 0 removes it.
func (r *Registry) Report(id string, oldest tso.Timestamp) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if oldest == 0 {
		delete(r.pins, id)
		return
	}
	r.pins[id] = Pin{ID: id, Oldest: oldest, Ends: r.clock().Add(r.lease)}
}

// Pins lists the pins in force, oldest first. Those whose lease has ended are forgotten.
func (r *Registry) Pins() []Pin {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock()
	list := make([]Pin, 0, len(r.pins))
	for id, p := range r.pins {
		if p.Ends.Before(now) {
			delete(r.pins, id)
		} else {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Pin) int { return cmp.Or(cmp.Compare(a.Oldest, b.Oldest), cmp.Compare(a.ID, b.ID)) })
	return list
}

// Ready reports whether every live process has had the time to report since the start.
func (r *Registry) Ready() bool { return !r.clock().Before(r.ready) }
