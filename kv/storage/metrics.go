package storage

import "github.com/prometheus/client_golang/prometheus"

// collector reports the engine's metrics to Prometheus.
type collector struct {
	e     *Engine
	gauge map[string]*prometheus.Desc
}

// NewCollector returns the engine's metrics, labelled with labels.
func (e *Engine) NewCollector(labels prometheus.Labels) prometheus.Collector {
	c := &collector{e: e, gauge: map[string]*prometheus.Desc{}}
	for name, help := range map[string]string{
		"disk_usage_bytes":         "Bytes on disk, obsolete files included.",
		"disk_free_bytes":          "Bytes free on the disk, where the filesystem tells.",
		"disk_full":                "1 while writes are refused because the disk is full.",
		"memtable_bytes":           "Bytes in memtables.",
		"wal_bytes":                "Live bytes in the write-ahead log.",
		"wal_syncs_total":          "Batches that asked for a sync of the write-ahead log.",
		"read_amplification":       "Files and levels a seek may have to look into.",
		"compaction_debt_bytes":    "Estimated bytes that compactions have to move.",
		"compactions_total":        "Compactions finished.",
		"flushes_total":            "Memtables flushed.",
		"block_cache_bytes":        "Bytes in the block cache.",
		"block_cache_hits_total":   "Blocks found in the cache.",
		"block_cache_misses_total": "Blocks read from disk.",
		"filter_hits_total":        "Seeks that a bloom filter spared.",
		"filter_misses_total":      "Seeks that a bloom filter let pass.",
	} {
		c.gauge[name] = prometheus.NewDesc("percodb_storage_"+name, help, nil, labels)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.gauge {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	if c.e.closed.Load() {
		return
	}
	m := c.e.db.Metrics()
	send := func(name string, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(c.gauge[name], kind, v)
	}
	send("disk_usage_bytes", prometheus.GaugeValue, float64(m.DiskSpaceUsage()))
	full := 0.0
	if c.e.disk.full.Load() {
		full = 1
	}
	send("disk_free_bytes", prometheus.GaugeValue, float64(c.e.disk.free.Load()))
	send("disk_full", prometheus.GaugeValue, full)
	send("memtable_bytes", prometheus.GaugeValue, float64(m.MemTable.Size))
	send("wal_bytes", prometheus.GaugeValue, float64(m.WAL.Size))
	send("wal_syncs_total", prometheus.CounterValue, float64(c.e.syncs.Load()))
	send("read_amplification", prometheus.GaugeValue, float64(m.ReadAmp()))
	send("compaction_debt_bytes", prometheus.GaugeValue, float64(m.Compact.EstimatedDebt))
	send("compactions_total", prometheus.CounterValue, float64(m.Compact.Count))
	send("flushes_total", prometheus.CounterValue, float64(m.Flush.Count))
	send("block_cache_bytes", prometheus.GaugeValue, float64(m.BlockCache.Size))
	send("block_cache_hits_total", prometheus.CounterValue, float64(m.BlockCache.Hits))
	send("block_cache_misses_total", prometheus.CounterValue, float64(m.BlockCache.Misses))
	send("filter_hits_total", prometheus.CounterValue, float64(m.Filter.Hits))
	send("filter_misses_total", prometheus.CounterValue, float64(m.Filter.Misses))
}
