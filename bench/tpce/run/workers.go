package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/percodb/percodb/bench/tpce/journal"
	"github.com/percodb/percodb/bench/tpce/market"
	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/txn"
)

// customers runs customers' transactions, one after the other.
func (d *driver) customers(running, work context.Context, s *txn.Session, in *txn.Inputs) {
	for {
		scheduled, ok := d.arrival(running)
		if !ok {
			return
		}
		kind := in.Kind()
		var sample mix.Sample
		if kind == mix.TradeOrder {
			var order txn.OrderResult
			order, sample = s.TradeOrder(work, in.Order())
			d.ordered(order, &sample)
		} else {
			sample = s.Customer(work, kind, in)
		}
		d.record(sample, scheduled)
	}
}

// arrival waits for the next customer. Without a pace there is always one, unless the market is behind:
// orders that arrive faster than trades complete would violate the mix, and accumulate without bound.
func (d *driver) arrival(running context.Context) (time.Time, bool) {
	if d.arrivals != nil {
		return d.arrivals.take(running)
	}
	const pause = time.Millisecond
	for d.marketBehind() && running.Err() == nil {
		select {
		case <-running.Done():
		case <-time.After(pause):
		}
	}
	return time.Now(), running.Err() == nil
}

// marketBehind reports whether the backlog of the market's connections is more than they complete in a short time.
func (d *driver) marketBehind() bool {
	const perConnection = 4
	feeds := d.o.feedConns()
	return d.market.Results.Len() > perConnection*(d.o.MEEConns-feeds) || d.market.Feeds.Len() > perConnection*feeds
}

// record records a transaction with its scheduled start. A transaction that was given up because the server was
// unavailable ends the run.
func (d *driver) record(sample mix.Sample, scheduled time.Time) {
	sample.Scheduled = scheduled
	if d.arrivals == nil {
		sample.Scheduled = sample.Started
	}
	d.rec.Record(sample)
	if errors.Is(sample.Err, txn.ErrOutage) {
		d.fail(sample.Err)
	}
}

// committed reports whether a transaction's effects are in the database.
func committed(o mix.Outcome) bool { return o == mix.Committed || o == mix.AlreadyDone }

// ordered submits an acknowledged order to the market.
func (d *driver) ordered(o txn.OrderResult, sample *mix.Sample) {
	r := journal.Record{TradeID: o.TradeID, At: sample.Finished}
	switch {
	case committed(sample.Outcome):
		r.Kind = journal.Order
	case sample.Outcome == mix.RolledBack:
		r.Kind = journal.Refused
	case sample.Outcome == mix.Unknown:
		r.Kind, r.Unknown = journal.Order, true
	default:
		return
	}
	if !d.write(r) || r.Kind != journal.Order || r.Unknown {
		return
	}
	d.market.Submit(market.Order{TradeID: o.TradeID, Type: o.Type, Limited: !o.Market, Symbol: o.Symbol, Qty: o.Qty, Limit: o.Price})
}

// write appends to the journal. A failure ends the run.
func (d *driver) write(records ...journal.Record) bool {
	if err := d.journal.Append(records...); err != nil {
		d.fail(fmt.Errorf("journal: %w", err))
		return false
	}
	return true
}

// results completes the trades that the market has executed.
func (d *driver) results(running, work context.Context, s *txn.Session) {
	for {
		r, ok := d.market.Results.Pop(running)
		if !ok {
			return
		}
		_, sample := s.TradeResult(work, txn.ResultInput{TradeID: r.Order.TradeID, Price: r.Price})
		if committed(sample.Outcome) || sample.Outcome == mix.Unknown {
			d.write(journal.Record{Kind: journal.Result, TradeID: r.Order.TradeID, Price: r.Price, At: sample.Finished,
				Unknown: sample.Outcome == mix.Unknown})
		}
		d.record(sample, r.Due)
	}
}

// tape runs the Market-Feeds of the market's tape, and submits the limit orders that they find to the market.
func (d *driver) tape(running, work context.Context, s *txn.Session) {
	for {
		f, ok := d.market.Feeds.Pop(running)
		if !ok {
			return
		}
		in := txn.FeedInput{Tickers: make([]txn.Ticker, len(f.Entries))}
		sent := make([]journal.Record, len(f.Entries))
		now := time.Now()
		for i, e := range f.Entries {
			in.Tickers[i] = txn.Ticker{Symbol: e.Symbol, Price: e.Price, Qty: e.Qty}
			sent[i] = journal.Record{Kind: journal.Sent, Symbol: e.Symbol, Price: e.Price, Qty: e.Qty, At: now}
		}
		if !d.write(sent...) {
			return
		}
		out, sample := s.MarketFeed(work, in)
		d.fed(in, out, sample.Finished)
		d.record(sample, f.Due)
	}
}

// fed records the committed effects of a Market-Feed in the journal, and submits the orders that it found.
func (d *driver) fed(in txn.FeedInput, out txn.FeedResult, at time.Time) {
	var records []journal.Record
	for i, outcome := range out.Tickers {
		if committed(outcome) || outcome == mix.Unknown {
			t := in.Tickers[i]
			records = append(records, journal.Record{Kind: journal.Volume, Symbol: t.Symbol, Price: t.Price, Qty: t.Qty, At: at,
				Unknown: outcome == mix.Unknown})
		}
	}
	for _, t := range out.Triggered {
		records = append(records, journal.Record{Kind: journal.Trigger, TradeID: t.TradeID, Symbol: t.Symbol, At: at})
	}
	if !d.write(records...) {
		return
	}
	d.feeds.Add(1)
	d.triggered.Add(int64(len(out.Triggered)))
	for _, t := range out.Triggered {
		d.market.Execute(market.Order{TradeID: t.TradeID, Type: t.Type, Limited: true, Symbol: t.Symbol, Qty: t.Qty, Limit: t.Limit})
	}
}

// maintain runs Data-Maintenance on one table after the other.
func (d *driver) maintain(running, work context.Context, s *txn.Session, in *txn.Inputs) {
	ticker := time.NewTicker(d.o.MaintainEvery)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-running.Done():
			return
		case <-ticker.C:
		}
		_, sample := s.DataMaintenance(work, in.Maintenance(n))
		d.record(sample, sample.Started)
	}
}

// aggregate periodically adds the commissions in broker_delta to their brokers.
func (d *driver) aggregate(running, work context.Context, s *txn.Session) {
	ticker := time.NewTicker(d.o.AggregateEvery)
	defer ticker.Stop()
	n, at := int64(d.o.Instances), int64(d.o.Instance)
	for {
		select {
		case <-running.Done():
			return
		case <-ticker.C:
		}
		for broker := d.gen.Brokers()*at/n + 1; broker <= d.gen.Brokers()*(at+1)/n && running.Err() == nil; broker++ {
			d.addUp(running, work, s, broker)
		}
	}
}

// addUp aggregates for one broker until no commissions are left, or an aggregation fails.
func (d *driver) addUp(running, work context.Context, s *txn.Session, broker int64) {
	const full = 500 // rows of one aggregation: there may be more
	for more := true; more && running.Err() == nil; {
		rows, sample := s.AggregateBroker(work, broker)
		more = rows >= full && committed(sample.Outcome)
		d.record(sample, sample.Started)
	}
}
