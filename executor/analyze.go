package executor

import (
	"context"
	"time"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// NodeStats is what EXPLAIN ANALYZE shows of a node: how often it was opened, how many rows it returned over all runs,
// and the time spent in it and below it.
type NodeStats struct {
	Loops, Rows int64
	Time        time.Duration
	// Startup is the time to the first row, over all runs.
	Startup time.Duration
	// TempBytes is the size of the node's temporary files, over all runs; 0: its rows fitted into memory.
	TempBytes int64
}

// Analysis collects the stats of a run by node. Nodes that never ran are missing.
type Analysis struct{ nodes map[planner.Node]*NodeStats }

// Node returns the statistics of a node.
func (a *Analysis) Node(n planner.Node) (NodeStats, bool) {
	s, ok := a.nodes[n]
	if !ok || s.Loops == 0 {
		return NodeStats{}, false
	}
	return *s, true
}

// measured counts the rows and measures the time of an operator.
type measured struct {
	op      Operator
	stats   *NodeStats
	started bool
	open    bool
}

// spiller is an operator that may go on in a temporary file.
type spiller interface {
	// spilledBytes is the size that its files have reached since Open. It is called before Close.
	spilledBytes() int64
}

func (a *Analysis) measure(n planner.Node, op Operator) Operator {
	s := a.nodes[n]
	if s == nil {
		s = &NodeStats{}
		a.nodes[n] = s
	}
	return &measured{op: op, stats: s}
}

func (m *measured) Open(ctx context.Context) error {
	began := time.Now()
	m.stats.Loops++
	m.started, m.open = false, true
	err := m.op.Open(ctx)
	d := time.Since(began)
	m.stats.Time += d
	m.stats.Startup += d
	return err
}

func (m *measured) Next(ctx context.Context) (types.Row, error) {
	began := time.Now()
	row, err := m.op.Next(ctx)
	d := time.Since(began)
	m.stats.Time += d
	if !m.started {
		m.stats.Startup += d
		m.started = true
	}
	if row != nil {
		m.stats.Rows++
	}
	return row, err
}

func (m *measured) Close() error {
	if s, ok := m.op.(spiller); ok && m.open {
		m.stats.TempBytes += s.spilledBytes()
	}
	m.open = false
	return m.op.Close()
}
