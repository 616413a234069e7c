package schema

// Table names one of the 33 tables.
type Table int

// The tables, in the order in which they are created: a table comes after those that it refers to.
const (
	ZipCode Table = iota
	Address
	StatusType
	Taxrate
	TradeType
	Charge
	Exchange
	CommissionRate
	Sector
	Industry
	Company
	CompanyCompetitor
	Security
	DailyMarket
	Financial
	LastTrade
	NewsItem
	NewsXref
	Customer
	Broker
	CustomerAccount
	AccountPermission
	CustomerTaxrate
	WatchList
	WatchItem
	Trade
	TradeHistory
	TradeRequest
	Settlement
	CashTransaction
	HoldingSummary
	Holding
	HoldingHistory
	// Count is the number of tables.
	Count
)

// table is a table's name, and the text between the parentheses of its definition.
type table struct{ name, columns string }

// definition returns the definition of t. The order of the columns in primary keys makes a prefix of the key serve
// lookups that would otherwise need a secondary index.
func (t Table) definition() table {
	return [Count]table{
		ZipCode: {"zip_code", `
	zc_code varchar(12) NOT NULL, zc_town varchar(80) NOT NULL, zc_div varchar(80) NOT NULL,
	PRIMARY KEY (zc_code)`},
		Address: {"address", `
	ad_id bigint NOT NULL, ad_line1 varchar(80), ad_line2 varchar(80), ad_zc_code varchar(12) NOT NULL,
	ad_ctry varchar(80), PRIMARY KEY (ad_id)`},
		StatusType: {"status_type", `
	st_id varchar(4) NOT NULL, st_name varchar(10) NOT NULL, PRIMARY KEY (st_id)`},
		Taxrate: {"taxrate", `
	tx_id varchar(4) NOT NULL, tx_name varchar(50) NOT NULL, tx_rate numeric(6,5) NOT NULL,
	PRIMARY KEY (tx_id)`},
		TradeType: {"trade_type", `
	tt_id varchar(3) NOT NULL, tt_name varchar(12) NOT NULL, tt_is_sell boolean NOT NULL,
	tt_is_mrkt boolean NOT NULL, PRIMARY KEY (tt_id)`},
		Charge: {"charge", `
	ch_tt_id varchar(3) NOT NULL, ch_c_tier smallint NOT NULL, ch_chrg numeric(10,2) NOT NULL,
	PRIMARY KEY (ch_tt_id, ch_c_tier)`},
		Exchange: {"exchange", `
	ex_id varchar(6) NOT NULL, ex_name varchar(100) NOT NULL, ex_num_symb integer NOT NULL,
	ex_open integer NOT NULL, ex_close integer NOT NULL, ex_desc varchar(150),
	ex_ad_id bigint NOT NULL, PRIMARY KEY (ex_id)`},
		CommissionRate: {"commission_rate", `
	cr_c_tier smallint NOT NULL, cr_tt_id varchar(3) NOT NULL, cr_ex_id varchar(6) NOT NULL,
	cr_from_qty integer NOT NULL, cr_to_qty integer NOT NULL, cr_rate numeric(5,2) NOT NULL,
	PRIMARY KEY (cr_c_tier, cr_tt_id, cr_ex_id, cr_from_qty)`},
		Sector: {"sector", `
	sc_id varchar(2) NOT NULL, sc_name varchar(30) NOT NULL, PRIMARY KEY (sc_id)`},
		Industry: {"industry", `
	in_id varchar(2) NOT NULL, in_name varchar(50) NOT NULL, in_sc_id varchar(2) NOT NULL,
	PRIMARY KEY (in_id)`},
		Company: {"company", `
	co_id bigint NOT NULL, co_st_id varchar(4) NOT NULL, co_name varchar(60) NOT NULL,
	co_in_id varchar(2) NOT NULL, co_sp_rate varchar(4) NOT NULL, co_ceo varchar(46) NOT NULL,
	co_ad_id bigint NOT NULL, co_desc varchar(150) NOT NULL, co_open_date date NOT NULL,
	PRIMARY KEY (co_id)`},
		CompanyCompetitor: {"company_competitor", `
	cp_co_id bigint NOT NULL, cp_comp_co_id bigint NOT NULL, cp_in_id varchar(2) NOT NULL,
	PRIMARY KEY (cp_co_id, cp_comp_co_id, cp_in_id)`},
		Security: {"security", `
	s_symb varchar(15) NOT NULL, s_issue varchar(6) NOT NULL, s_st_id varchar(4) NOT NULL,
	s_name varchar(70) NOT NULL, s_ex_id varchar(6) NOT NULL, s_co_id bigint NOT NULL,
	s_num_out bigint NOT NULL, s_start_date date NOT NULL, s_exch_date date NOT NULL,
	s_pe numeric(10,2) NOT NULL, s_52wk_high numeric(8,2) NOT NULL, s_52wk_high_date date NOT NULL,
	s_52wk_low numeric(8,2) NOT NULL, s_52wk_low_date date NOT NULL, s_dividend numeric(10,2) NOT NULL,
	s_yield numeric(5,2) NOT NULL, PRIMARY KEY (s_symb)`},
		DailyMarket: {"daily_market", `
	dm_s_symb varchar(15) NOT NULL, dm_date date NOT NULL, dm_close numeric(8,2) NOT NULL,
	dm_high numeric(8,2) NOT NULL, dm_low numeric(8,2) NOT NULL, dm_vol bigint NOT NULL,
	PRIMARY KEY (dm_s_symb, dm_date)`},
		Financial: {"financial", `
	fi_co_id bigint NOT NULL, fi_year integer NOT NULL, fi_qtr smallint NOT NULL,
	fi_qtr_start_date date NOT NULL, fi_revenue numeric(15,2) NOT NULL,
	fi_net_earn numeric(15,2) NOT NULL, fi_basic_eps numeric(10,2) NOT NULL,
	fi_dilut_eps numeric(10,2) NOT NULL, fi_margin numeric(10,2) NOT NULL,
	fi_inventory numeric(15,2) NOT NULL, fi_assets numeric(15,2) NOT NULL,
	fi_liability numeric(15,2) NOT NULL, fi_out_basic bigint NOT NULL, fi_out_dilut bigint NOT NULL,
	PRIMARY KEY (fi_co_id, fi_year, fi_qtr)`},
		LastTrade: {"last_trade", `
	lt_s_symb varchar(15) NOT NULL, lt_dts timestamp NOT NULL, lt_price numeric(8,2) NOT NULL,
	lt_open_price numeric(8,2) NOT NULL, lt_vol bigint NOT NULL, PRIMARY KEY (lt_s_symb)`},
		NewsItem: {"news_item", `
	ni_id bigint NOT NULL, ni_headline varchar(80) NOT NULL, ni_summary varchar(255) NOT NULL,
	ni_item text NOT NULL, ni_dts timestamp NOT NULL, ni_source varchar(30) NOT NULL,
	ni_author varchar(30), PRIMARY KEY (ni_id)`},
		NewsXref: {"news_xref", `
	nx_co_id bigint NOT NULL, nx_ni_id bigint NOT NULL, PRIMARY KEY (nx_co_id, nx_ni_id)`},
		Customer: {"customer", `
	c_id bigint NOT NULL, c_tax_id varchar(20) NOT NULL, c_st_id varchar(4) NOT NULL,
	c_l_name varchar(25) NOT NULL, c_f_name varchar(20) NOT NULL, c_m_name varchar(1),
	c_gndr varchar(1), c_tier smallint NOT NULL, c_dob date NOT NULL, c_ad_id bigint NOT NULL,
	c_ctry_1 varchar(3), c_area_1 varchar(3), c_local_1 varchar(10), c_ext_1 varchar(5),
	c_ctry_2 varchar(3), c_area_2 varchar(3), c_local_2 varchar(10), c_ext_2 varchar(5),
	c_ctry_3 varchar(3), c_area_3 varchar(3), c_local_3 varchar(10), c_ext_3 varchar(5),
	c_email_1 varchar(50), c_email_2 varchar(50), PRIMARY KEY (c_id)`},
		Broker: {"broker", `
	b_id bigint NOT NULL, b_st_id varchar(4) NOT NULL, b_name varchar(49) NOT NULL,
	b_num_trades integer NOT NULL, b_comm_total numeric(12,2) NOT NULL, PRIMARY KEY (b_id)`},
		CustomerAccount: {"customer_account", `
	ca_id bigint NOT NULL, ca_b_id bigint NOT NULL, ca_c_id bigint NOT NULL, ca_name varchar(50),
	ca_tax_st smallint NOT NULL, ca_bal numeric(12,2) NOT NULL, PRIMARY KEY (ca_id)`},
		AccountPermission: {"account_permission", `
	ap_ca_id bigint NOT NULL, ap_acl varchar(4) NOT NULL, ap_tax_id varchar(20) NOT NULL,
	ap_l_name varchar(25) NOT NULL, ap_f_name varchar(20) NOT NULL, PRIMARY KEY (ap_ca_id, ap_tax_id)`},
		CustomerTaxrate: {"customer_taxrate", `
	cx_c_id bigint NOT NULL, cx_tx_id varchar(4) NOT NULL, PRIMARY KEY (cx_c_id, cx_tx_id)`},
		WatchList: {"watch_list", `
	wl_id bigint NOT NULL, wl_c_id bigint NOT NULL, PRIMARY KEY (wl_id)`},
		WatchItem: {"watch_item", `
	wi_wl_id bigint NOT NULL, wi_s_symb varchar(15) NOT NULL, PRIMARY KEY (wi_wl_id, wi_s_symb)`},
		Trade: {"trade", `
	t_id bigint NOT NULL, t_dts timestamp NOT NULL, t_st_id varchar(4) NOT NULL,
	t_tt_id varchar(3) NOT NULL, t_is_cash boolean NOT NULL, t_s_symb varchar(15) NOT NULL,
	t_qty integer NOT NULL, t_bid_price numeric(8,2) NOT NULL, t_ca_id bigint NOT NULL,
	t_exec_name varchar(49) NOT NULL, t_trade_price numeric(8,2), t_chrg numeric(10,2) NOT NULL,
	t_comm numeric(10,2) NOT NULL, t_tax numeric(10,2) NOT NULL, t_lifo boolean NOT NULL,
	PRIMARY KEY (t_id)`},
		TradeHistory: {"trade_history", `
	th_t_id bigint NOT NULL, th_dts timestamp NOT NULL, th_st_id varchar(4) NOT NULL,
	PRIMARY KEY (th_t_id, th_st_id)`},
		TradeRequest: {"trade_request", `
	tr_t_id bigint NOT NULL, tr_tt_id varchar(3) NOT NULL, tr_s_symb varchar(15) NOT NULL,
	tr_qty integer NOT NULL, tr_bid_price numeric(8,2) NOT NULL, tr_b_id bigint NOT NULL,
	PRIMARY KEY (tr_t_id)`},
		Settlement: {"settlement", `
	se_t_id bigint NOT NULL, se_cash_type varchar(40) NOT NULL, se_cash_due_date date NOT NULL,
	se_amt numeric(10,2) NOT NULL, PRIMARY KEY (se_t_id)`},
		CashTransaction: {"cash_transaction", `
	ct_t_id bigint NOT NULL, ct_dts timestamp NOT NULL, ct_amt numeric(10,2) NOT NULL,
	ct_name varchar(100), PRIMARY KEY (ct_t_id)`},
		HoldingSummary: {"holding_summary", `
	hs_ca_id bigint NOT NULL, hs_s_symb varchar(15) NOT NULL, hs_qty integer NOT NULL,
	PRIMARY KEY (hs_ca_id, hs_s_symb)`},
		Holding: {"holding", `
	h_t_id bigint NOT NULL, h_ca_id bigint NOT NULL, h_s_symb varchar(15) NOT NULL,
	h_dts timestamp NOT NULL, h_price numeric(8,2) NOT NULL, h_qty integer NOT NULL,
	PRIMARY KEY (h_t_id)`},
		HoldingHistory: {"holding_history", `
	hh_h_t_id bigint NOT NULL, hh_t_id bigint NOT NULL, hh_before_qty integer NOT NULL,
	hh_after_qty integer NOT NULL, PRIMARY KEY (hh_h_t_id, hh_t_id)`},
	}[t]
}
