package txn

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// trouble is the meaning of an error for its transaction.
type trouble int

const (
	// fault: a repetition would fail again.
	fault trouble = iota
	// conflict: it was rolled back because of other transactions.
	conflict
	// gone: the server, or a part of it, was unavailable.
	gone
	// undetermined: the server itself does not know the outcome of the COMMIT.
	undetermined
)

const uniqueViolation = "23505"

// classify returns the meaning of an error, and its SQLSTATE, "" if it has none. lost means that the connection was
// lost with it.
func classify(err error, lost bool) (trouble, string) {
	var pg *pgconn.PgError
	if errors.Is(err, errTaken) {
		return conflict, "40001"
	}
	if !errors.As(err, &pg) {
		if lost {
			return gone, ""
		}
		return fault, "" // an error of the driver itself
	}
	switch pg.Code {
	case "40001", "40P01", "55P03":
		return conflict, pg.Code
	case "08007", "40003":
		return undetermined, pg.Code
	case "57P01", "57P02", "57P03", "53300": // shut down, crashed, starting, too many connections
		return gone, pg.Code
	case "08P01": // a violation of the protocol does not mean an unavailable server
		return fault, pg.Code
	}
	if strings.HasPrefix(pg.Code, "08") {
		return gone, pg.Code
	}
	return fault, pg.Code
}

// backoff is the pause between attempts: a millisecond, then doubling, randomized by half.
type backoff struct{ next time.Duration }

const (
	firstPause   = time.Millisecond
	longestPause = 250 * time.Millisecond
)

// wait pauses, and returns the context's error if it ends first.
func (b *backoff) wait(ctx context.Context) error {
	b.next = min(max(2*b.next, firstPause), longestPause)
	timer := time.NewTimer(b.next/2 + rand.N(b.next))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
