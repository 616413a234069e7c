package session

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what sessions do.
type Metrics struct {
	Sessions         prometheus.Gauge
	PlanCacheHits    prometheus.Counter
	PlanCacheMisses  prometheus.Counter
	StatementRetries prometheus.Counter
	Statements       *prometheus.CounterVec // by command tag
	Errors           *prometheus.CounterVec // by SQLSTATE
}

// NewMetrics makes the counters and registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "percodb", Subsystem: "session", Name: name, Help: help})
	}
	m := &Metrics{
		Sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "percodb", Subsystem: "session", Name: "open", Help: "Sessions of clients now."}),
		PlanCacheHits:    counter("plan_cache_hits_total", "Statements that found their plan."),
		PlanCacheMisses:  counter("plan_cache_misses_total", "Statements that had to be planned."),
		StatementRetries: counter("statement_retries_total", "Runs of statements again after a conflict."),
		Statements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "percodb", Subsystem: "session", Name: "statements_total", Help: "Completed statements."}, []string{"tag"}),
		Errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "percodb", Subsystem: "session", Name: "errors_total", Help: "Errors sent to clients."}, []string{"sqlstate"}),
	}
	if r != nil {
		r.MustRegister(m.Sessions, m.PlanCacheHits, m.PlanCacheMisses, m.StatementRetries, m.Statements, m.Errors)
	}
	return m
}
