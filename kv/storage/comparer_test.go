package storage

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// key builds a stored key from what it means.
func key(user string, version uint64, plain bool) []byte {
	k := AppendSentinel([]byte("W" + user))
	if plain {
		return k
	}
	return AppendVersion(k, version)
}

// Goal: the comparer is one that Pebble can use. Method: Pebble's own check, on prefixes made of the
// bytes that the layout gives a meaning.
func TestProto_T_LAY_3(t *testing.T) {
	var prefixes, suffixes [][]byte
	for _, p := range []string{"", "a", "a\x00", "a\x00\x00", "a\x09", "a\x00b", "\x09\x09\x09\x09\x09\x09\x09\x09\x09\x09", "\xff", "zzzzzzzzzzzz"} {
		prefixes = append(prefixes, AppendSentinel([]byte(p)))
	}
	for _, v := range []uint64{0, 1, 9, 0x0909090909090909, 1 << 40, ^uint64(0)} {
		suffixes = append(suffixes, AppendVersion(nil, v))
	}
	if err := pebble.CheckComparer(newComparer(), prefixes, suffixes); err != nil {
		t.Error(err)
	}
}

// randomKey draws keys that are close to each other: few bytes, few lengths, few versions.
func randomKey(rng *rand.Rand) (user string, version uint64, plain bool) {
	alphabet := []byte{0, 1, 8, 9, 'a', 0xfe, 0xff}
	b := make([]byte, rng.IntN(12))
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	versions := []uint64{0, 1, 0x0900, ^uint64(0) - 1, ^uint64(0)}
	return string(b), versions[rng.IntN(len(versions))], rng.IntN(5) == 0
}

// Goal: stored keys lie in the order of user key, then descending version, a plain key first, and say
// where their prefix ends, without escaping. Method: random close keys against a comparison of
// their parts.
func TestProto_T_LAY_1(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		au, av, ap := randomKey(rng)
		bu, bv, bp := randomKey(rng)
		if rng.IntN(2) == 0 {
			bu = au
		}
		want := bytes.Compare([]byte(au), []byte(bu))
		if want == 0 {
			switch {
			case ap && bp || !ap && !bp && av == bv:
			case ap || !bp && av > bv:
				want = -1
			default:
				want = 1
			}
		}
		a, b := key(au, av, ap), key(bu, bv, bp)
		if got := compare(a, b); got != want {
			t.Fatalf("compare(%x, %x) = %d, want %d", a, b, got, want)
		}
		prefix, v, ok := SplitVersion(a)
		if ok == ap || ok && (v != av || string(prefix) != string(key(au, 0, true))) {
			t.Fatalf("SplitVersion(%x) = %x, %d, %v", a, prefix, v, ok)
		}
		checkShortKeys(t, a, b)
	}
}

// Goal: no key's versions are found under another key, though user keys may have any bytes and be the
// beginnings of each other, or of each other's stored keys. Method: such keys with a random number of
// versions in an engine, some of them flushed; for each of them a seek by prefix, and a walk within its bounds.
func TestProto_T_LAY_2(t *testing.T) {
	e := mustOpen(t, vfs.NewMem())
	defer mustClose(t, e)
	rng := rand.New(rand.NewPCG(3, 1))
	users := []string{"", "\x00", "\x09"}
	for range 200 {
		user, version, _ := randomKey(rng)
		// What follows W in a stored key, whole and without its last byte, as another's user key.
		stored := key(user, version, false)[1:]
		users = append(users, user, user+"\x00", string(stored), string(stored[:len(stored)-1]), string(stored[:len(user)+1]))
	}
	slices.Sort(users)
	users = slices.Compact(users)
	want := map[string]int{}
	for part := range 3 {
		b := e.NewBatch(0)
		for _, user := range users {
			for range rng.IntN(3) {
				want[user]++
				b.Put(key(user, uint64(part)<<8|uint64(want[user]), false), []byte(user))
			}
		}
		apply := errors.Join(e.Apply(b, NoSync), e.Flush())
		b.Close()
		if apply != nil {
			t.Fatal(apply)
		}
	}
	points, err := e.NewPointIter(PointCheck)
	if err != nil {
		t.Fatal(err)
	}
	defer points.Close()
	for i, user := range users {
		upper := key("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 0, true)
		if i+1 < len(users) {
			upper = key(users[i+1], 0, true)
		}
		within, err := e.NewRangeIter(key(user, 0, true), upper)
		if err != nil {
			t.Fatal(err)
		}
		count := func(it *Iterator, ok bool) (n int) {
			for ; ok; ok = it.Next() {
				if value, err := it.Value(); err != nil || string(value) != user {
					t.Fatalf("under %x: a version of %x, %v", user, value, err)
				}
				n++
			}
			return n
		}
		found, bounded := count(points, points.SeekPrefixGE(key(user, 0, true))), count(within, within.First())
		if found != want[user] || bounded != want[user] {
			t.Fatalf("%x has %d versions; %d by prefix, %d within bounds", user, want[user], found, bounded)
		}
		within.Close()
	}
}

// checkShortKeys verifies the short keys that index blocks are made of.
func checkShortKeys(t *testing.T, a, b []byte) {
	t.Helper()
	if s := successor(nil, a); compare(a, s) > 0 || validateKey(s) != nil {
		t.Fatalf("successor(%x) = %x", a, s)
	}
	if ka, kb := abbreviate(a), abbreviate(b); ka < kb && compare(a, b) >= 0 || ka > kb && compare(a, b) <= 0 {
		t.Fatalf("abbreviated keys of %x and %x are in the wrong order", a, b)
	}
	if compare(a, b) >= 0 {
		return
	}
	if s := separator(nil, a, b); compare(a, s) > 0 || compare(s, b) >= 0 || validateKey(s) != nil || len(s) > len(a) {
		t.Fatalf("separator(%x, %x) = %x", a, b, s)
	}
}

// Goal: no bytes make the comparer panic or lose its order. Method: fuzzing; antisymmetry and split.
func FuzzComparer(f *testing.F) {
	f.Add([]byte{}, []byte{9}, []byte{0})
	f.Add([]byte("a\x00"), key("a", 7, false), []byte{1, 2, 3, 9})
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		if compare(a, b) != -compare(b, a) {
			t.Errorf("compare(%x, %x) is not antisymmetric", a, b)
		}
		if (compare(a, b) == 0) != bytes.Equal(a, b) {
			t.Errorf("%x and %x: order and equality differ", a, b)
		}
		keys := [][]byte{a, b, c}
		slices.SortFunc(keys, compare)
		if compare(keys[0], keys[2]) > 0 {
			t.Errorf("order of %x is not transitive", keys)
		}
		if n := split(a); n < 0 || n > len(a) {
			t.Errorf("split(%x) = %d", a, n)
		}
		SplitVersion(a)
	})
}
