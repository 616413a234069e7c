package ast

// Query is a SELECT, VALUES or set operation with what may surround it.
type Query struct {
	Pos
	With    *With
	Body    QueryBody
	OrderBy []OrderItem
	Limit   Expr // nil: none (LIMIT ALL too)
	Offset  Expr // nil: none
	Locking []Locking
}

// QueryBody is *Select, *Values or *SetOp.
type QueryBody interface {
	String() string
	queryBody()
}

// Select is one SELECT without ORDER BY and LIMIT.
type Select struct {
	Pos
	Distinct   bool
	DistinctOn []Expr
	Columns    []SelectItem
	From       []TableExpr // comma-separated items; empty: none
	AsOf       Expr        // AS OF SYSTEM TIME, nil without; only at the top of a statement
	Where      Expr
	GroupBy    []Expr
	Having     Expr
	Windows    []NamedWindow
}

// AsOf returns the time that a query asks to be answered as of, nil if it does not.
func (q *Query) AsOf() Expr {
	if s := q.asOfSelect(); s != nil {
		return s.AsOf
	}
	return nil
}

// MayTravel reports whether s is the SELECT of q that may have AS OF SYSTEM TIME: its own, or the first
// of a set operation.
func (q *Query) MayTravel(s *Select) bool { return q.asOfSelect() == s }

func (q *Query) asOfSelect() *Select {
	body := q.Body
	for {
		switch b := body.(type) {
		case *Select:
			return b
		case *SetOp:
			body = b.L
		default:
			return nil
		}
	}
}

// NamedWindow is an entry of the WINDOW clause.
type NamedWindow struct {
	Name string
	Window
}

// SelectItem is an output column. Name is the alias, or the name PostgreSQL would compute
// (?column?, a function's name, case, …) with Aliased false.
type SelectItem struct {
	Expr    Expr
	Name    string
	Aliased bool
}

// Values is VALUES (…), (…).
type Values struct {
	Pos
	Rows [][]Expr
}

// SetOp is L UNION|INTERSECT|EXCEPT [ALL] R. A side with its own ORDER BY, LIMIT or WITH is a
// *Query, wrapped as a Nested.
type SetOp struct {
	Pos
	Op   string // "UNION", "INTERSECT", "EXCEPT"
	All  bool
	L, R QueryBody
}

// Nested is a parenthesised query as one side of a set operation.
type Nested struct{ Query *Query }

func (*Select) queryBody() {}
func (*Values) queryBody() {}
func (*SetOp) queryBody()  {}
func (*Nested) queryBody() {}

// With is a WITH clause.
type With struct {
	Pos
	Recursive bool
	CTEs      []CTE
}

// CTE is one WITH item; Statement is *Query, *Insert, *Update or *Delete.
type CTE struct {
	Pos
	Name         string
	Columns      []string
	Materialized *bool // nil: not said
	Statement    Statement
}

// OrderItem is one ORDER BY item. NullsFirst is resolved: NULLS LAST is the default of ASC.
type OrderItem struct {
	Expr       Expr
	Desc       bool
	NullsFirst bool
}

// Locking is FOR UPDATE and its kind.
type Locking struct {
	Pos
	Strength string // "UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"
	Of       []string
	Wait     string // "", "NOWAIT", "SKIP LOCKED"
}

// TableExpr is an item of FROM.
type TableExpr interface {
	String() string
	tableExpr()
}

type (
	// TableRef is [schema.]name [AS alias [(columns)]].
	TableRef struct {
		Pos
		Name    TableName
		Only    bool
		Alias   string
		Columns []string
	}
	// DerivedTable is [LATERAL] (query) AS alias [(columns)].
	DerivedTable struct {
		Pos
		Lateral bool
		Query   *Query
		Alias   string
		Columns []string
	}
	// TableFunc is [LATERAL] f(args) [WITH ORDINALITY] [AS alias [(columns)]].
	TableFunc struct {
		Pos
		Lateral    bool
		Call       *Call
		Ordinality bool
		Alias      string
		Columns    []string
		ColumnDefs []ColumnTypeDef // f() AS t(a int, …)
	}
	// Join is an explicit join. Exactly one of Natural, Using, On is given, none for CROSS.
	Join struct {
		Pos
		Kind    JoinKind
		L, R    TableExpr
		Natural bool
		Using   []string
		On      Expr
		Alias   string // alias of a parenthesised join
	}
)

// ColumnTypeDef is a column with its type in a table function's alias.
type ColumnTypeDef struct {
	Name string
	Type TypeName
}

func (*TableRef) tableExpr()     {}
func (*DerivedTable) tableExpr() {}
func (*TableFunc) tableExpr()    {}
func (*Join) tableExpr()         {}

// JoinKind is the kind of a join.
type JoinKind uint8

// The kinds of join.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
	CrossJoin
)

// TableName is a possibly qualified name of a table, view or index.
type TableName struct {
	Pos
	Schema string // "" when not given
	Name   string
}
