package catalog

import (
	"bytes"
	"context"
	"crypto/rand"

	"github.com/percodb/percodb/percolator"
)

const secretBytes = 32

// Secret returns random bytes that are the same for every process of the store, and that no client is shown. They are made by the
// first call for a store, and never change.
func (c *Catalog) Secret(ctx context.Context) ([]byte, error) {
	c.secret.Lock()
	defer c.secret.Unlock()
	if c.secret.value != nil {
		return c.secret.value, nil
	}
	var value []byte
	err := c.retry(ctx, func(txn *percolator.Txn) error {
		stored, err := txn.Get(ctx, keySecret)
		if value = bytes.Clone(stored); err != nil || len(value) > 0 {
			return err
		}
		value = make([]byte, secretBytes)
		_, _ = rand.Read(value) // crypto/rand.Read never fails.
		return txn.Put(keySecret, value)
	})
	if err != nil {
		return nil, err
	}
	c.secret.value = value
	return value, nil
}
