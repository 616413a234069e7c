package catalog

import (
	"context"

	"github.com/percodb/percodb/percolator"
)

// DroppedRecord is a DroppedSpan as it waits for the garbage collector.
type DroppedRecord struct {
	ID uint64
	DroppedSpan
}

// Dropped lists the spans that wait for garbage collection as of a snapshot. It needs no Catalog, so a process without
// SQL can call it.
func Dropped(ctx context.Context, r percolator.Reader) (list []DroppedRecord, err error) {
	err = scan(ctx, r, wordDropped, func(key, value []byte) error {
		rec := DroppedRecord{}
		if rec.ID, err = idOfKey(wordDropped, key); err != nil {
			return err
		}
		if err := decode(key, value, &rec.DroppedSpan); err != nil {
			return err
		}
		list = append(list, rec)
		return nil
	})
	return list, err
}

// ForgetDropped removes the records of spans whose keys are removed. It may be repeated.
func ForgetDropped(ctx context.Context, w percolator.Writer, ids []uint64) error {
	for _, id := range ids {
		if err := w.Delete(idKey(wordDropped, id)); err != nil {
			return err
		}
	}
	return nil
}
