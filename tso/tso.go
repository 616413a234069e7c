// Package tso hands out timestamps. Its only promise is order: a timestamp is larger than every
// one handed out before the call began, over restarts and clock steps as well. It keeps the promise
// by saving an upper bound ahead of what it hands out, and starting above it.
package tso

import "context"

// Timestamp is physical_ms(46) | logical(14) | subtick(4). The oracle issues only subtick 0;
// timestamps computed by a shard have a non-zero subtick, so they never equal an issued one.
type Timestamp uint64

// The bit layout of a Timestamp.
const (
	SubtickBits = 4
	LogicalBits = 14
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

// WindowStore durably holds the bound below which timestamps may be handed out.
type WindowStore interface {
	// Load returns the saved bound, or 0 when none was ever saved.
	Load(ctx context.Context) (Timestamp, error)
	// Save returns once upper is durable.
	Save(ctx context.Context, upper Timestamp) error
}
