package check

import (
	"context"
)

// Values of broker_writes in tpce_meta that change what is checked: how runs counted brokers' trades.
const (
	brokersAside = "side-table" // some counts are in broker_delta
	brokersOmit  = "omit"       // not counted: brokers are as they were loaded
)

// judgeBrokers compares brokers' counters with the completed trades of their accounts.
func judgeBrokers(ctx context.Context, s *subject, r *Result) error {
	const trades = `
     (SELECT ca.ca_b_id AS bid, COUNT(*) AS n, SUM(t.t_comm) AS c
      FROM trade t JOIN customer_account ca ON ca.ca_id = t.t_ca_id WHERE t.t_st_id = 'CMPT'`
	const inRows = `
SELECT b.b_id, b.b_num_trades, COALESCE(x.n, 0) AS trades, b.b_comm_total, COALESCE(x.c, 0) AS commissions
FROM broker b LEFT JOIN`
	const different = `
WHERE b.b_num_trades <> COALESCE(x.n, 0) OR b.b_comm_total <> COALESCE(x.c, 0)`
	switch s.loaded.BrokerWrites {
	case brokersOmit:
		return s.each(ctx, inRows+trades+` AND t.t_id <= $1 GROUP BY ca.ca_b_id) x ON x.bid = b.b_id`+different,
			[]any{s.loaded.MaxTradeID}, r.violate)
	case brokersAside:
		return s.each(ctx, `
SELECT b.b_id, b.b_num_trades, COALESCE(d.n, 0) AS aside, COALESCE(x.n, 0) AS trades,
       b.b_comm_total, COALESCE(d.c, 0) AS commissions_aside, COALESCE(x.c, 0) AS commissions
FROM broker b LEFT JOIN (SELECT bd_b_id AS bid, COUNT(*) AS n, SUM(bd_comm) AS c FROM broker_delta GROUP BY bd_b_id) d
     ON d.bid = b.b_id LEFT JOIN`+trades+` GROUP BY ca.ca_b_id) x ON x.bid = b.b_id
WHERE b.b_num_trades + COALESCE(d.n, 0) <> COALESCE(x.n, 0) OR b.b_comm_total + COALESCE(d.c, 0) <> COALESCE(x.c, 0)`, nil, r.violate)
	}
	return s.each(ctx, inRows+trades+` GROUP BY ca.ca_b_id) x ON x.bid = b.b_id`+different, nil, r.violate)
}
