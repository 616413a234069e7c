package check

// finding is a condition as a query that returns the rows that break it. The first argument, where a
// query has one, is the highest trade id of the load.
type finding struct {
	id, title, query string
	afterLoad        bool // the query takes the highest trade id of the load
}

func findings() []finding {
	return []finding{
		{id: "C3", title: "a holding summary is the sum of its lots", query: `
SELECT hs.hs_ca_id, hs.hs_s_symb, hs.hs_qty, x.q AS lots
FROM holding_summary hs LEFT JOIN (SELECT h_ca_id, h_s_symb, SUM(h_qty) AS q FROM holding GROUP BY h_ca_id, h_s_symb) x
     ON x.h_ca_id = hs.hs_ca_id AND x.h_s_symb = hs.hs_s_symb
WHERE x.q IS NULL OR x.q <> hs.hs_qty`},
		{id: "C3b", title: "every lot has its holding summary", query: `
SELECT h.h_t_id, h.h_ca_id, h.h_s_symb FROM holding h
LEFT JOIN holding_summary hs ON hs.hs_ca_id = h.h_ca_id AND hs.hs_s_symb = h.h_s_symb
WHERE hs.hs_ca_id IS NULL`},
		{id: "C4", title: "completed trades have a settlement, others have none", query: `
SELECT t.t_id, t.t_st_id, se.se_amt FROM trade t LEFT JOIN settlement se ON se.se_t_id = t.t_id
WHERE (t.t_st_id = 'CMPT') <> (se.se_t_id IS NOT NULL)`},
		{id: "C5", title: "completed cash trades have a cash transaction of the settlement's amount, others have none", query: `
SELECT t.t_id, t.t_st_id, t.t_is_cash, ct.ct_amt, se.se_amt
FROM trade t LEFT JOIN cash_transaction ct ON ct.ct_t_id = t.t_id LEFT JOIN settlement se ON se.se_t_id = t.t_id
WHERE (t.t_st_id = 'CMPT' AND t.t_is_cash) <> (ct.ct_t_id IS NOT NULL)
   OR (ct.ct_t_id IS NOT NULL AND (se.se_t_id IS NULL OR ct.ct_amt <> se.se_amt))`},
		{id: "C6", title: "a settlement is price times shares, less charge, commission and the tax withheld", query: `
SELECT t.t_id, se.se_amt FROM trade t JOIN settlement se ON se.se_t_id = t.t_id JOIN trade_type tt ON tt.tt_id = t.t_tt_id
     JOIN customer_account ca ON ca.ca_id = t.t_ca_id
WHERE t.t_trade_price IS NULL
   OR se.se_amt <> (CASE WHEN tt.tt_is_sell THEN t.t_qty * t.t_trade_price - t.t_chrg - t.t_comm
                         ELSE -(t.t_qty * t.t_trade_price + t.t_chrg + t.t_comm) END)
                   - (CASE WHEN ca.ca_tax_st = 1 THEN t.t_tax ELSE 0 END)`},
		{id: "C7", title: "pending trades have a trade request, others have none", afterLoad: true, query: `
SELECT t.t_id, t.t_st_id, tr.tr_t_id FROM trade t LEFT JOIN trade_request tr ON tr.tr_t_id = t.t_id
WHERE t.t_id > $1 AND (t.t_st_id = 'PNDG') <> (tr.tr_t_id IS NOT NULL)`},
		{id: "C7b", title: "every trade request is of a trade of the run", afterLoad: true, query: `
SELECT tr.tr_t_id FROM trade_request tr LEFT JOIN trade t ON t.t_id = tr.tr_t_id WHERE t.t_id IS NULL OR t.t_id <= $1`},
		{id: "C8", title: "a trade's history has its status, PNDG if it is a limit order, and SBMT if it is completed", query: `
SELECT t.t_id, t.t_st_id, a.th_st_id AS now, s.th_st_id AS submitted, p.th_st_id AS pending
FROM trade t JOIN trade_type tt ON tt.tt_id = t.t_tt_id
     LEFT JOIN trade_history a ON a.th_t_id = t.t_id AND a.th_st_id = t.t_st_id
     LEFT JOIN trade_history s ON s.th_t_id = t.t_id AND s.th_st_id = 'SBMT'
     LEFT JOIN trade_history p ON p.th_t_id = t.t_id AND p.th_st_id = 'PNDG'
WHERE a.th_t_id IS NULL OR (t.t_st_id = 'CMPT' AND s.th_t_id IS NULL) OR (NOT tt.tt_is_mrkt AND p.th_t_id IS NULL)`},
		{id: "C9", title: "a completed trade moved as many shares as it says", query: `
SELECT t.t_id, t.t_qty, x.d AS moved FROM trade t JOIN trade_type tt ON tt.tt_id = t.t_tt_id
     LEFT JOIN (SELECT hh_t_id, SUM(hh_after_qty - hh_before_qty) AS d FROM holding_history GROUP BY hh_t_id) x ON x.hh_t_id = t.t_id
WHERE t.t_st_id = 'CMPT' AND COALESCE(x.d, 0) <> (CASE WHEN tt.tt_is_sell THEN -t.t_qty ELSE t.t_qty END)`},
		{id: "C10", title: "a lot is the sum of its history", query: `
SELECT x.hh_h_t_id, x.q AS history, h.h_qty
FROM (SELECT hh_h_t_id, SUM(hh_after_qty - hh_before_qty) AS q FROM holding_history GROUP BY hh_h_t_id) x
     LEFT JOIN holding h ON h.h_t_id = x.hh_h_t_id WHERE x.q <> COALESCE(h.h_qty, 0)`},
		{id: "C10b", title: "every lot has a history", query: `
SELECT h.h_t_id, h.h_qty FROM holding h LEFT JOIN holding_history hh ON hh.hh_h_t_id = h.h_t_id AND hh.hh_t_id = h.h_t_id
WHERE hh.hh_h_t_id IS NULL`},
	}
}
