package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// lineKinds are the kinds whose p90 the line shows.
var lineKinds = []mix.Kind{mix.TradeOrder, mix.TradeResult, mix.MarketWatch, mix.CustomerPosition, mix.TradeStatus}

// Line formats the point for the display during the run: elapsed is the time since its start, nominal
// the intended Trade-Results per second, 0 if there is no pace.
func (p *Point) Line(elapsed time.Duration, nominal float64) string {
	var b strings.Builder
	s := int(elapsed.Round(time.Second).Seconds())
	phase := "ramp"
	if p.Measuring {
		phase = "run"
	}
	fmt.Fprintf(&b, "[tpce %02d:%02d:%02d %s] TR/s %.1f", s/3600, s/60%60, s%60, phase, p.TR)
	if nominal > 0 {
		fmt.Fprintf(&b, " (nominal %.1f, %.0f%%)", nominal, 100*p.TR/nominal)
	}
	fmt.Fprintf(&b, " tx/s %.0f | p90 ms", p.Tx)
	for _, k := range lineKinds {
		code := mix.Of(k).Code
		if v, ok := p.P90[code]; ok {
			fmt.Fprintf(&b, " %s %s", code, show(v))
		} else {
			fmt.Fprintf(&b, " %s -", code)
		}
	}
	fmt.Fprintf(&b, " | aborts/s %.1f (TR %.1f) | pending %d mee-q %d late %.1f%% | cores srv %.1f drv %.1f | err %d",
		p.Aborts, p.AbortsTR, p.Pending, p.MEEQueue, 100*p.Late, p.CoresServer, p.CoresDriver, p.Errors)
	if p.Unknown > 0 {
		fmt.Fprintf(&b, " unknown %d", p.Unknown)
	}
	return b.String()
}

// show formats a number with about three significant digits, and at most two decimals.
func show(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

const tableLine = "%-18s %9s %7s %7s %8s %7s %7s %7s %7s %6s %2s %7s %7s %8s %7s\n"

// WriteTable writes the result as the final table of a run. Times are in milliseconds.
func (r *Result) WriteTable(w io.Writer) error {
	var b strings.Builder
	if r.Label != "" {
		fmt.Fprintf(&b, "%s\n", r.Label)
	}
	fmt.Fprintf(&b, tableLine, "type", "count", "mix%", "target", "tx/s", "p50", "p90", "p99", "max", "limit", "ok", "rollbk", "aborts", "retry/tx", "sv-p90")
	for k := range mix.Kind(mix.Kinds) {
		if t := r.Types[mix.Of(k).Flag]; t != nil {
			t.row(&b, k)
		}
	}
	r.verdict(&b)
	if c := r.CPU; c != nil {
		fmt.Fprintf(&b, "server %.2f cores, %s CPU-ms per Trade-Result, %s CPU-ms per transaction, %.1f TR/s per core | driver %.2f cores",
			c.CoresServer, show(1000*c.PerTRS), show(1000*c.PerTxS), c.TRPerCore, c.CoresDriver)
		if c.SharedMachine {
			b.WriteString(", on the server's machine")
		}
		b.WriteByte('\n')
		if len(c.PerNode) > 1 {
			for _, n := range c.PerNode {
				fmt.Fprintf(&b, "  %s %.2f cores\n", n.Name, quotient(n.Seconds, r.Interval.MeasureS))
			}
		}
	}
	if m := r.MEE; m != nil {
		fmt.Fprintf(&b, "market exchange: %d limit orders pending, %d triggered, %d Market-Feeds, longest queue %d\n", m.Pending, m.Triggers, m.MF, m.QueueMax)
	}
	if j := r.Journal; j != nil {
		fmt.Fprintf(&b, "journal: %d acknowledged, %d unknown\n", j.Acked, j.Unknown)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// row writes the kind's row.
func (t *Type) row(b *strings.Builder, k mix.Kind) {
	share, target, limit, ok := "", "", "", ""
	if int(k) < mix.InMix {
		share, target = fmt.Sprintf("%.2f", t.Mix), fmt.Sprintf("%.2f", t.Target)
	}
	if t.LimitMS > 0 {
		limit, ok = strconv.FormatFloat(t.LimitMS, 'f', 0, 64), "n"
		if t.Pass {
			ok = "y"
		}
	}
	var aborts int64
	for _, n := range t.Aborts {
		aborts += n
	}
	l := t.LatencyMS
	fmt.Fprintf(b, tableLine, k, strconv.FormatInt(t.Count, 10), share, target, fmt.Sprintf("%.2f", t.Rate), show(l.P50), show(l.P90), show(l.P99), show(l.Max),
		limit, ok, strconv.FormatInt(t.Rollbacks, 10), strconv.FormatInt(aborts, 10), fmt.Sprintf("%.3f", quotient(float64(aborts), float64(t.Count))), show(t.ServiceMS.P90))
}

// verdict writes errors, unknown outcomes and aborts, the measured rate, and whether the run is valid.
func (r *Result) verdict(b *strings.Builder) {
	aborts := map[string]int64{}
	for k := range mix.Kind(mix.Kinds) {
		t := r.Of(k)
		for state, n := range t.Aborts {
			aborts[state] += n
		}
		if len(t.Errors) > 0 {
			fmt.Fprintf(b, "%s failed: %s\n", k, list(t.Errors))
		}
		if t.Unknown+t.AlreadyDone > 0 {
			fmt.Fprintf(b, "%s: %d with an outcome unknown, %d found done by an attempt whose answer was lost\n", k, t.Unknown, t.AlreadyDone)
		}
	}
	if len(aborts) > 0 {
		fmt.Fprintf(b, "aborted attempts that were retried: %s\n", list(aborts))
	}
	fmt.Fprintf(b, "measured %.2f TR/s over %.0f s, ", r.MeasuredTR, r.Interval.MeasureS)
	if r.Paced {
		fmt.Fprintf(b, "nominal %.2f → tpsE-like %.2f (%.1f %%)", r.Nominal, r.MeasuredTR, 100*r.Ratio)
	} else {
		b.WriteString("unpaced")
	}
	b.WriteString("  " + r.word())
	if len(r.Flags) > 0 {
		fmt.Fprintf(b, " | flags: %s", strings.Join(r.Flags, ", "))
	}
	b.WriteByte('\n')
	for _, reason := range r.Reasons {
		fmt.Fprintf(b, "  because %s\n", reason)
	}
}

// word returns the verdict in a word.
func (r *Result) word() string {
	if r.Valid {
		return "VALID"
	}
	return "NOT VALID"
}

// list formats counts by name, the largest first.
func list(counts map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return int(min(max(counts[b]-counts[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d × %s", counts[name], name)
	}
	return strings.Join(names, ", ")
}
