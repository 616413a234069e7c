package crawl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Options say what is measured.
type Options struct {
	URL string
	// Documents of the repository; 20,000 if 0. Links of each; 10 if 0.
	Documents, Links int
	// Shares are the crawl rates, in percent of the repository per hour; ascending.
	Shares []float64
	// Duration of the measurement of each rate and way; 10 s if 0. That of the batch job lasts at least for two jobs.
	Duration time.Duration
	// Notice, if not nil, receives messages about the progress.
	Notice func(string)
}

// Result is what was measured. Its JSON is one object.
type Result struct {
	Started   time.Time `json:"started"`
	Documents int       `json:"documents"`
	Links     int       `json:"links"`
	Points    []Point   `json:"points"`
}

// Point is a crawl rate.
type Point struct {
	// Share is the rate in percent of the repository per hour, Rate in documents per second.
	Share     float64 `json:"share"`
	Rate      float64 `json:"rate"`
	Observers Way     `json:"observers"`
	Batch     Way     `json:"batch"`
}

// Way is what was measured of observers, or of the batch job. Latencies are in seconds.
type Way struct {
	// Crawled is the attained rate in documents per second.
	Crawled float64 `json:"crawled"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	// Samples is the number of documents whose latency was measured, Jobs that of batch jobs.
	Samples int `json:"samples"`
	Jobs    int `json:"jobs,omitempty"`
}

func (o *Options) fill() error {
	if o.Documents == 0 {
		o.Documents = 20_000
	}
	if o.Links == 0 {
		o.Links = 10
	}
	if len(o.Shares) == 0 {
		o.Shares = []float64{30, 100, 300, 1000, 3000, 10_000, 30_000}
	}
	if o.Duration == 0 {
		o.Duration = 10 * time.Second
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Documents < 1 || o.Links < 1 || o.Duration < 0 {
		return fmt.Errorf("%d documents with %d links for %v: use more than 0", o.Documents, o.Links, o.Duration)
	}
	if o.Shares[0] <= 0 || !slices.IsSorted(o.Shares) {
		return fmt.Errorf("shares %v: use ascending numbers above 0", o.Shares)
	}
	return nil
}

// crawlers is the number of connections that crawl.
const crawlers = 4

// bench is a measurement under way.
type bench struct {
	o     Options
	pool  *pgxpool.Pool
	crawl atomic.Int64 // the number of the last crawl
}

// Run measures all rates.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = crawlers + watchers + 2
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	b := &bench{o: o, pool: pool}
	o.Notice(fmt.Sprintf("loading %d documents", o.Documents))
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	res := &Result{Started: time.Now(), Documents: o.Documents, Links: o.Links}
	for _, share := range o.Shares {
		p := Point{Share: share, Rate: share / 100 * float64(o.Documents) / 3600}
		o.Notice(fmt.Sprintf("%g %% an hour (%.1f documents/s): observers", share, p.Rate))
		if p.Observers, err = b.observers(ctx, p.Rate); err != nil {
			return nil, err
		}
		o.Notice(fmt.Sprintf("%g %% an hour (%.1f documents/s): batch job", share, p.Rate))
		if p.Batch, err = b.batch(ctx, p.Rate); err != nil {
			return nil, err
		}
		res.Points = append(res.Points, p)
	}
	return res, nil
}

func (b *bench) exec(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := b.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%.60s…: %w", sql, err)
		}
	}
	return nil
}

// crawlUntil crawls rate documents a second until ctx ends, and calls done after each commit, with the time at which the crawl was due.
// It returns the attained rate.
func (b *bench) crawlUntil(ctx context.Context, rate float64, done func(url int32, crawl int64, due time.Time)) (float64, error) {
	begin := time.Now()
	var next, crawled atomic.Int64
	errs := make([]error, crawlers)
	var wg sync.WaitGroup
	for i := range crawlers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(b.crawl.Load()), uint64(i)))
			for {
				due := begin.Add(time.Duration(float64(next.Add(1)) / rate * float64(time.Second)))
				if !waitUntil(ctx, due) {
					return
				}
				url, crawl := int32(r.IntN(b.o.Documents)), b.crawl.Add(1)
				hash, links := page(r, b.o.Documents, b.o.Links)
				_, err := b.pool.Exec(context.WithoutCancel(ctx), "UPDATE repository SET hash = $2, links = $3, crawl = $4 WHERE url = $1", url, hash, links, crawl)
				if err != nil {
					errs[i] = err
					return
				}
				crawled.Add(1)
				done(url, crawl, due)
			}
		})
	}
	wg.Wait()
	return float64(crawled.Load()) / time.Since(begin).Seconds(), errors.Join(errs...)
}

// waitUntil waits until at, and returns false if ctx ends before.
func waitUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

const (
	// watchers is the number of documents at a time whose visibility is polled.
	watchers = 8
	// pollMin is the shortest time between two polls; later ones are a twentieth of the time waited.
	pollMin = time.Millisecond
)

// observers measures the latency of observers.
func (b *bench) observers(ctx context.Context, rate float64) (w Way, err error) {
	if err := b.exec(ctx, indexer); err != nil {
		return w, err
	}
	running, cancel := context.WithTimeout(ctx, b.o.Duration)
	defer cancel()
	var mu sync.Mutex
	var latencies []float64
	var failed error
	slots := make(chan struct{}, watchers)
	var wg sync.WaitGroup
	w.Crawled, err = b.crawlUntil(running, rate, func(url int32, crawl int64, due time.Time) {
		select {
		case slots <- struct{}{}:
		default: // enough documents are watched
			return
		}
		wg.Go(func() {
			defer func() { <-slots }()
			err := b.watch(ctx, url, crawl)
			mu.Lock()
			defer mu.Unlock()
			latencies, failed = append(latencies, time.Since(due).Seconds()), errors.Join(failed, err)
		})
	})
	wg.Wait()
	if err := errors.Join(err, failed, b.exec(ctx, "WAIT FOR OBSERVER indexer")); err != nil {
		return w, err
	}
	w.P50, w.P99, w.Samples = quantile(latencies, 0.5), quantile(latencies, 0.99), len(latencies)
	return w, errors.Join(b.verify(ctx), b.exec(ctx, "DROP OBSERVER indexer"))
}

// watch returns when the index contains a crawl of a document, or a later one.
func (b *bench) watch(ctx context.Context, url int32, crawl int64) error {
	begin := time.Now()
	for {
		var seen bool
		if err := b.pool.QueryRow(ctx, "SELECT crawl >= $2 FROM shown WHERE url = $1", url, crawl).Scan(&seen); err != nil || seen {
			return err
		}
		if !waitUntil(ctx, time.Now().Add(max(pollMin, time.Since(begin)/20))) {
			return ctx.Err()
		}
	}
}

// batch measures the latency of the batch job.
func (b *bench) batch(ctx context.Context, rate float64) (w Way, err error) {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var waiting []time.Time // when the documents that no job has seen were due
	ended := make(chan error, 1)
	go func() {
		var err error
		w.Crawled, err = b.crawlUntil(running, rate, func(_ int32, _ int64, due time.Time) {
			mu.Lock()
			defer mu.Unlock()
			waiting = append(waiting, due)
		})
		ended <- err
	}()
	var latencies []float64
	begin := time.Now()
	for {
		mu.Lock()
		seen := waiting
		waiting = nil
		mu.Unlock()
		if err = b.deriveAll(ctx); err != nil {
			break
		}
		w.Jobs++
		for _, at := range seen {
			latencies = append(latencies, time.Since(at).Seconds())
		}
		if w.Jobs > 2 && len(latencies) > 0 && time.Since(begin) >= b.o.Duration {
			break
		}
	}
	cancel()
	if err := errors.Join(err, <-ended); err != nil {
		return w, err
	}
	w.P50, w.P99, w.Samples = quantile(latencies, 0.5), quantile(latencies, 0.99), len(latencies)
	return w, errors.Join(b.deriveAll(ctx), b.verify(ctx))
}

// quantile returns the value below which the share q of the values lie; 0 if there are none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
