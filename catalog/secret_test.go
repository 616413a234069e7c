package catalog

import (
	"bytes"
	"context"
	"sync"
	"testing"
)

// Goal: all processes of a store have the same secret, also if they ask for it first at the same time; other stores have another.
func TestSecret(t *testing.T) {
	secrets := func() [][]byte {
		db := newDB(t)
		all := make([][]byte, 8)
		var wg sync.WaitGroup
		for i := range all {
			c := newCatalog(t, db, Options{})
			wg.Go(func() {
				for range 2 {
					var err error
					if all[i], err = c.Secret(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return all
	}
	first, second := secrets(), secrets()
	for _, s := range first {
		if len(s) != secretBytes || !bytes.Equal(s, first[0]) {
			t.Errorf("secrets %x and %x", s, first[0])
		}
	}
	if bytes.Equal(first[0], second[0]) {
		t.Error("two stores have the same secret")
	}
}
