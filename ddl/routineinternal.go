package ddl

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/pgerror"
)

// checkInternal fails unless the body of a function in LANGUAGE internal names a function of the system that can be called with its arguments.
func (r *run) checkInternal(d *catalog.RoutineDescriptor) error {
	if planner.InternalFunction(d) == nil {
		return pgerror.New(pgerror.UndefinedFunction, "there is no built-in function named \"%s\"", d.Body)
	}
	return nil
}
