package percolator

import "github.com/prometheus/client_golang/prometheus"

// metrics of a DB. Counters with labels are looked up once, here, so that counting is one atomic add.
type metrics struct {
	commits       [commitKinds]prometheus.Counter
	aborts        prometheus.Counter
	undetermined  prometheus.Counter
	backoffs      [backoffClasses]prometheus.Counter
	resolved      [outcomeKinds]prometheus.Counter
	statusHits    prometheus.Counter
	statusMisses  prometheus.Counter
	heartbeats    prometheus.Counter
	broken        prometheus.Counter
	dropped       prometheus.Counter
	prewriteBytes prometheus.Counter
	asyncResolved prometheus.Counter
	asyncDecided  prometheus.Counter
	lockWaits     prometheus.Counter
	deadlocks     prometheus.Counter
	restarts      prometheus.Counter
	refreshes     [refreshResults]prometheus.Counter
}

type commitKind int

const (
	commitReadOnly commitKind = iota
	commitOnePhase
	commitAsync
	commitTwoPhase
	commitKinds
)

func newMetrics(r prometheus.Registerer, queueLength func() float64) (*metrics, error) {
	m := &metrics{}
	var all []prometheus.Collector
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "percodb_percolator_" + name, Help: help})
		all = append(all, c)
		return c
	}
	labelled := func(name, label, help string, into []prometheus.Counter, values ...string) {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "percodb_percolator_" + name, Help: help}, []string{label})
		all = append(all, v)
		for i, value := range values {
			into[i] = v.WithLabelValues(value)
		}
	}
	labelled("commits_total", "kind", "Transactions committed, by way of commit.", m.commits[:], "read_only", "one_phase", "async", "two_phase")
	labelled("backoffs_total", "class", "Attempts that had to be repeated, by reason.", m.backoffs[:], "route", "lock", "rpc", "oracle")
	labelled("lock_checks_total", "result", "Locks met, by the outcome of their transaction.", m.resolved[:], "alive", "passed", "committed", "rolled_back")
	m.aborts = counter("aborts_total", "Commits that failed for certain.")
	m.undetermined = counter("undetermined_total", "Commits whose outcome could not be learnt.")
	m.statusHits = counter("status_cache_hits_total", "Outcomes of transactions found in the cache.")
	m.statusMisses = counter("status_cache_misses_total", "Outcomes of transactions requested from a primary.")
	m.heartbeats = counter("heartbeats_total", "Heartbeats sent to primaries.")
	m.broken = counter("invariant_breaches_total", "Secondaries refused after their primary had committed.")
	m.dropped = counter("background_dropped_total", "Background tasks given up; resolvers do their work.")
	labelled("refreshes_total", "result", "Checks that what was read has not changed.", m.refreshes[:], "ok", "refused")
	m.asyncResolved = counter("async_resolved_total", "Async commits of others decided or found decided.")
	m.asyncDecided = counter("async_decided_total", "Own async commits that had to ask for their outcome.")
	m.lockWaits = counter("lock_waits_total", "Requests for locks that somebody held for long, and whose owner was asked about.")
	m.deadlocks = counter("deadlocks_total", "Requests for locks refused because they would have closed a circle of waits.")
	m.restarts = counter("statement_restarts_total", "Statements to be run again at a newer snapshot, their locks held.")
	m.prewriteBytes = counter("prewrite_bytes_total", "Bytes of write sets sent to be committed.")
	all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "percodb_percolator_background_queue", Help: "Background tasks waiting."}, queueLength))
	if r == nil {
		return m, nil
	}
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
