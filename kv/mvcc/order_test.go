package mvcc

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/percodb/percodb/tso"
)

// orderState is what a reader and a writer of one key share, by I1 of the package.
type orderState struct {
	maxTS    tso.Timestamp
	locked   bool
	commitTS tso.Timestamp
	applied  bool
	marked   bool // the commit mark of the key is at least commitTS
	sawLock  bool // the reader met the lock, at a commit_ts that concerns it
	sawWrite bool // the reader's iterator includes the version
}

const orderReadTS, orderStartTS = 160, 80

// The steps of a reader and of a one-phase writer.
var (
	raiseMax = func(s *orderState) { s.maxTS = max(s.maxTS, orderReadTS) }
	probe    = func(s *orderState) {
		l := Lock{Op: OpPut, StartTS: orderStartTS, MinCommitTS: s.commitTS}
		s.sawLock = s.locked && decideRead(nil, &l, stateInflight, true, &ReadOptions{ReadTS: orderReadTS}) != readPass
	}
	iterate = func(s *orderState) { s.sawWrite = s.applied }

	insert = func(s *orderState) {
		s.locked = true
		s.commitTS, _ = nextTS(max(s.maxTS, orderStartTS))
	}
	applyIt = func(s *orderState) { s.applied = true }
	unlock  = func(s *orderState) { s.locked = false }
)

// interleave runs all interleavings of two sequences from a state and returns how many end with the
// reader having missed a write at or below its timestamp.
func interleave(s orderState, reader, writer []func(*orderState)) (runs, missed int) {
	if len(reader) == 0 && len(writer) == 0 {
		if s.commitTS <= orderReadTS && !s.sawLock && !s.sawWrite && s.applied {
			return 1, 1
		}
		return 1, 0
	}
	for i, rest := range [][]func(*orderState){reader, writer} {
		if len(rest) == 0 {
			continue
		}
		next := s
		rest[0](&next)
		r, w := reader, writer
		if i == 0 {
			r = rest[1:]
		} else {
			w = rest[1:]
		}
		n, m := interleave(next, r, w)
		runs, missed = runs+n, missed+m
	}
	return runs, missed
}

// Goal (T-ORD-1): the order raise max_ts, probe, iterate misses no write, and no other order would do. Method: all
// interleavings of a reader and a writer, for every order of the reader's steps. A write that commits above the reader
// after its read may be missed, as may one with a commit_ts at or below it that was never in the reader's past.
func TestProto_T_ORD_1(t *testing.T) {
	steps := map[string]func(*orderState){"raise": raiseMax, "probe": probe, "iterate": iterate}
	for _, order := range [][3]string{
		{"raise", "probe", "iterate"}, {"raise", "iterate", "probe"}, {"probe", "raise", "iterate"},
		{"probe", "iterate", "raise"}, {"iterate", "raise", "probe"}, {"iterate", "probe", "raise"},
	} {
		reader := []func(*orderState){steps[order[0]], steps[order[1]], steps[order[2]]}
		runs, missed := interleave(orderState{}, reader, []func(*orderState){insert, applyIt, unlock})
		if right := order == [3]string{"raise", "probe", "iterate"}; runs != 20 || (missed == 0) != right {
			t.Errorf("%s: %d of %d interleavings miss a write", fmt.Sprint(order), missed, runs)
		}
	}
}

// Goal: a scan that meets a lock whose state is changing checks it again. Method: locks are written to disk during
// scans; a reader at or above a lock's smallest commit_ts, issued later than it, must meet it.
func TestScanMeetsChangingLock(t *testing.T) {
	w := newWorld(t, false, nil)
	ctx := context.Background()
	for i := range 300 {
		key := fmt.Appendf(nil, "k%04d", i)
		startTS, floor := w.now(), w.now()
		locked := make(chan tso.Timestamp, 1)
		go func() {
			res, err := w.Prewrite(ctx, admitAll{}, &PrewriteRequest{
				Mutations: []Mutation{{Op: OpPut, Key: key, Value: []byte("v")}}, Primary: key,
				StartTS: startTS, FloorTS: floor, TTLMillis: 1000, Async: true})
			if err != nil {
				t.Error(err)
			}
			locked <- res.MinCommitTS
		}()
		seen := map[tso.Timestamp]bool{}
		for len(locked) == 0 {
			readTS := w.now()
			if err := w.BeginRead(ctx, readTS); err != nil {
				t.Fatal(err)
			}
			page, err := w.Scan(ctx, &ScanRequest{Spans: []Span{{Start: key}}, Limit: 1, MaxBytes: 1, ReadOptions: ReadOptions{ReadTS: readTS}})
			if err != nil {
				t.Fatal(err)
			}
			seen[readTS] = len(page.Locked) == 1
			runtime.Gosched() // With one processor the prewrite would wait for a time slice.
		}
		minCommitTS := <-locked
		for readTS, met := range seen {
			if met != (minCommitTS <= readTS) {
				t.Fatalf("scan at %d of lock %d, which commits from %d on: met %v", readTS, i, minCommitTS, met)
			}
		}
	}
}
