package bigtable

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// requestMetrics count the requests on the wire, repetitions by the client library among them. It is the stats.Handler of the connections.
type requestMetrics struct {
	byMethod                   map[string]*methodMetrics
	rowsRead, conditionsFailed prometheus.Counter
	// Reads of rows, and bulks of changes, that have shared a request with others.
	readsGathered, writesGathered prometheus.Counter
	// Rows that were read since they were likely to be read next, and the reads that found theirs among them.
	rowsAhead, aheadHits prometheus.Counter
	// Hints between processes about locks: see lockhints.go.
	hintsSent, hintsReceived prometheus.Counter
	locksAwaited             prometheus.Gauge
	load                     nodeLoad
	all                      []prometheus.Collector
}

type methodMetrics struct {
	count                            atomic.Int64
	failed, repeated, sent, received prometheus.Counter
	seconds                          prometheus.Histogram
}

// The methods of Bigtable that percodb calls.
var methods = []string{"ReadRows", "CheckAndMutateRow", "MutateRow", "MutateRows", "SampleRowKeys"}

func counter(name, help string, labels prometheus.Labels) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "percodb_bigtable_" + name, Help: help, ConstLabels: labels})
}

func newRequestMetrics() *requestMetrics {
	m := &requestMetrics{
		byMethod:         map[string]*methodMetrics{},
		rowsRead:         counter("rows_read_total", "Rows that Bigtable has returned.", nil),
		conditionsFailed: counter("conditions_failed_total", "Conditional requests that changed nothing, since the row was not as expected.", nil),
		readsGathered:    counter("reads_gathered_total", "Reads of single rows that were sent with others in one request.", nil),
		rowsAhead:        counter("rows_read_ahead_total", "Rows that were read with a neighbour, before they were asked for.", nil),
		aheadHits:        counter("read_ahead_hits_total", "Reads of single rows that needed no request, since the row was read ahead.", nil),
		hintsSent:        counter("lock_hints_sent_total", "Hints sent to processes that wait for a lock of this one, which is gone.", nil),
		hintsReceived:    counter("lock_hints_received_total", "Hints of other processes that a lock is gone that was waited for here.", nil),
		locksAwaited: prometheus.NewGauge(prometheus.GaugeOpts{Name: "percodb_bigtable_locks_awaited",
			Help: "Locks of this process that transactions of other processes wait for, or have lately waited for."}),
		writesGathered: counter("commits_gathered_total",
			"Commits whose rows but the primary were sent with those of other commits in one request.", nil),
	}
	m.load.total = counter("node_seconds_total",
		"Work of Bigtable's nodes for this process, by what Google states that a node does: its rate is the number of nodes that are busy.", nil)
	needed := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "percodb_bigtable_nodes_needed",
		Help: "Nodes that this process's requests of the last minute need, at 70 % of what a node does."}, m.load.needed)
	m.all = []prometheus.Collector{m.rowsRead, m.conditionsFailed, m.readsGathered, m.writesGathered, m.rowsAhead, m.aheadHits, m.hintsSent,
		m.hintsReceived, m.locksAwaited, m.load.total, needed}
	for _, method := range methods {
		labels := prometheus.Labels{"method": method}
		of := &methodMetrics{
			failed:   counter("request_errors_total", "Requests to Bigtable that were answered with an error.", labels),
			repeated: counter("request_retries_total", "Requests to Bigtable that repeat one that failed; they are requests themselves.", labels),
			sent:     counter("sent_bytes_total", "Bytes of requests to Bigtable.", labels),
			received: counter("received_bytes_total", "Bytes of Bigtable's answers.", labels),
			seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "percodb_bigtable_request_seconds",
				Help: "Time of requests to Bigtable, of ReadRows until the first answer; the count is the number of requests.", ConstLabels: labels,
				Buckets: prometheus.ExponentialBuckets(250e-6, 2, 16)}),
		}
		m.byMethod[method] = of
		m.all = append(m.all, of.failed, of.repeated, of.sent, of.received, of.seconds)
	}
	return m
}

func (m *requestMetrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for _, c := range m.all {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

func (m *requestMetrics) unregister(r prometheus.Registerer) {
	for _, c := range m.all {
		if r != nil {
			r.Unregister(c)
		}
	}
}

func (m *requestMetrics) counts() map[string]int64 {
	counts := map[string]int64{}
	for method, of := range m.byMethod {
		if n := of.count.Load(); n > 0 {
			counts[method] = n
		}
	}
	return counts
}

// operation is what one call of the client library sends: its second request and those that follow are repetitions.
type operation struct {
	requests atomic.Int32
	// heard is called with each message that Bigtable sends, failed with the error of a request, once gRPC does not repeat it any more. nil: they
	// are not.
	heard  func()
	failed func(error)
}

type operationKey struct{}

// asOperation returns the context of an operation.
func asOperation(ctx context.Context, op *operation) context.Context {
	return context.WithValue(ctx, operationKey{}, op)
}

// operationOf returns the operation of a request, nil if it belongs to none.
func operationOf(ctx context.Context) *operation {
	op, _ := ctx.Value(operationKey{}).(*operation)
	return op
}

// requestFailed reports the end of a request; op and err may be nil.
func (op *operation) requestFailed(err error) {
	if op != nil && op.failed != nil && err != nil {
		op.failed(err)
	}
}

// sentRequest is a request under way.
type sentRequest struct {
	of       *methodMetrics
	op       *operation // nil: it belongs to none
	begun    time.Time
	answered atomic.Bool
}

type requestKey struct{}

// TagRPC implements stats.Handler.
func (m *requestMetrics) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	of := m.byMethod[info.FullMethodName[strings.LastIndexByte(info.FullMethodName, '/')+1:]]
	if of == nil {
		return ctx
	}
	of.count.Add(1)
	op := operationOf(ctx)
	if op != nil && op.requests.Add(1) > 1 {
		of.repeated.Inc()
	}
	return context.WithValue(ctx, requestKey{}, &sentRequest{of: of, op: op, begun: time.Now()})
}

// HandleRPC implements stats.Handler.
func (m *requestMetrics) HandleRPC(ctx context.Context, s stats.RPCStats) {
	r, ok := ctx.Value(requestKey{}).(*sentRequest)
	if !ok {
		return
	}
	switch s := s.(type) {
	case *stats.OutPayload:
		r.of.sent.Add(float64(s.WireLength))
	case *stats.InPayload:
		r.of.received.Add(float64(s.WireLength))
		r.observe() // How long a scan takes depends on who reads it.
		if r.op != nil && r.op.heard != nil {
			r.op.heard()
		}
	case *stats.End:
		r.observe()
		if status.Code(s.Error) != codes.OK && status.Code(s.Error) != codes.Canceled {
			r.of.failed.Inc()
		}
	}
}

func (r *sentRequest) observe() {
	if r.answered.CompareAndSwap(false, true) {
		r.of.seconds.Observe(time.Since(r.begun).Seconds())
	}
}

// TagConn implements stats.Handler.
func (m *requestMetrics) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

// HandleConn implements stats.Handler.
func (m *requestMetrics) HandleConn(context.Context, stats.ConnStats) {}

// What a node with SSD storage does in a second, of rows of 1 KB, as Google states it (docs/bigtable.md).
const (
	nodeReads  = 17_000
	nodeWrites = 14_000
	// nodeShare is how much of it is planned with.
	nodeShare = 0.7
)

// nodeLoad is the work of nodes.
type nodeLoad struct {
	total prometheus.Counter

	mu   sync.Mutex
	rate float64 // nodes, an average whose weights decay within loadMemory
	at   time.Time
}

// loadMemory is the time constant of nodeLoad's rate.
const loadMemory = time.Minute

func (l *nodeLoad) read(rows int)  { l.add(float64(rows) / nodeReads) }
func (l *nodeLoad) write(rows int) { l.add(float64(rows) / nodeWrites) }

// conditional is a request that reads a row and writes it.
func (l *nodeLoad) conditional() { l.add(1.0/nodeReads + 1.0/nodeWrites) }

func (l *nodeLoad) add(seconds float64) {
	l.total.Add(seconds)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decay()
	l.rate += seconds / loadMemory.Seconds()
}

// decay ages the rate. The caller holds mu.
func (l *nodeLoad) decay() {
	now := time.Now()
	l.rate *= math.Exp(-now.Sub(l.at).Seconds() / loadMemory.Seconds())
	l.at = now
}

func (l *nodeLoad) needed() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decay()
	return l.rate / nodeShare
}
