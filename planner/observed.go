package planner

import (
	"cmp"
	"slices"

	"github.com/percodb/percodb/catalog"
)

// Observed is the observers of a table that a statement writes, and the builds of its indexes.
type Observed struct {
	// Observers are their numbers, ascending; at most 64. New and deleted rows notify all of them.
	Observers []uint64
	// Columns are those that the statement may update and that an observer observes.
	Columns []ObservedColumn
}

// ObservedColumn is a column whose change notifies Observers[i] for every bit i of Observers.
type ObservedColumn struct {
	Ordinal   int
	Observers uint64
}

// observed returns the observers that a statement may notify, which updates the columns with the given ordinals; nil if the
// table has none.
func observed(t *catalog.TableDescriptor, changed []int) *Observed {
	all := observersOf(t)
	if len(all) == 0 {
		return nil
	}
	o := &Observed{}
	for _, d := range all {
		o.Observers = append(o.Observers, d.id)
	}
	for _, ord := range changed {
		c := ObservedColumn{Ordinal: ord}
		for i, d := range all {
			if d.observes(t.Columns[ord].ID) {
				c.Observers |= 1 << i
			}
		}
		if c.Observers != 0 {
			o.Columns = append(o.Columns, c)
		}
	}
	return o
}

// tableObserver is an observer of a table, or a build of an index, which notes changed rows as one.
type tableObserver struct {
	id       uint64
	observes func(columnID uint32) bool
}

// observersOf lists those of t, by number.
func observersOf(t *catalog.TableDescriptor) (all []tableObserver) {
	for i := range t.Observers {
		all = append(all, tableObserver{t.Observers[i].ID, t.Observers[i].Observes})
	}
	for i := range t.Builds {
		if b := &t.Builds[i]; !b.Failed() {
			all = append(all, tableObserver{b.Log, b.Observes})
		}
	}
	slices.SortFunc(all, func(a, b tableObserver) int { return cmp.Compare(a.id, b.id) })
	return all
}
