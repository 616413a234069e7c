package txn

import (
	"context"
	"fmt"
	"time"
)

// Isolation says at which levels transactions run.
type Isolation string

const (
	// Snapshot: what writes runs at REPEATABLE READ, and so does what reads with more than one statement.
	Snapshot Isolation = "snapshot"
	// Spec: reads at READ COMMITTED, Trade-Result at SERIALIZABLE, the others at REPEATABLE READ.
	Spec Isolation = "spec"
	// Serializable: everything at SERIALIZABLE.
	Serializable Isolation = "serializable"
)

// BrokerMode says how Trade-Result counts a broker's trades and commissions.
type BrokerMode string

const (
	// Inline updates the broker's row.
	Inline BrokerMode = "inline"
	// SideTable inserts a row into broker_delta, which AggregateBroker adds up later.
	SideTable BrokerMode = "side-table"
	// Omit leaves brokers as they are.
	Omit BrokerMode = "omit"
)

// IDSource gives ids to trades. It is shared by sessions.
type IDSource interface {
	// Next returns an id that no trade has had.
	Next(ctx context.Context) (int64, error)
}

// Settings say how transactions run. One value is shared by sessions and does not change.
type Settings struct {
	Isolation      Isolation // Snapshot if ""
	ForUpdate      bool      // Trade-Result locks the account's row when it reads it
	Pipeline       bool      // statements of a frame are sent together
	MergeTaxUpdate bool      // Trade-Result writes tax and the rest of the trade's row at once
	// MarketWatchLoop asks for every security by itself, in place of one join.
	MarketWatchLoop bool
	// LookupLoop asks for every trade by itself, in place of = ANY.
	LookupLoop bool
	// FeedBatch runs the twenty tickers of a Market-Feed as one transaction, in place of one each.
	FeedBatch    bool
	BrokerWrites BrokerMode // Inline if ""
	// MaxRetries is how often a transaction is repeated after conflicts, 50 if 0.
	MaxRetries int
	// Outage is how long a transaction waits for a server that is gone, in all, a minute if 0.
	Outage time.Duration
	// TradeIDs gives ids to orders. If nil, the server's sequence does.
	TradeIDs IDSource
}

// Validate reports what is wrong with the settings.
func (s *Settings) Validate() error {
	switch s.Isolation {
	case "", Snapshot, Spec, Serializable:
	default:
		return fmt.Errorf("isolation %q: use %s, %s or %s", s.Isolation, Snapshot, Spec, Serializable)
	}
	switch s.BrokerWrites {
	case "", Inline, SideTable, Omit:
	default:
		return fmt.Errorf("broker writes %q: use %s, %s or %s", s.BrokerWrites, Inline, SideTable, Omit)
	}
	if s.MaxRetries < 0 || s.Outage < 0 {
		return fmt.Errorf("%d retries, %v of outage: use no negative numbers", s.MaxRetries, s.Outage)
	}
	return nil
}

func (s *Settings) maxRetries() int {
	if s.MaxRetries == 0 {
		return 50
	}
	return s.MaxRetries
}

func (s *Settings) outage() time.Duration {
	if s.Outage == 0 {
		return time.Minute
	}
	return s.Outage
}
