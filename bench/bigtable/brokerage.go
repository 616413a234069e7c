package bigtable

import (
	"context"
	"errors"
	"fmt"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/txn"
)

// brokerageScale is the least brokerage: four trades a customer are loaded in a minute, and the days that a run would look back on are not needed.
var brokerageScale = gen.Scale{Customers: 1000, TradeDays: 1, TradesPerCustomer: 4, MarketDays: 31, NewsBytes: 300, Seed: 1, ShortHistory: true}

// tradeIDs hands out ids without a request, as a run does that has leased them.
type tradeIDs struct{ last int64 }

func (t *tradeIDs) Next(context.Context) (int64, error) {
	t.last++
	return t.last, nil
}

// brokerage counts Trade-Orders and Trade-Results of the TPC-E-like workload apart, at the second process. Orders that wait for a price
// have no result: three of five are at the market.
func (o *Options) brokerage(ctx context.Context, d *deployment) (all []Requests, err error) {
	s := d.sqls[1]
	if _, err := load.Run(ctx, load.Options{URLs: []string{s.url()}, Scale: brokerageScale}); err != nil {
		return nil, err
	}
	if err := awaitLeases(ctx); err != nil {
		return nil, err
	}
	g, err := gen.New(brokerageScale)
	if err != nil {
		return nil, err
	}
	session, err := txn.Open(ctx, s.url(), &txn.Settings{Pipeline: true, MergeTaxUpdate: true, TradeIDs: &tradeIDs{g.MaxTradeID()}}, g)
	if err != nil {
		return nil, err
	}
	defer session.Close(context.WithoutCancel(ctx))
	inputs := txn.NewInputs(g, 1, txn.InputOptions{})
	var entered []txn.OrderResult
	order := func(ctx context.Context, _ int) error {
		in := inputs.Order()
		in.RollBack = false
		out, sample := session.TradeOrder(ctx, in)
		if sample.Outcome == mix.Committed && out.Market {
			entered = append(entered, out)
		}
		return unlessCommitted(&sample)
	}
	result := func(ctx context.Context, _ int) error {
		if len(entered) == 0 {
			return errors.New("no order is left")
		}
		of := entered[0]
		entered = entered[1:]
		_, sample := session.TradeResult(ctx, txn.ResultInput{TradeID: of.TradeID, Price: of.Price})
		return unlessCommitted(&sample)
	}
	for _, op := range []struct {
		what string
		ops  int
		do   func(context.Context, int) error
	}{{"Trade-Order", 2*o.Ops + 20, order}, {"Trade-Result", o.Ops, result}} {
		counted, err := o.count(ctx, s, op.what, op.ops, op.do)
		if err != nil {
			return all, err
		}
		all = append(all, counted)
	}
	return all, nil
}

func unlessCommitted(s *mix.Sample) error {
	if s.Outcome != mix.Committed {
		return fmt.Errorf("a transaction of the workload has the outcome %v: %w", s.Outcome, s.Err)
	}
	return nil
}
