package run

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/check"
	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/journal"
	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/txn"
	"github.com/percodb/percodb/internal/testdb"
)

// loaded creates a small database in its own schema, and returns its URL. Without a server the
// test is skipped.
func loaded(ctx context.Context, t *testing.T) string {
	t.Helper()
	dsn := testdb.Schema(ctx, t, "percodb_test_tpce_run")
	if _, err := load.Drop(ctx, dsn); err != nil {
		t.Fatal(err)
	}
	scale := gen.Scale{Customers: 1000, TradeDays: 1, TradesPerCustomer: 40, MarketDays: 31, NewsBytes: 300, Seed: 3, ShortHistory: true}
	if _, err := load.Run(ctx, load.Options{URLs: []string{dsn}, Scale: scale}); err != nil {
		t.Fatal(err)
	}
	return dsn
}

// short returns the options of a run of two seconds without a pace.
func short(t *testing.T, dsn, dir string) Options {
	t.Helper()
	return Options{URLs: []string{dsn}, Max: true, Workers: 4, MEEConns: 8, Ramp: 500 * time.Millisecond, Duration: 2 * time.Second,
		Interval: 500 * time.Millisecond, PricePeriod: 2 * time.Second, MaintainEvery: 100 * time.Millisecond,
		AggregateEvery: 200 * time.Millisecond, Journal: dir, Transactions: txn.Settings{Pipeline: true}}
}

// whole checks the database after runs, with their journals, and that the journals are not empty.
func whole(ctx context.Context, t *testing.T, dsn, dir string) {
	t.Helper()
	only := slices.DeleteFunc(check.IDs(), func(id string) bool { return id == "C12" }) // which runs hundreds of queries
	found, err := check.Run(ctx, check.Options{URL: dsn, Journal: dir, Only: only})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found.Results {
		if r.Violations > 0 {
			t.Errorf("%s: %d violations: %v %v", r.ID, r.Violations, r.Columns, r.Sample)
		}
		if r.ID == "C13" && !strings.Contains(r.Note, "lost 0") {
			t.Errorf("%s", r.Note)
		}
	}
}

// complete runs until each kind of transaction was measured, with durations from two seconds that double for a
// slow machine, and fails the test if one failed, or was never measured.
func complete(ctx context.Context, t *testing.T, o Options) *report.Result {
	t.Helper()
	for {
		r, err := Run(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		for k := range mix.Kind(mix.InMix) {
			if n := r.Of(k); n.Failed+n.Unknown > 0 {
				t.Errorf("%s: %+v", k, n)
			}
		}
		if n := r.Of(mix.DataMaintenance); n.Failed > 0 {
			t.Errorf("Data-Maintenance: %v", n.Errors)
		}
		missing := missingIn(r)
		if missing == "" || t.Failed() {
			return r
		}
		if o.Duration *= 2; o.Duration > time.Minute {
			t.Errorf("not measured: %s, in %+v", missing, r)
			return r
		}
	}
}

// missingIn returns what a run has not measured, or "".
func missingIn(r *report.Result) string {
	for k := range mix.Kind(mix.InMix) {
		if r.Of(k).Count == 0 && k != mix.BrokerVolume {
			return k.String()
		}
	}
	switch {
	case r.Of(mix.DataMaintenance).Count < 10:
		return "ten of Data-Maintenance"
	case len(r.Series) < 3, r.MeasuredTR == 0, r.Interval.MeasureS < 2:
		return "a series"
	case r.MEE.Triggers == 0, r.MEE.MF == 0, r.Journal.Acked == 0:
		return "the market"
	}
	return ""
}

// TestRun: consecutive runs of all modes leave a consistent database that contains everything acknowledged.
// Method: a few seconds each, on a server.
func TestRun(t *testing.T) {
	ctx := context.Background()
	dsn, dir := loaded(ctx, t), t.TempDir()
	for _, change := range []struct {
		name string
		with func(o *Options)
	}{
		{"default", func(*Options) {}},
		{"loops", func(o *Options) {
			o.IDs, o.Transactions.MarketWatchLoop, o.Transactions.LookupLoop = Scatter, true, true
			o.Transactions.Pipeline, o.Transactions.FeedBatch = false, true
		}},
		{"side table", func(o *Options) {
			o.IDs, o.Transactions.BrokerWrites = Sequence, txn.SideTable
			o.Transactions.MergeTaxUpdate, o.Transactions.ForUpdate, o.Transactions.Isolation = true, true, txn.Spec
		}},
		{"paced", func(o *Options) { o.Max, o.Factor = false, 10 }},
	} {
		t.Run(change.name, func(t *testing.T) {
			o := short(t, dsn, dir)
			change.with(&o)
			r := complete(ctx, t, o)
			if aggregated := r.Of(mix.BrokerAggregation).Count > 0; aggregated != (o.Transactions.BrokerWrites == txn.SideTable) {
				t.Errorf("aggregated: %v", aggregated)
			}
			if r.Paced && r.Ratio == 0 || r.Paced == o.Max {
				t.Errorf("paced %v, %v of the nominal rate", r.Paced, r.Ratio)
			}
			whole(ctx, t, dsn, dir)
		})
	}
	o := short(t, dsn, dir)
	o.Transactions.BrokerWrites = txn.Omit
	if _, err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), "omit") {
		t.Errorf("brokers left out after they were counted: %v", err)
	}
}

// TestInterrupted: an interrupted run has a result that says so, completes running transactions and
// leaves a clean journal; a run interrupted in its ramp has no result. Method: a canceled context.
func TestInterrupted(t *testing.T) {
	dsn, dir := loaded(context.Background(), t), t.TempDir()
	for _, after := range []time.Duration{100 * time.Millisecond, 1500 * time.Millisecond} {
		ctx, cancel := context.WithCancel(context.Background())
		o := short(t, dsn, dir)
		o.Duration = time.Hour
		ramp := true
		o.Live = func(p report.Point, elapsed time.Duration, _ float64) {
			if ramp = !p.Measuring; elapsed > after {
				cancel()
			}
		}
		if after < o.Ramp {
			o.Ramp = time.Hour
		}
		r, err := Run(ctx, o)
		cancel()
		if ramp != (r == nil) || ramp != errors.Is(err, ErrNotMeasured) || !ramp && err != nil {
			t.Fatalf("in the ramp %v: %+v, %v", ramp, r, err)
		}
		if r != nil && (r.Valid || !strings.Contains(strings.Join(r.Reasons, ";"), "interrupted")) {
			t.Errorf("%v", r.Reasons)
		}
	}
	files, err := journal.Read(dir)
	if err != nil || len(files) != 2 || !files[0].Clean || !files[1].Clean {
		t.Errorf("%+v, %v", files, err)
	}
	whole(context.Background(), t, dsn, dir)
}

// TestInstances: concurrent processes, and one after them, share a database: no id is assigned
// twice, and the journals together contain everything. Method: two concurrent runs, each with its own orders.
func TestInstances(t *testing.T) {
	ctx := context.Background()
	dsn, dir := loaded(ctx, t), t.TempDir()
	for duration := 2 * time.Second; ; duration *= 2 { // On a slow machine nothing may be under way at the end.
		var wg sync.WaitGroup
		results := make([]*report.Result, 2)
		for i := range results {
			wg.Go(func() {
				o := short(t, dsn, dir)
				o.Instance, o.Instances, o.Seed, o.Duration = i, len(results), uint64(i), duration
				var err error
				if results[i], err = Run(ctx, o); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		if n := results[1].Of(mix.DataMaintenance).Count; n > 0 {
			t.Errorf("the second process maintains, too: %d", n)
		}
		whole(ctx, t, dsn, dir)
		done, err := CleanUp(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		if done.Pending+done.Submitted > 0 {
			break
		}
		if duration > time.Minute {
			t.Fatalf("%+v", done)
		}
	}
	if again, err := CleanUp(ctx, dsn); err != nil || again != (txn.CleanupResult{}) {
		t.Errorf("%+v, %v", again, err)
	}
	whole(ctx, t, dsn, dir)
}

// TestJournalFails: a run that cannot write its journal ends with an error and the measurements so far.
// Method: close the file.
func TestJournalFails(t *testing.T) {
	ctx := context.Background()
	dsn, dir := loaded(ctx, t), t.TempDir()
	o := short(t, dsn, filepath.Join(dir, "file"))
	if err := os.WriteFile(o.Journal, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(ctx, o); err == nil {
		t.Error("a journal in a file is no error")
	}
	o = short(t, dsn, dir)
	o.Duration = time.Hour
	d := &driver{o: o}
	if err := d.o.fill(); err != nil {
		t.Fatal(err)
	}
	if err := d.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	defer d.meter.Close()
	var once sync.Once
	d.o.Live = func(p report.Point, _ time.Duration, _ float64) {
		if p.Measuring {
			once.Do(func() { _ = d.journal.Close(time.Now()) })
		}
	}
	r, err := d.drive(ctx)
	if err == nil || !strings.Contains(err.Error(), "journal") || r == nil || r.Valid {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRegister: a run that cannot begin consumes no number, and a run whose registration was committed without
// an answer keeps its number. Method: a meter and a journal that cannot be opened; the same token twice.
func TestRegister(t *testing.T) {
	ctx := context.Background()
	dsn, dir := loaded(ctx, t), t.TempDir()
	m := &metaStore{url: dsn, outage: time.Minute}
	first, err := m.registerAs(ctx, txn.Inline, "A")
	if err != nil || first.number != 1 || first.identity == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	o := short(t, dsn, dir)
	o.Usage.PIDs = []string{"none"}
	if _, err := Run(ctx, o); err == nil {
		t.Error("ran with a server process that there is not")
	}
	o = short(t, dsn, filepath.Join(dir, "file"))
	if err := os.WriteFile(o.Journal, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(ctx, o); err == nil {
		t.Error("a journal in a file is no error")
	}
	for token, want := range map[string]int64{"A": 1, "B": 2} {
		for range 2 {
			if got, err := m.registerAs(ctx, txn.Inline, token); err != nil || got.number != want || got.identity != first.identity {
				t.Errorf("%s: %+v, %v, want %d", token, got, err, want)
			}
		}
	}
}

// TestServerGone: a run whose server stays unavailable ends after the duration of Outage, with a result that
// says so. Method: close a forwarder between driver and server in the measured time of an hour.
func TestServerGone(t *testing.T) {
	ctx := context.Background()
	dsn, dir := loaded(ctx, t), t.TempDir()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	f := forward(t, u.Host)
	u.Host = f.Addr().String()
	o := short(t, u.String(), dir)
	o.Duration, o.Transactions.Outage, o.IDs = time.Hour, 500*time.Millisecond, Sequence
	var once sync.Once
	o.Live = func(p report.Point, _ time.Duration, _ float64) {
		if p.Measuring {
			once.Do(f.cut)
		}
	}
	r, err := Run(ctx, o)
	if !errors.Is(err, txn.ErrOutage) || r == nil || r.Valid || !strings.Contains(strings.Join(r.Reasons, ";"), "interrupted") {
		t.Errorf("%+v, %v", r, err)
	}
}

// forwarder passes connections on to a server.
type forwarder struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
	group sync.WaitGroup
}

func forward(t *testing.T, server string) *forwarder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{Listener: l}
	f.group.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				t.Error(err)
				return
			}
			f.mu.Lock()
			f.conns = append(f.conns, client, behind)
			f.mu.Unlock()
			f.group.Go(func() { _, _ = io.Copy(behind, client); _ = behind.Close() })
			f.group.Go(func() { _, _ = io.Copy(client, behind); _ = client.Close() })
		}
	})
	t.Cleanup(func() {
		f.cut()
		f.group.Wait()
	})
	return f
}

// cut closes all connections, and accepts no more.
func (f *forwarder) cut() {
	_ = f.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.Close()
	}
}

// TestAggregationFails: a broker whose commissions cannot be aggregated is retried at the next interval. Method: as
// many commissions as one aggregation takes, of a broker that does not exist.
func TestAggregationFails(t *testing.T) {
	ctx := context.Background()
	dsn := loaded(ctx, t)
	d := &driver{o: short(t, dsn, "")}
	d.o.Transactions.BrokerWrites = txn.SideTable
	if err := d.o.fill(); err != nil {
		t.Fatal(err)
	}
	if err := d.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	defer d.meter.Close()
	d.rec = report.New(time.Now())
	d.rec.StartMeasuring(time.Now())
	s, err := txn.Open(ctx, dsn, d.set, d.gen)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	const nobody = 1 << 40
	if _, err := conn.Exec(ctx, "INSERT INTO broker_delta SELECT $1::bigint, t_id, 1 FROM trade ORDER BY t_id LIMIT 500", int64(nobody)); err != nil {
		t.Fatal(err)
	}
	running, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	d.addUp(running, ctx, s, nobody)
	if running.Err() != nil {
		t.Error("it goes on and on")
	}
	d.rec.StopMeasuring(time.Now())
	var r report.Result
	d.rec.Fill(&r)
	if n := r.Of(mix.BrokerAggregation); n.Failed != 1 || n.Count != 0 {
		t.Errorf("%+v", n)
	}
}
