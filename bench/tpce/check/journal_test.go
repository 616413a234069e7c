package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/journal"
	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/internal/testdb"
)

// testIdentity is the identity of the tests' database.
const testIdentity = "THIS"

// ran returns the statements that create a run's trades in a loaded database: their ids begin at 90001001, and the
// journal that journaled writes contains their acknowledgements.
func ran() []string {
	trade := func(id int, status, price string) string {
		return fmt.Sprintf(`INSERT INTO trade SELECT 9000%d, t_dts, '%s', 'TLB', t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id,
t_exec_name, %s, 0, 0, 0, false FROM trade WHERE t_id = 1`, id, status, price)
	}
	return []string{
		"INSERT INTO tpce_meta (k, v) VALUES ('runs', '1'), ('identity', '" + testIdentity + "')",
		trade(1001, "CMPT", "25.37"), // ordered, completed
		trade(1002, "SBMT", "NULL"),  // ordered, submitted
		trade(1003, "PNDG", "NULL"),  // ordered
		"INSERT INTO trade_request VALUES (90001003, 'TLB', 'AAAA', 100, 25, 1)",
		trade(1006, "SBMT", "NULL"),  // order of unknown outcome
		trade(1007, "CMPT", "21.00"), // ordered, completion of unknown outcome
		trade(1008, "SBMT", "NULL"),  // the same
		"UPDATE last_trade SET lt_vol = lt_vol + 700 WHERE lt_s_symb = 'AAAA'",
	}
}

// journaled writes the journal of that run, and returns its directory. A whole journal ends with End.
func journaled(t *testing.T, identity string, whole bool) string {
	t.Helper()
	dir := t.TempDir()
	at := time.Unix(1_700_000_000, 0)
	w, err := journal.Create(dir, journal.Record{Kind: journal.Run, TradeID: 1, Price: 2, Symbol: identity, At: at})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Append(
		journal.Record{Kind: journal.Lease, TradeID: 90001001, Qty: 500, At: at},
		journal.Record{Kind: journal.Order, TradeID: 90001001, At: at},
		journal.Record{Kind: journal.Result, TradeID: 90001001, Price: 25_37, At: at},
		journal.Record{Kind: journal.Order, TradeID: 90001002, At: at},
		journal.Record{Kind: journal.Trigger, TradeID: 90001002, At: at},
		journal.Record{Kind: journal.Order, TradeID: 90001003, At: at},
		journal.Record{Kind: journal.Refused, TradeID: 90001004, At: at},
		journal.Record{Kind: journal.Order, TradeID: 90001005, At: at, Unknown: true},
		journal.Record{Kind: journal.Order, TradeID: 90001006, At: at, Unknown: true},
		journal.Record{Kind: journal.Order, TradeID: 90001007, At: at},
		journal.Record{Kind: journal.Result, TradeID: 90001007, Price: 21_00, At: at, Unknown: true},
		journal.Record{Kind: journal.Order, TradeID: 90001008, At: at},
		journal.Record{Kind: journal.Result, TradeID: 90001008, Price: 21_00, At: at, Unknown: true},
		journal.Record{Kind: journal.Sent, Symbol: "AAAA", Qty: 375, At: at},
		journal.Record{Kind: journal.Volume, Symbol: "AAAA", Qty: 375, At: at},
		journal.Record{Kind: journal.Sent, Symbol: "AAAB", Qty: 800, At: at},
		journal.Record{Kind: journal.Volume, Symbol: "AAAA", Qty: 325, At: at, Unknown: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(at); err != nil {
		t.Fatal(err)
	}
	if !whole {
		cutEnd(t, dir, 1)
	}
	return dir
}

// cutEnd removes the last line of the journal of a run, as if its driver had been killed.
func cutEnd(t *testing.T, dir string, run int64) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%06d-*", run)))
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	end := strings.LastIndex(strings.TrimSuffix(string(data), "\n"), "\n")
	if err := os.WriteFile(paths[0], data[:end+1], 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestJournal: a run's journal agrees with the database, and every planted contradiction is detected, by
// its condition alone. Method: as TestPlanted, on trades of a simulated run.
func TestJournal(t *testing.T) {
	const extra = "INSERT INTO trade SELECT %d, t_dts, 'SBMT', t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name, NULL, 0, 0, 0, false FROM trade WHERE t_id = 1"
	for _, plant := range []struct {
		name, sql string
		killed    bool // the driver was killed
		c13, c14  int64
		lost      int // facts
		finding   string
	}{
		{name: "all agrees"},
		{name: "what may be is not", sql: "DELETE FROM trade WHERE t_id = 90001006; UPDATE last_trade SET lt_vol = lt_vol - 325 WHERE lt_s_symb = 'AAAA'"},
		{name: "an order is lost", sql: "DELETE FROM trade WHERE t_id = 90001003", c13: 1, lost: 1, finding: "lost"},
		{name: "a completed trade is lost", sql: "DELETE FROM trade WHERE t_id = 90001001", c13: 1, lost: 2, finding: "lost"},
		{name: "a completion is lost", sql: "UPDATE trade SET t_st_id = 'SBMT', t_trade_price = NULL WHERE t_id = 90001001", c13: 1, lost: 1, finding: "was completed, and is SBMT"},
		{name: "a price is another", sql: "UPDATE trade SET t_trade_price = 25.38 WHERE t_id = 90001001", c13: 1, lost: 1, finding: "25.37"},
		{name: "a submission is lost", sql: "UPDATE trade SET t_st_id = 'PNDG' WHERE t_id = 90001002", c13: 1, lost: 1, finding: "is pending"},
		{name: "a trade request came back", sql: "INSERT INTO trade_request VALUES (90001002, 'TLB', 'AAAA', 100, 25, 1)", c13: 1, lost: 1, finding: "trade request"},
		{name: "a refused order is there", sql: fmt.Sprintf(extra, 90001004), c13: 1, lost: 1, finding: "rolled back"},
		{name: "an order came from nowhere", sql: fmt.Sprintf(extra, 90001009), c13: 1, finding: "not acknowledged"},
		{name: "an order is of another run", sql: fmt.Sprintf(extra, 90001501)},
		{name: "a completion came from nowhere", sql: "UPDATE trade SET t_st_id = 'CMPT', t_trade_price = 25 WHERE t_id = 90001002", c13: 1, finding: "completed, which was not"},
		{name: "a volume is lost that is no more than what is open", sql: "UPDATE last_trade SET lt_vol = lt_vol - 100 WHERE lt_s_symb = 'AAAA'", c14: 1},
		{name: "a volume is lost that another security has too much", sql: "UPDATE last_trade SET lt_vol = lt_vol - 100 WHERE lt_s_symb = 'AAAA'; UPDATE last_trade SET lt_vol = lt_vol + 100 WHERE lt_s_symb = 'AAAB'", c14: 2},
		{name: "a killed driver had sent this", killed: true, sql: "UPDATE last_trade SET lt_vol = lt_vol + 800 WHERE lt_s_symb = 'AAAB'"},
		{name: "a killed driver had sent nothing like this", killed: true, sql: "UPDATE last_trade SET lt_vol = lt_vol + 799 WHERE lt_s_symb = 'AAAB'", c14: 1},
		{name: "a driver that was not killed had heard of what it had sent", sql: "UPDATE last_trade SET lt_vol = lt_vol + 800 WHERE lt_s_symb = 'AAAB'", c14: 1},
		{name: "a volume is lost", sql: "UPDATE last_trade SET lt_vol = lt_vol - 326 WHERE lt_s_symb = 'AAAA'", c14: 1},
		{name: "a volume is too much", sql: "UPDATE last_trade SET lt_vol = lt_vol + 1 WHERE lt_s_symb = 'AAAA'", c14: 1},
		{name: "a run has no journal", sql: "UPDATE tpce_meta SET v = '2' WHERE k = 'runs'", c14: 1},
		{name: "a killed driver was not told", killed: true, sql: fmt.Sprintf(extra, 90001009) + ";UPDATE trade SET t_st_id = 'CMPT', t_trade_price = 25 WHERE t_id = 90001002"},
		{name: "a killed driver has that many connections", killed: true, sql: fmt.Sprintf(extra, 90001009) + ";" + fmt.Sprintf(extra, 90001010) + ";" + fmt.Sprintf(extra, 90001011), c13: 3, finding: "not acknowledged"},
		{name: "a killed driver was told this", killed: true, sql: "DELETE FROM trade WHERE t_id = 90001003", c13: 1, lost: 1, finding: "lost"},
	} {
		t.Run(plant.name, func(t *testing.T) {
			statements := append(ran(), strings.Split(plant.sql, ";")...)
			results, err := judgeAfter(t, statements, Options{Only: []string{"C13", "C14"}, Journal: journaled(t, testIdentity, !plant.killed)})
			if err != nil {
				t.Fatal(err)
			}
			c13, c14 := results.Results[0], results.Results[1]
			if c13.Violations != plant.c13 || c14.Violations != plant.c14 {
				t.Errorf("%+v\n%+v\nwant %d and %d", c13, c14, plant.c13, plant.c14)
			}
			if plant.finding != "" && (len(c13.Sample) == 0 || !strings.Contains(strings.Join(c13.Sample[0], " "), plant.finding)) {
				t.Errorf("%v, want %q", c13.Sample, plant.finding)
			}
			if want := fmt.Sprintf("acknowledged 8, found %d, lost %d; unknown outcome 4", 8-plant.lost, plant.lost); !strings.HasPrefix(c13.Note, want) {
				t.Errorf("%q, want %q", c13.Note, want)
			}
		})
	}
	if _, err := judgeAfter(t, ran(), Options{Journal: journaled(t, "OTHER", true)}); err == nil || !strings.Contains(err.Error(), "another database") {
		t.Errorf("a journal of another database: %v", err)
	}
}

// TestBrokerModes: brokers are checked according to the mode in which runs counted them. Method: change a broker's
// row and broker_delta, in each mode.
func TestBrokerModes(t *testing.T) {
	mode := func(m string) string { return "INSERT INTO tpce_meta (k, v) VALUES ('broker_writes', '" + m + "')" }
	const aside = "CREATE TABLE broker_delta (bd_b_id bigint NOT NULL, bd_t_id bigint NOT NULL, bd_comm numeric(10,2) NOT NULL, PRIMARY KEY (bd_b_id, bd_t_id))"
	const move = "UPDATE broker SET b_num_trades = b_num_trades - 1, b_comm_total = b_comm_total - 7.25 WHERE b_id = 2"
	const late = "UPDATE trade SET t_id = t_id + 90000000 WHERE t_id = 1" // a trade of a run
	for name, c := range map[string]struct {
		statements []string
		bad        bool
	}{
		"inline":            {[]string{mode("inline"), move}, true},
		"aside":             {[]string{aside, mode("side-table"), move, "INSERT INTO broker_delta VALUES (2, 1, 7.25)"}, false},
		"aside, a cent off": {[]string{aside, mode("side-table"), move, "INSERT INTO broker_delta VALUES (2, 1, 7.24)"}, true},
		"aside, one lost":   {[]string{aside, mode("side-table"), move}, true},
		"omit":              {[]string{mode("omit"), "INSERT INTO trade SELECT t_id + 90000000, t_dts, t_st_id, t_tt_id, t_is_cash, t_s_symb, t_qty, t_bid_price, t_ca_id, t_exec_name, t_trade_price, t_chrg, t_comm, t_tax, t_lifo FROM trade WHERE t_id = 1"}, false},
		"omit, but changed": {[]string{mode("omit"), move}, true},
		"omit, load lost":   {[]string{mode("omit"), late}, true},
	} {
		results, err := judgeAfter(t, c.statements, Options{Only: []string{"C1+C2"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if (results.Violations() > 0) != c.bad {
			t.Errorf("%s: %+v", name, results.Results)
		}
	}
}

// judgeAfter checks a loaded database after statements, in a transaction that is rolled back.
func judgeAfter(t *testing.T, statements []string, o Options) (Report, error) {
	t.Helper()
	ctx := context.Background()
	dsn := testdb.Schema(ctx, t, "percodb_test_tpce_check")
	if _, err := load.Run(ctx, load.Options{URLs: []string{dsn}, Scale: small()}); err != nil && err != load.ErrLoaded {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tx.Rollback(ctx); err != nil {
			t.Error(err)
		}
	}()
	for _, sql := range statements {
		if sql == "" {
			continue
		}
		if _, err := tx.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	return judge(ctx, tx, o)
}
