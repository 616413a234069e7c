package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/journal"
	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/bench/tpce/market"
	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/schema"
	"github.com/percodb/percodb/bench/tpce/txn"
	"github.com/percodb/percodb/bench/tpce/usage"
)

// grace is how long running transactions may take after the end.
const grace = 15 * time.Second

// driver is the state of a run.
type driver struct {
	o       Options
	version string
	loaded  load.Loaded
	gen     *gen.Generator
	meta    *metaStore
	reg     registration
	set     *txn.Settings
	journal *journal.Writer
	rec     *report.Recorder
	market  *market.Emulator
	meter   *usage.Meter
	firstID int64 // of the server's sequence, if it gives ids

	arrivals *arrivals // nil if there is no pace
	nominal  float64   // Trade-Results per second of this process

	triggered, feeds atomic.Int64

	stop    context.CancelFunc // no more transactions begin
	fault   error              // what ended the run early, under mu
	mu      sync.Mutex
	workers sync.WaitGroup
}

// ErrNotMeasured: the run was interrupted in its ramp.
var ErrNotMeasured = errors.New("interrupted before the measured time: there is no result")

// Run runs the workload and returns its result. With an error the result is nil unless something was measured;
// canceling ctx after measuring has begun is not an error, but makes the result invalid.
func Run(ctx context.Context, o Options) (*report.Result, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	d := &driver{o: o}
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	defer d.meter.Close()
	result, err := d.drive(ctx)
	return result, errors.Join(err, d.closeJournal(ctx))
}

// prepare reads what is loaded, registers the run, and creates what it needs. The run is registered when only its
// journal is missing: a number without a run would look like a run whose journal was lost.
func (d *driver) prepare(ctx context.Context) (err error) {
	if d.meter, err = usage.Open(ctx, d.o.Usage); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			d.meter.Close()
		}
	}()
	if d.o.Journal != "" {
		if err := os.MkdirAll(d.o.Journal, 0o755); err != nil {
			return err
		}
	}
	if err := d.survey(ctx); err != nil {
		return err
	}
	d.meta = &metaStore{url: d.o.URLs[0], outage: d.o.Transactions.Outage}
	if d.reg, err = d.meta.register(ctx, d.o.Transactions.BrokerWrites); err != nil {
		return err
	}
	if err := d.openJournal(ctx); err != nil {
		return err
	}
	d.assemble()
	return nil
}

// survey reads what is loaded, checks the options against it, and creates the tables that runs need.
func (d *driver) survey(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.o.URLs[0])
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if d.loaded, err = load.Read(ctx, conn); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, "SELECT version()").Scan(&d.version); err != nil {
		return err
	}
	scale := d.loaded.Settings.Scale
	if d.gen, err = gen.New(scale); err != nil {
		return err
	}
	switch active := d.o.ActiveCustomers; {
	case active == 0:
		d.o.ActiveCustomers = scale.Customers
	case active < 0 || active%1000 != 0 || active > scale.Customers:
		return fmt.Errorf("%d active customers: use a multiple of 1000, up to the %d that there are", active, scale.Customers)
	}
	if units := d.o.ActiveCustomers / 1000; int64(d.o.Instances) > units && d.o.PartitionPercent > 0 && d.o.Instances > 1 {
		return fmt.Errorf("%d processes cannot share %d load units of customers; use --partition-percent 0", d.o.Instances, units)
	}
	if d.o.IDs == Sequence || d.o.Transactions.BrokerWrites == txn.SideTable {
		for _, q := range schema.CreateForRun(sequenceBase) {
			if _, err := conn.Exec(ctx, q); err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
	}
	return nil
}

func (d *driver) openJournal(ctx context.Context) error {
	if d.o.Journal == "" {
		return nil
	}
	var err error
	if d.o.IDs == Sequence {
		if d.firstID, err = d.meta.mark(ctx); err != nil {
			return err
		}
	}
	d.journal, err = journal.Create(d.o.Journal, journal.Record{Kind: journal.Run, TradeID: d.reg.number, Qty: d.reg.volume,
		Price: int64(d.o.Workers + d.o.MEEConns), Symbol: d.reg.identity, At: time.Now()})
	return err
}

// closeJournal ends the journal. If the server's sequence generated the trades' ids, the run had those between its
// marks, among them other processes'. It waits for the second mark as long as an outage may last.
func (d *driver) closeJournal(ctx context.Context) error {
	if d.journal == nil {
		return nil
	}
	var err error
	if d.o.IDs == Sequence {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.o.Transactions.Outage)
		defer cancel()
		var last int64
		if last, err = d.meta.mark(ctx); err == nil {
			err = d.journal.Append(journal.Record{Kind: journal.Lease, TradeID: d.firstID, Qty: last - d.firstID, At: time.Now()})
		}
	}
	return errors.Join(err, d.journal.Close(time.Now()))
}

// assemble sets up what needs no server.
func (d *driver) assemble() {
	set := d.o.Transactions
	if d.o.IDs != Sequence {
		set.TradeIDs = &leased{meta: d.meta, journal: d.journal, first: d.loaded.MaxTradeID + 1, scatter: d.o.IDs == Scatter}
	}
	d.set = &set
	d.market = market.NewEmulator(market.NewExchange(d.gen, d.o.PricePeriod, d.o.Seed^uint64(d.reg.number)<<32))
	d.nominal = float64(d.o.ActiveCustomers) / secondsPerTrade * d.o.Factor / float64(d.o.Instances)
}

// secondsPerTrade is the mean time between two trades of a customer.
const secondsPerTrade = 500

// customersPerResult is the number of customers' transactions for each trade that the market completes.
const customersPerResult = 8.9

// drive runs from the clean-up to the end.
func (d *driver) drive(ctx context.Context) (*report.Result, error) {
	// Running transactions complete when ctx ends: their outcome would be unknown otherwise.
	work, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	sessions, err := d.openSessions(ctx)
	defer func() {
		for _, s := range sessions {
			s.Close(context.WithoutCancel(ctx))
		}
	}()
	if err != nil {
		return nil, err
	}
	started := time.Now()
	d.rec = report.New(started)
	// A process would cancel what others, which may have started, are about to complete.
	if d.o.Instances == 1 && !d.o.SkipCleanup {
		if err := d.cleanUp(ctx, sessions[0]); err != nil {
			return nil, err
		}
	}
	d.o.Notice(d.plan())
	running, stop := context.WithCancel(ctx)
	defer stop()
	d.stop = stop
	d.launch(running, work, sessions)
	measured := d.measure(ctx, running)
	stop()
	d.finish(kill)
	if !measured.begun {
		return nil, cmp.Or(d.failure(), ErrNotMeasured)
	}
	return d.result(started, measured, ctx.Err() != nil), d.failure()
}

// plan describes the run for its user.
func (d *driver) plan() string {
	pace := "without a pause"
	if d.o.paced() {
		pace = fmt.Sprintf("at %.2f Trade-Results per second", d.nominal)
	}
	long := d.o.Ramp + d.o.Duration
	return fmt.Sprintf("%d customers, %s: ramp %v, then %v measured, until %s", d.o.ActiveCustomers, pace, d.o.Ramp, d.o.Duration,
		time.Now().Add(long).Format(time.TimeOnly))
}

// openSessions opens all connections: customers, then Trade-Results, Market-Feeds, maintenance, aggregation.
func (d *driver) openSessions(ctx context.Context) ([]*txn.Session, error) {
	n := d.o.Workers + d.o.MEEConns + 2
	sessions := make([]*txn.Session, 0, n)
	for i := range n {
		s, err := txn.Open(ctx, d.o.URLs[i%len(d.o.URLs)], d.set, d.gen)
		if err != nil {
			return sessions, err
		}
		sessions = append(sessions, s)
	}
	return sessions, nil
}

// cleanUp cancels what earlier runs left open.
func (d *driver) cleanUp(ctx context.Context, s *txn.Session) error {
	done, sample := s.CleanUp(ctx, d.loaded.MaxTradeID+1)
	sample.Scheduled = sample.Started
	d.rec.Record(sample)
	if sample.Outcome != mix.Committed && sample.Outcome != mix.AlreadyDone {
		return fmt.Errorf("cleaning up what an earlier run left open: %w", errors.Join(sample.Err, ctx.Err()))
	}
	if n := done.Pending + done.Submitted; n > 0 {
		d.o.Notice(fmt.Sprintf("cleaned up: %d trades of an earlier run canceled (%d pending, %d submitted)", n, done.Pending, done.Submitted))
	}
	return nil
}

// launch starts all goroutines. running ends when no more transactions begin, work when running ones are cancelled.
func (d *driver) launch(running, work context.Context, sessions []*txn.Session) {
	if d.o.paced() {
		d.arrivals = newArrivals(time.Now(), customersPerResult*d.nominal, d.o.Uniform, d.o.Seed^uint64(d.o.Instance)<<48)
	}
	next := func() *txn.Session { s := sessions[0]; sessions = sessions[1:]; return s }
	d.workers.Go(func() { d.market.Run(running) })
	for i := range d.o.Workers {
		s, in := next(), d.inputs(i)
		d.workers.Go(func() { d.customers(running, work, s, in) })
	}
	for range d.o.MEEConns - d.o.feedConns() {
		s := next()
		d.workers.Go(func() { d.results(running, work, s) })
	}
	for range d.o.feedConns() {
		s := next()
		d.workers.Go(func() { d.tape(running, work, s) })
	}
	if d.o.Instance == 0 {
		s := next()
		d.workers.Go(func() { d.maintain(running, work, s, d.inputs(d.o.Workers)) })
	}
	if d.o.Transactions.BrokerWrites == txn.SideTable {
		s := next()
		d.workers.Go(func() { d.aggregate(running, work, s) })
	}
}

// inputs returns the inputs of the i-th worker's customers.
func (d *driver) inputs(i int) *txn.Inputs {
	units := d.o.ActiveCustomers / 1000
	opt := txn.InputOptions{LoadUnits: units, Weights: d.o.Weights}
	if d.o.Instances > 1 && d.o.PartitionPercent > 0 {
		n, at := int64(d.o.Instances), int64(d.o.Instance)
		opt.FirstOwn = units * at / n
		opt.OwnUnits = units*(at+1)/n - opt.FirstOwn
		opt.PartitionPercent = d.o.PartitionPercent
	}
	return txn.NewInputs(d.gen, d.o.Seed<<40^uint64(d.reg.number)<<20^uint64(i), opt)
}

// finish waits for running transactions, and cancels them after a while.
func (d *driver) finish(kill context.CancelFunc) {
	timer := time.AfterFunc(grace, kill)
	defer timer.Stop()
	d.workers.Wait()
}

// fail ends the run early.
func (d *driver) fail(err error) {
	d.mu.Lock()
	if d.fault == nil {
		d.fault = err
	}
	d.mu.Unlock()
	d.stop()
}

func (d *driver) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault
}
