package sortrun

import (
	"fmt"
	"sync"
	"testing"
)

// TestFinder asks for all keys and for as many that lie between, from goroutines whose keys are in order in different parts of the
// run, and counts what that allocates: no block is read for each key.
func TestFinder(t *testing.T) {
	var keys []string
	for i := range 30000 {
		keys = append(keys, fmt.Sprintf("%06d", 2*i))
	}
	r := newRun(t, newFile(t), keys)
	if len(r.blocks) < 10 {
		t.Fatalf("the run has %d blocks", len(r.blocks))
	}
	f := NewFinder(r)
	var wg sync.WaitGroup
	for part := range 12 {
		wg.Go(func() {
			for i := part * 5000; i < (part+1)*5000; i++ {
				if found, err := f.Has(fmt.Appendf(nil, "%06d", i)); found != (i%2 == 0) || err != nil {
					t.Errorf("%06d: %v, %v", i, found, err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(f.idle); n > maxIdleCursors {
		t.Errorf("%d blocks are kept", n)
	}
	for _, key := range []string{"", "zz"} {
		if found, err := f.Has([]byte(key)); found || err != nil {
			t.Errorf("%q: %v, %v", key, found, err)
		}
	}
	ordered := make([][]byte, 1000)
	for i := range ordered {
		ordered[i] = fmt.Appendf(nil, "%06d", i)
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, key := range ordered {
			_, _ = f.Has(key)
		}
	}); n > 1 {
		t.Errorf("%v allocations for a thousand keys in order", n)
	}
}

// A block that was changed on disk is an error each time, and nothing of it is kept.
func TestFinderOfChangedBlock(t *testing.T) {
	file := newFile(t)
	r := newRun(t, file, []string{"a", "b"})
	if _, err := file.f.WriteAt([]byte{0xff}, r.blocks[0].at); err != nil {
		t.Fatal(err)
	}
	f := NewFinder(r)
	for range 2 {
		if _, err := f.Has([]byte("b")); err == nil {
			t.Error("no error")
		}
	}
}
