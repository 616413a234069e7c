package run

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/txn"
	"github.com/percodb/percodb/bench/tpce/usage"
)

// IDs selects how trades get their ids.
type IDs string

const (
	// Block: ids ascend, from blocks leased by one process each.
	Block IDs = "block"
	// Scatter: blocks are spread over the whole range of ids, and many of them used at a time.
	Scatter IDs = "scatter"
	// Sequence: the server's sequence gives an id to each.
	Sequence IDs = "sequence"
)

// Options configure a run. The zero value of a field is its default, unless stated otherwise.
type Options struct {
	URLs []string // connections go to one after the other
	// ActiveCustomers act, the first ones; all if 0.
	ActiveCustomers int64
	// Seed of what customers ask for. The data have their own.
	Seed uint64
	// Factor is how many times the nominal rate customers arrive, 1 if 0.
	Factor float64
	// Max: workers run without pauses, instead of arrivals by the clock.
	Max bool
	// Uniform: arrivals are evenly spaced, instead of random (a Poisson process).
	Uniform  bool
	Workers  int // connections of customers; 4 for each processor if 0
	MEEConns int // connections of the market; 16 if 0
	Ramp     time.Duration
	Duration time.Duration // of the measured time; 30 minutes if 0
	Interval time.Duration // of the series; 10 seconds if 0
	// Transactions configures the transactions. Its TradeIDs is not used.
	Transactions txn.Settings
	IDs          IDs // Block if ""
	// AggregateEvery is the interval at which broker_delta is added to the brokers; 10 seconds if 0.
	AggregateEvery time.Duration
	// MaintainEvery is the interval of maintenance of a table; a minute if 0.
	MaintainEvery time.Duration
	// PricePeriod is the time from one lowest price of a security to the next; 15 minutes if 0.
	PricePeriod time.Duration
	// Weights of the customers' transactions, instead of the mix's unless all are 0.
	Weights [mix.Kinds]int
	// Journal is a directory for what the server acknowledged; none is kept if "".
	Journal string
	Usage   usage.Options
	// Instance of Instances processes that share the load; 0 of 1 if Instances is 0. Only instance 0 maintains.
	// Several do not clean up: CleanUp does, before them.
	Instance, Instances int
	// PartitionPercent of a process's customers are of its own load units.
	PartitionPercent int64
	// SkipCleanup omits the clean-up of a run of one process.
	SkipCleanup bool
	// Label and Settings are copied into the result.
	Label    string
	Settings map[string]string
	// Live receives every interval, with the time since the start and the nominal rate; Notice receives messages for
	// the user. Either may be nil. Calls do not overlap.
	Live   func(p report.Point, elapsed time.Duration, nominal float64)
	Notice func(text string)
}

// fill sets defaults, and reports invalid options.
func (o *Options) fill() error {
	if len(o.URLs) == 0 {
		return errors.New("no server to run on")
	}
	orInt := func(v *int, otherwise int) {
		if *v == 0 {
			*v = otherwise
		}
	}
	orTime := func(v *time.Duration, otherwise time.Duration) {
		if *v == 0 {
			*v = otherwise
		}
	}
	orInt(&o.Workers, 4*runtime.NumCPU())
	orInt(&o.MEEConns, 16)
	orInt(&o.Instances, 1)
	orTime(&o.Duration, 30*time.Minute)
	orTime(&o.Interval, 10*time.Second)
	orTime(&o.AggregateEvery, 10*time.Second)
	orTime(&o.MaintainEvery, defaultMaintainEvery)
	orTime(&o.PricePeriod, defaultPricePeriod)
	orTime(&o.Transactions.Outage, defaultOutage)
	if o.Factor == 0 {
		o.Factor = 1
	}
	if o.IDs == "" {
		o.IDs = Block
	}
	if o.Transactions.BrokerWrites == "" {
		o.Transactions.BrokerWrites = txn.Inline
	}
	if o.Transactions.Isolation == "" {
		o.Transactions.Isolation = txn.Snapshot
	}
	if o.Live == nil {
		o.Live = func(report.Point, time.Duration, float64) {}
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	return o.validate()
}

const (
	defaultPricePeriod   = 15 * time.Minute
	defaultMaintainEvery = time.Minute
	defaultOutage        = time.Minute
	maxFactor            = 1e6
	shortest             = 100 * time.Millisecond // of periodic work
)

func (o *Options) validate() error {
	switch {
	case o.Workers < 1 || o.Workers > 10_000:
		return fmt.Errorf("%d workers: use 1 to 10000", o.Workers)
	case o.MEEConns < 2 || o.MEEConns > 10_000:
		return fmt.Errorf("%d connections of the market: use 2 to 10000", o.MEEConns)
	case !(o.Factor > 0 && o.Factor <= maxFactor):
		return fmt.Errorf("a pace of %v times the nominal rate: use more than 0", o.Factor)
	case o.Ramp < 0 || o.Duration < time.Second || min(o.Interval, o.AggregateEvery, o.MaintainEvery) < shortest:
		return fmt.Errorf("ramp %v, duration %v, interval %v, aggregation every %v, maintenance every %v: too short",
			o.Ramp, o.Duration, o.Interval, o.AggregateEvery, o.MaintainEvery)
	case o.PricePeriod < time.Second:
		return fmt.Errorf("a price period of %v: use a second or more", o.PricePeriod)
	case o.Instances < 1 || o.Instance < 0 || o.Instance >= o.Instances:
		return fmt.Errorf("instance %d of %d: they are numbered from 0", o.Instance, o.Instances)
	case o.PartitionPercent < 0 || o.PartitionPercent > 100:
		return fmt.Errorf("%d percent: use 0 to 100", o.PartitionPercent)
	case o.IDs != Block && o.IDs != Scatter && o.IDs != Sequence:
		return fmt.Errorf("trade ids %q: use %s, %s or %s", o.IDs, Block, Scatter, Sequence)
	}
	for k, w := range o.Weights {
		if w < 0 || w > 0 && mix.Of(mix.Kind(k)).Weight == 0 {
			return fmt.Errorf("a weight of %d for %s: customers ask for other kinds, 0 times or more", w, mix.Kind(k))
		}
	}
	return o.Transactions.Validate()
}

// feedConns is the number of the market's connections that run Market-Feeds, which are twenty transactions to ten
// Trade-Results. More of them would conflict more often, because they write the same securities.
func (o *Options) feedConns() int { return max(1, o.MEEConns/4) }

// paced reports whether customers arrive by the clock.
func (o *Options) paced() bool { return !o.Max }
