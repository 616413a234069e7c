package bigtable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/percodb/percodb/bench/tpce/usage"
)

// Processes is the processor time of a number of SQL processes, the coordinator's included but for what it takes at rest: that is the same for any
// number of processes. What the others take at rest is in it.
type Processes struct {
	Number       int     `json:"processes"`
	Transactions int     `json:"transactions"`           // of all rounds
	CPUMicros    float64 `json:"cpu_us_per_transaction"` // the median of the rounds
	// Least and Most are those of the rounds.
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	// Switches is how often a thread went to sleep: what wakes it up costs processor time, the more the less there is to do.
	Switches float64 `json:"switches_per_transaction"`
}

// Rest is what a process costs that no client uses.
type Rest struct {
	What      string  `json:"what"`
	CPUMillis float64 `json:"cpu_ms_per_s"`
	Requests  float64 `json:"requests_per_s"`
	Rows      float64 `json:"rows_read_per_s"`
}

// The load is the same for each process: as processes are added, so are clients, each of which begins a transaction at set times. Without a pace the
// emulator, which all share, would be the bottleneck: each of several processes would do less than one alone, and divide what
// it costs at rest, and what wakes it up, among fewer transactions. That says something about load, not about the number of processes.
const (
	clientsOfEach   = 4
	pauseOfClient   = 25 * time.Millisecond // between the beginnings of two transactions
	processesRounds = 5
)

// mostClients have rows of their own.
const mostClients = 4 * clientsOfEach

// processes measures statements over one, two and four processes beside the coordinator, whose processor time counts too. The numbers take turns, since
// what else the machine does changes the processor time of everything.
func (o *Options) processes(ctx context.Context, d *deployment) (all []Processes, rest []Rest, err error) {
	conn, err := d.sqls[0].connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := execAll(ctx, conn, schemaOfRequests...); err != nil {
		return nil, nil, err
	}
	if err := awaitLeases(ctx); err != nil {
		return nil, nil, err
	}
	coordinator, others := d.sqls[0], d.sqls[1:]
	for _, r := range []struct {
		what string
		of   *sqlProcess
	}{{"the coordinator", coordinator}, {"another process", others[0]}} {
		at, err := r.of.atRest(ctx, o.TurnFor)
		if err != nil {
			return nil, nil, err
		}
		at.What = r.what
		rest = append(rest, at)
	}
	numbers := []int{1, 2, 4}
	micros := make([][]float64, len(numbers))
	all = make([]Processes, len(numbers))
	for range processesRounds {
		for i, n := range numbers {
			r, err := o.round(ctx, coordinator, others[:n])
			if err != nil {
				return all, rest, fmt.Errorf("%d processes: %w", n, err)
			}
			r.cpu -= rest[0].CPUMillis / 1e3 * r.took
			all[i].Transactions += r.transactions
			all[i].Switches += r.switches
			micros[i] = append(micros[i], 1e6*r.cpu/float64(r.transactions))
		}
	}
	for i, n := range numbers {
		slices.Sort(micros[i])
		all[i].Number, all[i].CPUMicros = n, micros[i][processesRounds/2]
		all[i].Least, all[i].Most = micros[i][0], micros[i][processesRounds-1]
		all[i].Switches /= float64(all[i].Transactions)
	}
	return all, rest, nil
}

// atRest measures a process for a while.
func (s *sqlProcess) atRest(ctx context.Context, d time.Duration) (r Rest, err error) {
	meter, err := usage.Open(ctx, usage.Options{PIDs: []string{strconv.Itoa(s.PID())}})
	if err != nil {
		return r, err
	}
	defer meter.Close()
	before, err := s.counters(ctx)
	if err != nil {
		return r, err
	}
	begun := time.Now()
	used, err := meter.Read(ctx)
	if err != nil {
		return r, err
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return r, ctx.Err()
	}
	since, err := meter.Read(ctx)
	if err != nil {
		return r, err
	}
	after, err := s.counters(ctx)
	took := time.Since(begun).Seconds()
	for _, method := range []string{"ReadRows", "CheckAndMutateRow", "MutateRow", "MutateRows"} {
		r.Requests += (after[requestsOf(method)] - before[requestsOf(method)]) / took
	}
	r.Rows = (after[rowsRead] - before[rowsRead]) / took
	r.CPUMillis = 1e3 * (since.Server() - used.Server()) / took
	return r, err
}

// round is what is measured of a number of processes and the coordinator.
type round struct {
	transactions int
	cpu, took    float64 // seconds
	switches     float64
}

// round measures the load over sqls.
func (o *Options) round(ctx context.Context, coordinator *sqlProcess, sqls []*sqlProcess) (r round, err error) {
	pids := []string{strconv.Itoa(coordinator.PID())}
	for _, s := range sqls {
		pids = append(pids, strconv.Itoa(s.PID()))
	}
	meter, err := usage.Open(ctx, usage.Options{PIDs: pids})
	if err != nil {
		return r, err
	}
	defer meter.Close()
	if _, err := o.load(ctx, sqls, time.Second); err != nil { // Plans.
		return r, err
	}
	before, err := meter.Read(ctx)
	if err != nil {
		return r, err
	}
	begun, slept := time.Now(), switches(pids)
	if r.transactions, err = o.load(ctx, sqls, o.TurnFor); err != nil {
		return r, err
	}
	after, err := meter.Read(ctx)
	r.cpu, r.took, r.switches = after.Server()-before.Server(), time.Since(begun).Seconds(), switches(pids)-slept
	return r, err
}

// switches returns how often the threads of processes have gone to sleep, by the kernel's accounts; 0 where it keeps none.
func switches(pids []string) (n float64) {
	for _, pid := range pids {
		files, _ := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "status")) // its only error is that of a bad pattern
		for _, file := range files {
			status, err := os.ReadFile(file)
			if err != nil {
				continue // the thread has ended
			}
			_, rest, _ := strings.Cut(string(status), "\nvoluntary_ctxt_switches:")
			line, _, _ := strings.Cut(rest, "\n")
			if k, err := strconv.ParseFloat(strings.TrimSpace(line), 64); err == nil {
				n += k
			}
		}
	}
	return n
}

// load has clients update and read rows of their own for a while.
func (o *Options) load(ctx context.Context, sqls []*sqlProcess, d time.Duration) (n int, err error) {
	begun := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	clients := clientsOfEach * len(sqls)
	for client := range clients {
		wg.Go(func() {
			first := begun.Add(pauseOfClient * time.Duration(client) / time.Duration(clients))
			done, failed := rowsOf(ctx, sqls[client%len(sqls)], client, first, begun.Add(d))
			mu.Lock()
			defer mu.Unlock()
			n += done
			err = errors.Join(err, failed)
		})
	}
	wg.Wait()
	return n, err
}

// rowsOf is the load of a client.
func rowsOf(ctx context.Context, s *sqlProcess, client int, first, until time.Time) (done int, err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const own = scanned / mostClients
	for next := first; next.Before(until); next = next.Add(pauseOfClient) {
		time.Sleep(time.Until(next))
		id := 1 + client*own + done%own
		sql := "UPDATE r SET n = n + 1 WHERE id = $1"
		if done%2 == 1 {
			sql = "SELECT n FROM r WHERE id = $1"
		}
		if _, err := conn.Exec(ctx, sql, id); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// Outage is what happens to others when a process is killed.
type Outage struct {
	Killed string `json:"killed"`
	// Released is the time from the kill until another process had the row that a transaction of the killed one had locked.
	Released time.Duration `json:"released"`
	// Others are statements that other processes executed meanwhile, Longest the slowest of them.
	Others  int           `json:"others"`
	Longest time.Duration `json:"longest"`
}

// outages kills a process, and then the coordinator.
func (o *Options) outages(ctx context.Context, d *deployment) (all []Outage, err error) {
	conn, err := d.sqls[0].connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := execAll(ctx, conn, "CREATE TABLE o (id int PRIMARY KEY, n int)", "INSERT INTO o VALUES (1, 0), (2, 0)"); err != nil {
		return nil, err
	}
	for _, k := range []struct {
		killed              string
		victim, heir, other int
	}{{"a process", 1, 2, 0}, {"the coordinator", 0, 2, 3}} {
		out, err := outage(ctx, d.sqls[k.victim], d.sqls[k.heir], d.sqls[k.other])
		if err != nil {
			return all, fmt.Errorf("%s is killed: %w", k.killed, err)
		}
		out.Killed = k.killed
		all = append(all, *out)
	}
	return all, nil
}

// outage kills a process that has locked a row, and waits for the row in another, while a third serves other rows.
func outage(ctx context.Context, victim, heir, other *sqlProcess) (out *Outage, err error) {
	out = &Outage{}
	conn, err := heir.connect(ctx)
	if err != nil {
		return out, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	beside, err := other.connect(ctx)
	if err != nil {
		return out, err
	}
	defer beside.Close(context.WithoutCancel(ctx))
	holding, err := victim.connect(ctx)
	if err != nil {
		return out, err
	}
	defer holding.Close(context.WithoutCancel(ctx))
	if err := execAll(ctx, holding, "BEGIN", "UPDATE o SET n = 1 WHERE id = 1"); err != nil {
		return out, err
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, "UPDATE o SET n = 2 WHERE id = 1")
		waiting <- err
	}()
	time.Sleep(settle)
	victim.Kill()
	killed := time.Now()
	for {
		select {
		case err := <-waiting:
			out.Released = time.Since(killed)
			return out, err
		default:
		}
		begun := time.Now()
		if _, err := beside.Exec(ctx, "UPDATE o SET n = n + 1 WHERE id = 2"); err != nil {
			return out, err
		}
		out.Others++
		out.Longest = max(out.Longest, time.Since(begun))
	}
}
