package txn

import (
	"context"
	"slices"
	"time"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/mix"
)

// The statements of Trade-Order.
const (
	sqlOrderAccount = `SELECT ca.ca_name, ca.ca_b_id, ca.ca_c_id, ca.ca_tax_st, c.c_f_name, c.c_l_name, c.c_tier, c.c_tax_id, b.b_name
FROM customer_account ca JOIN customer c ON c.c_id = ca.ca_c_id JOIN broker b ON b.b_id = ca.ca_b_id
WHERE ca.ca_id = $1`
	sqlOrderPermission = `SELECT ap_acl FROM account_permission
WHERE ap_ca_id = $1 AND ap_tax_id = $2 AND ap_f_name = $3 AND ap_l_name = $4`
	sqlOrderBySymbol = `SELECT s.s_symb, s.s_name, s.s_ex_id, co.co_name, lt.lt_price
FROM security s JOIN company co ON co.co_id = s.s_co_id JOIN last_trade lt ON lt.lt_s_symb = s.s_symb
WHERE s.s_symb = $1`
	sqlOrderByCompany = `SELECT s.s_symb, s.s_name, s.s_ex_id, co.co_name, lt.lt_price
FROM company co JOIN security s ON s.s_co_id = co.co_id JOIN last_trade lt ON lt.lt_s_symb = s.s_symb
WHERE co.co_name = $1 AND s.s_issue = $2`
	sqlOrderType    = `SELECT tt_is_mrkt, tt_is_sell FROM trade_type WHERE tt_id = $1`
	sqlSummary      = `SELECT hs_qty FROM holding_summary WHERE hs_ca_id = $1 AND hs_s_symb = $2`
	sqlLotsFIFO     = `SELECT h_t_id, h_qty, h_price FROM holding WHERE h_ca_id = $1 AND h_s_symb = $2 ORDER BY h_dts ASC, h_t_id ASC`
	sqlLotsLIFO     = `SELECT h_t_id, h_qty, h_price FROM holding WHERE h_ca_id = $1 AND h_s_symb = $2 ORDER BY h_dts DESC, h_t_id DESC`
	sqlTaxRates     = `SELECT COALESCE(SUM(tx.tx_rate), 0) FROM customer_taxrate cx JOIN taxrate tx ON tx.tx_id = cx.cx_tx_id WHERE cx.cx_c_id = $1`
	sqlOrderCharges = `SELECT cr.cr_rate, ch.ch_chrg
FROM commission_rate cr JOIN charge ch ON ch.ch_tt_id = cr.cr_tt_id AND ch.ch_c_tier = cr.cr_c_tier
WHERE cr.cr_c_tier = $1 AND cr.cr_tt_id = $2 AND cr.cr_ex_id = $3 AND cr.cr_from_qty <= $4 AND cr.cr_to_qty >= $4`
	sqlBalance     = `SELECT ca_bal FROM customer_account WHERE ca_id = $1`
	sqlOrderAssets = `SELECT COALESCE(SUM(hs.hs_qty * lt.lt_price), 0)
FROM holding_summary hs JOIN last_trade lt ON lt.lt_s_symb = hs.hs_s_symb WHERE hs.hs_ca_id = $1`
	sqlOrderID    = `SELECT nextval('tpce_trade_id_seq')`
	sqlOrderTrade = `INSERT INTO trade (t_id, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name,
t_trade_price, t_chrg, t_comm, t_tax, t_lifo)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, $11, $12, 0, $13)`
	sqlOrderRequest = `INSERT INTO trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id) VALUES ($1, $2, $3, $4, $5, $6)`
	sqlHistory      = `INSERT INTO trade_history (th_t_id, th_dts, th_st_id) VALUES ($1, $2, $3)`
	sqlOrderExists  = `SELECT t_st_id FROM trade WHERE t_id = $1`
)

// order is one attempt at a Trade-Order, with the results of its frames.
type order struct {
	*Session
	in  *OrderInput
	out *OrderResult

	broker, customer, taxStatus, tier int64
	owner                             gen.Person
	symbol, exchange                  string
	last                              cents
	market, sell                      bool
	held                              int64 // shares of the security in the account, negative if sold short
	rate, charge                      cents // the rate in hundredths of a percent
	balance, assets                   cents
}

// TradeOrder enters an order. After a lost COMMIT its outcome is queried by the order's id, which repetitions keep.
func (s *Session) TradeOrder(ctx context.Context, in OrderInput) (OrderResult, mix.Sample) {
	var out OrderResult
	sample := s.perform(ctx, work{kind: mix.TradeOrder,
		try: func(ctx context.Context) error {
			out = OrderResult{TradeID: out.TradeID}
			o := order{Session: s, in: &in, out: &out}
			return o.run(ctx)
		},
		look: func(ctx context.Context) (bool, error) {
			return s.exists(ctx, sqlOrderExists, out.TradeID)
		},
	})
	return out, sample
}

// exists reports whether a query finds a row.
func (s *Session) exists(ctx context.Context, sql string, args ...any) (bool, error) {
	var found bool
	s.frame.reset()
	s.frame.maybe(&found, sql, args, nil)
	err := s.frame.send(ctx)
	return found, err
}

func (o *order) run(ctx context.Context) error {
	if err := o.findParties(ctx); err != nil {
		return err
	}
	if err := o.findTerms(ctx); err != nil {
		return err
	}
	gain, err := o.estimate(ctx)
	if err != nil {
		return err
	}
	return o.enter(ctx, gain)
}

// findParties reads the account's owner, the security, and the type of the order.
func (o *order) findParties(ctx context.Context) error {
	f, in := &o.frame, o.in
	f.begin(o.beginOrder())
	f.one(sqlOrderAccount, []any{in.Account}, nil, &o.broker, &o.customer, &o.taxStatus,
		&o.owner.First, &o.owner.Last, &o.tier, &o.owner.TaxID, nil)
	into := []any{&o.symbol, nil, &o.exchange, nil, &o.last}
	if in.Symbol != "" {
		f.one(sqlOrderBySymbol, []any{in.Symbol}, into...)
	} else {
		f.one(sqlOrderByCompany, []any{in.Company, in.Issue}, into...)
	}
	f.one(sqlOrderType, []any{in.Terms.Type}, &o.market, &o.sell)
	return f.send(ctx)
}

// findTerms reads the account's holding of the security and the cost of the order, and whether the person who gives
// the order has the permission.
func (o *order) findTerms(ctx context.Context) error {
	f, in := &o.frame, o.in
	permitted := true
	if in.Trader != o.owner {
		f.maybe(&permitted, sqlOrderPermission, []any{in.Account, in.Trader.TaxID, in.Trader.First, in.Trader.Last}, nil)
	}
	var holds bool
	f.maybe(&holds, sqlSummary, []any{in.Account, o.symbol}, &o.held)
	f.one(sqlOrderCharges, []any{o.tier, in.Terms.Type, o.exchange, in.Terms.Qty}, &o.rate, &o.charge)
	if in.Terms.Margin {
		f.one(sqlBalance, []any{in.Account}, &o.balance)
		f.one(sqlOrderAssets, []any{in.Account}, &o.assets)
	}
	if o.out.TradeID == 0 && o.set.TradeIDs == nil {
		f.one(sqlOrderID, nil, &o.out.TradeID)
	}
	if err := f.send(ctx); err != nil {
		return err
	}
	if !permitted {
		return unexpected("%s %s may not trade on account %d", in.Trader.First, in.Trader.Last, in.Account)
	}
	if o.out.TradeID == 0 {
		id, err := o.set.TradeIDs.Next(ctx)
		if err != nil {
			return err
		}
		o.out.TradeID = id
	}
	return nil
}

// price returns the price that the order offers or demands per share.
func (o *order) price() int64 {
	if o.market {
		return int64(o.last)
	}
	return o.in.Terms.Limit
}

// estimate returns the gain if the trade were executed now, computed like in Trade-Result.
func (o *order) estimate(ctx context.Context) (int64, error) {
	signed := o.in.Terms.Qty
	if o.sell {
		signed = -signed
	}
	if o.held == 0 || o.held > 0 == (signed > 0) {
		return 0, nil
	}
	lots, err := o.lots(ctx, o.in.Account, o.symbol, o.in.Terms.LIFO)
	if err != nil {
		return 0, err
	}
	var outcome gen.Outcome
	gen.Apply(lots, gen.Lot{TradeID: o.out.TradeID, Qty: signed, Price: o.price()}, o.in.Terms.LIFO, &outcome)
	return outcome.SellValue - outcome.BuyValue, nil
}

// lots returns the lots of an account and security, in the order of time.
func (s *Session) lots(ctx context.Context, account int64, symbol string, lifo bool) ([]gen.Lot, error) {
	var lots []gen.Lot
	var lot gen.Lot
	var price cents
	sql := sqlLotsFIFO
	if lifo {
		sql = sqlLotsLIFO
	}
	s.frame.each(sql, []any{account, symbol}, []any{&lot.TradeID, &lot.Qty, &price}, func() {
		lot.Price = int64(price)
		lots = append(lots, lot)
	})
	err := s.frame.send(ctx)
	if lifo {
		slices.Reverse(lots)
	}
	return lots, err
}

// enter writes the order, and commits it or rolls it back.
func (o *order) enter(ctx context.Context, gain int64) error {
	f, in, out := &o.frame, o.in, o.out
	terms := in.Terms
	var taxRate fraction
	if o.taxStatus != 0 && gain > 0 {
		f.one(sqlTaxRates, []any{o.customer}, &taxRate)
	}
	price := o.price()
	status := "SBMT"
	if !o.market {
		status = "PNDG"
	}
	now := clock()
	f.change(sqlOrderTrade, out.TradeID, now, status, terms.Type, !terms.Margin, o.symbol, terms.Qty, money(price), in.Account,
		in.Trader.First+" "+in.Trader.Last, money(int64(o.charge)), money(commissionOf(terms.Qty, price, int64(o.rate))), terms.LIFO)
	if !o.market {
		f.change(sqlOrderRequest, out.TradeID, terms.Type, o.symbol, terms.Qty, money(price), o.broker)
	}
	f.change(sqlHistory, out.TradeID, now, status)
	if in.RollBack {
		f.exec("ROLLBACK")
	} else {
		f.commit()
	}
	// Set before the COMMIT, whose answer may be lost.
	out.Symbol, out.Type, out.Market, out.Qty, out.Price = o.symbol, terms.Type, o.market, terms.Qty, price
	if err := f.send(ctx); err != nil {
		return err
	}
	out.Tax, out.Assets = taxOf(max(gain, 0), int64(taxRate)), int64(o.balance+o.assets)
	if in.RollBack {
		return errRolledBack
	}
	return nil
}

// clock returns the time for rows, with the precision of a timestamp.
func clock() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
