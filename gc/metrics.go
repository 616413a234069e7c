package gc

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of garbage collection. Created by newMetrics; nothing is global.
type metrics struct {
	rounds, failed, resolved, versions, kept, dropped prometheus.Counter
	seconds                                           prometheus.Histogram
	registerer                                        prometheus.Registerer
	all                                               []prometheus.Collector
}

func newMetrics(c *Controller, reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{registerer: reg}
	counter := func(name, help string) prometheus.Counter {
		n := prometheus.NewCounter(prometheus.CounterOpts{Name: "percodb_gc_" + name, Help: help})
		m.all = append(m.all, n)
		return n
	}
	m.rounds = counter("rounds_total", "Rounds of garbage collection.")
	m.failed = counter("rounds_failed_total", "Rounds that did not get to their end.")
	m.resolved = counter("locks_resolved_total", "Locks of old transactions that were in the way.")
	m.kept = counter("records_kept_total", "Records kept, once more in each round, for stores that are away.")
	m.versions = counter("versions_removed_total", "Versions removed.")
	m.dropped = counter("spans_dropped_total", "Tables and indexes removed after they were dropped.")
	m.seconds = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "percodb_gc_round_seconds", Help: "Time of a round.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 12)})
	m.all = append(m.all, m.seconds)
	gauge := func(name, help string, f func(Status) float64) {
		m.all = append(m.all, prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "percodb_gc_" + name, Help: help}, func() float64 { return f(c.Status()) }))
	}
	gauge("safe_point_seconds", "The safe point, in seconds since 1970.", func(s Status) float64 { return float64(s.SafePoint.Physical()) / 1000 })
	gauge("collected_seconds", "The safe point of the last complete round.", func(s Status) float64 { return float64(s.Collected.Physical()) / 1000 })
	gauge("oldest_transaction_seconds", "The oldest transaction's begin, in seconds since 1970; 0: none known.", func(s Status) float64 { return float64(s.Oldest.Physical()) / 1000 })
	gauge("stores_away", "Stores that took no part in the last round.", func(s Status) float64 { return float64(len(s.Away)) })
	gauge("locks_left", "Locks that the last round has left, because only unavailable stores know their outcomes.", func(s Status) float64 { return float64(s.LeftLocks) })
	gauge("life_seconds", "How long history is kept.", func(s Status) float64 { return s.Life.Seconds() })
	if reg == nil {
		return m, nil
	}
	for _, x := range m.all {
		if err := reg.Register(x); err != nil {
			m.unregister()
			return nil, errors.Join(errors.New("gc: register metrics"), err)
		}
	}
	return m, nil
}

func (m *metrics) unregister() {
	if m.registerer == nil {
		return
	}
	for _, x := range m.all {
		m.registerer.Unregister(x)
	}
}

func (m *metrics) rounded(err error, took time.Duration) {
	m.rounds.Inc()
	m.seconds.Observe(took.Seconds())
	if err != nil {
		m.failed.Inc()
	}
}
