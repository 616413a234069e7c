package sim

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	seedFlag      = flag.Uint64("seed", 0, "the seed that TestSeed replays")
	eventsFlag    = flag.Bool("events", false, "print every event of TestSeed")
	fromFlag      = flag.Uint64("from", 0, "the first seed of TestSeeds")
	seedsFlag     = flag.Uint64("seeds", 0, "how many seeds TestSeeds runs (default 200, 50 with -short)")
	observersFlag = flag.Bool("observers", false, "TestSeed and TestSeeds run the workload of observers, whatever the seed's plan says")
	tableFlag     = flag.Bool("table", false, "TestSeed and TestSeeds run over a table of kv/bigtable, whatever the seed's plan says")
	workerFlag    = flag.String("worker", "", "n/m: run every m-th seed from the n-th on, and tell of each (used by TestSeeds)")
)

// changePlan returns what -observers and -table change in a seed's plan.
func changePlan(seed uint64) func(*plan) {
	return func(p *plan) {
		if *observersFlag {
			observersPlan(p, seed)
		}
		if *tableFlag {
			tablePlan(p)
		}
	}
}

// tablePlan makes the plan one of processes over a table of kv/bigtable.
func tablePlan(p *plan) {
	p.table, p.embedded, p.nodes, p.spans = true, false, 1, nil
	p.absences, p.packs, p.slowSyncs = false, false, 0
	p.kinds = slices.DeleteFunc(p.kinds, func(k faultKind) bool { return !k.possible(p) })
	if len(p.kinds) == 0 {
		p.faults = 0
	}
}

// observersPlan makes the plan one of observers, at all levels in turn.
func observersPlan(p *plan, seed uint64) {
	p.workload, p.mode, p.txns = observerWorkload, modes[seed%uint64(len(modes))], 40
}

// TestSeed replays one run: go test ./test/sim -run 'TestSeed$' -seed 42 -events
func TestSeed(t *testing.T) {
	var trace io.Writer
	if *eventsFlag {
		trace = os.Stdout
	}
	r := simulate(t, *seedFlag, changePlan(*seedFlag), trace)
	t.Logf("seed %d: %v: %d events, %v, digest %x", *seedFlag, &r.plan, r.events, r.took, r.digest)
	if r.failed() {
		t.Error(r.report(*seedFlag))
	}
}

// Goal: under all faults no client observes what its isolation level forbids, and what it was told is true. Method:
// runs by seed, in one process for each processor: goroutines then run in a fixed order. If a process dies its seed is
// reported.
func TestSeeds(t *testing.T) {
	if *workerFlag != "" {
		work(t)
		return
	}
	if *seedsFlag == 0 {
		*seedsFlag = 200
		if testing.Short() {
			*seedsFlag = 50
		}
	}
	workers := min(uint64(runtime.NumCPU()), max(*seedsFlag, 1))
	p := &progress{t: t, begun: time.Now(), last: time.Now()}
	var all sync.WaitGroup
	for n := range workers {
		all.Go(func() { p.watch(n, workers) })
	}
	all.Wait()
	took := time.Since(p.begun)
	t.Logf("%d seeds, %d events, %d violations, %d transactions committed of %d, %v (%.1f seeds/s)",
		p.runs, p.events, p.failures, p.committed, p.txns, took.Round(time.Millisecond), float64(p.runs)/took.Seconds())
	if p.runs != *seedsFlag {
		t.Errorf("%d of %d seeds were run", p.runs, *seedsFlag)
	}
}

// The lines that a worker prints for each seed, before it and after it.
const (
	lineBegin = "sim: begin %d"
	lineEnd   = "sim: end %d events %d txns %d committed %d"
)

// work runs a worker's share of the seeds.
func work(t *testing.T) {
	var n, workers uint64
	if _, err := fmt.Sscanf(*workerFlag, "%d/%d", &n, &workers); err != nil || workers == 0 {
		t.Fatalf("-worker %q: %v", *workerFlag, err)
	}
	for seed := *fromFlag + n; seed < *fromFlag+*seedsFlag; seed += workers {
		fmt.Printf(lineBegin+"\n", seed)
		r := simulate(t, seed, changePlan(seed), nil)
		if *observersFlag {
			r.flags = " -observers"
		}
		if *tableFlag {
			r.flags += " -table"
		}
		if r.failed() {
			fmt.Printf("sim: violation\n%s\nsim: told\n", r.report(seed))
		}
		fmt.Printf(lineEnd+"\n", seed, r.events, r.txns, r.committed)
	}
}

// progress collects the workers' output.
type progress struct {
	t     *testing.T
	begun time.Time

	mu                     sync.Mutex
	last                   time.Time
	runs, failures, events uint64
	txns, committed        uint64
}

// stuckAfter is how long a worker may take for one seed, of real time.
const stuckAfter = time.Minute

// watch runs one worker and reads its output.
func (p *progress) watch(n, workers uint64) {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestSeeds$", "-test.timeout", "0", "-worker", fmt.Sprintf("%d/%d", n, workers),
		"-from", fmt.Sprint(*fromFlag), "-seeds", fmt.Sprint(*seedsFlag), fmt.Sprintf("-observers=%t", *observersFlag), fmt.Sprintf("-table=%t", *tableFlag))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Error(err)
		return
	}
	dog := time.AfterFunc(stuckAfter, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	defer dog.Stop()
	seed, other, report := uint64(0), []string{}, []string(nil)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		var events, txns, committed uint64
		switch {
		case line == "sim: violation":
			report = []string{}
		case line == "sim: told":
			p.fail(strings.Join(report, "\n"))
			report = nil
		case report != nil:
			report = append(report, line)
		case scan(line, lineBegin, &seed):
			dog.Reset(stuckAfter)
		case scan(line, lineEnd, &seed, &events, &txns, &committed):
			p.done(events, txns, committed)
		default:
			other = append(other, line)
		}
	}
	if err := cmd.Wait(); err != nil {
		p.fail(fmt.Sprintf("the process that ran seed %d ended: %v\n%s\n%s", seed, err, strings.Join(other, "\n"), stderr.String()))
	}
}

func scan(line, format string, into ...any) bool {
	n, err := fmt.Sscanf(line, format, into...)
	return err == nil && n == len(into)
}

func (p *progress) fail(report string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures++
	p.t.Error(report)
	if *seedsFlag > 1000 { // a long run prints at once
		fmt.Println(report)
	}
}

func (p *progress) done(events, txns, committed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs++
	p.events += events
	p.txns += txns
	p.committed += committed
	if now := time.Now(); now.Sub(p.last) >= 10*time.Second {
		p.last = now
		fmt.Printf("%d of %d seeds, %d violations, %.1f seeds/s\n", p.runs, *seedsFlag, p.failures, float64(p.runs)/now.Sub(p.begun).Seconds())
	}
}

// Goal: steps of the oracle's clock roll back no running transaction. Method: worlds without other faults, whose
// transactions hold their locks over many steps.
func TestClockStepsRollNothingBack(t *testing.T) {
	var txns, committed int64
	for seed := range uint64(12) {
		r := simulate(t, seed, func(p *plan) {
			*p = plan{workload: "parents", mode: modes[int(seed)%len(modes)], nodes: 1 + int(seed%3), clients: 5, txns: 20,
				noAsync: p.noAsync, lockTTL: 3 * time.Second, latency: time.Millisecond, faults: 60, kinds: []faultKind{stepClock}}
			p.divide()
		}, nil)
		if r.failed() {
			t.Error(r.report(seed))
		}
		if r.expired > 0 {
			t.Errorf("seed %d: %d transactions had their locks taken away (%v)", seed, r.expired, &r.plan)
		}
		txns, committed = txns+r.txns, committed+r.committed
	}
	if t.Logf("%d of %d transactions committed", committed, txns); committed < txns/4 {
		t.Error("too few transactions committed to tell anything")
	}
}

// Goal: garbage is collected while nodes are unavailable for longer than history is kept, and nothing is lost or locked
// forever. Method: worlds of several nodes whose clients die, and whose lock bounds are reached during the absence.
func TestAbsentNodes(t *testing.T) {
	seeds := uint64(24)
	if testing.Short() {
		seeds = 8
	}
	without, committed := 0, int64(0)
	for seed := range seeds {
		r := simulate(t, seed, func(p *plan) {
			p.embedded, p.nodes, p.txns, p.collects, p.latency = false, 2+int(seed%2), 20, true, 10*time.Millisecond
			p.kinds, p.faults = []faultKind{killClient}, 20
			p.letBeAway()
			p.divide()
		}, nil)
		if r.failed() {
			t.Error(r.report(seed))
		}
		without, committed = without+r.without, committed+r.committed
	}
	if t.Logf("%d rounds of garbage collection without a node, %d transactions committed", without, committed); without < int(seeds) {
		t.Error("too few rounds without a node to tell anything")
	}
}

// Goal: large commits in one phase keep every guarantee under all faults. Method: the workloads and levels in turn in
// worlds of one process, whose write sets go to files; crashes, slow syncs, cancellations, splits and garbage
// collection.
func TestLargeCommits(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	var large, committed int64
	for seed := range seeds {
		r := simulate(t, seed, func(p *plan) {
			p.embedded, p.nodes, p.spills, p.collects = true, 1, true, seed%2 == 0
			p.workload, p.mode = workloadNames[seed%uint64(len(workloadNames))], modes[seed%uint64(len(modes))]
			p.dropRequests, p.dropAnswers, p.duplicates = 0, 0, 0
			p.faults, p.kinds = max(p.faults, 5), []faultKind{crashNode, restartNode, splitRange, stepClock, cancelClient}
			p.divide()
		}, nil)
		if r.failed() {
			t.Error(r.report(seed))
		}
		large, committed = large+r.large, committed+r.committed
	}
	if t.Logf("%d of %d commits were large", large, committed); large < committed/20 {
		t.Error("too few large commits to tell anything")
	}
}

// Goal: what observers derive equals a recomputation, and no change is delivered by two transactions that commit, under
// all faults. Method: the workload of observers at all levels in turn; hints are late, repeated and mostly lost.
func TestObservers(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	var committed int64
	for seed := range seeds {
		r := simulate(t, seed, func(p *plan) { observersPlan(p, seed) }, nil)
		if r.failed() {
			t.Error(r.report(seed))
		}
		committed += r.committed
	}
	t.Logf("%d transactions committed", committed)
}

// Goal: over a table of kv/bigtable no client observes what its isolation level forbids, under all faults. Method: seeds whose processes share a
// table; every fourth runs the workload of observers, and every fourth is a world in which TestBugsAreFound finds bugs.
func TestTables(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	var committed, txns int64
	for seed := range seeds {
		r := simulate(t, seed, func(p *plan) {
			switch seed % 4 {
			case 2:
				overTable(p)
			case 3:
				observersPlan(p, seed)
			}
			tablePlan(p)
		}, nil)
		if r.failed() {
			t.Error(r.report(seed))
		}
		committed, txns = committed+r.committed, txns+r.txns
	}
	if t.Logf("%d of %d transactions committed", committed, txns); committed < txns/5 {
		t.Error("too few transactions committed to tell anything")
	}
}

// Goal: fixed bugs stay fixed. Method: their seeds. A seed shows a bug only while its plan is the same, so each bug
// also has a test in its own package.
func TestSeedsOfFixedBugs(t *testing.T) {
	for seed, what := range map[uint64]string{
		1431:  "a lost lock was amended over a newer commit (kv/mvcc, TestLostLockUnderAYoungerSnapshot)",
		774:   "the same, in a ring",
		1039:  "the same, in a ring over three nodes",
		2093:  "a duplicate of a prewrite that had given way to a lock was carried out after its transaction was reported as failed",
		442:   "waiting for a lock used up the budget for retries",
		7:     "a dead transaction's pessimistic lock could not be cleared away once garbage collection had overtaken it",
		188:   "the same, over the network",
		13732: "an async commit whose answer was lost, and whose repetition met the fence, was reported as aborted",
		15656: "the same, with pessimistic locks",
		17891: "the same, by a counter",
		18815: "the same, over three nodes",
		8414:  "the run ended while locks that a restart had found were still alive: the harness waited too little",
		16356: "the same, because the oracle's time stood still",
		21379: "a lock on a key that was not written stays until somebody writes there or collects garbage, as it should",
		2539:  "a second request to raise the safe point of a store waited for the first one's sync without watching its context",
	} {
		if r := simulate(t, seed, nil, nil); r.failed() {
			t.Errorf("%s:\n%s", what, r.report(seed))
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
