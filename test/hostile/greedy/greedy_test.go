// Package greedy has statements that want more memory than a server has, many at once, against a process
// with a bound, and statements that take long, with timeouts. By hand, as long as one likes:
//
//	go test ./test/hostile/greedy -v -timeout 1h -run Greedy -clients 200 -duration 10m
//	go test ./test/hostile/greedy -v -timeout 9h -run Timeouts -timeouts 100000
package greedy

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/internal/process"
)

var (
	clients  = flag.Int("clients", 60, "greedy sessions at once")
	duration = flag.Duration("duration", 6*time.Second, "for how long they are greedy")
)

const (
	// memoryFlag is the server's bound, groupBytes that of its control group: what no account counts (the
	// program, stacks, the collector's delay) takes the difference.
	memoryFlag = "1400MB"
	groupBytes = 2 << 30
)

// greedy are statements of which one alone, or a few, exceed the bound.
var greedy = []string{
	`select length(regexp_replace(repeat('ab', 50000000), '(a|b)', 'xx', 'g'))`,
	`select length(repeat('ab', 100000000) || repeat('cd', 100000000))`,
	`select repeat('x', 60000000), repeat('y', 60000000), repeat('z', 60000000)`,
	`select cardinality(string_to_array(repeat(',', 50000000), ','))`,
	`select length(upper(repeat('é', 100000000)))`,
	`select length(string_agg(repeat('x', 1000), ',')) from generate_series(1, 500000)`,
	`select cardinality(array_agg(i)) from generate_series(1, 20000000) i`,
	`select count(*) from (select repeat('x', 1000) || i from generate_series(1, 1000000) i order by 1) q`,
	`select count(distinct repeat('x', 500) || i) from generate_series(1, 1000000) i`,
	`select a.i from generate_series(1, 3000000) a(i) join generate_series(1, 3000000) b(i) on a.i = b.i order by 1 desc limit 1`,
	`select length(lpad('x', 200000000, 'é'))`,
	`select count(*) from regexp_split_to_table(repeat('a,', 30000000), ',')`,
	`select length(encode(repeat('x', 100000000)::bytea, 'hex'))`,
	`select length(format('%1000000000s', 'x'))`,
	`insert into greedy select i, repeat('x', 1000) from generate_series(1, 1000000) i`,
	`select max(repeat('x', 300000000 + i)) from generate_series(1, 5) i`,
	`select cardinality(array_fill(1, array[100000000]))`,
}

// server is a running process.
type server struct {
	*process.Process
	dsn string
}

func start(t *testing.T, args ...string) *server {
	t.Helper()
	dir := t.TempDir()
	binary, err := process.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	address, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(binary, nil, append([]string{"start", "--listen", address, "--data", filepath.Join(dir, "data")}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Log(p.Output())
		}
	})
	if _, err := p.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &server{Process: p, dsn: "postgres://postgres@" + address + "/percodb"}
}

// confine puts the process into a control group with a limit where that is possible (version 2, as root).
func (s *server) confine(t *testing.T) {
	group := fmt.Sprintf("/sys/fs/cgroup/percodb-greedy-%d", os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Logf("no control group (%v): resident memory is measured", err)
		return
	}
	t.Cleanup(func() { _ = syscall.Rmdir(group) })
	for file, value := range map[string]string{"memory.max": strconv.Itoa(groupBytes), "memory.swap.max": "0", "cgroup.procs": strconv.Itoa(s.PID())} {
		if err := os.WriteFile(filepath.Join(group, file), []byte(value), 0o644); err != nil {
			t.Logf("control group, %s: %v: resident memory is measured", file, err)
		}
	}
}

// resident is a figure of /proc/PID/status in bytes.
func (s *server) resident(t *testing.T, name string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		t.Skipf("the process's memory cannot be read: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

// Goal: whatever statements ask for at once, the process lives and stays within its bound, sessions that
// want little are served meanwhile, and the memory comes back.
func TestGreedyStatements(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	s := start(t, "--memory", memoryFlag)
	s.confine(t)
	ctx, stop := context.WithTimeout(context.Background(), *duration+5*time.Minute)
	defer stop()
	modest, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer modest.Close(ctx)
	if _, err := modest.Exec(ctx, "create table greedy (i int, t text); create table modest (i int primary key, n int); insert into modest values (1, 0)"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var refused, canceled, done, served atomic.Int64
	begun := time.Now()
	goesOn := func() bool {
		took := time.Since(begun)
		return ctx.Err() == nil && (took < *duration || (served.Load() < 10 || refused.Load() == 0) && took < *duration+2*time.Minute)
	}
	for i := range *clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 5))
			conn, err := pgx.Connect(ctx, s.dsn+"?statement_timeout=8000")
			if err != nil {
				t.Errorf("connect: %v", err)
				return
			}
			defer conn.Close(ctx)
			for goesOn() {
				query := greedy[r.IntN(len(greedy))]
				_, err := conn.Exec(ctx, query)
				var answer *pgconn.PgError
				switch {
				case err == nil:
					done.Add(1)
				case errors.As(err, &answer) && answer.Code == "53200":
					refused.Add(1)
				case errors.As(err, &answer) && (answer.Code == "57014" || answer.Code == "54000" || answer.Code == "40001"):
					canceled.Add(1)
				default:
					t.Errorf("%s: %v", query, err)
					return
				}
			}
		})
	}
	slowest, peak := time.Duration(0), int64(0)
	for goesOn() {
		begin := time.Now()
		if _, err := modest.Exec(ctx, "update modest set n = n + 1 where i = 1"); err != nil {
			t.Errorf("a modest statement: %v", err)
			break
		}
		slowest = max(slowest, time.Since(begin))
		served.Add(1)
		peak = max(peak, s.resident(t, "VmRSS"))
		time.Sleep(20 * time.Millisecond) // the modest client is not busy
	}
	wg.Wait()
	peak = max(peak, s.resident(t, "VmHWM"))
	if s.HasExited() {
		t.Fatalf("the process has ended: %v", s.Err())
	}
	t.Logf("%d statements done, %d refused, %d cut off; %d modest ones, the slowest %v; at most %d MB resident",
		done.Load(), refused.Load(), canceled.Load(), served.Load(), slowest, peak>>20)
	if peak > groupBytes {
		t.Errorf("%d MB were resident, %d MB are allowed", peak>>20, groupBytes>>20)
	}
	if served.Load() < 10 {
		t.Errorf("only %d modest statements were served", served.Load())
	}
	if refused.Load() == 0 {
		t.Error("nothing was refused: were the statements greedy?")
	}
	var n int64
	if err := modest.QueryRow(ctx, "select n from modest").Scan(&n); err != nil || n != served.Load() {
		t.Errorf("%d updates, the row says %d, %v", served.Load(), n, err)
	}
	for wait := time.Now().Add(2 * time.Minute); s.resident(t, "VmRSS") > groupBytes/2; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(wait) {
			t.Errorf("%d MB are still resident", s.resident(t, "VmRSS")>>20)
			break
		}
	}
	t.Logf("%d MB resident at the end", s.resident(t, "VmRSS")>>20)
}

// Goal: messages that never end count: connections that send most of a large message hold no more than the
// bound, and others are served.
func TestHalfSentMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	s := start(t, "--memory", "1GB")
	ctx := context.Background()
	const size, sent = 250 << 20, 200 << 20
	part := make([]byte, 1<<20)
	var wg sync.WaitGroup
	var ends [18]*pgconn.HijackedConn
	for i := range ends {
		config, err := pgconn.ParseConfig(s.dsn)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgconn.ConnectConfig(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		hijacked, err := conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		defer hijacked.Conn.Close()
		ends[i] = hijacked
		wg.Go(func() {
			c := hijacked.Conn
			if _, err := c.Write([]byte{'Q', byte(size >> 24), byte(size >> 16 & 0xff), byte(size >> 8 & 0xff), byte(size & 0xff)}); err != nil {
				return
			}
			for at := 0; at < sent; at += len(part) {
				if _, err := c.Write(part); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	modest, err := pgx.Connect(ctx, s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer modest.Close(ctx)
	if _, err := modest.Exec(ctx, "select 1"); err != nil {
		t.Error(err)
	}
	if peak := s.resident(t, "VmHWM"); peak > 1200<<20 {
		t.Errorf("%d MB were resident", peak>>20)
	}
	refused := 0
	for _, end := range ends { // The rest of the messages, and of their lengths.
		for at := sent + 4; at < size; at += len(part) {
			if _, err := end.Conn.Write(part[:min(len(part), size-at)]); err != nil {
				t.Fatal(err)
			}
		}
		m, err := end.Frontend.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := m.(*pgproto3.ErrorResponse); ok && e.Code == "53200" {
			refused++
		}
	}
	t.Logf("%d of %d messages refused", refused, len(ends))
	if refused == 0 {
		t.Error("no message was refused")
	}
}
