package ast

// Query is a SELECT, VALUES or set operation with what may surround it.
type Query struct {
	Pos
	With    *With
	Body    QueryBody
	OrderBy []OrderItem
	Limit   Expr // nil: none (LIMIT ALL too)
	All     bool // LIMIT ALL
	Ties    bool // FETCH … WITH TIES
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
	Into       *Into
	From       []TableExpr // comma-separated items; empty: none
	AsOf       Expr        // AS OF SYSTEM TIME, nil without; only at the top of a statement
	Where      Expr
	GroupBy    []Expr
	GroupSets  bool // GROUP BY DISTINCT: equal grouping sets count once
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

// TakeInto returns SELECT … INTO as the CREATE TABLE … AS that it stands for, and nil for other queries. It takes INTO out of q.
func (q *Query) TakeInto() *CreateTable {
	s := q.asOfSelect()
	if s == nil || s.Into == nil {
		return nil
	}
	into := s.Into
	s.Into = nil
	return &CreateTable{Pos: q.Pos, Persistence: into.Persistence, Name: into.Name, AsQuery: q}
}

// Into is SELECT … INTO: the table that the query makes.
type Into struct {
	Pos
	Persistence Persistence
	Name        TableName
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

// WithOf returns the WITH clause of a query or a change; nil: it has none.
func WithOf(s Statement) *With {
	switch s := s.(type) {
	case *Query:
		return s.With
	case *Insert:
		return s.With
	case *Update:
		return s.With
	case *Delete:
		return s.With
	case *Merge:
		return s.With
	}
	return nil
}

// Modifies reports whether an item changes data. w may be nil.
func (w *With) Modifies() bool {
	if w == nil {
		return false
	}
	for i := range w.CTEs {
		if _, query := w.CTEs[i].Statement.(*Query); !query {
			return true
		}
	}
	return false
}

// CTE is one WITH item; Statement is *Query, *Insert, *Update, *Delete or *Merge.
type CTE struct {
	Pos
	Name         string
	Columns      []string
	Materialized *bool // nil: not said
	Statement    Statement
	Search       *Search
	Cycle        *Cycle
}

// Search is SEARCH DEPTH|BREADTH FIRST BY columns SET column.
type Search struct {
	Pos
	Breadth bool
	Columns []string
	Set     string
}

// Cycle is CYCLE columns SET mark [TO value DEFAULT value] USING path.
type Cycle struct {
	Pos
	Columns     []string
	Mark        string
	To, Default Expr // both or none
	Using       string
}

// OrderItem is one ORDER BY item. NullsFirst is resolved: NULLS LAST is the default of ASC.
type OrderItem struct {
	Expr       Expr
	Desc       bool
	NullsFirst bool
	// As written: ASC, NULLS FIRST or LAST, and the operator of USING.
	Asc       bool
	Nulls     bool
	Using     string
	Qualified bool // USING OPERATOR(pg_catalog.…)
}

// Locking is FOR UPDATE and its kind.
type Locking struct {
	Pos
	Strength string // "UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"
	Of       []TableName
	Wait     string // "", "NOWAIT", "SKIP LOCKED"
}

// TableExpr is an item of FROM.
type TableExpr interface {
	String() string
	tableExpr()
}

type (
	// TableRef is [schema.]name [AS alias [(columns)]] [TABLESAMPLE …].
	TableRef struct {
		Pos
		Name    TableName
		Only    bool
		Alias   string
		Columns []string
		Sample  *Sample
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
		Expr       Expr // in place of Call: another expression that may stand there, such as a cast
		Ordinality bool
		Alias      string
		Columns    []string
		ColumnDefs []ColumnTypeDef // f() AS t(a int, …)
	}
	// RowsFrom is [LATERAL] ROWS FROM (f(args) [AS (columns)], …) [WITH ORDINALITY] [AS alias [(columns)]].
	RowsFrom struct {
		Pos
		Lateral    bool
		Functions  []TableFunc // without alias
		Ordinality bool
		Alias      string
		Columns    []string
	}
	// XMLTable is XMLTABLE([XMLNAMESPACES(…),] row PASSING document COLUMNS …).
	XMLTable struct {
		Pos
		Lateral    bool
		Namespaces []SelectItem // not Aliased: DEFAULT
		Row        Expr
		Document   Expr
		Columns    []XMLColumn
		Alias      string
		Names      []string
	}
	// Join is an explicit join. Exactly one of Natural, Using, On is given, none for CROSS.
	Join struct {
		Pos
		Kind    JoinKind
		L, R    TableExpr
		Natural bool
		Using   []string
		// UsingAlias names the columns of Using together.
		UsingAlias string
		On         Expr
		Alias      string   // alias of a parenthesised join
		Columns    []string // names that the alias gives to columns
	}
)

// Sample is TABLESAMPLE method (arguments) [REPEATABLE (seed)].
type Sample struct {
	Pos
	Method []string
	Args   []Expr
	Seed   Expr // nil: none
}

// XMLColumn is a column of XMLTABLE: FOR ORDINALITY, or a type with options.
type XMLColumn struct {
	Name          string
	Type          *TypeName // nil: FOR ORDINALITY
	Path, Default Expr
	NotNull       bool
}

// Persistence says how long a relation lives.
type Persistence string

// The kinds of persistence.
const (
	Permanent Persistence = ""
	Temporary Persistence = "TEMPORARY"
	Unlogged  Persistence = "UNLOGGED"
)

// ColumnTypeDef is a column with its type in a table function's alias.
type ColumnTypeDef struct {
	Name      string
	Type      TypeName
	Collation []string
}

func (*TableRef) tableExpr()     {}
func (*DerivedTable) tableExpr() {}
func (*TableFunc) tableExpr()    {}
func (*RowsFrom) tableExpr()     {}
func (*XMLTable) tableExpr()     {}
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
	Database string // in front of the schema; "" when not given
	Schema   string // "" when not given
	Name     string
}
