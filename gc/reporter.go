package gc

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/percodb/percodb/tso"
)

// Transactions returns the oldest transaction of a process; *percolator.DB is one.
type Transactions interface {
	OldestActive(ctx context.Context) (tso.Timestamp, error)
}

// ReporterOptions configure a reporter. ID, Service and Transactions are required.
type ReporterOptions struct {
	ID           string // unique among all processes, past and present
	Service      Service
	Transactions Transactions
	Lease        time.Duration // the controller's; DefaultLease
	Logger       *slog.Logger
}

// Reporter reports a process's transactions to the controller, several times within a lease, and keeps the status that
// it receives. Safe for concurrent use.
type Reporter struct {
	opts ReporterOptions
	log  *slog.Logger

	mu   sync.Mutex
	last Status

	stop       context.CancelFunc
	background sync.WaitGroup
}

// StartReporter reports once and then in the background. It fails if the first report does.
func StartReporter(ctx context.Context, opts ReporterOptions) (*Reporter, error) {
	if opts.Lease <= 0 {
		opts.Lease = DefaultLease
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Reporter{opts: opts, log: opts.Logger}
	if _, err := r.Refresh(ctx); err != nil {
		return nil, err
	}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.background.Go(func() { r.loop(ctx) })
	return r, nil
}

// Close stops reporting and removes the pin.
func (r *Reporter) Close(ctx context.Context) {
	r.stop()
	r.background.Wait()
	if _, err := r.opts.Service.Report(ctx, r.opts.ID, 0); err != nil {
		r.log.Debug("the pin is left to its lease", "err", err)
	}
}

func (r *Reporter) loop(ctx context.Context) {
	ticker := time.NewTicker(r.opts.Lease / 5)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		bounded, cancel := context.WithTimeout(ctx, r.opts.Lease/2)
		_, err := r.Refresh(bounded)
		cancel()
		if err != nil && ctx.Err() == nil {
			r.log.Warn("the oldest transaction was not reported: if it goes on, old transactions will fail", "err", err)
		}
	}
}

// Refresh reports now and returns the controller's answer.
func (r *Reporter) Refresh(ctx context.Context) (Status, error) {
	oldest, err := r.opts.Transactions.OldestActive(ctx)
	if err != nil {
		return Status{}, err
	}
	status, err := r.opts.Service.Report(ctx, r.opts.ID, oldest)
	if err != nil {
		return Status{}, err
	}
	r.mu.Lock()
	r.last = status
	r.mu.Unlock()
	return status, nil
}

// Status returns the last answer.
func (r *Reporter) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// SetLife changes how long the controller keeps history.
func (r *Reporter) SetLife(ctx context.Context, life time.Duration) error {
	if err := r.opts.Service.SetLife(ctx, life); err != nil {
		return err
	}
	_, err := r.Refresh(ctx)
	return err
}
