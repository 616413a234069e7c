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
	// ReadOnly: no row is written or locked.
	ReadOnly bool
	// SinglePoint: all that is read is one key, by the PointGet below Root.
	SinglePoint bool
	// AsOf: the query has AS OF SYSTEM TIME, which the caller has to implement.
	AsOf bool
	// Locks is the strength of a FOR UPDATE or its kind anywhere in the statement, "" for none.
	Locks string
	// Changes is the call of percodb.changes, nil if there is none.
	Changes *Changes
	// Tag is the command tag's first word: SELECT, INSERT, UPDATE, DELETE.
	Tag string
	// Returns: the statement returns rows (SELECT, RETURNING).
	Returns bool
	// SchemaVersion is the version of the resolver with which the plan was made, Relations those it used: the plan is
	// valid while the version, or the Version of every relation, is the same.
	SchemaVersion uint64
	Relations     []*catalog.TableDescriptor
	// SearchPath is the one in which the resolver found unqualified names.
	SearchPath []string
	// Needs are the privileges that running the plan needs, which Authorize checks.
	Needs []*Need
	// Subqueries counts the subplans in expressions; their IDs are below it.
	Subqueries int
}

// Command names the statement as PostgreSQL does where it refuses one.
func (p *Plan) Command() string {
	if p.Tag == "SELECT" && p.Changes != nil {
		return "percodb.changes()"
	}
	if p.Tag == "SELECT" && p.Locks != "" {
		return "SELECT FOR " + p.Locks
	}
	return p.Tag
}
