package greedy

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var timeouts = flag.Int("timeouts", 400, "statements with random timeouts")

// long are statements of which each would take seconds to minutes; the argument is a seed.
var long = []string{
	`select regexp_replace(repeat('ab', 20000000), '(a|b)', 'xx', 'g') ~ 'y%d'`,
	`select repeat('ab', 10000000) ~ '(a|b|ab)*(a?){50}c%d'`,
	`select md5(repeat('x', 100000000)) || sha512(repeat('y', 100000000)::bytea)::text || %d`,
	`select sum(power(1.0000001 + i * 1e-9, 1234.567 + %d)) from generate_series(1, 100000000) i`,
	`select sum(exp(i * 0.00001)) + %d from generate_series(1, 100000000) i`,
	`select sum(power(1.5 + %d, 20000)::text::numeric) from generate_series(1, 100000) i`,
	`select sum(sqrt(repeat('7', 20000)::numeric)) + %d from generate_series(1, 10000) i`,
	`select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b where a + b = %d`,
	`select count(distinct i %% 1000003 + %d) from generate_series(1, 100000000) i`,
	`select i from generate_series(1, 100000000) i order by i %% 1000 + %d limit 1`,
	`select upper(repeat('é', 40000000)) like '%%a%%b%%c%d'`,
	`select length(translate(repeat('abc', 20000000), 'abc', 'xyz%d'))`,
	`select count(*) from regexp_split_to_table(repeat('a,', 10000000), ',') s where length(s) > %d`,
	`with recursive r(n) as (select 1 union all select n + 1 from r where n < 100000000) select sum(n) + %d from r`,
	`update timeouts set n = n + 1 where i %% 7 <> %d`,
	`select factorial(20000 + i) %% 1000007 + %d from generate_series(1, 1000) i`,
}

// Goal: a statement's timeout ends it wherever it is, soon; the session goes on, and its transaction's
// changes are undone. Method: statements that take long, each with a timeout drawn from 1 to 300 ms, in
// blocks that count what has committed. The bound on the delay is generous: machines under load are slow.
func TestRandomTimeouts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	s := start(t, "--memory", "2GB")
	ctx := context.Background()
	setup, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer setup.Close(ctx)
	if _, err := setup.Exec(ctx, "create table timeouts (i int primary key, n int); create table counts (c int primary key, n int)"); err != nil {
		t.Fatal(err)
	}
	if _, err := setup.Exec(ctx, "insert into timeouts select i, 0 from generate_series(1, 50000) i"); err != nil {
		t.Fatal(err)
	}
	const sessions = 8
	const tooLong = 30 * time.Second
	var wg sync.WaitGroup
	var cut, ended, late atomic.Int64
	var slowest atomic.Int64
	for c := range sessions {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 9))
			conn, err := pgx.Connect(ctx, s.dsn)
			if err != nil {
				t.Errorf("connect: %v", err)
				return
			}
			defer conn.Close(ctx)
			counted := 0
			if _, err := conn.Exec(ctx, fmt.Sprintf("insert into counts values (%d, 0)", c)); err != nil {
				t.Error(err)
				return
			}
			for range *timeouts / sessions {
				timeout := time.Duration(1+r.IntN(300)) * time.Millisecond
				query := fmt.Sprintf(long[r.IntN(len(long))], r.IntN(7))
				if _, err := conn.Exec(ctx, fmt.Sprintf("begin; set local statement_timeout = %d", timeout.Milliseconds())); err != nil {
					t.Errorf("begin: %v", err)
					return
				}
				_, err := conn.Exec(ctx, fmt.Sprintf("update counts set n = n + 1 where c = %d", c))
				begin := time.Now()
				if err == nil {
					_, err = conn.Exec(ctx, query)
				}
				over := time.Since(begin) - timeout
				for worst := slowest.Load(); int64(over) > worst && !slowest.CompareAndSwap(worst, int64(over)); {
					worst = slowest.Load()
				}
				if over > 100*time.Millisecond {
					late.Add(1)
				}
				if over > tooLong {
					t.Errorf("%s: %v beyond its timeout of %v", query, over, timeout)
				}
				if err == nil {
					// The timeout still holds for this statement; the commit has none, so that it is known how it ends.
					_, err = conn.Exec(ctx, "set local statement_timeout = 0")
				}
				var answer *pgconn.PgError
				if err != nil && !errors.As(err, &answer) {
					t.Errorf("%s: %v", query, err)
					return
				}
				switch {
				case err == nil:
					if _, err := conn.Exec(ctx, "commit"); err != nil {
						t.Errorf("commit: %v", err)
						return
					}
					ended.Add(1)
					counted++
				case answer.Code == "57014" || answer.Code == "53200" || answer.Code == "40001" || answer.Code == "40P01":
					cut.Add(1)
					if _, err := conn.Exec(ctx, "rollback"); err != nil {
						t.Errorf("rollback: %v", err)
						return
					}
				default:
					t.Errorf("%s: %v", query, err)
					return
				}
			}
			var n int
			if err := conn.QueryRow(ctx, "select n from counts where c = $1", c).Scan(&n); err != nil || n != counted {
				t.Errorf("session %d: %d blocks committed, the row says %d, %v", c, counted, n, err)
			}
		})
	}
	wg.Wait()
	t.Logf("%d statements cut off, %d ended before; %d went on for more than 100 ms, the longest %v",
		cut.Load(), ended.Load(), late.Load(), time.Duration(slowest.Load()))
	if cut.Load() == 0 {
		t.Error("no statement was cut off")
	}
}
