// Command pgx connects to a server of test/e2e/drivers.sh as an application with pgx does: in every way in which a client logs in,
// and with a session of types, prepared statements, transactions, COPY, errors, notifications and cancellation.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// caseTimeout bounds each case: a server that hangs fails it.
const caseTimeout = time.Minute

var (
	password = os.Getenv("DRIVERS_PASSWORD")
	certs    = os.Getenv("DRIVERS_CERTS")
)

func main() {
	cases := []struct {
		name string
		run  func(context.Context) error
	}{
		{"SCRAM in the clear", login(clear("plain"), false)},
		{"SCRAM over TLS without channel binding", login(encrypted("secured")+" channel_binding=disable", true)},
		{"SCRAM with channel binding", login(encrypted("secured")+" channel_binding=require", true)},
		{"client certificate", login(encrypted("certified")+" sslcert="+certs+"/client-certified.crt sslkey="+certs+"/client-certified.key", true)},
		{"wrong password", refused(clear("plain")+" password=wrong", "28P01")},
		{"wrong password with channel binding", refused(encrypted("secured")+" password=wrong channel_binding=require", "28P01")},
		{"no TLS where it is demanded", refused(clear("secured"), "28000")},
		{"no client certificate", refused(encrypted("certified"), "28000")},
		{"the server's name is wrong", refused(encrypted("secured")+" host=127.0.0.1", "")},
		{"the server's authority is wrong", refused(encrypted("secured")+" sslrootcert="+os.Getenv("DRIVERS_OTHER")+"/ca.crt", "")},
		{"types", session(types)},
		{"prepared statements", session(prepared)},
		{"transactions", session(transactions)},
		{"copy", session(copyRows)},
		{"errors", session(failures)},
		{"notifications", session(notifications)},
		{"cancel", session(cancelled)},
	}
	for _, c := range cases {
		ctx, stop := context.WithTimeout(context.Background(), caseTimeout)
		if err := c.run(ctx); err != nil {
			fmt.Printf("FAIL pgx: %s: %v\n", c.name, err)
			os.Exit(1)
		}
		fmt.Println("ok   pgx:", c.name)
		stop()
	}
}

func common(user string) string {
	return "host=localhost port=" + os.Getenv("DRIVERS_PORT") + " dbname=percodb user=" + user + " password='" + password + "'"
}

func clear(user string) string { return common(user) + " sslmode=disable" }

func encrypted(user string) string {
	return common(user) + " sslmode=verify-full sslrootcert=" + certs + "/ca.crt"
}

// login connects, and checks that the connection is encrypted or not.
func login(params string, tls bool) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, params)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		var user string
		var ssl bool
		err = conn.QueryRow(ctx, "select current_user, ssl from pg_stat_ssl where pid = pg_backend_pid()").Scan(&user, &ssl)
		return errors.Join(err, same("user", user, conn.Config().User), same("TLS", ssl, tls))
	}
}

// refused connects in vain. code is the server's SQLSTATE, "" if the client itself refuses the server.
func refused(params, code string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, params)
		if err == nil {
			conn.Close(ctx)
			return errors.New("the client is let in")
		}
		var e *pgconn.PgError
		if errors.As(err, &e) && e.Code == code {
			return nil
		}
		if e == nil && code == "" && strings.Contains(err.Error(), "failed to verify certificate: x509") {
			return nil
		}
		return fmt.Errorf("want SQLSTATE %q: %w", code, err)
	}
}

// session runs f with a connection over TLS with channel binding.
func session(f func(context.Context, *pgx.Conn) error) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, encrypted("secured")+" channel_binding=require")
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		return f(ctx, conn)
	}
}

func same(what string, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s: %v, want %v", what, got, want)
}

// roundTrip sends a value and receives it as the type of the variable that got points to.
func roundTrip(ctx context.Context, conn *pgx.Conn, typ string, sent, got any) error {
	if err := conn.QueryRow(ctx, "select $1::"+typ, sent).Scan(got); err != nil {
		return fmt.Errorf("%s: %w", typ, err)
	}
	value := reflect.ValueOf(got).Elem().Interface()
	if t, ok := value.(time.Time); ok {
		value = t.UTC()
	}
	return same(typ, value, sent)
}

func types(ctx context.Context, conn *pgx.Conn) error {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	number, _ := new(big.Int).SetString("-12345678901234567890123456789", 10)
	null, one := (*string)(nil), `a "quoted", {text} \ with Ünïcode 🙂`
	return errors.Join(
		roundTrip(ctx, conn, "int2", int16(-32768), new(int16)),
		roundTrip(ctx, conn, "int4", int32(2147483647), new(int32)),
		roundTrip(ctx, conn, "int8", int64(-9223372036854775808), new(int64)),
		roundTrip(ctx, conn, "float8", 1.0000000000000002, new(float64)),
		roundTrip(ctx, conn, "bool", true, new(bool)),
		roundTrip(ctx, conn, "text", "it's\ta \"text\"\nwith Ünïcode 🙂", new(string)),
		roundTrip(ctx, conn, "numeric", pgtype.Numeric{Int: number, Exp: -9, Valid: true}, new(pgtype.Numeric)),
		roundTrip(ctx, conn, "numeric", pgtype.Numeric{NaN: true, Valid: true}, new(pgtype.Numeric)),
		roundTrip(ctx, conn, "timestamptz", time.Date(2026, 2, 28, 23, 59, 59, 123456000, time.UTC), new(time.Time)),
		roundTrip(ctx, conn, "date", time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC), new(time.Time)),
		roundTrip(ctx, conn, "bytea", all, new([]byte)),
		roundTrip(ctx, conn, "uuid", [16]byte{0xa0, 0xee, 0xbc, 0x99, 15: 1}, new([16]byte)),
		roundTrip(ctx, conn, "int[]", []int32{1, -2, 3}, new([]int32)),
		roundTrip(ctx, conn, "text[]", []*string{&one, null}, new([]*string)),
		roundTrip(ctx, conn, "text", null, new(*string)),
	)
}

func prepared(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Prepare(ctx, "double", "select $1::int * 2, $2 || '!'"); err != nil {
		return err
	}
	for i := range int32(10) {
		var n int32
		var text string
		if err := conn.QueryRow(ctx, "double", i, "x").Scan(&n, &text); err != nil {
			return err
		}
		if err := errors.Join(same("number", n, 2*i), same("text", text, "x!")); err != nil {
			return err
		}
	}
	var batch pgx.Batch
	sum := 0
	for i := range 20 {
		batch.Queue("double", i, "y").QueryRow(func(row pgx.Row) error {
			var n int
			err := row.Scan(&n, nil)
			sum += n
			return err
		})
	}
	if err := conn.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	return errors.Join(same("sum of a batch", sum, 380), conn.Deallocate(ctx, "double"))
}

// table creates a table of the driver's own.
func table(ctx context.Context, conn *pgx.Conn, columns string) error {
	if _, err := conn.Exec(ctx, "drop table if exists of_pgx"); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "create table of_pgx ("+columns+")")
	return err
}

func count(ctx context.Context, conn *pgx.Conn, want int) error {
	var n int
	err := conn.QueryRow(ctx, "select count(*) from of_pgx").Scan(&n)
	return errors.Join(err, same("rows", n, want))
}

func transactions(ctx context.Context, conn *pgx.Conn) error {
	if err := table(ctx, conn, "id int primary key"); err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "insert into of_pgx values (1)")
	if err := errors.Join(err, count(ctx, conn, 1), tx.Rollback(ctx), count(ctx, conn, 0)); err != nil {
		return err
	}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		inner, err := tx.Begin(ctx) // a savepoint
		if err != nil {
			return err
		}
		_, insertErr := inner.Exec(ctx, "insert into of_pgx values (2), (2)")
		if insertErr == nil {
			return errors.New("a key was inserted twice")
		}
		_, err = tx.Exec(ctx, "insert into of_pgx values (3)")
		if err == nil {
			return errors.New("a failed transaction goes on")
		}
		if err := inner.Rollback(ctx); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "insert into of_pgx values (3)")
		return err
	})
	return errors.Join(err, count(ctx, conn, 1))
}

func copyRows(ctx context.Context, conn *pgx.Conn) error {
	if err := table(ctx, conn, "id int primary key, name text, at timestamptz"); err != nil {
		return err
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n, err := conn.CopyFrom(ctx, pgx.Identifier{"of_pgx"}, []string{"id", "name", "at"}, pgx.CopyFromSlice(1000, func(i int) ([]any, error) {
		return []any{i, fmt.Sprintf("name\t%d", i), at}, nil
	}))
	if err := errors.Join(err, same("rows copied in", n, int64(1000)), count(ctx, conn, 1000)); err != nil {
		return err
	}
	var out bytes.Buffer
	_, err = conn.PgConn().CopyTo(ctx, &out, "copy (select id, name from of_pgx where id < 2 order by id) to stdout")
	return errors.Join(err, same("rows copied out", out.String(), "0\tname\\t0\n1\tname\\t1\n"))
}

// fails checks that a statement fails with a SQLSTATE.
func fails(ctx context.Context, conn *pgx.Conn, code, sql string, args ...any) error {
	_, err := conn.Exec(ctx, sql, args...)
	var e *pgconn.PgError
	if errors.As(err, &e) && e.Code == code {
		return nil
	}
	return fmt.Errorf("%s: %w, want SQLSTATE %s", sql, err, code)
}

func failures(ctx context.Context, conn *pgx.Conn) error {
	if err := table(ctx, conn, "id int primary key"); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "insert into of_pgx values (1)")
	return errors.Join(err,
		fails(ctx, conn, "23505", "insert into of_pgx values ($1)", 1),
		fails(ctx, conn, "22012", "select 1 / $1::int", 0),
		fails(ctx, conn, "42P01", "select * from no_such_table"),
		fails(ctx, conn, "42601", "selec 1"),
		count(ctx, conn, 1),
	)
}

func notifications(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "listen of_pgx; notify of_pgx, 'a payload'")
	if err != nil {
		return err
	}
	n, err := conn.WaitForNotification(ctx)
	if err != nil {
		return err
	}
	return same("payload", n.Payload, "a payload")
}

// cancelled cancels a statement from another goroutine, until it ends.
func cancelled(ctx context.Context, conn *pgx.Conn) error {
	done := make(chan error, 1)
	go func() { done <- fails(ctx, conn, "57014", "select pg_sleep(600)") }()
	for {
		if err := conn.PgConn().CancelRequest(ctx); err != nil {
			return err
		}
		select {
		case err := <-done:
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
