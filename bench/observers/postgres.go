package observers

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgres handles changes with a trigger into a job table, NOTIFY, and workers in this process.
type postgres struct {
	mu    sync.Mutex
	times []float64 // latencies in milliseconds, since start
}

func (*postgres) name() string { return "PostgreSQL" }

// observe makes the job table and the trigger.
func (*postgres) observe(ctx context.Context, s *server, _ work) error {
	return s.exec(ctx,
		"DROP TABLE IF EXISTS jobs",
		`CREATE TABLE jobs (job bigserial PRIMARY KEY, id int NOT NULL, grp int NOT NULL, delta int NOT NULL,
			changed timestamptz NOT NULL DEFAULT clock_timestamp())`,
		`CREATE OR REPLACE FUNCTION add_job() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO jobs (id, grp, delta) VALUES (NEW.id, NEW.grp, NEW.v - OLD.v);
			PERFORM pg_notify('jobs', '');
			RETURN NEW;
		END $$`,
		"CREATE TRIGGER add_job AFTER UPDATE ON observed FOR EACH ROW EXECUTE FUNCTION add_job()")
}

// pollEvery is how often idle workers look for jobs of which they have had no notification.
const pollEvery = time.Second

// start starts workers and their listener.
func (p *postgres) start(ctx context.Context, s *server, w work) (func() error, error) {
	p.times = nil
	ctx, cancel := context.WithCancel(ctx)
	n := w.workers
	wake := make(chan struct{}, n)
	errs := make([]error, n+1)
	var wg sync.WaitGroup
	wg.Go(func() { errs[n] = listen(ctx, s.pool, wake) })
	for i := range n {
		wg.Go(func() {
			errs[i] = s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return p.work(ctx, conn.Conn(), w, wake) })
		})
	}
	return func() error {
		cancel()
		wg.Wait()
		return errors.Join(errs...)
	}, nil
}

// listen wakes a worker for each notification.
func listen(ctx context.Context, pool *pgxpool.Pool, wake chan<- struct{}) error {
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		if _, err := conn.Exec(ctx, "LISTEN jobs"); err != nil {
			return err
		}
		for {
			if _, err := conn.Conn().WaitForNotification(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			select {
			case wake <- struct{}{}:
			default: // all workers are awake
			}
		}
	})
}

// work handles jobs until ctx ends.
func (p *postgres) work(ctx context.Context, conn *pgx.Conn, w work, wake <-chan struct{}) error {
	handle := copyJobs
	if w.counters {
		handle = countJobs
	}
	for ctx.Err() == nil {
		changed, err := handle(context.WithoutCancel(ctx), conn, w.batch)
		switch {
		case err != nil && !isConflict(err):
			return err
		case err != nil:
		case len(changed) > 0:
			p.note(changed)
		default:
			select {
			case <-wake:
			case <-time.After(pollEvery):
			case <-ctx.Done():
			}
		}
	}
	return nil
}

const takeJobs = `DELETE FROM jobs WHERE job IN (SELECT job FROM jobs ORDER BY job LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING `

// copyJobs handles jobs in a transaction of two round trips. It returns when their changes were made.
func copyJobs(ctx context.Context, conn *pgx.Conn, batch int) ([]time.Time, error) {
	var take pgx.Batch
	take.Queue("BEGIN")
	take.Queue(takeJobs+"id, changed", batch)
	results := conn.SendBatch(ctx, &take)
	_, err := results.Exec()
	if err != nil {
		return nil, errors.Join(err, results.Close())
	}
	rows, err := results.Query()
	if err != nil {
		return nil, errors.Join(err, results.Close())
	}
	var ids []int32
	var changed []time.Time
	var id int32
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		ids, changed = append(ids, id), append(changed, at)
		return nil
	})
	if err := errors.Join(err, results.Close()); err != nil {
		_, rollback := conn.Exec(ctx, "ROLLBACK")
		return nil, errors.Join(err, rollback)
	}
	var finish pgx.Batch
	if len(ids) > 0 {
		finish.Queue("UPDATE copied c SET v = o.v FROM observed o WHERE o.id = c.id AND c.id = ANY ($1)", ids)
	}
	finish.Queue("COMMIT")
	return changed, conn.SendBatch(ctx, &finish).Close()
}

// countJobs handles jobs in one statement. It returns when their changes were made.
func countJobs(ctx context.Context, conn *pgx.Conn, batch int) ([]time.Time, error) {
	rows, err := conn.Query(ctx, `WITH taken AS (`+takeJobs+`grp, delta, changed),
		sums AS (SELECT grp, sum(delta) AS n FROM taken GROUP BY grp),
		counted AS (UPDATE counters c SET n = c.n + s.n FROM sums s WHERE c.grp = s.grp)
		SELECT changed FROM taken`, batch)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}

// note keeps the latencies of handled changes.
func (p *postgres) note(changed []time.Time) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range changed {
		p.times = append(p.times, float64(now.Sub(at))/1e6)
	}
}

// wait returns when the jobs before it are done.
func (*postgres) wait(ctx context.Context, s *server) error {
	var last int64
	if err := s.pool.QueryRow(ctx, "SELECT coalesce(max(job), 0) FROM jobs").Scan(&last); err != nil {
		return err
	}
	for {
		var left bool
		if err := s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM jobs WHERE job <= $1)", last).Scan(&left); err != nil || !left {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *postgres) latencies(context.Context, *server) (p50, p99 float64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return quantile(p.times, 0.5), quantile(p.times, 0.99), nil
}

func (*postgres) alone(context.Context, *server, func(string, string, float64)) error { return nil }

// isConflict reports whether a transaction has failed because of another one.
func isConflict(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}
