package observer

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/catalog"
)

// metrics are those of all observers of a process, by their names.
type metrics struct {
	runs, changes, conflicts, retries, errors *prometheus.CounterVec
	latency                                   *prometheus.HistogramVec

	mu    sync.Mutex
	users map[[2]string]int // by labels: an observer, and its predecessor of the same name that is ending
}

func newMetrics(r prometheus.Registerer) *metrics {
	labels := []string{"schema", "observer"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "percodb", Subsystem: "observer", Name: name, Help: help}, labels)
	}
	m := &metrics{
		runs:      counter("runs_total", "Transactions of observers that have committed."),
		changes:   counter("changes_total", "Changes that observers have handled."),
		conflicts: counter("conflicts_total", "Attempts to handle a change that were given up because of a conflict, or of a store that did not answer."),
		retries:   counter("retries_total", "Attempts to handle a change that have failed and are repeated."),
		errors:    counter("errors_total", "Changes that were set aside (percodb.observer_errors)."),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "percodb", Subsystem: "observer", Name: "latency_seconds", Help: "From the commit of a change to that of its handling.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .5, 1, 5, 30, 300},
		}, labels),
		users: map[[2]string]int{},
	}
	if r != nil {
		r.MustRegister(m.runs, m.changes, m.conflicts, m.retries, m.errors, m.latency)
	}
	return m
}

// of returns the statistics of an observer. forget them.
func (m *metrics) of(t target) *stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	labels := []string{t.table.Schema, t.observer.Name}
	m.users[[2]string(labels)]++
	return &stats{
		labels: labels, runs: m.runs.WithLabelValues(labels...), changes: m.changes.WithLabelValues(labels...),
		conflicts: m.conflicts.WithLabelValues(labels...), retries: m.retries.WithLabelValues(labels...),
		errors: m.errors.WithLabelValues(labels...), latency: m.latency.WithLabelValues(labels...), began: time.Now(),
	}
}

// forget removes the metrics of an observer that runs no more, unless another one has its name.
func (m *metrics) forget(s *stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := [2]string(s.labels)
	if m.users[name]--; m.users[name] > 0 {
		return
	}
	delete(m.users, name)
	for _, v := range []*prometheus.CounterVec{m.runs, m.changes, m.conflicts, m.retries, m.errors} {
		v.DeleteLabelValues(s.labels...)
	}
	m.latency.DeleteLabelValues(s.labels...)
}

const (
	// latencies is the number of changes, the last ones, whose quantiles are shown.
	latencies = 1024
	// rateSeconds is the time over which runs per second are averaged.
	rateSeconds = 60
)

// stats are the statistics of one observer in this process. Safe for concurrent use.
type stats struct {
	labels                                    []string
	runs, changes, conflicts, retries, errors prometheus.Counter
	latency                                   prometheus.Observer
	began                                     time.Time

	mu     sync.Mutex
	totals catalog.ObserverActivity
	last   []float64 // milliseconds
	at     int       // where the next one goes
	rate   [rateSeconds]int64
	second int64 // of rate's newest element
}

// ran counts a transaction that has committed, with changes that were committed at the given microseconds since the Unix epoch.
func (s *stats) ran(committed []int64, now time.Time) {
	s.runs.Inc()
	s.changes.Add(float64(len(committed)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals.Runs++
	s.advance(now)
	s.rate[s.second%rateSeconds]++
	for _, micros := range committed {
		millis := max(0, float64(now.UnixMicro()-micros)/1000)
		s.latency.Observe(millis / 1000)
		if len(s.last) < latencies {
			s.last = append(s.last, millis)
			continue
		}
		s.last[s.at] = millis
		s.at = (s.at + 1) % latencies
	}
}

// advance makes the newest element of rate that of now.
func (s *stats) advance(now time.Time) {
	second := now.Unix()
	for n := min(second-s.second, rateSeconds); n > 0; n-- {
		s.rate[(second-n+1)%rateSeconds] = 0
	}
	s.second = max(s.second, second)
}

// conflict counts n changes whose attempt was given up.
func (s *stats) conflict(n int) {
	s.conflicts.Add(float64(n))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals.Conflicts += int64(n)
}

// retry counts n changes whose attempt has failed.
func (s *stats) retry(n int) {
	s.retries.Add(float64(n))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals.Retries += int64(n)
}

// failed counts a change that was set aside.
func (s *stats) failed() {
	s.errors.Inc()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals.Errors++
}

// activity returns the statistics.
func (s *stats) activity() catalog.ObserverActivity {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.totals
	now := time.Now()
	s.advance(now)
	sum := int64(0)
	for _, n := range s.rate {
		sum += n
	}
	a.RunsPerSecond = float64(sum) / max(1, min(rateSeconds, now.Sub(s.began).Seconds()))
	if len(s.last) > 0 {
		sorted := slices.Sorted(slices.Values(s.last))
		a.LatencyP50, a.LatencyP99 = sorted[len(sorted)/2], sorted[len(sorted)*99/100]
	}
	return a
}
