package keyword

// The words of PostgreSQL 15 (its function pg_get_keywords() is the source), in alphabetical order.
const (
	None Word = iota
	Abort
	Absolute
	Access
	Action
	Add
	Admin
	After
	Aggregate
	All
	Also
	Alter
	Always
	Analyse
	Analyze
	And
	Any
	Array
	As
	Asc
	Asensitive
	Assertion
	Assignment
	Asymmetric
	At
	Atomic
	Attach
	Attribute
	Authorization
	Backward
	Before
	Begin
	Between
	Bigint
	Binary
	Bit
	Boolean
	Both
	Breadth
	By
	Cache
	Call
	Called
	Cascade
	Cascaded
	Case
	Cast
	Catalog
	Chain
	Char
	Character
	Characteristics
	Check
	Checkpoint
	Class
	Close
	Cluster
	Coalesce
	Collate
	Collation
	Column
	Columns
	Comment
	Comments
	Commit
	Committed
	Compression
	Concurrently
	Configuration
	Conflict
	Connection
	Constraint
	Constraints
	Content
	Continue
	Conversion
	Copy
	Cost
	Create
	Cross
	Csv
	Cube
	Current
	CurrentCatalog
	CurrentDate
	CurrentRole
	CurrentSchema
	CurrentTime
	CurrentTimestamp
	CurrentUser
	Cursor
	Cycle
	Data
	Database
	Day
	Deallocate
	Dec
	Decimal
	Declare
	Default
	Defaults
	Deferrable
	Deferred
	Definer
	Delete
	Delimiter
	Delimiters
	Depends
	Depth
	Desc
	Detach
	Dictionary
	Disable
	Discard
	Distinct
	Do
	Document
	Domain
	Double
	Drop
	Each
	Else
	Enable
	Encoding
	Encrypted
	End
	Enum
	Escape
	Event
	Except
	Exclude
	Excluding
	Exclusive
	Execute
	Exists
	Explain
	Expression
	Extension
	External
	Extract
	False
	Family
	Fetch
	Filter
	Finalize
	First
	Float
	Following
	For
	Force
	Foreign
	Forward
	Freeze
	From
	Full
	Function
	Functions
	Generated
	Global
	Grant
	Granted
	Greatest
	Group
	Grouping
	Groups
	Handler
	Having
	Header
	Hold
	Hour
	Identity
	If
	Ilike
	Immediate
	Immutable
	Implicit
	Import
	In
	Include
	Including
	Increment
	Index
	Indexes
	Inherit
	Inherits
	Initially
	Inline
	Inner
	Inout
	Input
	Insensitive
	Insert
	Instead
	Int
	Integer
	Intersect
	Interval
	Into
	Invoker
	Is
	Isnull
	Isolation
	Join
	Key
	Label
	Language
	Large
	Last
	Lateral
	Leading
	Leakproof
	Least
	Left
	Level
	Like
	Limit
	Listen
	Load
	Local
	Localtime
	Localtimestamp
	Location
	Lock
	Locked
	Logged
	Mapping
	Match
	Matched
	Materialized
	Maxvalue
	Merge
	Method
	Minute
	Minvalue
	Mode
	Month
	Move
	Name
	Names
	National
	Natural
	Nchar
	New
	Next
	Nfc
	Nfd
	Nfkc
	Nfkd
	No
	NoneWord
	Normalize
	Normalized
	Not
	Nothing
	Notify
	Notnull
	Nowait
	Null
	Nullif
	Nulls
	Numeric
	Object
	Of
	Off
	Offset
	Oids
	Old
	On
	Only
	Operator
	Option
	Options
	Or
	Order
	Ordinality
	Others
	Out
	Outer
	Over
	Overlaps
	Overlay
	Overriding
	Owned
	Owner
	Parallel
	Parameter
	Parser
	Partial
	Partition
	Passing
	Password
	Placing
	Plans
	Policy
	Position
	Preceding
	Precision
	Prepare
	Prepared
	Preserve
	Primary
	Prior
	Privileges
	Procedural
	Procedure
	Procedures
	Program
	Publication
	Quote
	Range
	Read
	Real
	Reassign
	Recheck
	Recursive
	Ref
	References
	Referencing
	Refresh
	Reindex
	Relative
	Release
	Rename
	Repeatable
	Replace
	Replica
	Reset
	Restart
	Restrict
	Return
	Returning
	Returns
	Revoke
	Right
	Role
	Rollback
	Rollup
	Routine
	Routines
	Row
	Rows
	Rule
	Savepoint
	Schema
	Schemas
	Scroll
	Search
	Second
	Security
	Select
	Sequence
	Sequences
	Serializable
	Server
	Session
	SessionUser
	Set
	Setof
	Sets
	Share
	Show
	Similar
	Simple
	Skip
	Smallint
	Snapshot
	Some
	Sql
	Stable
	Standalone
	Start
	Statement
	Statistics
	Stdin
	Stdout
	Storage
	Stored
	Strict
	Strip
	Subscription
	Substring
	Support
	Symmetric
	Sysid
	System
	Table
	Tables
	Tablesample
	Tablespace
	Temp
	Template
	Temporary
	Text
	Then
	Ties
	Time
	Timestamp
	To
	Trailing
	Transaction
	Transform
	Treat
	Trigger
	Trim
	True
	Truncate
	Trusted
	Type
	Types
	Uescape
	Unbounded
	Uncommitted
	Unencrypted
	Union
	Unique
	Unknown
	Unlisten
	Unlogged
	Until
	Update
	User
	Using
	Vacuum
	Valid
	Validate
	Validator
	Value
	Values
	Varchar
	Variadic
	Varying
	Verbose
	Version
	View
	Views
	Volatile
	When
	Where
	Whitespace
	Window
	With
	Within
	Without
	Work
	Wrapper
	Write
	Xml
	Xmlattributes
	Xmlconcat
	Xmlelement
	Xmlexists
	Xmlforest
	Xmlnamespaces
	Xmlparse
	Xmlpi
	Xmlroot
	Xmlserialize
	Xmltable
	Year
	Yes
	Zone
	count
)

// words gives each Word its text, category and whether it may be a bare column label.
var words = [count]struct {
	text      string
	category  Category
	bareLabel bool
}{
	Abort:            {"abort", Unreserved, true},
	Absolute:         {"absolute", Unreserved, true},
	Access:           {"access", Unreserved, true},
	Action:           {"action", Unreserved, true},
	Add:              {"add", Unreserved, true},
	Admin:            {"admin", Unreserved, true},
	After:            {"after", Unreserved, true},
	Aggregate:        {"aggregate", Unreserved, true},
	All:              {"all", Reserved, true},
	Also:             {"also", Unreserved, true},
	Alter:            {"alter", Unreserved, true},
	Always:           {"always", Unreserved, true},
	Analyse:          {"analyse", Reserved, true},
	Analyze:          {"analyze", Reserved, true},
	And:              {"and", Reserved, true},
	Any:              {"any", Reserved, true},
	Array:            {"array", Reserved, false},
	As:               {"as", Reserved, false},
	Asc:              {"asc", Reserved, true},
	Asensitive:       {"asensitive", Unreserved, true},
	Assertion:        {"assertion", Unreserved, true},
	Assignment:       {"assignment", Unreserved, true},
	Asymmetric:       {"asymmetric", Reserved, true},
	At:               {"at", Unreserved, true},
	Atomic:           {"atomic", Unreserved, true},
	Attach:           {"attach", Unreserved, true},
	Attribute:        {"attribute", Unreserved, true},
	Authorization:    {"authorization", TypeFunc, true},
	Backward:         {"backward", Unreserved, true},
	Before:           {"before", Unreserved, true},
	Begin:            {"begin", Unreserved, true},
	Between:          {"between", ColumnName, true},
	Bigint:           {"bigint", ColumnName, true},
	Binary:           {"binary", TypeFunc, true},
	Bit:              {"bit", ColumnName, true},
	Boolean:          {"boolean", ColumnName, true},
	Both:             {"both", Reserved, true},
	Breadth:          {"breadth", Unreserved, true},
	By:               {"by", Unreserved, true},
	Cache:            {"cache", Unreserved, true},
	Call:             {"call", Unreserved, true},
	Called:           {"called", Unreserved, true},
	Cascade:          {"cascade", Unreserved, true},
	Cascaded:         {"cascaded", Unreserved, true},
	Case:             {"case", Reserved, true},
	Cast:             {"cast", Reserved, true},
	Catalog:          {"catalog", Unreserved, true},
	Chain:            {"chain", Unreserved, true},
	Char:             {"char", ColumnName, false},
	Character:        {"character", ColumnName, false},
	Characteristics:  {"characteristics", Unreserved, true},
	Check:            {"check", Reserved, true},
	Checkpoint:       {"checkpoint", Unreserved, true},
	Class:            {"class", Unreserved, true},
	Close:            {"close", Unreserved, true},
	Cluster:          {"cluster", Unreserved, true},
	Coalesce:         {"coalesce", ColumnName, true},
	Collate:          {"collate", Reserved, true},
	Collation:        {"collation", TypeFunc, true},
	Column:           {"column", Reserved, true},
	Columns:          {"columns", Unreserved, true},
	Comment:          {"comment", Unreserved, true},
	Comments:         {"comments", Unreserved, true},
	Commit:           {"commit", Unreserved, true},
	Committed:        {"committed", Unreserved, true},
	Compression:      {"compression", Unreserved, true},
	Concurrently:     {"concurrently", TypeFunc, true},
	Configuration:    {"configuration", Unreserved, true},
	Conflict:         {"conflict", Unreserved, true},
	Connection:       {"connection", Unreserved, true},
	Constraint:       {"constraint", Reserved, true},
	Constraints:      {"constraints", Unreserved, true},
	Content:          {"content", Unreserved, true},
	Continue:         {"continue", Unreserved, true},
	Conversion:       {"conversion", Unreserved, true},
	Copy:             {"copy", Unreserved, true},
	Cost:             {"cost", Unreserved, true},
	Create:           {"create", Reserved, false},
	Cross:            {"cross", TypeFunc, true},
	Csv:              {"csv", Unreserved, true},
	Cube:             {"cube", Unreserved, true},
	Current:          {"current", Unreserved, true},
	CurrentCatalog:   {"current_catalog", Reserved, true},
	CurrentDate:      {"current_date", Reserved, true},
	CurrentRole:      {"current_role", Reserved, true},
	CurrentSchema:    {"current_schema", TypeFunc, true},
	CurrentTime:      {"current_time", Reserved, true},
	CurrentTimestamp: {"current_timestamp", Reserved, true},
	CurrentUser:      {"current_user", Reserved, true},
	Cursor:           {"cursor", Unreserved, true},
	Cycle:            {"cycle", Unreserved, true},
	Data:             {"data", Unreserved, true},
	Database:         {"database", Unreserved, true},
	Day:              {"day", Unreserved, false},
	Deallocate:       {"deallocate", Unreserved, true},
	Dec:              {"dec", ColumnName, true},
	Decimal:          {"decimal", ColumnName, true},
	Declare:          {"declare", Unreserved, true},
	Default:          {"default", Reserved, true},
	Defaults:         {"defaults", Unreserved, true},
	Deferrable:       {"deferrable", Reserved, true},
	Deferred:         {"deferred", Unreserved, true},
	Definer:          {"definer", Unreserved, true},
	Delete:           {"delete", Unreserved, true},
	Delimiter:        {"delimiter", Unreserved, true},
	Delimiters:       {"delimiters", Unreserved, true},
	Depends:          {"depends", Unreserved, true},
	Depth:            {"depth", Unreserved, true},
	Desc:             {"desc", Reserved, true},
	Detach:           {"detach", Unreserved, true},
	Dictionary:       {"dictionary", Unreserved, true},
	Disable:          {"disable", Unreserved, true},
	Discard:          {"discard", Unreserved, true},
	Distinct:         {"distinct", Reserved, true},
	Do:               {"do", Reserved, true},
	Document:         {"document", Unreserved, true},
	Domain:           {"domain", Unreserved, true},
	Double:           {"double", Unreserved, true},
	Drop:             {"drop", Unreserved, true},
	Each:             {"each", Unreserved, true},
	Else:             {"else", Reserved, true},
	Enable:           {"enable", Unreserved, true},
	Encoding:         {"encoding", Unreserved, true},
	Encrypted:        {"encrypted", Unreserved, true},
	End:              {"end", Reserved, true},
	Enum:             {"enum", Unreserved, true},
	Escape:           {"escape", Unreserved, true},
	Event:            {"event", Unreserved, true},
	Except:           {"except", Reserved, false},
	Exclude:          {"exclude", Unreserved, true},
	Excluding:        {"excluding", Unreserved, true},
	Exclusive:        {"exclusive", Unreserved, true},
	Execute:          {"execute", Unreserved, true},
	Exists:           {"exists", ColumnName, true},
	Explain:          {"explain", Unreserved, true},
	Expression:       {"expression", Unreserved, true},
	Extension:        {"extension", Unreserved, true},
	External:         {"external", Unreserved, true},
	Extract:          {"extract", ColumnName, true},
	False:            {"false", Reserved, true},
	Family:           {"family", Unreserved, true},
	Fetch:            {"fetch", Reserved, false},
	Filter:           {"filter", Unreserved, false},
	Finalize:         {"finalize", Unreserved, true},
	First:            {"first", Unreserved, true},
	Float:            {"float", ColumnName, true},
	Following:        {"following", Unreserved, true},
	For:              {"for", Reserved, false},
	Force:            {"force", Unreserved, true},
	Foreign:          {"foreign", Reserved, true},
	Forward:          {"forward", Unreserved, true},
	Freeze:           {"freeze", TypeFunc, true},
	From:             {"from", Reserved, false},
	Full:             {"full", TypeFunc, true},
	Function:         {"function", Unreserved, true},
	Functions:        {"functions", Unreserved, true},
	Generated:        {"generated", Unreserved, true},
	Global:           {"global", Unreserved, true},
	Grant:            {"grant", Reserved, false},
	Granted:          {"granted", Unreserved, true},
	Greatest:         {"greatest", ColumnName, true},
	Group:            {"group", Reserved, false},
	Grouping:         {"grouping", ColumnName, true},
	Groups:           {"groups", Unreserved, true},
	Handler:          {"handler", Unreserved, true},
	Having:           {"having", Reserved, false},
	Header:           {"header", Unreserved, true},
	Hold:             {"hold", Unreserved, true},
	Hour:             {"hour", Unreserved, false},
	Identity:         {"identity", Unreserved, true},
	If:               {"if", Unreserved, true},
	Ilike:            {"ilike", TypeFunc, true},
	Immediate:        {"immediate", Unreserved, true},
	Immutable:        {"immutable", Unreserved, true},
	Implicit:         {"implicit", Unreserved, true},
	Import:           {"import", Unreserved, true},
	In:               {"in", Reserved, true},
	Include:          {"include", Unreserved, true},
	Including:        {"including", Unreserved, true},
	Increment:        {"increment", Unreserved, true},
	Index:            {"index", Unreserved, true},
	Indexes:          {"indexes", Unreserved, true},
	Inherit:          {"inherit", Unreserved, true},
	Inherits:         {"inherits", Unreserved, true},
	Initially:        {"initially", Reserved, true},
	Inline:           {"inline", Unreserved, true},
	Inner:            {"inner", TypeFunc, true},
	Inout:            {"inout", ColumnName, true},
	Input:            {"input", Unreserved, true},
	Insensitive:      {"insensitive", Unreserved, true},
	Insert:           {"insert", Unreserved, true},
	Instead:          {"instead", Unreserved, true},
	Int:              {"int", ColumnName, true},
	Integer:          {"integer", ColumnName, true},
	Intersect:        {"intersect", Reserved, false},
	Interval:         {"interval", ColumnName, true},
	Into:             {"into", Reserved, false},
	Invoker:          {"invoker", Unreserved, true},
	Is:               {"is", TypeFunc, true},
	Isnull:           {"isnull", TypeFunc, false},
	Isolation:        {"isolation", Unreserved, true},
	Join:             {"join", TypeFunc, true},
	Key:              {"key", Unreserved, true},
	Label:            {"label", Unreserved, true},
	Language:         {"language", Unreserved, true},
	Large:            {"large", Unreserved, true},
	Last:             {"last", Unreserved, true},
	Lateral:          {"lateral", Reserved, true},
	Leading:          {"leading", Reserved, true},
	Leakproof:        {"leakproof", Unreserved, true},
	Least:            {"least", ColumnName, true},
	Left:             {"left", TypeFunc, true},
	Level:            {"level", Unreserved, true},
	Like:             {"like", TypeFunc, true},
	Limit:            {"limit", Reserved, false},
	Listen:           {"listen", Unreserved, true},
	Load:             {"load", Unreserved, true},
	Local:            {"local", Unreserved, true},
	Localtime:        {"localtime", Reserved, true},
	Localtimestamp:   {"localtimestamp", Reserved, true},
	Location:         {"location", Unreserved, true},
	Lock:             {"lock", Unreserved, true},
	Locked:           {"locked", Unreserved, true},
	Logged:           {"logged", Unreserved, true},
	Mapping:          {"mapping", Unreserved, true},
	Match:            {"match", Unreserved, true},
	Matched:          {"matched", Unreserved, true},
	Materialized:     {"materialized", Unreserved, true},
	Maxvalue:         {"maxvalue", Unreserved, true},
	Merge:            {"merge", Unreserved, true},
	Method:           {"method", Unreserved, true},
	Minute:           {"minute", Unreserved, false},
	Minvalue:         {"minvalue", Unreserved, true},
	Mode:             {"mode", Unreserved, true},
	Month:            {"month", Unreserved, false},
	Move:             {"move", Unreserved, true},
	Name:             {"name", Unreserved, true},
	Names:            {"names", Unreserved, true},
	National:         {"national", ColumnName, true},
	Natural:          {"natural", TypeFunc, true},
	Nchar:            {"nchar", ColumnName, true},
	New:              {"new", Unreserved, true},
	Next:             {"next", Unreserved, true},
	Nfc:              {"nfc", Unreserved, true},
	Nfd:              {"nfd", Unreserved, true},
	Nfkc:             {"nfkc", Unreserved, true},
	Nfkd:             {"nfkd", Unreserved, true},
	No:               {"no", Unreserved, true},
	NoneWord:         {"none", ColumnName, true},
	Normalize:        {"normalize", ColumnName, true},
	Normalized:       {"normalized", Unreserved, true},
	Not:              {"not", Reserved, true},
	Nothing:          {"nothing", Unreserved, true},
	Notify:           {"notify", Unreserved, true},
	Notnull:          {"notnull", TypeFunc, false},
	Nowait:           {"nowait", Unreserved, true},
	Null:             {"null", Reserved, true},
	Nullif:           {"nullif", ColumnName, true},
	Nulls:            {"nulls", Unreserved, true},
	Numeric:          {"numeric", ColumnName, true},
	Object:           {"object", Unreserved, true},
	Of:               {"of", Unreserved, true},
	Off:              {"off", Unreserved, true},
	Offset:           {"offset", Reserved, false},
	Oids:             {"oids", Unreserved, true},
	Old:              {"old", Unreserved, true},
	On:               {"on", Reserved, false},
	Only:             {"only", Reserved, true},
	Operator:         {"operator", Unreserved, true},
	Option:           {"option", Unreserved, true},
	Options:          {"options", Unreserved, true},
	Or:               {"or", Reserved, true},
	Order:            {"order", Reserved, false},
	Ordinality:       {"ordinality", Unreserved, true},
	Others:           {"others", Unreserved, true},
	Out:              {"out", ColumnName, true},
	Outer:            {"outer", TypeFunc, true},
	Over:             {"over", Unreserved, false},
	Overlaps:         {"overlaps", TypeFunc, false},
	Overlay:          {"overlay", ColumnName, true},
	Overriding:       {"overriding", Unreserved, true},
	Owned:            {"owned", Unreserved, true},
	Owner:            {"owner", Unreserved, true},
	Parallel:         {"parallel", Unreserved, true},
	Parameter:        {"parameter", Unreserved, true},
	Parser:           {"parser", Unreserved, true},
	Partial:          {"partial", Unreserved, true},
	Partition:        {"partition", Unreserved, true},
	Passing:          {"passing", Unreserved, true},
	Password:         {"password", Unreserved, true},
	Placing:          {"placing", Reserved, true},
	Plans:            {"plans", Unreserved, true},
	Policy:           {"policy", Unreserved, true},
	Position:         {"position", ColumnName, true},
	Preceding:        {"preceding", Unreserved, true},
	Precision:        {"precision", ColumnName, false},
	Prepare:          {"prepare", Unreserved, true},
	Prepared:         {"prepared", Unreserved, true},
	Preserve:         {"preserve", Unreserved, true},
	Primary:          {"primary", Reserved, true},
	Prior:            {"prior", Unreserved, true},
	Privileges:       {"privileges", Unreserved, true},
	Procedural:       {"procedural", Unreserved, true},
	Procedure:        {"procedure", Unreserved, true},
	Procedures:       {"procedures", Unreserved, true},
	Program:          {"program", Unreserved, true},
	Publication:      {"publication", Unreserved, true},
	Quote:            {"quote", Unreserved, true},
	Range:            {"range", Unreserved, true},
	Read:             {"read", Unreserved, true},
	Real:             {"real", ColumnName, true},
	Reassign:         {"reassign", Unreserved, true},
	Recheck:          {"recheck", Unreserved, true},
	Recursive:        {"recursive", Unreserved, true},
	Ref:              {"ref", Unreserved, true},
	References:       {"references", Reserved, true},
	Referencing:      {"referencing", Unreserved, true},
	Refresh:          {"refresh", Unreserved, true},
	Reindex:          {"reindex", Unreserved, true},
	Relative:         {"relative", Unreserved, true},
	Release:          {"release", Unreserved, true},
	Rename:           {"rename", Unreserved, true},
	Repeatable:       {"repeatable", Unreserved, true},
	Replace:          {"replace", Unreserved, true},
	Replica:          {"replica", Unreserved, true},
	Reset:            {"reset", Unreserved, true},
	Restart:          {"restart", Unreserved, true},
	Restrict:         {"restrict", Unreserved, true},
	Return:           {"return", Unreserved, true},
	Returning:        {"returning", Reserved, false},
	Returns:          {"returns", Unreserved, true},
	Revoke:           {"revoke", Unreserved, true},
	Right:            {"right", TypeFunc, true},
	Role:             {"role", Unreserved, true},
	Rollback:         {"rollback", Unreserved, true},
	Rollup:           {"rollup", Unreserved, true},
	Routine:          {"routine", Unreserved, true},
	Routines:         {"routines", Unreserved, true},
	Row:              {"row", ColumnName, true},
	Rows:             {"rows", Unreserved, true},
	Rule:             {"rule", Unreserved, true},
	Savepoint:        {"savepoint", Unreserved, true},
	Schema:           {"schema", Unreserved, true},
	Schemas:          {"schemas", Unreserved, true},
	Scroll:           {"scroll", Unreserved, true},
	Search:           {"search", Unreserved, true},
	Second:           {"second", Unreserved, false},
	Security:         {"security", Unreserved, true},
	Select:           {"select", Reserved, true},
	Sequence:         {"sequence", Unreserved, true},
	Sequences:        {"sequences", Unreserved, true},
	Serializable:     {"serializable", Unreserved, true},
	Server:           {"server", Unreserved, true},
	Session:          {"session", Unreserved, true},
	SessionUser:      {"session_user", Reserved, true},
	Set:              {"set", Unreserved, true},
	Setof:            {"setof", ColumnName, true},
	Sets:             {"sets", Unreserved, true},
	Share:            {"share", Unreserved, true},
	Show:             {"show", Unreserved, true},
	Similar:          {"similar", TypeFunc, true},
	Simple:           {"simple", Unreserved, true},
	Skip:             {"skip", Unreserved, true},
	Smallint:         {"smallint", ColumnName, true},
	Snapshot:         {"snapshot", Unreserved, true},
	Some:             {"some", Reserved, true},
	Sql:              {"sql", Unreserved, true},
	Stable:           {"stable", Unreserved, true},
	Standalone:       {"standalone", Unreserved, true},
	Start:            {"start", Unreserved, true},
	Statement:        {"statement", Unreserved, true},
	Statistics:       {"statistics", Unreserved, true},
	Stdin:            {"stdin", Unreserved, true},
	Stdout:           {"stdout", Unreserved, true},
	Storage:          {"storage", Unreserved, true},
	Stored:           {"stored", Unreserved, true},
	Strict:           {"strict", Unreserved, true},
	Strip:            {"strip", Unreserved, true},
	Subscription:     {"subscription", Unreserved, true},
	Substring:        {"substring", ColumnName, true},
	Support:          {"support", Unreserved, true},
	Symmetric:        {"symmetric", Reserved, true},
	Sysid:            {"sysid", Unreserved, true},
	System:           {"system", Unreserved, true},
	Table:            {"table", Reserved, true},
	Tables:           {"tables", Unreserved, true},
	Tablesample:      {"tablesample", TypeFunc, true},
	Tablespace:       {"tablespace", Unreserved, true},
	Temp:             {"temp", Unreserved, true},
	Template:         {"template", Unreserved, true},
	Temporary:        {"temporary", Unreserved, true},
	Text:             {"text", Unreserved, true},
	Then:             {"then", Reserved, true},
	Ties:             {"ties", Unreserved, true},
	Time:             {"time", ColumnName, true},
	Timestamp:        {"timestamp", ColumnName, true},
	To:               {"to", Reserved, false},
	Trailing:         {"trailing", Reserved, true},
	Transaction:      {"transaction", Unreserved, true},
	Transform:        {"transform", Unreserved, true},
	Treat:            {"treat", ColumnName, true},
	Trigger:          {"trigger", Unreserved, true},
	Trim:             {"trim", ColumnName, true},
	True:             {"true", Reserved, true},
	Truncate:         {"truncate", Unreserved, true},
	Trusted:          {"trusted", Unreserved, true},
	Type:             {"type", Unreserved, true},
	Types:            {"types", Unreserved, true},
	Uescape:          {"uescape", Unreserved, true},
	Unbounded:        {"unbounded", Unreserved, true},
	Uncommitted:      {"uncommitted", Unreserved, true},
	Unencrypted:      {"unencrypted", Unreserved, true},
	Union:            {"union", Reserved, false},
	Unique:           {"unique", Reserved, true},
	Unknown:          {"unknown", Unreserved, true},
	Unlisten:         {"unlisten", Unreserved, true},
	Unlogged:         {"unlogged", Unreserved, true},
	Until:            {"until", Unreserved, true},
	Update:           {"update", Unreserved, true},
	User:             {"user", Reserved, true},
	Using:            {"using", Reserved, true},
	Vacuum:           {"vacuum", Unreserved, true},
	Valid:            {"valid", Unreserved, true},
	Validate:         {"validate", Unreserved, true},
	Validator:        {"validator", Unreserved, true},
	Value:            {"value", Unreserved, true},
	Values:           {"values", ColumnName, true},
	Varchar:          {"varchar", ColumnName, true},
	Variadic:         {"variadic", Reserved, true},
	Varying:          {"varying", Unreserved, false},
	Verbose:          {"verbose", TypeFunc, true},
	Version:          {"version", Unreserved, true},
	View:             {"view", Unreserved, true},
	Views:            {"views", Unreserved, true},
	Volatile:         {"volatile", Unreserved, true},
	When:             {"when", Reserved, true},
	Where:            {"where", Reserved, false},
	Whitespace:       {"whitespace", Unreserved, true},
	Window:           {"window", Reserved, false},
	With:             {"with", Reserved, false},
	Within:           {"within", Unreserved, false},
	Without:          {"without", Unreserved, false},
	Work:             {"work", Unreserved, true},
	Wrapper:          {"wrapper", Unreserved, true},
	Write:            {"write", Unreserved, true},
	Xml:              {"xml", Unreserved, true},
	Xmlattributes:    {"xmlattributes", ColumnName, true},
	Xmlconcat:        {"xmlconcat", ColumnName, true},
	Xmlelement:       {"xmlelement", ColumnName, true},
	Xmlexists:        {"xmlexists", ColumnName, true},
	Xmlforest:        {"xmlforest", ColumnName, true},
	Xmlnamespaces:    {"xmlnamespaces", ColumnName, true},
	Xmlparse:         {"xmlparse", ColumnName, true},
	Xmlpi:            {"xmlpi", ColumnName, true},
	Xmlroot:          {"xmlroot", ColumnName, true},
	Xmlserialize:     {"xmlserialize", ColumnName, true},
	Xmltable:         {"xmltable", ColumnName, true},
	Year:             {"year", Unreserved, false},
	Yes:              {"yes", Unreserved, true},
	Zone:             {"zone", Unreserved, true},
}

// Lookup finds the keyword that lower, an identifier folded to lower case, spells; None if none.
func Lookup(lower []byte) Word {
	switch string(lower) {
	case "abort":
		return Abort
	case "absolute":
		return Absolute
	case "access":
		return Access
	case "action":
		return Action
	case "add":
		return Add
	case "admin":
		return Admin
	case "after":
		return After
	case "aggregate":
		return Aggregate
	case "all":
		return All
	case "also":
		return Also
	case "alter":
		return Alter
	case "always":
		return Always
	case "analyse":
		return Analyse
	case "analyze":
		return Analyze
	case "and":
		return And
	case "any":
		return Any
	case "array":
		return Array
	case "as":
		return As
	case "asc":
		return Asc
	case "asensitive":
		return Asensitive
	case "assertion":
		return Assertion
	case "assignment":
		return Assignment
	case "asymmetric":
		return Asymmetric
	case "at":
		return At
	case "atomic":
		return Atomic
	case "attach":
		return Attach
	case "attribute":
		return Attribute
	case "authorization":
		return Authorization
	case "backward":
		return Backward
	case "before":
		return Before
	case "begin":
		return Begin
	case "between":
		return Between
	case "bigint":
		return Bigint
	case "binary":
		return Binary
	case "bit":
		return Bit
	case "boolean":
		return Boolean
	case "both":
		return Both
	case "breadth":
		return Breadth
	case "by":
		return By
	case "cache":
		return Cache
	case "call":
		return Call
	case "called":
		return Called
	case "cascade":
		return Cascade
	case "cascaded":
		return Cascaded
	case "case":
		return Case
	case "cast":
		return Cast
	case "catalog":
		return Catalog
	case "chain":
		return Chain
	case "char":
		return Char
	case "character":
		return Character
	case "characteristics":
		return Characteristics
	case "check":
		return Check
	case "checkpoint":
		return Checkpoint
	case "class":
		return Class
	case "close":
		return Close
	case "cluster":
		return Cluster
	case "coalesce":
		return Coalesce
	case "collate":
		return Collate
	case "collation":
		return Collation
	case "column":
		return Column
	case "columns":
		return Columns
	case "comment":
		return Comment
	case "comments":
		return Comments
	case "commit":
		return Commit
	case "committed":
		return Committed
	case "compression":
		return Compression
	case "concurrently":
		return Concurrently
	case "configuration":
		return Configuration
	case "conflict":
		return Conflict
	case "connection":
		return Connection
	case "constraint":
		return Constraint
	case "constraints":
		return Constraints
	case "content":
		return Content
	case "continue":
		return Continue
	case "conversion":
		return Conversion
	case "copy":
		return Copy
	case "cost":
		return Cost
	case "create":
		return Create
	case "cross":
		return Cross
	case "csv":
		return Csv
	case "cube":
		return Cube
	case "current":
		return Current
	case "current_catalog":
		return CurrentCatalog
	case "current_date":
		return CurrentDate
	case "current_role":
		return CurrentRole
	case "current_schema":
		return CurrentSchema
	case "current_time":
		return CurrentTime
	case "current_timestamp":
		return CurrentTimestamp
	case "current_user":
		return CurrentUser
	case "cursor":
		return Cursor
	case "cycle":
		return Cycle
	case "data":
		return Data
	case "database":
		return Database
	case "day":
		return Day
	case "deallocate":
		return Deallocate
	case "dec":
		return Dec
	case "decimal":
		return Decimal
	case "declare":
		return Declare
	case "default":
		return Default
	case "defaults":
		return Defaults
	case "deferrable":
		return Deferrable
	case "deferred":
		return Deferred
	case "definer":
		return Definer
	case "delete":
		return Delete
	case "delimiter":
		return Delimiter
	case "delimiters":
		return Delimiters
	case "depends":
		return Depends
	case "depth":
		return Depth
	case "desc":
		return Desc
	case "detach":
		return Detach
	case "dictionary":
		return Dictionary
	case "disable":
		return Disable
	case "discard":
		return Discard
	case "distinct":
		return Distinct
	case "do":
		return Do
	case "document":
		return Document
	case "domain":
		return Domain
	case "double":
		return Double
	case "drop":
		return Drop
	case "each":
		return Each
	case "else":
		return Else
	case "enable":
		return Enable
	case "encoding":
		return Encoding
	case "encrypted":
		return Encrypted
	case "end":
		return End
	case "enum":
		return Enum
	case "escape":
		return Escape
	case "event":
		return Event
	case "except":
		return Except
	case "exclude":
		return Exclude
	case "excluding":
		return Excluding
	case "exclusive":
		return Exclusive
	case "execute":
		return Execute
	case "exists":
		return Exists
	case "explain":
		return Explain
	case "expression":
		return Expression
	case "extension":
		return Extension
	case "external":
		return External
	case "extract":
		return Extract
	case "false":
		return False
	case "family":
		return Family
	case "fetch":
		return Fetch
	case "filter":
		return Filter
	case "finalize":
		return Finalize
	case "first":
		return First
	case "float":
		return Float
	case "following":
		return Following
	case "for":
		return For
	case "force":
		return Force
	case "foreign":
		return Foreign
	case "forward":
		return Forward
	case "freeze":
		return Freeze
	case "from":
		return From
	case "full":
		return Full
	case "function":
		return Function
	case "functions":
		return Functions
	case "generated":
		return Generated
	case "global":
		return Global
	case "grant":
		return Grant
	case "granted":
		return Granted
	case "greatest":
		return Greatest
	case "group":
		return Group
	case "grouping":
		return Grouping
	case "groups":
		return Groups
	case "handler":
		return Handler
	case "having":
		return Having
	case "header":
		return Header
	case "hold":
		return Hold
	case "hour":
		return Hour
	case "identity":
		return Identity
	case "if":
		return If
	case "ilike":
		return Ilike
	case "immediate":
		return Immediate
	case "immutable":
		return Immutable
	case "implicit":
		return Implicit
	case "import":
		return Import
	case "in":
		return In
	case "include":
		return Include
	case "including":
		return Including
	case "increment":
		return Increment
	case "index":
		return Index
	case "indexes":
		return Indexes
	case "inherit":
		return Inherit
	case "inherits":
		return Inherits
	case "initially":
		return Initially
	case "inline":
		return Inline
	case "inner":
		return Inner
	case "inout":
		return Inout
	case "input":
		return Input
	case "insensitive":
		return Insensitive
	case "insert":
		return Insert
	case "instead":
		return Instead
	case "int":
		return Int
	case "integer":
		return Integer
	case "intersect":
		return Intersect
	case "interval":
		return Interval
	case "into":
		return Into
	case "invoker":
		return Invoker
	case "is":
		return Is
	case "isnull":
		return Isnull
	case "isolation":
		return Isolation
	case "join":
		return Join
	case "key":
		return Key
	case "label":
		return Label
	case "language":
		return Language
	case "large":
		return Large
	case "last":
		return Last
	case "lateral":
		return Lateral
	case "leading":
		return Leading
	case "leakproof":
		return Leakproof
	case "least":
		return Least
	case "left":
		return Left
	case "level":
		return Level
	case "like":
		return Like
	case "limit":
		return Limit
	case "listen":
		return Listen
	case "load":
		return Load
	case "local":
		return Local
	case "localtime":
		return Localtime
	case "localtimestamp":
		return Localtimestamp
	case "location":
		return Location
	case "lock":
		return Lock
	case "locked":
		return Locked
	case "logged":
		return Logged
	case "mapping":
		return Mapping
	case "match":
		return Match
	case "matched":
		return Matched
	case "materialized":
		return Materialized
	case "maxvalue":
		return Maxvalue
	case "merge":
		return Merge
	case "method":
		return Method
	case "minute":
		return Minute
	case "minvalue":
		return Minvalue
	case "mode":
		return Mode
	case "month":
		return Month
	case "move":
		return Move
	case "name":
		return Name
	case "names":
		return Names
	case "national":
		return National
	case "natural":
		return Natural
	case "nchar":
		return Nchar
	case "new":
		return New
	case "next":
		return Next
	case "nfc":
		return Nfc
	case "nfd":
		return Nfd
	case "nfkc":
		return Nfkc
	case "nfkd":
		return Nfkd
	case "no":
		return No
	case "none":
		return NoneWord
	case "normalize":
		return Normalize
	case "normalized":
		return Normalized
	case "not":
		return Not
	case "nothing":
		return Nothing
	case "notify":
		return Notify
	case "notnull":
		return Notnull
	case "nowait":
		return Nowait
	case "null":
		return Null
	case "nullif":
		return Nullif
	case "nulls":
		return Nulls
	case "numeric":
		return Numeric
	case "object":
		return Object
	case "of":
		return Of
	case "off":
		return Off
	case "offset":
		return Offset
	case "oids":
		return Oids
	case "old":
		return Old
	case "on":
		return On
	case "only":
		return Only
	case "operator":
		return Operator
	case "option":
		return Option
	case "options":
		return Options
	case "or":
		return Or
	case "order":
		return Order
	case "ordinality":
		return Ordinality
	case "others":
		return Others
	case "out":
		return Out
	case "outer":
		return Outer
	case "over":
		return Over
	case "overlaps":
		return Overlaps
	case "overlay":
		return Overlay
	case "overriding":
		return Overriding
	case "owned":
		return Owned
	case "owner":
		return Owner
	case "parallel":
		return Parallel
	case "parameter":
		return Parameter
	case "parser":
		return Parser
	case "partial":
		return Partial
	case "partition":
		return Partition
	case "passing":
		return Passing
	case "password":
		return Password
	case "placing":
		return Placing
	case "plans":
		return Plans
	case "policy":
		return Policy
	case "position":
		return Position
	case "preceding":
		return Preceding
	case "precision":
		return Precision
	case "prepare":
		return Prepare
	case "prepared":
		return Prepared
	case "preserve":
		return Preserve
	case "primary":
		return Primary
	case "prior":
		return Prior
	case "privileges":
		return Privileges
	case "procedural":
		return Procedural
	case "procedure":
		return Procedure
	case "procedures":
		return Procedures
	case "program":
		return Program
	case "publication":
		return Publication
	case "quote":
		return Quote
	case "range":
		return Range
	case "read":
		return Read
	case "real":
		return Real
	case "reassign":
		return Reassign
	case "recheck":
		return Recheck
	case "recursive":
		return Recursive
	case "ref":
		return Ref
	case "references":
		return References
	case "referencing":
		return Referencing
	case "refresh":
		return Refresh
	case "reindex":
		return Reindex
	case "relative":
		return Relative
	case "release":
		return Release
	case "rename":
		return Rename
	case "repeatable":
		return Repeatable
	case "replace":
		return Replace
	case "replica":
		return Replica
	case "reset":
		return Reset
	case "restart":
		return Restart
	case "restrict":
		return Restrict
	case "return":
		return Return
	case "returning":
		return Returning
	case "returns":
		return Returns
	case "revoke":
		return Revoke
	case "right":
		return Right
	case "role":
		return Role
	case "rollback":
		return Rollback
	case "rollup":
		return Rollup
	case "routine":
		return Routine
	case "routines":
		return Routines
	case "row":
		return Row
	case "rows":
		return Rows
	case "rule":
		return Rule
	case "savepoint":
		return Savepoint
	case "schema":
		return Schema
	case "schemas":
		return Schemas
	case "scroll":
		return Scroll
	case "search":
		return Search
	case "second":
		return Second
	case "security":
		return Security
	case "select":
		return Select
	case "sequence":
		return Sequence
	case "sequences":
		return Sequences
	case "serializable":
		return Serializable
	case "server":
		return Server
	case "session":
		return Session
	case "session_user":
		return SessionUser
	case "set":
		return Set
	case "setof":
		return Setof
	case "sets":
		return Sets
	case "share":
		return Share
	case "show":
		return Show
	case "similar":
		return Similar
	case "simple":
		return Simple
	case "skip":
		return Skip
	case "smallint":
		return Smallint
	case "snapshot":
		return Snapshot
	case "some":
		return Some
	case "sql":
		return Sql
	case "stable":
		return Stable
	case "standalone":
		return Standalone
	case "start":
		return Start
	case "statement":
		return Statement
	case "statistics":
		return Statistics
	case "stdin":
		return Stdin
	case "stdout":
		return Stdout
	case "storage":
		return Storage
	case "stored":
		return Stored
	case "strict":
		return Strict
	case "strip":
		return Strip
	case "subscription":
		return Subscription
	case "substring":
		return Substring
	case "support":
		return Support
	case "symmetric":
		return Symmetric
	case "sysid":
		return Sysid
	case "system":
		return System
	case "table":
		return Table
	case "tables":
		return Tables
	case "tablesample":
		return Tablesample
	case "tablespace":
		return Tablespace
	case "temp":
		return Temp
	case "template":
		return Template
	case "temporary":
		return Temporary
	case "text":
		return Text
	case "then":
		return Then
	case "ties":
		return Ties
	case "time":
		return Time
	case "timestamp":
		return Timestamp
	case "to":
		return To
	case "trailing":
		return Trailing
	case "transaction":
		return Transaction
	case "transform":
		return Transform
	case "treat":
		return Treat
	case "trigger":
		return Trigger
	case "trim":
		return Trim
	case "true":
		return True
	case "truncate":
		return Truncate
	case "trusted":
		return Trusted
	case "type":
		return Type
	case "types":
		return Types
	case "uescape":
		return Uescape
	case "unbounded":
		return Unbounded
	case "uncommitted":
		return Uncommitted
	case "unencrypted":
		return Unencrypted
	case "union":
		return Union
	case "unique":
		return Unique
	case "unknown":
		return Unknown
	case "unlisten":
		return Unlisten
	case "unlogged":
		return Unlogged
	case "until":
		return Until
	case "update":
		return Update
	case "user":
		return User
	case "using":
		return Using
	case "vacuum":
		return Vacuum
	case "valid":
		return Valid
	case "validate":
		return Validate
	case "validator":
		return Validator
	case "value":
		return Value
	case "values":
		return Values
	case "varchar":
		return Varchar
	case "variadic":
		return Variadic
	case "varying":
		return Varying
	case "verbose":
		return Verbose
	case "version":
		return Version
	case "view":
		return View
	case "views":
		return Views
	case "volatile":
		return Volatile
	case "when":
		return When
	case "where":
		return Where
	case "whitespace":
		return Whitespace
	case "window":
		return Window
	case "with":
		return With
	case "within":
		return Within
	case "without":
		return Without
	case "work":
		return Work
	case "wrapper":
		return Wrapper
	case "write":
		return Write
	case "xml":
		return Xml
	case "xmlattributes":
		return Xmlattributes
	case "xmlconcat":
		return Xmlconcat
	case "xmlelement":
		return Xmlelement
	case "xmlexists":
		return Xmlexists
	case "xmlforest":
		return Xmlforest
	case "xmlnamespaces":
		return Xmlnamespaces
	case "xmlparse":
		return Xmlparse
	case "xmlpi":
		return Xmlpi
	case "xmlroot":
		return Xmlroot
	case "xmlserialize":
		return Xmlserialize
	case "xmltable":
		return Xmltable
	case "year":
		return Year
	case "yes":
		return Yes
	case "zone":
		return Zone
	}
	return None
}
