package sortrun

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func newRun(t *testing.T, f *File, keys []string) *Run {
	t.Helper()
	w := f.NewWriter()
	for _, k := range keys {
		if err := w.Add([]byte(k), []byte("value of "+k)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newFile(t *testing.T) *File {
	t.Helper()
	f, err := Create(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestCursorAgreesWithSlice seeks and walks in both directions, with keys that repeat over many blocks.
func TestCursorAgreesWithSlice(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var keys []string
	for i := range 9000 {
		k := fmt.Sprintf("%06d", 10*(i/3))
		if i >= 3000 && i < 7000 {
			k = "010000" // one key in many blocks
		}
		keys = append(keys, k)
	}
	slices.Sort(keys)
	r := newRun(t, newFile(t), keys)
	if len(r.blocks) < 4 {
		t.Fatalf("the run has %d blocks", len(r.blocks))
	}
	c := r.NewCursor()
	check := func(what string, ok bool, at int) {
		t.Helper()
		if ok != (at >= 0 && at < len(keys)) {
			t.Fatalf("%s: ok = %v, want position %d", what, ok, at)
		}
		if ok && (string(c.Key()) != keys[at] || string(c.Value()) != "value of "+keys[at]) {
			t.Fatalf("%s: at %q, want %q", what, c.Key(), keys[at])
		}
	}
	for range 500 {
		key := fmt.Sprintf("%06d", rnd.IntN(32000))
		if rnd.IntN(4) == 0 {
			key = "010000"
		}
		at, _ := slices.BinarySearch(keys, key)
		check("SeekGE "+key, c.SeekGE([]byte(key)), at)
		if at < len(keys) {
			for i := at + 1; i < min(at+5000, len(keys)+1); i += 1 {
				ok := c.Next()
				check("Next", ok, i)
				if !ok {
					break
				}
			}
		}
		check("SeekLT "+key, c.SeekLT([]byte(key)), at-1)
		for i := at - 2; i >= max(-1, at-3000); i-- {
			ok := c.Prev()
			check("Prev", ok, i)
			if !ok {
				break
			}
		}
	}
	check("SeekLT of nothing", c.SeekLT(nil), len(keys)-1)
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
}

// TestRunIsExtended reads a run made of two, and keeps the file until its last user has closed it.
func TestRunIsExtended(t *testing.T) {
	f := newFile(t)
	a, b := newRun(t, f, []string{"a", "b"}), newRun(t, f, []string{"c", "d"})
	if !b.Follows(a) || a.Follows(b) || a.Follows(a) {
		t.Fatal("which run follows which")
	}
	other := newFile(t)
	if newRun(t, other, []string{"e"}).Follows(b) {
		t.Fatal("a run follows one of another file")
	}
	both := a.Extend(b)
	read := func() (keys string, err error) {
		c := both.NewCursor()
		for ok := c.First(); ok; ok = c.Next() {
			keys += string(c.Key())
		}
		return keys, c.Err()
	}
	if keys, err := read(); keys != "abcd" || err != nil || both.Len != 4 {
		t.Fatalf("%s %v, %d records", keys, err, both.Len)
	}
	f.Share()
	f.Close()
	if keys, err := read(); keys != "abcd" || err != nil {
		t.Fatalf("the file is in use: %s %v", keys, err)
	}
	f.Close()
	if _, err := read(); err == nil {
		t.Fatal("the file is still open")
	}
}

// TestMergeKeepsOrder merges runs that share keys.
func TestMergeKeepsOrder(t *testing.T) {
	f := newFile(t)
	var runs []*Run
	want := map[string][]string{}
	for i := range 7 {
		w := f.NewWriter()
		for j := i; j < 5000; j += i + 1 {
			key, value := fmt.Sprintf("%05d", j), fmt.Sprint(i)
			if err := w.Add([]byte(key), []byte(value)); err != nil {
				t.Fatal(err)
			}
			want[key] = append(want[key], value)
		}
		r, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	var last []byte
	got := map[string][]string{}
	m := NewMerge(runs)
	for ; m.Valid(); m.Next() {
		if bytes.Compare(m.Key(), last) < 0 {
			t.Fatalf("%q after %q", m.Key(), last)
		}
		last = append(last[:0], m.Key()...)
		got[string(last)] = append(got[string(last)], string(m.Value()))
	}
	if m.Err() != nil {
		t.Fatal(m.Err())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatal("the merge is not the union of its runs, older runs first")
	}
}

// TestParts divides a run of short and long records into parts that take about as long as each other, in order and
// without a gap.
func TestParts(t *testing.T) {
	f := newFile(t)
	w := f.NewWriter()
	const n = 80_000
	for i := range n {
		if err := w.Add(fmt.Appendf(nil, "%06d", i), make([]byte, 24+i/(n/2)*200)); err != nil { // the second half is long
			t.Fatal(err)
		}
	}
	whole, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	for _, parts := range []int{0, 1, 2, 3, 4, 1000} {
		at, got := 0, whole.Parts(parts)
		var least, most int64
		for i, p := range got {
			c, from := p.NewCursor(), at
			for ok := c.First(); ok; ok = c.Next() {
				if want := fmt.Sprintf("%06d", at); string(c.Key()) != want {
					t.Fatalf("%q, want %q", c.Key(), want)
				}
				at++
			}
			if c.Err() != nil || p.Len != int64(at-from) {
				t.Fatalf("%v; Len %d of %d records", c.Err(), p.Len, at-from)
			}
			work := p.SizeBytes + p.Len*recordBytes
			if most = max(most, work); i == 0 || work < least {
				least = work
			}
		}
		if at != n || len(got) != max(1, min(parts, whole.Blocks())) {
			t.Fatalf("%d parts of %d, %d records", len(got), parts, at)
		}
		if parts <= 4 && most > least*5/4 {
			t.Fatalf("of %d parts one is %d, another %d", parts, most, least)
		}
	}
	empty, err := f.NewWriter().Finish()
	if parts := empty.Parts(3); err != nil || len(parts) != 1 || parts[0].Len != 0 {
		t.Fatal("an empty run is one part")
	}
}

// TestChangedBlockIsNoticed flips a bit in the file.
func TestChangedBlockIsNoticed(t *testing.T) {
	f := newFile(t)
	r := newRun(t, f, []string{"a", "b"})
	if _, err := f.f.WriteAt([]byte{'x'}, 3); err != nil {
		t.Fatal(err)
	}
	c := r.NewCursor()
	var failure *Error
	if c.First() || !errors.As(c.Err(), &failure) {
		t.Fatalf("a changed block was read: %v", c.Err())
	}
}
