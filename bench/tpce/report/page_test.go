package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// chartsOf parses the charts of a page.
func chartsOf(t *testing.T, page string) []Chart {
	t.Helper()
	m := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the page has no data")
	}
	var charts []Chart
	if err := json.Unmarshal([]byte(m[1]), &charts); err != nil {
		t.Fatal(err)
	}
	return charts
}

// TestPage: the page of two runs has a figure for each chart and each run's series, escapes markup in names, and has
// no external references.
func TestPage(t *testing.T) {
	a, b := sampleResult("first <b>&</script>", 1, 1), sampleResult("second", 2, 3)
	var out bytes.Buffer
	if err := WritePage(&out, a, b); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	charts := chartsOf(t, page)
	if n := strings.Count(page, "<figure data-chart="); n != len(charts) || n < 20 {
		t.Errorf("%d figures for %d charts", n, len(charts))
	}
	for i := range charts {
		if !strings.Contains(page, `data-chart="`+string(must(json.Marshal(i)))+`"`) {
			t.Errorf("chart %d has no figure", i)
		}
		if charts[i].YLabel == "" || charts[i].XLabel == "" {
			t.Errorf("%s: an axis has no label", charts[i].Title)
		}
	}
	rates := charts[0]
	if rates.Title != "Trade-Results" || len(rates.Lines) != 4 {
		t.Fatalf("%+v", rates)
	}
	for run, r := range []*Result{a, b} {
		l := rates.Lines[2*run]
		if len(l.X) != len(r.Series) || l.Color != run {
			t.Fatalf("run %d: %d points of %d, colour %d", run, len(l.X), len(r.Series), l.Color)
		}
		for i, p := range r.Series {
			if math.Abs(l.X[i]-p.T) > 1e-3 || math.Abs(l.Y[i]-p.TR) > 1e-3 {
				t.Errorf("run %d, point %d: (%v, %v), not (%v, %v)", run, i, l.X[i], l.Y[i], p.T, p.TR)
			}
		}
	}
	if !strings.Contains(page, "first &lt;b&gt;&amp;&lt;/script&gt;") || strings.Contains(page, "<b>") {
		t.Error("a name is markup")
	}
	for _, m := range regexp.MustCompile(`(?i)(src|href)\s*=|url\(|@import|fetch\(|XMLHttpRequest|import\(`).FindAllString(page, -1) {
		t.Errorf("the page refers to something: %s", m)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestPageOfOddResults: there is a page of one run, of runs without series or processor times, and of runs without
// completed transactions; no runs, or three, are an error.
func TestPageOfOddResults(t *testing.T) {
	bare := sampleResult("", 1, 1)
	bare.CPU, bare.Series, bare.MEE, bare.Journal = nil, nil, nil, nil
	for _, results := range [][]*Result{{bare}, {{Schema: Schema}}, {{Schema: Schema}, bare}, {bare, bare}} {
		var out bytes.Buffer
		if err := WritePage(&out, results...); err != nil {
			t.Error(err)
		}
		chartsOf(t, out.String())
	}
	for _, results := range [][]*Result{nil, {bare, bare, bare}} {
		if WritePage(&bytes.Buffer{}, results...) == nil {
			t.Errorf("%d results have a page", len(results))
		}
	}
}

// TestServerName: a server has its own name, not the name of the server with which it is compatible.
func TestServerName(t *testing.T) {
	for version, want := range map[string]string{
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc":        "PostgreSQL 15.18",
		"PostgreSQL 15.0 (percodb 0.1.0), percodb: a transactional SQL database over sharded keys": "percodb 0.1.0",
		"": "",
	} {
		if got := (Server{Version: version}).Name(); got != want {
			t.Errorf("%q is %q", version, got)
		}
	}
}

// TestDistribution: the line of a kind's response times ends at the maximum, and its value at one nine is
// the ninetieth percentile.
func TestDistribution(t *testing.T) {
	res := sampleResult("", 1, 1)
	h := must(res.histogram(1))
	l := distribution("", 0, h)
	last := len(l.X) - 1
	if math.Abs(l.Y[last]-res.Types["trade-result"].LatencyMS.Max) > 0.01 || math.Abs(l.X[last]-math.Log10(float64(h.TotalCount()))) > 1e-3 {
		t.Errorf("ends at (%v, %v)", l.X[last], l.Y[last])
	}
	if l.X[20] != 1 || math.Abs(l.Y[20]-res.Types["trade-result"].LatencyMS.P90) > 0.02 {
		t.Errorf("(%v, %v), not %v", l.X[20], l.Y[20], res.Types["trade-result"].LatencyMS.P90)
	}
}

// TestChartsAreChecked: a chart that the page cannot draw is an error, not an empty chart.
func TestChartsAreChecked(t *testing.T) {
	for name, l := range map[string]Line{
		"lengths": {X: []float64{1, 2}, Y: []float64{1}}, "NaN": {X: []float64{1}, Y: []float64{math.NaN()}},
		"backwards": {X: []float64{2, 1}, Y: []float64{1, 1}}, "logarithm of 0": {X: []float64{1}, Y: []float64{0}},
	} {
		d := Document{Sections: []Section{{Charts: []Chart{{LogY: true, Lines: []Line{l}}}}}}
		if WriteDocument(&bytes.Buffer{}, d) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestPageInBrowser opens the page in a headless Chromium, if one is installed, and checks that every chart
// was drawn: there is a canvas in every figure.
func TestPageInBrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := WritePageFile(path, sampleResult("first", 1, 1), sampleResult("second", 2, 3)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=5000", "--dump-dom", "file://"+path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	if figures, canvases := bytes.Count(dom, []byte("<figure")), bytes.Count(dom, []byte("<canvas")); figures < 20 || canvases != figures {
		t.Errorf("%d figures, %d of them drawn", figures, canvases)
	}
}

// TestWritePages writes pages to a directory for inspection: -pages DIR.
func TestWritePages(t *testing.T) {
	if *pages == "" {
		t.Skip("no -pages")
	}
	a, b := sampleResult("percodb", 1, 1), sampleResult("PostgreSQL 15", 2, 1.7)
	if err := errors.Join(WritePageFile(filepath.Join(*pages, "one.html"), a), WritePageFile(filepath.Join(*pages, "two.html"), a, b)); err != nil {
		t.Fatal(err)
	}
}

var pages = flag.String("pages", "", "directory that TestWritePages writes to")
