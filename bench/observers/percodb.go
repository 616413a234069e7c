package observers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/bench/tpce/usage"
)

// percodb handles changes with an observer.
type percodb struct{}

func (percodb) name() string { return "percodb" }

// observe makes an observer, and disables it.
func (percodb) observe(ctx context.Context, s *server, w work) error {
	sql := fmt.Sprintf("CREATE OBSERVER bench ON observed WITH (concurrency = %d) AS $$ UPDATE copied SET v = NEW.v WHERE id = KEY.id $$", w.workers)
	if w.counters {
		sql = fmt.Sprintf(`CREATE OBSERVER bench ON observed WITH (batch = %d, concurrency = %d) AS $$
			UPDATE counters SET n = counters.n + d.n FROM (
				SELECT grp, sum(v) AS n FROM (
					SELECT grp, v FROM changed WHERE NOT _deleted
					UNION ALL SELECT l.grp, -l.v FROM last l JOIN changed c ON c.id = l.id) x GROUP BY grp) d
				WHERE counters.grp = d.grp;
			INSERT INTO last SELECT id, grp, v FROM changed WHERE NOT _deleted
				ON CONFLICT (id) DO UPDATE SET grp = excluded.grp, v = excluded.v
		$$`, w.batch, w.workers)
	}
	return s.exec(ctx, sql, "ALTER OBSERVER bench DISABLE")
}

func (percodb) start(ctx context.Context, s *server, _ work) (func() error, error) {
	return func() error { return s.exec(context.WithoutCancel(ctx), "ALTER OBSERVER bench DISABLE") }, s.exec(ctx, "ALTER OBSERVER bench ENABLE")
}

func (percodb) wait(ctx context.Context, s *server) error {
	return s.exec(ctx, "WAIT FOR OBSERVER bench")
}

// latencies are the server's, from the commit timestamp of a change to the commit of its handling, of the last 1,024 changes.
func (percodb) latencies(ctx context.Context, s *server) (p50, p99 float64, err error) {
	err = s.pool.QueryRow(ctx, "SELECT latency_p50_ms, latency_p99_ms FROM percodb.observers WHERE name = 'bench'").Scan(&p50, &p99)
	return p50, p99, err
}

// alone measures idle observers, and a backlog.
func (p percodb) alone(ctx context.Context, s *server, put func(name, unit string, v float64)) error {
	if err := p.idle(ctx, s, put); err != nil || s.o.Backlog < 0 {
		return err
	}
	return p.backlog(ctx, s, put)
}

// idle measures the CPU time of a hundred observers without changes.
func (percodb) idle(ctx context.Context, s *server, put func(name, unit string, v float64)) error {
	const tables, each = 10, 10
	s.o.Notice("percodb: idle observers")
	meter, err := usage.Open(ctx, usage.Options{PIDs: []string{s.pid}})
	if err != nil {
		return err
	}
	defer meter.Close()
	if err := s.exec(ctx, "DROP TABLE IF EXISTS observed"); err != nil {
		return err
	}
	share := func() (float64, error) {
		if err := pause(ctx, 5*time.Second); err != nil { // until work of earlier statements is over
			return 0, err
		}
		before, err := meter.Read(ctx)
		if err != nil {
			return 0, err
		}
		if err := pause(ctx, 2*s.o.Duration); err != nil {
			return 0, err
		}
		after, err := meter.Read(ctx)
		return 100 * after.Since(before).Server() / after.At.Sub(before.At).Seconds(), err
	}
	without, err := share()
	if err != nil {
		return err
	}
	var creates, drops []string
	for t := range tables {
		creates = append(creates, fmt.Sprintf("CREATE TABLE idle%d (id int PRIMARY KEY, v int)", t))
		for o := range each {
			creates = append(creates, fmt.Sprintf("CREATE OBSERVER idle%d_%d ON idle%d AS $$ UPDATE copied SET v = NEW.v WHERE id = KEY.id $$", t, o, t))
		}
		drops = append(drops, fmt.Sprintf("DROP TABLE IF EXISTS idle%d", t))
	}
	if err := errors.Join(s.exec(ctx, drops...), s.exec(ctx, creates...)); err != nil {
		return err
	}
	with, err := share()
	put("CPU without observers, idle", "% of a core", without)
	put(fmt.Sprintf("CPU with %d observers, idle", tables*each), "% of a core", with)
	return errors.Join(err, s.exec(ctx, drops...))
}

// backlog measures how fast many pending changes are handled, and how much memory grows meanwhile.
func (p percodb) backlog(ctx context.Context, s *server, put func(name, unit string, v float64)) error {
	s.o.Notice(fmt.Sprintf("percodb: backlog of %d changes", s.o.Backlog))
	w := work{batch: 100, workers: 1, counters: true}
	if err := s.create(ctx, w); err != nil {
		return err
	}
	for first := s.o.Rows + 1; first <= s.o.Rows+s.o.Backlog; first += 100_000 {
		_, err := s.pool.Exec(ctx, "INSERT INTO observed SELECT i, i % $1, 1 FROM generate_series($2::int, $3::int) AS i",
			groups, first, min(first+99_999, s.o.Rows+s.o.Backlog))
		if err != nil {
			return err
		}
	}
	before, err := residentMB(s.pid)
	if err != nil {
		return err
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	watched := make(chan watch, 1)
	go func() { watched <- s.watch(watching, before) }()
	begin := time.Now()
	stop, err := p.start(ctx, s, w)
	if err == nil {
		err = p.wait(ctx, s)
	}
	rate := float64(s.o.Backlog) / time.Since(begin).Seconds()
	end()
	seen := <-watched
	if err := errors.Join(err, seen.err); err != nil {
		return err
	}
	put(fmt.Sprintf("backlog of %d: changes handled, %s", s.o.Backlog, w), "/s", rate)
	put("the same, first fifth", "/s", seen.rate(0, s.o.Backlog/5))
	put("the same, last fifth", "/s", seen.rate(s.o.Backlog-s.o.Backlog/5, s.o.Backlog))
	put("resident memory before", "MB", before)
	put("resident memory, peak", "MB", seen.peak)
	return errors.Join(s.verify(ctx, w), stop(), s.exec(ctx, "DROP TABLE observed"))
}

// watch is the progress of a backlog: how many changes were handled at which times, and the largest resident memory in MB.
type watch struct {
	at      []time.Time
	handled []int64
	peak    float64
	err     error
}

// watch reads the progress ten times a second until ctx ends.
func (s *server) watch(ctx context.Context, before float64) watch {
	w := watch{peak: before}
	for pause(ctx, 100*time.Millisecond) == nil {
		mb, err := residentMB(s.pid)
		if err != nil {
			return watch{err: err}
		}
		var n int64
		if err := s.pool.QueryRow(context.WithoutCancel(ctx), "SELECT sum(n)::bigint FROM counters").Scan(&n); err != nil {
			return watch{err: err}
		}
		w.at, w.handled, w.peak = append(w.at, time.Now()), append(w.handled, n), max(w.peak, mb)
	}
	return w
}

// rate returns how many changes a second were handled while their number rose from one value to another; 0 if that took less than two
// readings.
func (w *watch) rate(from, to int) float64 {
	first, last := -1, -1
	for i, n := range w.handled {
		if n >= int64(from) && first < 0 {
			first = i
		}
		if n <= int64(to) {
			last = i
		}
		if n >= int64(to) {
			break
		}
	}
	if first < 0 || last <= first {
		return 0
	}
	return float64(w.handled[last]-w.handled[first]) / w.at[last].Sub(w.at[first]).Seconds()
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// residentMB returns the resident memory of a process.
func residentMB(pid string) (float64, error) {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kb / 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/%s/status has no VmRSS", pid)
}
