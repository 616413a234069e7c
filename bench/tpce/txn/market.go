package txn

import (
	"context"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// The statements of Market-Watch, as one join and as a list with a loop over it.
const (
	watchWorth   = `SELECT COALESCE(SUM(s.s_num_out * dm.dm_close), 0), COALESCE(SUM(s.s_num_out * lt.lt_price), 0)`
	sqlWatchList = watchWorth + `
FROM watch_list wl JOIN watch_item wi ON wi.wi_wl_id = wl.wl_id JOIN security s ON s.s_symb = wi.wi_s_symb
JOIN last_trade lt ON lt.lt_s_symb = wi.wi_s_symb
JOIN daily_market dm ON dm.dm_s_symb = wi.wi_s_symb AND dm.dm_date = $2
WHERE wl.wl_c_id = $1`
	sqlWatchAccount = watchWorth + `
FROM holding_summary hs JOIN security s ON s.s_symb = hs.hs_s_symb JOIN last_trade lt ON lt.lt_s_symb = hs.hs_s_symb
JOIN daily_market dm ON dm.dm_s_symb = hs.hs_s_symb AND dm.dm_date = $2
WHERE hs.hs_ca_id = $1`
	sqlWatchIndustry = watchWorth + `
FROM industry i JOIN company co ON co.co_in_id = i.in_id JOIN security s ON s.s_co_id = co.co_id
JOIN last_trade lt ON lt.lt_s_symb = s.s_symb
JOIN daily_market dm ON dm.dm_s_symb = s.s_symb AND dm.dm_date = $4
WHERE i.in_name = $1 AND co.co_id BETWEEN $2 AND $3`

	sqlWatchSymbols         = `SELECT wi.wi_s_symb FROM watch_list wl JOIN watch_item wi ON wi.wi_wl_id = wl.wl_id WHERE wl.wl_c_id = $1`
	sqlWatchAccountSymbols  = `SELECT hs_s_symb FROM holding_summary WHERE hs_ca_id = $1`
	sqlWatchIndustrySymbols = `SELECT s.s_symb FROM industry i JOIN company co ON co.co_in_id = i.in_id JOIN security s ON s.s_co_id = co.co_id
WHERE i.in_name = $1 AND co.co_id BETWEEN $2 AND $3`
	sqlWatchPrice  = `SELECT lt_price FROM last_trade WHERE lt_s_symb = $1`
	sqlWatchShares = `SELECT s_num_out FROM security WHERE s_symb = $1`
	sqlWatchClose  = `SELECT dm_close FROM daily_market WHERE dm_s_symb = $1 AND dm_date = $2`
)

// The statements of Security-Detail.
const (
	sqlDetail = `SELECT s.s_name, co.co_id, co.co_name, co.co_sp_rate, co.co_ceo, co.co_desc, co.co_open_date, co.co_st_id,
ca.ad_line1, ca.ad_line2, zca.zc_town, zca.zc_div, ca.ad_zc_code, ca.ad_ctry, s.s_num_out, s.s_start_date,
s.s_exch_date, s.s_pe, s.s_52wk_high, s.s_52wk_high_date, s.s_52wk_low, s.s_52wk_low_date, s.s_dividend, s.s_yield,
zea.zc_div, ea.ad_ctry, ea.ad_line1, ea.ad_line2, zea.zc_town, ea.ad_zc_code,
ex.ex_close, ex.ex_desc, ex.ex_name, ex.ex_num_symb, ex.ex_open
FROM security s JOIN company co ON co.co_id = s.s_co_id JOIN address ca ON ca.ad_id = co.co_ad_id
JOIN zip_code zca ON zca.zc_code = ca.ad_zc_code JOIN exchange ex ON ex.ex_id = s.s_ex_id
JOIN address ea ON ea.ad_id = ex.ex_ad_id JOIN zip_code zea ON zea.zc_code = ea.ad_zc_code
WHERE s.s_symb = $1`
	sqlDetailCompetitors = `SELECT co.co_name, i.in_name FROM company_competitor cp JOIN company co ON co.co_id = cp.cp_comp_co_id
JOIN industry i ON i.in_id = cp.cp_in_id WHERE cp.cp_co_id = $1 LIMIT 3`
	sqlDetailFinancial = `SELECT fi_year, fi_qtr, fi_qtr_start_date, fi_revenue, fi_net_earn, fi_basic_eps, fi_dilut_eps, fi_margin, fi_inventory,
fi_assets, fi_liability, fi_out_basic, fi_out_dilut
FROM financial WHERE fi_co_id = $1 ORDER BY fi_year ASC, fi_qtr ASC LIMIT 20`
	sqlDetailDays = `SELECT dm_date, dm_close, dm_high, dm_low, dm_vol FROM daily_market
WHERE dm_s_symb = $1 AND dm_date >= $2 ORDER BY dm_date ASC LIMIT $3`
	sqlDetailLast      = `SELECT lt_price, lt_open_price, lt_vol FROM last_trade WHERE lt_s_symb = $1`
	sqlDetailHeadlines = `SELECT ni.ni_dts, ni.ni_source, ni.ni_author, ni.ni_headline, ni.ni_summary
FROM news_xref nx JOIN news_item ni ON ni.ni_id = nx.nx_ni_id WHERE nx.nx_co_id = $1 LIMIT 2`
	sqlDetailNews = `SELECT ni.ni_dts, ni.ni_source, ni.ni_author, ni.ni_item
FROM news_xref nx JOIN news_item ni ON ni.ni_id = nx.nx_ni_id WHERE nx.nx_co_id = $1 LIMIT 2`
)

// The numbers of rows that Security-Detail finds for every company.
const (
	companyCompetitors = 3
	companyQuarters    = 20
	companyNews        = 2
)

// MarketWatch compares the value of a list of securities with that of a day in the past.
func (s *Session) MarketWatch(ctx context.Context, in WatchInput) (WatchResult, mix.Sample) {
	var out WatchResult
	sample := s.perform(ctx, work{kind: mix.MarketWatch, try: func(ctx context.Context) error {
		var before, after int64
		var err error
		if s.set.MarketWatchLoop {
			before, after, err = s.watchLoop(ctx, in)
		} else {
			before, after, err = s.watchJoin(ctx, in)
		}
		out = WatchResult{}
		switch {
		case err != nil:
			return err
		case before != 0:
			out.Percent = 100 * (float64(after)/float64(before) - 1)
		case in.Account == 0: // an account may hold nothing
			return unexpected("the securities of %+v are worth nothing", in)
		}
		return nil
	}})
	return out, sample
}

func (s *Session) watchJoin(ctx context.Context, in WatchInput) (before, after int64, err error) {
	var then, now cents
	switch {
	case in.Customer != 0:
		s.frame.one(sqlWatchList, []any{in.Customer, in.Since}, &then, &now)
	case in.Account != 0:
		s.frame.one(sqlWatchAccount, []any{in.Account, in.Since}, &then, &now)
	default:
		s.frame.one(sqlWatchIndustry, []any{in.Industry, in.FirstCompany, in.LastCompany, in.Since}, &then, &now)
	}
	err = s.sendAlone(ctx)
	return int64(then), int64(now), err
}

func (s *Session) watchLoop(ctx context.Context, in WatchInput) (before, after int64, err error) {
	f := &s.frame
	f.begin(s.beginRead())
	var symbols []string
	var symbol string
	add := func() { symbols = append(symbols, symbol) }
	switch {
	case in.Customer != 0:
		f.each(sqlWatchSymbols, []any{in.Customer}, []any{&symbol}, add)
	case in.Account != 0:
		f.each(sqlWatchAccountSymbols, []any{in.Account}, []any{&symbol}, add)
	default:
		f.each(sqlWatchIndustrySymbols, []any{in.Industry, in.FirstCompany, in.LastCompany}, []any{&symbol}, add)
	}
	if err := f.send(ctx); err != nil {
		return 0, 0, err
	}
	var price, closed cents
	var shares int64
	for _, symbol := range symbols {
		f.one(sqlWatchPrice, []any{symbol}, &price)
		f.one(sqlWatchShares, []any{symbol}, &shares)
		f.each(sqlWatchClose, []any{symbol, in.Since}, []any{&closed}, func() { // after the others have been read
			before += shares * int64(closed)
			after += shares * int64(price)
		})
	}
	return before, after, s.finishRead(ctx)
}

// SecurityDetail reads everything about a security.
func (s *Session) SecurityDetail(ctx context.Context, in DetailInput) (DetailResult, mix.Sample) {
	var out DetailResult
	sample := s.perform(ctx, work{kind: mix.SecurityDetail, try: func(ctx context.Context) error {
		return s.detail(ctx, in, &out)
	}})
	return out, sample
}

func (s *Session) detail(ctx context.Context, in DetailInput, out *DetailResult) error {
	f := &s.frame
	var company int64
	into := make([]any, 35)
	into[1] = &company
	f.begin(s.beginRead())
	f.one(sqlDetail, []any{in.Symbol}, into...)
	if err := f.send(ctx); err != nil {
		return err
	}
	var last int
	f.skim(&out.Competitors, sqlDetailCompetitors, company)
	f.skim(&out.Quarters, sqlDetailFinancial, company)
	f.skim(&out.Days, sqlDetailDays, in.Symbol, in.Since, in.Days)
	f.skim(&last, sqlDetailLast, in.Symbol)
	news := sqlDetailHeadlines
	if in.News {
		news = sqlDetailNews
	}
	f.skim(&out.News, news, company)
	if err := s.finishRead(ctx); err != nil {
		return err
	}
	want := DetailResult{Competitors: companyCompetitors, Quarters: companyQuarters, Days: int(in.Days), News: companyNews}
	if *out != want || last != 1 {
		return unexpected("security %s has %+v and %d last trades, want %+v and one", in.Symbol, *out, last, want)
	}
	return nil
}
