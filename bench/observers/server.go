package observers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/percodb/percodb/internal/plural"
)

// groups is the number of counters.
const groups = 100

// writers is the number of connections that make changes.
const writers = 4

// work is what is done with a change: the row is copied, or its value is added to its group's counter.
type work struct {
	batch    int
	workers  int // transactions at a time
	counters bool
}

func (w work) String() string {
	if w.counters {
		return fmt.Sprintf("batch %d into counters, %s", w.batch, plural.Count(w.workers, "worker"))
	}
	return fmt.Sprintf("batch %d, %s", w.batch, plural.Count(w.workers, "worker"))
}

// handler is how a server handles changes.
type handler interface {
	name() string
	// observe makes what notifies of the changes of table observed; nothing handles them yet.
	observe(ctx context.Context, s *server, w work) error
	// start handles changes until stop is called.
	start(ctx context.Context, s *server, w work) (stop func() error, err error)
	// wait returns when the changes before it are handled.
	wait(ctx context.Context, s *server) error
	// latencies returns the latencies since start, in milliseconds.
	latencies(ctx context.Context, s *server) (p50, p99 float64, err error)
	// alone measures what only this server has.
	alone(ctx context.Context, s *server, put func(name, unit string, v float64)) error
}

// server is a database with tables observed, plain, copied, counters and last.
type server struct {
	o       Options
	handler handler
	pid     string
	pool    *pgxpool.Pool
}

func open(ctx context.Context, o Options, h handler, url, pid string) (*server, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 4 * writers
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &server{o: o, handler: h, pid: pid, pool: pool}, nil
}

func (s *server) close() { s.pool.Close() }

// exec executes statements, one transaction each.
func (s *server) exec(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := s.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%.60s…: %w", sql, err)
		}
	}
	return nil
}

// create makes the tables anew.
func (s *server) create(ctx context.Context, w work) error {
	rows := fmt.Sprintf("SELECT i, i %% %d, 0 FROM generate_series(1, %d) AS i", groups, s.o.Rows)
	err := s.exec(ctx,
		"DROP TABLE IF EXISTS observed, plain, copied, counters, last",
		"CREATE TABLE observed (id int PRIMARY KEY, grp int NOT NULL, v int NOT NULL)",
		"CREATE TABLE plain (id int PRIMARY KEY, grp int NOT NULL, v int NOT NULL)",
		"CREATE TABLE copied (id int PRIMARY KEY, grp int NOT NULL, v int NOT NULL)",
		"CREATE TABLE last (id int PRIMARY KEY, grp int NOT NULL, v int NOT NULL)",
		"CREATE TABLE counters (grp int PRIMARY KEY, n bigint NOT NULL)",
		"INSERT INTO observed "+rows, "INSERT INTO plain "+rows, "INSERT INTO copied "+rows,
		fmt.Sprintf("INSERT INTO counters SELECT g, 0 FROM generate_series(0, %d) AS g", groups-1),
		"ANALYZE")
	if err != nil {
		return err
	}
	return s.handler.observe(ctx, s, w)
}

// verify returns an error if what was derived differs from a recomputation.
func (s *server) verify(ctx context.Context, w work) error {
	sql := "SELECT count(*) FROM observed o JOIN copied c USING (id) WHERE o.v <> c.v"
	if w.counters {
		sql = "SELECT count(*) FROM (SELECT grp, sum(v) AS n FROM observed GROUP BY grp) o JOIN counters c USING (grp) WHERE o.n <> c.n"
	}
	var wrong int
	if err := s.pool.QueryRow(ctx, sql).Scan(&wrong); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%s: %d derived rows differ from a recomputation", s.handler.name(), wrong)
	}
	return nil
}

// write changes rows from first to last, rate a second, for d or until ctx ends. It returns the number of changes.
func (s *server) write(ctx context.Context, rate int, d time.Duration, first, last int) (int, error) {
	return s.paced(ctx, rate, d, func(conn *pgx.Conn, r *rand.Rand) error {
		_, err := conn.Exec(context.WithoutCancel(ctx), "UPDATE observed SET v = v + 1 WHERE id = $1", first+r.IntN(last-first+1))
		return err
	})
}

// paced calls change on the writers' connections, rate times a second, for d or until ctx ends. It returns how many calls succeeded.
func (s *server) paced(ctx context.Context, rate int, d time.Duration, change func(*pgx.Conn, *rand.Rand) error) (int, error) {
	begin := time.Now()
	var next atomic.Int64
	return s.eachWriter(ctx, func(conn *pgx.Conn, r *rand.Rand) (bool, error) {
		at := time.Duration(next.Add(1)) * time.Second / time.Duration(rate)
		if at >= d {
			return false, nil
		}
		select {
		case <-time.After(time.Until(begin.Add(at))):
		case <-ctx.Done():
			return false, nil
		}
		return true, change(conn, r)
	})
}

// update changes rows of a table as fast as the writers can for d. It returns the number of changes.
func (s *server) update(ctx context.Context, table string, d time.Duration) (int, error) {
	end := time.Now().Add(d)
	return s.eachWriter(ctx, func(conn *pgx.Conn, r *rand.Rand) (bool, error) {
		if time.Now().After(end) {
			return false, nil
		}
		_, err := conn.Exec(ctx, "UPDATE "+table+" SET v = v + 1 WHERE id = $1", 1+r.IntN(s.o.Rows))
		return true, err
	})
}

// eachWriter calls f on each writer's connection until it returns false. It returns the number of calls that returned true.
func (s *server) eachWriter(ctx context.Context, f func(*pgx.Conn, *rand.Rand) (bool, error)) (int, error) {
	var n atomic.Int64
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			errs[i] = s.pool.AcquireFunc(context.WithoutCancel(ctx), func(conn *pgxpool.Conn) error {
				r := rand.New(rand.NewPCG(uint64(i), 0))
				for {
					on, err := f(conn.Conn(), r)
					if err != nil && !isConflict(err) {
						return err
					}
					if !on {
						return nil
					}
					if err == nil {
						n.Add(1)
					}
				}
			})
		})
	}
	wg.Wait()
	return int(n.Load()), errors.Join(errs...)
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile returns the value below which the share q of the values lie; 0 if there are none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
