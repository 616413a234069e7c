package bigtable

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Requests are the requests of one operation, averages.
type Requests struct {
	What          string  `json:"what"`
	Reads         float64 `json:"read_rows"`
	Conditional   float64 `json:"check_and_mutate_row"`
	Unconditional float64 `json:"mutate_rows"`
	Rows          float64 `json:"rows_read"`
	Failed        float64 `json:"conditions_failed"`
	Ahead         float64 `json:"rows_read_ahead"`
	Hits          float64 `json:"read_ahead_hits"`
}

// scanned is the number of rows of the scan.
const scanned = 1000

// schemaOfRequests are the tables of the operations.
var schemaOfRequests = []string{
	"CREATE TABLE r (id int PRIMARY KEY, n int)",
	fmt.Sprintf("INSERT INTO r SELECT g, 0 FROM generate_series(1, %d) g", scanned),
	"CREATE TABLE branch (bid int PRIMARY KEY, balance int)", "CREATE TABLE teller (tid int PRIMARY KEY, bid int, balance int)",
	"CREATE TABLE account (aid int PRIMARY KEY, bid int, balance int)", "CREATE TABLE history (tid int, bid int, aid int, delta int, at timestamp)",
	"INSERT INTO branch VALUES (1, 0)", "INSERT INTO teller SELECT g, 1, 0 FROM generate_series(1, 10) g",
	"INSERT INTO account SELECT g, 1, 0 FROM generate_series(1, 1000) g",
}

// requests counts at the second process, which sends none for the coordinator.
func (o *Options) requests(ctx context.Context, d *deployment) ([]Requests, error) {
	s := d.sqls[1]
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := execAll(ctx, conn, schemaOfRequests...); err != nil {
		return nil, err
	}
	if err := awaitLeases(ctx); err != nil {
		return nil, err
	}
	one := func(sql string) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			rows, err := conn.Query(ctx, sql, 1+i%scanned)
			if err != nil {
				return err
			}
			rows.Close()
			return rows.Err()
		}
	}
	var all []Requests
	for _, op := range []struct {
		what string
		ops  int
		do   func(context.Context, int) error
	}{
		{"point select", o.Ops, one("SELECT n FROM r WHERE id = $1")},
		{"one-row update alone", o.Ops, one("UPDATE r SET n = n + 1 WHERE id = $1")},
		{"one-row insert alone", o.Ops, one("INSERT INTO r VALUES ($1 + 100000, 1)")},
		{fmt.Sprintf("scan of %d rows", scanned), 5, one(fmt.Sprintf("SELECT n FROM r WHERE id BETWEEN $1 * 0 + 1 AND %d", scanned))},
		{fmt.Sprintf("loop of %d selects in a REPEATABLE READ block", looped), 5, func(ctx context.Context, i int) error { return loop(ctx, conn) }},
		{"TPC-B, a block of five statements", o.Ops, func(ctx context.Context, i int) error { return bankTransaction(ctx, conn, i) }},
	} {
		counted, err := o.count(ctx, s, op.what, op.ops, op.do)
		if err != nil {
			return all, err
		}
		all = append(all, counted)
	}
	return all, nil
}

// looped is the number of rows that a loop selects one by one.
const looped = 100

func loop(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		for id := range looped {
			if _, err := tx.Exec(ctx, "SELECT n FROM r WHERE id = $1", 1+id); err != nil {
				return err
			}
		}
		return nil
	})
}

// awaitLeases waits until processes have leases of a schema that has changed; until then statements look its version up.
func awaitLeases(ctx context.Context) error {
	select {
	case <-time.After(leaseTime):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const leaseTime = 12 * time.Second

// bankTransaction is TPC-B's, as pgbench has it.
func bankTransaction(ctx context.Context, conn *pgx.Conn, i int) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, st := range []struct {
			sql  string
			args []any
		}{
			{"UPDATE account SET balance = balance + $2 WHERE aid = $1", []any{1 + i*37%1000, i}},
			{"SELECT balance FROM account WHERE aid = $1", []any{1 + i*37%1000}},
			{"UPDATE teller SET balance = balance + $2 WHERE tid = $1", []any{1 + i%10, i}},
			{"UPDATE branch SET balance = balance + $1 WHERE bid = 1", []any{i}},
			{"INSERT INTO history VALUES ($1, 1, $2, $3, now())", []any{1 + i%10, 1 + i*37%1000, i}},
		} {
			if _, err := tx.Exec(ctx, st.sql, st.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// requestsOf is the counter of the requests by a method.
func requestsOf(method string) string {
	return fmt.Sprintf("percodb_bigtable_request_seconds_count{method=%q}", method)
}

// rowsRead is the counter of rows.
const rowsRead = "percodb_bigtable_rows_read_total"

// settle is how long a count waits for what is sent behind the client's back.
const settle = time.Second

// count performs an operation and counts the requests of the process, without those that it sends without one, in the same time. The first
// operations prepare statements and are not counted.
func (o *Options) count(ctx context.Context, s *sqlProcess, what string, ops int, do func(context.Context, int) error) (Requests, error) {
	r := Requests{What: what}
	for i := range 3 {
		if err := do(ctx, -1-i+scanned); err != nil {
			return r, fmt.Errorf("%s: %w", what, err)
		}
	}
	time.Sleep(settle)
	resting, err := s.counters(ctx)
	if err != nil {
		return r, err
	}
	rested := time.Now()
	time.Sleep(4 * settle)
	before, err := s.counters(ctx)
	if err != nil {
		return r, err
	}
	begun := time.Now()
	for i := range ops {
		if err := do(ctx, i); err != nil {
			return r, fmt.Errorf("%s: %w", what, err)
		}
	}
	time.Sleep(settle)
	after, err := s.counters(ctx)
	if err != nil {
		return r, err
	}
	background := time.Since(begun).Seconds() / begun.Sub(rested).Seconds()
	each := func(names ...string) (sum float64) {
		for _, name := range names {
			sum += after[name] - before[name] - background*(before[name]-resting[name])
		}
		return sum / float64(ops)
	}
	r.Reads, r.Conditional = each(requestsOf("ReadRows")), each(requestsOf("CheckAndMutateRow"))
	r.Unconditional = each(requestsOf("MutateRow"), requestsOf("MutateRows"))
	r.Rows, r.Failed = each(rowsRead), each("percodb_bigtable_conditions_failed_total")
	r.Ahead, r.Hits = each("percodb_bigtable_rows_read_ahead_total"), each("percodb_bigtable_read_ahead_hits_total")
	return r, nil
}
