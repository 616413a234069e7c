package txn

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// trouble says what an error means for the transaction that met it.
type trouble int

const (
	// fault: repeating it would meet the same again.
	fault trouble = iota
	// conflict: it was rolled back because of others.
	conflict
	// gone: the server, or a part of it, was not there.
	gone
	// undetermined: the server itself cannot tell what became of its COMMIT.
	undetermined
)

const uniqueViolation = "23505"

// classify returns what an error means, and its SQLSTATE, "" if it has none. The connection may have been
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
		return fault, "" // what the driver itself makes of an answer
	}
	switch pg.Code {
	case "40001", "40P01", "55P03":
		return conflict, pg.Code
	case "08007", "40003":
		return undetermined, pg.Code
	case "57P01", "57P02", "57P03", "53300": // shut down, crashed, not up yet, too many connections
		return gone, pg.Code
	case "08P01": // a violation of the protocol is nobody's absence
		return fault, pg.Code
	}
	if strings.HasPrefix(pg.Code, "08") {
		return gone, pg.Code
	}
	return fault, pg.Code
}

// backoff is the pause between attempts: a millisecond, then twice as long each time, half of it more or
// less.
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
