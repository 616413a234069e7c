package check

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/rowenc"
)

// observers checks the observers of a table; taken are the ids of its indexes.
func (k *checker) observers(t *catalog.TableDescriptor, taken map[uint32]bool) error {
	numbers := map[uint64]bool{}
	for i := range t.Observers {
		o := &t.Observers[i]
		problem := ""
		switch {
		case !t.HasPrimaryKey():
			problem = "observes a table without primary key"
		case o.ID == 0 || numbers[o.ID]:
			problem = "has the number of another observer, or none"
		case taken[o.AckIndex] || o.AckIndex == 0 || o.AckIndex >= t.NextIndexID:
			problem = "has acknowledgements under an id that is taken, or was never assigned"
		}
		for _, id := range o.Columns {
			if t.Ordinal(id) < 0 {
				problem = "observes a column that does not exist"
			}
		}
		numbers[o.ID], taken[o.AckIndex] = true, true
		if problem != "" {
			if err := k.found(t, nil, nil, "observer %q %s", o.Name, problem); err != nil {
				return err
			}
		}
	}
	return nil
}

// ackBytes is the length of an acknowledgement: a timestamp and flags.
const ackBytes = 9

// acknowledgements checks the records of the rows that an observer has handled.
func (c *tableChecker) acknowledgements(ctx context.Context, o *catalog.ObserverDescriptor) error {
	it := c.scan(ctx, &catalog.IndexDescriptor{ID: o.AckIndex})
	defer it.Close()
	for it.Next(ctx) {
		_, err := rowenc.KeyColumns(c.t, &c.t.Primary, it.Key())
		switch {
		case err != nil:
			err = c.found(c.t, nil, it.Key(), "acknowledgement of observer %q: %v", o.Name, err)
		case len(it.Value()) != ackBytes:
			err = c.found(c.t, nil, it.Key(), "acknowledgement of observer %q has %d bytes", o.Name, len(it.Value()))
		}
		if err != nil {
			return err
		}
	}
	return it.Err()
}
