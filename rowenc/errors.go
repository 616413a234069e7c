package rowenc

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// corrupt makes the error of bytes that rowenc cannot have written.
func corrupt(what string) error {
	return pgerror.New(pgerror.DataCorrupted, "stored row cannot be decoded: %s", what)
}

// mismatch makes the error of a datum whose representation is not that of its column's type: a bug
// above, caught before it reaches the disk.
func mismatch(c class, d types.Datum) error {
	return pgerror.New(pgerror.InternalError, "datum of kind %d in a column of class %d", d.Kind(), c)
}

// unsupportedKey makes the error of an index column whose type has no order-preserving encoding.
func unsupportedKey(t types.Type) error {
	return pgerror.New(pgerror.FeatureNotSupported, "columns of type oid %d are not supported in indexes", t.OID).
		WithHint("Index a scalar column instead.")
}
