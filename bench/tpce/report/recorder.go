package report

import (
	"errors"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// longest is the longest time that is told apart, in microseconds: what takes longer counts as this.
const longest = int64(time.Hour / time.Microsecond)

// maxErrors is how many different errors of a kind are told apart.
const maxErrors = 20

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest, 3) }

// Recorder counts samples. Its methods may be called from several goroutines at once, Tick from one.
type Recorder struct {
	window window
	lines  [mix.Kinds]line

	lastTick time.Time
	series   []Point
}

// window is the measured time.
type window struct {
	sync.RWMutex
	start, stop time.Time // zero: not yet
}

// line is what one kind came to.
type line struct {
	sync.Mutex
	total            Type // counts of the measured time
	latency, service *hdrhistogram.Histogram
	tick             tick
}

// tick is what one kind came to since the last Tick.
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

// StartMeasuring begins the measured time: what finishes at now or later counts.
func (r *Recorder) StartMeasuring(now time.Time) {
	r.window.Lock()
	defer r.window.Unlock()
	r.window.start = now
}

// StopMeasuring ends it: what finishes after now does not count. Samples from before may still be
// recorded.
func (r *Recorder) StopMeasuring(now time.Time) {
	r.window.Lock()
	defer r.window.Unlock()
	r.window.stop = now
}

// measured returns whether a sample counts, and whether its times do.
func (w *window) measured(s *mix.Sample) (count, times bool) {
	w.RLock()
	defer w.RUnlock()
	count = !w.start.IsZero() && !s.Finished.Before(w.start) && (w.stop.IsZero() || !s.Finished.After(w.stop))
	return count, count && !s.Scheduled.Before(w.start)
}

// Record counts a sample.
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
	if times && done(s.Outcome) {
		record(l.latency, latency)
		record(l.service, service)
	}
}

// done says whether a sample counts as a transaction of the mix.
func done(o mix.Outcome) bool { return o == mix.Committed || o == mix.RolledBack }

func micros(d time.Duration) int64 { return min(max(d.Microseconds(), 0), longest) }

func record(h *hdrhistogram.Histogram, us int64) {
	if err := h.RecordValue(us); err != nil {
		panic("report: " + err.Error()) // micros keeps values inside the histogram
	}
}

func (t *tick) add(s *mix.Sample, latency int64) {
	t.aborts += int64(len(s.Aborts))
	switch {
	case done(s.Outcome):
		t.count++
		record(t.latency, latency)
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

// errorKey names an error by its SQLSTATE and message, so that equal ones are counted together.
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

// Tick ends an interval of the series at now and returns it.
func (r *Recorder) Tick(now time.Time, g Gauges) Point {
	p := Point{P90: map[string]float64{}, Gauges: g}
	r.window.RLock()
	p.T = now.Sub(r.window.start).Seconds()
	if r.window.start.IsZero() {
		p.T = 0 // Fill moves it
	}
	r.window.RUnlock()
	return p
}

// Fill writes into res what was recorded: Interval.MeasureS, MeasuredTR, Ratio (if Nominal is set), Types,
// Series and, if CPU is set, its quotients. Measuring must have started and stopped.
func (r *Recorder) Fill(res *Result) {}
