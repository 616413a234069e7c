package txn

import (
	"context"
	"fmt"
	"time"
)

// Isolation selects the levels of the transactions.
type Isolation string

const (
	// Snapshot: transactions that write, or read with several statements, run at REPEATABLE READ.
	Snapshot Isolation = "snapshot"
	// Spec: reads at READ COMMITTED, Trade-Result at SERIALIZABLE, the others at REPEATABLE READ.
	Spec Isolation = "spec"
	// Serializable: everything at SERIALIZABLE.
	Serializable Isolation = "serializable"
)

// BrokerMode is how Trade-Result counts a broker's trades and commissions.
type BrokerMode string

const (
	// Inline updates the broker's row.
	Inline BrokerMode = "inline"
	// SideTable inserts a row into broker_delta, which AggregateBroker aggregates later.
	SideTable BrokerMode = "side-table"
	// Omit does not change brokers.
	Omit BrokerMode = "omit"
)

// IDSource generates ids of trades. Sessions share it.
type IDSource interface {
	// Next returns a new id.
	Next(ctx context.Context) (int64, error)
}

// Settings configure the transactions. Sessions share one value, which does not change.
type Settings struct {
	Isolation      Isolation // Snapshot if ""
	ForUpdate      bool      // Trade-Result locks the account's row when it reads it
	Pipeline       bool      // statements of a frame are sent in a pipeline
	MergeTaxUpdate bool      // Trade-Result writes tax and the rest of the trade's row at once
	// MarketWatchLoop queries every security separately, instead of one join.
	MarketWatchLoop bool
	// LookupLoop queries every trade separately, instead of = ANY.
	LookupLoop bool
	// FeedBatch runs the twenty tickers of a Market-Feed as one transaction, instead of one each.
	FeedBatch    bool
	BrokerWrites BrokerMode // Inline if ""
	// MaxRetries is how often a transaction is repeated after conflicts, 50 if 0.
	MaxRetries int
	// Outage is how long a transaction waits for an unavailable server in total, a minute if 0.
	Outage time.Duration
	// TradeIDs generates ids of orders. If nil, the server's sequence does.
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
