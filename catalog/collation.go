package catalog

import (
	"encoding/json"

	"github.com/percodb/percodb/sql/collation"
)

// FindCollation looks up a collation by name; schema "" searches the path, on which pg_catalog always is. nil: there is none.
func FindCollation(schema, name string) *collation.Collation {
	if schema != "" && schema != SystemSchema {
		return nil
	}
	return collation.ByName(name)
}

// UnmarshalJSON reads a stored key column, whose collation is its number.
func (c *IndexColumn) UnmarshalJSON(b []byte) (err error) {
	type stored IndexColumn
	if err = json.Unmarshal(b, (*stored)(c)); err == nil {
		c.Coll, err = c.Coll.Known()
	}
	return err
}
