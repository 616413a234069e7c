package observers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// warmUp is how long changes are made before those that count: connections are opened, and statements planned.
const warmUp = time.Second

// across measures the time from a change on the SQL process of WriterURL to the commit of its handling by a client of the one of URL.
func across(ctx context.Context, o Options, put func(name, unit string, v float64)) error {
	s, err := open(ctx, o, percodb{}, o.URL, "")
	if err != nil {
		return err
	}
	defer s.close()
	writer, err := open(ctx, o, percodb{}, o.WriterURL, "")
	if err != nil {
		return err
	}
	defer writer.close()
	o.Notice("percodb: latency from one SQL process to another")
	err = s.exec(ctx,
		"DROP TABLE IF EXISTS observed",
		"CREATE TABLE observed (id int PRIMARY KEY, sent bigint NOT NULL)",
		fmt.Sprintf("INSERT INTO observed SELECT i, 0 FROM generate_series(1, %d) AS i", o.Rows),
		"CREATE OBSERVER bench ON observed")
	if err != nil {
		return err
	}
	begin := time.Now().Add(warmUp)
	consuming, end := context.WithCancel(ctx)
	defer end()
	type consumed struct {
		ms  []float64
		err error
	}
	done := make(chan consumed, 1)
	go func() {
		ms, err := s.consume(consuming, begin)
		done <- consumed{ms, err}
	}()
	written, err := writer.stamp(ctx, begin)
	err = errors.Join(err, s.handler.wait(ctx, s))
	end()
	c := <-done
	if err := errors.Join(err, c.err); err != nil {
		return err
	}
	if len(c.ms) == 0 {
		return fmt.Errorf("none of %d changes was handled", written)
	}
	put(fmt.Sprintf("from one SQL process to another at %d changes/s, p50", o.Rate), "ms", median(c.ms))
	put(fmt.Sprintf("from one SQL process to another at %d changes/s, p99", o.Rate), "ms", quantile(c.ms, 0.99))
	return s.exec(ctx, "DROP TABLE observed")
}

// stamp changes rows at the rate of the options; a row gets the time since begin, in microseconds, at which its change is sent. The first
// ones are sent before begin.
func (s *server) stamp(ctx context.Context, begin time.Time) (int, error) {
	return s.paced(ctx, s.o.Rate, warmUp+s.o.Duration, func(conn *pgx.Conn, r *rand.Rand) error {
		_, err := conn.Exec(context.WithoutCancel(ctx), "UPDATE observed SET sent = $2 WHERE id = $1", 1+r.IntN(s.o.Rows), time.Since(begin).Microseconds())
		return err
	})
}

// consume handles changes until ctx ends. It returns the milliseconds from when each was sent, if after begin, to the commit of its handling.
func (s *server) consume(ctx context.Context, begin time.Time) (ms []float64, err error) {
	err = s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		for ctx.Err() == nil {
			var sent []int64
			// A transaction that has begun is finished, so that WAIT FOR OBSERVER does not wait for its keys.
			err := pgx.BeginFunc(context.WithoutCancel(ctx), conn, func(tx pgx.Tx) error {
				rows, err := tx.Query(context.WithoutCancel(ctx), "SELECT sent FROM percodb.changes('bench', max => 100, wait => '100ms')")
				if err != nil {
					return err
				}
				sent, err = pgx.CollectRows(rows, pgx.RowTo[int64])
				return err
			})
			if err != nil && !isConflict(err) {
				return err
			}
			if err != nil {
				continue
			}
			now := time.Since(begin).Microseconds()
			for _, at := range sent {
				if at >= 0 {
					ms = append(ms, float64(now-at)/1000)
				}
			}
		}
		return nil
	})
	return ms, err
}
