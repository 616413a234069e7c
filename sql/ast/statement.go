// Package ast is percodb's syntax tree, in PostgreSQL's terms: what leaves package sql, and all that
// the planner sees of a text. The sums (Statement, Expr, TableExpr, QueryBody) are sealed; String of
// every node prints SQL that parses back to an equal tree, positions and slots aside.
package ast

// Statement is one SQL statement.
type Statement interface {
	String() string
	statement()
}

type (
	// Insert is INSERT INTO. Query nil means DEFAULT VALUES.
	Insert struct {
		Pos
		With       *With
		Table      TableName
		Alias      string
		Columns    []InsertColumn // empty: all, in order
		Overriding string         // "", "SYSTEM", "USER"
		Query      *Query
		OnConflict *OnConflict
		Returning  []SelectItem
	}
	// Update is UPDATE … SET … FROM … WHERE … RETURNING.
	Update struct {
		Pos
		With      *With
		Only      bool
		Table     TableName
		Alias     string
		Set       []Assignment
		From      []TableExpr
		Where     Expr
		Returning []SelectItem
	}
	// Delete is DELETE FROM … USING … WHERE … RETURNING.
	Delete struct {
		Pos
		With      *With
		Only      bool
		Table     TableName
		Alias     string
		Using     []TableExpr
		Where     Expr
		Returning []SelectItem
	}
)

// InsertColumn is a target column of INSERT, or a part of one.
type InsertColumn struct {
	Pos
	Name string
	Part []Step
}

// Step is a step into a part of a column: a field's name, or a subscript (without its X).
type Step struct {
	Field     string
	Subscript *Subscript
}

// Merge is MERGE INTO … USING … ON … WHEN ….
type Merge struct {
	Pos
	With   *With
	Only   bool
	Table  TableName
	Alias  string
	Source TableExpr
	On     Expr
	Whens  []MergeWhen
}

// MergeWhen is a clause of MERGE. Action is "DO NOTHING", "DELETE", "UPDATE" or "INSERT".
type MergeWhen struct {
	Pos
	Matched    bool
	Cond       Expr
	Action     string
	Set        []Assignment
	Columns    []InsertColumn
	Overriding string
	Values     []Expr // nil: DEFAULT VALUES
}

// OnConflict is ON CONFLICT [target] DO NOTHING | DO UPDATE SET … [WHERE …].
type OnConflict struct {
	Pos
	// AnyKey: DO UPDATE where any unique key is taken (MySQL's ON DUPLICATE KEY UPDATE). PostgreSQL has no words for it.
	AnyKey bool
	// Replace, with AnyKey: every column takes the value of the row proposed (MySQL's REPLACE); Set is empty.
	Replace     bool
	Columns     []Expr        // inferred target; empty with Constraint "" means any
	Infer       []IndexColumn // Columns as written
	TargetWhere Expr
	Constraint  string
	DoUpdate    bool
	Set         []Assignment
	Where       Expr
}

// Assignment is col = expr, or (a, b) = (row or subquery) with several Columns.
type Assignment struct {
	Pos
	Columns []string
	Parts   [][]Step // of each column; nil if all are whole
	List    bool     // written (columns) = value
	Value   Expr
}

type (
	// CreateTable is CREATE [TEMP] TABLE.
	CreateTable struct {
		Pos
		Name        TableName
		IfNotExists bool
		Persistence Persistence
		Columns     []ColumnDef
		Constraints []TableConstraint
		// Indexes are MySQL's KEY in a table's definition. PostgreSQL has no words for them.
		Indexes []*CreateIndex
		// Order says how Columns, Constraints and Likes are mixed: 'c', 'k' or 'l' for each in turn.
		Order      []byte
		Likes      []LikeTable
		OfType     *TypeName // CREATE TABLE … OF
		Inherits   []TableName
		Partition  *PartitionBy
		Parent     *TableName      // CREATE TABLE … PARTITION OF
		Bound      *PartitionBound // of a partition
		Elements   bool            // a list of columns and constraints is there, be it empty
		OnCommit   string          // "", "PRESERVE ROWS", "DELETE ROWS", "DROP"
		Method     string          // USING
		Tablespace string
		AsQuery    *Query   // CREATE TABLE AS
		AsExecute  *Execute // CREATE TABLE AS EXECUTE
		AsColumns  []string // names given to CREATE TABLE AS
		WithNoData bool
		WithData   bool            // WITH DATA is written
		Options    []StorageOption // WITH (fillfactor=100): accepted, no meaning here
	}
	// CreateIndex is CREATE [UNIQUE] INDEX.
	CreateIndex struct {
		Pos
		Name         string // "": derived
		Only         bool
		Table        TableName
		Unique       bool
		Concurrently bool
		IfNotExists  bool
		Method       string
		Columns      []IndexColumn
		Include      []IndexColumn
		Nulls        bool // NULLS [NOT] DISTINCT is written
		NotNulls     bool // NULLS NOT DISTINCT
		Options      []StorageOption
		Tablespace   string
		Where        Expr
	}
	// CreateView is CREATE [OR REPLACE] VIEW.
	CreateView struct {
		Pos
		Name        TableName
		OrReplace   bool
		Persistence Persistence
		Recursive   bool
		Columns     []string
		Options     []StorageOption
		Query       *Query
		Text        string // the query's own text
		CheckOption string // "", "LOCAL", "CASCADED"
	}
	// CreateSequence is CREATE SEQUENCE.
	CreateSequence struct {
		Pos
		Persistence Persistence
		Name        TableName
		IfNotExists bool
		SequenceOptions
	}
	// CreateSchema is CREATE SCHEMA.
	CreateSchema struct {
		Pos
		Name        string
		IfNotExists bool
		Unnamed     bool        // Name is that of the owner
		Owner       *Role       // AUTHORIZATION
		Elements    []Statement // the objects in it
	}
	// Drop is DROP TABLE|INDEX|VIEW|SEQUENCE|SCHEMA.
	Drop struct {
		Pos
		Kind         string // "TABLE", "INDEX", "VIEW", "SEQUENCE", "SCHEMA"
		Names        []TableName
		IfExists     bool
		Cascade      bool
		Concurrently bool
	}
	// AlterTable is ALTER TABLE with its commands in order.
	AlterTable struct {
		Pos
		Kind     string // "TABLE", "INDEX", "VIEW", "SEQUENCE", "FOREIGN TABLE", "MATERIALIZED VIEW"
		Only     bool
		Name     TableName
		IfExists bool
		Commands []AlterCommand
	}
	// MoveAll is ALTER … ALL IN TABLESPACE.
	MoveAll struct {
		Pos
		Kind     string // "TABLE", "INDEX", "MATERIALIZED VIEW"
		From, To string
		Owners   []Role // OWNED BY
		NoWait   bool
	}
	// Truncate is TRUNCATE.
	Truncate struct {
		Pos
		Tables          []Relation
		RestartIdentity bool
		Cascade         bool
	}
)

// SequenceOptions are the options of a sequence; nil means not said.
type SequenceOptions struct {
	// Order has the options in the order in which they are written, and the text of one that is repeated; nil: that of the fields.
	Order        []string
	Type         *TypeName
	Start        *int64
	Increment    *int64
	Min, Max     *int64
	NoMin, NoMax bool // NO MINVALUE, NO MAXVALUE
	Cache        *int64
	Cycle        bool
	NoCycle      bool     // NO CYCLE
	Name         []string // SEQUENCE NAME, of identity columns
	OwnedBy      []string // the column, or "none"
	Restart      bool     // ALTER SEQUENCE … RESTART
	RestartWith  *int64
}

// StorageOption is one name=value of a WITH list.
type StorageOption struct {
	Name, Value string
	Written     string // the value as written; "" where it was not kept
}

// LikeTable is LIKE table [INCLUDING|EXCLUDING option …] in CREATE TABLE.
type LikeTable struct {
	Pos
	Table   TableName
	Options []string // "INCLUDING ALL", "EXCLUDING INDEXES", …
}

// PartitionBy is PARTITION BY RANGE|LIST|HASH (…).
type PartitionBy struct {
	Pos
	Strategy string
	Keys     []IndexColumn
}

// PartitionBound is the bound of a partition: exactly one of its kinds is given.
type PartitionBound struct {
	Pos
	Default            bool
	In                 []Expr
	From, To           []Expr
	Modulus, Remainder int // Modulus 0: no hash bound
}

// ExcludeElement is a column or expression of an EXCLUDE constraint with its operator.
type ExcludeElement struct {
	IndexColumn
	Operator  string
	Qualified bool
}

// ColumnAttribute is a constraint or attribute of a column as written, in order.
type ColumnAttribute struct {
	Name       string // CONSTRAINT name
	Kind       string // "NOT NULL", "NULL", "DEFAULT", "IDENTITY", "GENERATED", "COLLATE", "COMPRESSION", "CONSTRAINT", or the text of an attribute or of a clause that is repeated
	Constraint int    // the index in ColumnDef.Constraints of "CONSTRAINT"
}

// ColumnDef is a column of CREATE TABLE or ADD COLUMN.
type ColumnDef struct {
	Pos
	Name          string
	Type          TypeName // serial types by one name each: serial4, serial8, serial2
	TypeName      string   // a serial type as written
	Untyped       bool     // no type: a column of a typed table or a partition
	Written       []ColumnAttribute
	Compression   string
	NotNull, Null bool
	Default       Expr
	Identity      string           // "", "ALWAYS", "BY DEFAULT"
	Sequence      *SequenceOptions // of an identity column; nil without options
	Generated     Expr             // GENERATED ALWAYS AS (…) STORED
	Collation     []string
	CollateAt     Pos               // where COLLATE is
	Constraints   []TableConstraint // PRIMARY KEY, UNIQUE, CHECK, REFERENCES of this column
}

// ConstraintKind is the kind of a table constraint.
type ConstraintKind uint8

// The kinds of table constraint.
const (
	PrimaryKey ConstraintKind = iota + 1
	Unique
	Check
	ForeignKey
	Exclude
)

// TableConstraint is a constraint of a table or, with one column, of a column.
type TableConstraint struct {
	Pos
	Name       string // "": derived as PostgreSQL does
	Kind       ConstraintKind
	Columns    []string
	Check      Expr
	UsingIndex string // ADD CONSTRAINT … UNIQUE USING INDEX
	References *References
	Deferrable bool
	Deferred   bool // INITIALLY DEFERRED
	NotValid   bool
	Include    []IndexColumn
	NotNulls   bool // NULLS NOT DISTINCT
	Nulls      bool // NULLS [NOT] DISTINCT is written
	Exclude    []ExcludeElement
	Method     string // of EXCLUDE
	Where      Expr   // of EXCLUDE
	Options    []StorageOption
	Tablespace string
	Attributes []string // "DEFERRABLE", "INITIALLY DEFERRED", "NOT VALID", "NO INHERIT", … as written
}

// References is the target of a foreign key.
type References struct {
	Table              TableName
	Columns            []string
	OnDelete, OnUpdate string
	DeleteColumns      []string // of ON DELETE SET NULL and SET DEFAULT
	UpdateColumns      []string
	Match              string
}

// IndexColumn is a key column of an index: a column's name, or an expression.
type IndexColumn struct {
	Pos
	Name       string
	Expr       Expr
	Collation  []string
	OpClass    []string
	Options    []StorageOption // of the operator class
	Desc       bool
	NullsFirst bool
	Asc, Nulls bool // ASC, and NULLS FIRST or LAST, are written
	Call       bool // Expr is written without parentheses of its own
}

// AlterCommand is one command of ALTER TABLE.
type AlterCommand interface {
	String() string
	alterCommand()
}

type (
	// AddColumn is ADD COLUMN.
	AddColumn struct {
		IfNotExists bool
		Column      ColumnDef
	}
	// DropColumn is DROP COLUMN.
	DropColumn struct {
		Pos
		Name              string
		IfExists, Cascade bool
	}
	// AlterColumn is ALTER COLUMN; exactly one of the changes is asked for.
	AlterColumn struct {
		Pos
		Name        string
		SetDefault  Expr
		DropDefault bool
		SetNotNull  bool
		DropNotNull bool
		SetType     *TypeName
		Collation   []string // of SetType
		Using       Expr
		AddIdentity string           // ADD GENERATED: "ALWAYS", "BY DEFAULT"
		Sequence    *SequenceOptions // of AddIdentity
		Drop        string           // "IDENTITY", "EXPRESSION"
		IfExists    bool             // of Drop
		Options     []ForeignOption

		IdentityOptions []IdentityOption
	}
	// TableCommand is a command about what percodb does not have. Action is its words, which Name, Table and the others complete.
	TableCommand struct {
		Pos
		Action     string
		Name       string     // of a constraint, trigger, rule, tablespace, access method or extension
		Table      *TableName // of INHERIT, OF, ATTACH PARTITION and their kin
		Bound      *PartitionBound
		Mode       string // CONCURRENTLY or FINALIZE; ALL or USER of triggers
		Attributes []string
		Options    []ForeignOption
	}
	// AddConstraint is ADD [CONSTRAINT name] ….
	AddConstraint struct{ Constraint TableConstraint }
	// DropConstraint is DROP CONSTRAINT.
	DropConstraint struct {
		Pos
		Name              string
		IfExists, Cascade bool
	}
	// RenameTo is RENAME TO.
	RenameTo struct{ Name string }
	// RenameColumn is RENAME COLUMN.
	RenameColumn struct {
		Pos
		From, To string
	}
	// RenameConstraint is RENAME CONSTRAINT.
	RenameConstraint struct {
		Pos
		From, To string
	}
	// SetSequence is ALTER SEQUENCE with its options.
	SetSequence struct {
		Pos
		SequenceOptions
	}
	// SetStorage is a command about storage, ownership or schema: Action is its words, which one of the others completes.
	SetStorage struct {
		Pos
		Column  string // of ALTER COLUMN; "" for the relation
		Number  string // ALTER COLUMN by its number
		Action  string // "OWNER TO", "SET", "RESET", "SET SCHEMA", "REPLICA IDENTITY FULL", …
		Name    string // of a schema, an index, a kind of storage or compression
		Value   string // a number
		Owner   *Role
		Options []StorageOption
	}
)

// IdentityOption is an option of an identity column to change: SET GENERATED, or one of its sequence.
type IdentityOption struct {
	Generated string // "ALWAYS", "BY DEFAULT"
	Sequence  *SequenceOptions
	Set       bool // written SET option
}

func (*TableCommand) alterCommand()     {}
func (*AddColumn) alterCommand()        {}
func (*DropColumn) alterCommand()       {}
func (*AlterColumn) alterCommand()      {}
func (*AddConstraint) alterCommand()    {}
func (*DropConstraint) alterCommand()   {}
func (*RenameTo) alterCommand()         {}
func (*RenameColumn) alterCommand()     {}
func (*RenameConstraint) alterCommand() {}
func (*SetSequence) alterCommand()      {}
func (*SetStorage) alterCommand()       {}

type (
	// Begin is BEGIN or START TRANSACTION with its modes.
	Begin struct {
		Pos
		Start bool // written START TRANSACTION
		Modes TransactionModes
	}
	// AlterSystem is ALTER SYSTEM SET, or RESET with Default; Name is "all" for RESET ALL.
	AlterSystem struct {
		Pos
		Name    string
		Values  []string
		Default bool
	}
	// SetTransaction is SET TRANSACTION or SET SESSION CHARACTERISTICS.
	SetTransaction struct {
		Pos
		Session  bool
		Modes    TransactionModes
		Snapshot string // SNAPSHOT
	}
	// Commit is COMMIT or END; Chain is AND CHAIN.
	Commit struct {
		Pos
		Chain bool
	}
	// Rollback is ROLLBACK or ABORT.
	Rollback struct {
		Pos
		Chain bool
	}
	// Savepoint is SAVEPOINT name.
	Savepoint struct {
		Pos
		Name string
	}
	// ReleaseSavepoint is RELEASE name.
	ReleaseSavepoint struct {
		Pos
		Name string
	}
	// RollbackTo is ROLLBACK TO name.
	RollbackTo struct {
		Pos
		Name string
	}
	// Set is SET [SESSION|LOCAL] name = values; Default is SET name TO DEFAULT and RESET name.
	// Name "all" with Default is RESET ALL. TIME ZONE arrives as "timezone".
	Set struct {
		Pos
		Name     string
		Local    bool
		Values   []string
		Default  bool
		Reset    bool // written RESET
		Current  bool // FROM CURRENT
		Interval Expr // TIME ZONE INTERVAL …
	}
	// Show is SHOW name; "all" for SHOW ALL.
	Show struct {
		Pos
		Name string
	}
	// Prepare is PREPARE name (types) AS statement; Text is the statement's own text.
	Prepare struct {
		Pos
		Name      string
		Types     []TypeName
		Statement Statement
		Text      string // of Statement
		Heading   string // the text of Name and Types
		At        Pos    // where Text begins
	}
	// Execute is EXECUTE name (args).
	Execute struct {
		Pos
		Name string
		Args []Expr
	}
	// Deallocate is DEALLOCATE name; Name "" is ALL.
	Deallocate struct {
		Pos
		Name string
	}
	// Explain is EXPLAIN [(options)] statement.
	Explain struct {
		Pos
		Analyze, Verbose bool
		NoCosts          bool
		NoTiming         bool            // of the nodes
		Summary          bool            // the times of planning and execution
		Buffers          bool            // the requests to the stores
		Format           string          // "text", "json" …; "": none is given
		Options          []StorageOption // all, as written
		Statement        Statement
		Text             string // the explained statement's own text
	}
	// Copy is COPY table [(columns)] FROM STDIN | TO STDOUT, or COPY (query) TO STDOUT.
	Copy struct {
		Pos
		Table   TableName
		Columns []string
		Query   *Query
		DML     Statement // COPY (INSERT …) and its kin
		From    bool
		Source  string // "STDIN", "STDOUT"; "" with File
		File    *string
		Program bool // File is a program
		Old     bool // the options have the form of PostgreSQL before 9.0
		Options []StorageOption
		Where   Expr
	}
	// DeclareCursor is DECLARE name CURSOR [WITH HOLD] FOR query.
	DeclareCursor struct {
		Pos
		Name   string
		Hold   bool
		Scroll bool
		Binary bool

		NoScroll, Insensitive, Asensitive bool

		Query *Query
		Text  string
		At    Pos // where Text begins
	}
	// Fetch is FETCH or MOVE.
	Fetch struct {
		Pos
		Direction string // "NEXT", "FORWARD", "BACKWARD", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE"
		Count     int64
		All       bool
		Name      string
		Move      bool
	}
	// CloseCursor is CLOSE name; Name "" is ALL.
	CloseCursor struct {
		Pos
		Name string
	}
	// Analyze is ANALYZE; Vacuum is VACUUM.
	Analyze struct {
		Pos
		Tables  []TableName
		Columns [][]string // of each table; nil if none has any
		Verbose bool
		Options []StorageOption // as written
	}
	// Vacuum is VACUUM [ANALYZE].
	Vacuum struct {
		Pos
		Tables  []TableName
		Columns [][]string // as of Analyze
		Analyze bool
		Full    bool
		Options []StorageOption // as written
	}
	// Discard is DISCARD ALL|PLANS|TEMP|SEQUENCES.
	Discard struct {
		Pos
		What string
	}
	// LockTable is LOCK TABLE.
	LockTable struct {
		Pos
		Tables []Relation
		Mode   string
		NoWait bool
	}
	// SetConstraints is SET CONSTRAINTS; no names mean ALL.
	SetConstraints struct {
		Pos
		Names    []TableName
		Deferred bool
	}
)

// TransactionModes are the modes of BEGIN and SET TRANSACTION; empty or nil means not said.
type TransactionModes struct {
	Isolation  string // "serializable", "repeatable read", "read committed", "read uncommitted"
	ReadOnly   *bool
	Deferrable *bool
	AsOf       Expr // AS OF SYSTEM TIME
}

func (*Query) statement()            {}
func (*Insert) statement()           {}
func (*Update) statement()           {}
func (*Delete) statement()           {}
func (*Merge) statement()            {}
func (*CreateTable) statement()      {}
func (*CreateIndex) statement()      {}
func (*CreateView) statement()       {}
func (*CreateSequence) statement()   {}
func (*CreateSchema) statement()     {}
func (*Drop) statement()             {}
func (*AlterTable) statement()       {}
func (*MoveAll) statement()          {}
func (*Truncate) statement()         {}
func (*Comment) statement()          {}
func (*Begin) statement()            {}
func (*AlterSystem) statement()      {}
func (*SetTransaction) statement()   {}
func (*Commit) statement()           {}
func (*Rollback) statement()         {}
func (*Savepoint) statement()        {}
func (*ReleaseSavepoint) statement() {}
func (*RollbackTo) statement()       {}
func (*Set) statement()              {}
func (*Show) statement()             {}
func (*Prepare) statement()          {}
func (*Execute) statement()          {}
func (*Deallocate) statement()       {}
func (*Explain) statement()          {}
func (*Copy) statement()             {}
func (*DeclareCursor) statement()    {}
func (*Fetch) statement()            {}
func (*CloseCursor) statement()      {}
func (*Analyze) statement()          {}
func (*Vacuum) statement()           {}
func (*Discard) statement()          {}
func (*LockTable) statement()        {}
func (*SetConstraints) statement()   {}
