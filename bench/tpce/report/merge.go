package report

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// Merge returns the result of drivers that ran at the same time against the same database. Counts, rates
// and histograms are added. A server's processor time is the maximum over the drivers, because drivers
// that measure one server measure the same time. The percentiles of the series are those of the worst driver.
//
// Results of different databases or paces are an error. A merged result whose measured times overlap by less
// than nine tenths is not valid.
func Merge(results ...*Result) (*Result, error) {
	if len(results) == 0 {
		return nil, errors.New("there is nothing to merge")
	}
	m := *results[0]
	m.Merged, m.Reasons, m.Settings = 0, nil, map[string]string{}
	maps.Copy(m.Settings, results[0].Settings)
	m.Types, m.Series, m.MEE, m.CPU, m.Journal, m.Checker = map[string]*Type{}, nil, nil, nil, nil, nil
	m.Nominal = 0
	for i, r := range results {
		if err := m.compatible(r); err != nil {
			return nil, fmt.Errorf("result %d does not merge with the first: %w", i+1, err)
		}
		m.Merged += max(r.Merged, 1)
		m.Nominal += r.Nominal
		m.Interval.MeasureS = max(m.Interval.MeasureS, r.Interval.MeasureS)
		for _, reason := range r.Reasons {
			m.Reasons = append(m.Reasons, fmt.Sprintf("driver %d: %s", i+1, reason))
		}
		m.Server.URLs = union(m.Server.URLs, r.Server.URLs)
		m.Flags = union(m.Flags, r.Flags)
		for name, value := range r.Settings {
			m.Settings[name] = strings.Join(union(strings.Split(m.Settings[name], " | "), []string{value}), " | ")
		}
		if err := m.addTypes(r); err != nil {
			return nil, err
		}
		m.addParts(r)
	}
	m.Series = mergeSeries(results)
	if err := m.derive(); err != nil {
		return nil, err
	}
	if o := overlap(results); o < 0.9 {
		m.Reasons = append(m.Reasons, fmt.Sprintf("the drivers' measured times overlap by %.0f %% only", 100*o))
	}
	m.Reasons = append(append(m.Reasons, m.MixOff()...), m.LimitsBroken()...)
	m.Valid = len(m.Reasons) == 0
	return &m, nil
}

func (r *Result) compatible(other *Result) error {
	switch {
	case r.Server.Version != other.Server.Version:
		return fmt.Errorf("the servers differ: %q and %q", r.Server.Version, other.Server.Version)
	case r.Scale != other.Scale:
		return fmt.Errorf("the scales differ: %+v and %+v", r.Scale, other.Scale)
	case r.Paced != other.Paced:
		return errors.New("one is paced, the other is not")
	}
	return nil
}

// union returns the union of two lists, in the order of first appearance.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// addTypes adds the counts and histograms of another result.
func (r *Result) addTypes(other *Result) error {
	for name, t := range other.Types {
		sum := r.Types[name]
		if sum == nil {
			sum = &Type{Aborts: map[string]int64{}, Errors: map[string]int64{}}
			r.Types[name] = sum
		}
		sum.Count += t.Count
		sum.Rollbacks += t.Rollbacks
		sum.AlreadyDone += t.AlreadyDone
		sum.Unknown += t.Unknown
		sum.Failed += t.Failed
		sum.Retries += t.Retries
		sum.RoundTrips += t.RoundTrips
		for state, n := range t.Aborts {
			sum.Aborts[state] += n
		}
		for text, n := range t.Errors {
			sum.Errors[text] += n
		}
		var err error
		if sum.Histogram, err = addHistograms(sum.Histogram, t.Histogram); err != nil {
			return err
		}
		if sum.ServiceHistogram, err = addHistograms(sum.ServiceHistogram, t.ServiceHistogram); err != nil {
			return err
		}
	}
	return nil
}

func addHistograms(a, b string) (string, error) {
	sum := newHistogram()
	for _, text := range []string{a, b} {
		h, err := decode(text)
		if err != nil {
			return "", err
		}
		if dropped := sum.Merge(h); dropped > 0 {
			return "", fmt.Errorf("%d times of a histogram are longer than an hour", dropped)
		}
	}
	return encode(sum), nil
}

// addParts adds the measurements of the exchange, the processors and the journal.
func (r *Result) addParts(other *Result) {
	if m := other.MEE; m != nil {
		if r.MEE == nil {
			r.MEE = &MEE{}
		}
		r.MEE.Pending += m.Pending
		r.MEE.Triggers += m.Triggers
		r.MEE.MF += m.MF
		r.MEE.QueueMax = max(r.MEE.QueueMax, m.QueueMax)
	}
	if j := other.Journal; j != nil {
		if r.Journal == nil {
			r.Journal = &Journal{}
		}
		r.Journal.Acked += j.Acked
		r.Journal.Unknown += j.Unknown
	}
	c := other.CPU
	if c == nil {
		return
	}
	if r.CPU == nil {
		r.CPU = &CPU{}
	}
	r.CPU.DriverS += c.DriverS
	r.CPU.SharedMachine = r.CPU.SharedMachine || c.SharedMachine
	if c.ServerS > r.CPU.ServerS {
		r.CPU.ServerS, r.CPU.PerNode = c.ServerS, slices.Clone(c.PerNode)
	}
}

// measuredFrom is when the measured time began.
func (r *Result) measuredFrom() time.Time {
	return r.Started.Add(time.Duration(r.Interval.RampS * float64(time.Second)))
}

// overlap returns the intersection of the measured times, as a share of the longest.
func overlap(results []*Result) float64 {
	from, longest := results[0].measuredFrom(), 0.0
	var to time.Time
	for i, r := range results {
		begin := r.measuredFrom()
		end := begin.Add(time.Duration(r.Interval.MeasureS * float64(time.Second)))
		if begin.After(from) {
			from = begin
		}
		if i == 0 || end.Before(to) {
			to = end
		}
		longest = max(longest, r.Interval.MeasureS)
	}
	if longest == 0 {
		return 0
	}
	return max(to.Sub(from).Seconds(), 0) / longest
}

// mergeSeries adds to each point of the first result the nearest points in time of the others.
func mergeSeries(results []*Result) []Point {
	series := slices.Clone(results[0].Series)
	for i := range series {
		series[i].P90 = maps.Clone(series[i].P90)
	}
	if len(series) < 2 {
		return series
	}
	width := series[1].T - series[0].T
	for _, r := range results[1:] {
		offset := r.measuredFrom().Sub(results[0].measuredFrom()).Seconds()
		for i := range series {
			if p, ok := nearest(r.Series, series[i].T-offset, width); ok {
				series[i].add(p)
			}
		}
	}
	for i := range series {
		series[i].Late /= float64(len(results))
	}
	return series
}

// nearest returns the point whose end is nearest to t, if the distance is at most half of width.
func nearest(series []Point, t, width float64) (p Point, ok bool) {
	best := math.Inf(1)
	for i := range series {
		if d := math.Abs(series[i].T - t); d < best && d <= width/2 {
			best, p, ok = d, series[i], true
		}
	}
	return p, ok
}

func (p *Point) add(q Point) {
	p.TR += q.TR
	p.Tx += q.Tx
	p.Aborts += q.Aborts
	p.AbortsTR += q.AbortsTR
	p.Errors += q.Errors
	p.Unknown += q.Unknown
	p.Pending += q.Pending
	p.MEEQueue += q.MEEQueue
	p.Late += q.Late
	p.CoresDriver += q.CoresDriver
	p.CoresServer = max(p.CoresServer, q.CoresServer)
	p.Measuring = p.Measuring && q.Measuring
	p.TRLatMS = Latency{P50: max(p.TRLatMS.P50, q.TRLatMS.P50), P90: max(p.TRLatMS.P90, q.TRLatMS.P90), P99: max(p.TRLatMS.P99, q.TRLatMS.P99)}
	for code, v := range q.P90 {
		p.P90[code] = max(p.P90[code], v)
	}
}

// histogram returns the kind's response times.
func (r *Result) histogram(k mix.Kind) (*hdrhistogram.Histogram, error) {
	return decode(r.Of(k).Histogram)
}
