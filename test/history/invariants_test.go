package history

import "testing"

// expect checks that a checker reported exactly one class; "" means nothing.
func expect(t *testing.T, name string, found []Anomaly, want Class) {
	t.Helper()
	if want == "" && len(found) > 0 {
		t.Errorf("%s: %v", name, found)
	}
	if want != "" && (len(found) == 0 || found[0].Class != want) {
		t.Errorf("%s: %v, want %s", name, found, want)
	}
}

// Goal: totals and conditions are checked in every snapshot.
func TestBankAndConditions(t *testing.T) {
	good := []Snapshot{{Values: map[string]int64{"a": 70, "b": 30}}, {Values: map[string]int64{"a": 100, "b": 0}}}
	expect(t, "good", CheckBank(good, 2, 100), "")
	expect(t, "sum", CheckBank([]Snapshot{good[0], {Values: map[string]int64{"a": 70, "b": 31}}}, 2, 100), WrongTotal)
	expect(t, "missing account", CheckBank([]Snapshot{{Values: map[string]int64{"a": 100}}}, 2, 100), WrongTotal)
	onDuty := func(v map[string]int64) bool { return v["a"]+v["b"] > 0 }
	expect(t, "condition holds", CheckCondition(good, onDuty), "")
	expect(t, "write skew", CheckCondition([]Snapshot{{Values: map[string]int64{"a": 0, "b": 0}}}, onDuty), SkewedWrites)
}

// Goal: acknowledged increments are the lower bound of a counter's reads, those that began the upper bound, also at the
// edges.
func TestCounter(t *testing.T) {
	increments := []Increment{
		{Begin: 1, End: 2, Outcome: Committed, Delta: 1},
		{Begin: 3, End: 6, Outcome: Committed, Delta: 1},
		{Begin: 3, Outcome: Unknown, Delta: 1},
		{Begin: 1, End: 2, Outcome: Aborted, Delta: 1},
	}
	for _, tc := range []struct {
		name       string
		begin, end int64
		value      int64
		want       Class
	}{
		{"nothing yet", 0, 1, 0, ""},
		{"the first is acknowledged", 3, 3, 1, ""},
		{"the first is lost", 3, 3, 0, LostIncrement},
		{"what is under way may be there", 4, 5, 3, ""},
		{"or not", 4, 5, 1, ""},
		{"the aborted may not", 4, 5, 4, ExtraIncrement},
		{"at the end, the unknown there", 7, 8, 3, ""},
		{"at the end, without it", 7, 8, 2, ""},
		{"at the end, one lost", 7, 8, 1, LostIncrement},
		{"from the future", 2, 3, 2, ExtraIncrement},
	} {
		expect(t, tc.name, CheckCounter(increments, []CounterRead{{Begin: tc.begin, End: tc.end, Value: tc.value}}), tc.want)
	}
}

// Goal: unique inserts succeed once, stay, and are refused only if the key may exist.
func TestInserts(t *testing.T) {
	ok := Insert{Begin: 1, End: 2, Outcome: Committed, Key: "a", Value: 1}
	failed := Insert{Begin: 1, End: 4, Outcome: Aborted, Key: "a", Value: 2}
	refused := Insert{Begin: 1, End: 4, Outcome: Aborted, Exists: true, Key: "a", Value: 3}
	unknown := Insert{Begin: 1, Outcome: Unknown, Key: "a", Value: 4}
	for _, tc := range []struct {
		name    string
		inserts []Insert
		rows    map[string]int64
		want    Class
	}{
		{"one winner", []Insert{ok, failed, refused}, map[string]int64{"a": 1}, ""},
		{"the unknown has won", []Insert{failed, unknown, refused}, map[string]int64{"a": 4}, ""},
		{"nobody has", []Insert{failed, unknown}, nil, ""},
		{"two winners", []Insert{ok, {Begin: 3, End: 4, Outcome: Committed, Key: "a", Value: 9}}, map[string]int64{"a": 9}, LostInsert},
		{"gone", []Insert{ok}, nil, LostInsert},
		{"overwritten by the unknown", []Insert{ok, unknown}, map[string]int64{"a": 4}, LostInsert},
		{"failed, and there", []Insert{failed}, map[string]int64{"a": 2}, AbortedInsert},
		{"refused for nothing", []Insert{failed, refused}, nil, FalseExists},
		{"refused for what came later", []Insert{refused, {Begin: 5, End: 6, Outcome: Committed, Key: "a", Value: 7}}, map[string]int64{"a": 7}, FalseExists},
		{"from nowhere", nil, map[string]int64{"a": 1}, Garbage},
		{"a value from nowhere", []Insert{unknown}, map[string]int64{"a": 5}, Garbage},
	} {
		expect(t, tc.name, CheckInserts(tc.inserts, tc.rows), tc.want)
	}
	twice := CheckInserts([]Insert{ok, {Begin: 3, End: 4, Outcome: Committed, Key: "a", Value: 9}}, map[string]int64{"a": 1})
	expect(t, "two winners, the first there", twice, DoubleInsert)
}

// Goal: an index has an entry for each row and none besides.
func TestIndex(t *testing.T) {
	rows := map[string]string{"1": "x", "2": "x", "3": "y"}
	for _, tc := range []struct {
		name    string
		entries map[string][]string
		want    Class
	}{
		{"whole", map[string][]string{"x": {"1", "2"}, "y": {"3"}}, ""},
		{"one missing", map[string][]string{"x": {"1"}, "y": {"3"}}, IndexMismatch},
		{"one left over", map[string][]string{"x": {"1", "2"}, "y": {"3", "1"}}, IndexMismatch},
		{"of no row", map[string][]string{"x": {"1", "2"}, "y": {"3"}, "z": {"4"}}, IndexMismatch},
		{"twice", map[string][]string{"x": {"1", "2", "2"}, "y": {"3"}}, IndexMismatch},
	} {
		expect(t, tc.name, CheckIndex([]IndexView{{Rows: rows, Entries: tc.entries}}), tc.want)
	}
}

// Goal: readers that saw two writes in opposite orders are found among others.
func TestLongFork(t *testing.T) {
	see := func(groups ...string) (reads []ForkRead) {
		for _, g := range groups {
			r := ForkRead{}
			for _, c := range g {
				r.Seen = append(r.Seen, c == '1')
			}
			reads = append(reads, r)
		}
		return reads
	}
	expect(t, "a chain", CheckLongFork(see("111", "000", "010", "110", "010")), "")
	expect(t, "a fork", CheckLongFork(see("000", "100", "010", "111")), LongFork)
	expect(t, "a fork of different sizes", CheckLongFork(see("100", "011", "111")), LongFork)
}

// Goal: versions do not decrease in a session, nor from what had ended to what begins.
func TestMonotonic(t *testing.T) {
	read := func(session int, begin, end, version int64) VersionRead {
		return VersionRead{Session: session, Begin: begin, End: end, Key: "k", Version: version}
	}
	expect(t, "good", CheckMonotonic([]VersionRead{read(0, 1, 2, 1), read(1, 3, 4, 1), read(0, 5, 6, 3)}), "")
	expect(t, "overlapping", CheckMonotonic([]VersionRead{read(0, 1, 9, 5), read(1, 3, 4, 1)}), "")
	expect(t, "back in a session", CheckMonotonic([]VersionRead{read(0, 1, 2, 2), read(0, 3, 4, 1)}), NonMonotonic)
	expect(t, "stale", CheckMonotonic([]VersionRead{read(0, 1, 2, 2), read(1, 3, 4, 1)}), StaleRead)
	other := read(1, 3, 4, 1)
	other.Key = "other"
	expect(t, "another key", CheckMonotonic([]VersionRead{read(0, 1, 2, 2), other}), "")
}

// Goal: a ring is one ring of all its keys.
func TestRing(t *testing.T) {
	expect(t, "ring", CheckRing([]int{2, 0, 1}, ""), "")
	expect(t, "two rings", CheckRing([]int{1, 0, 2}, ""), BrokenRing)
	expect(t, "rho", CheckRing([]int{1, 2, 1}, ""), BrokenRing)
	expect(t, "outside", CheckRing([]int{1, 7, 0}, ""), BrokenRing)
}
