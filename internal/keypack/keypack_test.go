package keypack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// Goal: a map holds what was put into it, whatever the order. Method: random changes of keys of several shapes next to a
// Go map; lookups, walks from random places in both directions, KeysFrom.
func TestAgainstMap(t *testing.T) {
	shapes := map[string]func(r *rand.Rand) []byte{
		"dense":    func(r *rand.Rand) []byte { return fmt.Appendf(nil, "table/%08d", r.IntN(4000)) },
		"random":   func(r *rand.Rand) []byte { return binary.BigEndian.AppendUint64(nil, r.Uint64()) },
		"prefixes": func(r *rand.Rand) []byte { return bytes.Repeat([]byte{'a'}, r.IntN(700)) },
		"few": func(r *rand.Rand) []byte {
			return []byte{byte(r.IntN(3)), byte(r.IntN(256)), byte(r.IntN(2))}[:r.IntN(4)]
		},
		"long": func(r *rand.Rand) []byte { return fmt.Appendf(bytes.Repeat([]byte{'x'}, 300), "%d", r.IntN(2000)) },
	}
	for name, key := range shapes {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 1))
				var m Map
				want := map[string]Value{}
				for i := range 1_500 {
					k := key(r)
					switch r.IntN(8) {
					case 0, 1, 2, 3:
						v := Value{A: r.Uint64() >> r.IntN(64), B: uint64(i)}
						m.Set(k, v)
						want[string(k)] = v
						for i := range k { // the map has its own copy
							k[i]++
						}
					case 4, 5:
						for range r.IntN(3) * 100 {
							k := key(r)
							v, found := m.Delete(k)
							if w, had := want[string(k)]; had != found || v != w {
								t.Fatalf("Delete(%q) = %v, %v; want %v, %v", k, v, found, w, had)
							}
							delete(want, string(k))
						}
					default:
						v, found := m.Get(k)
						if w, had := want[string(k)]; had != found || v != w {
							t.Fatalf("Get(%q) = %v, %v; want %v, %v", k, v, found, w, had)
						}
					}
					if m.Len() != len(want) {
						t.Fatalf("Len() = %d, want %d", m.Len(), len(want))
					}
					if i%250 == 0 {
						compare(t, r, &m, want, key(r))
					}
				}
			})
		}
	}
}

func compare(t *testing.T, r *rand.Rand, m *Map, want map[string]Value, from []byte) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(want))
	at, _ := slices.BinarySearch(keys, string(from))
	c := m.NewCursor()
	i := at
	for ok := c.SeekGE(from); ok; ok = c.Next() {
		if i == len(keys) || keys[i] != string(c.Key()) || want[keys[i]] != c.Value() {
			t.Fatalf("forward from %q: %q at %d", from, c.Key(), i)
		}
		i++
	}
	if i != len(keys) {
		t.Fatalf("forward from %q: ended at %d of %d", from, i, len(keys))
	}
	i = at - 1
	if len(from) == 0 {
		i = len(keys) - 1
	}
	for ok := c.SeekLT(from); ok; ok = c.Prev() {
		if i < 0 || keys[i] != string(c.Key()) || want[keys[i]] != c.Value() {
			t.Fatalf("backward from %q: %q at %d", from, c.Key(), i)
		}
		i--
	}
	if i != -1 {
		t.Fatalf("backward from %q: ended at %d", from, i)
	}
	least := uint64(r.IntN(1_500))
	var newer []string
	for _, k := range keys[at:] {
		if want[k].B >= least {
			newer = append(newer, k)
		}
	}
	limit := r.IntN(len(newer) + 2)
	got := m.KeysFrom(from, least, limit)
	if newer = newer[:min(limit, len(newer))]; !slices.EqualFunc(got, newer, func(a []byte, b string) bool { return string(a) == b }) {
		t.Fatalf("KeysFrom(%q, %d, %d): %d keys, want %d", from, least, limit, len(got), len(newer))
	}
}

// Goal: a key takes few bytes, and the map knows how many. Method: the heap before and after many rows' keys, in
// order and at random.
func TestSize(t *testing.T) {
	const n = 50_000
	for name, c := range map[string]struct {
		key  func(i int) []byte
		most float64
	}{
		"ascending": {func(i int) []byte { return fmt.Appendf(nil, "t\x80\x00\x00\x69i\x01%012d", i) }, 8},
		"random": {func(i int) []byte {
			return binary.BigEndian.AppendUint64([]byte("t\x80\x00\x00\x69i\x01"), rand.Uint64())
		}, 24},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			m := &Map{}
			for i := range n {
				m.Set(c.key(i), Value{A: 1 << 60, B: uint64(i) << 4})
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			heap, counted := float64(after.HeapAlloc-before.HeapAlloc)/n, float64(m.SizeBytes())/n
			t.Logf("%.1f bytes a key, %.1f counted", heap, counted)
			if heap > c.most || counted < heap*0.8 || counted > heap*1.3 {
				t.Errorf("more than %.0f bytes a key, or they are counted wrongly", c.most)
			}
			for i, k := range m.KeysFrom(nil, 0, n) {
				if _, found := m.Delete(k); !found {
					t.Fatal(i)
				}
			}
			m.Set([]byte("last"), Value{})
			m.Delete([]byte("last"))
			if m.Len() != 0 || m.SizeBytes() > 64<<10 {
				t.Errorf("%d keys, %d bytes are left", m.Len(), m.SizeBytes())
			}
		})
	}
}

// Goal: keys that come and go beside each other leave nothing in memory. Method: two keys by turns, next to some that stay.
func TestKeysThatComeAndGo(t *testing.T) {
	var m Map
	for i := range 10 {
		m.Set(fmt.Appendf(nil, "row%08d", i), Value{A: 7})
	}
	for i := range 100_000 {
		k := fmt.Appendf(nil, "row%08d", 4+100*(i%2))
		m.Delete(k)
		m.Set(k, Value{A: uint64(i)})
		if size := cap(m.open.arena); size > 4<<10 {
			t.Fatalf("%d bytes for %d keys after %d changes", size, m.Len(), i)
		}
	}
	if v, found := m.Get([]byte("row00000003")); m.Len() != 11 || !found || v.A != 7 {
		t.Errorf("%d keys, one that stays: %v %v", m.Len(), v, found)
	}
}

// Goal: a lookup allocates next to nothing. Method: lookups in the open block and in others.
func TestGetAllocates(t *testing.T) {
	var m Map
	var keys [][]byte
	for i := range 10_000 {
		keys = append(keys, fmt.Appendf(nil, "row%08d", i))
		m.Set(keys[i], Value{A: 7})
	}
	i := 0
	if got := testing.AllocsPerRun(1000, func() { m.Get(keys[i*7919%len(keys)]); i++ }); got > 1 {
		t.Errorf("%.0f allocations", got)
	}
}

func BenchmarkMap(b *testing.B) {
	keys := make([][]byte, 1<<20)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "t\x80\x00\x00\x69i\x01%012d", i)
	}
	order := rand.Perm(len(keys))
	b.Run("set ascending", func(b *testing.B) {
		var m Map
		for i := range b.N {
			m.Set(keys[i%len(keys)], Value{A: 1 << 60})
		}
	})
	b.Run("set random", func(b *testing.B) {
		var m Map
		for i := range b.N {
			m.Set(keys[order[i%len(keys)]], Value{A: 1 << 60})
		}
	})
	var m Map
	for i := range keys {
		m.Set(keys[i], Value{A: 1 << 60})
	}
	b.Run("get random", func(b *testing.B) {
		for i := range b.N {
			m.Get(keys[order[i%len(keys)]])
		}
	})
}
