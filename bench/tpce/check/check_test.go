package check

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/internal/testdb"
)

// small is a scale that loads in a second or two.
func small() gen.Scale {
	return gen.Scale{Customers: 1000, TradeDays: 1, TradesPerCustomer: 2, MarketDays: 31, NewsBytes: 300, Seed: 3, ShortHistory: true}
}

// plants are violations: the statements that create one, and the conditions that must detect it.
func plants() []struct {
	name, sql string
	found     []string
} {
	const trade = "(SELECT max(t_id) FROM trade WHERE t_is_cash)"
	return []struct {
		name, sql string
		found     []string
	}{
		{"a competitor is gone", "DELETE FROM company_competitor WHERE cp_co_id = 1", []string{"C0"}},
		{"a broker has counted a trade too many", "UPDATE broker SET b_num_trades = b_num_trades + 1 WHERE b_id = 3", []string{"C1+C2"}},
		{"a broker has lost a cent", "UPDATE broker SET b_comm_total = b_comm_total - 0.01 WHERE b_id = 4", []string{"C1+C2"}},
		{"a summary is off by one", "UPDATE holding_summary SET hs_qty = hs_qty + 1 WHERE (hs_ca_id, hs_s_symb) IN (SELECT h_ca_id, h_s_symb FROM holding LIMIT 1)", []string{"C3"}},
		{"a summary has no lots", "INSERT INTO holding_summary VALUES (1, 'NONE', 5)", []string{"C3"}},
		{"lots have no summary", "DELETE FROM holding_summary WHERE hs_ca_id = (SELECT min(h_ca_id) FROM holding)", []string{"C3b"}},
		{"a settlement is lost", "DELETE FROM settlement WHERE se_t_id = (SELECT min(t_id) FROM trade WHERE NOT t_is_cash)", []string{"C4"}},
		{"a trade is half cancelled", "UPDATE trade SET t_st_id = 'CNCL' WHERE t_id = (SELECT min(t_id) FROM trade WHERE NOT t_is_cash)", []string{"C1+C2", "C4", "C8"}},
		{"a cash transaction is lost", "DELETE FROM cash_transaction WHERE ct_t_id = " + trade, []string{"C5"}},
		{"a cash transaction has another amount", "UPDATE cash_transaction SET ct_amt = ct_amt + 1 WHERE ct_t_id = " + trade, []string{"C5"}},
		{"a margin trade was paid in cash", "INSERT INTO cash_transaction SELECT se_t_id, '2005-01-03', se_amt, 'x' FROM settlement WHERE se_cash_type = 'Margin' LIMIT 1", []string{"C5"}},
		{"a price was changed after the settlement", "UPDATE trade SET t_trade_price = t_trade_price + 0.01 WHERE t_id = " + trade, []string{"C6"}},
		{"a completed trade has no price", "UPDATE trade SET t_trade_price = NULL WHERE t_id = " + trade, []string{"C6"}},
		{"a withheld tax was changed", "UPDATE trade SET t_tax = t_tax + 1 WHERE t_id = (SELECT max(t_id) FROM trade JOIN customer_account ON ca_id = t_ca_id WHERE ca_tax_st = 1)", []string{"C6"}},
		{"a pending order has no request", "INSERT INTO trade SELECT 90000000, t_dts, 'PNDG', 'TLB', t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name, NULL, 0, 0, 0, false FROM trade LIMIT 1; INSERT INTO trade_history VALUES (90000000, '2005-03-01', 'PNDG')", []string{"C7"}},
		{"a request has no trade", "INSERT INTO trade_request VALUES (90000001, 'TLB', 'AAAA', 100, 25, 1)", []string{"C7b"}},
		{"a history lacks its end", "DELETE FROM trade_history WHERE th_st_id = 'CMPT' AND th_t_id = " + trade, []string{"C8"}},
		{"a limit order was never pending", "DELETE FROM trade_history WHERE th_st_id = 'PNDG' AND th_t_id = (SELECT max(th_t_id) FROM trade_history WHERE th_st_id = 'PNDG')", []string{"C8"}},
		{"a trade moved fewer shares", "DELETE FROM holding_history WHERE (hh_h_t_id, hh_t_id) = (SELECT hh_h_t_id, hh_t_id FROM holding_history WHERE hh_h_t_id <> hh_t_id LIMIT 1)", []string{"C9", "C10"}},
		{"a lot shrank", "UPDATE holding SET h_qty = h_qty - 1 WHERE h_t_id = (SELECT max(h_t_id) FROM holding)", []string{"C3", "C10"}},
		{"a lot came from nowhere", "INSERT INTO holding SELECT 90000002, h_ca_id, h_s_symb, h_dts, h_price, 1 FROM holding LIMIT 1", []string{"C3", "C10b"}},
		{"a balance is off by a cent", "UPDATE customer_account SET ca_bal = ca_bal + 0.01 WHERE ca_id = (SELECT min(ca_id) FROM customer_account)", []string{"C11"}},
		{"an account is gone", "DELETE FROM customer_account WHERE ca_id = (SELECT max(ca_id) FROM customer_account WHERE ca_id NOT IN (SELECT t_ca_id FROM trade))", []string{"C0", "C11"}},
		{"an index is gone", "DROP INDEX i_hh_t_id", []string{"C12"}},
	}
}

// TestPlanted: a loaded database is clean, and every planted violation is detected by the conditions it
// violates, and by no others (C12 runs only where it should detect something). Method: on a server; each violation
// is planted in its own transaction, which is rolled back after the check has run inside it.
func TestPlanted(t *testing.T) {
	ctx := context.Background()
	dsn := testdb.Schema(ctx, t, "percodb_test_tpce_check")
	if _, err := load.Drop(ctx, dsn); err != nil {
		t.Fatal(err)
	}
	if _, err := load.Run(ctx, load.Options{URLs: []string{dsn}, Scale: small()}); err != nil {
		t.Fatal(err)
	}
	report, err := Run(ctx, Options{URL: dsn})
	if err != nil {
		t.Fatal(err)
	}
	if report.Violations() != 0 || len(report.Results) != len(IDs())-2 { // C13 and C14 need a journal
		t.Fatalf("the load is not clean: %+v", report)
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	covered := map[string]bool{}
	for _, plant := range plants() {
		t.Run(plant.name, func(t *testing.T) {
			tx, err := conn.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := tx.Rollback(ctx); err != nil {
					t.Error(err)
				}
			}()
			tag, err := conn.PgConn().Exec(ctx, plant.sql).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			if tag[0].CommandTag.RowsAffected() == 0 && !strings.HasPrefix(plant.sql, "DROP") {
				t.Fatal("nothing was planted")
			}
			only := IDs()
			if !slices.Contains(plant.found, "C12") { // which runs hundreds of queries
				only = slices.DeleteFunc(only, func(id string) bool { return id == "C12" })
			}
			results, err := judge(ctx, tx, Options{Only: only})
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, r := range results.Results {
				if r.Violations > 0 {
					found = append(found, r.ID)
					covered[r.ID] = true
					if len(r.Sample) == 0 || len(r.Sample[0]) != len(r.Columns) {
						t.Errorf("%s shows no row: %+v", r.ID, r)
					}
				}
			}
			if !slices.Equal(found, plant.found) {
				t.Errorf("found by %v, want %v", found, plant.found)
			}
		})
	}
	for _, id := range IDs() {
		if !covered[id] && id != "C13" && id != "C14" { // see TestJournal
			t.Errorf("no violation is planted for %s", id)
		}
	}
}

// TestRangesCoverOnce: every value lies in exactly one of the ranges by which an index is read.
func TestRangesCoverOnce(t *testing.T) {
	got := ranges("c", []string{"3", "7", "9"})
	want := []string{"c < 3", "c >= 3 AND c < 7", "c >= 7 AND c < 9", "c >= 9"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	g, err := gen.New(small())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range indexesOf(g) {
		if len(x.cuts) != rangesPerUnit {
			t.Errorf("%s has %d cuts", x.index, len(x.cuts))
		}
		for i, cut := range x.cuts[1:] {
			if len(cut) < len(x.cuts[i]) || len(cut) == len(x.cuts[i]) && cut <= x.cuts[i] {
				t.Errorf("%s: cut %s comes after %s", x.index, cut, x.cuts[i])
			}
		}
	}
}

// TestCents: amounts are parsed and formatted exactly, and other texts are rejected.
func TestCents(t *testing.T) {
	for text, want := range map[string]int64{"0.00": 0, "-0.05": -5, "9999999.99": 999999999, "-12.30": -1230} {
		got, err := parseCents(text)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
		if back := formatCents(want); back != text {
			t.Errorf("%d is written %s", want, back)
		}
	}
	for _, text := range []string{"", "NULL", "1", "1.2", "1.234", "x.yz"} {
		if v, err := parseCents(text); err == nil {
			t.Errorf("%q was read as %d", text, v)
		}
	}
}

// TestUnknownCondition: an unknown id is rejected before connecting to a server.
func TestUnknownCondition(t *testing.T) {
	if _, err := Run(context.Background(), Options{URL: "postgres://127.0.0.1:1/x", Only: []string{"C99"}}); err == nil || !strings.Contains(err.Error(), "C99") {
		t.Errorf("%v", err)
	}
}

// TestNotJudged: a condition whose query fails is an error, and the others are still evaluated. Method: drop a
// table that only C4, C5 and C6 read, and plant a violation of C0.
func TestNotJudged(t *testing.T) {
	report, err := judgeAfter(t, []string{"ALTER TABLE settlement RENAME TO elsewhere", "DELETE FROM company_competitor WHERE cp_co_id = 1"},
		Options{Only: []string{"C0", "C3", "C4", "C5", "C6", "C11"}})
	if err == nil || !strings.Contains(err.Error(), "C4") || !strings.Contains(err.Error(), "C6") {
		t.Errorf("%v", err)
	}
	var got []string
	for _, r := range report.Results {
		switch {
		case r.Error != "":
			got = append(got, r.ID+" not judged")
		case r.Violations > 0:
			got = append(got, r.ID+" broken")
		default:
			got = append(got, r.ID+" ok")
		}
	}
	if want := "C0 broken, C3 ok, C4 not judged, C5 not judged, C6 not judged, C11 ok"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
}
