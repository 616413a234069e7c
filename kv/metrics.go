package kv

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/percodb/percodb/kv/mvcc"
)

// metrics are the metrics of a store. Created by newMetrics; nothing is global.
type metrics struct {
	gets, batchGets, scans, scannedRows        prometheus.Counter
	onePC, prewriteFailed                      prometheus.Counter
	rollbacks, statusChecks, heartbeats        prometheus.Counter
	lockRequests, refreshes                    prometheus.Counter
	rangeSplits, rangeReleases, rangeAdoptions prometheus.Counter
	resolvedForward, resolvedBack              prometheus.Counter
	prewriteSeconds, commitSeconds             prometheus.Histogram
	gcKeys, gcVersions, gcStatuses, gcBytes    prometheus.Counter
	registerer                                 prometheus.Registerer
	registered                                 []prometheus.Collector
}

func newMetrics(s *Store, reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{registerer: reg}
	labels := prometheus.Labels{"shard": s.shardID}
	counter := func(c *prometheus.Counter, name, help string) {
		*c = prometheus.NewCounter(prometheus.CounterOpts{Name: "percodb_kv_" + name, Help: help, ConstLabels: labels})
		m.registered = append(m.registered, *c)
	}
	counter(&m.gets, "gets_total", "Point reads.")
	counter(&m.batchGets, "batch_gets_total", "Batched point reads.")
	counter(&m.scans, "scans_total", "Pages scanned.")
	counter(&m.scannedRows, "scanned_rows_total", "Rows returned by scans.")
	counter(&m.onePC, "one_phase_commits_total", "Transactions committed in one phase.")
	counter(&m.prewriteFailed, "prewrite_failures_total", "Prewrites refused.")
	counter(&m.rollbacks, "rollbacks_total", "Rollback requests.")
	counter(&m.statusChecks, "txn_status_checks_total", "Checks of a transaction's status.")
	counter(&m.lockRequests, "lock_requests_total", "Requests for pessimistic locks.")
	counter(&m.refreshes, "refreshes_total", "Requests to move a snapshot up.")
	counter(&m.heartbeats, "heartbeats_total", "Heartbeats of primary locks.")
	counter(&m.rangeSplits, "range_splits_total", "Ranges split.")
	counter(&m.rangeReleases, "range_releases_total", "Spans given away.")
	counter(&m.rangeAdoptions, "range_adoptions_total", "Spans taken over.")
	counter(&m.resolvedForward, "locks_resolved_forward_total", "Keys whose locks were rolled forward.")
	counter(&m.resolvedBack, "locks_resolved_back_total", "Keys whose locks were rolled back.")
	histogram := func(h *prometheus.Histogram, name, help string) {
		*h = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "percodb_kv_" + name, Help: help,
			ConstLabels: labels, Buckets: prometheus.ExponentialBuckets(20e-6, 2, 16)})
		m.registered = append(m.registered, *h)
	}
	histogram(&m.prewriteSeconds, "prewrite_seconds", "Time of a prewrite, WAL sync included.")
	histogram(&m.commitSeconds, "commit_seconds", "Time of a commit, WAL sync included if it decides.")
	gauge := func(name, help string, f func() float64) {
		m.registered = append(m.registered, prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "percodb_kv_" + name, Help: help, ConstLabels: labels}, f))
	}
	counter(&m.gcKeys, "gc_keys_visited_total", "Keys that garbage collection has looked at.")
	counter(&m.gcVersions, "gc_versions_removed_total", "Versions that garbage collection has removed.")
	counter(&m.gcStatuses, "gc_status_records_removed_total", "Rollback and lock-commit records that garbage collection has removed.")
	counter(&m.gcBytes, "gc_written_bytes_total", "Bytes that garbage collection has written in order to remove.")
	gauge("gc_safe_point_seconds", "The GC safe point, in seconds since 1970.", func() float64 { return float64(s.mvcc.SafePoint().Physical()) / 1000 })
	counted := func(name, help string, f func(mvcc.WaitStats) float64) {
		m.registered = append(m.registered, prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "percodb_kv_" + name, Help: help, ConstLabels: labels},
			func() float64 { return f(s.mvcc.WaitStats()) }))
	}
	counted("lock_waits_total", "Waits for pessimistic locks.", func(st mvcc.WaitStats) float64 { return float64(st.Waits) })
	counted("lock_wait_seconds_total", "Time spent waiting for pessimistic locks.", func(st mvcc.WaitStats) float64 { return st.Waited.Seconds() })
	counted("deadlocks_total", "Waits refused because they would have closed a circle.", func(st mvcc.WaitStats) float64 { return float64(st.Deadlocks) })
	gauge("lock_waiters", "Requests that wait for a pessimistic lock.", func() float64 { return float64(s.mvcc.WaitStats().Waiting) })
	gauge("locks", "Locks held.", func() float64 { return float64(s.mvcc.NumLocks()) })
	gauge("scan_cache_bytes", "Memory of the rows cached for scans.", func() float64 { return float64(s.mvcc.ScanCacheStats().Bytes) })
	gauge("scan_cache_blocks", "Blocks of rows cached for scans.", func() float64 { return float64(s.mvcc.ScanCacheStats().Blocks) })
	m.registered = append(m.registered, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "percodb_kv_scan_cache_rows_total",
		Help: "Scanned rows that came from the cache.", ConstLabels: labels}, func() float64 { return float64(s.mvcc.ScanCacheStats().Rows) }))
	gauge("ranges", "Ranges owned.", func() float64 { return float64(len(s.ranges.Load().sorted)) })
	gauge("split_queue_length", "Ranges waiting to be looked at for a split.", func() float64 { return float64(len(s.splits)) })
	m.registered = append(m.registered, s.engine.NewCollector(labels))
	return m, m.register()
}

func (m *metrics) register() error {
	if m.registerer == nil {
		return nil
	}
	for _, c := range m.registered {
		if err := m.registerer.Register(c); err != nil {
			m.unregister()
			return errors.Join(errors.New("kv: register metrics"), err)
		}
	}
	return nil
}

func (m *metrics) unregister() {
	if m.registerer == nil {
		return
	}
	for _, c := range m.registered {
		m.registerer.Unregister(c)
	}
}

func (m *metrics) collected(st *mvcc.GCStats) {
	m.gcKeys.Add(float64(st.Keys))
	m.gcVersions.Add(float64(st.Versions))
	m.gcStatuses.Add(float64(st.Statuses))
	m.gcBytes.Add(float64(st.Bytes))
}

func (m *metrics) resolved(forward bool, keys int) {
	if forward {
		m.resolvedForward.Add(float64(keys))
	} else {
		m.resolvedBack.Add(float64(keys))
	}
}
