package txn

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/check"
	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/schema"
	"github.com/percodb/percodb/internal/testdb"
)

// small is a scale that loads in a second or two.
func small() gen.Scale {
	return gen.Scale{Customers: 1000, TradeDays: 1, TradesPerCustomer: 20, MarketDays: 65, NewsBytes: 300, Seed: 3, ShortHistory: true}
}

// counter is an IDSource of consecutive ids.
type counter struct{ last atomic.Int64 }

func (c *counter) Next(context.Context) (int64, error) { return c.last.Add(1), nil }

// database is a loaded database for one test.
type database struct {
	t   *testing.T
	url string
	gen *gen.Generator
	ids *counter
	// conn is the connection for number.
	conn *pgx.Conn
}

// loaded creates a schema for the test in the database that the environment names, and loads it. Without a
// database, the test is skipped.
func loaded(ctx context.Context, t *testing.T) *database {
	t.Helper()
	d := &database{t: t, url: testdb.Schema(ctx, t, "percodb_test_tpce_txn"), ids: &counter{}}
	if _, err := load.Drop(ctx, d.url); err != nil {
		t.Fatal(err)
	}
	if _, err := load.Run(ctx, load.Options{URLs: []string{d.url}, Scale: small()}); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.gen, err = gen.New(small()); err != nil {
		t.Fatal(err)
	}
	d.ids.last.Store(d.gen.MaxTradeID())
	d.exec(ctx, schema.CreateForRun(d.gen.MaxTradeID()+1_000_000)...)
	return d
}

func (d *database) exec(ctx context.Context, statements ...string) {
	d.t.Helper()
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, q := range statements {
		if _, err := conn.Exec(ctx, q); err != nil {
			d.t.Fatalf("%s: %v", q, err)
		}
	}
}

// number returns the result of a query of one number.
func (d *database) number(ctx context.Context, sql string, args ...any) int64 {
	d.t.Helper()
	if d.conn == nil {
		var err error
		if d.conn, err = pgx.Connect(ctx, d.url); err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() { _ = d.conn.Close(ctx) })
	}
	var n int64
	if err := d.conn.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (d *database) open(ctx context.Context, url string, set Settings) *Session {
	d.t.Helper()
	if set.TradeIDs == nil {
		set.TradeIDs = d.ids
	}
	s, err := Open(ctx, url, &set, d.gen)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { s.Close(ctx) })
	return s
}

// check evaluates all conditions that need no journal.
func (d *database) check(ctx context.Context) {
	d.t.Helper()
	report, err := check.Run(ctx, check.Options{URL: d.url})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Violations > 0 {
			d.t.Errorf("%s, %s: %d violations, %v %v", r.ID, r.Title, r.Violations, r.Columns, r.Sample)
		}
	}
}

// settled fails the test unless a transaction has the wanted outcome.
func settled(t *testing.T, sample mix.Sample, want mix.Outcome) {
	t.Helper()
	if sample.Outcome != want || sample.Err != nil {
		t.Errorf("%s ended as %d, want %d: %v", sample.Kind, sample.Outcome, want, sample.Err)
	}
	if sample.Finished.Before(sample.Started) || sample.RoundTrips == 0 {
		t.Errorf("%s: %+v", sample.Kind, sample)
	}
}

// day enters orders, executes them, and runs all other transactions in between. Orders whose limit no ticker
// meets stay pending.
func day(ctx context.Context, t *testing.T, s *Session, in *Inputs, orders int) {
	t.Helper()
	var tape []Ticker
	complete := func(id int64, symbol, kind string, limit, qty int64) {
		price := gen.Execution(kind, limit, 20_00+id%10_00)
		_, sample := s.TradeResult(ctx, ResultInput{TradeID: id, Price: price})
		settled(t, sample, mix.Committed)
		tape = append(tape, Ticker{Symbol: symbol, Price: price, Qty: qty})
	}
	for i := range orders {
		o := in.Order()
		out, sample := s.TradeOrder(ctx, o)
		if o.RollBack {
			settled(t, sample, mix.RolledBack)
			continue
		}
		settled(t, sample, mix.Committed)
		if t.Failed() {
			return
		}
		if out.Market {
			complete(out.TradeID, out.Symbol, out.Type, out.Price, out.Qty)
		} else {
			tape = append(tape, Ticker{Symbol: out.Symbol, Price: out.Price, Qty: 375})
		}
		if len(tape) >= 20 {
			res, sample := s.MarketFeed(ctx, FeedInput{Tickers: tape[:20]})
			settled(t, sample, mix.Committed)
			tape = tape[20:]
			for _, o := range res.Triggered {
				complete(o.TradeID, o.Symbol, o.Type, o.Limit, o.Qty)
			}
		}
		if kind := in.Kind(); kind != mix.TradeOrder {
			settled(t, s.Customer(ctx, kind, in), mix.Committed)
		}
		if i%3 == 0 {
			_, sample := s.DataMaintenance(ctx, in.Maintenance(i/3))
			settled(t, sample, mix.Committed)
		}
	}
}

// TestDays: under all settings, transactions maintain the conditions of the check. Method: on a server, a few
// hundred of all kinds each, one after the other; then the check, then the clean-up and the check again.
func TestDays(t *testing.T) {
	ctx := context.Background()
	d := loaded(ctx, t)
	for i, c := range []struct {
		name     string
		set      Settings
		sequence bool
	}{
		{name: "one by one"},
		{name: "pipeline", set: Settings{Pipeline: true}},
		{name: "spec", set: Settings{Pipeline: true, Isolation: Spec, ForUpdate: true, MergeTaxUpdate: true, FeedBatch: true}},
		{name: "serializable, loops", set: Settings{Pipeline: true, Isolation: Serializable, MarketWatchLoop: true, LookupLoop: true}},
		{name: "loops one by one", set: Settings{MarketWatchLoop: true, LookupLoop: true, FeedBatch: true}},
		{name: "side table, sequence", set: Settings{Pipeline: true, BrokerWrites: SideTable}, sequence: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &database{t: t, url: d.url, gen: d.gen, ids: d.ids}
			s := d.open(ctx, d.url, c.set)
			if c.sequence {
				s.set.TradeIDs = nil
			}
			day(ctx, t, s, NewInputs(d.gen, uint64(i), InputOptions{}), 120)
			if c.set.BrokerWrites == SideTable {
				var moved int64
				for b := int64(1); b <= d.gen.Brokers(); b++ {
					n, sample := s.AggregateBroker(ctx, b)
					settled(t, sample, mix.Committed)
					moved += n
				}
				if left := d.number(ctx, "SELECT count(*) FROM broker_delta"); moved == 0 || left != 0 {
					t.Errorf("%d commissions were added up, %d were not", moved, left)
				}
			}
			d.check(ctx)
		})
	}
	t.Run("clean up", func(t *testing.T) {
		s := d.open(ctx, d.url, Settings{Pipeline: true})
		pending := d.number(ctx, "SELECT count(*) FROM trade_request")
		d.exec(ctx, fmt.Sprintf("UPDATE trade SET t_st_id = 'SBMT' WHERE t_id = %d", d.gen.MaxTradeID()+1_000_000))
		out, sample := s.CleanUp(ctx, d.gen.MaxTradeID()+1)
		settled(t, sample, mix.Committed)
		if pending == 0 || out.Pending != pending {
			t.Errorf("%d of %d pending orders were cancelled", out.Pending, pending)
		}
		if left := d.number(ctx, "SELECT count(*) FROM trade WHERE t_st_id IN ('PNDG', 'SBMT')"); left != 0 {
			t.Errorf("%d trades are open", left)
		}
	})
}

// TestOutputs: each transaction returns the expected rows. Method: on a server; frames of lookups,
// a position against the accounts of the generator, an order that is the latest of its account.
func TestOutputs(t *testing.T) {
	ctx := context.Background()
	d := loaded(ctx, t)
	s := d.open(ctx, d.url, Settings{Pipeline: true})
	in := NewInputs(d.gen, 7, InputOptions{})
	if rejected, err := Probe(ctx, d.url); err != nil || len(rejected) > 0 {
		t.Fatalf("the server rejects %+v, %v", rejected, err)
	}
	for frame := 1; frame <= 4; frame++ {
		l := in.lookup(frame)
		out, sample := s.TradeLookup(ctx, l)
		settled(t, sample, mix.Committed)
		if frame == 1 && len(out.Trades) != 20 || len(out.Trades) == 0 || frame == 4 && out.Rows == 0 {
			t.Errorf("frame %d of %+v: %+v", frame, l, out)
		}
		if frame == 4 {
			continue
		}
		up, sample := s.TradeUpdate(ctx, UpdateInput{LookupInput: l, Updates: 20})
		settled(t, sample, mix.Committed)
		if len(up.Trades) != len(out.Trades) || up.Updated == 0 {
			t.Errorf("frame %d of %+v: %+v", frame, l, up)
		}
	}
	detail := in.Detail()
	for _, detail.News = range []bool{false, true} {
		out, sample := s.SecurityDetail(ctx, detail)
		settled(t, sample, mix.Committed)
		if want := (DetailResult{Competitors: 3, Quarters: 20, Days: int(detail.Days), News: 2}); out != want {
			t.Errorf("%+v: %+v, want %+v", detail, out, want)
		}
	}
	d.positions(ctx, s, in)
	d.latest(ctx, s, in)
	d.watched(ctx, s, in)
	for i := range 24 {
		m := in.Maintenance(i)
		out, sample := s.DataMaintenance(ctx, m)
		settled(t, sample, mix.Committed)
		if out.Rows == 0 && m.Table != schema.DailyMarket.String() {
			t.Errorf("%+v changed nothing", m)
		}
	}
	d.check(ctx)
}

func (d *database) positions(ctx context.Context, s *Session, in *Inputs) {
	for range 10 {
		p := in.Position()
		p.History = true
		out, sample := s.CustomerPosition(ctx, p)
		settled(d.t, sample, mix.Committed)
		first, n := d.gen.AccountsOf(out.Customer)
		if int64(len(out.Accounts)) != n || out.History == 0 && d.number(ctx, "SELECT count(*) FROM trade WHERE t_ca_id = $1", out.Accounts[p.Account].Account) > 0 {
			d.t.Errorf("%+v: %+v, %d accounts from %d", p, out, n, first)
		}
		for i, a := range out.Accounts {
			if i > 0 && out.Accounts[i-1].Assets > a.Assets || a.Balance != d.gen.InitialBalance(a.Account) {
				d.t.Errorf("%+v: %+v", p, out)
			}
		}
	}
}

// latest enters a limit order, finds it as the latest of its account and with its broker, submits it with a
// Market-Feed, and completes it.
func (d *database) latest(ctx context.Context, s *Session, in *Inputs) {
	o := in.Order()
	o.RollBack = false
	o.Terms = gen.Terms{Type: "TLB", Qty: 100, Limit: 25_00}
	out, sample := s.TradeOrder(ctx, o)
	settled(d.t, sample, mix.Committed)
	status, sample := s.TradeStatus(ctx, StatusInput{Account: o.Account})
	settled(d.t, sample, mix.Committed)
	if len(status.Trades) == 0 || status.Trades[0] != out.TradeID {
		d.t.Errorf("order %d is not the latest of its account: %v", out.TradeID, status.Trades)
	}
	var brokers int
	for _, sector := range d.gen.SectorNames() {
		v := in.Volume()
		v.Sector = sector
		found, sample := s.BrokerVolume(ctx, v)
		settled(d.t, sample, mix.Committed)
		brokers += len(found.Brokers)
	}
	if brokers != 1 {
		d.t.Errorf("%d brokers have open orders in all sectors, want the one", brokers)
	}
	for _, price := range []int64{25_01, 25_00, 24_00} {
		fed, sample := s.MarketFeed(ctx, FeedInput{Tickers: []Ticker{{Symbol: out.Symbol, Price: price, Qty: 7}}})
		settled(d.t, sample, mix.Committed)
		want := 0
		if price == 25_00 {
			want = 1
		}
		if len(fed.Triggered) != want || want == 1 && fed.Triggered[0] != (Triggered{out.TradeID, out.Symbol, "TLB", 100, 25_00}) {
			d.t.Errorf("at %d: %+v", price, fed)
		}
	}
	if n := d.number(ctx, "SELECT lt_vol FROM last_trade WHERE lt_s_symb = $1", out.Symbol); n != 21 {
		d.t.Errorf("a volume of %d, want 21", n)
	}
	for _, want := range []mix.Outcome{mix.Committed, mix.AlreadyDone} {
		_, sample = s.TradeResult(ctx, ResultInput{TradeID: out.TradeID, Price: 24_00})
		settled(d.t, sample, want)
	}
}

// watched compares both variants of Market-Watch, for all kinds of lists.
func (d *database) watched(ctx context.Context, s *Session, in *Inputs) {
	loop := d.open(ctx, d.url, Settings{Pipeline: true, MarketWatchLoop: true})
	for _, w := range []WatchInput{{Customer: in.customer()}, {Account: in.account()}, {Industry: in.lobbies[3], FirstCompany: 1, LastCompany: 500}} {
		w.Since = in.watchDay()
		a, sample := s.MarketWatch(ctx, w)
		settled(d.t, sample, mix.Committed)
		b, sample := loop.MarketWatch(ctx, w)
		settled(d.t, sample, mix.Committed)
		if a != b || a.Percent == 0 {
			d.t.Errorf("%+v: %v and %v percent", w, a.Percent, b.Percent)
		}
		// A day without prices: every list and industry has a value on every day of the load.
		w.Since = d.gen.MarketDate(0).AddDate(-1, 0, 0)
		for _, session := range []*Session{s, loop} {
			if _, sample := session.MarketWatch(ctx, w); (sample.Outcome == mix.Failed) != (w.Account == 0) {
				d.t.Errorf("%+v: %d, %v", w, sample.Outcome, sample.Err)
			}
		}
	}
}

// TestContention: conflicting transactions are repeated until they commit, and each has its effects
// once. Method: on a server, four sessions concurrently complete trades of one account, then four feed the same
// tickers, one of which meets the limit of an order.
func TestContention(t *testing.T) {
	ctx := context.Background()
	d := loaded(ctx, t)
	const workers, each = 4, 15
	s := d.open(ctx, d.url, Settings{Pipeline: true})
	in := NewInputs(d.gen, 9, InputOptions{})
	base := in.Order()
	base.RollBack, base.Terms = false, gen.Terms{Type: "TMB", Qty: 100}
	trades := make(chan int64, workers*each)
	for range workers * each {
		out, sample := s.TradeOrder(ctx, base)
		settled(t, sample, mix.Committed)
		trades <- out.TradeID
	}
	close(trades)
	limit := base
	limit.Terms = gen.Terms{Type: "TLB", Qty: 100, Limit: 25_00}
	pending, sample := s.TradeOrder(ctx, limit)
	settled(t, sample, mix.Committed)
	var triggered atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			s := d.open(ctx, d.url, Settings{Pipeline: true})
			for id := range trades {
				_, sample := s.TradeResult(ctx, ResultInput{TradeID: id, Price: 22_00})
				settled(t, sample, mix.Committed)
			}
			fed, sample := s.MarketFeed(ctx, FeedInput{Tickers: []Ticker{{Symbol: pending.Symbol, Price: 24_00, Qty: 1}}})
			settled(t, sample, mix.Committed)
			triggered.Add(int64(len(fed.Triggered)))
		})
	}
	group.Wait()
	if n := triggered.Load(); n != 1 {
		t.Errorf("an order was submitted %d times", n)
	}
	if n := d.number(ctx, "SELECT lt_vol FROM last_trade WHERE lt_s_symb = $1", pending.Symbol); n != workers {
		t.Errorf("a volume of %d, want %d", n, workers)
	}
	d.check(ctx)
}

// TestEndsWithContext: a transaction ends when its context ends, and reports that.
func TestEndsWithContext(t *testing.T) {
	ctx := context.Background()
	d := loaded(ctx, t)
	s := d.open(ctx, d.url, Settings{})
	gone, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	<-gone.Done()
	_, sample := s.TradeStatus(gone, StatusInput{Account: 1})
	if sample.Outcome != mix.Failed || sample.Err == nil {
		t.Errorf("%+v", sample)
	}
	_, sample = s.TradeStatus(ctx, StatusInput{Account: 1})
	settled(t, sample, mix.Committed)
}
