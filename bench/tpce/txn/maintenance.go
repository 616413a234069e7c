package txn

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/schema"
)

// The statements of Data-Maintenance.
const (
	sqlKeepPermission    = `SELECT ap_tax_id, ap_acl FROM account_permission WHERE ap_ca_id = $1 ORDER BY ap_acl DESC LIMIT 1`
	sqlKeepPermissionSet = `UPDATE account_permission SET ap_acl = $3 WHERE ap_ca_id = $1 AND ap_tax_id = $2`
	sqlKeepAddressOf     = `SELECT ad.ad_id, ad.ad_line2 FROM customer c JOIN address ad ON ad.ad_id = c.c_ad_id WHERE c.c_id = $1`
	sqlKeepAddressOfCo   = `SELECT ad.ad_id, ad.ad_line2 FROM company co JOIN address ad ON ad.ad_id = co.co_ad_id WHERE co.co_id = $1`
	sqlKeepAddressSet    = `UPDATE address SET ad_line2 = $2 WHERE ad_id = $1`
	sqlKeepCompany       = `SELECT co_sp_rate FROM company WHERE co_id = $1`
	sqlKeepCompanySet    = `UPDATE company SET co_sp_rate = $2 WHERE co_id = $1`
	sqlKeepCustomer      = `SELECT c_email_2 FROM customer WHERE c_id = $1`
	sqlKeepCustomerSet   = `UPDATE customer SET c_email_2 = $2 WHERE c_id = $1`
	sqlKeepTax           = `SELECT cx_tx_id FROM customer_taxrate WHERE cx_c_id = $1 AND (cx_tx_id LIKE 'US%' OR cx_tx_id LIKE 'CN%')`
	sqlKeepTaxSet        = `UPDATE customer_taxrate SET cx_tx_id = $3 WHERE cx_c_id = $1 AND cx_tx_id = $2`
	sqlKeepDaily         = `UPDATE daily_market SET dm_vol = dm_vol + $3 WHERE dm_s_symb = $1 AND EXTRACT(DAY FROM dm_date) = $2`
	sqlKeepExchange      = `SELECT ex_id, ex_desc FROM exchange`
	sqlKeepExchangeSet   = `UPDATE exchange SET ex_desc = $2 WHERE ex_id = $1`
	sqlKeepFinancial     = `SELECT COUNT(*) FROM financial WHERE fi_co_id = $1 AND EXTRACT(DAY FROM fi_qtr_start_date) = 1`
	sqlKeepFinancialSet  = `UPDATE financial SET fi_qtr_start_date = fi_qtr_start_date + $2::int WHERE fi_co_id = $1`
	sqlKeepNews          = `UPDATE news_item SET ni_dts = ni_dts + INTERVAL '1 day' WHERE ni_id IN (SELECT nx_ni_id FROM news_xref WHERE nx_co_id = $1)`
	sqlKeepSecurity      = `UPDATE security SET s_exch_date = s_exch_date + 1 WHERE s_symb = $1`
	sqlKeepRate          = `SELECT tx_name FROM taxrate WHERE tx_id = $1`
	sqlKeepRateSet       = `UPDATE taxrate SET tx_name = $2 WHERE tx_id = $1`
	sqlKeepWatched       = `SELECT wi.wi_wl_id, wi.wi_s_symb FROM watch_list wl JOIN watch_item wi ON wi.wi_wl_id = wl.wl_id
WHERE wl.wl_c_id = $1 ORDER BY wi.wi_s_symb`
	sqlKeepUnwatched = `SELECT s_symb FROM security
WHERE s_symb > $2 AND s_symb NOT IN (SELECT wi_s_symb FROM watch_item WHERE wi_wl_id = $1) ORDER BY s_symb LIMIT 1`
	sqlKeepWatchSet = `UPDATE watch_item SET wi_s_symb = $3 WHERE wi_wl_id = $1 AND wi_s_symb = $2`
)

// upkeep is one attempt at a Data-Maintenance.
type upkeep struct {
	*Session
	in   MaintenanceInput
	rows int64
}

// DataMaintenance makes a small change to one table. It is not repeated after a COMMIT without an answer,
// because no check depends on it.
func (s *Session) DataMaintenance(ctx context.Context, in MaintenanceInput) (MaintenanceResult, mix.Sample) {
	var out MaintenanceResult
	sample := s.perform(ctx, work{kind: mix.DataMaintenance, once: true, races: true, try: func(ctx context.Context) error {
		u := upkeep{Session: s, in: in}
		s.frame.begin(s.beginUpkeep())
		if err := u.change(ctx); err != nil {
			return err
		}
		s.frame.commit()
		err := s.frame.send(ctx)
		out.Rows = u.rows
		return err
	}})
	return out, sample
}

// change sends all statements of the change except the last ones, which it adds to the frame.
func (u *upkeep) change(ctx context.Context) error {
	f, in := &u.frame, u.in
	switch in.Table {
	case schema.AccountPermission.String():
		return u.permission(ctx)
	case schema.Address.String():
		return u.address(ctx)
	case schema.Company.String():
		return u.toggle(ctx, sqlKeepCompany, sqlKeepCompanySet, in.Company, func(rating string) string {
			return either(rating, "A+", "B+")
		})
	case schema.Customer.String():
		return u.toggle(ctx, sqlKeepCustomer, sqlKeepCustomerSet, in.Customer, otherDomain)
	case schema.CustomerTaxrate.String():
		return u.taxes(ctx)
	case schema.DailyMarket.String():
		f.count(&u.rows, sqlKeepDaily, in.Symbol, in.Day, in.Increment)
	case schema.Exchange.String():
		return u.exchanges(ctx)
	case schema.Financial.String():
		return u.quarters(ctx)
	case schema.NewsItem.String():
		f.count(&u.rows, sqlKeepNews, in.Company)
	case schema.Security.String():
		f.count(&u.rows, sqlKeepSecurity, in.Symbol)
	case schema.Taxrate.String():
		return u.toggle(ctx, sqlKeepRate, sqlKeepRateSet, in.TaxRate, otherTax)
	case schema.WatchItem.String():
		return u.watched(ctx)
	default:
		return unexpected("nothing is to be maintained in table %q", in.Table)
	}
	return nil
}

// either returns a, or b if now is a.
func either(now, a, b string) string {
	if now == a {
		return b
	}
	return a
}

// toggle reads a text and replaces it with another.
func (u *upkeep) toggle(ctx context.Context, read, write string, key any, other func(string) string) error {
	var text string
	u.frame.one(read, []any{key}, &text)
	if err := u.frame.send(ctx); err != nil {
		return err
	}
	u.frame.count(&u.rows, write, key, other(text))
	return nil
}

func otherDomain(address string) string {
	name, domain, _ := strings.Cut(address, "@")
	return name + "@" + either(domain, "mail.example", "post.example")
}

func otherTax(name string) string {
	if strings.Contains(name, " Tax ") {
		return strings.Replace(name, " Tax ", " tax ", 1)
	}
	return strings.Replace(name, " tax ", " Tax ", 1)
}

func (u *upkeep) permission(ctx context.Context) error {
	var taxID, acl string
	u.frame.one(sqlKeepPermission, []any{u.in.Account}, &taxID, &acl)
	if err := u.frame.send(ctx); err != nil {
		return err
	}
	u.frame.count(&u.rows, sqlKeepPermissionSet, u.in.Account, taxID, either(acl, "1111", "0011"))
	return nil
}

func (u *upkeep) address(ctx context.Context) error {
	var id int64
	var line *string
	if u.in.Customer != 0 {
		u.frame.one(sqlKeepAddressOf, []any{u.in.Customer}, &id, &line)
	} else {
		u.frame.one(sqlKeepAddressOfCo, []any{u.in.Company}, &id, &line)
	}
	if err := u.frame.send(ctx); err != nil {
		return err
	}
	next := "Apt. 1000"
	if line != nil {
		next = either(*line, next, "Apt. 1001")
	}
	u.frame.count(&u.rows, sqlKeepAddressSet, id, next)
	return nil
}

// taxes assigns the next tax rate of its country to a customer.
func (u *upkeep) taxes(ctx context.Context) error {
	var id string
	u.frame.one(sqlKeepTax, []any{u.in.Customer}, &id)
	if err := u.frame.send(ctx); err != nil {
		return err
	}
	next, ok := map[string]string{"US1": "US2", "US2": "US3", "US3": "US4", "US4": "US5", "US5": "US1",
		"CN1": "CN2", "CN2": "CN3", "CN3": "CN4", "CN4": "CN1"}[id]
	if !ok {
		return unexpected("customer %d pays the rate %s", u.in.Customer, id)
	}
	u.frame.count(&u.rows, sqlKeepTaxSet, u.in.Customer, id, next)
	return nil
}

// exchanges writes the time of the update into every exchange's description.
func (u *upkeep) exchanges(ctx context.Context) error {
	const mark = " LAST UPDATED "
	described := map[string]string{}
	var id string
	var text *string
	u.frame.each(sqlKeepExchange, nil, []any{&id, &text}, func() {
		if described[id] = ""; text != nil {
			described[id], _, _ = strings.Cut(*text, mark)
		}
	})
	if err := u.frame.send(ctx); err != nil {
		return err
	}
	now := clock().Format("2006-01-02 15:04:05.000000")
	for _, id := range slices.Sorted(maps.Keys(described)) {
		u.frame.count(&u.rows, sqlKeepExchangeSet, id, described[id]+mark+now)
	}
	return nil
}

// quarters moves the beginnings of a company's quarters to the second of the month, or back to the first.
func (u *upkeep) quarters(ctx context.Context) error {
	var first int64
	u.frame.one(sqlKeepFinancial, []any{u.in.Company}, &first)
	if err := u.frame.send(ctx); err != nil {
		return err
	}
	days := -1
	if first > 0 {
		days = 1
	}
	u.frame.count(&u.rows, sqlKeepFinancialSet, u.in.Company, days)
	return nil
}

// watched replaces the middle item of a watch list with the next security that is not on it.
func (u *upkeep) watched(ctx context.Context) error {
	var list int64
	var symbol string
	var symbols []string
	u.frame.each(sqlKeepWatched, []any{u.in.Customer}, []any{&list, &symbol}, func() { symbols = append(symbols, symbol) })
	if err := u.frame.send(ctx); err != nil {
		return err
	}
	if len(symbols) == 0 {
		return unexpected("customer %d watches nothing", u.in.Customer)
	}
	middle := symbols[len(symbols)/2]
	var found bool
	var next string
	for _, after := range [2]string{middle, ""} { // after the last symbol, continue at the first
		u.frame.maybe(&found, sqlKeepUnwatched, []any{list, after}, &next)
		if err := u.frame.send(ctx); err != nil {
			return err
		}
		if found {
			u.frame.count(&u.rows, sqlKeepWatchSet, list, middle, next)
			break
		}
	}
	return nil
}
