package planner

import (
	"cmp"
	"slices"

	"github.com/percodb/percodb/catalog"
)

// Observed is the observers of a table that a statement writes.
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
	if len(t.Observers) == 0 {
		return nil
	}
	o := &Observed{}
	byID := make([]*catalog.ObserverDescriptor, len(t.Observers))
	for i := range t.Observers {
		byID[i] = &t.Observers[i]
	}
	slices.SortFunc(byID, func(a, b *catalog.ObserverDescriptor) int { return cmp.Compare(a.ID, b.ID) })
	for _, d := range byID {
		o.Observers = append(o.Observers, d.ID)
	}
	for _, ord := range changed {
		c := ObservedColumn{Ordinal: ord}
		for i, d := range byID {
			if d.Observes(t.Columns[ord].ID) {
				c.Observers |= 1 << i
			}
		}
		if c.Observers != 0 {
			o.Columns = append(o.Columns, c)
		}
	}
	return o
}
