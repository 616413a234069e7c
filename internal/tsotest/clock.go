package tsotest

import (
	"context"
	"sync"
	"time"

	"github.com/percodb/percodb/tso"
)

// ClockOracle is an oracle of this process that follows the wall clock. Safe for concurrent use.
type ClockOracle struct {
	mu   sync.Mutex
	last tso.Timestamp
}

// Now implements tso.Oracle.
func (o *ClockOracle) Now(context.Context) (tso.Timestamp, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = max(o.last+tso.Tick, tso.FromPhysical(time.Now().UnixMilli()))
	return o.last, nil
}
