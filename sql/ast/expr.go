package ast

// Expr is a scalar expression. String prints SQL that parses back to an equal tree.
type Expr interface {
	String() string
	// Position is the 1-based character position in the query text, 0 when unknown.
	Position() int
	expr()
}

// Pos is a 1-based character position in the query text; embedded by nodes that errors point at.
type Pos int

// Position returns p as an int.
func (p Pos) Position() int { return int(p) }

// LiteralKind says which type a literal has before any context is applied.
type LiteralKind uint8

// The kinds of literal. Integers are classed by size, as PostgreSQL's grammar does.
const (
	LiteralInt4 LiteralKind = iota + 1
	LiteralInt8
	LiteralNumeric
	LiteralString // type "unknown" until context gives it one
	LiteralBit
)

type (
	// Literal is a constant of the text. Slot is its index among the statement's extracted
	// literals, or -1 when its value is part of the statement's fingerprint (LIMIT 10, ORDER BY 1).
	// A plan that is to be cached must depend on Kind and Slot only, never on Value.
	Literal struct {
		Pos
		Kind  LiteralKind
		Slot  int
		Value string // decoded: no quotes, escapes applied
		// Typed is the type that context has given the literal, if it is printed as a cast to that; nil: it is printed as it is.
		Typed *TypeName
	}
	// Bool is TRUE or FALSE.
	Bool struct {
		Pos
		Value bool
	}
	// Null is NULL.
	Null struct{ Pos }
	// Param is $Number.
	Param struct {
		Pos
		Number int
	}
	// Default is the word DEFAULT in VALUES or SET.
	Default struct{ Pos }
	// ColumnRef is a possibly qualified name: col, tab.col, schema.tab.col. Also whole-row references
	// (a table's name used as a value).
	ColumnRef struct {
		Pos
		Parts []string
	}
	// Star is * or tab.*; in a select list and count(*) only.
	Star struct {
		Pos
		Table []string // empty for a bare *
	}
	// Unary is a prefix operator: - + NOT @ ~ |/ …
	Unary struct {
		Pos
		Op string
		// Qualified: written OPERATOR(pg_catalog.Op). An operator of another schema has that form as its Op.
		Qualified bool
		// Operator is the OID of the operator of a user that binding has found; 0: it is none.
		Operator uint32
		X        Expr
	}
	// Binary is an infix operator, AND and OR included: "+", "||", "AND", "LIKE" is Like below.
	Binary struct {
		Pos
		Op        string
		Qualified bool   // as of Unary
		Operator  uint32 // as of Unary
		L, R      Expr
	}
	// Like is X [NOT] LIKE|ILIKE|SIMILAR TO Pattern [ESCAPE Escape].
	Like struct {
		Pos
		Op         string // "LIKE", "ILIKE", "SIMILAR TO"
		Not        bool
		X, Pattern Expr
		Escape     Expr // nil: default
	}
	// IsTest is X IS [NOT] NULL|TRUE|FALSE|UNKNOWN.
	IsTest struct {
		Pos
		X    Expr
		What string // "NULL", "TRUE", "FALSE", "UNKNOWN", "DOCUMENT", "NORMALIZED", "NFC NORMALIZED" and its kind
		Not  bool
	}
	// IsDistinct is L IS [NOT] DISTINCT FROM R.
	IsDistinct struct {
		Pos
		L, R Expr
		Not  bool
	}
	// Between is X [NOT] BETWEEN [SYMMETRIC] Low AND High.
	Between struct {
		Pos
		X, Low, High   Expr
		Not, Symmetric bool
	}
	// InList is X [NOT] IN (List).
	InList struct {
		Pos
		X    Expr
		List []Expr
		Not  bool
	}
	// InSubquery is X [NOT] IN (Query); X may be a Row.
	InSubquery struct {
		Pos
		X     Expr
		Query *Query
		Not   bool
	}
	// Quantified is X Op ANY|ALL (Query or Array): exactly one of Query and Array is set.
	Quantified struct {
		Pos
		X         Expr
		Op        string
		Qualified bool   // as of Unary
		Operator  uint32 // as of Unary
		All       bool
		Query     *Query
		Array     Expr
	}
	// Exists is EXISTS (Query).
	Exists struct {
		Pos
		Query *Query
	}
	// Subquery is a scalar subquery.
	Subquery struct {
		Pos
		Query *Query
	}
	// ArraySubquery is ARRAY(Query).
	ArraySubquery struct {
		Pos
		Query *Query
	}
	// Case is CASE [Operand] WHEN … THEN … [ELSE …] END.
	Case struct {
		Pos
		Operand Expr // nil: searched
		Whens   []When
		Else    Expr // nil: NULL
	}
	// Cast is CAST(X AS Type), X::Type or Type 'literal'.
	Cast struct {
		Pos
		X     Expr
		Type  TypeName
		Treat bool // TREAT(X AS Type)
	}
	// Call is a function or aggregate call. COALESCE, NULLIF, GREATEST, LEAST, EXTRACT (as
	// date_part-like "extract"), SUBSTRING, POSITION, TRIM (btrim, ltrim, rtrim), OVERLAY,
	// CURRENT_TIMESTAMP and their kind arrive as calls with PostgreSQL's internal function name.
	Call struct {
		Pos
		Name     []string // possibly qualified
		Syntax   Syntax
		Args     []Expr
		ArgNames []string // names of named arguments, nil when none is named
		Star     bool     // f(*)
		Distinct bool
		Variadic bool
		OrderBy  []OrderItem
		Filter   Expr
		Within   []OrderItem // WITHIN GROUP
		Over     *Window
		// Routine is the OID of the routine of a user that binding has found, 0 for another function. Nothing prints it.
		Routine uint32
	}
	// Array is ARRAY[…].
	Array struct {
		Pos
		Elems []Expr
	}
	// Row is ROW(…) or (a, b, …).
	Row struct {
		Pos
		Elems    []Expr
		Explicit bool // written ROW(…)
	}
	// Subscript is X[Index] or X[Low:High].
	Subscript struct {
		Pos
		X         Expr
		Index     Expr
		Low, High Expr
		Slice     bool
		Parens    bool // X is written in parentheses
	}
	// Field is (X).Name.
	Field struct {
		Pos
		X      Expr
		Name   string // "*" for all
		Parens bool   // X is written in parentheses
	}
	// AtTimeZone is X AT TIME ZONE Zone.
	AtTimeZone struct {
		Pos
		X, Zone Expr
	}
	// GroupingSet is an item of GROUP BY: (), ROLLUP (…), CUBE (…) or GROUPING SETS (…).
	GroupingSet struct {
		Pos
		Kind  string // "", "ROLLUP", "CUBE", "GROUPING SETS"
		Items []Expr
	}
	// CurrentOf is CURRENT OF cursor, the condition of a positioned UPDATE or DELETE.
	CurrentOf struct {
		Pos
		Cursor string
	}
	// XML is one of the functions for XML whose arguments have words between them.
	XML struct {
		Pos
		Function   string // "XMLCONCAT", "XMLELEMENT", "XMLEXISTS", "XMLFOREST", "XMLPARSE", "XMLPI", "XMLROOT", "XMLSERIALIZE"
		Name       string
		Attributes []SelectItem // of XMLELEMENT and XMLFOREST
		Args       []Expr
		Content    bool     // XMLPARSE and XMLSERIALIZE: CONTENT rather than DOCUMENT
		Preserve   bool     // XMLPARSE: PRESERVE WHITESPACE
		Standalone string   // XMLROOT: "", "YES", "NO", "NO VALUE"
		Type       TypeName // of XMLSERIALIZE
	}
	// Collate is X COLLATE Name.
	Collate struct {
		Pos
		X    Expr
		Name []string
	}
)

// When is one arm of a Case.
type When struct {
	Pos
	Cond, Then Expr
}

// Syntax is the form in which a call is written, where that is not name(arguments).
type Syntax uint8

// The forms of calls.
const (
	PlainCall     Syntax = iota
	ValueSyntax          // CURRENT_SCHEMA and its kind, without parentheses
	ExtractSyntax        // EXTRACT(field FROM x)
	PositionSyntax
	OverlaySyntax
	SubstringFrom    // SUBSTRING(x FROM start [FOR count])
	SubstringFor     // SUBSTRING(x FOR count)
	SubstringSimilar // SUBSTRING(x SIMILAR pattern ESCAPE escape)
	TrimSyntax       // TRIM([BOTH|LEADING|TRAILING] [chars FROM] x)
	NormalizeSyntax
	OverlapsSyntax // (a, b) OVERLAPS (c, d)
	CollationFor   // COLLATION FOR (x)
	GroupingSyntax // GROUPING(x, …)
)

// Window is an OVER clause: a name, or a specification.
type Window struct {
	Pos
	Parens      bool // written (name) rather than name
	Name        string
	PartitionBy []Expr
	OrderBy     []OrderItem
	Frame       *Frame // nil: the default
}

// Frame is the frame clause of a window.
type Frame struct {
	Mode       FrameMode
	Between    bool // written with both bounds; without, End is the current row
	Start, End FrameBound
	Exclude    FrameExclusion
}

// FrameMode is the unit of a frame's bounds.
type FrameMode string

// The modes of frames.
const (
	FrameRange  FrameMode = "RANGE" // values of the only ORDER BY item
	FrameRows   FrameMode = "ROWS"
	FrameGroups FrameMode = "GROUPS" // of rows that are equal in ORDER BY
)

// FrameBound is one end of a frame. Offset is that of OffsetPreceding and OffsetFollowing.
type FrameBound struct {
	Kind   BoundKind
	Offset Expr
}

// BoundKind is the kind of a frame's bound, in the order of the rows that the kinds denote.
type BoundKind uint8

// The kinds of bounds.
const (
	UnboundedPreceding BoundKind = iota
	OffsetPreceding
	CurrentRow
	OffsetFollowing
	UnboundedFollowing
)

// FrameExclusion is what EXCLUDE takes out of a frame.
type FrameExclusion string

// The exclusions of frames. EXCLUDE NO OTHERS is ExcludeNone.
const (
	ExcludeNone       FrameExclusion = ""
	ExcludeCurrentRow FrameExclusion = "CURRENT ROW"
	ExcludeGroup      FrameExclusion = "GROUP"
	ExcludeTies       FrameExclusion = "TIES"
)

// TypeName is a type as written; the planner resolves it.
type TypeName struct {
	Pos
	Name []string // lower case unless quoted; multi-word names in PostgreSQL's internal form (int4, float8, varchar, bpchar, timestamptz, …)
	Mods []int    // (10,2)
	// ModExprs take the place of Mods where they are not integers alone, as in geometry(Point, 4326).
	ModExprs []Expr
	Array    int   // number of [] pairs
	Bounds   []int // the numbers in them, -1 for none; they have no meaning
	SetOf    bool
	// Keyword: written as a word of the grammar, such as INTEGER, which means pg_catalog's type, whatever the path.
	Keyword bool
	Percent bool // name%TYPE
}

func (*Literal) expr()       {}
func (*Bool) expr()          {}
func (*Null) expr()          {}
func (*Param) expr()         {}
func (*Default) expr()       {}
func (*ColumnRef) expr()     {}
func (*Star) expr()          {}
func (*Unary) expr()         {}
func (*Binary) expr()        {}
func (*Like) expr()          {}
func (*IsTest) expr()        {}
func (*IsDistinct) expr()    {}
func (*Between) expr()       {}
func (*InList) expr()        {}
func (*InSubquery) expr()    {}
func (*Quantified) expr()    {}
func (*Exists) expr()        {}
func (*Subquery) expr()      {}
func (*ArraySubquery) expr() {}
func (*Case) expr()          {}
func (*Cast) expr()          {}
func (*Call) expr()          {}
func (*Array) expr()         {}
func (*Row) expr()           {}
func (*Subscript) expr()     {}
func (*Field) expr()         {}
func (*AtTimeZone) expr()    {}
func (*GroupingSet) expr()   {}
func (*CurrentOf) expr()     {}
func (*XML) expr()           {}
func (*Collate) expr()       {}
