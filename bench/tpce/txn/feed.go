package txn

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// The statements of Market-Feed.
const (
	sqlFeedPrice    = `UPDATE last_trade SET lt_price = $2, lt_vol = lt_vol + $3, lt_dts = $4 WHERE lt_s_symb = $1`
	sqlFeedRequests = `SELECT tr_t_id, tr_bid_price, tr_tt_id, tr_qty FROM trade_request
WHERE tr_s_symb = $1 AND ((tr_tt_id = 'TSL' AND tr_bid_price >= $2) OR (tr_tt_id = 'TLS' AND tr_bid_price <= $2)
OR (tr_tt_id = 'TLB' AND tr_bid_price >= $2))`
	sqlFeedSubmit      = `UPDATE trade SET t_dts = $2, t_st_id = 'SBMT' WHERE t_id = $1`
	sqlFeedTake        = `DELETE FROM trade_request WHERE tr_t_id = $1`
	sqlFeedHistory     = `INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES ($1, $2, 'SBMT')`
	sqlFeedLookOrder   = `SELECT 1 FROM trade_history WHERE th_t_id = $1 AND th_st_id = 'SBMT' AND th_dts = $2`
	sqlFeedLookAtPrice = `SELECT 1 FROM last_trade WHERE lt_s_symb = $1 AND lt_dts = $2`
)

// errTaken: another transaction has deleted a row that this one has read.
var errTaken = errors.New("a row was taken by another transaction")

// feed is one transaction of a Market-Feed.
type feed struct {
	*Session
	tickers   []Ticker
	now       time.Time
	triggered []Triggered
}

// MarketFeed writes prices, and submits the limit orders whose limits they meet. Each ticker is a transaction, or
// all tickers are one (Settings.FeedBatch). Its outcome is Unknown if that of any ticker is.
func (s *Session) MarketFeed(ctx context.Context, in FeedInput) (FeedResult, mix.Sample) {
	res := FeedResult{Tickers: make([]mix.Outcome, len(in.Tickers))}
	for i := range res.Tickers {
		res.Tickers[i] = mix.Failed
	}
	if s.set.FeedBatch {
		sample := s.feed(ctx, merged(in.Tickers), &res)
		for i := range res.Tickers {
			res.Tickers[i] = sample.Outcome
		}
		return res, sample
	}
	whole := mix.Sample{Kind: mix.MarketFeed, Started: time.Now()}
	for i := range in.Tickers {
		part := s.feed(ctx, in.Tickers[i:i+1], &res)
		res.Tickers[i] = part.Outcome
		whole.Aborts = append(whole.Aborts, part.Aborts...)
		whole.RoundTrips += part.RoundTrips
		if part.Err != nil {
			whole.Outcome, whole.Err = part.Outcome, part.Err
		}
		if part.Outcome == mix.Failed {
			break
		}
	}
	whole.Finished = time.Now()
	return res, whole
}

// merged returns one ticker for each symbol, sorted by symbol, with the last price and the sum of the
// shares.
func merged(tickers []Ticker) []Ticker {
	var all []Ticker
	for _, t := range tickers {
		if i := slices.IndexFunc(all, func(o Ticker) bool { return o.Symbol == t.Symbol }); i >= 0 {
			all[i].Price = t.Price
			all[i].Qty += t.Qty
			continue
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Ticker) int { return strings.Compare(a.Symbol, b.Symbol) })
	return all
}

// feed runs one transaction until its outcome is determined, and adds the triggered orders to res.
func (s *Session) feed(ctx context.Context, tickers []Ticker, res *FeedResult) mix.Sample {
	var f feed
	var doubted []feed // attempts that may still commit
	sample := s.perform(ctx, work{kind: mix.MarketFeed,
		try: func(ctx context.Context) error {
			f = feed{Session: s, tickers: tickers, now: clock()}
			s.frame.begin(s.beginOrder())
			if was, err := f.committed(ctx, doubted); was != nil || err != nil {
				if was != nil {
					f, err = *was, errAlreadyDone
				}
				return err
			}
			return f.run(ctx)
		},
		look: func(ctx context.Context) (bool, error) {
			committed, err := f.look(ctx)
			if err == nil && !committed {
				doubted = append(doubted, f)
			}
			return committed, err
		},
	})
	if sample.Outcome == mix.Committed || sample.Outcome == mix.AlreadyDone {
		res.Triggered = append(res.Triggered, f.triggered...)
	}
	return sample
}

// committed searches, in the current transaction, for one of the attempts whose COMMIT was not answered.
// The result is final: the attempts wrote the prices that this transaction is about to write, so that one of
// them fails if the attempt commits after this transaction's snapshot was taken.
func (f *feed) committed(ctx context.Context, doubted []feed) (*feed, error) {
	for i := range doubted {
		d := &doubted[i]
		var found bool
		f.frame.maybe(&found, sqlFeedLookOrder, []any{d.triggered[0].TradeID, d.now}, nil)
		if err := f.frame.send(ctx); err != nil {
			return nil, err
		}
		if found {
			return d, nil
		}
	}
	return nil, nil
}

func (f *feed) run(ctx context.Context) error {
	fr := &f.frame
	for _, t := range f.tickers {
		var found Triggered
		var limit cents
		fr.change(sqlFeedPrice, t.Symbol, money(t.Price), t.Qty, f.now)
		fr.each(sqlFeedRequests, []any{t.Symbol, money(t.Price)}, []any{&found.TradeID, &limit, &found.Type, &found.Qty}, func() {
			found.Symbol, found.Limit = t.Symbol, int64(limit)
			f.triggered = append(f.triggered, found)
		})
	}
	if err := fr.send(ctx); err != nil {
		return err
	}
	if len(f.triggered) > 0 {
		slices.SortFunc(f.triggered, func(a, b Triggered) int { return int(a.TradeID - b.TradeID) })
		var taken int64
		for _, t := range f.triggered {
			fr.change(sqlFeedSubmit, t.TradeID, f.now)
			fr.count(&taken, sqlFeedTake, t.TradeID)
			fr.change(sqlFeedHistory, t.TradeID, f.now)
		}
		if err := fr.send(ctx); err != nil {
			return err
		}
		if taken != int64(len(f.triggered)) {
			return errTaken
		}
	}
	fr.commit()
	return fr.send(ctx)
}

// look determines from the submitted orders whether the transaction has committed. If it submitted none, the time in
// last_trade can show that it has committed, but not that it has not, because a later transaction may have
// overwritten the time: then the error is errNothingTells.
func (f *feed) look(ctx context.Context) (bool, error) {
	if len(f.triggered) > 0 {
		return f.exists(ctx, sqlFeedLookOrder, f.triggered[0].TradeID, f.now)
	}
	committed, err := f.exists(ctx, sqlFeedLookAtPrice, f.tickers[0].Symbol, f.now)
	if err == nil && !committed {
		err = errNothingTells
	}
	return committed, err
}

var errNothingTells = errors.New("nothing in the database tells whether it committed")
