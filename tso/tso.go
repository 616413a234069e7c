// Package tso issues timestamps. It guarantees order only: a timestamp is larger than every one
// issued before the call began, also across restarts and clock steps. To this end it
// saves an upper bound ahead of the timestamps that it issues, and starts above it.
//
//	        issued              may be issued now            not yet saved
//	─────────────────────┤├──────────────────────────────┤├────────────────▶ time
//	                    cur                            limit ≤ window end (durable)
//
// Issuing a timestamp is one atomic add on cur and one comparison with limit. Reading the
// clock, advancing cur to it and saving the next window happen concurrently, a few times a second.
//
// Invariants:
//
//	I1 No timestamp at or above the durable window end is ever issued.
//	I2 An oracle starts above the window end it finds, so a crash at any point repeats nothing.
//	I3 cur never decreases, whatever the clock does. When the clock falls behind, the oracle's own
//	   time advances at half speed until the clock has caught up; it never stops.
//	I4 The physical part is at most Options.MaxBorrowMillis ahead of the oracle's time.
//	I5 Every issued timestamp has subtick 0; those with another are computed by shards.
//
// One process owns a window; its successor starts above it. Batched shares one request between
// concurrent callers of a remote oracle; package tso/rpc implements the remote oracle.
package tso

import (
	"context"
	"fmt"
	"time"

	"github.com/percodb/percodb/internal/errkind"
)

// Timestamp is physical_ms(46) | logical(15) | subtick(3). The oracle issues only subtick 0;
// timestamps computed by a shard have a non-zero subtick, so they never equal an issued one.
type Timestamp uint64

// The bit layout of a Timestamp.
const (
	SubtickBits = 3
	LogicalBits = 15
	// Tick is the distance between two issued timestamps.
	Tick Timestamp = 1 << SubtickBits
	// MaxTimestamp is above every timestamp that is ever issued or computed.
	MaxTimestamp = Timestamp(^uint64(0))
)

// Physical returns the milliseconds since the Unix epoch held in ts.
func (ts Timestamp) Physical() int64 { return int64(ts >> (SubtickBits + LogicalBits)) }

// FromPhysical returns the first timestamp of the given millisecond since the Unix epoch.
func FromPhysical(ms int64) Timestamp { return Timestamp(ms) << (SubtickBits + LogicalBits) }

// Oracle hands out strictly increasing timestamps. Every timestamp returned is larger than any
// whose call returned before this one began, across all clients. Safe for concurrent use.
type Oracle interface {
	Now(ctx context.Context) (Timestamp, error)
}

// Source issues timestamps in groups, for callers that serve many. Safe for concurrent use.
type Source interface {
	// NowN returns the first of n timestamps, Tick apart, which the caller may issue.
	NowN(ctx context.Context, n int) (Timestamp, error)
}

// MaxBatch is the largest n a Source answers.
const MaxBatch = 1 << 16

// WindowStore durably holds the bound below which timestamps may be handed out.
type WindowStore interface {
	// Load returns the saved bound, or 0 when none was ever saved.
	Load(ctx context.Context) (Timestamp, error)
	// Save returns once upper is durable.
	Save(ctx context.Context, upper Timestamp) error
}

// ErrClosed: the oracle has been closed.
var ErrClosed = errkind.New(errkind.OracleClosed, "tso: closed")

// UnavailableError: no timestamp could be issued, because the oracle could not be reached or could not save its window.
// The request may be repeated.
type UnavailableError struct {
	Err error
	// Tried is how long the request has been repeated; 0: it was sent once.
	Tried time.Duration
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("timestamp oracle unavailable: %v", e.Err)
}
func (e *UnavailableError) Unwrap() error { return e.Err }

// Kind implements errkind.Error.
func (e *UnavailableError) Kind() errkind.Kind { return errkind.OracleUnavailable }

// ClockAheadError: at start the clock is further above the saved window than Options allow. A
// timestamp cannot be taken back, so a wrong clock must be noticed before the first one.
type ClockAheadError struct{ WallMillis, SavedMillis, LimitMillis int64 }

func (e *ClockAheadError) Error() string {
	ahead := time.Duration(e.WallMillis-e.SavedMillis) * time.Millisecond
	return fmt.Sprintf("the clock is %v above the last timestamps of the data, at most %v is taken for right",
		ahead.Round(time.Second), time.Duration(e.LimitMillis)*time.Millisecond)
}
