package txn

import (
	"context"
	"fmt"
	"time"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/mix"
)

// The statements of Trade-Result.
const (
	sqlResultTrade = `SELECT t.t_ca_id, t.t_tt_id, t.t_s_symb, t.t_qty, t.t_chrg, t.t_lifo, t.t_is_cash, t.t_st_id,
tt.tt_name, tt.tt_is_sell, tt.tt_is_mrkt
FROM trade t JOIN trade_type tt ON tt.tt_id = t.t_tt_id WHERE t.t_id = $1`
	sqlResultAccount     = `SELECT ca_b_id, ca_c_id, ca_tax_st FROM customer_account WHERE ca_id = $1`
	sqlResultAccountLock = sqlResultAccount + ` FOR UPDATE`
	sqlSummaryInsert     = `INSERT INTO holding_summary (hs_ca_id, hs_s_symb, hs_qty) VALUES ($1, $2, $3)`
	sqlSummaryUpdate     = `UPDATE holding_summary SET hs_qty = $3 WHERE hs_ca_id = $1 AND hs_s_symb = $2`
	sqlSummaryDelete     = `DELETE FROM holding_summary WHERE hs_ca_id = $1 AND hs_s_symb = $2`
	sqlLotHistory        = `INSERT INTO holding_history (hh_h_t_id, hh_t_id, hh_before_qty, hh_after_qty) VALUES ($1, $2, $3, $4)`
	sqlLotUpdate         = `UPDATE holding SET h_qty = $2 WHERE h_t_id = $1`
	sqlLotDelete         = `DELETE FROM holding WHERE h_t_id = $1`
	sqlLotInsert         = `INSERT INTO holding (h_t_id, h_ca_id, h_s_symb, h_dts, h_price, h_qty) VALUES ($1, $2, $3, $4, $5, $6)`
	sqlResultTax         = `UPDATE trade SET t_tax = $2 WHERE t_id = $1`
	sqlResultRate        = `SELECT s.s_name, cr.cr_rate
FROM security s JOIN commission_rate cr ON cr.cr_ex_id = s.s_ex_id JOIN customer c ON c.c_tier = cr.cr_c_tier
WHERE s.s_symb = $1 AND c.c_id = $2 AND cr.cr_tt_id = $3 AND cr.cr_from_qty <= $4 AND cr.cr_to_qty >= $4`
	sqlResultComplete    = `UPDATE trade SET t_comm = $2, t_dts = $3, t_st_id = 'CMPT', t_trade_price = $4 WHERE t_id = $1`
	sqlResultCompleteTax = `UPDATE trade SET t_comm = $2, t_dts = $3, t_st_id = 'CMPT', t_trade_price = $4, t_tax = $5 WHERE t_id = $1`
	sqlResultBroker      = `UPDATE broker SET b_comm_total = b_comm_total + $2, b_num_trades = b_num_trades + 1 WHERE b_id = $1`
	sqlResultBrokerDelta = `INSERT INTO broker_delta (bd_b_id, bd_t_id, bd_comm) VALUES ($1, $2, $3)`
	sqlResultSettlement  = `INSERT INTO settlement (se_t_id, se_cash_type, se_cash_due_date, se_amt) VALUES ($1, $2, $3, $4)`
	sqlResultBalance     = `UPDATE customer_account SET ca_bal = ca_bal + $2 WHERE ca_id = $1`
	sqlResultCash        = `INSERT INTO cash_transaction (ct_t_id, ct_dts, ct_amt, ct_name) VALUES ($1, $2, $3, $4)`
)

// result is one attempt at a Trade-Result, with the results of its frames.
type result struct {
	*Session
	in  ResultInput
	out *ResultOutput
	now time.Time

	kind, kindName, status, security  string
	charge, rate                      cents // the rate in hundredths of a percent
	lifo, cash, sell                  bool
	broker, customer, taxStatus, held int64
	holds                             bool
	taxRate                           fraction
	outcome                           gen.Outcome
}

// TradeResult completes an order that was executed. Its outcome is AlreadyDone if the trade is already complete.
func (s *Session) TradeResult(ctx context.Context, in ResultInput) (ResultOutput, mix.Sample) {
	var out ResultOutput
	sample := s.perform(ctx, work{kind: mix.TradeResult, races: true, try: func(ctx context.Context) error {
		out = ResultOutput{}
		r := result{Session: s, in: in, out: &out, now: clock()}
		return r.run(ctx)
	}})
	return out, sample
}

func (r *result) run(ctx context.Context) error {
	if err := r.findTrade(ctx); err != nil {
		return err
	}
	if err := r.findHolding(ctx); err != nil {
		return err
	}
	if err := r.hold(ctx); err != nil {
		return err
	}
	return r.complete(ctx)
}

// findTrade is frame 1, up to the trade's own row.
func (r *result) findTrade(ctx context.Context) error {
	f, out := &r.frame, r.out
	f.begin(r.beginResult())
	f.one(sqlResultTrade, []any{r.in.TradeID}, &out.Account, &r.kind, &out.Symbol, &out.Qty, &r.charge, &r.lifo, &r.cash,
		&r.status, &r.kindName, &r.sell, nil)
	if err := f.send(ctx); err != nil {
		return err
	}
	switch r.status {
	case "SBMT":
		return nil
	case "CMPT":
		return errAlreadyDone
	}
	return unexpected("trade %d is executed and has the status %s", r.in.TradeID, r.status)
}

// findHolding ends frame 1 and begins frame 2.
func (r *result) findHolding(ctx context.Context) error {
	f, out := &r.frame, r.out
	f.maybe(&r.holds, sqlSummary, []any{out.Account, out.Symbol}, &r.held)
	account := sqlResultAccount
	if r.set.ForUpdate {
		account = sqlResultAccountLock
	}
	f.one(account, []any{out.Account}, &r.broker, &r.customer, &r.taxStatus)
	return f.send(ctx)
}

// hold is the rest of frame 2: it updates the account's holdings. It also sends the reads of frames 3 and 4.
func (r *result) hold(ctx context.Context) error {
	f, out := &r.frame, r.out
	change := out.Qty
	if r.sell {
		change = -change
	}
	var lots []gen.Lot
	if r.held*change < 0 {
		var err error
		if lots, err = r.lots(ctx, out.Account, out.Symbol, r.lifo); err != nil {
			return err
		}
	}
	gen.Apply(lots, gen.Lot{TradeID: r.in.TradeID, Qty: change, Price: r.in.Price}, r.lifo, &r.outcome)
	sum := r.held + change
	switch {
	case !r.holds:
		f.change(sqlSummaryInsert, out.Account, out.Symbol, sum)
	case sum != 0:
		f.change(sqlSummaryUpdate, out.Account, out.Symbol, sum)
	}
	for _, c := range r.outcome.Changes {
		f.change(sqlLotHistory, c.LotID, r.in.TradeID, c.Before, c.After)
		switch {
		case c.LotID == r.in.TradeID:
			f.change(sqlLotInsert, c.LotID, out.Account, out.Symbol, r.now, money(r.in.Price), c.After)
		case c.After == 0:
			f.change(sqlLotDelete, c.LotID)
		default:
			f.change(sqlLotUpdate, c.LotID, c.After)
		}
	}
	if r.holds && sum == 0 {
		f.change(sqlSummaryDelete, out.Account, out.Symbol)
	}
	if r.taxed() {
		f.one(sqlTaxRates, []any{r.customer}, &r.taxRate)
	}
	f.one(sqlResultRate, []any{out.Symbol, r.customer, r.kind, out.Qty}, &r.security, &r.rate)
	return f.send(ctx)
}

// taxed reports whether the customer pays tax on the trade.
func (r *result) taxed() bool { return r.taxStatus != 0 && r.outcome.SellValue > r.outcome.BuyValue }

// complete writes the rest of frame 3, and frames 5 and 6. It writes the broker's row last, because other trades
// wait for it.
func (r *result) complete(ctx context.Context) error {
	f, out, id := &r.frame, r.out, r.in.TradeID
	var tax int64
	if r.taxed() {
		tax = taxOf(r.outcome.SellValue-r.outcome.BuyValue, int64(r.taxRate))
	}
	fee := commissionOf(out.Qty, r.in.Price, int64(r.rate))
	switch {
	case r.taxed() && r.set.MergeTaxUpdate:
		f.change(sqlResultCompleteTax, id, money(fee), r.now, money(r.in.Price), money(tax))
	case r.taxed():
		f.change(sqlResultTax, id, money(tax))
		fallthrough
	default:
		f.change(sqlResultComplete, id, money(fee), r.now, money(r.in.Price))
	}
	f.change(sqlHistory, id, r.now, "CMPT")
	amount := r.amount(fee, tax)
	cashType := "Margin"
	if r.cash {
		cashType = "Cash Account"
	}
	f.change(sqlResultSettlement, id, cashType, r.now.AddDate(0, 0, gen.SettlementDays), money(amount))
	if r.cash {
		f.change(sqlResultBalance, out.Account, money(amount))
		f.change(sqlResultCash, id, r.now, money(amount), fmt.Sprintf("%s %d shares of %s", r.kindName, out.Qty, r.security))
	}
	var balance cents
	f.one(sqlBalance, []any{out.Account}, &balance)
	switch r.set.BrokerWrites {
	case SideTable:
		f.change(sqlResultBrokerDelta, r.broker, id, money(fee))
	case Omit:
	default:
		f.change(sqlResultBroker, r.broker, money(fee))
	}
	f.commit()
	err := f.send(ctx)
	out.Balance = int64(balance)
	return err
}

// amount returns the change of the account's balance by the trade.
func (r *result) amount(fee, tax int64) int64 {
	worth := r.out.Qty * r.in.Price
	amount := worth - int64(r.charge) - fee
	if !r.sell {
		amount = -(worth + int64(r.charge) + fee)
	}
	if r.taxStatus == taxWithheld {
		amount -= tax
	}
	return amount
}

// taxWithheld is the tax status of accounts whose tax is paid when the trade is settled.
const taxWithheld = 1
