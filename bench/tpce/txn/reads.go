package txn

import (
	"context"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// The statements of Trade-Status, Customer-Position and Broker-Volume.
const (
	sqlStatusTrades = `SELECT t.t_id, t.t_dts, st.st_name, tt.tt_name, t.t_s_symb, t.t_qty, t.t_exec_name, t.t_chrg, s.s_name, ex.ex_name
FROM trade t JOIN status_type st ON st.st_id = t.t_st_id JOIN trade_type tt ON tt.tt_id = t.t_tt_id
JOIN security s ON s.s_symb = t.t_s_symb JOIN exchange ex ON ex.ex_id = s.s_ex_id
WHERE t.t_ca_id = $1 ORDER BY t.t_dts DESC LIMIT 50`
	sqlStatusCustomer = `SELECT c.c_l_name, c.c_f_name, b.b_name FROM customer_account ca JOIN customer c ON c.c_id = ca.ca_c_id
JOIN broker b ON b.b_id = ca.ca_b_id WHERE ca.ca_id = $1`

	sqlPositionByTaxID  = `SELECT c_id FROM customer WHERE c_tax_id = $1`
	sqlPositionCustomer = `SELECT c_st_id, c_l_name, c_f_name, c_m_name, c_gndr, c_tier, c_dob, c_ad_id, c_ctry_1, c_area_1, c_local_1, c_ext_1,
c_ctry_2, c_area_2, c_local_2, c_ext_2, c_ctry_3, c_area_3, c_local_3, c_ext_3, c_email_1, c_email_2
FROM customer WHERE c_id = $1`
	sqlPositionAccounts = `SELECT ca.ca_id, ca.ca_bal, COALESCE(SUM(hs.hs_qty * lt.lt_price), 0) AS assets
FROM customer_account ca LEFT JOIN holding_summary hs ON hs.hs_ca_id = ca.ca_id
LEFT JOIN last_trade lt ON lt.lt_s_symb = hs.hs_s_symb
WHERE ca.ca_c_id = $1 GROUP BY ca.ca_id, ca.ca_bal ORDER BY assets ASC LIMIT 10`
	sqlPositionHistory = `SELECT t.t_id, t.t_s_symb, t.t_qty, st.st_name, th.th_dts
FROM (SELECT t_id, t_s_symb, t_qty FROM trade WHERE t_ca_id = $1 ORDER BY t_dts DESC LIMIT 10) t
JOIN trade_history th ON th.th_t_id = t.t_id JOIN status_type st ON st.st_id = th.th_st_id
ORDER BY th.th_dts DESC LIMIT 30`

	sqlVolume = `SELECT b.b_name, SUM(tr.tr_qty * tr.tr_bid_price) AS vol
FROM sector sc JOIN industry i ON i.in_sc_id = sc.sc_id JOIN company co ON co.co_in_id = i.in_id
JOIN security s ON s.s_co_id = co.co_id JOIN trade_request tr ON tr.tr_s_symb = s.s_symb
JOIN broker b ON b.b_id = tr.tr_b_id
WHERE sc.sc_name = $1 AND b.b_name = ANY($2) GROUP BY b.b_name ORDER BY vol DESC`
)

// TradeStatus lists the latest trades of an account.
func (s *Session) TradeStatus(ctx context.Context, in StatusInput) (StatusResult, mix.Sample) {
	var out StatusResult
	sample := s.perform(ctx, work{kind: mix.TradeStatus, try: func(ctx context.Context) error {
		out = StatusResult{}
		var id int64
		f := &s.frame
		f.begin(s.beginRead())
		f.each(sqlStatusTrades, []any{in.Account}, []any{&id, nil, nil, nil, nil, nil, nil, nil, nil, nil}, func() {
			out.Trades = append(out.Trades, id)
		})
		f.one(sqlStatusCustomer, []any{in.Account}, nil, nil, nil)
		return s.finishRead(ctx)
	}})
	return out, sample
}

// CustomerPosition lists a customer's accounts and their values.
func (s *Session) CustomerPosition(ctx context.Context, in PositionInput) (PositionResult, mix.Sample) {
	var out PositionResult
	sample := s.perform(ctx, work{kind: mix.CustomerPosition, try: func(ctx context.Context) error {
		out = PositionResult{Customer: in.Customer}
		return s.position(ctx, in, &out)
	}})
	return out, sample
}

func (s *Session) position(ctx context.Context, in PositionInput, out *PositionResult) error {
	f := &s.frame
	f.begin(s.beginRead())
	if in.TaxID != "" {
		f.one(sqlPositionByTaxID, []any{in.TaxID}, &out.Customer)
		if err := f.send(ctx); err != nil {
			return err
		}
	}
	var customers int
	f.skim(&customers, sqlPositionCustomer, out.Customer)
	var account int64
	var balance, assets cents
	f.each(sqlPositionAccounts, []any{out.Customer}, []any{&account, &balance, &assets}, func() {
		out.Accounts = append(out.Accounts, AccountPosition{Account: account, Balance: int64(balance), Assets: int64(assets)})
	})
	if in.History {
		if err := f.send(ctx); err != nil {
			return err
		}
		if int(in.Account) >= len(out.Accounts) {
			return unexpected("customer %d has %d accounts, none of number %d", out.Customer, len(out.Accounts), in.Account)
		}
		f.skim(&out.History, sqlPositionHistory, out.Accounts[in.Account].Account)
	}
	if err := s.finishRead(ctx); err != nil {
		return err
	}
	if customers != 1 || len(out.Accounts) == 0 {
		return unexpected("%d customers have the id %d, with %d accounts", customers, out.Customer, len(out.Accounts))
	}
	return nil
}

// BrokerVolume adds up the open orders of brokers in a sector.
func (s *Session) BrokerVolume(ctx context.Context, in VolumeInput) (VolumeResult, mix.Sample) {
	var out VolumeResult
	sample := s.perform(ctx, work{kind: mix.BrokerVolume, try: func(ctx context.Context) error {
		out = VolumeResult{}
		var name string
		s.frame.each(sqlVolume, []any{in.Sector, in.Brokers}, []any{&name, nil}, func() {
			out.Brokers = append(out.Brokers, name)
		})
		return s.sendAlone(ctx)
	}})
	return out, sample
}
