package gc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/percodb/percodb/tso"
)

// Defaults and bounds.
const (
	// DefaultLife is how long history is kept by default.
	DefaultLife = 10 * time.Minute
	// MinLife keeps statements that have just begun from being fenced off.
	MinLife = time.Second
	// MaxLife is a year.
	MaxLife = 365 * 24 * time.Hour
	// DefaultInterval is the time from one round to the next.
	DefaultInterval = time.Minute
	// DefaultLease is how long a report is valid.
	DefaultLease = 15 * time.Second
	// DefaultFenceTimeout is how long a shard may take to raise its fence before it counts as unavailable.
	DefaultFenceTimeout = 15 * time.Second
)

// Status is the status of garbage collection.
type Status struct {
	// SafePoint: history at or below it is removed, or about to be. 0: nothing has been removed.
	SafePoint tso.Timestamp
	// Oldest is at or below the oldest transaction of any process, and Holder names the process. 0: not
	// known yet.
	Oldest tso.Timestamp
	Holder string
	// Life is how long history is kept.
	Life time.Duration
	// Collected is the safe point up to which the last complete round has removed history.
	Collected tso.Timestamp
	// Stage is the current step: idle, fence, resolve, sync, drop, collect.
	Stage string
	// Away are the shards that took no part in the last round: their ranges keep their history, and the other shards
	// keep the records that determine the outcome of transactions that may have locks there.
	Away []string
	// LeftLocks is the number of locks that the last round has left on other shards because only those in Away know
	// their outcome.
	LeftLocks int
	// LastError is the error of the last round, "" if it succeeded.
	LastError string
}

// Service is the controller as SQL processes use it, local or remote. Safe for concurrent use.
type Service interface {
	// Report states that the process id runs no transaction at or below oldest; it is valid for a lease from now on.
	// oldest 0 means that the process is leaving.
	Report(ctx context.Context, id string, oldest tso.Timestamp) (Status, error)
	// SetLife changes how long history is kept, durably. *LifeError if that is out of bounds.
	SetLife(ctx context.Context, life time.Duration) error
}

// LifeError: the time to keep history is out of bounds.
type LifeError struct{ Life time.Duration }

func (e *LifeError) Error() string {
	return fmt.Sprintf("history cannot be kept for %v: the bounds are %v and %v", e.Life, MinLife, MaxLife)
}

// ErrUnavailable: the controller could not be reached.
var ErrUnavailable = errors.New("gc: the controller could not be reached")

func checkLife(life time.Duration) error {
	if life < MinLife || life > MaxLife {
		return &LifeError{Life: life}
	}
	return nil
}
