package crawl

import (
	"fmt"

	"github.com/percodb/percodb/bench/tpce/report"
)

// Table returns the figures as a table.
func (r *Result) Table() report.Table {
	t := report.Table{Header: []string{"% of the repository/h", "documents/s", "observers: crawled/s", "p50 ms", "p99 ms", "batch: crawled/s", "p50 ms", "p99 ms", "jobs"}}
	for _, p := range r.Points {
		row := []string{fmt.Sprintf("%g", p.Share), fmt.Sprintf("%.1f", p.Rate)}
		for _, w := range []Way{p.Observers, p.Batch} {
			row = append(row, fmt.Sprintf("%.1f", w.Crawled), fmt.Sprintf("%.1f", 1000*w.P50), fmt.Sprintf("%.1f", 1000*w.P99))
		}
		t.Rows = append(t.Rows, append(row, fmt.Sprint(p.Batch.Jobs)))
	}
	return t
}

// Document returns a page with both curves.
func (r *Result) Document() report.Document {
	c := report.Chart{Title: "From crawl to visibility", Axis: report.Log, LogY: true,
		XLabel: "crawl rate, percent of the repository per hour", YLabel: "seconds"}
	for _, p := range r.Points {
		c.Steps = append(c.Steps, p.Share)
	}
	for i, way := range []struct {
		name string
		of   func(Point) Way
	}{{"batch job", func(p Point) Way { return p.Batch }}, {"observers", func(p Point) Way { return p.Observers }}} {
		for dash, q := range []struct {
			name string
			of   func(Way) float64
		}{{"p50", func(w Way) float64 { return w.P50 }}, {"p99", func(w Way) float64 { return w.P99 }}} {
			l := report.Line{Name: way.name + " " + q.name, Color: i, Dash: dash, X: []float64{}, Y: []float64{}}
			for _, p := range r.Points {
				if v := q.of(way.of(p)); v > 0 {
					l.X, l.Y = append(l.X, p.Share), append(l.Y, v)
				}
			}
			c.Lines = append(c.Lines, l)
		}
	}
	return report.Document{
		Title:    "Documents crawled anew: observers and a batch job",
		Subtitle: fmt.Sprintf("%d documents with %d links each; crawler, server and job share one machine.", r.Documents, r.Links),
		Sections: []report.Section{{
			Title: "Latency",
			Text: "The time from when a document was due to be crawled until duplicates are clustered and links inverted. Observers handle each document by itself; " +
				"the batch job derives the index of the whole repository, again and again.",
			Tables: []report.Table{r.Table()}, Charts: []report.Chart{c},
		}},
	}
}
