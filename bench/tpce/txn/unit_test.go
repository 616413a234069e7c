package txn

import (
	"context"
	"errors"
	"io"
	"math"
	"math/big"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/mix"
)

func generator(t *testing.T, scale gen.Scale) *gen.Generator {
	t.Helper()
	g, err := gen.New(scale)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// shares counts occurrences of cases, and compares their shares with the expected ones.
type shares struct {
	t      *testing.T
	counts map[string]int
	total  int
}

func (s *shares) add(name string) {
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[name]++
	s.total++
}

// want fails the test if a share deviates from percent by more than five standard deviations.
func (s *shares) want(name string, percent float64) {
	s.t.Helper()
	p, n := percent/100, float64(s.total)
	got := float64(s.counts[name])
	if math.Abs(got-n*p) > 5*math.Sqrt(n*p*(1-p))+1 {
		s.t.Errorf("%s: %.2f percent of %d, want %.2f", name, 100*got/n, s.total, percent)
	}
}

// TestOrderInputs: the properties of orders have the intended shares, and orders refer to existing accounts,
// securities and persons. Method: a hundred thousand draws.
func TestOrderInputs(t *testing.T) {
	g := generator(t, small())
	in := NewInputs(g, 1, InputOptions{})
	kinds, ways, owners, rolled, margin, lifo := shares{t: t}, shares{t: t}, shares{t: t}, shares{t: t}, shares{t: t}, shares{t: t}
	pick := func(yes bool) string { return map[bool]string{true: "yes", false: "no"}[yes] }
	for range 100_000 {
		o := in.Order()
		kinds.add(o.Terms.Type)
		ways.add(pick(o.Symbol != ""))
		owners.add(pick(o.Terms.Trader == 0))
		rolled.add(pick(o.RollBack))
		lifo.add(pick(o.Terms.LIFO))
		if o.Terms.Sell {
			if o.Terms.Margin {
				t.Fatalf("a sale on margin: %+v", o)
			}
		} else {
			margin.add(pick(o.Terms.Margin))
		}
		if market := o.Terms.Type == "TMB" || o.Terms.Type == "TMS"; market != o.Terms.Market || market != (o.Terms.Limit == 0) ||
			!market && (o.Terms.Limit < 20_00 || o.Terms.Limit > 30_00) {
			t.Fatalf("%+v", o)
		}
		if o.Terms.Trader == 0 && o.Trader != g.Customer(g.Owner(o.Account)) {
			t.Fatalf("%+v is not of the owner", o)
		}
		if first, n := g.AccountsOf(g.Owner(o.Account)); o.Account < first || o.Account >= first+n {
			t.Fatalf("there is no account %d", o.Account)
		}
	}
	for kind, percent := range map[string]float64{"TMB": 30, "TMS": 30, "TLB": 20, "TLS": 10, "TSL": 10} {
		kinds.want(kind, percent)
	}
	ways.want("yes", 60)
	rolled.want("yes", 100.0/101)
	margin.want("yes", 16)
	lifo.want("yes", 35)
	if got := 100 * float64(owners.counts["yes"]) / float64(owners.total); got < 88 || got > 92 { // by account, not by order
		t.Errorf("owners give %.1f percent of the orders", got)
	}
}

// TestOtherInputs: the mix and the inputs of the other transactions have the intended shares, and refer to loaded
// data. Method: many draws, on the smallest database and on a large one.
func TestOtherInputs(t *testing.T) {
	large, err := gen.Profile("spec")
	if err != nil {
		t.Fatal(err)
	}
	for _, scale := range []gen.Scale{small(), large} {
		g := generator(t, scale)
		in := NewInputs(g, 2, InputOptions{})
		kinds, watch, frames, days := shares{t: t}, shares{t: t}, shares{t: t}, shares{t: t}
		for range 50_000 {
			kinds.add(in.Kind().String())
			w := in.Watch()
			days.add(w.Since.Weekday().String())
			if last := g.MarketDate(scale.MarketDays - 1); w.Since.Before(g.MarketDate(0)) || w.Since.After(last) {
				t.Fatalf("%v is no day of the market", w.Since)
			}
			switch {
			case w.Customer != 0:
				watch.add("customer")
			case w.Account != 0:
				watch.add("account")
			default:
				watch.add("industry")
				if w.FirstCompany < 1 || w.LastCompany > g.Companies() || w.LastCompany-w.FirstCompany+1 != min(5000, g.Companies()) {
					t.Fatalf("%+v of %d companies", w, g.Companies())
				}
			}
			frames.add(string(rune('0' + checkLookup(t, g, in.Lookup()))))
			d := in.Detail()
			if d.Since.AddDate(0, 0, int(d.Days-1)).After(g.MarketDate(scale.MarketDays-1)) || d.Days < 5 || d.Days > 20 {
				t.Fatalf("%+v", d)
			}
		}
		for k := range mix.InMix {
			f := mix.Of(mix.Kind(k))
			kinds.want(f.Name, 100*float64(f.Weight)/890)
		}
		watch.want("customer", 60)
		watch.want("account", 35)
		for day, percent := range map[string]float64{"Monday": 20, "Tuesday": 7, "Wednesday": 6, "Thursday": 7, "Friday": 60} {
			days.want(day, percent)
		}
		for frame, percent := range map[string]float64{"1": 30, "2": 30, "3": 30, "4": 10} {
			frames.want(frame, percent)
		}
		if v := in.Volume(); int64(len(v.Brokers)) != min(g.Brokers(), int64(len(v.Brokers))) || len(v.Brokers) < int(min(20, g.Brokers())) || len(v.Brokers) > 40 {
			t.Errorf("%d brokers of %d", len(v.Brokers), g.Brokers())
		}
	}
}

// checkLookup checks a lookup, and returns its frame.
func checkLookup(t *testing.T, g *gen.Generator, l LookupInput) int {
	t.Helper()
	end := g.TradingTime(g.History())
	if l.Frame == 1 {
		if len(l.Trades) != 20 || !slices.IsSorted(l.Trades) || len(slices.Compact(slices.Clone(l.Trades))) != 20 {
			t.Fatalf("%v", l.Trades)
		}
		for _, id := range l.Trades {
			if id < 1 || id > g.MaxTradeID() || g.IsSkipped(id) {
				t.Fatalf("there is no trade %d", id)
			}
		}
		return l.Frame
	}
	if l.From.Before(g.TradingTime(0)) || l.From.After(end) || l.To.Before(end) {
		t.Fatalf("%+v", l)
	}
	return l.Frame
}

// TestPartition: the requested share of a driver's customers is from its own load units, the others are from all load
// units that act.
func TestPartition(t *testing.T) {
	scale := small()
	scale.Customers = 10_000
	in := NewInputs(generator(t, scale), 3, InputOptions{LoadUnits: 8, FirstOwn: 4, OwnUnits: 2, PartitionPercent: 50})
	units := shares{t: t}
	for range 50_000 {
		units.add(string(rune('0' + (in.customer()-1)/1000)))
	}
	for lu, percent := range []float64{6.25, 6.25, 6.25, 6.25, 31.25, 31.25, 6.25, 6.25, 0, 0} {
		units.want(string(rune('0'+lu)), percent)
	}
}

// TestMaintenanceTakesTurns: twelve Data-Maintenance transactions change twelve tables.
func TestMaintenanceTakesTurns(t *testing.T) {
	in := NewInputs(generator(t, small()), 4, InputOptions{})
	tables := map[string]bool{}
	for i := range 12 {
		tables[in.Maintenance(100+i).Table] = true
	}
	if len(tables) != 12 {
		t.Errorf("%v", tables)
	}
}

// TestMoney: amounts are scanned and written exactly, and rounded half up.
func TestMoney(t *testing.T) {
	for _, c := range []struct {
		digits int64
		exp    int32
		want   cents
		ok     bool
	}{
		{12345, -2, 12345, true}, {-5, -2, -5, true}, {12, 0, 1200, true}, {3, 2, 30000, true}, {12300, -4, 123, true},
		{12345, -3, 0, false}, {1, 30, 0, false}, {1, 1 << 30, 0, false}, {1, -1 << 31, 0, false},
	} {
		var got cents
		err := got.ScanNumeric(pgtype.Numeric{Int: big.NewInt(c.digits), Exp: c.exp, Valid: true})
		if (err == nil) != c.ok || c.ok && got != c.want {
			t.Errorf("%de%d: %d, %v", c.digits, c.exp, got, err)
		}
	}
	for _, v := range []pgtype.Numeric{{}, {Valid: true, NaN: true}, {Valid: true, InfinityModifier: pgtype.Infinity}} {
		var got cents
		if err := got.ScanNumeric(v); err == nil {
			t.Errorf("%+v was scanned as %d", v, got)
		}
	}
	for c, want := range map[int64]string{0: "0.00", 5: "0.05", -5: "-0.05", 123456: "1234.56", -100: "-1.00"} {
		if got := money(c); got != want {
			t.Errorf("%d: %s", c, got)
		}
	}
	if got := commissionOf(100, 2501, 36); got != 900 { // 900.36
		t.Error(got)
	}
	if got := commissionOf(100, 2505, 10); got != 251 { // 250.5
		t.Error(got)
	}
	if got := taxOf(1000, 25_050); got != 251 { // 250.5
		t.Error(got)
	}
}

// TestBatchOfTickers: tickers of one symbol are merged, and sorted by symbol, so that transactions that lock rows
// do not deadlock.
func TestBatchOfTickers(t *testing.T) {
	got := merged([]Ticker{{"C", 1, 10}, {"A", 2, 20}, {"C", 3, 30}, {"B", 4, 40}})
	want := []Ticker{{"A", 2, 20}, {"B", 4, 40}, {"C", 3, 40}}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestToggles: Trade-Update and Data-Maintenance undo their changes the next time.
func TestToggles(t *testing.T) {
	for _, c := range []struct {
		text  string
		other func(string) string
	}{
		{"Cash Account", otherCashType}, {"Margin", otherCashType}, {"Limit-Buy 100 shares of COMMON of Xy", otherText},
		{"a@mail.example", otherDomain}, {"U01 Tax of the division", otherTax},
	} {
		if once := c.other(c.text); once == c.text || c.other(once) != c.text {
			t.Errorf("%s becomes %s, then %s", c.text, once, c.other(once))
		}
	}
}

// TestClassify: errors are classified by their SQLSTATE.
func TestClassify(t *testing.T) {
	for code, want := range map[string]trouble{"40001": conflict, "40P01": conflict, "55P03": conflict, "08007": undetermined,
		"40003": undetermined, "08006": gone, "57P01": gone, "57P03": gone, "08P01": fault, "23505": fault, "42601": fault, "53100": fault} {
		if got, text := classify(&pgconn.PgError{Code: code}, false); got != want || text != code {
			t.Errorf("%s is %d, %s", code, got, text)
		}
	}
	if got, _ := classify(errTaken, false); got != conflict {
		t.Error(got)
	}
	if got, _ := classify(unexpected("x"), false); got != fault {
		t.Error(got)
	}
}

// TestBackoff: pauses double up to a quarter of a second.
func TestBackoff(t *testing.T) {
	var b backoff
	var pauses []time.Duration
	for range 4 {
		if err := b.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		pauses = append(pauses, b.next)
	}
	if want := []time.Duration{time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond, 8 * time.Millisecond}; !slices.Equal(pauses, want) {
		t.Errorf("%v", pauses)
	}
	b.next = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.wait(ctx); err == nil || b.next != longestPause {
		t.Errorf("%v, %v", err, b.next)
	}
}

// greet is a server that completes the start-up of a connection, and does not answer anything else.
func greet(conn net.Conn) {
	server := pgproto3.NewBackend(conn, conn)
	_, err := server.ReceiveStartupMessage()
	server.Send(&pgproto3.AuthenticationOk{})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for err = errors.Join(err, server.Flush()); err == nil; {
		_, err = server.Receive()
	}
	_ = conn.Close() // the client has disconnected
}

// greeted returns a session with such a server, which is reachable while *there is true.
func greeted(t *testing.T, there *bool, outage time.Duration) *Session {
	t.Helper()
	config, err := pgx.ParseConfig("postgres://nobody@192.0.2.1:1/nothing?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		if !*there {
			return nil, errors.New("nobody there")
		}
		client, server := net.Pipe()
		go greet(server)
		return client, nil
	}
	s := &Session{config: config, set: &Settings{Outage: outage}}
	s.frame.s = s
	return s
}

// TestEndsInDoubt: the outcome of a transaction whose COMMIT was lost, and whose context ends before the outcome
// is determined, is Unknown.
func TestEndsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := true
		s := greeted(t, &there, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		attempts := 0
		sample := s.perform(ctx, work{kind: mix.TradeResult, try: func(context.Context) error {
			if attempts++; attempts == 2 {
				cancel()
			}
			s.committing = attempts == 1
			s.Close(t.Context())
			return io.ErrUnexpectedEOF
		}})
		if attempts != 2 || sample.Outcome != mix.Unknown {
			t.Errorf("after %d attempts: %d, %v", attempts, sample.Outcome, sample.Err)
		}
	})
}

// TestOutage: a transaction whose server stays unavailable is given up after the duration of Outage, whether
// the connection was lost before the transaction, in it, or after its COMMIT, and reports why. Method: a fake clock,
// and an unreachable server.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		name    string
		lost    bool // in the transaction
		commit  bool // with its COMMIT
		look    bool
		outcome mix.Outcome
	}{{name: "before", outcome: mix.Failed}, {name: "in it", lost: true, outcome: mix.Failed}, {name: "commit", lost: true, commit: true, outcome: mix.Unknown},
		{name: "commit, with a look", lost: true, commit: true, look: true, outcome: mix.Unknown}} {
		synctest.Test(t, func(t *testing.T) {
			const outage = 40 * time.Second
			there := c.lost
			s := greeted(t, &there, outage)
			if c.lost {
				if err := s.connect(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			w := work{kind: mix.TradeStatus, try: func(ctx context.Context) error {
				there, s.committing = false, c.commit
				s.Close(ctx)
				return io.ErrUnexpectedEOF
			}}
			if c.look {
				w.look = func(context.Context) (bool, error) { return false, errors.New("asked nobody") }
			}
			begun := time.Now()
			sample := s.perform(t.Context(), w)
			if took := time.Since(begun); took < outage || took > outage+2*time.Second {
				t.Errorf("%s: given up after %v", c.name, took)
			}
			if sample.Outcome != c.outcome || !errors.Is(sample.Err, ErrOutage) {
				t.Errorf("%s: %d, %v", c.name, sample.Outcome, sample.Err)
			}
		})
	}
}
