package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// bug is a defect of a modelStore.
type bug int

const (
	noBug bug = iota
	noConflictCheck
	readsLatest     // reads see what was committed after the snapshot
	readsDirty      // reads see uncommitted writes
	keepsAborted    // one write of an aborted transaction stays
	losesCommit     // an acknowledged transaction leaves no write
	halfCommit      // an acknowledged transaction leaves its first write only
	staleSnapshot   // a snapshot is older than acknowledged transactions
	appendsTwice    // a write is applied twice
	readsWrongOrder // a snapshot lacks one of the earlier commits
)

// modelStore stores lists under snapshot isolation, with an optional defect. The test runs its transactions in steps.
type modelStore struct {
	rng          *rand.Rand
	bug          bug
	serializable bool
	now          int64
	commits      []modelCommit // commit i happened at i+1
	open         []*modelTxn
	value        int64
}

type modelCommit struct {
	txn    *modelTxn
	writes []Op
}

type modelTxn struct {
	record   Txn
	snapshot int // number of commits it sees
	missing  int // except this one
	writes   []Op
	reads    map[string]bool
	steps    int
	late     bool
}

const modelKeys = 5

func (s *modelStore) tick() int64 { s.now++; return s.now }

func (s *modelStore) key() string { return fmt.Sprintf("k%d", s.rng.IntN(modelKeys)) }

func (s *modelStore) begin(session int) *modelTxn {
	x := &modelTxn{snapshot: len(s.commits), missing: -1, reads: map[string]bool{}, steps: 1 + s.rng.IntN(6)}
	x.record = Txn{Session: session, Begin: s.tick()}
	if x.late = s.rng.IntN(8) == 0; x.late { // whether the defect applies
		if s.bug == staleSnapshot {
			x.snapshot = max(0, x.snapshot-3)
		}
		if s.bug == readsWrongOrder && x.snapshot > 0 {
			x.missing = x.snapshot - 1
		}
	}
	return x
}

func (s *modelStore) list(x *modelTxn, key string) []int64 {
	var out []int64
	add := func(writes []Op) {
		for _, w := range writes {
			if w.Key == key {
				out = append(out, w.Value)
			}
		}
	}
	upTo := x.snapshot
	if s.bug == readsLatest && x.late {
		upTo = len(s.commits)
	}
	for i, c := range s.commits[:upTo] {
		if i != x.missing {
			add(c.writes)
		}
	}
	if s.bug == readsDirty && x.late && s.rng.IntN(2) == 0 {
		for _, other := range s.open {
			if other != nil && other != x {
				add(other.writes)
			}
		}
	}
	add(x.writes)
	return out
}

// step runs one statement, or the commit, and reports whether the transaction has ended.
func (s *modelStore) step(x *modelTxn) bool {
	if x.steps--; x.steps < 0 {
		s.end(x)
		return true
	}
	op := Op{Key: s.key()}
	if s.rng.IntN(2) == 0 {
		s.value++
		op.Kind, op.Value = OpAppend, s.value
		x.writes = append(x.writes, op)
	} else {
		op.Kind, op.List = OpRead, s.list(x, op.Key)
		x.reads[op.Key] = true
	}
	x.record.Ops = append(x.record.Ops, op)
	return false
}

func (s *modelStore) conflicts(x *modelTxn) bool {
	for _, c := range s.commits[x.snapshot:] {
		for _, theirs := range c.writes {
			for _, mine := range x.writes {
				if mine.Key == theirs.Key {
					return true
				}
			}
			if s.serializable && x.reads[theirs.Key] && len(x.writes) > 0 {
				return true
			}
		}
	}
	return false
}

func (s *modelStore) end(x *modelTxn) {
	defer func() { x.record.End = s.tick() }()
	writes := x.writes
	if s.rng.IntN(10) == 0 || s.conflicts(x) && !(s.bug == noConflictCheck && x.late) {
		x.record.Outcome = Aborted
		if s.bug != keepsAborted || !x.late || len(writes) == 0 {
			return
		}
		writes = writes[:1]
	} else {
		x.record.Outcome = Committed
	}
	if x.late && len(writes) > 0 {
		switch s.bug {
		case losesCommit:
			return
		case halfCommit:
			writes = writes[:1]
		case appendsTwice:
			writes = append(writes[:len(writes):len(writes)], writes[0])
		}
	}
	if s.rng.IntN(10) == 0 { // the answer is lost, and perhaps the request
		if x.record.Outcome == Committed && s.rng.IntN(2) == 0 {
			writes = nil
		}
		x.record.Outcome = Unknown
	}
	if len(writes) > 0 {
		s.commits = append(s.commits, modelCommit{x, writes})
	}
}

// run generates a history of n transactions by six sessions.
func (s *modelStore) run(n int) *History {
	h := &History{}
	s.open = make([]*modelTxn, 6)
	for len(h.Txns) < n {
		i := s.rng.IntN(len(s.open))
		switch x := s.open[i]; {
		case x == nil:
			s.open[i] = s.begin(i)
		case s.step(x):
			h.Txns = append(h.Txns, x.record)
			s.open[i] = nil
		}
	}
	return h
}

// Goal: nothing is reported for valid histories, whatever was unknown or aborted. Method: a model of snapshot isolation
// and of serializability, random schedules.
func TestModelHistoriesAreClean(t *testing.T) {
	for seed := range uint64(60) {
		s := &modelStore{rng: rand.New(rand.NewPCG(seed, 1)), serializable: seed%2 == 1}
		level := SnapshotIsolation
		if s.serializable {
			level = Serializable
		}
		if found := CheckListAppend(s.run(200), Options{Level: level, Strict: true, Opaque: true}); len(found) > 0 {
			t.Fatalf("seed %d: %v", seed, found[0])
		}
	}
}

// Goal: a store with an occasional defect is detected. Method: the model with one defect in eight transactions; at
// least half of the histories of 400 transactions must show it.
func TestModelBugsAreFound(t *testing.T) {
	for name, bug := range map[string]bug{
		"no conflict check": noConflictCheck, "reads latest": readsLatest, "reads dirty": readsDirty,
		"keeps aborted": keepsAborted, "loses commit": losesCommit, "half commit": halfCommit,
		"stale snapshot": staleSnapshot, "appends twice": appendsTwice, "misses a commit": readsWrongOrder,
	} {
		t.Run(name, func(t *testing.T) {
			const seeds = 20
			caught := 0
			for seed := range uint64(seeds) {
				s := &modelStore{rng: rand.New(rand.NewPCG(seed, 2)), bug: bug}
				if len(CheckListAppend(s.run(400), Options{Level: SnapshotIsolation, Strict: true})) > 0 {
					caught++
				}
			}
			if caught < seeds/2 {
				t.Errorf("found in %d of %d histories", caught, seeds)
			}
		})
	}
	t.Run("write skew", func(t *testing.T) {
		s := &modelStore{rng: rand.New(rand.NewPCG(1, 2))}
		found := CheckListAppend(s.run(200), Options{Level: Serializable, Strict: true})
		for _, a := range found {
			if !a.Is(G2Item) {
				t.Error(a)
			}
		}
		if len(found) == 0 {
			t.Error("snapshot isolation passes for serializable")
		}
	})
}

// bigHistory is a valid history of n transactions whose lists stay short.
func bigHistory(n int) *History {
	h := &History{}
	for part := uint64(0); len(h.Txns) < n; part++ {
		s := &modelStore{rng: rand.New(rand.NewPCG(part, 3)), now: int64(part) * 1_000_000, value: int64(part) * 1_000_000}
		for _, x := range s.run(200).Txns {
			for o := range x.Ops {
				x.Ops[o].Key = fmt.Sprintf("p%d-%s", part, x.Ops[o].Key)
			}
			h.Txns = append(h.Txns, x)
		}
	}
	return h
}

// Goal: a hundred thousand transactions are checked, at every level (I3). The time is logged.
func TestHundredThousand(t *testing.T) {
	h := bigHistory(100_000)
	for _, level := range []Level{ReadCommitted, SnapshotIsolation} {
		begin := time.Now()
		if found := CheckListAppend(h, Options{Level: level, Strict: true, Opaque: true}); len(found) > 0 {
			t.Fatal(found[0])
		}
		t.Logf("%v: %v", level, time.Since(begin))
	}
	if found := CheckListAppend(h, Options{Level: Serializable, Strict: true}); len(found) == 0 || !found[0].Is(G2Item) {
		t.Errorf("serializable: %q, want G2-item", classes(found))
	}
}

// BenchmarkCheckListAppend measures the check of 10,000 transactions at snapshot isolation.
func BenchmarkCheckListAppend(b *testing.B) {
	h := bigHistory(10_000)
	for b.Loop() {
		if len(CheckListAppend(h, Options{Level: SnapshotIsolation, Strict: true})) > 0 {
			b.Fatal("anomalies in a right history")
		}
	}
}
