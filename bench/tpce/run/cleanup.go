package run

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/bench/tpce/txn"
)

// CleanUp cancels what earlier runs left open, as a run does before it begins.
func CleanUp(ctx context.Context, url string) (txn.CleanupResult, error) {
	var done txn.CleanupResult
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return done, err
	}
	loaded, err := load.Read(ctx, conn)
	if err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))); err != nil {
		return done, err
	}
	g, err := gen.New(loaded.Settings.Scale)
	if err != nil {
		return done, err
	}
	s, err := txn.Open(ctx, url, &txn.Settings{Pipeline: true}, g)
	if err != nil {
		return done, err
	}
	defer s.Close(context.WithoutCancel(ctx))
	done, sample := s.CleanUp(ctx, loaded.MaxTradeID+1)
	if !committed(sample.Outcome) {
		return done, errors.Join(sample.Err, ctx.Err())
	}
	return done, nil
}
