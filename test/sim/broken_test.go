package sim

import (
	"testing"
	"time"

	"github.com/percodb/percodb/percolator"
)

// Goal: the simulation detects the defects it is made for (I5). Method: each bug is injected into worlds of the seeds
// from 0 on, with workloads that can show it; a checker must report it within a hundred seeds, while the same worlds
// without the bug pass in TestSeeds.
func TestBugsAreFound(t *testing.T) {
	const most = 100
	for _, tc := range []struct {
		bug       bug
		workloads []string
		change    func(*plan)
	}{
		{ackPrewrite, []string{"bank", "list", "index"}, nil},
		{ackCommit, []string{"bank", "counters", "inserts"}, func(p *plan) { p.noAsync = true }},
		{hideCommit, []string{"list", "inserts", "counters"}, nil},
		{noConflicts, []string{"bank", "list", "counters"}, nil},
		{readLatest, []string{"bank", "list", "ring"}, nil},
		{readOld, []string{"list", "counters"}, nil},
		{passLocks, []string{"list", "fork"}, nil},
		{stealLocks, []string{"bank", "index", "list"}, nil},
		{halfCommit, []string{"bank", "index", "list"}, nil},
		{oldTimestamps, []string{"list", "counters"}, nil},
		{lyingDisk, []string{"bank", "list", "counters"}, func(p *plan) { p.faults, p.kinds = 5, []faultKind{crashNode} }},
		{keepRow, []string{"index"}, nil},
		{leakySnapshot, []string{"bank", "list", "index"}, nil},
		{noSharedLocks, []string{"parents"}, func(p *plan) { p.mode = mode{percolator.ReadCommitted, true} }},
		{dropCursorReads, []string{"list"}, func(p *plan) { p.mode, p.txns = mode{percolator.SnapshotIsolation, true}, 40 }},
		{clearAll, []string{"derived"}, nil},
		{clearFirst, []string{"derived"}, func(p *plan) { p.txns = 40 }},
		{dropNotify, []string{"derived"}, nil},
		{blindAcks, []string{"derived"}, nil},
		{onlyHints, []string{"derived"}, nil},
		{hastyCollection, []string{"index"}, func(p *plan) { // locks of dead processes, on other nodes than their primaries
			p.embedded, p.nodes, p.txns, p.noAsync, p.collects, p.latency = false, 3, 40, true, true, 10*time.Millisecond
			p.kinds, p.faults, p.dropRequests = []faultKind{killClient}, 40, 60
			p.divide()
		}},
		{unprotected, []string{"index", "bank"}, func(p *plan) { // locks of dead processes, on unavailable nodes
			p.embedded, p.nodes, p.txns, p.noAsync, p.collects, p.latency = false, 3, 40, true, true, 10*time.Millisecond
			p.kinds, p.faults, p.dropRequests = []faultKind{killClient}, 40, 60
			p.letBeAway()
			p.divide()
		}},
		{noFence, []string{"bank", "list"}, overTable},
		{noNewerWrites, []string{"bank", "list", "counters"}, overTable},
		{noLocks, []string{"bank", "list"}, overTable},
		{noRollbacks, []string{"bank", "list", "index"}, func(p *plan) {
			// An owner that is cut off between its locks and its commit for longer than the TTL, while what it has sent arrives again.
			overTable(p)
			p.collects, p.kinds, p.faults = false, []faultKind{cutLink}, 30
			p.dropRequests, p.dropAnswers, p.holds, p.duplicates = 0, 0, 0, 400
			p.lockTTL, p.latency = 100*time.Millisecond, time.Millisecond
		}},
		{unconditional, []string{"bank", "list"}, overTable},
		{wildUndo, []string{"bank", "list", "index"}, overTable},
		{oneRequest, []string{"list", "counters"}, overTable},
	} {
		t.Run(string(tc.bug), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(most) {
				r := simulate(t, seed, func(p *plan) {
					p.workload = tc.workloads[seed%uint64(len(tc.workloads))]
					p.bug = tc.bug
					p.mode = mode{}
					p.clients = max(p.clients, 4)
					if tc.change != nil {
						tc.change(p)
					}
				}, nil)
				if r.failed() {
					t.Logf("found by seed %d (%s): %s", seed, r.plan.workload, firstLine(r.problems[0]))
					return
				}
			}
			t.Errorf("not found in %d runs", most)
		})
	}
}

// overTable makes a world of processes over a table whose transactions die, and whose requests come late.
func overTable(p *plan) {
	p.collects, p.txns, p.kinds, p.faults = true, 40, []faultKind{killClient, cutLink}, 30
	p.dropRequests, p.dropAnswers, p.holds, p.duplicates = 30, 30, 50, 60
	tablePlan(p)
}
