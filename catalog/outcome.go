package catalog

import (
	"context"
	"errors"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// outcome is the schema as the commit of a transaction will leave it, so that the process need not read what it has written itself.
type outcome struct {
	*schemaSnapshot
	// changed: the transaction has written the version. Otherwise the commit says nothing about the schema, which others may have changed.
	changed bool
	// elsewhere are those of other databases, as far as they are cached.
	elsewhere []*schemaSnapshot
}

// foresee returns the outcome of a transaction that changes under, the committed schema. If it has written the version, the commit must fail if
// others have written it since under.
func (c *Catalog) foresee(ctx context.Context, txn *percolator.Txn, under *schemaSnapshot) (*outcome, error) {
	s, err := c.with(ctx, txn, under)
	if err != nil {
		return nil, err
	}
	o := &outcome{schemaSnapshot: s, changed: s.version != under.version}
	for _, each := range c.Open() {
		other := each.recent(under.version, 0)
		if each.database == c.database || other == nil {
			continue
		}
		switch other, err = each.with(ctx, txn, other); {
		case errors.Is(err, ErrNoDatabase): // The transaction drops it.
		case err != nil:
			return nil, err
		default:
			o.elsewhere = append(o.elsewhere, other)
		}
	}
	return o, nil
}

// keep publishes the outcome of a transaction that has committed.
func (c *Catalog) keep(o *outcome, commitTS tso.Timestamp) {
	if !o.changed {
		return
	}
	c.sawVersion(o.version, commitTS)
	c.remember(o.schemaSnapshot, 0)
	for _, s := range o.elsewhere {
		s.catalog.remember(s, 0)
	}
	c.publish(o.schemaSnapshot, commitTS)
}
