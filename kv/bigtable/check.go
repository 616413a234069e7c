package bigtable

import (
	"context"
	"fmt"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Findings is what Check has looked at.
type Findings struct{ Rows, Versions, Locks, Statuses int64 }

// checkProgress is how many rows there are for each report of progress.
const checkProgress = 1000

// Check reads all rows of keys and reports what is wrong with their records: cells that cannot be read, versions without data and data without a
// version, transactions that are committed and rolled back or locked, locks that exclude each other, timestamps that were not issued. It changes nothing.
func (s *Shard) Check(ctx context.Context, report func(mvcc.Finding) error, progress func(rows int64)) (sum Findings, err error) {
	now, err := s.issued.refresh(ctx)
	if err != nil {
		return sum, err
	}
	all := widerow.InterleaveFilters(wholeFamily(familyLock), wholeFamily(familyWrite), wholeFamily(familyData), wholeFamily(familyStatus), wholeFamily(familyNotify))
	var failed error
	visit := func(row widerow.Row) bool {
		if sum.Rows++; sum.Rows%checkProgress == 0 {
			progress(sum.Rows)
		}
		r, err := parse(row)
		if err == nil {
			_, err = notifications(row)
		}
		if err != nil {
			failed = report(mvcc.Finding{Key: keyOf(row.Key()), Detail: err.Error()})
			return failed == nil
		}
		sum.Versions, sum.Locks, sum.Statuses = sum.Versions+int64(len(r.versions)), sum.Locks+int64(len(r.locks)), sum.Statuses+int64(len(r.statuses)+len(r.rolled))
		for _, detail := range r.contradictions(now) {
			if failed = report(mvcc.Finding{Key: r.key, Detail: detail + " (" + r.cells() + ")"}); failed != nil {
				return false
			}
		}
		return true
	}
	_ = patiently(ctx, func() error {
		if err = s.c.readRows(ctx, rowRanges([]kv.Span{{}}), all, widerow.ReadOptions{}, visit); sum.Rows > 0 {
			return nil // What has been reported is not reported again.
		}
		return err
	})
	if err == nil {
		err = failed
	}
	return sum, err
}

// contradictions returns what is wrong with a row, all of whose cells were read.
func (r *record) contradictions(now tso.Timestamp) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	data, committed := map[tso.Timestamp]bool{}, map[tso.Timestamp]tso.Timestamp{}
	for i := range r.data {
		data[r.data[i].startTS] = true
	}
	for _, v := range r.versions {
		switch {
		case v.commitTS <= v.startTS:
			add("a version of transaction %d is committed at %d", v.startTS, v.commitTS)
		case v.commitTS > now:
			add("a version is committed at %d, which is in the future", v.commitTS)
		case v.op == mvcc.OpPut && !data[v.startTS]:
			add("the version at %d has no data", v.commitTS)
		}
		if other := committed[v.startTS]; other != 0 {
			add("transaction %d is committed at %d and at %d", v.startTS, v.commitTS, other)
		}
		committed[v.startTS] = v.commitTS
	}
	locked := map[tso.Timestamp]tso.Timestamp{} // as committed, of transactions that have changed nothing
	for _, st := range r.statuses {
		switch {
		case st.commitTS > now:
			add("a lock was committed at %d, which is in the future", st.commitTS)
		case mvcc.IsUse(st.startTS): // It states no outcome.
			continue
		case st.commitTS <= st.startTS:
			add("a lock of transaction %d is committed at %d", st.startTS, st.commitTS)
		}
		if other := max(committed[st.startTS], locked[st.startTS]); other != 0 {
			add("transaction %d is committed at %d and at %d", st.startTS, st.commitTS, other)
		}
		locked[st.startTS] = st.commitTS
	}
	for _, startTS := range r.rolled {
		if at := max(committed[startTS], locked[startTS]); at != 0 {
			add("transaction %d is rolled back, and committed at %d", startTS, at)
		}
		if startTS > now {
			add("transaction %d, which has not begun, is rolled back", startTS)
		}
	}
	for _, ts := range r.fences {
		if ts > now {
			add("records up to %d are collected, which is in the future", ts)
		}
	}
	exclusive := 0
	for i := range r.locks {
		l := &r.locks[i].lock
		if !l.Shared {
			exclusive++
		}
		if at := committed[l.StartTS]; at != 0 {
			add("transaction %d has a lock, and is committed at %d", l.StartTS, at)
		}
		if l.StartTS > now {
			add("a lock of transaction %d, which has not begun", l.StartTS)
		}
		if l.Op == mvcc.OpPut && !data[l.StartTS] {
			add("the lock of transaction %d has no data", l.StartTS)
		}
		if mvcc.CommitsVersion(l.Op) { // The data of a deletion are an empty cell.
			committed[l.StartTS] = now
		}
	}
	if exclusive > 1 || exclusive == 1 && len(r.locks) > 1 {
		add("%d locks, of which %d exclude others", len(r.locks), exclusive)
	}
	for startTS := range data {
		if committed[startTS] == 0 {
			add("data of transaction %d without a version or a lock", startTS)
		}
	}
	return all
}

// cells describes what is in a row, without values.
func (r *record) cells() string {
	text := "in the row:"
	for i := range r.locks {
		l := &r.locks[i].lock
		text += fmt.Sprintf(" lock %d op %d", l.StartTS, l.Op)
	}
	for _, v := range r.versions {
		text += fmt.Sprintf(" version %d of %d op %d", v.commitTS, v.startTS, v.op)
	}
	for i := range r.data {
		text += fmt.Sprintf(" data %d of %d bytes", r.data[i].startTS, len(r.data[i].value))
	}
	for _, st := range r.statuses {
		text += fmt.Sprintf(" status %d of %d", st.commitTS, st.startTS)
	}
	return fmt.Sprintf("%s rolled back %d fences %d", text, r.rolled, r.fences)
}
