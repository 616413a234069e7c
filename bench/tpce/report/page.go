package report

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// WritePage writes an HTML page of one result, or of two compared.
func WritePage(w io.Writer, results ...*Result) error {
	d, err := document(results)
	if err != nil {
		return err
	}
	return WriteDocument(w, d)
}

// WritePageFile writes the page to a file.
func WritePageFile(path string, results ...*Result) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(WritePage(f, results...), f.Close())
}

// document returns the contents of the page.
func document(results []*Result) (Document, error) {
	if len(results) < 1 || len(results) > 2 {
		return Document{}, fmt.Errorf("a page shows one result or two, not %d", len(results))
	}
	d := Document{Title: "A brokerage modelled after TPC-E", Subtitle: "Not TPC-E: the results are not comparable with published ones."}
	names := make([]string, len(results))
	for i, r := range results {
		names[i] = r.name()
	}
	if len(results) == 2 {
		if names[0] == names[1] {
			names[0], names[1] = names[0]+" (first)", names[1]+" (second)"
		}
		d.Runs = names
	} else {
		d.Title += ": " + names[0]
	}
	latencies, err := distributions(names, results)
	if err != nil {
		return Document{}, err
	}
	summary := Section{Title: "Result", Tables: []Table{summaryTable(names, results)}}
	for i, r := range results {
		for _, reason := range r.Reasons {
			summary.Text += fmt.Sprintf("%s is not valid because %s. ", names[i], reason)
		}
	}
	d.Sections = []Section{
		summary,
		{Title: "Over time", Text: "Each point is an interval that ends there. The shaded part is the ramp, which does not count.", Charts: timeCharts(names, results)},
		{Title: "Response times by transaction", Text: "From the scheduled start to the end, retries included: the share of transactions (across) that took at most so long (up).", Charts: latencies},
		{Title: "Response time over time by transaction", Text: "The ninetieth percentile of each interval.", Charts: kindCharts(names, results)},
		{Title: "Transactions", Text: "Times are in milliseconds. Aborts are attempts that were retried; sv-p90 is the ninetieth percentile from the actual start, trips is how often a transaction waited for the server, on average.", Tables: typeTables(names, results)},
		{Title: "Settings", Tables: []Table{settingsTable(names, results)}},
	}
	return d, nil
}

// name returns the displayed name of a run.
func (r *Result) name() string {
	if r.Label != "" {
		return r.Label
	}
	return r.Server.Name()
}

// percodbVersion matches percodb's own version in its version(), which begins with PostgreSQL's.
var percodbVersion = regexp.MustCompile(`\((percodb [^)]+)\)`)

// Name returns the server's name and version, without compiler and platform.
func (s Server) Name() string {
	if m := percodbVersion.FindStringSubmatch(s.Version); m != nil {
		return m[1]
	}
	words := strings.Fields(s.Version)
	return strings.Join(words[:min(len(words), 2)], " ")
}

// summaryTable returns the main figures, and the ratio of the second run to the first.
func summaryTable(names []string, results []*Result) Table {
	t := Table{Header: append([]string{""}, names...)}
	if len(results) == 2 {
		t.Header = append(t.Header, "second ÷ first")
	}
	text := func(name string, of func(*Result) string) {
		row := []string{name}
		for _, r := range results {
			row = append(row, of(r))
		}
		if len(results) == 2 {
			row = append(row, "")
		}
		t.Rows = append(t.Rows, row)
	}
	figure := func(name string, of func(*Result) float64) {
		row := []string{name}
		for _, r := range results {
			row = append(row, show(of(r)))
		}
		if len(results) == 2 {
			row = append(row, ratio(of(results[1]), of(results[0])))
		}
		t.Rows = append(t.Rows, row)
	}
	text("verdict", (*Result).word)
	figure("Trade-Results per second", func(r *Result) float64 { return r.MeasuredTR })
	text("of nominal", func(r *Result) string {
		if !r.Paced {
			return "unpaced"
		}
		return fmt.Sprintf("%.1f %% of %s", 100*r.Ratio, show(r.Nominal))
	})
	figure("transactions per second", func(r *Result) float64 { return quotient(float64(r.Transactions()), r.Interval.MeasureS) })
	figure("Trade-Result p90, ms", func(r *Result) float64 { return r.Of(mix.TradeResult).LatencyMS.P90 })
	figure("Trade-Result p99, ms", func(r *Result) float64 { return r.Of(mix.TradeResult).LatencyMS.P99 })
	figure("aborted attempts per 1000 Trade-Results", func(r *Result) float64 {
		return 1000 * quotient(float64(r.aborts()), float64(r.Of(mix.TradeResult).Count))
	})
	if slices.ContainsFunc(results, func(r *Result) bool { return r.CPU != nil }) {
		cpu := func(of func(*CPU) float64) func(*Result) float64 {
			return func(r *Result) float64 {
				if r.CPU == nil {
					return 0
				}
				return of(r.CPU)
			}
		}
		figure("server cores used", cpu(func(c *CPU) float64 { return c.CoresServer }))
		figure("server CPU-ms per Trade-Result", cpu(func(c *CPU) float64 { return 1000 * c.PerTRS }))
		figure("server CPU-ms per transaction", cpu(func(c *CPU) float64 { return 1000 * c.PerTxS }))
		figure("Trade-Results per core-second", cpu(func(c *CPU) float64 { return c.TRPerCore }))
		figure("driver cores used", cpu(func(c *CPU) float64 { return c.CoresDriver }))
	}
	text("measured for", func(r *Result) string { return fmt.Sprintf("%.0f s", r.Interval.MeasureS) })
	text("server", func(r *Result) string { return r.Server.Name() })
	return t
}

func ratio(a, b float64) string {
	if b == 0 {
		return "–"
	}
	return strconv.FormatFloat(a/b, 'f', 2, 64)
}

// aborts counts the attempts of all kinds that were retried.
func (r *Result) aborts() (n int64) {
	for _, t := range r.Types {
		for _, c := range t.Aborts {
			n += c
		}
	}
	return n
}

// lineOf returns the line of the points for which of has a value.
func lineOf(name string, color, dash int, series []Point, of func(*Point) (float64, bool)) Line {
	l := Line{Name: name, Color: color, Dash: dash, X: []float64{}, Y: []float64{}}
	for i := range series {
		p := &series[i]
		y, ok := of(p)
		if ok && (len(l.X) == 0 || p.T > l.X[len(l.X)-1]) {
			l.X, l.Y = append(l.X, round(p.T)), append(l.Y, round(y))
		}
	}
	return l
}

// round rounds to four decimals, more than a chart shows.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// timeCharts returns the charts of the series.
func timeCharts(names []string, results []*Result) []Chart {
	chart := func(title, label string, parts ...part) Chart {
		c := Chart{Title: title, Axis: Seconds, XLabel: "seconds since measuring began", YLabel: label}
		for run, r := range results {
			for n, p := range parts {
				c.Lines = append(c.Lines, lineOf(lineName(names, run, p.name), run, n, r.Series, p.of))
			}
			if r.Paced && r.Nominal > 0 && label == "Trade-Results/s" {
				c.Lines = append(c.Lines, lineOf(lineName(names, run, "nominal"), run, 2, r.Series, func(*Point) (float64, bool) { return r.Nominal, true }))
			}
		}
		return c
	}
	always := func(of func(*Point) float64) func(*Point) (float64, bool) {
		return func(p *Point) (float64, bool) { return of(p), true }
	}
	return []Chart{
		chart("Trade-Results", "Trade-Results/s", part{"Trade-Results/s", always(func(p *Point) float64 { return p.TR })}),
		chart("Transactions of the mix", "transactions/s", part{"transactions/s", always(func(p *Point) float64 { return p.Tx })}),
		chart("Response time of Trade-Result", "milliseconds",
			part{"p50", func(p *Point) (float64, bool) { return p.TRLatMS.P50, p.TR > 0 }},
			part{"p90", func(p *Point) (float64, bool) { return p.TRLatMS.P90, p.TR > 0 }},
			part{"p99", func(p *Point) (float64, bool) { return p.TRLatMS.P99, p.TR > 0 }}),
		chart("Conflicts: attempts that were retried", "aborts/s",
			part{"all", always(func(p *Point) float64 { return p.Aborts })},
			part{"Trade-Result", always(func(p *Point) float64 { return p.AbortsTR })}),
		chart("Processors", "cores in use",
			part{"server", always(func(p *Point) float64 { return p.CoresServer })},
			part{"driver", always(func(p *Point) float64 { return p.CoresDriver })}),
		chart("Failed, and with an outcome unknown", "transactions per interval",
			part{"failed", always(func(p *Point) float64 { return float64(p.Errors) })},
			part{"unknown", always(func(p *Point) float64 { return float64(p.Unknown) })}),
	}
}

// part is one of the lines of each run in a chart.
type part struct {
	name string
	of   func(*Point) (float64, bool)
}

// lineName returns the name of a line: its run, if there are two, and its subject.
func lineName(names []string, run int, what string) string {
	if len(names) == 1 {
		return what
	}
	return names[run] + " " + what
}

// kindCharts returns the charts of each kind's ninetieth percentile over time.
func kindCharts(names []string, results []*Result) []Chart {
	var charts []Chart
	for k := range mix.Kind(mix.InMix) {
		fact := mix.Of(k)
		c := Chart{Title: fact.Name, Axis: Seconds, XLabel: "seconds since measuring began", YLabel: "p90, milliseconds"}
		for run, r := range results {
			c.Lines = append(c.Lines, lineOf(lineName(names, run, "p90"), run, 0, r.Series, func(p *Point) (float64, bool) {
				v, ok := p.P90[fact.Code]
				return v, ok
			}))
		}
		charts = append(charts, c)
	}
	return charts
}

// distributions returns the charts of each kind's distribution of response times.
func distributions(names []string, results []*Result) ([]Chart, error) {
	var charts []Chart
	for k := range mix.Kind(mix.InMix) {
		c := Chart{Title: mix.Of(k).Name, Axis: Nines, XLabel: "share of transactions", YLabel: "milliseconds", LogY: true}
		for run, r := range results {
			h, err := r.histogram(k)
			if err != nil {
				return nil, err
			}
			c.Lines = append(c.Lines, distribution(lineName(names, run, "response time"), run, h))
		}
		charts = append(charts, c)
	}
	return charts, nil
}

// distribution returns the line of a histogram, from its smallest value to its largest, in steps of a twentieth of a nine.
func distribution(name string, color int, h *hdrhistogram.Histogram) Line {
	l := Line{Name: name, Color: color, X: []float64{}, Y: []float64{}}
	if h.TotalCount() == 0 {
		return l
	}
	end := math.Log10(float64(h.TotalCount()))
	for i := 0; ; i++ {
		nines := min(float64(i)/20, end)
		quantile := 100 * (1 - math.Pow(10, -nines))
		if nines == end {
			quantile = 100 // the maximum
		}
		us := max(h.ValueAtQuantile(quantile), 1) // a logarithmic axis has no 0
		if n := len(l.X); n > 0 && round(nines) <= l.X[n-1] {
			l.X, l.Y = l.X[:n-1], l.Y[:n-1]
		}
		l.X, l.Y = append(l.X, round(nines)), append(l.Y, float64(us)/1000)
		if nines >= end {
			return l
		}
	}
}

// typeTables returns the final table of each run.
func typeTables(names []string, results []*Result) []Table {
	var tables []Table
	for run, r := range results {
		t := Table{Header: []string{"transaction", "count", "mix %", "target %", "per s", "mean", "p50", "p90", "p99", "p99.9", "max", "limit", "kept", "sv-p90", "aborts", "failed", "unknown", "trips"}}
		if len(results) > 1 {
			t.Title = names[run]
		}
		for k := range mix.Kind(mix.Kinds) {
			if y := r.Types[mix.Of(k).Flag]; y != nil {
				t.Rows = append(t.Rows, y.cells(k))
			}
		}
		tables = append(tables, t)
	}
	return tables
}

func (t *Type) cells(k mix.Kind) []string {
	share, target, limit, kept := "", "", "", ""
	if int(k) < mix.InMix {
		share, target = fmt.Sprintf("%.2f", t.Mix), fmt.Sprintf("%.2f", t.Target)
	}
	if t.LimitMS > 0 {
		limit, kept = show(t.LimitMS), "no"
		if t.Pass {
			kept = "yes"
		}
	}
	var aborts int64
	for _, n := range t.Aborts {
		aborts += n
	}
	l := t.LatencyMS
	return []string{
		k.String(), strconv.FormatInt(t.Count, 10), share, target, show(t.Rate), show(l.Mean), show(l.P50), show(l.P90), show(l.P99), show(l.P999), show(l.Max),
		limit, kept, show(t.ServiceMS.P90), strconv.FormatInt(aborts, 10), strconv.FormatInt(t.Failed, 10), strconv.FormatInt(t.Unknown, 10),
		fmt.Sprintf("%.1f", quotient(float64(t.RoundTrips), float64(t.Count))),
	}
}

// settingsTable returns the settings of the runs, including scale and flags.
func settingsTable(names []string, results []*Result) Table {
	t := Table{Header: append([]string{"setting"}, names...), Wrap: true}
	all := map[string][]string{}
	put := func(run int, name, value string) {
		if all[name] == nil {
			all[name] = make([]string, len(results))
		}
		all[name][run] = value
	}
	for run, r := range results {
		for name, value := range r.Settings {
			put(run, name, value)
		}
		put(run, "version()", r.Server.Version)
		put(run, "customers of the database", strconv.FormatInt(r.Scale.Customers, 10))
		put(run, "days of trades before the run", strconv.FormatInt(r.Scale.TradeDays, 10))
		put(run, "foreign keys", strconv.FormatBool(r.Scale.ForeignKeys))
		put(run, "departs from the specification in", strings.Join(r.Flags, ", "))
		put(run, "began", r.Started.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Rows = append(t.Rows, append([]string{name}, all[name]...))
	}
	return t
}

// WriteSummary writes the page's first table as text: the main figures of one result, or of two with their
// ratio.
func WriteSummary(w io.Writer, results ...*Result) error {
	d, err := document(results)
	if err != nil {
		return err
	}
	return d.Sections[0].Tables[0].WriteText(w)
}
