package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// Column is an output column of a node.
type Column struct {
	Name    string
	Type    types.Type
	TableID uint64 // where the column comes straight from a table, for RowDescription
	AttNum  int16  // its number in that table (column id), 0 for none
	Table   string // alias in sight, for EXPLAIN
}

// Node is one step of a plan: plain data, no execution state, safe to share between sessions. The
// set is closed; the executor switches over all of it, and a test enumerates it.
type Node interface {
	Columns() []Column
	Children() []Node
	// Estimate returns the planner's estimates for the node.
	Estimate() Estimate
	// Properties returns guarantees for the node's rows.
	Properties() Properties
	base() *Base
}

// Estimate is the planner's guess of a node's output rows and cumulative cost (1 = one row read in
// sequence).
type Estimate struct{ Rows, Cost float64 }

// Base is the common part of all nodes.
type Base struct {
	Out   []Column
	Est   Estimate
	Props Properties
	// Hidden: how many rows it has yielded is not for whoever runs the plan, since policies hide some of them.
	Hidden bool
}

// Columns returns the output columns.
func (b *Base) Columns() []Column { return b.Out }

// Estimate returns the planner's guess.
func (b *Base) Estimate() Estimate { return b.Est }

func (b *Base) base() *Base { return b }

// KeyPart is one equality on an index column. With Each, Value is an array, and the part represents each of its distinct
// non-NULL elements in key order (col = ANY(array), col IN (…) over one column).
type KeyPart struct {
	Value expr.Scalar // over no input row: parameters, constants, outer rows
	Each  bool
}

// Bound is one end of a span on the column after the equalities.
type Bound struct {
	Value     expr.Scalar
	Inclusive bool
}

// KeySpan selects the part of an index where the leading columns equal Eq and the next column lies between Low and High
// (nil: unbounded; NULLs are excluded if either is set). A NULL among the values selects nothing.
type KeySpan struct {
	Eq        []KeyPart
	Low, High *Bound
}

// Access describes how rows of one table are read.
type Access struct {
	Table *catalog.TableDescriptor
	Alias string                   // the statement's name for it, for EXPLAIN
	Index *catalog.IndexDescriptor // &Table.Primary for the table's own rows
	// Ordinals are the table columns delivered, in output order.
	Ordinals []int
	// Fetch: the index does not hold all Ordinals, so rows are fetched by primary key in batches.
	Fetch bool
	// Policies are the names of those that hide rows from whoever runs the plan, for EXPLAIN.
	Policies []string
}

// Sources.
type (
	// PointGet reads at most one row by a whole unique key.
	PointGet struct {
		Base
		Access
		Key    []expr.Scalar // one per index column, cast to the column's type
		Filter expr.Scalar   // over the output row; nil: none
		// LockFirst: the row is changed whatever it contains, so its key is locked before it is read.
		LockFirst bool
	}
	// Scan reads spans of an index, in index order (reversed with Reverse).
	Scan struct {
		Base
		Access
		Spans   []KeySpan // in key order and disjoint; empty: the whole index
		Reverse bool
		Filter  expr.Scalar // over the output row; nil: none
		// Limit is the number of rows expected to be pulled, 0 for all: it sizes the first page.
		Limit int
		// WholeKeys: every span is a whole key of a unique index.
		WholeKeys bool
		// Inverted are what is searched in an inverted index, in the place of Spans; the rows are those that all of them find. nil: it is no such
		// index.
		Inverted []InvertedSearch
	}
	// Append yields the rows of its inputs, the leaves of a partitioned table: one after the other, or merged by Merge, by which each is ordered.
	Append struct {
		Base
		Table  *catalog.TableDescriptor
		Inputs []Node
		Merge  []SortKey
		// Prune says which inputs may have rows, when the plan is executed; nil: all.
		Prune *Prune
		// Alone: at most one of them has.
		Alone bool
	}
	// Values yields rows of expressions. One empty row is the source of a SELECT without FROM.
	Values struct {
		Base
		Rows [][]expr.Scalar
	}
	// SetFunc calls a set-returning function in FROM. Args are over no input row.
	SetFunc struct {
		Base
		Func       *builtin.SetFunc
		Args       []expr.Scalar
		Ordinality bool
	}
	// Changes claims changed rows of a table for a client, and yields them: the columns of catalog.ChangedRelation.
	Changes struct {
		Base
		Table    *catalog.TableDescriptor
		Observer *catalog.ObserverDescriptor
		// Max is the largest number of rows, Wait for how long to wait for the first; nil: not given. They read no row.
		Max, Wait expr.Scalar
	}
	// VirtualScan yields the rows of a system table.
	VirtualScan struct {
		Base
		Table    *catalog.TableDescriptor
		Ordinals []int
		Filter   expr.Scalar
	}
	// CTEScan yields the rows of a materialised WITH item of the plan, by its index in Plan.CTEs.
	CTEScan struct {
		Base
		CTE int
	}
	// RecursiveUnion runs WITH RECURSIVE; inside Step, WorkScan of the same ID yields the last
	// iteration's rows.
	RecursiveUnion struct {
		Base
		ID         int
		Init, Step Node
		All        bool
		// Anew are the WITH items that read the working table, by their index in Plan.CTEs: each iteration runs them anew.
		Anew []int
	}
	// WorkScan yields the working table of the enclosing RecursiveUnion with the same ID.
	WorkScan struct {
		Base
		ID int
	}
)

// JoinKind is the kind of a join. A right join is planned as a left join with its sides swapped.
type JoinKind uint8

// The kinds of join. Semi and Anti deliver left rows only.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	FullJoin
	SemiJoin
	AntiJoin
)

// Joins. The output row is the left row followed by the right row (left alone for semi and anti);
// On is evaluated over both.
type (
	// HashJoin builds a table of the right side and probes it with the left.
	HashJoin struct {
		Base
		Kind                JoinKind
		Left, Right         Node
		LeftKeys, RightKeys []expr.Scalar // pairwise equal types; each over its own side's row
		On                  expr.Scalar   // further condition; nil: none
		Build               Feed          // of the right side
		Kept                float64       // the expected number of right rows that are kept
	}
	// MergeJoin joins sides that both arrive ordered by their keys.
	MergeJoin struct {
		Base
		Kind                JoinKind
		Left, Right         Node
		LeftKeys, RightKeys []expr.Scalar
		Desc                []bool // of each key
		On                  expr.Scalar
	}
	// LookupJoin reads the right table by index for batches of left rows, keeping left order.
	LookupJoin struct {
		Base
		Kind JoinKind // Inner, Left, Semi or Anti
		Left Node
		Access
		Keys   []expr.Scalar // over the left row; a prefix of the index columns, cast to their types
		Unique bool          // at most one row per left row
		Limit  int           // how many left rows it expects to be enough, 0 for all: the size of the first batch
		On     expr.Scalar   // over the joined row
	}
	// NestedLoopJoin runs the right side once, keeps it, and tests every pair.
	NestedLoopJoin struct {
		Base
		Kind        JoinKind
		Left, Right Node
		On          expr.Scalar
	}
	// Apply runs the right side again for every left row, which is its innermost outer row (LATERAL, correlated
	// subqueries that could not be unnested).
	Apply struct {
		Base
		Kind        JoinKind
		Left, Right Node
		On          expr.Scalar
	}
)

// SortKey is one key of an ordering.
type SortKey struct {
	Expr       expr.Scalar
	Desc       bool
	NullsFirst bool
}

// AggregateCall is one aggregate of an Aggregate node.
type AggregateCall struct {
	Func *builtin.Aggregate
	Args []expr.Scalar
	// Direct are the direct arguments of an ordered-set aggregate, the same for all rows of a group; OrderBy is its order.
	Direct   []expr.Scalar
	Distinct bool
	Filter   expr.Scalar
	OrderBy  []SortKey
}

// GroupingSet is a grouping set of an Expand.
type GroupingSet struct {
	Has   []bool  // which of the keys
	Marks []int64 // values of the calls of GROUPING
}

// WindowCall is a window function of a WindowAgg, or an aggregate computed over the frame of each row.
type WindowCall struct {
	Func   *builtin.WindowFunc // nil: Agg
	Agg    *builtin.Aggregate
	Args   []expr.Scalar
	Filter expr.Scalar // of an aggregate; nil: none
}

// WindowFrame selects the rows of its partition that make up the frame of a row.
type WindowFrame struct {
	Mode       ast.FrameMode
	Start, End WindowBound
	Exclude    ast.FrameExclusion
}

// WindowBound is one end of a frame. Offset is not over a row. InRange is set for an offset in RANGE mode.
type WindowBound struct {
	Kind    ast.BoundKind
	Offset  expr.Scalar
	InRange *builtin.InRange
}

// Shape.
type (
	// Filter passes the rows for which Cond is true.
	Filter struct {
		Base
		Input Node
		Cond  expr.Scalar
	}
	// Project computes Exprs over each row.
	Project struct {
		Base
		Input Node
		Exprs []expr.Scalar
	}
	// ProjectSet is Project with set-returning functions among its columns: Sets[i] non-nil takes
	// column i from the function, all run in lockstep as PostgreSQL does.
	ProjectSet struct {
		Base
		Input Node
		Exprs []expr.Scalar
		Sets  []*SetFunc
	}
	// Aggregate groups rows by GroupBy and yields group keys followed by aggregates. Without
	// GroupBy it yields one row (Scalar true) even of no input. Ordered: input arrives grouped.
	Aggregate struct {
		Base
		Input   Node
		GroupBy []expr.Scalar
		Aggs    []AggregateCall
		Scalar  bool
		Ordered bool
		// Empties are the keys of groups that there are even of no input: those of empty grouping sets.
		Empties []types.Row
		Kept    float64 // the expected number of groups, or of values that DISTINCT keeps if they are more
		Feed
	}
	// Expand yields each row once for each grouping set: followed by Keys, those that are not of the set NULL, then the
	// set's Marks, and the set's number.
	Expand struct {
		Base
		Input Node
		Keys  []expr.Scalar
		Sets  []GroupingSet
	}
	// WindowAgg adds the results of window functions over one window to each row. The input arrives with partitions
	// together, each in the order of OrderBy; all keys are columns of the input.
	WindowAgg struct {
		Base
		Input       Node
		PartitionBy []expr.Scalar
		OrderBy     []SortKey
		Frame       WindowFrame
		Calls       []WindowCall
	}
	// Sort orders all rows.
	Sort struct {
		Base
		Input Node
		Keys  []SortKey
		// Presorted is the number of leading keys by which the input is already ordered.
		Presorted int
		Feed
	}
	// TopN keeps the first Limit+Offset rows of an ordering.
	TopN struct {
		Base
		Input         Node
		Keys          []SortKey
		Limit, Offset expr.Scalar
		Feed
	}
	// Limit skips Offset rows and passes Limit rows; nil means 0 and all.
	Limit struct {
		Base
		Input         Node
		Limit, Offset expr.Scalar
		// Ties is the order in which the rows arrive, if those that equal the last one by it pass as well.
		Ties []SortKey
	}
	// Distinct drops rows equal in the On columns (all when nil) to an earlier one.
	Distinct struct {
		Base
		Input   Node
		On      []expr.Scalar
		Ordered bool // equal rows arrive together
		// KeepsOrder: the rows must come out in the order they arrive in.
		KeepsOrder bool
	}
	// SetOp is UNION, INTERSECT or EXCEPT of inputs with equal column types.
	SetOp struct {
		Base
		Op          string
		All         bool
		Left, Right Node
	}
	// LockRows is FOR UPDATE and its kind: it locks the rows that pass. Strength and Wait are as in
	// ast.Locking.
	LockRows struct {
		Base
		Input    Node
		Strength string
		Wait     string
		Targets  []LockTarget
		// Cut: a LIMIT above may need fewer rows than there are.
		Cut bool
	}
)

// LockTarget is a table whose rows LockRows locks: KeyOrdinals are the positions of its primary key's columns in the
// input row.
type LockTarget struct {
	Table       *catalog.TableDescriptor
	KeyOrdinals []int
	// Guarded: foreign keys reference the primary key. Then FOR UPDATE locks the row and the key's guard (rowenc.AppendGuard), FOR NO KEY UPDATE
	// and FOR SHARE the row alone, FOR KEY SHARE the guard alone. Of other tables there are two strengths: FOR NO KEY UPDATE is FOR UPDATE, FOR
	// KEY SHARE is FOR SHARE.
	Guarded bool
	// Parts are the tables that have the rows of a partitioned one, by OID; the column Origin of the input row is that of the row's. Then
	// KeyOrdinals are not used.
	Parts  map[int64]LockTarget
	Origin int
}

// Check is a CHECK constraint bound over a full table row.
type Check struct {
	Name string
	Cond expr.Scalar
}

// PolicyCheck is a condition that policies set for a full table row; it must be true.
type PolicyCheck struct {
	Policy string // the name of the restrictive policy; "": one of the permissive policies must hold
	// Existing: the row is one that exists, and that a conflict would have updated.
	Existing bool
	Cond     expr.Scalar
}

// ViewCheck is the condition of a view WITH CHECK OPTION for a full table row that is written; it must be true.
type ViewCheck struct {
	View string
	Cond expr.Scalar
}

// Changes. Their tables' rows are full rows in the order of Table.Columns, hidden columns included.
type (
	// Insert stores the rows of Input, which are full table rows after defaults and casts; a
	// hidden rowid arrives NULL and is filled by the executor.
	Insert struct {
		Base
		Table      *catalog.TableDescriptor
		Input      Node
		Checks     []Check
		Policies   []PolicyCheck // of the new row, before Checks
		Views      []ViewCheck   // of the row that is written
		Guards     []string      // the names of the policies in force, for EXPLAIN
		OnConflict *OnConflict
		Bound      *PartitionCheck   // of the new row; nil: the table is no partition
		Returning  []expr.Scalar     // over the stored row; nil: none
		Observed   *Observed         // nil: the table has no observers
		Triggers   *Triggers         // nil: none is executed
		References *References       // nil: foreign keys require nothing
		Indexed    *IndexExprs       // nil: its indexes compute nothing
		Generated  []GeneratedColumn // computed in the new row
		// Gather: Input may read what the statement writes, so all its rows are read first.
		Gather bool
		// Direct: no later read of the statement can return a row that it has written.
		Direct bool
		// Parts are the partitions that store the rows of a partitioned table; nil: the table stores them.
		Parts *Parts
	}
	// Update rewrites rows. Input rows start with the table's full row, followed by whatever the
	// other sources bring; a row that appears twice is updated once, as PostgreSQL does.
	Update struct {
		Base
		Table      *catalog.TableDescriptor
		Input      Node
		Set        []expr.Scalar // full new row: one per table column, over the input row
		Changed    []int         // ordinals that Set may change
		Policies   []PolicyCheck // of the new row, before Checks
		Views      []ViewCheck   // of the row that is written
		Checks     []Check
		Returning  []expr.Scalar     // over the new row followed by the rest of the input row
		Observed   *Observed         // nil: the table has no observers
		Triggers   *Triggers         // nil: none is executed
		References *References       // nil: foreign keys require nothing
		Indexed    *IndexExprs       // nil: its indexes compute nothing
		Generated  []GeneratedColumn // computed in the new row
		Feed
		// Direct and LockedBelow are as for Delete.
		Direct, LockedBelow bool
		// Parts are as for Insert. The last column of Input and Returning is the OID of the partition then.
		Parts *Parts
		Bound *PartitionCheck // of the new row; nil: the table is no partition
	}
	// InsteadOf executes the INSTEAD OF triggers of a view for each row of Input: for an INSERT the row to be inserted, otherwise the view's row
	// followed by other columns.
	InsteadOf struct {
		Base
		View      *catalog.TableDescriptor
		Input     Node
		Event     catalog.TriggerEvents
		Set       []expr.Scalar // UPDATE: the full new row, over the input row
		Triggers  *Triggers
		Views     []ViewCheck   // of the row that the triggers leave
		Returning []expr.Scalar // over the new row, of a DELETE the old one, followed by the rest of the input row
	}
	// Delete removes rows. Input as for Update.
	Delete struct {
		Base
		Table      *catalog.TableDescriptor
		Input      Node
		Returning  []expr.Scalar // over the input row
		Observed   *Observed     // nil: the table has no observers
		Triggers   *Triggers     // nil: none is executed
		References *References   // nil: foreign keys require nothing
		Indexed    *IndexExprs   // nil: its indexes compute nothing
		Parts      *Parts        // as for Update
		Feed
		// Direct: no later read of the statement can return a row that it has written.
		Direct bool
		// LockedBelow: Input locks its row, see PointGet.LockFirst.
		LockedBelow bool
	}
	// Merge does for each row of Input the first of Actions that applies to it. Input rows start with the target's full row, which is NULL
	// for a row of the data source that matches none, followed by the columns of the data source.
	Merge struct {
		Base
		Table      *catalog.TableDescriptor
		Input      Node
		Key        int // ordinal of a column of the target that is never NULL in a row
		Actions    []MergeAction
		Changed    []int // ordinals that some action may update
		Checks     []Check
		Observed   *Observed         // nil: the table has no observers
		Triggers   *Triggers         // nil: none is executed
		Generated  []GeneratedColumn // computed in the new row
		References *References       // nil: foreign keys require nothing
		Indexed    *IndexExprs       // nil: its indexes compute nothing
		Bound      *PartitionCheck   // of the new row; nil: the table is no partition
		Parts      *Parts            // as for Update
	}
)

// MergeAction is a WHEN clause of MERGE.
type MergeAction struct {
	Matched bool
	Cond    expr.Scalar   // over the input row; nil: always
	Action  string        // as in ast.MergeWhen
	Row     []expr.Scalar // UPDATE and INSERT: the full new row, over the input row
	Changed []int         // UPDATE: ordinals that Row may change
	// Policies are conditions of the existing row, then of the new one.
	Policies []PolicyCheck
}

// InvertedSearch is a condition whose terms are looked up in an inverted index.
type InvertedSearch struct {
	Column int // place in Index.Inverted
	Op     string
	Value  expr.Scalar // over no row
	Type   types.Type  // of Value
}

// OnConflict is the action of Insert if Arbiters (all unique indexes if nil) contain the key.
type OnConflict struct {
	// Arbiters are unique indexes, nil for all; Late are the constraints beside them that are checked late.
	Arbiters []*catalog.IndexDescriptor
	Late     []*LateKey
	DoUpdate bool
	// Set and Where are over the existing full row followed by the excluded full row.
	Set     []expr.Scalar
	Changed []int
	Where   expr.Scalar
	// Policies are conditions of the existing row, before Where, and then of the new one.
	Policies []PolicyCheck
	// Marks: RETURNING is over the row followed by whether it has been updated.
	Marks bool
}

// Children of the nodes, in evaluation order.

func (*PointGet) Children() []Node         { return nil }
func (*Scan) Children() []Node             { return nil }
func (n *Append) Children() []Node         { return n.Inputs }
func (*Values) Children() []Node           { return nil }
func (*SetFunc) Children() []Node          { return nil }
func (*Changes) Children() []Node          { return nil }
func (*VirtualScan) Children() []Node      { return nil }
func (*CTEScan) Children() []Node          { return nil }
func (*WorkScan) Children() []Node         { return nil }
func (n *RecursiveUnion) Children() []Node { return []Node{n.Init, n.Step} }
func (n *HashJoin) Children() []Node       { return []Node{n.Left, n.Right} }
func (n *MergeJoin) Children() []Node      { return []Node{n.Left, n.Right} }
func (n *LookupJoin) Children() []Node     { return []Node{n.Left} }
func (n *NestedLoopJoin) Children() []Node { return []Node{n.Left, n.Right} }
func (n *Apply) Children() []Node          { return []Node{n.Left, n.Right} }
func (n *Filter) Children() []Node         { return []Node{n.Input} }
func (n *Project) Children() []Node        { return []Node{n.Input} }
func (n *ProjectSet) Children() []Node     { return []Node{n.Input} }
func (n *Aggregate) Children() []Node      { return []Node{n.Input} }
func (n *Expand) Children() []Node         { return []Node{n.Input} }
func (n *WindowAgg) Children() []Node      { return []Node{n.Input} }
func (n *Sort) Children() []Node           { return []Node{n.Input} }
func (n *TopN) Children() []Node           { return []Node{n.Input} }
func (n *Limit) Children() []Node          { return []Node{n.Input} }
func (n *Distinct) Children() []Node       { return []Node{n.Input} }
func (n *SetOp) Children() []Node          { return []Node{n.Left, n.Right} }
func (n *LockRows) Children() []Node       { return []Node{n.Input} }
func (n *Insert) Children() []Node         { return []Node{n.Input} }
func (n *Update) Children() []Node         { return []Node{n.Input} }
func (n *Delete) Children() []Node         { return []Node{n.Input} }
func (n *Merge) Children() []Node          { return []Node{n.Input} }
func (n *InsteadOf) Children() []Node      { return []Node{n.Input} }
