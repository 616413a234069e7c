package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/percodb/percodb/bench/tpce/journal"
	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/txn"
)

// TestArrivals: customers arrive at the requested rate, evenly or with the variance of a Poisson process, each
// for one worker; arrivals for which no worker was free are late, and keep their times. Method: a fake
// clock, and workers that are slower or faster than the arrivals.
func TestArrivals(t *testing.T) {
	for _, uniform := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const rate, workers = 100, 4
			begin := time.Now()
			a := newArrivals(begin, rate, uniform, 1)
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
			defer cancel()
			var mu sync.Mutex
			var all []time.Time
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for {
						at, ok := a.take(ctx)
						if !ok {
							return
						}
						if late := time.Since(at); late < 0 || late > time.Second {
							t.Errorf("taken %v after its time", late)
						}
						mu.Lock()
						all = append(all, at)
						mu.Unlock()
						time.Sleep(20 * time.Millisecond) // half of the workers' capacity
					}
				})
			}
			wg.Wait()
			if n := float64(len(all)); math.Abs(n-100*rate) > 4*math.Sqrt(100*rate) || uniform && n < 100*rate-workers {
				t.Errorf("%d arrivals in 100 s", len(all))
			}
			slices.SortFunc(all, time.Time.Compare)
			var gaps, squares float64
			for i, at := range all[1:] {
				gap := at.Sub(all[i]).Seconds() * rate
				gaps, squares = gaps+gap, squares+gap*gap
			}
			n := float64(len(all) - 1)
			spread := squares/n - gaps/n*gaps/n // 1 for an exponential distribution
			if uniform && spread > 1e-6 || !uniform && math.Abs(spread-1) > 0.1 {
				t.Errorf("gaps vary by %v, uniform %v", spread, uniform)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		a := newArrivals(time.Now(), 100, true, 1)
		ctx := context.Background()
		time.Sleep(time.Second) // In fake time: 100 arrivals are due.
		for i := range 50 {
			if at, ok := a.take(ctx); !ok || time.Since(at) != time.Second-time.Duration(i+1)*10*time.Millisecond {
				t.Fatalf("arrival %d is %v old", i, time.Since(at))
			}
		}
		if share, behind := a.lateness(); share != 1 || behind != 490*time.Millisecond {
			t.Errorf("%v late, %v behind", share, behind)
		}
		for range 100 {
			a.take(ctx)
		}
		if share, behind := a.lateness(); share != 0.5 && share != 0.49 || behind != 0 { // the arrival at the current time is not late
			t.Errorf("%v late, %v behind", share, behind)
		}
	})
}

// TestScatteredBlocks: blocks are disjoint from each other and from other ranges of ids, and consecutive blocks
// are far apart.
func TestScatteredBlocks(t *testing.T) {
	var begins []int64
	for block := range int64(1 << 18) {
		begins = append(begins, place(block))
	}
	slices.Sort(begins)
	for i, id := range begins[1:] {
		if id-begins[i] < scatterSize {
			t.Fatalf("blocks begin at %d and %d", begins[i], id)
		}
	}
	if begins[0] < scatterBase || begins[len(begins)-1]+scatterSize > sequenceBase {
		t.Errorf("blocks lie from %d to %d", begins[0], begins[len(begins)-1])
	}
	if last := place(scatterStride/scatterSize<<16 - 1); last+scatterSize > sequenceBase || last < scatterBase {
		t.Errorf("the last block begins at %d", last)
	}
	for block := int64(1); block < 64; block++ {
		if d := place(block) - place(block-1); max(d, -d) < 1<<33 {
			t.Errorf("block %d is %d from the one before", block, d)
		}
	}
}

// TestSearch: a search finds the fastest valid pace within its precision, from a slower or faster start, and ends.
// Method: simulated servers of known speed.
func TestSearch(t *testing.T) {
	for _, speed := range []float64{0.013, 0.9, 1, 1.37, 17, 400} {
		var runs []float64
		best, err := search(1, func(factor float64) (*report.Result, error) {
			runs = append(runs, factor)
			return &report.Result{Valid: factor <= speed, Nominal: factor}, nil
		})
		if err != nil || best.Nominal > speed || best.Nominal*searchPrecision < speed || len(runs) > 20 {
			t.Errorf("speed %v: %+v, %v after %v", speed, best, err, runs)
		}
	}
	if _, err := search(1, func(float64) (*report.Result, error) { return &report.Result{}, nil }); !errors.Is(err, ErrTooSlow) {
		t.Error(err)
	}
	boom := errors.New("boom")
	n := 0
	best, err := search(1, func(factor float64) (*report.Result, error) {
		if n++; n == 3 {
			return nil, boom
		}
		return &report.Result{Valid: true, Nominal: factor}, nil
	})
	if !errors.Is(err, boom) || best == nil || best.Nominal != 2 {
		t.Errorf("%+v, %v", best, err)
	}
}

// TestOptions: invalid options are rejected before connecting to a server; defaults are valid.
func TestOptions(t *testing.T) {
	good := Options{URLs: []string{"postgres://127.0.0.1:1/x"}}
	for name, change := range map[string]func(o *Options){
		"":                func(*Options) {},
		"no server":       func(o *Options) { o.URLs = nil },
		"workers":         func(o *Options) { o.Workers = -1 },
		"connections":     func(o *Options) { o.MEEConns = 1 },
		"pace":            func(o *Options) { o.Factor = math.NaN() },
		"too short":       func(o *Options) { o.Duration = time.Millisecond },
		"period":          func(o *Options) { o.PricePeriod = 1 },
		"instance":        func(o *Options) { o.Instance = 1 },
		"percent":         func(o *Options) { o.PartitionPercent = 101 },
		"trade ids":       func(o *Options) { o.IDs = "random" },
		"isolation":       func(o *Options) { o.Transactions.Isolation = "none" },
		"weight":          func(o *Options) { o.Weights[mix.TradeOrder] = -1 },
		"customers ask":   func(o *Options) { o.Weights[mix.TradeResult] = 1 },
		"negative number": func(o *Options) { o.Transactions.MaxRetries = -1 },
	} {
		o := good
		change(&o)
		if err := o.fill(); (err != nil) != (name != "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := good
	if err := o.fill(); err != nil || o.feedConns() != 4 || o.Transactions.BrokerWrites != txn.Inline || !o.paced() {
		t.Errorf("%+v", o)
	}
	if _, err := Run(context.Background(), good); err == nil {
		t.Error("ran on a server that is not there")
	}
}

// TestWithoutPasswords: results contain no passwords.
func TestWithoutPasswords(t *testing.T) {
	shown := withoutPasswords([]string{"postgres://u:secret@h:1/d", "host=h password=secret", "postgres://%zz:secret@"})
	if text := fmt.Sprint(shown); strings.Contains(text, "secret") {
		t.Error(text)
	}
	for url, want := range map[string]bool{"postgres://127.0.0.1:1/d": true, "postgres:///d": true, "postgres://localhost/d": true, "postgres://10.0.0.1/d": false} {
		if shared([]string{url}) != want {
			t.Error(url)
		}
	}
}

// TestRatioBounds: the bounds of long runs are those of the rule, those of short runs allow for chance.
func TestRatioBounds(t *testing.T) {
	for expected, want := range map[float64][2]float64{90_000: {0.80, 1.02}, 10_000: {0.80, 1.03}, 100: {0.70, 1.3}, 0: {-2, 4}} {
		if lo, hi := ratioBounds(expected); math.Abs(lo-want[0])+math.Abs(hi-want[1]) > 1e-9 {
			t.Errorf("%v trades: %v to %v, want %v", expected, lo, hi, want)
		}
	}
}

// TestFrozenServer: a run with a journal ends although its server accepts connections and never answers.
// Method: a listener that does nothing, and a journal that needs its last mark from it.
func TestFrozenServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	const outage = 200 * time.Millisecond
	d := &driver{o: Options{IDs: Sequence, Journal: dir, Transactions: txn.Settings{Outage: outage}},
		meta: &metaStore{url: "postgres://" + l.Addr().String() + "/x?sslmode=disable", outage: outage}}
	if d.journal, err = journal.Create(dir, journal.Record{Kind: journal.Run, TradeID: 1, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.closeJournal(context.Background()) }()
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the run waits for the server without end")
	}
	if err == nil {
		t.Error("the mark is missing, and that is no error")
	}
	if files, err := journal.Read(dir); err != nil || len(files) != 1 || !files[0].Clean {
		t.Errorf("%+v, %v", files, err)
	}
}
