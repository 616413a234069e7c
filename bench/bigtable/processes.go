package bigtable

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/percodb/percodb/bench/tpce/usage"
)

// Processes is the processor time of a number of SQL processes.
type Processes struct {
	Number       int     `json:"processes"`
	Transactions int     `json:"transactions"`
	CPUMicros    float64 `json:"cpu_us_per_transaction"`
}

// clientsOfEach are the connections to each process: as processes are added, so is load.
const clientsOfEach = 4

// mostClients have rows of their own.
const mostClients = 4 * clientsOfEach

// processes measures statements over one, two and four processes beside the coordinator, whose processor time counts too.
func (o *Options) processes(ctx context.Context, d *deployment) (all []Processes, err error) {
	conn, err := d.sqls[0].connect(ctx)
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
	coordinator, others := d.sqls[0], d.sqls[1:]
	for _, n := range []int{1, 2, 4} {
		pids := []string{strconv.Itoa(coordinator.PID())}
		for _, s := range others[:n] {
			pids = append(pids, strconv.Itoa(s.PID()))
		}
		meter, err := usage.Open(ctx, usage.Options{PIDs: pids})
		if err != nil {
			return all, err
		}
		p := Processes{Number: n}
		if _, err = o.load(ctx, others[:n], time.Second); err == nil { // Plans, leases of the schema.
			err = p.measure(ctx, o, others[:n], meter)
		}
		meter.Close()
		if err != nil {
			return all, fmt.Errorf("%d processes: %w", n, err)
		}
		all = append(all, p)
	}
	return all, nil
}

func (p *Processes) measure(ctx context.Context, o *Options, sqls []*sqlProcess, meter *usage.Meter) error {
	before, err := meter.Read(ctx)
	if err != nil {
		return err
	}
	if p.Transactions, err = o.load(ctx, sqls, o.TurnFor); err != nil {
		return err
	}
	after, err := meter.Read(ctx)
	p.CPUMicros = 1e6 * (after.Server() - before.Server()) / float64(p.Transactions)
	return err
}

// load has clients update and read rows of their own for a while.
func (o *Options) load(ctx context.Context, sqls []*sqlProcess, d time.Duration) (n int, err error) {
	begun := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for client := range clientsOfEach * len(sqls) {
		wg.Go(func() {
			done, failed := rowsOf(ctx, sqls[client%len(sqls)], client, begun.Add(d))
			mu.Lock()
			defer mu.Unlock()
			n += done
			err = errors.Join(err, failed)
		})
	}
	wg.Wait()
	return n, err
}

func rowsOf(ctx context.Context, s *sqlProcess, client int, until time.Time) (done int, err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const own = scanned / mostClients
	for ; time.Now().Before(until); done++ {
		id := 1 + client*own + done%own
		sql := "UPDATE r SET n = n + 1 WHERE id = $1"
		if done%2 == 1 {
			sql = "SELECT n FROM r WHERE id = $1"
		}
		if _, err := conn.Exec(ctx, sql, id); err != nil {
			return done, err
		}
	}
	return done, nil
}

// Outage is what happens to others when a process is killed.
type Outage struct {
	// Released is the time from the kill until another process had the row that a transaction of the killed one had locked.
	Released time.Duration `json:"released"`
	// Others are statements that other processes executed meanwhile, Longest the slowest of them.
	Others  int           `json:"others"`
	Longest time.Duration `json:"longest"`
}

// outage kills a process, not the coordinator, that has locked a row, and waits for the row in another, while a third serves other rows.
func (o *Options) outage(ctx context.Context, d *deployment) (out *Outage, err error) {
	out = &Outage{}
	victim, heir, other := d.sqls[1], d.sqls[2], d.sqls[0]
	conn, err := heir.connect(ctx)
	if err != nil {
		return out, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := execAll(ctx, conn, "CREATE TABLE o (id int PRIMARY KEY, n int)", "INSERT INTO o VALUES (1, 0), (2, 0)"); err != nil {
		return out, err
	}
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
