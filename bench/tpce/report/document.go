package report

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"math"
	"os"
	"strings"
	"unicode/utf8"
)

// Document is a page of tables and charts. The charts are drawn by uPlot, which the page includes.
type Document struct {
	Title, Subtitle string
	// Runs are the names of the compared runs, in the order of their colours; empty if there is only one.
	Runs     []string
	Sections []Section
}

// Section is a heading with tables and charts.
type Section struct {
	Title, Text string
	Tables      []Table
	Charts      []Chart
}

// Table has cells of text. Its first column is left-aligned, the others right-aligned.
type Table struct {
	Title  string
	Header []string
	Rows   [][]string
	// Wrap breaks long cells into lines.
	Wrap bool
}

// Axis is the kind of a chart's x axis.
type Axis string

const (
	// Linear is an axis of numbers.
	Linear Axis = "linear"
	// Log is a logarithmic axis of numbers above 0.
	Log Axis = "log"
	// Seconds is an axis of seconds since the measuring began; the time before it is shaded.
	Seconds Axis = "seconds"
	// Nines is an axis of percentiles: 0 is 0 %, 1 is 90 %, 2 is 99 %.
	Nines Axis = "nines"
)

// Chart is a set of lines over one axis. Labels name the unit.
type Chart struct {
	Title  string `json:"title"`
	Axis   Axis   `json:"axis"`
	XLabel string `json:"xLabel"`
	YLabel string `json:"yLabel"`
	// LogY makes the y axis logarithmic: values must be above 0.
	LogY bool `json:"logY"`
	// Steps are the labelled values of a Linear or Log axis, such as numbers of processes; if empty, uPlot selects them.
	Steps []float64 `json:"steps,omitempty"`
	Lines []Line    `json:"lines"`
}

// Line is a line of a chart. X ascends; X and Y contain no NaN or infinities.
type Line struct {
	Name string `json:"name"`
	// Color selects one of the page's colours, Dash one of its strokes: 0 is solid.
	Color int       `json:"color"`
	Dash  int       `json:"dash"`
	X     []float64 `json:"x"`
	Y     []float64 `json:"y"`
}

//go:embed assets
var assets embed.FS

// WriteDocument writes a page that needs no network.
func WriteDocument(w io.Writer, d Document) error {
	var charts []Chart
	for _, s := range d.Sections {
		for _, c := range s.Charts {
			if err := c.check(); err != nil {
				return fmt.Errorf("chart %q: %w", c.Title, err)
			}
		}
		charts = append(charts, s.Charts...)
	}
	var text [5]string
	for i, name := range []string{"page.html", "page.css", "page.js", "uplot.css", "uplot.js"} {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		text[i] = string(b)
	}
	page, err := template.New("page").Parse(text[0])
	if err != nil {
		return err
	}
	n := -1
	return page.Execute(w, struct {
		Document
		CSS    template.CSS
		Lib    template.JS
		JS     template.JS
		Charts []Chart
		Next   func() int // the number of the next chart
	}{d, template.CSS(text[3] + text[1]), template.JS(text[4]), template.JS(text[2]), charts, func() int { n++; return n }})
}

// WriteDocumentFile writes the page to a file.
func WriteDocumentFile(path string, d Document) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(WriteDocument(f, d), f.Close())
}

// check returns an error if the page cannot draw the chart.
func (c *Chart) check() error {
	for _, l := range c.Lines {
		if len(l.X) != len(l.Y) {
			return fmt.Errorf("line %q has %d x and %d y", l.Name, len(l.X), len(l.Y))
		}
		for i := range l.X {
			if bad(l.X[i]) || bad(l.Y[i]) || c.LogY && l.Y[i] <= 0 || c.Axis == Log && l.X[i] <= 0 {
				return fmt.Errorf("line %q has point (%v, %v)", l.Name, l.X[i], l.Y[i])
			}
			if i > 0 && l.X[i] <= l.X[i-1] {
				return fmt.Errorf("line %q goes back from %v to %v", l.Name, l.X[i-1], l.X[i])
			}
		}
	}
	return nil
}

func bad(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// WriteText writes the table as lines of text, its columns aligned.
func (t Table) WriteText(w io.Writer) error {
	var widths []int
	rows := append([][]string{t.Header}, t.Rows...)
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	if t.Title != "" {
		fmt.Fprintln(&b, t.Title)
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line = cell + fill
			} else {
				line += "  " + fill + cell
			}
		}
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
