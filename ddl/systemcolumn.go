package ddl

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/pgerror"
)

// notSystemColumn refuses a name for a column that every table has beside its own. Views may have columns of these names.
func notSystemColumn(t *catalog.TableDescriptor, name string, pos int) error {
	if !catalog.IsSystemColumn(name) || t.Kind == catalog.KindView {
		return nil
	}
	return pgerror.New(pgerror.DuplicateColumn, "column name \"%s\" conflicts with a system column name", name).At(pos)
}

// noColumn is the error for a column that a table does not have, or has as one of the system that cannot be changed so: verb is alter, drop or
// rename.
func noColumn(t *catalog.TableDescriptor, name, verb string, pos int) error {
	if catalog.IsSystemColumn(name) && t.Kind != catalog.KindView {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot %s system column \"%s\"", verb, name).At(pos)
	}
	return pgerror.New(pgerror.UndefinedColumn, "column %q of relation %q does not exist", name, t.Name).At(pos)
}
