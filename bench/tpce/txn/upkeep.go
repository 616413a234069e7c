package txn

import (
	"context"
	"time"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// The statements of Trade-Cleanup and of the aggregation of brokers' commissions.
const (
	sqlCleanPending   = `SELECT tr_t_id FROM trade_request ORDER BY tr_t_id LIMIT 200`
	sqlCleanSubmitted = `SELECT t_id FROM trade WHERE t_id >= $1 AND t_st_id = 'SBMT' ORDER BY t_id LIMIT 200`
	sqlCleanTrade     = `UPDATE trade SET t_st_id = 'CNCL', t_dts = $2 WHERE t_id = $1`
	sqlCleanHistory   = `INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES ($1, $2, 'SBMT') ON CONFLICT DO NOTHING`
	sqlCleanCancelled = `INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES ($1, $2, 'CNCL')`

	sqlBrokerDeltas = `SELECT bd_t_id, bd_comm FROM broker_delta WHERE bd_b_id = $1 ORDER BY bd_t_id LIMIT 500`
	sqlBrokerAdd    = `UPDATE broker SET b_comm_total = b_comm_total + $2, b_num_trades = b_num_trades + $3 WHERE b_id = $1`
	sqlBrokerTaken  = `DELETE FROM broker_delta WHERE bd_b_id = $1 AND bd_t_id = ANY($2)`
)

// cleanBatch is the limit in the statements of Trade-Cleanup.
const (
	cleanBatch = 200
)

// CleanUp cancels the open trades of an earlier run: pending orders, and submitted trades with ids from first
// on. It runs in transactions of up to 200 trades each; a repeated one finds the remaining trades.
func (s *Session) CleanUp(ctx context.Context, first int64) (CleanupResult, mix.Sample) {
	var out CleanupResult
	whole := mix.Sample{Kind: mix.TradeCleanup, Started: time.Now()}
	pending := func(f *frame, ids *[]int64) {
		var id int64
		f.each(sqlCleanPending, nil, []any{&id}, func() { *ids = append(*ids, id) })
	}
	submitted := func(f *frame, ids *[]int64) {
		var id int64
		f.each(sqlCleanSubmitted, []any{first}, []any{&id}, func() { *ids = append(*ids, id) })
	}
	for done := false; !done && whole.Err == nil; {
		ids := s.cancel(ctx, &whole, true, pending)
		out.Pending += int64(len(ids))
		done = len(ids) < cleanBatch
	}
	for done := false; !done && whole.Err == nil; {
		ids := s.cancel(ctx, &whole, false, submitted)
		out.Submitted += int64(len(ids))
		if done = len(ids) < cleanBatch; !done {
			first = ids[len(ids)-1] + 1
		}
	}
	whole.Finished = time.Now()
	return out, whole
}

// cancel cancels the trades that a query finds, adds the measurements to a sample, and returns the trades.
func (s *Session) cancel(ctx context.Context, whole *mix.Sample, requests bool, query func(f *frame, ids *[]int64)) []int64 {
	var ids []int64
	part := s.perform(ctx, work{kind: mix.TradeCleanup, try: func(ctx context.Context) error {
		ids = nil
		f := &s.frame
		f.begin(s.beginUpkeep())
		query(f, &ids)
		if err := f.send(ctx); err != nil {
			return err
		}
		now := clock()
		for _, id := range ids {
			if requests {
				f.exec(sqlCleanHistory, id, now)
				f.change(sqlFeedTake, id)
			}
			f.change(sqlCleanTrade, id, now)
			f.change(sqlCleanCancelled, id, now)
		}
		f.commit()
		return f.send(ctx)
	}})
	whole.Aborts = append(whole.Aborts, part.Aborts...)
	whole.RoundTrips += part.RoundTrips
	whole.Outcome, whole.Err = part.Outcome, part.Err
	return ids
}

// AggregateBroker adds up to 500 rows of broker_delta to their broker. It returns the number of rows found, with any
// outcome.
func (s *Session) AggregateBroker(ctx context.Context, broker int64) (int64, mix.Sample) {
	var trades int64
	sample := s.perform(ctx, work{kind: mix.BrokerAggregation, try: func(ctx context.Context) error {
		f := &s.frame
		var ids []int64
		var id, sum int64
		var fee cents
		f.begin(s.beginUpkeep())
		f.each(sqlBrokerDeltas, []any{broker}, []any{&id, &fee}, func() {
			ids = append(ids, id)
			sum += int64(fee)
		})
		if err := f.send(ctx); err != nil {
			return err
		}
		trades = int64(len(ids))
		if trades > 0 {
			var taken int64
			f.change(sqlBrokerAdd, broker, money(sum), trades)
			f.count(&taken, sqlBrokerTaken, broker, ids)
			if err := f.send(ctx); err != nil {
				return err
			}
			if taken != trades {
				return errTaken
			}
		}
		f.commit()
		return f.send(ctx)
	}})
	return trades, sample
}

// Customer draws and runs a customer's transaction of a kind other than Trade-Order.
func (s *Session) Customer(ctx context.Context, kind mix.Kind, in *Inputs) mix.Sample {
	var sample mix.Sample
	switch kind {
	case mix.TradeStatus:
		_, sample = s.TradeStatus(ctx, in.Status())
	case mix.CustomerPosition:
		_, sample = s.CustomerPosition(ctx, in.Position())
	case mix.BrokerVolume:
		_, sample = s.BrokerVolume(ctx, in.Volume())
	case mix.MarketWatch:
		_, sample = s.MarketWatch(ctx, in.Watch())
	case mix.SecurityDetail:
		_, sample = s.SecurityDetail(ctx, in.Detail())
	case mix.TradeLookup:
		_, sample = s.TradeLookup(ctx, in.Lookup())
	case mix.TradeUpdate:
		_, sample = s.TradeUpdate(ctx, in.Update())
	default:
		now := time.Now()
		sample = mix.Sample{Kind: kind, Started: now, Finished: now, Outcome: mix.Failed,
			Err: unexpected("customers do not ask for a %s this way", kind)}
	}
	return sample
}
