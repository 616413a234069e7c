package history

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The classes of the checkers that need no versions.
const (
	WrongTotal     Class = "wrong total"
	LostIncrement  Class = "lost increment"
	ExtraIncrement Class = "increment from nowhere"
	DoubleInsert   Class = "two inserts of one key succeeded"
	LostInsert     Class = "an acknowledged insert is not there"
	AbortedInsert  Class = "an insert reported as failed is there"
	FalseExists    Class = "an insert was refused for a row that cannot have been written"
	IndexMismatch  Class = "index and rows differ"
	LongFork       Class = "long fork (two readers saw two writes in opposite orders)"
	SkewedWrites   Class = "write skew (a condition over several keys is broken)"
	NonMonotonic   Class = "a session read an older version than before"
	StaleRead      Class = "a read did not see what had been seen or acknowledged before it began"
	BrokenRing     Class = "broken ring"
)

func anomaly(class Class, format string, args ...any) Anomaly {
	return Anomaly{Class: class, Story: "  " + fmt.Sprintf(format, args...) + "\n"}
}

// Snapshot is what one transaction read of a set of keys.
type Snapshot struct {
	Session    int
	Begin, End int64
	Values     map[string]int64
	Note       string
}

func (s *Snapshot) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "session %d, [%d, %d]", s.Session, s.Begin, s.End)
	if s.Note != "" {
		fmt.Fprintf(&b, " (%s)", s.Note)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Values)) {
		fmt.Fprintf(&b, " %s=%d", key, s.Values[key])
	}
	return b.String()
}

// CheckBank checks the total of every snapshot of the accounts, which transfers do not change, and the number of
// accounts.
func CheckBank(snapshots []Snapshot, accounts int, total int64) []Anomaly {
	var found []Anomaly
	for i := range snapshots {
		sum := int64(0)
		for _, v := range snapshots[i].Values {
			sum += v
		}
		if sum != total || len(snapshots[i].Values) != accounts {
			found = append(found, anomaly(WrongTotal, "%d accounts hold %d, there should be %d with %d: %s",
				len(snapshots[i].Values), sum, accounts, total, &snapshots[i]))
		}
	}
	return found
}

// CheckCondition checks a condition over several keys in every snapshot. Each transaction preserves it if it runs
// alone. Serializable histories keep it; snapshot isolation may not (write skew).
func CheckCondition(snapshots []Snapshot, holds func(values map[string]int64) bool) []Anomaly {
	var found []Anomaly
	for i := range snapshots {
		if !holds(snapshots[i].Values) {
			found = append(found, anomaly(SkewedWrites, "%s", &snapshots[i]))
		}
	}
	return found
}

// Increment is one attempt to add Delta (positive) to a counter.
type Increment struct {
	Session    int
	Begin, End int64
	Outcome    Outcome
	Delta      int64
}

// CounterRead is the value of a counter that a transaction read, without its own increments.
type CounterRead struct {
	Session    int
	Begin, End int64
	Value      int64
}

// CheckCounter checks reads of one counter, initially 0: a read sees all increments that were acknowledged before it
// began, and none that began after it ended or were reported as failed. Sums of increments are compared, so a
// concurrent increment can mask a lost one; a read after all have ended is exact.
func CheckCounter(increments []Increment, reads []CounterRead) []Anomaly {
	acked := sums(increments, func(i *Increment) (int64, bool) { return i.End, i.Outcome == Committed })
	begun := sums(increments, func(i *Increment) (int64, bool) { return i.Begin, i.Outcome != Aborted })
	var found []Anomaly
	for _, r := range reads {
		if least := acked.before(r.Begin); r.Value < least {
			found = append(found, anomaly(LostIncrement, "session %d read %d in [%d, %d], but %d had been acknowledged before",
				r.Session, r.Value, r.Begin, r.End, least))
		}
		if most := begun.before(r.End); r.Value > most {
			found = append(found, anomaly(ExtraIncrement, "session %d read %d in [%d, %d], but no more than %d can have been added by then",
				r.Session, r.Value, r.Begin, r.End, most))
		}
	}
	return found
}

// runningSum is a sum that grows over time.
type runningSum struct {
	at  []int64
	sum []int64 // sum[i] counts at[:i+1]
}

func sums(increments []Increment, when func(*Increment) (int64, bool)) runningSum {
	type event struct{ at, delta int64 }
	var events []event
	for i := range increments {
		if at, ok := when(&increments[i]); ok {
			events = append(events, event{at, increments[i].Delta})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	var s runningSum
	sum := int64(0)
	for _, e := range events {
		sum += e.delta
		s.at, s.sum = append(s.at, e.at), append(s.sum, sum)
	}
	return s
}

// before returns the sum of the increments before t.
func (s *runningSum) before(t int64) int64 {
	n, _ := slices.BinarySearch(s.at, t)
	if n == 0 {
		return 0
	}
	return s.sum[n-1]
}

// Insert is one attempt to insert a key that must be new. Value is unique.
type Insert struct {
	Session    int
	Begin, End int64
	Outcome    Outcome
	// Exists: the attempt was refused because the key existed (Outcome is Aborted).
	Exists bool
	Key    string
	Value  int64
}

func (i *Insert) String() string {
	return fmt.Sprintf("session %d inserted %s=%d in [%d, %d] (%s)", i.Session, i.Key, i.Value, i.Begin, i.End, i.Outcome)
}

// CheckInserts checks attempts to insert unique keys, which are never deleted, against the final rows.
func CheckInserts(inserts []Insert, rows map[string]int64) []Anomaly {
	var found []Anomaly
	byKey := map[string][]*Insert{}
	for i := range inserts {
		byKey[inserts[i].Key] = append(byKey[inserts[i].Key], &inserts[i])
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		value, there := rows[key]
		var winner *Insert
		known := false
		for _, i := range byKey[key] {
			if there && i.Value == value {
				known = true
				if i.Outcome == Aborted {
					found = append(found, anomaly(AbortedInsert, "%s", i))
				}
			}
			if i.Outcome == Committed {
				if winner != nil {
					found = append(found, anomaly(DoubleInsert, "%s; %s", winner, i))
				}
				winner = i
				if !there || value != i.Value {
					found = append(found, anomaly(LostInsert, "%s; at the end there is %s", i, rowText(value, there)))
				}
			}
			if i.Exists && !canExist(byKey[key], i) {
				found = append(found, anomaly(FalseExists, "%s", i))
			}
		}
		if there && !known {
			found = append(found, anomaly(Garbage, "%s=%d was never inserted", key, value))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if byKey[key] == nil {
			found = append(found, anomaly(Garbage, "%s=%d was never inserted", key, rows[key]))
		}
	}
	return found
}

func rowText(value int64, there bool) string {
	if !there {
		return "no row"
	}
	return fmt.Sprint(value)
}

// canExist reports whether another attempt may have committed before the refused one ended.
func canExist(attempts []*Insert, refused *Insert) bool {
	return slices.ContainsFunc(attempts, func(i *Insert) bool {
		return i != refused && i.Outcome != Aborted && i.Begin < refused.End
	})
}

// IndexView is what one snapshot showed of a table and of an index over it.
type IndexView struct {
	Session int
	Note    string
	Rows    map[string]string   // primary key → indexed value
	Entries map[string][]string // indexed value → primary keys
}

// CheckIndex checks that the index of every view has one entry for each row and no others.
func CheckIndex(views []IndexView) []Anomaly {
	var found []Anomaly
	for i := range views {
		v := &views[i]
		entries := 0
		for value, pks := range v.Entries {
			for _, pk := range pks {
				entries++
				if row, ok := v.Rows[pk]; !ok || row != value {
					found = append(found, anomaly(IndexMismatch, "session %d %s: entry %s→%s, row %q (present: %v)", v.Session, v.Note, value, pk, row, ok))
				}
			}
		}
		for _, pk := range slices.Sorted(maps.Keys(v.Rows)) {
			if !slices.Contains(v.Entries[v.Rows[pk]], pk) {
				found = append(found, anomaly(IndexMismatch, "session %d %s: row %s=%s has no entry", v.Session, v.Note, pk, v.Rows[pk]))
			}
		}
		if entries > len(v.Rows) {
			found = append(found, anomaly(IndexMismatch, "session %d %s: %d entries for %d rows", v.Session, v.Note, entries, len(v.Rows)))
		}
	}
	return found
}

// ForkRead is what one transaction saw of a group of keys, each of which one transaction writes once: Seen[i] reports
// whether key i existed.
type ForkRead struct {
	Session int
	Seen    []bool
	Note    string
}

// CheckLongFork checks that of any two reads of a group one saw all that the other saw. Snapshot isolation guarantees
// that, parallel snapshot isolation does not.
func CheckLongFork(reads []ForkRead) []Anomaly {
	count := func(r *ForkRead) (n int) {
		for _, seen := range r.Seen {
			if seen {
				n++
			}
		}
		return n
	}
	order := make([]*ForkRead, len(reads))
	for i := range reads {
		order[i] = &reads[i]
	}
	slices.SortStableFunc(order, func(a, b *ForkRead) int { return count(a) - count(b) })
	var found []Anomaly
	for i := 1; i < len(order); i++ {
		a, b := order[i-1], order[i]
		for k := range a.Seen {
			if a.Seen[k] && !b.Seen[k] {
				found = append(found, anomaly(LongFork, "session %d %s saw %v, session %d %s saw %v", a.Session, a.Note, a.Seen, b.Session, b.Note, b.Seen))
				break
			}
		}
	}
	return found
}

// VersionRead is one read or write of a key whose value only grows: its version.
type VersionRead struct {
	Session    int
	Begin, End int64
	Key        string
	Version    int64
}

// CheckMonotonic checks reads of growing values: within a session they never decrease, and no read returns less than a
// read or an acknowledged write that ended before.
func CheckMonotonic(reads []VersionRead) []Anomaly {
	byKey := map[string][]*VersionRead{}
	for i := range reads {
		byKey[reads[i].Key] = append(byKey[reads[i].Key], &reads[i])
	}
	var found []Anomaly
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		begun := byKey[key]
		slices.SortStableFunc(begun, func(a, b *VersionRead) int { return cmp.Compare(a.Begin, b.Begin) })
		ended := slices.Clone(begun)
		slices.SortStableFunc(ended, func(a, b *VersionRead) int { return cmp.Compare(a.End, b.End) })
		latest := &VersionRead{Version: math.MinInt64}
		next := 0
		for _, r := range begun {
			for next < len(ended) && ended[next].End < r.Begin {
				if ended[next].Version > latest.Version {
					latest = ended[next]
				}
				next++
			}
			if r.Version >= latest.Version {
				continue
			}
			class := StaleRead
			if r.Session == latest.Session {
				class = NonMonotonic
			}
			found = append(found, anomaly(class, "%s: session %d had %d at %d, session %d read %d from %d on",
				key, latest.Session, latest.Version, latest.End, r.Session, r.Version, r.Begin))
		}
	}
	return found
}

// CheckRing checks that the keys of a snapshot form one ring of all of them: next[i] is the key that key i names.
func CheckRing(next []int, note string) []Anomaly {
	seen := make([]bool, len(next))
	at, n := 0, 0
	for n < len(next) && at >= 0 && at < len(next) && !seen[at] {
		seen[at] = true
		at = next[at]
		n++
	}
	if n != len(next) || at != 0 {
		return []Anomaly{anomaly(BrokenRing, "%s: after %d of %d steps at %d: %v", note, n, len(next), at, next)}
	}
	return nil
}
