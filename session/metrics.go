package session

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what sessions do.
type Metrics struct {
	Sessions         prometheus.Gauge
	PlanCacheHits    prometheus.Counter
	PlanCacheMisses  prometheus.Counter
	StatementRetries prometheus.Counter
	// StatementRestarts counts runs within one transaction, after a wait for a row that had changed.
	StatementRestarts prometheus.Counter
	Statements        StatementCounters
	Errors            *prometheus.CounterVec // by SQLSTATE
}

// StatementCounters count completed statements by command tag. They are resolved once: finding one by
// its label hashes and locks, on the hottest path.
type StatementCounters struct{ selects, inserts, updates, deletes, merges, ddl prometheus.Counter }

// of returns the counter of a plan's tag.
func (c *StatementCounters) of(tag string) prometheus.Counter {
	switch tag {
	case "INSERT":
		return c.inserts
	case "UPDATE":
		return c.updates
	case "DELETE":
		return c.deletes
	case "MERGE":
		return c.merges
	}
	return c.selects
}

// NewMetrics makes the counters and registers them.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "percodb", Subsystem: "session", Name: name, Help: help})
	}
	statements := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "percodb", Subsystem: "session", Name: "statements_total", Help: "Completed statements."}, []string{"tag"})
	m := &Metrics{
		Sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "percodb", Subsystem: "session", Name: "open", Help: "Sessions of clients now."}),
		PlanCacheHits:     counter("plan_cache_hits_total", "Statements that found their plan."),
		PlanCacheMisses:   counter("plan_cache_misses_total", "Statements that had to be planned."),
		StatementRestarts: counter("statement_restarts_total", "Runs of statements again after waiting for a row that had changed."),
		StatementRetries:  counter("statement_retries_total", "Runs of statements again after a conflict."),
		Statements: StatementCounters{
			selects: statements.WithLabelValues("SELECT"), inserts: statements.WithLabelValues("INSERT"),
			updates: statements.WithLabelValues("UPDATE"), deletes: statements.WithLabelValues("DELETE"),
			merges: statements.WithLabelValues("MERGE"),
			ddl:    statements.WithLabelValues("DDL"),
		},
		Errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "percodb", Subsystem: "session", Name: "errors_total", Help: "Errors sent to clients."}, []string{"sqlstate"}),
	}
	if r != nil {
		r.MustRegister(m.Sessions, m.PlanCacheHits, m.PlanCacheMisses, m.StatementRetries, m.StatementRestarts, statements, m.Errors)
	}
	return m
}
