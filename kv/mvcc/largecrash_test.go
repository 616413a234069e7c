package mvcc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/percodb/percodb/kv/storage"
)

// powerCuts records what a power cut would leave before each change of a file.
type powerCuts struct {
	mu   sync.Mutex
	fs   *storage.MemFS
	rng  *rand.Rand
	left []*storage.MemFS // by cut: nothing of what was not synced, half of it, all of it
	ops  []string
}

func (p *powerCuts) wrap(fs storage.FS) storage.FS {
	return allFiles{errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.fs != nil && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			p.cut(fmt.Sprint(op.Kind, " ", op.Path))
		}
		return nil
	}))}
}

func (p *powerCuts) cut(op string) {
	p.ops = append(p.ops, op)
	for _, percent := range []int{0, 50, 100} {
		p.left = append(p.left, storage.CrashClone(p.fs, percent, p.rng))
	}
}

// Goal: a power cut at any moment leaves all of a large commit or nothing of it, and all of it once it is acknowledged;
// earlier commits are complete, and no file is left over. Method: a cut before each change of a file, with none, half
// and all of the unsynced data; the files of the commit overlap the memtable, or not.
func TestPowerCutsDuringLargeCommit(t *testing.T) {
	ctx := context.Background()
	for _, overlaps := range []bool{false, true} {
		cuts := &powerCuts{rng: rand.New(rand.NewPCG(5, 5))}
		w := newWorld(t, true, cuts.wrap)
		w.opts.Group = func(key []byte) int { return len(key) - 1 } // files of ten rows
		w.putRow(t, "row00", "old")
		w.putRow(t, "row98", "old")
		if !overlaps {
			if err := w.eng.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		// Another transaction, the commit of whose secondary is not synced.
		secondary := Mutation{Op: OpPut, Key: []byte("row38"), Value: []byte("second")}
		ms := []Mutation{{Op: OpPut, Key: []byte("primary"), Value: []byte("p")}, secondary}
		start := w.now()
		if _, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{Mutations: ms, Primary: ms[0].Key, StartTS: start, TTLMillis: 3000}); err != nil {
			t.Fatal(err)
		}
		commitTS := w.now()
		for i := range ms {
			if _, err := w.Commit(ctx, admitAll{}, [][]byte{ms[i].Key}, start, commitTS, i == 0); err != nil {
				t.Fatal(err)
			}
		}
		large := evenRows(50, "new")
		for i := 3; i < len(large); i += 7 {
			large[i].Value = []byte("a value that lies in a record of its own")
		}
		large[5].Op, large[5].Value = OpLock, nil
		cuts.mu.Lock()
		cuts.fs = w.fs
		cuts.mu.Unlock()
		if _, err := w.CommitLarge(ctx, admitEach, &CommitLargeRequest{Set: &memSet{ms: large}, StartTS: w.now(), Primary: large[0].Key, TTLMillis: 3000}); err != nil {
			t.Fatal(err)
		}
		cuts.mu.Lock()
		answered := len(cuts.left)
		cuts.cut("answered")
		cuts.fs = nil
		cuts.mu.Unlock()
		seen := map[string]int{}
		for i, left := range cuts.left {
			what := fmt.Sprintf("overlaps %v, cut before %s, variant %d", overlaps, cuts.ops[i/3], i%3)
			crashed := &world{t: t, fs: left, oracle: w.oracle, embedded: true}
			crashed.open()
			o := ReadOptions{ReadTS: crashed.now(), Resolved: []CommittedTxn{{StartTS: start, CommitTS: commitTS}}}
			if err := crashed.BeginRead(ctx, o.ReadTS); err != nil {
				t.Fatal(what, err)
			}
			rows := 0
			for j := range large {
				v, err := crashed.Get(ctx, large[j].Key, &o)
				if err != nil {
					t.Fatal(what, err)
				}
				if large[j].Op == OpPut && string(v) == string(large[j].Value) {
					rows++
				}
			}
			state := "all"
			switch {
			case rows == 0:
				state = "nothing"
			case rows < len(large)-1:
				t.Errorf("%s: %d rows of %d", what, rows, len(large)-1)
			}
			if i >= answered && state != "all" {
				t.Errorf("%s: the answered commit is lost", what)
			}
			seen[state]++
			if state == "nothing" {
				for key, want := range map[string]string{"row00": "old", "row98": "old", "row38": "second"} {
					if v, err := crashed.Get(ctx, []byte(key), &o); err != nil || string(v) != want {
						t.Errorf("%s: %s is %q, %v", what, key, v, err)
					}
				}
			}
			if findings, err := crashed.Check(ctx); err != nil || len(findings) > 0 {
				t.Errorf("%s: %v %v", what, findings, err)
			}
			names, err := left.List("d")
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".ingest") }) {
				t.Errorf("%s: files are left over: %v", what, names)
			}
			crashed.close()
		}
		t.Logf("overlaps %v: %d cuts, %v", overlaps, len(cuts.left), seen)
		if seen["all"] == 0 || seen["nothing"] == 0 {
			t.Error("the cuts are all on one side of the commit")
		}
	}
}
