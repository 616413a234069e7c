package report

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// longest is the maximum recorded time, in microseconds: longer times are recorded as this.
const longest = int64(time.Hour / time.Microsecond)

// maxErrors is the maximum number of different errors that are counted separately for each kind.
const maxErrors = 20

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, 3) }

// Recorder records samples. Its methods are safe for concurrent use, except Tick.
type Recorder struct {
	window window
	lines  [mix.Kinds]line

	lastTick time.Time
	series   []Point
	ends     []time.Time // of the points of series
}

// window is the measured time.
type window struct {
	sync.RWMutex
	start, stop time.Time // zero: not yet
}

// line contains the measurements of one kind.
type line struct {
	sync.Mutex
	total            Type // counts of the measured time
	latency, service *hdrhistogram.Histogram
	tick             tick
}

// tick contains the measurements of one kind since the last Tick.
type tick struct {
	count, aborts, failed, unknown int64
	latency                        *hdrhistogram.Histogram
}

// New returns a recorder whose series begins at now.
func New(now time.Time) *Recorder {
	r := &Recorder{lastTick: now}
	for k := range r.lines {
		l := &r.lines[k]
		l.latency, l.service, l.tick.latency = newHistogram(), newHistogram(), newHistogram()
		l.total.Aborts, l.total.Errors = map[string]int64{}, map[string]int64{}
	}
	return r
}

// StartMeasuring begins the measured time: transactions that finish at now or later count.
func (r *Recorder) StartMeasuring(now time.Time) {
	r.window.Lock()
	defer r.window.Unlock()
	r.window.start = now
}

// StopMeasuring ends the measured time: transactions that finish after now do not count. Samples of earlier ones may
// still be recorded.
func (r *Recorder) StopMeasuring(now time.Time) {
	r.window.Lock()
	defer r.window.Unlock()
	r.window.stop = now
}

// measured returns whether a sample counts, and whether its times count.
func (w *window) measured(s *mix.Sample) (count, times bool) {
	w.RLock()
	defer w.RUnlock()
	count = !w.start.IsZero() && !s.Finished.Before(w.start) && (w.stop.IsZero() || !s.Finished.After(w.stop))
	return count, count && !s.Scheduled.Before(w.start)
}

// Record records a sample.
func (r *Recorder) Record(s mix.Sample) {
	count, times := r.window.measured(&s)
	latency, service := micros(s.Finished.Sub(s.Scheduled)), micros(s.Finished.Sub(s.Started))
	l := &r.lines[s.Kind]
	l.Lock()
	defer l.Unlock()
	l.tick.add(&s, latency)
	if count {
		l.total.add(&s)
	}
	if times && timed(s.Outcome) {
		record(l.latency, latency)
		record(l.service, service)
	}
}

// done reports whether a sample counts as a transaction of the mix.
func done(o mix.Outcome) bool { return o == mix.Committed || o == mix.RolledBack }

// timed reports whether a sample's times count: those of transactions that count, and of those that a retry found
// committed, which waited longest.
func timed(o mix.Outcome) bool { return done(o) || o == mix.AlreadyDone }

func micros(d time.Duration) int64 { return min(max(d.Microseconds(), 0), longest) }

func record(h *hdrhistogram.Histogram, us int64) {
	if err := h.RecordValue(us); err != nil {
		panic("report: " + err.Error()) // not reached: micros bounds the values
	}
}

func (t *tick) add(s *mix.Sample, latency int64) {
	t.aborts += int64(len(s.Aborts))
	if timed(s.Outcome) {
		record(t.latency, latency)
	}
	switch {
	case done(s.Outcome):
		t.count++
	case s.Outcome == mix.Failed:
		t.failed++
	case s.Outcome == mix.Unknown:
		t.unknown++
	}
}

func (t *Type) add(s *mix.Sample) {
	switch s.Outcome {
	case mix.Committed:
		t.Count++
	case mix.RolledBack:
		t.Count++
		t.Rollbacks++
	case mix.AlreadyDone:
		t.AlreadyDone++
	case mix.Unknown:
		t.Unknown++
	case mix.Failed:
		t.Failed++
		key := errorKey(s.Err)
		if _, ok := t.Errors[key]; !ok && len(t.Errors) >= maxErrors {
			key = "other"
		}
		t.Errors[key]++
	}
	t.RoundTrips += int64(s.RoundTrips)
	if len(s.Aborts) > 0 {
		t.Retries++
	}
	for _, state := range s.Aborts {
		if state == "" {
			state = "connection"
		}
		t.Aborts[state]++
	}
}

// errorKey returns the SQLSTATE and the message of an error, so that equal errors are counted together.
func errorKey(err error) string {
	if err == nil {
		return "unknown"
	}
	text := err.Error()
	var server interface{ SQLState() string }
	if errors.As(err, &server) {
		text = server.SQLState()
	}
	if len(text) > 200 {
		text = text[:200]
	}
	return text
}

// Tick ends an interval of the series at now and returns it. Its T is valid once measuring has started;
// Fill sets T of the ramp's points.
func (r *Recorder) Tick(now time.Time, g Gauges) Point {
	seconds := max(now.Sub(r.lastTick).Seconds(), 1e-9)
	r.lastTick = now
	p := Point{P90: map[string]float64{}, Gauges: g}
	for k := range mix.Kind(mix.Kinds) {
		r.lines[k].harvest(&p, k, seconds)
	}
	r.window.RLock()
	if !r.window.start.IsZero() {
		p.T = now.Sub(r.window.start).Seconds()
	}
	r.window.RUnlock()
	r.series, r.ends = append(r.series, p), append(r.ends, now)
	return p
}

// harvest adds the kind's measurements since the last tick to p, and resets them.
func (l *line) harvest(p *Point, k mix.Kind, seconds float64) {
	l.Lock()
	defer l.Unlock()
	t := &l.tick
	if t.latency.TotalCount() > 0 {
		p.P90[mix.Of(k).Code] = millis(t.latency.ValueAtQuantile(90))
	}
	if int(k) < mix.InMix {
		p.Tx += float64(t.count) / seconds
	}
	if k == mix.TradeResult {
		p.TR, p.AbortsTR = float64(t.count)/seconds, float64(t.aborts)/seconds
		p.TRLatMS = Latency{P50: millis(t.latency.ValueAtQuantile(50)), P90: millis(t.latency.ValueAtQuantile(90)), P99: millis(t.latency.ValueAtQuantile(99))}
	}
	p.Aborts += float64(t.aborts) / seconds
	p.Errors += t.failed
	p.Unknown += t.unknown
	t.latency.Reset()
	*t = tick{latency: t.latency}
}

func millis(us int64) float64 { return float64(us) / 1000 }

// Fill sets the recorded fields of res: Schema, Interval.MeasureS, MeasuredTR, Ratio (if Paced), Types,
// Series and, if CPU is set, its quotients. Measuring must have started and stopped.
func (r *Recorder) Fill(res *Result) {
	r.window.RLock()
	start, stop := r.window.start, r.window.stop
	r.window.RUnlock()
	res.Schema = Schema
	res.Interval.MeasureS = stop.Sub(start).Seconds()
	res.Types = map[string]*Type{}
	for k := range mix.Kind(mix.Kinds) {
		l := &r.lines[k]
		l.Lock()
		t := l.total
		t.Aborts, t.Errors = maps.Clone(t.Aborts), maps.Clone(t.Errors)
		t.Histogram, t.ServiceHistogram = encode(l.latency), encode(l.service)
		l.Unlock()
		if int(k) < mix.InMix || t.Count+t.AlreadyDone+t.Unknown+t.Failed > 0 {
			res.Types[mix.Of(k).Flag] = &t
		}
	}
	res.Series = slices.Clone(r.series)
	for i := range res.Series {
		res.Series[i].T = r.ends[i].Sub(start).Seconds()
	}
	if err := res.derive(); err != nil {
		panic("report: histograms of this process: " + err.Error())
	}
}
