// Package loading has what the loaders of rows share: their progress, the repetition of a batch after a conflict, and
// questions about a server's errors.
package loading

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Progress receives the progress of a load. Calls do not overlap.
type Progress interface {
	// Phase begins a phase of total steps: rows, bytes or statements.
	Phase(name string, total int64)
	// Add reports that n more steps are done.
	Add(n int64)
}

// Discard is the Progress of a load without one.
type Discard struct{}

// Phase implements Progress.
func (Discard) Phase(string, int64) {}

// Add implements Progress.
func (Discard) Add(int64) {}

// batchAttempts is how often a batch is tried if it conflicts with another transaction.
const batchAttempts = 10

// InTransaction runs f in a transaction, again after a serialization failure or a deadlock.
func InTransaction(ctx context.Context, conn *pgx.Conn, f func(pgx.Tx) error) error {
	var err error
	for range batchAttempts {
		err = pgx.BeginFunc(ctx, conn, f)
		if !HasCode(err, "40001", "40P01") {
			break
		}
	}
	return err
}

// HasCode reports whether the server answered with one of the SQLSTATEs.
func HasCode(err error, codes ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains(codes, pg.Code)
}
