package catalog

import (
	"context"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// Seeding is how far the rows from before an observer was created have been notified (FROM BEGINNING).
type Seeding struct {
	// TS is that of the notifications: below the snapshot of everything that handles changes for the observer.
	TS tso.Timestamp
	// Next is the first key whose row is not notified; nil: none is.
	Next []byte `json:",omitempty"`
	Rows int64  // notified so far
	// Until is when others may take over, since whoever is at it has not reported for long.
	Until tso.Timestamp
}

// PutSeeding stores the progress.
func PutSeeding(w percolator.Writer, observer uint64, s *Seeding) error {
	return w.Put(idKey(wordSeeding, observer), encode(s))
}

// DeleteSeeding removes it when all rows are notified, or the observer is dropped.
func DeleteSeeding(w percolator.Writer, observer uint64) error {
	return w.Delete(idKey(wordSeeding, observer))
}

// SeedingOf returns the progress of an observer, nil if none is under way.
func SeedingOf(ctx context.Context, r percolator.Reader, observer uint64) (*Seeding, error) {
	key := idKey(wordSeeding, observer)
	value, err := r.Get(ctx, key)
	if err != nil || value == nil {
		return nil, err
	}
	s := new(Seeding)
	return s, decode(key, value, s)
}

// Seedings calls yield with the progress of all observers whose rows are being notified.
func Seedings(ctx context.Context, r percolator.Reader, yield func(observer uint64, s *Seeding) error) error {
	return scan(ctx, r, wordSeeding, func(key, value []byte) error {
		observer, err := idOfKey(wordSeeding, key)
		if err != nil {
			return err
		}
		s := new(Seeding)
		if err := decode(key, value, s); err != nil {
			return err
		}
		return yield(observer, s)
	})
}
