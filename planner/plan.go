package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// Input is a value an execution must bring: parameter $Param, a part of a cursor's position, or else the statement's literal
// number Slot, as a value of Type. One literal used in two contexts is two inputs.
type Input struct {
	Param  int // 1-based; 0: none
	Slot   int
	Cursor int // 1-based, of Plan.CurrentOf; 0: none
	Type   types.Type
	Pos    int // of the literal or parameter, for errors
}

// Plan answers one statement. Immutable and shared between sessions.
type Plan struct {
	Root Node
	CTEs []Node // materialised WITH items, in order of dependence
	// Modifying are the indexes of the data-modifying ones, in the order in which they are run to their end behind Root: those that are
	// written last come first.
	Modifying []int
	// Writes are the tables that the statement changes, that of Root first, and those of the foreign keys that it may violate.
	Writes     []*catalog.TableDescriptor
	ParamTypes []types.Type
	Inputs     []Input
	// CurrentOf has what Inputs read of cursors' positions (WHERE CURRENT OF).
	CurrentOf []CursorKey
	// Positions are the tables of a cursor's query whose current rows WHERE CURRENT OF may name. The last Keys columns of Root are keys of
	// tables, which are not shown.
	Positions []Position
	Keys      int
	// Guesses are the estimates that depend on values of Inputs.
	Guesses []Guess
	// Bands are the bands of the values for which the plan was made, a letter for each guess.
	Bands string
	// ReadOnly: no row is written or locked, and no volatile function of a user is called, which could do that.
	ReadOnly bool
	// Unpopulated is the name of a materialized view that the plan reads and that has no rows yet, so that it cannot be executed; "": there is none.
	Unpopulated string
	// SinglePoint: all that is read is one key, by the PointGet below Root.
	SinglePoint bool
	// AsOf: the query has AS OF SYSTEM TIME, which the caller has to implement.
	AsOf bool
	// Locks is the strength of a FOR UPDATE or its kind anywhere in the statement, "" for none.
	Locks string
	// Changes is the call of percodb.changes, nil if there is none.
	Changes *Changes
	// Tag is the command tag's first word: SELECT, INSERT, UPDATE, DELETE, MERGE.
	Tag string
	// Returns: the statement returns rows (SELECT, RETURNING).
	Returns bool
	// SchemaVersion is the version of the resolver with which the plan was made, Relations those it used: the plan is
	// valid while the version, or the Version of every relation, is the same.
	SchemaVersion uint64
	Relations     []*catalog.TableDescriptor
	// ObjectsVersion is that of the resolver's grants: the plan lists the functions whose privileges had been changed then.
	ObjectsVersion uint64
	// Types are the user-defined types that it used; the plan is valid while their Version is the same as well.
	Types []*types.Defined
	// Extensions are those of which it uses something; the plan is valid while they are installed in the same schemas.
	Extensions []*catalog.ExtensionDescriptor
	// RoutinesVersion is that of the resolver's routines (catalog.Routines): the plan is valid while it is the same.
	RoutinesVersion uint64
	// TextSearchVersion is that of the resolver's text search objects: the plan is valid while it is the same.
	TextSearchVersion uint64
	// Collations are those of the resolver: the plan is valid while the same names find the same ones.
	Collations *catalog.Collations
	// Operations are the operators and casts of the resolver: the plan is valid while they are the same.
	Operations *catalog.Operations
	// CallsRoutines: routines of users are called when the plan is executed, which may read and write anything.
	CallsRoutines bool
	// Procedure is what CALL does; nil for another statement. The plan has no rows then: the session executes it.
	Procedure *ProcedureCall
	// SearchPath is the one in which the resolver found unqualified names.
	SearchPath []string
	// Names are the relations that the statement names without a schema: the plan is valid while the search path finds the same ones.
	Names []FoundName
	// RelationLocks are the modes in which PostgreSQL would lock the relations, for pg_locks.
	RelationLocks []catalog.RelationLock
	// Needs are the privileges that running the plan needs, which Authorize checks.
	Needs []*Need
	// Role is the role whose policies the plan applies, 0 if no table in it has row level security: the plan is for no other role, and
	// for no other Roles. Guarded: there are policies that are in force for the role.
	Role    uint32
	Roles   *catalog.Roles
	Guarded bool
	// PresentVersion is the version of the schema whose policies are in the plan; 0: SchemaVersion.
	PresentVersion uint64
	// Subqueries counts the subplans in expressions; their IDs are below it.
	Subqueries int
}

// FoundName is a name without a schema, and the id of the relation that it stands for.
type FoundName struct {
	Name string
	ID   uint64
}

// Changing reports whether the statement itself writes or locks rows, whatever the functions of users do that it calls.
func (p *Plan) Changing() bool { return len(p.Writes) > 0 || p.Locks != "" || p.Changes != nil }

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
