package catalog

import (
	"context"

	"github.com/percodb/percodb/percolator"
)

// System is what ALTER SYSTEM has stored for all servers of the store.
type System struct {
	// Settings are the values by the settings' lower-case names.
	Settings map[string]string `json:",omitempty"`
	// Reloads is raised by pg_reload_conf: servers then take the values over.
	Reloads uint64 `json:",omitempty"`
}

// FileSetting is one row of pg_file_settings: a stored value, whether it is in force, and why it cannot be.
type FileSetting struct {
	Name, Value string
	Applied     bool
	Error       string
}

// System returns what is stored now.
func (c *Catalog) System(ctx context.Context) (*System, error) {
	var stored *System
	err := c.retry(ctx, func(txn *percolator.Txn) (err error) {
		stored, err = readSystem(ctx, txn)
		return err
	})
	return stored, err
}

// ChangeSystem stores what change makes of the present values. change is called again after a conflict with another change.
func (c *Catalog) ChangeSystem(ctx context.Context, change func(*System) error) error {
	return c.retry(ctx, func(txn *percolator.Txn) error {
		stored, err := readSystem(ctx, txn)
		if err != nil {
			return err
		}
		if err := change(stored); err != nil {
			return err
		}
		return txn.Put(keySystem, encode(stored))
	})
}

func readSystem(ctx context.Context, r percolator.Reader) (*System, error) {
	stored := &System{}
	value, err := r.Get(ctx, keySystem)
	if err == nil && value != nil {
		err = decode(keySystem, value, stored)
	}
	if stored.Settings == nil {
		stored.Settings = map[string]string{}
	}
	return stored, err
}
