package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/test/history"
)

// mode is the kind of a run's transactions.
type mode struct {
	isolation   percolator.Isolation
	pessimistic bool
}

func (m mode) String() string {
	if m.pessimistic {
		return m.isolation.String() + ", pessimistic"
	}
	return m.isolation.String() + ", optimistic"
}

// level is the isolation level that the histories are checked against.
func (m mode) level() history.Level {
	switch m.isolation {
	case percolator.ReadCommitted:
		return history.ReadCommitted
	case percolator.Serializable:
		return history.Serializable
	}
	return history.SnapshotIsolation
}

// plan describes a run. The seed determines all of it.
type plan struct {
	workload string
	mode     mode
	bug      bug // "": none
	// embedded: one process that contains everything. Otherwise nodes in a cluster.
	embedded       bool
	table          bool // of kv/bigtable, in the place of nodes
	nodes, clients int
	txns           int // of each client
	spans          []kv.Span
	lockTTL        time.Duration
	noAsync        bool          // no async commit
	collects       bool          // garbage, throughout
	spills         bool          // write sets of more than one key go to a file
	absences       bool          // nodes are unavailable to the collector for longer than history is kept
	packs          bool          // stores pack every lock that they can
	packsHeld      bool          // transactions pack all their pessimistic locks except the first
	latency        time.Duration // the maximum between two events

	// Probabilities in thousandths: that a request or an answer is lost, that a request is delayed, that it is
	// repeated, that a log's sync is delayed, and of a fault before each event.
	dropRequests, dropAnswers, holds, duplicates, slowSyncs, faults uint64
	kinds                                                           []faultKind
}

// modes are those from which a seed chooses.
var modes = []mode{
	{percolator.SnapshotIsolation, false}, {percolator.SnapshotIsolation, true}, {percolator.ReadCommitted, true},
	{percolator.Serializable, false}, {percolator.Serializable, true},
}

// keySpace is the span of the workloads' keys: "a…" to "z…".
const keySpace = 26

func newPlan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 2))
	p := plan{
		workload: workloadNames[r.IntN(len(workloadNames))],
		mode:     modes[r.IntN(len(modes))],
		embedded: r.IntN(6) == 0,
		nodes:    1 + r.IntN(3),
		clients:  2 + r.IntN(5),
		txns:     8 + r.IntN(20),
		noAsync:  r.IntN(3) == 0,
		lockTTL:  []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second}[r.IntN(3)],
		latency:  []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond}[r.IntN(3)],
	}
	// Some runs lack some kinds of faults, so that one kind does not mask others.
	rate := func(most int) uint64 {
		if r.IntN(3) == 0 {
			return 0
		}
		return 1 + uint64(r.IntN(most))
	}
	p.dropRequests, p.dropAnswers, p.holds, p.duplicates = rate(30), rate(30), rate(50), rate(60)
	p.slowSyncs, p.faults = rate(500), rate(10)
	if p.embedded {
		p.nodes = 1
		p.dropRequests, p.dropAnswers, p.duplicates = 0, 0, 0
	}
	for kind := range numFaults {
		if r.IntN(3) > 0 && kind.possible(&p) {
			p.kinds = append(p.kinds, kind)
		}
	}
	if len(p.kinds) == 0 {
		p.faults = 0
	}
	// Drawn separately, so that existing seeds keep their plans.
	p.collects = rand.New(rand.NewPCG(seed, 3)).IntN(2) == 0
	if rand.New(rand.NewPCG(seed, 4)).IntN(8) == 0 {
		p.workload = laterWorkload
	}
	often := 8
	if p.embedded {
		often = 2
	}
	p.spills = rand.New(rand.NewPCG(seed, 5)).IntN(often) == 0
	if rand.New(rand.NewPCG(seed, 6)).IntN(2) == 0 && p.collects && p.nodes > 1 {
		p.letBeAway()
	}
	packs := rand.New(rand.NewPCG(seed, 7))
	p.packs, p.packsHeld = packs.IntN(2) == 0, packs.IntN(8) == 0
	if rand.New(rand.NewPCG(seed, 8)).IntN(8) == 0 {
		p.workload = observerWorkload
	}
	p.divide()
	return p
}

// letBeAway adds absences, which are faults and may be the only ones.
func (p *plan) letBeAway() {
	p.absences, p.kinds, p.faults = true, append(p.kinds, leaveNode), max(p.faults, 2)
}

// divide gives each node a part of the key space.
func (p *plan) divide() {
	p.spans = nil
	for i := 1; i < p.nodes; i++ {
		cut := func(i int) []byte { return []byte{byte('a' + i*keySpace/p.nodes)} }
		end := cut(i + 1)
		if i == p.nodes-1 {
			end = nil
		}
		p.spans = append(p.spans, kv.Span{Start: cut(i), End: end})
	}
}

func (p *plan) String() string {
	where := fmt.Sprintf("%d nodes", p.nodes)
	if p.embedded {
		where = "embedded"
	}
	if p.table {
		where = "a table"
	}
	if p.noAsync {
		where += ", no async commit"
	}
	if p.collects {
		where += ", garbage collection"
	}
	if p.absences {
		where += ", absences"
	}
	if p.spills {
		where += ", write sets in files"
	}
	if p.packs {
		where += ", packed locks"
	}
	if p.packsHeld {
		where += ", packed by their transactions"
	}
	return fmt.Sprintf("%s, %v; %s, %d clients × %d; TTL %v, latency %v; lost %d+%d, held %d, twice %d, slow syncs %d, faults %d %v",
		p.workload, p.mode, where, p.clients, p.txns, p.lockTTL, p.latency,
		p.dropRequests, p.dropAnswers, p.holds, p.duplicates, p.slowSyncs, p.faults, p.kinds)
}
