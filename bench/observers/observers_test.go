package observers

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/process"
	"github.com/percodb/percodb/internal/testdb"
)

// tiny measures in seconds.
var tiny = Options{Duration: time.Second, Rows: 2000, Pending: 200, Backlog: 2000, Rate: 200}

// Goal: every figure of percodb is measured, and what its observers derive equals a recomputation. Method: the measurement of a few
// rows, with a server built from this tree.
func TestPercodb(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	binary, err := process.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(binary, nil, "start", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	addr, err := p.AwaitReady(ctx)
	if err != nil {
		t.Fatal(err)
	}
	o := tiny
	o.URL, o.PID, o.Notice = "postgres://postgres@"+addr+"/percodb", strconv.Itoa(p.PID()), func(text string) { t.Log(text) }
	res, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Figures) < 10 {
		t.Errorf("%d figures", len(res.Figures))
	}
	if err := res.Table().WriteText(os.Stderr); err != nil {
		t.Fatal(err)
	}
	o.WriterURL = o.URL // one SQL process is both
	across, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(across.Figures) != 2 || across.Figures[0].Percodb <= 0 || across.Figures[0].Percodb > across.Figures[1].Percodb {
		t.Errorf("latency from one SQL process to another: %+v", across.Figures)
	}
}

// Goal: the workers of PostgreSQL derive the same. Method: the measurement of a few rows, in a schema of the server that the
// environment names.
func TestPostgres(t *testing.T) {
	url := testdb.Schema(t.Context(), t, "bench_observers")
	o := tiny
	if err := o.fill(); err != nil {
		t.Fatal(err)
	}
	s, err := open(t.Context(), o, &postgres{}, url, strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	figures := map[string]float64{}
	if err := s.measureAll(t.Context(), func(name, _ string, v float64) { figures[name] = v }); err != nil {
		t.Fatal(err)
	}
	if len(figures) < 7 {
		t.Errorf("figures: %v", figures)
	}
}

// Goal: settings that make no sense are refused before anything is measured. Method: table of options.
func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Rows: 59, Pending: 6}, {Rate: -1}, {Duration: -time.Second}, {Pending: -1}} {
		if err := o.fill(); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
