package history

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// parse reads a history of one transaction a line:
//
//	session begin-end outcome statement…
//
// where outcome is ok, no or ?, a statement x+1 (append), x=1,2 (read), x~1,2 (scan), and "stale" a
// statement that marks the transaction.
func parse(t testing.TB, text string) *History {
	t.Helper()
	h := &History{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		var x Txn
		if _, err := fmt.Sscanf(f[0]+" "+f[1], "%d %d-%d", &x.Session, &x.Begin, &x.End); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		x.Outcome = map[string]Outcome{"ok": Committed, "no": Aborted, "?": Unknown}[f[2]]
		for _, s := range f[3:] {
			if s == "stale" {
				x.Stale = true
				continue
			}
			at := strings.IndexAny(s, "+=~")
			op := Op{Kind: map[byte]OpKind{'+': OpAppend, '=': OpRead, '~': OpScan}[s[at]], Key: s[:at]}
			for _, number := range strings.FieldsFunc(s[at+1:], func(r rune) bool { return r == ',' }) {
				n, err := strconv.ParseInt(number, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				if op.Kind == OpAppend {
					op.Value = n
				} else {
					op.List = append(op.List, n)
				}
			}
			x.Ops = append(x.Ops, op)
		}
		h.Txns = append(h.Txns, x)
	}
	return h
}

func classes(found []Anomaly) string {
	var names []string
	for _, a := range found {
		name, _, _ := strings.Cut(string(a.Class), " (")
		if strings.HasSuffix(string(a.Class), realtime) {
			name += realtime
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// Goal: every class is found, at the levels that forbid it and at no other. Method: the smallest history of each, with
// the expected class for each level (read committed, snapshot isolation, serializable). Transactions overlap (1-9)
// unless real time matters.
func TestInvalidHistories(t *testing.T) {
	for _, tc := range []struct {
		name, history string
		want          [3]string // by level
	}{
		{"G0", `
			0 1-9 ok x+1 y+1
			1 1-9 ok x+2 y+2
			2 1-9 ok x=1,2 y=2,1`, [3]string{"G0", "G0", "G0"}},
		{"G0, a third write in the midst of a transaction's", `
			0 1-9 ok x+1 x+3
			1 1-9 ok x+2
			2 1-9 ok x=1,2,3`, [3]string{"G0", "G0", "G0"}},
		{"G1a", `
			0 1-9 no x+1
			1 1-9 ok x=1`, [3]string{"G1a", "G1a", "G1a"}},
		{"G1b", `
			0 1-9 ok x+1 x+2
			1 1-9 ok x=1
			2 1-9 ok x=1,2`, [3]string{"G1b", "G1b", "G1b"}},
		{"G1c", `
			0 1-9 ok x+1 y=1
			1 1-9 ok y+1 x=1`, [3]string{"G1c", "G1c", "G1c"}},
		{"G1c of three, one by ww", `
			0 1-9 ok x+1 y+5
			1 1-9 ok x=1 z+1
			2 1-9 ok z=1 y+6
			3 1-9 ok y=6,5`, [3]string{"G1c", "G1c", "G1c"}},
		{"G-single", `
			0 1-9 ok x+1 y+1
			1 1-9 ok x=1 y=`, [3]string{"", "G-single", "G-single"}},
		{"G-single of three", `
			0 1-9 ok x+1
			1 1-9 ok x=1 y+1
			2 1-9 ok y=1 x=`, [3]string{"", "G-single", "G-single"}},
		{"lost update", `
			0 1-9 ok x= x+1
			1 1-9 ok x= x+2
			2 10-11 ok x=1,2`, [3]string{"", "lost update", "lost update"}},
		{"lost update that nobody read", `
			0 1-9 ok x= x+1
			1 1-9 ok x= x+2`, [3]string{"", "lost update", "lost update"}},
		{"lost update by a blind write", `
			0 1-9 ok x= x+1
			1 1-9 ok x+2
			2 10-11 ok x=2,1`, [3]string{"", "lost update", "lost update"}},
		{"rw edges that do not follow each other", `
			0 1-9 ok a+1 b=
			1 1-9 ok b+1 c+1
			2 1-9 ok c=1 d=
			3 1-9 ok d+1 e+1
			4 1-9 ok e=1 a=
			5 1-9 ok a=1 b=1 c=1 d=1 e=1`, [3]string{"", "", "G2-item"}},
		{"G-nonadjacent", `
			0 1-9 ok a=1 b=
			1 1-9 ok b+1 c+1
			2 1-9 ok c=1 d=
			3 1-9 ok d+1 a+1`, [3]string{"", "G-nonadjacent", "G-nonadjacent"}},
		{"G2-item", `
			0 1-9 ok x= y+1
			1 1-9 ok y= x+1`, [3]string{"", "", "G2-item"}},
		{"G2-item of three", `
			0 1-9 ok x= y+1
			1 1-9 ok y= z+1
			2 1-9 ok z= x+1`, [3]string{"", "", "G2-item"}},
		{"G2", `
			0 1-9 ok x~ y+1
			1 1-9 ok y~ x+1`, [3]string{"", "", "G2"}},
		{"long fork", `
			0 1-9 ok x+1
			1 1-9 ok y+1
			2 1-9 ok x=1 y=
			3 1-9 ok x= y=1`, [3]string{"", "G-nonadjacent", "G-nonadjacent"}},
		{"internal: reads that differ", `
			0 1-9 ok x= x=1
			1 1-9 ok x+1`, [3]string{"", "G-single, internal", "G-single, internal"}},
		{"internal: own append not seen", `
			0 1-9 ok x+1 x=
			1 1-9 ok x=1`, [3]string{"internal", "internal", "internal"}},
		{"incompatible orders", `
			0 1-9 ok x+1
			1 1-9 ok x+2
			2 1-9 ok x=1,2
			3 1-9 ok x=2,1`, [3]string{"incompatible orders", "incompatible orders", "incompatible orders"}},
		{"duplicate", `
			0 1-9 ok x+1
			1 1-9 ok x+2
			2 1-9 ok x=1,2,1`, [3]string{"G0, duplicate", "G0, duplicate", "G0, duplicate"}},
		{"garbage", `
			0 1-9 ok x=7`, [3]string{"garbage", "garbage", "garbage"}},
		{"lost append", `
			0 1-2 ok x+1
			1 3-4 ok x=
			2 5-6 ok x=`, [3]string{"lost append", "lost append", "lost append"}},
		{"lost append, overtaken", `
			0 1-2 ok x+1
			1 3-4 ok x+2
			2 5-6 ok x=2`, [3]string{"lost append", "G0-realtime, lost append", "G0-realtime, lost append"}},
		{"stale read by way of another key", `
			0 1-9 ok x+1 y+1
			1 2-3 ok y=1
			2 4-5 ok x=`, [3]string{"", "G-single-realtime", "G-single-realtime"}},
		{"stale write", `
			0 1-2 ok x+1
			1 3-4 ok x+2
			2 1-9 ok x=2,1`, [3]string{"", "G0-realtime", "G0-realtime"}},
		{"real time between readers", `
			0 1-99 ok x+1
			1 2-3 ok x=1
			2 4-5 ok x=`, [3]string{"", "G-single-realtime", "G-single-realtime"}},
		{"unknown, but seen: half of it", `
			0 1-1 ? x+1 y+1
			1 1-9 ok x=1 y=`, [3]string{"", "G-single", "G-single"}},
		{"unknown, seen by a seen unknown", `
			0 1-1 ? x+1 y+1
			1 1-1 ? x=1 y= z+1
			2 1-9 ok z=1`, [3]string{"", "G-single", "G-single"}},
		{"malformed", `
			0 1-9 ok x+1
			1 1-9 ok x+1`, [3]string{"malformed history", "malformed history", "malformed history"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for level, want := range tc.want {
				h := parse(t, tc.history)
				found := CheckListAppend(h, Options{Level: Level(level), Strict: true})
				if got := classes(found); got != want {
					t.Errorf("%v: %q, want %q", Level(level), got, want)
					for _, a := range found {
						t.Log(a)
					}
				}
			}
		})
	}
}

// Goal: what a level allows, and what cannot be decided, is not reported.
func TestValidHistories(t *testing.T) {
	for _, tc := range []struct {
		name, history string
		level         Level
		lax           bool
	}{
		{"nothing", "", Serializable, false},
		{"one after the other", `
			0 1-2 ok x= x+1 x=1
			1 3-4 ok x=1 x+2 y+1 y=1
			0 5-6 ok x=1,2 y=1`, Serializable, false},
		{"write skew under snapshot isolation", `
			0 1-9 ok x= y= x+1
			1 1-9 ok x= y= y+1
			2 10-11 ok x=1 y=1`, SnapshotIsolation, false},
		{"three rw in a row under snapshot isolation", `
			0 1-9 ok x= y+1
			1 1-9 ok y= z+1
			2 1-9 ok z= x+1
			3 10-11 ok x=1 y=1 z=1`, SnapshotIsolation, false},
		{"the read-only anomaly (Fekete) under snapshot isolation", `
			0 1-9 ok x= y= x+1
			1 1-3 ok y= y+1
			2 4-5 ok x= y=1
			3 10-11 ok x=1 y=1`, SnapshotIsolation, false},
		{"unknown and not seen", `
			0 1-1 ? x+1
			1 3-4 ok x=
			2 5-6 ok x=`, Serializable, false},
		{"unknown and seen late", `
			0 1-1 ? x+1
			1 3-4 ok x=
			2 5-6 ok x=1`, Serializable, false},
		{"what an unknown transaction has read is no evidence if it may have aborted", `
			0 1-9 ok x+1 y+1
			1 1-1 ? x=1 y= z+1
			2 10-11 ok z=`, Serializable, false},
		{"aborted and not seen", `
			0 1-9 no x+1 y+2
			1 10-11 ok x=`, Serializable, false},
		{"stale on purpose", `
			0 1-2 ok x+1
			1 3-4 ok stale x=`, Serializable, false},
		{"stale where nobody promised otherwise", `
			0 1-2 ok x+1
			1 3-4 ok x=`, Serializable, true},
		{"no order between those that overlap", `
			0 1-5 ok x+1
			1 2-3 ok x=1
			2 5-6 ok x=1`, Serializable, false},
		{"snapshots by statement under read committed", `
			0 1-9 ok x= x=1 x+2 x=1,2
			1 1-3 ok x+1 y+1
			2 10-11 ok x=1,2 y=1`, ReadCommitted, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, a := range CheckListAppend(parse(t, tc.history), Options{Level: tc.level, Strict: !tc.lax}) {
				t.Error(a)
			}
		})
	}
}

// Goal: with Opaque, failed readers must have read a snapshot too.
func TestOpaque(t *testing.T) {
	h := parse(t, `
		0 1-9 ok x+1 y+1
		1 1-9 no x=1 y= z+1`)
	if found := CheckListAppend(h, Options{Level: SnapshotIsolation}); len(found) > 0 {
		t.Error(found)
	}
	if got := classes(CheckListAppend(h, Options{Level: SnapshotIsolation, Opaque: true})); got != "G-single" {
		t.Error(got)
	}
}

// Goal: the description of a cycle is readable and the cycle is minimal. Method: a short cycle among transactions that
// are part of longer ones.
func TestStory(t *testing.T) {
	h := parse(t, `
		0 1-9 ok x+1 y+1
		1 2-9 ok x=1 z+1
		2 3-9 ok z=1 y= w+1
		3 4-8 ok w=1 x=1 y=
		3 10-11 ok x=1 y=1 z=1 w=1`)
	h.Txns[3].Note = "start_ts 77"
	found := CheckListAppend(h, Options{Level: SnapshotIsolation, Strict: true})
	if len(found) == 0 {
		t.Fatal("nothing found")
	}
	want := `G-single (read skew)
  T0 -wr-> T3: T0 appended 1 to x, T3 read it
  T3 -rw-> T0: T3 read y as [], without 1, which T0 appended
  T0: session 0, began at 1, committed at 9
     1. append 1 to x
     2. append 1 to y
  T3: session 3, began at 4, committed at 8 (start_ts 77)
     1. read w: [1]
     2. read x: [1]
     3. read y: []
`
	if got := found[0].String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
