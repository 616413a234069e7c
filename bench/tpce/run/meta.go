package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/percodb/percodb/bench/tpce/load"
	"github.com/percodb/percodb/bench/tpce/schema"
	"github.com/percodb/percodb/bench/tpce/txn"
)

// Keys of tpce_meta that runs write. The check reads those of load.
const (
	keyNextID    = "next_trade_id"    // the first id that is in no leased block
	keyNextBlock = "next_trade_block" // of scattered blocks
	keyRun       = "run."             // and a run's number: its token
)

// metaStore reads and changes tpce_meta. Every change is a transaction on its own connection, repeated while it
// conflicts or the server is unavailable.
type metaStore struct {
	url    string
	outage time.Duration
}

// update runs f in a transaction until it commits. f may run several times, and once more after a commit whose answer
// was lost: it then takes its ids twice.
func (m *metaStore) update(ctx context.Context, f func(tx pgx.Tx) error) error {
	const pause, longest = 5 * time.Millisecond, 250 * time.Millisecond
	deadline := time.Now().Add(m.outage)
	for wait := pause; ; wait = min(2*wait, longest) {
		lost, err := m.try(ctx, f)
		if err == nil || !again(err, lost) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// try runs f in a transaction, and reports whether the connection was lost at the end.
func (m *metaStore) try(ctx context.Context, f func(tx pgx.Tx) error) (lost bool, err error) {
	config, err := pgx.ParseConfig(m.url)
	if err != nil {
		return false, err
	}
	config.ConnectTimeout = txn.ConnectTimeout
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return true, err
	}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, f)
	lost = conn.IsClosed()
	_ = conn.Close(context.WithoutCancel(ctx)) // the transaction has committed or not
	return lost, err
}

// again reports whether a repetition may succeed: after conflicts, and while servers are unavailable.
func again(err error, lost bool) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return lost
	}
	switch answer.Code {
	case "40001", "40P01", "55P03", "23505": // the last: two transactions inserted the same key
		return true
	}
	switch answer.Code[:min(2, len(answer.Code))] {
	case "08", "53", "57": // of connections, resources, and the operator
		return true
	}
	return false
}

// get returns the value of a key, "" if there is none.
func get(ctx context.Context, tx pgx.Tx, key string) (string, error) {
	var v string
	err := tx.QueryRow(ctx, "SELECT v FROM "+schema.MetaTable+" WHERE k = $1", key).Scan(&v)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return v, err
}

// put sets the value of a key; old reports whether it exists.
func put(ctx context.Context, tx pgx.Tx, key, old, v string) error {
	query := "UPDATE " + schema.MetaTable + " SET v = $2 WHERE k = $1"
	if old == "" {
		query = "INSERT INTO " + schema.MetaTable + " (k, v) VALUES ($1, $2)"
	}
	tag, err := tx.Exec(ctx, query, key, v)
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("key %s of %s: %d rows changed, not one", key, schema.MetaTable, tag.RowsAffected())
	}
	return err
}

// take adds n to the number of a key, which is initially first, and returns its former value.
func (m *metaStore) take(ctx context.Context, key string, first, n int64) (int64, error) {
	var was int64
	err := m.update(ctx, func(tx pgx.Tx) error {
		text, err := get(ctx, tx, key)
		if err != nil {
			return err
		}
		was = first
		if text != "" {
			if was, err = strconv.ParseInt(text, 10, 64); err != nil {
				return fmt.Errorf("key %s of %s: %w", key, schema.MetaTable, err)
			}
		}
		return put(ctx, tx, key, text, strconv.FormatInt(was+n, 10))
	})
	return was, err
}

// registration is a run's entry in the database.
type registration struct {
	number   int64  // runs of a database are numbered from 1
	identity string // of the database, random
	volume   int64  // SUM(lt_vol) before the run
}

// ErrBrokersMixed: runs that do not count brokers' trades cannot be checked after, or before, runs that do.
var ErrBrokersMixed = errors.New("the database has had runs with and without brokers' counts (--broker-writes=omit): no check could tell; drop it and load it again")

// register gives the run a number, and records its BrokerMode. Every number is recorded with the run's token, so that a
// run whose registration was committed without an answer finds its number again: a number without a run would have no
// journal either.
func (m *metaStore) register(ctx context.Context, mode txn.BrokerMode) (registration, error) {
	return m.registerAs(ctx, mode, rand.Text())
}

// registerAs is register with a given token.
func (m *metaStore) registerAs(ctx context.Context, mode txn.BrokerMode, token string) (registration, error) {
	var r registration
	err := m.update(ctx, func(tx pgx.Tx) error {
		old, err := get(ctx, tx, load.KeyBrokerWrites)
		if err != nil {
			return err
		}
		if omit := string(txn.Omit); old != "" && (old == omit) != (mode == txn.Omit) {
			return ErrBrokersMixed
		}
		// Once commissions were in broker_delta, some may stay there.
		if old == "" || mode == txn.SideTable {
			if err := put(ctx, tx, load.KeyBrokerWrites, old, string(mode)); err != nil {
				return err
			}
		}
		if r.identity, err = get(ctx, tx, load.KeyIdentity); err != nil {
			return err
		}
		if r.identity == "" {
			r.identity = rand.Text()
			if err := put(ctx, tx, load.KeyIdentity, "", r.identity); err != nil {
				return err
			}
		}
		if r.number, err = number(ctx, tx, token); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT COALESCE(SUM(lt_vol), 0)::bigint FROM last_trade").Scan(&r.volume)
	})
	return r, err
}

// number returns the number of the run with a token, a new one if it has none yet.
func number(ctx context.Context, tx pgx.Tx, token string) (int64, error) {
	var key string
	err := tx.QueryRow(ctx, "SELECT k FROM "+schema.MetaTable+" WHERE v = $1", token).Scan(&key)
	if err == nil {
		return strconv.ParseInt(strings.TrimPrefix(key, keyRun), 10, 64)
	} else if !errors.Is(err, pgx.ErrNoRows) {
		return 0, err
	}
	runs, err := get(ctx, tx, load.KeyRuns)
	if err != nil {
		return 0, err
	}
	n := int64(1)
	if runs != "" {
		if n, err = strconv.ParseInt(runs, 10, 64); err != nil {
			return 0, fmt.Errorf("key %s of %s: %w", load.KeyRuns, schema.MetaTable, err)
		}
		n++
	}
	text := strconv.FormatInt(n, 10)
	return n, errors.Join(put(ctx, tx, load.KeyRuns, runs, text), put(ctx, tx, keyRun+text, "", token))
}

// mark consumes an id of the server's sequence, and returns it.
func (m *metaStore) mark(ctx context.Context) (int64, error) {
	var id int64
	err := m.update(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT nextval('"+schema.TradeIDSequence+"')").Scan(&id)
	})
	return id, err
}
