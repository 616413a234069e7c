package crawl

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/internal/process"
)

// Goal: rates that make no sense are refused before anything is measured. Method: table of options.
func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{Shares: []float64{10, 5}}, {Shares: []float64{0}}, {Documents: -1}, {Links: -1}, {Duration: -time.Second},
	} {
		if err := o.fill(); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	var o Options
	if err := o.fill(); err != nil || o.Documents == 0 || len(o.Shares) == 0 {
		t.Errorf("defaults: %+v, %v", o, err)
	}
}

// Goal: the page has both curves. Method: a page of a made-up result.
func TestPageHasBothCurves(t *testing.T) {
	r := Result{Documents: 10, Links: 2, Points: []Point{
		{Share: 10, Rate: 1, Observers: Way{Crawled: 1, P50: 0.002, P99: 0.01, Samples: 9}, Batch: Way{Crawled: 1, P50: 2, P99: 3, Samples: 9, Jobs: 3}},
		{Share: 100, Rate: 10, Observers: Way{Crawled: 10, P50: 0.003, P99: 0.02, Samples: 90}, Batch: Way{Crawled: 9, P50: 2, P99: 4, Samples: 90, Jobs: 3}},
	}}
	var b bytes.Buffer
	if err := report.WriteDocument(&b, r.Document()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"batch job p50", "observers p99", "percent of the repository"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
}

// Goal: both ways are measured at each rate, and derive what a recomputation does. Method: a small repository, with a server built from
// this tree; Run itself compares.
func TestRun(t *testing.T) {
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
	res, err := Run(ctx, Options{URL: "postgres://postgres@" + addr + "/percodb", Documents: 300, Links: 5,
		Shares: []float64{100_000, 500_000}, Duration: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range res.Points {
		if p.Observers.Samples == 0 || p.Batch.Samples == 0 {
			t.Errorf("%+v", p)
		}
	}
}
