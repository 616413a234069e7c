package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// Input is a value an execution must bring: parameter $Param, or else the statement's literal
// number Slot, as a value of Type. One literal used in two contexts is two inputs.
type Input struct {
	Param int // 1-based; 0: a literal
	Slot  int
	Type  types.Type
	Pos   int // of the literal or parameter, for errors
}

// Plan answers one statement. Immutable and shared between sessions.
type Plan struct {
	Root       Node
	CTEs       []Node // materialised WITH items, in order of dependence
	ParamTypes []types.Type
	Inputs     []Input
	// ReadOnly: nothing is written, no row is locked.
	ReadOnly bool
	// SinglePoint: all that is read is one key, by the PointGet below Root.
	SinglePoint bool
	// AsOf: the query asks to be answered as of a time, which whoever runs it has to see to.
	AsOf bool
	// Locks is the strength of a FOR UPDATE or its kind anywhere in the statement, "" for none.
	Locks string
	// Tag is the command tag's first word: SELECT, INSERT, UPDATE, DELETE.
	Tag string
	// Returns says that the statement yields rows (SELECT, RETURNING).
	Returns bool
	// SchemaVersion is the resolver's version the plan was made under, Relations what it used:
	// the plan holds while the version, or else every relation's Version, is the same.
	SchemaVersion uint64
	Relations     []*catalog.TableDescriptor
	// Subqueries counts the subplans in expressions; their IDs are below it.
	Subqueries int
}

// Command names the statement as PostgreSQL does where it refuses one.
func (p *Plan) Command() string {
	if p.Tag == "SELECT" && p.Locks != "" {
		return "SELECT FOR " + p.Locks
	}
	return p.Tag
}
